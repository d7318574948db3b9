//! A tag of the header with its data.

use rpm::{IndexData, IndexTag};

/// A tag and its data.
pub(super) type Tag = (IndexTag, IndexData);

/// The data of a tag that is one text.
pub(super) fn text(text: impl Into<String>) -> IndexData {
    IndexData::StringTag(text.into())
}

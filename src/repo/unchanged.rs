//! Whether the indexes of a channel can stay: its packages and the compression of its lists are the same,
//! and all of them are in place.

use rockpack_base::error::Result;
use rockpack_base::formats::compression::Method;

use super::channel::Channel;
use super::listed_indexes::ListedIndexes;
use super::state::ChannelState;
use super::store::Store;

/// The indexes of `earlier`, if they are those of `next`, too, and are all in place.
pub(super) fn unchanged<'a>(
    store: &dyn Store,
    channel: &Channel,
    earlier: &'a ChannelState,
    next: &ChannelState,
    method: Method,
) -> Result<Option<&'a ListedIndexes>> {
    let listed = &earlier.listed;
    let files = listed.files(channel);
    if files.is_empty() || !listed.is_compressed_by(method) || earlier.records != next.records {
        return Ok(None);
    }
    for (path, size) in files {
        let there = store.stat(&path)?.is_some_and(|stat| stat.size == size);
        if !there || !earlier.indexes.contains(&path) {
            return Ok(None);
        }
    }
    Ok(Some(listed))
}

//! What the rpm repository calls its index and its versions.

use crate::verify::repository::xml::Element;

pub(super) const REPOMD: &str = "repodata/repomd.xml";

/// `[epoch:]version[-release]`.
pub(super) fn evr(element: &Element) -> String {
    let part = |name: &str| element.attribute(name);
    let epoch = match part("epoch") {
        "" | "0" => String::new(),
        epoch => format!("{epoch}:"),
    };
    let release = match part("rel") {
        "" => String::new(),
        release => format!("-{release}"),
    };
    format!("{epoch}{}{release}", part("ver"))
}

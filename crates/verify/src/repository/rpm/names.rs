//! The names of the index and of versions in an rpm repository.

pub(super) const REPOMD: &str = "repodata/repomd.xml";

/// `[epoch:]version[-release]`.
pub(super) fn evr(epoch: &str, version: &str, release: &str) -> String {
    let epoch = match epoch {
        "" | "0" => String::new(),
        epoch => format!("{epoch}:"),
    };
    let release = match release {
        "" => String::new(),
        release => format!("-{release}"),
    };
    format!("{epoch}{version}{release}")
}

//! Reads the files of a configuration.

use std::path::Path;

use rockpack_core::content::read_small;
use rockpack_core::error::{Error, Kind, Result, ResultExt};

/// Longest configuration that is read, in bytes: room for thousands of groups.
const CONFIG_LIMIT: u64 = 4 << 20;

/// Reads the text of the file at `path`; `what` names its kind in errors.
pub fn read_text(path: &Path, what: &str) -> Result<String> {
    let bytes = read_small(path, CONFIG_LIMIT, what).context(|| format!("reading the {what}"))?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to() as u64;
        let error = Error::new(Kind::Config, format!("the {what} is not UTF-8"));
        error.file(path).offset(at)
    })
}

//! Reading the files of a configuration.

use std::path::Path;

use rockpack_base::content::read_small;
use rockpack_base::error::{Error, Kind, Result, ResultExt};

/// Longest configuration that is read, in bytes: thousands of groups fit.
const CONFIG_LIMIT: u64 = 4 << 20;

/// The text of the file at `path`, which is to be a `what`.
pub fn read_text(path: &Path, what: &str) -> Result<String> {
    let bytes = read_small(path, CONFIG_LIMIT, what);
    let bytes = bytes.context(|| format!("reading the {what}"))?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to() as u64;
        let error = Error::new(Kind::Config, format!("the {what} is not UTF-8"));
        error.file(path).offset(at)
    })
}

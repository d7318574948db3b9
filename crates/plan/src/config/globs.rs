//! Globs that match files by their paths below the prefix.

use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::tree::TreePath;

use super::document::ConfigDocument;
use rockpack_split::input::database::matches_path;

/// Refuses a glob that no path below the prefix can match.
pub fn check_glob(glob: &str) -> Result<()> {
    if glob.split('/').all(|part| !["", ".", ".."].contains(&part)) {
        return Ok(());
    }
    let message = format!("`{glob}` is the path of no file below the prefix");
    Err(Error::new(Kind::Config, message)
        .hint("it is written as in `share/emulator/**/*.elf`, with `**` for any folders"))
}

/// Whether the path matches one of the globs.
pub fn matches_any(globs: &[String], path: &TreePath) -> bool {
    globs.iter().any(|glob| matches_path(glob, path.as_str()))
}

/// Refuses globs of the list at `key` that no path can match.
pub(super) fn check(key: &str, globs: &[String], document: &ConfigDocument, faults: &mut Faults) {
    for (index, glob) in globs.iter().enumerate() {
        if let Err(error) = check_glob(glob) {
            faults.add(document.located(&[key, &index.to_string()], &error));
        }
    }
}

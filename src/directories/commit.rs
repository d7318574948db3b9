//! The steps by which new artifacts take the place of earlier ones, and how they are taken back: by
//! the run itself when a step fails, or by the next run when this one was killed.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use crate::error::{Error, Result};

/// Inside a staging folder: what a commit moved out of the way.
pub(super) const REPLACED: &str = "replaced";

/// Inside a staging folder: what says that a commit is not finished.
const COMMITTING: &str = "committing";

/// The same while it is written.
const GROWING: &str = "committing.part";

/// Moves the artifacts `names` from the staging folder `folder` into `out`, and what stands in their
/// place there, and `removed`, out of the way.
pub(super) fn replace(out: &Path, folder: &Path, names: &[&str], removed: &[String]) -> Result<()> {
    let replaced = folder.join(REPLACED);
    fs::create_dir_all(&replaced).map_err(|e| Error::io(&replaced, "create", e))?;
    let committing = folder.join(COMMITTING);
    // Under another name until it is whole: half a name would be another artifact's.
    let growing = folder.join(GROWING);
    fs::write(&growing, names.join("\n")).map_err(|e| Error::io(&growing, "write", e))?;
    rename(&growing, &committing)?;
    for name in removed {
        rename(&out.join(name), &replaced.join(name))?;
    }
    for name in names {
        let visible = out.join(name);
        if is_there(&visible)? {
            rename(&visible, &replaced.join(name))?;
        }
        rename(&folder.join(name), &visible)?;
    }
    finish(folder)
}

/// Takes back what the commit from the staging folder `folder` into `out` has done; nothing where no
/// commit was begun.
pub(super) fn undo(out: &Path, folder: &Path) -> Result<()> {
    let committing = folder.join(COMMITTING);
    let names = match fs::read_to_string(&committing) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        read => read.map_err(|e| Error::io(&committing, "read", e))?,
    };
    for name in names.lines() {
        if Path::new(name).file_name() != Some(OsStr::new(name)) {
            let message = format!("`{}` is no name of an artifact", name.escape_debug());
            return Err(Error::malformed(message)
                .file(&committing)
                .hint("no run of rockpack left this: remove the folder it is in"));
        }
        // What is not here any more was made visible.
        let (staged, visible) = (folder.join(name), out.join(name));
        if !is_there(&staged)? && is_there(&visible)? {
            rename(&visible, &staged)?;
        }
    }
    let replaced = folder.join(REPLACED);
    for entry in fs::read_dir(&replaced).map_err(|e| Error::io(&replaced, "list", e))? {
        let name = entry.map_err(|e| Error::io(&replaced, "list", e))?.file_name();
        rename(&replaced.join(&name), &out.join(&name))?;
    }
    finish(folder)
}

/// Says that there is no commit to take back.
fn finish(folder: &Path) -> Result<()> {
    let committing = folder.join(COMMITTING);
    match fs::remove_file(&committing) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(Error::io(&committing, "remove", error))
        }
        _ => Ok(()),
    }
}

fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(|e| Error::io(to, "rename into place", e))
}

fn is_there(path: &Path) -> Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io(path, "inspect", error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_is_taken_back() {
        let room = tempfile::tempdir().unwrap();
        let (out, victim) = (room.path().join("out"), room.path().join("victim"));
        let folder = out.join("staging");
        fs::create_dir_all(folder.join(REPLACED)).unwrap();
        fs::create_dir(&victim).unwrap();
        for name in ["../victim", victim.to_str().unwrap(), "..", ""] {
            fs::write(folder.join(COMMITTING), format!("{name}\n")).unwrap();
            let error = undo(&out, &folder).unwrap_err();
            assert!(error.to_string().contains("is no name of an artifact"), "{error}");
            assert!(victim.exists());
        }
    }
}

//! Safe access to folders that other users may write to: follows no links, never blocks on a pipe, and does not trust
//! files of other users.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rockpack_core::content::if_exists;
use rockpack_core::error::{Error, Kind, Result};
use rustix::fs::OFlags;
use rustix::process::geteuid;

use super::kind_of;

const WORLD_WRITABLE: u32 = 0o002;

/// The hint for a foreign entry at the path of a rockpack file or folder.
const HINT: &str = "rockpack did not create it: find out who did, and remove it";

const FOREIGN: &str = "if a run of that user was interrupted, that user can run it again, or remove it; \
                       users who share a folder need a group that may write to everything in it \
                       (umask 002, chmod g+rwxs)";

/// Opens the regular file at `path` with `options`; a link or anything else is an error.
pub(super) fn open_file(path: &Path, options: &mut OpenOptions) -> Result<File> {
    let file = open_itself(path, options, OFlags::NONBLOCK)?;
    refuse_non_file(&file, path)?;
    Ok(file)
}

/// Refuses `file`, open at `path`, unless it is a regular file.
pub(super) fn refuse_non_file(file: &File, path: &Path) -> Result<()> {
    let metadata = file.metadata().map_err(|e| Error::io(path, "inspect", e))?;
    if metadata.is_file() {
        return Ok(());
    }
    Err(Error::unsupported("is not a regular file").file(path).hint(HINT))
}

/// Refuses `file`, open at `path`, if it has a second hard link.
pub(super) fn refuse_hard_link(file: &File, path: &Path) -> Result<()> {
    let metadata = file.metadata().map_err(|e| Error::io(path, "inspect", e))?;
    if metadata.nlink() > 1 {
        let message = "is a hard link to a file elsewhere";
        return Err(Error::unsupported(message).file(path).hint(HINT));
    }
    Ok(())
}

/// Opens the folder at `path`; a link to one is an error.
pub(super) fn open_folder(path: &Path) -> Result<File> {
    open_itself(path, OpenOptions::new().read(true), OFlags::DIRECTORY)
}

fn open_itself(path: &Path, options: &mut OpenOptions, flags: OFlags) -> Result<File> {
    let flags = (flags | OFlags::NOFOLLOW | OFlags::NOCTTY).bits();
    let flags = i32::try_from(flags).map_err(|error| Error::bug("flags of open").cause(error))?;
    options.custom_flags(flags).open(path).map_err(|error| match kind_of(path) {
        Ok(Some(kind)) if kind.is_symlink() => symbolic_link(path),
        _ => refused(path, "open", error),
    })
}

/// The error of a failed `action` on the entry at `path`. It names the owner if that is another user.
pub(super) fn refused(path: &Path, action: &str, error: io::Error) -> Error {
    let is_denied = error.kind() == ErrorKind::PermissionDenied;
    let metadata = fs::symlink_metadata(path).ok().filter(|_| is_denied);
    let owner = metadata.map(|metadata| metadata.uid());
    match owner.filter(|owner| *owner != geteuid().as_raw()) {
        Some(owner) => {
            let message =
                format!("cannot {action}: {error}: it belongs to another user (uid {owner})");
            Error::new(Kind::Io, message).file(path).hint(FOREIGN)
        }
        None => Error::io(path, action, error),
    }
}

pub(super) fn symbolic_link(path: &Path) -> Error {
    Error::unsupported("is a symbolic link, which is not followed here").file(path).hint(HINT)
}

pub fn refuse_non_folder(path: &Path) -> Result<()> {
    match kind_of(path)? {
        Some(kind) if kind.is_symlink() => Err(symbolic_link(path)),
        Some(kind) if !kind.is_dir() => Err(not_a_folder(path)),
        _ => Ok(()),
    }
}

/// The error for something else than a folder at `path`.
pub(super) fn not_a_folder(path: &Path) -> Error {
    Error::unsupported("is not a folder").file(path).hint(HINT)
}

/// Refuses the entry at `path` if it belongs to another user, whose content is not trusted.
pub(super) fn refuse_foreign(path: &Path) -> Result<()> {
    let metadata = if_exists(path, "inspect", fs::symlink_metadata(path))?;
    metadata.map_or(Ok(()), |metadata| refuse_owner(&metadata, path))
}

fn refuse_owner(metadata: &Metadata, path: &Path) -> Result<()> {
    let owner = metadata.uid();
    if owner == geteuid().as_raw() {
        return Ok(());
    }
    let message = format!("was left by another user (uid {owner}), and is not trusted");
    Err(Error::new(Kind::Unsupported, message).file(path).hint(FOREIGN))
}

/// Maximum size in bytes of a commit record: the names of a hundred thousand packages.
const RECORD_MAX: u64 = 16 << 20;

/// Reads the regular file of this user at `path`; `None` if it does not exist.
pub(super) fn read_own_file(path: &Path) -> Result<Option<String>> {
    if kind_of(path)?.is_none() {
        return Ok(None);
    }
    let mut file = open_file(path, OpenOptions::new().read(true))?;
    refuse_owner(&file.metadata().map_err(|e| Error::io(path, "inspect", e))?, path)?;
    let mut text = String::new();
    let read = file.by_ref().take(RECORD_MAX + 1).read_to_string(&mut text);
    if read.map_err(|e| Error::io(path, "read", e))? as u64 > RECORD_MAX {
        let message = format!("has more than {RECORD_MAX} bytes, too many for a record of names");
        return Err(Error::new(Kind::Limit, message)
            .file(path)
            .hint("rockpack did not write it: remove the folder that it is in"));
    }
    Ok(Some(text))
}

/// Refuses a world-writable folder of another user except root, because any user could replace its files. Accepts a
/// missing folder.
pub fn refuse_world_writable(path: &Path) -> Result<()> {
    let metadata = match fs::metadata(path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(());
        }
        looked => looked.map_err(|e: io::Error| Error::io(path, "inspect", e))?,
    };
    refuse_world_writable_metadata(&metadata, path)
}

/// Refuses the open folder at `path` for the same reason.
pub(super) fn refuse_world_writable_metadata(metadata: &Metadata, path: &Path) -> Result<()> {
    let is_trusted = [0, geteuid().as_raw()].contains(&metadata.uid());
    if is_trusted || metadata.mode() & WORLD_WRITABLE == 0 {
        return Ok(());
    }
    let message =
        format!("belongs to another user (uid {}), and is world-writable", metadata.uid());
    Err(Error::new(Kind::Usage, message)
        .file(path)
        .hint("name a folder of your own, or remove write permission for others: chmod o-w"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_a_file_itself_is_opened() {
        let room = tempfile::tempdir().unwrap();
        let here = room.path();
        fs::write(here.join("file"), "text").unwrap();
        fs::write(here.join("twice"), "text").unwrap();
        fs::hard_link(here.join("twice"), here.join("again")).unwrap();
        fs::create_dir(here.join("folder")).unwrap();
        symlink("file", here.join("link")).unwrap();
        symlink("folder", here.join("way")).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            here.join("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        assert_eq!(read_own_file(&here.join("file")).unwrap().as_deref(), Some("text"));
        assert_eq!(read_own_file(&here.join("nothing")).unwrap(), None);
        for (name, why) in
            [("link", "symbolic link"), ("pipe", "not a regular"), ("folder", "not a regular")]
        {
            let error = read_own_file(&here.join(name)).unwrap_err().full_text();
            assert!(error.contains(why), "{name}: {error}");
        }
        let file = open_file(&here.join("file"), OpenOptions::new().write(true)).unwrap();
        refuse_hard_link(&file, &here.join("file")).unwrap();
        let again = here.join("again");
        let file = open_file(&again, OpenOptions::new().write(true)).unwrap();
        let refused = refuse_hard_link(&file, &again).unwrap_err();
        assert!(refused.full_text().contains("hard link"));
        open_folder(&here.join("folder")).unwrap();
        refuse_non_folder(&here.join("nothing")).unwrap();
        for name in ["way", "file"] {
            open_folder(&here.join(name)).unwrap_err();
            refuse_non_folder(&here.join(name)).unwrap_err();
        }
        refuse_world_writable(room.path()).unwrap();
        refuse_world_writable(&here.join("nothing")).unwrap();
    }
}

//! An open folder. Its direct entries are accessed through the handle without following links: moving the folder, or
//! putting something else at its path, does not affect a run that has it open.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rockpack_core::error::{Error, Result};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::guarded;

/// The open folder, and the path by which it was opened, for messages.
#[derive(Debug)]
pub struct Dir {
    folder: File,
    path: PathBuf,
}

impl Dir {
    /// Opens the folder at `path`, which may be a link to one. Refuses a world-writable folder of another user.
    pub fn open(path: &Path) -> Result<Self> {
        let flags = i32::try_from(OFlags::DIRECTORY.bits()).unwrap_or_default();
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
        let folder = opened.map_err(|e| Error::io(path, "open", e))?;
        let metadata = folder.metadata().map_err(|e| Error::io(path, "inspect", e))?;
        guarded::refuse_world_writable_metadata(&metadata, path)?;
        Ok(Self { folder, path: path.to_path_buf() })
    }

    pub fn at(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.path.join(name.as_ref())
    }

    pub fn subfolder(&self, name: &str) -> Result<Option<Self>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.folder, name, flags, Mode::empty()) {
            Ok(folder) => Ok(Some(Self { folder: folder.into(), path: self.at(name) })),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(self.not_opened(name, error)),
        }
    }

    /// Opens the folder called `name`, and creates it if it is missing.
    pub fn make_subfolder(&self, name: &str) -> Result<Self> {
        match rustix::fs::mkdirat(&self.folder, name, Mode::from_bits_truncate(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(self.fault(name, "create", error)),
        }
        let made = self.subfolder(name)?;
        made.ok_or_else(|| self.fault(name, "open", Errno::NOENT))
    }

    /// Opens the regular file called `name` for reading, if it exists.
    pub fn open_file(&self, name: &str) -> Result<Option<File>> {
        self.file(name, OFlags::RDONLY)
    }

    /// Opens the regular file called `name` for reading and writing, and creates it if it is missing. Fails
    /// if it has a second hard link.
    pub fn open_to_write(&self, name: &str) -> Result<File> {
        let file = self
            .file(name, OFlags::RDWR | OFlags::CREATE)?
            .ok_or_else(|| self.fault(name, "open", Errno::NOENT))?;
        guarded::refuse_hard_link(&file, &self.at(name))?;
        Ok(file)
    }

    /// Creates a file called `name`. Returns `None` if the name is taken.
    pub fn create_new(&self, name: &str) -> Result<Option<File>> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.folder, name, flags, Mode::from_bits_truncate(0o666)) {
            Ok(file) => Ok(Some(file.into())),
            Err(Errno::EXIST) => Ok(None),
            Err(error) => Err(self.fault(name, "write into", error)),
        }
    }

    fn file(&self, name: &str, flags: OFlags) -> Result<Option<File>> {
        let guards = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let mode = Mode::from_bits_truncate(0o666);
        let file: File = match rustix::fs::openat(&self.folder, name, flags | guards, mode) {
            Ok(file) => file.into(),
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(self.not_opened(name, error)),
        };
        guarded::refuse_non_file(&file, &self.at(name))?;
        Ok(Some(file))
    }

    /// The status of the entry called `name`, if it exists. Follows no link.
    pub fn status(&self, name: impl AsRef<OsStr>) -> Result<Option<EntryStatus>> {
        let name = name.as_ref();
        match rustix::fs::statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(EntryStatus {
                kind: FileType::from_raw_mode(stat.st_mode),
                size: u64::try_from(stat.st_size).unwrap_or_default(),
                modified: (stat.st_mtime, stat.st_mtime_nsec),
            })),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(self.fault(name, "inspect", error)),
        }
    }

    /// Removes the file called `name`, and returns whether it existed.
    pub fn remove(&self, name: impl AsRef<OsStr>) -> Result<bool> {
        let name = name.as_ref();
        match rustix::fs::unlinkat(&self.folder, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(self.fault(name, "remove", error)),
        }
    }

    /// Moves the entry `name` to another folder, and replaces an existing one there.
    pub fn rename(&self, name: &str, to: &Self, new: &str) -> Result<()> {
        let renamed = rustix::fs::renameat(&self.folder, name, &to.folder, new);
        renamed.map_err(|error| to.fault(new, "rename into place", error))
    }

    pub fn names(&self) -> Result<Vec<OsString>> {
        let mut names = Vec::new();
        let not_listed = |error: Errno| Error::io(&self.path, "list", error.into());
        for entry in rustix::fs::Dir::read_from(&self.folder).map_err(not_listed)? {
            let entry = entry.map_err(not_listed)?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// The error for an entry that cannot be opened, most often a link.
    fn not_opened(&self, name: &str, error: Errno) -> Error {
        match self.status(name) {
            Ok(Some(found)) if found.kind == FileType::Symlink => {
                guarded::symbolic_link(&self.at(name))
            }
            Ok(Some(found)) if error == Errno::NOTDIR && found.kind != FileType::Directory => {
                guarded::not_a_folder(&self.at(name))
            }
            _ => self.fault(name, "open", error),
        }
    }

    fn fault(&self, name: impl AsRef<OsStr>, what: &'static str, error: Errno) -> Error {
        Error::io(self.at(name), what, error.into())
    }
}

/// The modification time of a file, in seconds and nanoseconds since 1970.
pub type Modified = (i64, i64);

pub struct EntryStatus {
    /// Whether it is a file, a folder, a link or something else.
    pub kind: FileType,
    pub size: u64,
    pub modified: Modified,
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_is_put_by_its_path_is_not_what_is_open() {
        let room = tempfile::tempdir().unwrap();
        let here = room.path();
        fs::create_dir(here.join("folder")).unwrap();
        fs::create_dir(here.join("victim")).unwrap();
        fs::write(here.join("victim/precious"), "words").unwrap();
        let dir = Dir::open(&here.join("folder")).unwrap();
        fs::rename(here.join("folder"), here.join("moved")).unwrap();
        symlink("victim", here.join("folder")).unwrap();
        dir.create_new("a").unwrap().unwrap();
        assert!(dir.create_new("a").unwrap().is_none());
        let below = dir.make_subfolder("b").unwrap();
        dir.rename("a", &below, "c").unwrap();
        assert_eq!(below.status("c").unwrap().unwrap().kind, FileType::RegularFile);
        assert!(dir.open_file("precious").unwrap().is_none() && !dir.remove("precious").unwrap());
        assert_eq!(dir.names().unwrap(), ["b"]);
        assert!(here.join("moved/b/c").exists());
        assert_eq!(fs::read_dir(here.join("victim")).unwrap().count(), 1);
    }

    #[test]
    fn links_and_pipes_are_not_opened() {
        let room = tempfile::tempdir().unwrap();
        let here = room.path();
        fs::write(here.join("file"), "text").unwrap();
        fs::hard_link(here.join("file"), here.join("again")).unwrap();
        symlink("file", here.join("link")).unwrap();
        symlink(".", here.join("way")).unwrap();
        let dir = Dir::open(&here.join("way")).unwrap();
        assert!(full_text(dir.open_file("link").err()).contains("symbolic link"));
        assert!(full_text(dir.subfolder("way").err()).contains("symbolic link"));
        assert!(full_text(dir.make_subfolder("way").err()).contains("symbolic link"));
        assert!(full_text(dir.subfolder("file").err()).contains("is not a folder"));
        assert!(full_text(dir.open_file("..").err()).contains("not a regular file"));
        assert!(full_text(dir.open_to_write("again").err()).contains("hard link"));
        assert!(dir.subfolder("nothing").unwrap().is_none());
    }

    fn full_text(error: Option<Error>) -> String {
        error.unwrap().full_text()
    }
}

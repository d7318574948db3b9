//! A folder that is held open. Its direct entries are reached through the handle without following links: a
//! user who moves the folder, or puts something else at its path, changes nothing for a run that has it open.

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
    /// Opens the folder at `path`, which may be a link to one. Refuses a folder of another user that
    /// everybody may write to.
    pub fn open(path: &Path) -> Result<Self> {
        let flags = i32::try_from(OFlags::DIRECTORY.bits()).unwrap_or_default();
        let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
        let folder = opened.map_err(|e| Error::io(path, "open", e))?;
        let metadata = folder.metadata().map_err(|e| Error::io(path, "inspect", e))?;
        guarded::refuse_written_by_all(&metadata, path)?;
        Ok(Self { folder, path: path.to_path_buf() })
    }

    /// The path of `name` in the folder, for messages.
    pub fn at(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.path.join(name.as_ref())
    }

    /// Opens the folder called `name`, if it exists.
    pub fn below(&self, name: &str) -> Result<Option<Self>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.folder, name, flags, Mode::empty()) {
            Ok(folder) => Ok(Some(Self { folder: folder.into(), path: self.at(name) })),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(self.not_opened(name, error)),
        }
    }

    /// Opens the folder called `name`, and creates it if it is missing.
    pub fn make_below(&self, name: &str) -> Result<Self> {
        match rustix::fs::mkdirat(&self.folder, name, Mode::from_bits_truncate(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(self.fault(name, "create", error)),
        }
        let made = self.below(name)?;
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
        guarded::refuse_second_name(&file, &self.at(name))?;
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
        guarded::refuse_no_file(&file, &self.at(name))?;
        Ok(Some(file))
    }

    /// The status of the entry called `name` itself, if it exists.
    pub fn look(&self, name: impl AsRef<OsStr>) -> Result<Option<Found>> {
        let name = name.as_ref();
        match rustix::fs::statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Found {
                kind: FileType::from_raw_mode(stat.st_mode),
                size: u64::try_from(stat.st_size).unwrap_or_default(),
                modified: (stat.st_mtime, stat.st_mtime_nsec),
            })),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(self.fault(name, "inspect", error)),
        }
    }

    /// Removes the file called `name`, and tells whether it existed.
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

    /// The names in the folder.
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
        match self.look(name) {
            Ok(Some(found)) if found.kind == FileType::Symlink => guarded::is_link(&self.at(name)),
            Ok(Some(found)) if error == Errno::NOTDIR && found.kind != FileType::Directory => {
                guarded::is_no_folder(&self.at(name))
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

/// The status of an entry.
pub struct Found {
    /// Whether it is a file, a folder, a link or something else.
    pub kind: FileType,
    /// The bytes of the file.
    pub size: u64,
    /// The modification time.
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
        let below = dir.make_below("b").unwrap();
        dir.rename("a", &below, "c").unwrap();
        assert_eq!(below.look("c").unwrap().unwrap().kind, FileType::RegularFile);
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
        assert!(in_full(dir.open_file("link").err()).contains("symbolic link"));
        assert!(in_full(dir.below("way").err()).contains("symbolic link"));
        assert!(in_full(dir.make_below("way").err()).contains("symbolic link"));
        assert!(in_full(dir.below("file").err()).contains("is no folder"));
        assert!(in_full(dir.open_file("..").err()).contains("no regular file"));
        assert!(in_full(dir.open_to_write("again").err()).contains("second name"));
        assert!(dir.below("nothing").unwrap().is_none());
    }

    fn in_full(error: Option<Error>) -> String {
        error.unwrap().in_full()
    }
}

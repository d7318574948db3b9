//! What the system refuses, as an error, and errors on their way through [`io::Error`].

use std::fmt;
use std::io;
use std::path::Path;

use super::{Error, Kind, Result};

/// What to do about a file or folder that may not be used.
const PERMISSION_HINT: &str =
    "check the permissions of the file and of its folders, or run as a user who has them";

/// What to do about a disk that is full.
const ROOM_HINT: &str = "make room on that file system; what was not finished is taken back";

/// What to do about a file that may not become so large.
const SIZE_HINT: &str = "raise the limit of file sizes, as of `ulimit -f`, or use a file system \
    that takes larger files";

/// What to do where the system starts no more threads, or gives no more memory: either may be told
/// as the other.
const THREADS_HINT: &str = "raise the limits of threads and of memory, as of `ulimit` or of the \
    container; `build` needs less of both with a smaller --jobs";

/// What to do about a failed system call, where that is known.
pub fn system_hint(kind: io::ErrorKind) -> Option<&'static str> {
    match kind {
        io::ErrorKind::PermissionDenied => Some(PERMISSION_HINT),
        io::ErrorKind::FileTooLarge => Some(SIZE_HINT),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some(ROOM_HINT),
        _ => None,
    }
}

/// Whether nothing is at a path, or no file or folder as it was to be. Of the latter our own readers say
/// that the input is invalid.
fn is_absent(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{InvalidInput, IsADirectory, NotADirectory, NotFound};
    matches!(kind, NotFound | NotADirectory | IsADirectory | InvalidInput)
}

/// Whether zstd or liblzma got no memory, by what they say of it; both say so where they get no
/// thread, too. The system's own refusals have a number.
fn is_refused_memory(source: &io::Error) -> bool {
    let told = ["Allocation error : not enough memory", "can't allocate memory"];
    let said = source.get_ref().map(ToString::to_string);
    let bare = source.kind() == io::ErrorKind::OutOfMemory;
    source.raw_os_error().is_none() && (bare || said.is_some_and(|said| told.contains(&&*said)))
}

impl Error {
    /// A failed system call on a file that the caller knows and this code does not; whoever knows
    /// the file adds it.
    pub fn io_unplaced(action: &str, source: io::Error) -> Self {
        Self::from_io(source).unwrap_or_else(|source| {
            let hint = system_hint(source.kind());
            let error = Self::new(Kind::Io, format!("cannot {action}")).cause(source);
            match hint {
                Some(hint) => error.hint(hint),
                None => error,
            }
        })
    }

    /// A failed system call on `file`.
    pub fn io(file: impl AsRef<Path>, action: &str, source: io::Error) -> Self {
        match Self::from_io(source) {
            Ok(carried) => carried,
            Err(source) => {
                let message = format!("cannot {action}: {source}");
                let mut error = Self::new(Kind::Io, message).file(file.as_ref());
                error.inner.is_absent = is_absent(source.kind());
                match system_hint(source.kind()) {
                    Some(hint) => error.hint(hint),
                    None => error,
                }
            }
        }
    }

    /// A library that fails at what cannot fail: a broken invariant, unless it got no memory.
    pub fn of_library(message: &str, source: io::Error) -> Self {
        Self::from_io(source).unwrap_or_else(|source| Self::bug(message).cause(source))
    }

    /// A thread that the system does not start.
    pub fn no_thread(source: impl fmt::Display) -> Self {
        Self::new(Kind::Io, format!("cannot start a thread: {source}")).hint(THREADS_HINT)
    }

    /// Takes back an error that travelled through [`io::Error`], or returns the I/O error itself.
    /// That a compressor or decoder got no memory says nothing of what it worked on.
    pub fn from_io(source: io::Error) -> Result<Self, io::Error> {
        if is_refused_memory(&source) {
            let message = "a compressor or decoder gets no memory, or no thread";
            return Ok(Self::new(Kind::Io, message).hint(THREADS_HINT));
        }
        if source.get_ref().is_some_and(|inner| inner.is::<Self>()) {
            let inner = source.into_inner().ok_or_else(|| io::Error::other("empty error"))?;
            return inner.downcast::<Self>().map(|error| *error).map_err(io::Error::other);
        }
        Err(source)
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        io::Error::other(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Faults;

    /// In the words of the libraries as they are linked here.
    #[test]
    fn refused_memory_is_no_fault_of_what_was_compressed() {
        let zstd = zstd::zstd_safe::get_error_name(64_usize.wrapping_neg());
        for source in [io::Error::other(zstd), liblzma::stream::Error::Mem.into()] {
            let error = Error::from_io(source).unwrap();
            assert!(error.kind() == Kind::Io && error.hint_text().is_some(), "{error}");
        }
        for other in [io::Error::from_raw_os_error(12), io::Error::other("Data corrupted")] {
            Error::from_io(other).unwrap_err();
        }
    }

    #[test]
    fn what_was_named_and_is_not_there_is_refused() {
        let of = |kind: io::ErrorKind| Error::io("x", "open", kind.into());
        assert!(of(io::ErrorKind::NotFound).of_named().is_refusal());
        assert!(!of(io::ErrorKind::NotFound).is_refusal());
        assert!(!of(io::ErrorKind::PermissionDenied).of_named().is_refusal());
        let mut faults = Faults::default();
        faults.add(of(io::ErrorKind::PermissionDenied));
        faults.add(Error::malformed("no key"));
        let error = faults.of_settings().finish().unwrap_err();
        assert!(error.is_refusal() && error.message() == "no key", "{error}");
        assert!(!error.others()[0].is_refusal());
        assert!(!Error::malformed("no package").is_refusal());
    }

    #[test]
    fn an_error_survives_the_way_through_io() {
        let through: io::Error = Error::malformed("bad").file("x").into();
        let back = Error::io("y", "read", through);
        assert_eq!(back.kind(), Kind::Malformed);
        assert_eq!(back.place().file.as_deref(), Some(Path::new("x")));
    }
}

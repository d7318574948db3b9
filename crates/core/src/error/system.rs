//! Errors of system calls, and errors carried inside an [`io::Error`].

use std::fmt;
use std::io;
use std::path::Path;

use super::{Error, Kind, Result};

const PERMISSION_HINT: &str =
    "check the permissions of the file and of its folders, or run as a user who has them";

const ROOM_HINT: &str = "free space on that file system; unfinished output was removed";

const SIZE_HINT: &str = "raise the file size limit (`ulimit -f`), or use a file system that \
    supports larger files";

/// The hint for refused threads or memory. Libraries may report either as the other.
const THREADS_HINT: &str = "raise the limits on threads and memory (`ulimit`, or the container's); \
    `build` needs less of both with a smaller --jobs";

/// The hint for a failed system call, if there is one.
pub fn system_hint(kind: io::ErrorKind) -> Option<&'static str> {
    match kind {
        io::ErrorKind::PermissionDenied => Some(PERMISSION_HINT),
        io::ErrorKind::FileTooLarge => Some(SIZE_HINT),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some(ROOM_HINT),
        _ => None,
    }
}

/// Whether the path does not exist, or has another kind of file: our own readers call that invalid input.
fn is_missing_path(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{InvalidInput, IsADirectory, NotADirectory, NotFound};
    matches!(kind, NotFound | NotADirectory | IsADirectory | InvalidInput)
}

/// Whether zstd or liblzma failed to allocate memory, by the text of the error. Both report a failure to start a
/// thread the same way. An error of the system itself has an error number.
fn is_refused_memory(source: &io::Error) -> bool {
    let texts = ["Allocation error : not enough memory", "can't allocate memory"];
    let text = source.get_ref().map(ToString::to_string);
    let bare = source.kind() == io::ErrorKind::OutOfMemory;
    source.raw_os_error().is_none() && (bare || text.is_some_and(|text| texts.contains(&&*text)))
}

impl Error {
    /// Makes an error for a failed system call on a file that this code does not know; the caller adds it.
    pub fn io_without_path(action: &str, source: io::Error) -> Self {
        Self::from_io(source).unwrap_or_else(|source| {
            let hint = system_hint(source.kind());
            Self::new(Kind::Io, format!("cannot {action}")).cause(source).hint_if(hint)
        })
    }

    /// Makes an error for a failed system call on `file`.
    pub fn io(file: impl AsRef<Path>, action: &str, source: io::Error) -> Self {
        match Self::from_io(source) {
            Ok(carried) => carried,
            Err(source) => {
                let message = format!("cannot {action}: {source}");
                let mut error = Self::new(Kind::Io, message).file(file.as_ref());
                error.inner.is_missing_path = is_missing_path(source.kind());
                error.hint_if(system_hint(source.kind()))
            }
        }
    }

    /// Makes an error for a library call that cannot fail: a broken invariant, unless it got no memory.
    pub fn library_failure(message: &str, source: io::Error) -> Self {
        Self::from_io(source).unwrap_or_else(|source| Self::bug(message).cause(source))
    }

    /// Makes an error for a thread that the system does not start.
    pub fn thread_start_failure(source: impl fmt::Display) -> Self {
        Self::new(Kind::Io, format!("cannot start a thread: {source}")).hint(THREADS_HINT)
    }

    /// Unwraps an error that was carried inside an [`io::Error`], or returns the I/O error itself. A
    /// compressor or decoder without memory becomes an I/O error: it says nothing about the content.
    pub fn from_io(source: io::Error) -> Result<Self, io::Error> {
        if is_refused_memory(&source) {
            let message = "cannot get memory or a thread for a compressor or decoder";
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

    /// The texts come from the linked libraries.
    #[test]
    fn refused_memory_is_an_io_error() {
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
    fn a_missing_path_that_the_user_named_is_a_usage_error() {
        assert!(io_error(io::ErrorKind::NotFound).named_by_user().is_refusal());
        assert!(!io_error(io::ErrorKind::NotFound).is_refusal());
        assert!(!io_error(io::ErrorKind::PermissionDenied).named_by_user().is_refusal());
        let mut faults = Faults::default();
        faults.add(io_error(io::ErrorKind::PermissionDenied));
        faults.add(Error::malformed("no key"));
        let error = faults.into_settings_faults().finish().unwrap_err();
        assert!(error.is_refusal() && error.message() == "no key", "{error}");
        assert!(!error.others()[0].is_refusal());
        assert!(!Error::malformed("no package").is_refusal());
    }

    fn io_error(kind: io::ErrorKind) -> Error {
        Error::io("x", "open", kind.into())
    }

    #[test]
    fn an_error_survives_the_way_through_io() {
        let through: io::Error = Error::malformed("bad").file("x").into();
        let back = Error::io("y", "read", through);
        assert_eq!(back.kind(), Kind::Malformed);
        assert_eq!(back.place().file.as_deref(), Some(Path::new("x")));
    }
}

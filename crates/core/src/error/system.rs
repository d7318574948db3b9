//! Errors of system calls, and errors on their way through [`io::Error`].

use std::fmt;
use std::io;
use std::path::Path;

use super::{Error, Kind, Result};

const PERMISSION_HINT: &str =
    "check the permissions of the file and of its folders, or run as a user who has them";

const ROOM_HINT: &str = "make room on that file system; what was not finished is taken back";

const SIZE_HINT: &str = "raise the limit of file sizes, as of `ulimit -f`, or use a file system \
    that takes larger files";

/// The hint for refused threads or memory. Libraries may report either as the other.
const THREADS_HINT: &str = "raise the limits of threads and of memory, as of `ulimit` or of the \
    container; `build` needs less of both with a smaller --jobs";

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
fn is_absent(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{InvalidInput, IsADirectory, NotADirectory, NotFound};
    matches!(kind, NotFound | NotADirectory | IsADirectory | InvalidInput)
}

/// Whether zstd or liblzma got no memory, according to the text of the error. Both report a missing thread
/// the same way. A refusal by the system itself has an error number.
fn is_refused_memory(source: &io::Error) -> bool {
    let told = ["Allocation error : not enough memory", "can't allocate memory"];
    let said = source.get_ref().map(ToString::to_string);
    let bare = source.kind() == io::ErrorKind::OutOfMemory;
    source.raw_os_error().is_none() && (bare || said.is_some_and(|said| told.contains(&&*said)))
}

impl Error {
    /// Makes an error for a failed system call on a file that this code does not know; the caller adds it.
    pub fn io_unplaced(action: &str, source: io::Error) -> Self {
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
                error.inner.is_absent = is_absent(source.kind());
                error.hint_if(system_hint(source.kind()))
            }
        }
    }

    /// Makes an error for a library call that cannot fail: a broken invariant, unless it got no memory.
    pub fn of_library(message: &str, source: io::Error) -> Self {
        Self::from_io(source).unwrap_or_else(|source| Self::bug(message).cause(source))
    }

    /// Makes an error for a thread that the system does not start.
    pub fn no_thread(source: impl fmt::Display) -> Self {
        Self::new(Kind::Io, format!("cannot start a thread: {source}")).hint(THREADS_HINT)
    }

    /// Takes back an error that travelled through [`io::Error`], or returns the I/O error itself. A
    /// compressor or decoder without memory becomes an I/O error: it tells nothing about the content.
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

    /// The texts come from the linked libraries.
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
        assert!(io_error(io::ErrorKind::NotFound).of_named().is_refusal());
        assert!(!io_error(io::ErrorKind::NotFound).is_refusal());
        assert!(!io_error(io::ErrorKind::PermissionDenied).of_named().is_refusal());
        let mut faults = Faults::default();
        faults.add(io_error(io::ErrorKind::PermissionDenied));
        faults.add(Error::malformed("no key"));
        let error = faults.of_settings().finish().unwrap_err();
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

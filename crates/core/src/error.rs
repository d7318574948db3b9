//! The one error type of the library.
//!
//! An error says *what* was being done (context frames), *where* it went wrong (file, structure,
//! offset in the outermost file), *why* (message and cause), and *what to do* (hint). Faults of a
//! stage are gathered into one error with [`Error::gather`], so that a run reports all of them.
//!
//! Messages, places and frames may hold foreign text unescaped; [`printable`] escapes it where an error is
//! turned into text.

mod printable;
mod remark;
mod system;

use std::fmt;
use std::path::{Path, PathBuf};

use derive_more::Display;

pub use printable::{
    abridged, begins_command, is_invisible, printable, printable_lines, without_commands,
};
pub use remark::Remark;
pub use system::system_hint;

/// Result of every fallible operation of the library.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of fault that an [`Error`] reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The command line or a combination of options makes no sense.
    Usage,
    Config,
    /// The operating system refused a read or write.
    Io,
    /// An input file changed while it was being used.
    Changed,
    Malformed,
    Truncated,
    Unsupported,
    /// Inputs contradict each other, a setting, or files that are already in the output folder.
    Conflict,
    /// A named ceiling of a format or of rockpack is exceeded.
    Limit,
    /// A check of finished output failed.
    Verify,
    /// The run was asked to end, for example by a signal.
    Interrupted,
    /// An invariant of rockpack itself does not hold.
    Bug,
}

/// The place of a fault in the input.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    pub file: Option<PathBuf>,
    /// The structure being read or written, in the format's own terms.
    pub structure: Option<String>,
    /// Byte offset in the outermost file.
    pub offset: Option<u64>,
}

#[derive(Debug, Display)]
#[display("{}", self.rendered())]
pub struct Error {
    inner: Box<Inner>,
}

impl std::error::Error for Error {}

#[derive(Debug)]
struct Inner {
    kind: Kind,
    message: String,
    place: Place,
    hint: Option<String>,
    context: Vec<String>,
    cause: Option<String>,
    /// Whether the cause consists of several lines.
    cause_has_lines: bool,
    others: Vec<Error>,
    remarks: Vec<Remark>,
    /// Whether the path does not exist or has another kind of file than expected.
    is_missing_path: bool,
    is_refusal: bool,
}

/// The hint for a path that does not exist or has another kind of file than expected.
const NAMED_HINT: &str = "check the path; a relative path starts at the current folder";

impl Error {
    /// Makes an error of `kind` with the reason `message`.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        let inner = Inner {
            kind,
            message: message.into(),
            place: Place::default(),
            hint: None,
            context: Vec::new(),
            cause: None,
            cause_has_lines: false,
            others: Vec::new(),
            remarks: Vec::new(),
            is_missing_path: false,
            is_refusal: false,
        };
        Self { inner: Box::new(inner) }
    }

    /// Makes an error for bytes that do not follow their format.
    pub fn malformed(message: impl Into<String>) -> Self {
        Self::new(Kind::Malformed, message)
    }

    /// Makes an error for bytes that end too early.
    pub fn truncated(message: impl Into<String>) -> Self {
        Self::new(Kind::Truncated, message)
    }

    /// Makes an error for input that rockpack does not handle.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(Kind::Unsupported, message)
    }

    /// Makes an error for a broken invariant of rockpack itself.
    pub fn bug(message: impl Into<String>) -> Self {
        Self::new(Kind::Bug, message)
            .hint("this is a bug in rockpack; please report it with the command and its input")
    }

    /// Turns an error about rockpack's own output into a bug report, unless the fault lies in reading.
    pub fn into_own_bug(self, message: impl Into<String>) -> Self {
        let of_reading = self.flattened().any(Self::is_read_failure);
        if of_reading { self } else { Self::bug(message).cause(self) }
    }

    /// Names the outermost file, unless one is named already.
    pub fn file(mut self, file: impl AsRef<Path>) -> Self {
        self.inner.place.file.get_or_insert_with(|| file.as_ref().to_path_buf());
        self
    }

    /// Names the structure, unless one is named already.
    pub fn structure(mut self, structure: impl Into<String>) -> Self {
        self.inner.place.structure.get_or_insert_with(|| structure.into());
        self
    }

    /// Gives the byte offset in the outermost file, unless one is given already.
    pub fn offset(mut self, offset: u64) -> Self {
        self.inner.place.offset.get_or_insert(offset);
        self
    }

    /// Fills in missing file, structure and offset from `place`.
    pub fn at(mut self, place: &Place) -> Self {
        let own = &mut self.inner.place;
        own.file = own.file.take().or_else(|| place.file.clone());
        own.structure = own.structure.take().or_else(|| place.structure.clone());
        own.offset = own.offset.or(place.offset);
        self
    }

    /// Adds a hint that tells the user what to do, unless there is one already.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.inner.hint.get_or_insert_with(|| hint.into());
        self
    }

    /// Adds a hint as [`Error::hint`] does, if there is one to add.
    pub fn hint_if(self, hint: Option<impl Into<String>>) -> Self {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }

    /// Adds a frame that says what was being done.
    pub fn context(mut self, doing: impl Into<String>) -> Self {
        self.inner.context.push(doing.into());
        self
    }

    /// Sets the text of the underlying error, unless one is set already.
    pub fn cause(mut self, cause: impl fmt::Display) -> Self {
        self.inner.cause.get_or_insert_with(|| cause.to_string());
        self
    }

    /// Keeps the multi-line text of an underlying error, such as the output of another program.
    pub fn cause_in_lines(mut self, cause: impl fmt::Display) -> Self {
        self.inner.cause_has_lines |= self.inner.cause.is_none();
        self.cause(cause)
    }

    /// Gathers all faults of a stage into one error; `None` without faults.
    pub fn gather(faults: Vec<Error>) -> Option<Self> {
        let mut faults = faults.into_iter();
        let mut first = faults.next()?;
        first.inner.others.extend(faults);
        Some(first)
    }

    pub fn kind(&self) -> Kind {
        self.inner.kind
    }

    /// Whether the error says nothing about the content: a read failed, the file changed, the run was
    /// interrupted, or rockpack has a bug. Callers that tolerate damaged content must not tolerate such an error.
    pub fn is_read_failure(&self) -> bool {
        matches!(self.kind(), Kind::Io | Kind::Changed | Kind::Interrupted | Kind::Bug)
    }

    /// Whether bytes violate their format, or exceed a limit of rockpack.
    pub fn is_format_fault(&self) -> bool {
        matches!(self.kind(), Kind::Malformed | Kind::Truncated | Kind::Unsupported | Kind::Limit)
    }

    /// Whether the fault lies in the command line, the environment or the configuration.
    pub fn is_refusal(&self) -> bool {
        self.inner.is_refusal || matches!(self.kind(), Kind::Usage | Kind::Config)
    }

    /// Marks the error as caused by a path with another kind of file than expected.
    pub fn wrong_file_kind(mut self) -> Self {
        self.inner.is_missing_path = true;
        self
    }

    /// Whether a path does not exist, or has another kind of file than expected.
    pub fn is_wrong_file_kind(&self) -> bool {
        self.inner.is_missing_path
    }

    /// Marks the error as a fault of the request, whatever its kind.
    pub fn refused(mut self) -> Self {
        self.inner.is_refusal = true;
        self
    }

    /// Makes the input, not the configuration, the cause: the kind becomes [`Kind::Conflict`]. For a
    /// setting that the input violates.
    pub fn into_input_conflict(mut self) -> Self {
        self.inner.kind = Kind::Conflict;
        self
    }

    /// Marks an error at a path that the user named: if the path does not exist or has another kind of file
    /// than expected, the fault lies in the request.
    pub fn named_by_user(mut self) -> Self {
        self.inner.is_refusal |= self.inner.is_missing_path;
        if self.inner.is_missing_path { self.hint(NAMED_HINT) } else { self }
    }

    /// Marks an error from resolving settings: the settings are at fault, unless a read or the system
    /// failed.
    fn into_settings_faults(mut self) -> Self {
        self.inner.is_refusal |= self.inner.is_missing_path || !self.is_read_failure();
        let others = std::mem::take(&mut self.inner.others);
        self.inner.others = others.into_iter().map(Self::into_settings_faults).collect();
        if self.inner.is_missing_path { self.hint(NAMED_HINT) } else { self }
    }

    /// The reason alone, without place and context.
    pub fn message(&self) -> &str {
        &self.inner.message
    }

    pub fn place(&self) -> &Place {
        &self.inner.place
    }

    /// The hint that tells the user what to do.
    pub fn hint_text(&self) -> Option<&str> {
        self.inner.hint.as_deref()
    }

    /// The context frames, innermost first.
    pub fn frames(&self) -> &[String] {
        &self.inner.context
    }

    pub fn cause_text(&self) -> Option<&str> {
        self.inner.cause.as_deref()
    }

    pub fn others(&self) -> &[Error] {
        &self.inner.others
    }

    /// This error and all further faults, in order.
    pub fn flattened(&self) -> impl Iterator<Item = &Error> {
        let mut all = vec![self];
        let mut next = 0;
        while let Some(error) = all.get(next) {
            let at = next + 1;
            all.splice(at..at, error.others());
            next = at;
        }
        all.into_iter()
    }

    /// The frames, outermost first, then the place, the reason and the cause, which may have several lines.
    pub fn full_text(&self) -> String {
        let frames = self.inner.context.iter().rev();
        frames.map(|frame| format!("{}: ", printable(frame))).chain([self.rendered()]).collect()
    }

    fn rendered(&self) -> String {
        let mut text = String::new();
        let place = &self.inner.place;
        if let Some(file) = &place.file {
            text.push_str(&format!("{}: ", printable(&file.to_string_lossy())));
        }
        if let Some(structure) = &place.structure {
            text.push_str(&format!("{}: ", printable(structure)));
        }
        if let Some(offset) = place.offset {
            text.push_str(&format!("at offset {offset:#x}: "));
        }
        text.push_str(&printable(&self.inner.message));
        if let Some(cause) = &self.inner.cause {
            let cause =
                if self.inner.cause_has_lines { printable_lines(cause) } else { printable(cause) };
            text.push_str(&format!(": {cause}"));
        }
        text
    }
}

/// The faults of a stage that continues after a fault, to report all of them.
#[derive(Debug, Default)]
pub struct Faults(Vec<Error>);

impl Faults {
    pub fn add(&mut self, fault: Error) {
        self.0.push(fault);
    }

    /// Returns the value of `result`, or `None` after noting its error.
    pub fn keep<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|fault| self.0.push(fault)).ok()
    }

    /// The values of all `results`; fails with all faults, if there are any.
    pub fn all<T>(results: impl IntoIterator<Item = Result<T>>) -> Result<Vec<T>> {
        let mut faults = Self::default();
        let values = results.into_iter().filter_map(|result| faults.keep(result)).collect();
        faults.finish().map(|()| values)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one of the faults is of `kind`.
    pub fn has(&self, kind: Kind) -> bool {
        self.0.iter().any(|fault| fault.kind() == kind)
    }

    /// Marks the faults as found while settings were resolved, and sorts them, because the first fault
    /// decides the exit code: first those of the command line, then the others that the user must correct.
    pub fn into_settings_faults(self) -> Self {
        let mut faults: Vec<Error> = self.0.into_iter().map(Error::into_settings_faults).collect();
        faults.sort_by_key(|fault| (!fault.is_refusal(), fault.kind() != Kind::Usage));
        Self(faults)
    }

    /// Returns `made` if there was no fault, and fails with all faults otherwise.
    pub fn settle<T>(self, made: Option<T>) -> Result<T> {
        self.finish()?;
        made.ok_or_else(|| Error::bug("a value is missing without a reported fault"))
    }

    /// Fails with all faults, if there are any.
    pub fn finish(self) -> Result<()> {
        Error::gather(self.0).map_or(Ok(()), Err)
    }
}

/// Adds place and context to the error of a result.
pub trait ResultExt<T> {
    /// Adds a frame that says what was being done.
    fn context(self, doing: impl FnOnce() -> String) -> Result<T>;
    fn file(self, file: impl AsRef<Path>) -> Result<T>;
    /// Gives `None` for an error about the content. Errors that say nothing about it stay: see
    /// [`Error::is_read_failure`].
    fn if_readable(self) -> Result<Option<T>>;
}

impl<T> ResultExt<T> for Result<T> {
    fn context(self, doing: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| error.context(doing()))
    }

    fn file(self, file: impl AsRef<Path>) -> Result<T> {
        self.map_err(|error| error.file(file))
    }

    fn if_readable(self) -> Result<Option<T>> {
        match self {
            Err(error) if !error.is_read_failure() => Ok(None),
            result => result.map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_is_filled_from_the_inside_out() {
        let error = Error::truncated("ends after 3 bytes")
            .structure("CCOB header")
            .offset(7)
            .file("a.so")
            .file("outer.so")
            .offset(99);
        assert_eq!(error.to_string(), "a.so: CCOB header: at offset 0x7: ends after 3 bytes");
    }

    #[test]
    fn the_text_of_an_error_has_no_terminal_commands() {
        let error = Error::malformed("`a\u{1b}[2Jb` is none")
            .file("x\ny")
            .structure("s\u{9b}")
            .context("reading\rit")
            .cause("c\nd");
        let text = r"reading\rit: x\ny: s\u{9b}: `a\u{1b}[2Jb` is none: c\nd";
        assert_eq!(error.full_text(), text);
        assert_eq!(error.message(), "`a\u{1b}[2Jb` is none", "the message alone is not escaped");
        let error = Error::malformed("no").cause_in_lines("said\nin\u{7} lines");
        assert_eq!(error.to_string(), "no: said\nin\\u{7} lines");
    }

    #[test]
    fn all_faults_are_kept() {
        assert_eq!(Faults::all([Ok(1), Ok(2)]).unwrap(), [1, 2]);
        let error = Faults::all([Err(Error::bug("a")), Ok(1), Err(Error::bug("b"))]).unwrap_err();
        assert_eq!((error.message(), error.others().len()), ("a", 1));
    }

    #[test]
    fn gathering_nothing_gives_no_error() {
        assert!(Error::gather(Vec::new()).is_none());
        let all = Error::gather(vec![Error::bug("a"), Error::bug("b")]).unwrap();
        assert_eq!((all.message(), all.others().len()), ("a", 1));
    }
}

//! How errors and text reach the terminal.

use std::fmt;
use std::io::{self, Write};

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme};

use crate::error::{Error, Result};

/// An error as miette shows it: what was being done, where, why, and what to do. Further faults are
/// shown each by itself.
#[derive(Debug)]
struct Shown<'a>(&'a Error);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.in_full())
    }
}

impl std::error::Error for Shown<'_> {}

impl Diagnostic for Shown<'_> {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.0.hint_text().map(|hint| Box::new(hint) as Box<dyn fmt::Display>)
    }
}

/// Shows `error` on stderr.
pub(super) fn print_error(error: &Error) {
    let styled =
        io::IsTerminal::is_terminal(&io::stderr()) && std::env::var_os("NO_COLOR").is_none();
    let theme = if styled { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let mut text = String::new();
    // Unwrapped, so that a path stays one word for whoever copies it or searches a log for it.
    let handler = GraphicalReportHandler::new_themed(theme).with_wrap_lines(false);
    for fault in error.flattened() {
        if handler.render_report(&mut text, &Shown(fault)).is_err() {
            text.push_str(&format!("{}\n", fault.in_full()));
        }
    }
    // Without stderr there is nobody to tell; the exit code still says it.
    let _ = write!(io::stderr(), "{text}");
}

/// Writes `text` to stdout.
pub(super) fn print(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    written.map_err(|error| Error::io("<stdout>", "write", error))
}

/// Writes `value` as JSON in one line to stdout.
pub(super) fn print_json_line(value: &impl serde::Serialize) -> Result<()> {
    let text = serde_json::to_string(value)
        .map_err(|error| Error::bug("a result cannot be written as JSON").cause(error))?;
    print(&(text + "\n"))
}

/// Writes `value` as indented JSON to stdout.
pub(super) fn print_json(value: &impl serde::Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Error::bug("a result cannot be written as JSON").cause(error))?;
    print(&(text + "\n"))
}

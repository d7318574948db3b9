//! How errors and text reach the terminal.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt;
use std::io::{self, Write};

use clap::{ColorChoice, ValueEnum};
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme};
use rockpack_base::error::{
    Error, Result, begins_command, is_unseen, printable, printable_lines, without_commands,
};

/// An error as miette shows it: what was being done, where, why, and what to do. Further faults are
/// shown each by itself.
#[derive(Debug)]
struct FullError<'a>(&'a Error);

impl fmt::Display for FullError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.in_full())
    }
}

impl std::error::Error for FullError<'_> {}

impl Diagnostic for FullError<'_> {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.0.hint_text().map(|hint| Box::new(printable(hint)) as Box<dyn fmt::Display>)
    }
}

/// Whether a stream has colours: as `choice` says, or if it is a terminal and NO_COLOR is not set.
pub(super) fn has_colours(choice: ColorChoice, is_terminal: bool) -> bool {
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => {
            is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        }
    }
}

/// Whether help and the errors of the command line have colours, as `--color` among `arguments` says.
/// Those are written before the command line is known to make sense.
pub(super) fn colours_of_help(arguments: impl Iterator<Item = OsString>) -> ColorChoice {
    let mut words = arguments.map(|word| word.to_string_lossy().into_owned());
    let value = words.by_ref().find_map(|word| word.strip_prefix("--color").map(str::to_owned));
    let value = match value.as_deref() {
        Some("") => words.next(),
        Some(value) => value.strip_prefix('=').map(str::to_owned),
        None => None,
    };
    value.and_then(|value| ColorChoice::from_str(&value, true).ok()).unwrap_or_default()
}

/// Shows `error` on stderr.
pub(super) fn print_error(error: &Error, has_colours: bool) {
    let theme =
        if has_colours { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let mut text = String::new();
    // Unwrapped, so that a path stays one word for whoever copies it or searches a log for it.
    let handler = GraphicalReportHandler::new_themed(theme).with_wrap_lines(false);
    for fault in error.flattened() {
        if handler.render_report(&mut text, &FullError(fault)).is_err() {
            text.push_str(&format!("{}\n", fault.in_full()));
        }
    }
    // Without stderr there is nobody to tell; the exit code still says it.
    let _ = write!(io::stderr(), "{}", without_commands(&text));
}

/// Writes `text` to stdout. What renders it leaves no control character in it but line breaks; if one
/// was forgotten, it is not the terminal that finds it.
pub(super) fn print(text: &str) -> Result<()> {
    write(&printable_lines(text))
}

fn write(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    written(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// Writes help and the version to stdout, and what is wrong with the command line to stderr.
pub(super) fn print_help(text: &clap::Error) -> Result<()> {
    written(text.print().and_then(|()| io::stdout().flush()))
}

/// Judges a write to stdout. A reader that went away, as `head` does, has seen what it wanted: that is
/// no failure, and the exit code goes on to say how the command ended. A full disk is one.
fn written(result: io::Result<()>) -> Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|error| Error::io("<stdout>", "write", error)),
    }
}

/// Writes `value` as JSON in one line to stdout.
pub(super) fn print_json_line(value: &impl serde::Serialize) -> Result<()> {
    let text = serde_json::to_string(value)
        .map_err(|error| Error::bug("a result cannot be written as JSON").cause(error))?;
    write(&(plain_json(&text).into_owned() + "\n"))
}

/// Writes `value` as indented JSON to stdout.
pub(super) fn print_json(value: &impl serde::Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Error::bug("a result cannot be written as JSON").cause(error))?;
    write(&(plain_json(&text).into_owned() + "\n"))
}

/// JSON with all control characters escaped, and all that are not seen. serde_json leaves those
/// behind ASCII's first 32, of which some terminals take `\u009b` for the start of a command; they
/// can only be inside of strings. So is the `#` of what a CI system takes for a command anywhere in
/// a line.
pub(super) fn plain_json(text: &str) -> Cow<'_, str> {
    let is_left = |c: char| (c.is_control() && c >= '\u{7f}') || is_unseen(c);
    if !text.contains(is_left) && !text.contains("##") {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        if is_left(c) || (c == '#' && text.get(at..).is_some_and(begins_command)) {
            // JSON writes characters in pieces of 16 bits.
            let mut pieces = [0; 2];
            c.encode_utf16(&mut pieces)
                .iter()
                .for_each(|it| plain.push_str(&format!("\\u{it:04x}")));
        } else {
            plain.push(c);
        }
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_means_the_same_without_control_characters() {
        let value = "\u{1b}[2J\u{9b}2J\u{7f}\n\u{202e}\u{e0001}##vso[x]";
        let plain = serde_json::to_string(value).unwrap();
        let plain = plain_json(&plain);
        assert!(!plain.contains(|c: char| c.is_control() || is_unseen(c)), "{plain}");
        assert!(!plain.contains("##vso["), "{plain}");
        assert_eq!(serde_json::from_str::<String>(&plain).unwrap(), value);
    }
}

//! Errors and text on the terminal.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{self, Write};

use clap::{ColorChoice, ValueEnum};
use rockpack_core::error::{
    Error, Result, begins_command, is_invisible, printable, without_commands,
};

/// Whether a stream has colours: by `choice`, or if it is a terminal and NO_COLOR is unset or empty.
pub(super) fn has_colours(choice: ColorChoice, is_terminal: bool) -> bool {
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => {
            is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        }
    }
}

/// The colours of help and command line errors, by `--color` among `arguments`. They are needed before the
/// command line is parsed.
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
    let text: String = error.flattened().map(|fault| fault_text(fault, has_colours)).collect();
    // If stderr cannot be written, the exit code still reports the error.
    let _ = write!(io::stderr(), "{}", without_commands(&text));
}

/// One fault: what was being done, where, why, and what to do about it. Long lines stay whole, so that a path can
/// be copied or searched for in a log.
fn fault_text(fault: &Error, has_colours: bool) -> String {
    let (red, cyan, end) =
        if has_colours { ("\u{1b}[31m", "\u{1b}[36m", "\u{1b}[0m") } else { ("", "", "") };
    let reason = fault.full_text().trim_end().replace('\n', &format!("\n  {red}│{end} "));
    let mut text = format!("  {red}×{end} {reason}\n");
    if let Some(hint) = fault.hint_text() {
        text.push_str(&format!("  {cyan}help: {end}{}\n", printable(hint)));
    }
    text
}

/// Writes `text` to stdout.
pub(super) fn write(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    stdout_result(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// Writes help and the version to stdout, and faults of the command line to stderr.
pub(super) fn print_help(text: &clap::Error) -> Result<()> {
    stdout_result(text.print().and_then(|()| io::stdout().flush()))
}

/// The result of a write to stdout. A pipe that the reader closed, as `head` does, is not an error, and the exit code
/// still reports how the command ended. A full disk is an error.
fn stdout_result(result: io::Result<()>) -> Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(|error| Error::io("<stdout>", "write", error)),
    }
}

/// JSON for stdout, with a line break.
pub(super) fn json_text(made: serde_json::Result<String>) -> Result<String> {
    let text =
        made.map_err(|error| Error::bug("a result cannot be written as JSON").cause(error))?;
    Ok(plain_json(&text).into_owned() + "\n")
}

/// JSON with all control and invisible characters escaped. serde_json escapes only ASCII's first 32, but some terminals
/// start a command at `\u009b`. The `#` of `##` commands, which CI systems execute anywhere in a line, is escaped, too.
/// All of these occur only inside strings.
pub(super) fn plain_json(text: &str) -> Cow<'_, str> {
    if !text.contains(needs_escape) && !text.contains("##") {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        if needs_escape(c) || (c == '#' && text.get(at..).is_some_and(begins_command)) {
            // JSON escapes are units of UTF-16.
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

fn needs_escape(c: char) -> bool {
    (c.is_control() && c >= '\u{7f}') || is_invisible(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_where_why_and_what_to_do() {
        let error =
            Error::malformed("ends early").cause_in_lines("one\ntwo").file("a.so").offset(7);
        let error = error.context("reading it").hint("copy it again");
        let plain = fault_text(&error, false);
        let lines: Vec<&str> = plain.lines().collect();
        let first = "  × reading it: a.so: at offset 0x7: ends early: one";
        assert_eq!(lines, [first, "  │ two", "  help: copy it again"]);
        let coloured = fault_text(&error, true);
        assert!(coloured.contains("\u{1b}[31m│\u{1b}[0m two"), "{coloured}");
    }

    #[test]
    fn json_means_the_same_without_control_characters() {
        let value = "\u{1b}[2J\u{9b}2J\u{7f}\n\u{202e}\u{e0001}##vso[x]";
        let plain = serde_json::to_string(value).unwrap();
        let plain = plain_json(&plain);
        assert!(!plain.contains(|c: char| c.is_control() || is_invisible(c)), "{plain}");
        assert!(!plain.contains("##vso["), "{plain}");
        assert_eq!(serde_json::from_str::<String>(&plain).unwrap(), value);
    }
}

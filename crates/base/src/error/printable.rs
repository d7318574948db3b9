//! Texts of others on their way to a terminal, which takes control characters for commands.

use std::borrow::Cow;

/// `text` in one line: its control characters, line breaks among them, as Rust writes them in a
/// literal (`\n`, `\u{1b}`). Whoever named a file or filled a field gives a terminal no commands and
/// forges no line. Texts without any stay as they are, so doing it twice changes nothing.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, char::is_control)
}

/// [`printable`], but for the line breaks of a text that is laid out in lines.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c.is_control() && c != '\n')
}

/// The longest text of a file that a message repeats.
const REPEATED: usize = 4096;

/// `text`, or its beginning if it is too long for a message: search paths of libraries may have many
/// kilobytes.
pub fn abridged(text: &str) -> Cow<'_, str> {
    if text.len() <= REPEATED {
        return Cow::Borrowed(text);
    }
    let ends = text.char_indices().map(|(at, _)| at).take_while(|at| *at <= REPEATED);
    let beginning = text.get(..ends.last().unwrap_or_default()).unwrap_or_default();
    Cow::Owned(format!("{beginning}… ({} bytes)", text.len()))
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut printable = String::with_capacity(text.len());
    for c in text.chars() {
        if is_escaped(c) { printable.extend(c.escape_debug()) } else { printable.push(c) }
    }
    Cow::Owned(printable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(abridged(&"x".repeat(4096)), "x".repeat(4096));
        let long = "ä".repeat(3000);
        assert_eq!(abridged(&long), format!("{}… (6000 bytes)", "ä".repeat(2048)));
        let odd = format!("x{long}");
        assert_eq!(abridged(&odd), format!("x{}… (6001 bytes)", "ä".repeat(2047)));
    }

    #[test]
    fn control_characters_are_written_and_all_else_stays() {
        let text = "a\\b \"ü\" → \u{1b}[2J\r\n\t\u{7f}\u{9b}\0";
        let once = printable(text);
        assert_eq!(once, "a\\b \"ü\" → \\u{1b}[2J\\r\\n\\t\\u{7f}\\u{9b}\\0");
        assert_eq!(printable(&once), once);
        assert_eq!(printable_lines("one\n\u{1b}two"), "one\n\\u{1b}two");
    }
}

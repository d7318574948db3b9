//! Escapes foreign text for terminals and the logs of CI systems. A terminal obeys control characters.
//! A CI system obeys GitHub's `::name::` at the beginning of a line, and `##[name]`, Azure's `##vso[`
//! and TeamCity's `##teamcity[` anywhere in it.

use std::borrow::Cow;

/// Escapes `text` into one line. Control characters, line breaks included, and characters that are invisible
/// or turn the direction of text are written as in Rust literals (`\n`, `\u{1b}`), and so is the `#` of CI
/// commands. So names of files and values of fields cannot control a terminal or forge a line. Commands of
/// the form `::name::` stay: [`without_commands`] escapes them. Text without any of these characters stays
/// the same, so a second call changes nothing.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c.is_control() || is_invisible(c))
}

/// Escapes `text` like [`printable`], but keeps its line breaks, and escapes lines that begin with `::`.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    match escaped(text, |c| (c.is_control() && c != '\n') || is_invisible(c)) {
        Cow::Borrowed(text) => without_commands(text),
        Cow::Owned(text) => Cow::Owned(without_commands(&text).into_owned()),
    }
}

/// Escapes the first colon of each line of `text` that begins with `::` after any spaces: a CI system would
/// run it as a command.
pub fn without_commands(text: &str) -> Cow<'_, str> {
    if !text.contains("::") {
        return Cow::Borrowed(text);
    }
    let lines = text.split_inclusive('\n').map(|line| {
        let start = line.char_indices().find(|(_, c)| !c.is_whitespace()).map_or(0, |(at, _)| at);
        match line.split_at_checked(start) {
            Some((blanks, rest)) if rest.starts_with("::") => {
                format!("{blanks}\\u{{3a}}{}", rest.get(1..).unwrap_or_default())
            }
            _ => line.to_owned(),
        }
    });
    Cow::Owned(lines.collect())
}

/// Whether a character is invisible, or changes the direction of its neighbours, so that readers see another
/// text than the one stored.
///
/// Source: `Default_Ignorable_Code_Point` of Unicode 16 (`DerivedCoreProperties.txt`), and beyond it all format
/// characters (general category `Cf`), line and paragraph separators, and the blank Braille pattern.
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}'
        | '\u{890}'..='\u{891}' | '\u{8e2}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}'
        | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Whether `rest` begins with a command for a CI system: `##`, any letters, digits and `-`, then `[`,
/// as in `##vso[`, `##[` and `##teamcity[`. Commands of the form `::name::` are left to
/// [`without_commands`].
pub fn begins_command(rest: &str) -> bool {
    let Some(rest) = rest.strip_prefix("##") else { return false };
    rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '-').starts_with('[')
}

/// The longest foreign text that a message repeats, in bytes.
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
    if !text.contains(&is_escaped) && !text.contains("##") {
        return Cow::Borrowed(text);
    }
    let mut printable = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        match c {
            '#' if text.get(at..).is_some_and(begins_command) => printable.push_str("\\u{23}"),
            _ if is_invisible(c) => printable.extend(c.escape_unicode()),
            _ if is_escaped(c) => printable.extend(c.escape_debug()),
            _ => printable.push(c),
        }
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
    fn control_characters_are_escaped_and_all_else_stays() {
        let text = "a\\b \"ü\" → \u{1b}[2J\r\n\t\u{7f}\u{9b}\0";
        let once = printable(text);
        assert_eq!(once, "a\\b \"ü\" → \\u{1b}[2J\\r\\n\\t\\u{7f}\\u{9b}\\0");
        assert_eq!(printable(&once), once);
        assert_eq!(printable_lines("one\n\u{1b}two"), "one\n\\u{1b}two");
    }

    #[test]
    fn no_line_is_a_command_of_a_ci_system() {
        let text = "a\n::error file=x::y\n  ::z\n##vso[task.x]a ##[group]b ##teamcity[c]\n";
        let escaped = printable_lines(text);
        assert_eq!(
            escaped,
            "a\n\\u{3a}:error file=x::y\n  \\u{3a}:z\n\\u{23}#vso[task.x]a \\u{23}#[group]b \
             \\u{23}#teamcity[c]\n"
        );
        assert_eq!(printable_lines(&escaped), escaped);
        for plain in ["a::b", "std::vector ##", "# [x]", "## title [x]", "::"] {
            assert_eq!(printable(plain), plain);
        }
    }

    #[test]
    fn invisible_characters_are_escaped() {
        assert_eq!(printable("a\u{202e}b\u{200b}c\u{feff}"), "a\\u{202e}b\\u{200b}c\\u{feff}");
        for unseen in ["\u{34f}", "\u{1160}", "\u{3164}", "\u{fe0f}", "\u{e0101}", "\u{2800}"] {
            assert_eq!(printable(unseen), unseen.escape_unicode().to_string());
        }
        // A combining accent stays: it is visible.
        assert_eq!(printable("äö a\u{301} 漢字"), "äö a\u{301} 漢字");
    }
}

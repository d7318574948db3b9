//! Lines of text with names and texts from input.

use std::fmt::Arguments;

use rockpack_core::error::printable;

/// A line as by `format!`, with the control characters of its text escaped, and a line break.
macro_rules! text_line {
    ($($arguments:tt)*) => {
        $crate::cli::render::text_line::ended(format_args!($($arguments)*))
    };
}

/// One line of `text`, with control characters and line breaks escaped.
pub(super) fn ended(text: Arguments<'_>) -> String {
    let mut line = printable(&text.to_string()).into_owned();
    line.push('\n');
    line
}

//! Lines of text with the names and texts of others in them.

use std::fmt::Arguments;

use rockpack_base::error::printable;

/// `format!`, with the control characters of what is in it escaped, and the line ended.
macro_rules! text_line {
    ($($arguments:tt)*) => {
        $crate::cli::render::text_line::ended(format_args!($($arguments)*))
    };
}

/// One line of `text`, whatever it holds.
pub(super) fn ended(text: Arguments<'_>) -> String {
    let mut line = printable(&text.to_string()).into_owned();
    line.push('\n');
    line
}

//! The meaning of codes, for people.

use crate::cli::explained::Explanation;

/// The hint where the codes of findings and checks are explained.
pub const EXPLAIN: &str = "`rockpack explain CODE` says what a code means and what solves it";

/// All codes with their names, one a line.
pub fn codes_text(all: impl Iterator<Item = Explanation>) -> String {
    all.map(|it| text_line!("{} {}", it.code, it.name)).collect()
}

/// The title and the text; examples are indented, and not fenced as in Markdown.
pub fn explanation_text(it: &Explanation) -> String {
    let mut text = text_line!("{} {}", it.code, it.name);
    text.push('\n');
    let mut is_example = false;
    for line in it.text.lines() {
        if line.starts_with("```") {
            is_example = !is_example;
            continue;
        }
        let indent = if is_example && !line.is_empty() { "    " } else { "" };
        text.push_str(&text_line!("{indent}{line}"));
    }
    text
}

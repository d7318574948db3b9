//! Checks of texts that become fields of one line, where a line break would start another field.

use rockpack_core::error::Faults;

use super::document::ConfigDocument;

/// Refuses texts that are not one line each; `lines` has those of the table at `table` by key.
pub(super) fn single_lines<'a>(
    table: &[&str],
    lines: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
    document: &ConfigDocument,
    faults: &mut Faults,
) {
    for (key, text) in lines {
        if text.is_some_and(|text| !is_line(text)) {
            let message = "has to be one line of text that is not empty";
            faults.add(document.fault(&[table, &[key]].concat(), message));
        }
    }
}

fn is_line(text: &str) -> bool {
    !text.trim().is_empty() && !text.contains(char::is_control)
}

/// Whether the text is `Name <address>` in one line.
pub fn is_maintainer(text: &str) -> bool {
    is_line(text) && is_address(text)
}

/// Whether the text is `Name <address>`.
pub fn is_address(text: &str) -> bool {
    let Some((name, address)) = text.split_once(" <") else {
        return false;
    };
    let address = address.strip_suffix('>').unwrap_or_default();
    !name.trim().is_empty() && address.contains('@') && !address.contains(['<', '>', ' '])
}

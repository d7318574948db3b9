//! The result of a build, for people.

use std::collections::BTreeSet;

use super::table::{Align, TextTable};
use super::units::bytes;
use crate::receipt::Receipt;
use crate::report::words::counted;

/// Packages as a table, those of an earlier set that were removed, then every finding.
pub fn build_text(receipt: &Receipt, removed: &BTreeSet<String>) -> String {
    let mut table = TextTable::new(&[
        ("package", Align::Left),
        ("size", Align::Right),
        ("installed", Align::Right),
        ("code objects", Align::Right),
        ("archs", Align::Left),
    ]);
    for package in &receipt.packages {
        let count = if package.code_objects == 0 {
            "-".to_owned()
        } else {
            package.code_objects.to_string()
        };
        let archs = if package.archs.is_empty() { "-".to_owned() } else { package.archs.join(" ") };
        table.row([
            package.file_name.clone(),
            bytes(package.size),
            bytes(package.installed_size),
            count,
            archs,
        ]);
    }
    let mut text = table.render();
    let total: u64 = receipt.packages.iter().map(|package| package.size).sum();
    text.push_str(&format!(
        "\n{}, {}; {} of the input packed\n",
        counted(receipt.packages.len(), "package"),
        bytes(total),
        counted(receipt.code_objects.len(), "code object"),
    ));
    for name in removed {
        text.push_str(&text_line!("removed {name} of the earlier set"));
    }
    for finding in &receipt.findings {
        text.push_str(&text_line!("{finding}"));
    }
    text
}

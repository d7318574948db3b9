//! The result of a build, for people.

use std::collections::BTreeSet;

use super::table::{Align, Table};
use super::units::bytes;
use crate::receipt::Receipt;

/// Packages as a table, those of an earlier set that were removed, then every finding.
pub fn build_text(receipt: &Receipt, removed: &BTreeSet<String>) -> String {
    let mut table = Table::new(&[
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
        "\n{} packages, {}; {} code objects of the input packed\n",
        receipt.packages.len(),
        bytes(total),
        receipt.code_objects.len(),
    ));
    for name in removed {
        text.push_str(&text_line!("removed {name} of the earlier set"));
    }
    for finding in &receipt.findings {
        let (severity, code, name) = (&finding.severity, &finding.code, &finding.name);
        text.push_str(&text_line!(
            "{severity}: {code} {name}: {}: {}",
            finding.subject,
            finding.message
        ));
    }
    text
}

//! The result of a build, for people.

use std::collections::BTreeSet;

use super::command::shell_word;
use super::repo::verify_command;
use super::table::TextTable;
use super::units::bytes;
use crate::settings::BuildSettings;
use rockpack_package::receipt::Receipt;
use rockpack_repo::Published;
use rockpack_report::words::counted;

/// Packages as a table, then those of an earlier set that were removed.
pub fn build_text(receipt: &Receipt, removed: &BTreeSet<String>) -> String {
    let table = match receipt.packages.len() {
        0 => String::new(),
        _ => package_table(receipt) + "\n",
    };
    let total: u64 = receipt.packages.iter().map(|package| package.size).sum();
    let mut text = format!(
        "{table}{}, {}; {} of the input packed\n",
        counted(receipt.packages.len(), "package"),
        bytes(total),
        counted(receipt.code_objects.len(), "code object"),
    );
    if let Some(kept) = &receipt.kept {
        let standing = counted(kept.packages.len(), "package");
        text.push_str(&format!("{standing} of earlier sets kept\n"));
    }
    text.extend(removed.iter().map(|name| text_line!("removed {name} of the earlier set")));
    text
}

fn package_table(receipt: &Receipt) -> String {
    let mut table = TextTable::new(["package", ">size", ">installed", ">code objects", "archs"]);
    for package in &receipt.packages {
        let own = receipt.code_objects.iter().filter(|code| code.package == package.id);
        let count = match own.filter(|code| code.place.path().ends_with(".kpack")).count() {
            0 => "-".to_owned(),
            count => count.to_string(),
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
    table.render()
}

/// One line at the end of a run: the place of the packages, and the next step.
pub fn build_end(
    receipt: &Receipt,
    settings: &BuildSettings,
    published: Option<&Published>,
) -> String {
    let folder = &settings.output.folder;
    let packages = counted(receipt.packages.len(), "package");
    let place = folder.display();
    if let Some(part) = settings.output.part {
        return format!(
            "{packages} of part {part} in {place}; when all parts are there, join them by \
             `rockpack verify FOLDERS --join packages.json`"
        );
    }
    match settings.publish.as_ref().zip(published) {
        Some((publish, published)) => {
            let repo = publish.options().out;
            let (shown, command) = (repo.display(), verify_command(published, &repo));
            format!("{packages} in {place}, published in {shown}; check that by `{command}`")
        }
        None if receipt.packages.is_empty() => {
            format!("no package changes; {place} has the receipt of the complete set")
        }
        None => {
            let word = shell_word(folder);
            format!("{packages} in {place}; publish them by `rockpack repo {word} --out REPO`")
        }
    }
}

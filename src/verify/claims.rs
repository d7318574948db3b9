//! What the receipt says, held against the packages.

use std::collections::{BTreeMap, BTreeSet};

use super::facts::Class;
use super::installed::{Installed, InstalledNode};
use super::problem::{Check, Problem};
use crate::content::hex;
use crate::plan::package::Format;
use crate::receipt::{PackageRecord, Receipt};

/// Takes over what only the receipt knows: for which archs a kernel package is.
pub(super) fn apply(receipt: &Receipt, packages: &mut [Installed]) {
    let records: BTreeMap<&str, &PackageRecord> =
        receipt.packages.iter().map(|record| (record.file_name.as_str(), record)).collect();
    for package in packages {
        if let Some(record) = records.get(package.file.as_str())
            && record.role == "kernels"
        {
            package.kernel_archs.get_or_insert_with(|| record.archs.clone());
        }
    }
}

/// Every claim of the receipt that does not hold.
pub(super) fn check(receipt: &Receipt, packages: &[Installed]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let by_file: BTreeMap<&str, &Installed> =
        packages.iter().map(|package| (package.file.as_str(), package)).collect();
    for record in &receipt.packages {
        match by_file.get(record.file_name.as_str()) {
            Some(package) => check_package(record, package, &mut problems),
            None => problems.push(Problem::new(
                Check::ReceiptIncomplete,
                &record.file_name,
                "the receipt names it, but it cannot be read here",
            )),
        }
    }
    let recorded: BTreeSet<&str> = receipt.packages.iter().map(|r| r.file_name.as_str()).collect();
    for package in packages.iter().filter(|p| !recorded.contains(p.file.as_str())) {
        let message = "the receipt does not name it";
        problems.push(Problem::new(Check::ReceiptIncomplete, &package.file, message));
    }
    check_code_objects(receipt, packages, &mut problems);
    check_dependencies(receipt, &by_file, &mut problems);
    problems
}

fn check_package(record: &PackageRecord, package: &Installed, problems: &mut Vec<Problem>) {
    let mut differs = |path: &str, what: &str| {
        let subject = format!("{}:{path}", record.file_name);
        problems.push(Problem::new(Check::ReceiptMismatch, subject, what));
    };
    if record.sha256 != hex(&package.sha256) || record.size != package.size {
        differs("", "its size or SHA-256 is not the receipt's");
    }
    for member in &record.members {
        let same = match package.paths.get(&member.path) {
            None => false,
            Some(InstalledNode::Directory { mode }) => {
                member.kind == "directory" && member.mode == *mode
            }
            Some(InstalledNode::Link { target }) => member.target.as_ref() == Some(target),
            Some(InstalledNode::File { mode, facts }) => {
                member.mode == *mode
                    && member.size == Some(facts.size)
                    && member.sha256.as_ref() == Some(&hex(&facts.sha256))
            }
        };
        if !same {
            differs(&member.path, "is not what the receipt says, or is missing");
        }
    }
    let recorded: BTreeSet<&str> = record.members.iter().map(|m| m.path.as_str()).collect();
    for path in package.paths.keys().filter(|path| !recorded.contains(path.as_str())) {
        differs(path, "is not in the receipt");
    }
}

/// Every code object stands in the archive and under the key that the receipt names.
fn check_code_objects(receipt: &Receipt, packages: &[Installed], problems: &mut Vec<Problem>) {
    for format in [Format::Deb, Format::Rpm] {
        let set: Vec<_> = packages.iter().filter(|package| package.format == format).collect();
        if set.is_empty() {
            continue;
        }
        let archives: BTreeMap<&str, _> = set
            .iter()
            .flat_map(|package| package.files())
            .filter_map(|(path, facts)| match &facts.class {
                Class::Archive(archive) => Some((path, archive)),
                _ => None,
            })
            .collect();
        for record in &receipt.code_objects {
            let row = archives.get(record.archive.as_str()).and_then(|a| a.rows.get(&record.key));
            let found = row.and_then(|targets| targets.get(&record.target));
            if found.map(|sha256| hex(sha256)).as_ref() != Some(&record.sha256) {
                let subject = format!("{} {}", record.binary, record.target);
                let message =
                    format!("{} is not at {} in {}", record.sha256, record.key, record.archive);
                problems.push(Problem::new(Check::CodeObjectLost, subject, message));
            }
        }
    }
}

/// A kernel package needs its host in exactly its own version.
fn check_dependencies(
    receipt: &Receipt,
    by_file: &BTreeMap<&str, &Installed>,
    problems: &mut Vec<Problem>,
) {
    let hosts: BTreeSet<(&str, &str, &str)> = receipt
        .packages
        .iter()
        .filter(|record| record.role == "host" || record.role == "support")
        .filter_map(|record| by_file.get(record.file_name.as_str()).map(|p| (record, *p)))
        .map(|(record, p)| (record.format.as_str(), p.name.as_str(), p.version.as_str()))
        .collect();
    for record in receipt.packages.iter().filter(|record| record.role == "kernels") {
        let Some(package) = by_file.get(record.file_name.as_str()) else {
            continue;
        };
        let needs_host = |(name, version): &(String, String)| {
            hosts.contains(&(record.format.as_str(), name.as_str(), version.as_str()))
        };
        if !package.requires.iter().any(needs_host) {
            let message = "does not depend on a host package in its exact version";
            problems.push(Problem::new(Check::DependencyMissing, &record.file_name, message));
        }
    }
}

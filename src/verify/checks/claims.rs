//! The statements of the receipt, compared with the packages.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_base::content::{Sha256Digest, hex};

use super::recorded::Recorded;
use super::stated;
use crate::package::{Format, MemberKind};
use crate::receipt::{MemberRecord, PackageRecord, Receipt, RelationRecord};
use crate::verify::own::installed::{Installed, InstalledNode, Side};
use crate::verify::problem::{Problem, ProblemPlace, Problems, ReceiptDifference, ReceiptLack};

/// Takes over what only the receipt knows: for which archs a kernel package is, and that any other
/// package that states none is for host files, though all its code may be device code that stays there.
pub(in crate::verify) fn apply(receipt: &Receipt, packages: &mut [&mut Installed]) {
    let records: BTreeMap<&str, &PackageRecord> =
        receipt.all_packages().map(|record| (record.file_name.as_str(), record)).collect();
    for package in packages {
        let Some(record) = records.get(package.file.as_str()) else { continue };
        if record.role.is_kernels() {
            package.stated_archs.get_or_insert_with(|| record.archs.clone());
        } else if package.stated_archs.is_none() {
            package.side = Some(Side::Host);
        }
    }
}

/// A receipt and the folder it lies in.
pub(in crate::verify) struct Claims<'a> {
    pub(in crate::verify) receipt: &'a Receipt,
    /// The packages of the folder that can be read.
    pub(in crate::verify) packages: Vec<&'a Installed>,
    /// Packages of earlier builds that the receipt keeps, as far as they are there.
    pub(in crate::verify) kept: Vec<&'a Installed>,
    /// The names of all packages of the folder.
    pub(in crate::verify) present: BTreeSet<String>,
}

impl<'a> Claims<'a> {
    /// Adds every claim that does not hold.
    pub(in crate::verify) fn check(&self, problems: &mut Problems) {
        let records: BTreeMap<&str, &PackageRecord> =
            self.receipt.all_packages().map(|r| (r.file_name.as_str(), r)).collect();
        let own = self.receipt.packages.iter().map(|record| &record.file_name);
        for name in own.filter(|name| !self.present.contains(*name)) {
            let (package, lack) = (name.clone(), ReceiptLack::Package);
            problems.add(Problem::ReceiptIncomplete { package, lack });
        }
        for name in self.present.iter().filter(|name| !records.contains_key(name.as_str())) {
            let (package, lack) = (name.clone(), ReceiptLack::Record);
            problems.add(Problem::ReceiptIncomplete { package, lack });
        }
        for package in self.all_packages() {
            if let Some(record) = records.get(package.file.as_str()) {
                check_package(record, package, problems);
            }
        }
        stated::check_set(self.receipt, &self.packages, problems);
        for path in &self.receipt.left_out {
            for package in self.all_packages().filter(|it| it.paths.contains_key(path)) {
                add_at(package, path, ReceiptDifference::LeftOut, problems);
            }
        }
        for format in Format::ALL {
            let all = self.all_packages();
            let set: Vec<&Installed> =
                all.filter(|package| package.format == Some(format)).collect();
            if !set.is_empty() {
                Recorded { receipt: self.receipt, records: &records, set }.check(problems);
            }
        }
    }

    fn all_packages(&self) -> impl Iterator<Item = &'a Installed> {
        self.packages.iter().chain(&self.kept).copied()
    }
}

fn check_package(record: &PackageRecord, package: &Installed, problems: &mut Problems) {
    stated::check_package(record, package, problems);
    check_bytes(package, record.size, &record.sha256, problems);
    if let Some(archs) = &package.stated_archs
        && *archs != record.archs
    {
        let (archs, stated) = (archs.clone(), record.archs.clone());
        add(package, ReceiptDifference::Archs { archs, stated }, problems);
    }
    for relation in only_here(&package.relations, &record.relations) {
        add(package, ReceiptDifference::Relation { relation }, problems);
    }
    for relation in only_here(&record.relations, &package.relations) {
        add(package, ReceiptDifference::RelationLost { relation }, problems);
    }
    for member in &record.members {
        if !package.paths.get(&member.path).is_some_and(|node| same(member, node)) {
            add_at(package, &member.path, ReceiptDifference::Member, problems);
        }
    }
    let recorded: BTreeSet<&str> = record.members.iter().map(|m| m.path.as_str()).collect();
    for path in package.paths.keys().filter(|path| !recorded.contains(path.as_str())) {
        add_at(package, path, ReceiptDifference::Unlisted, problems);
    }
}

/// Compares the bytes of a package or wheel with what its record states of them.
pub(in crate::verify) fn check_bytes(
    package: &Installed,
    stated_size: u64,
    stated_sha256: &str,
    problems: &mut Problems,
) {
    let (size, sha256) = (package.size, Sha256Digest::from(package.sha256));
    if stated_sha256 != sha256.to_string() || stated_size != size {
        let stated_sha256 = stated_sha256.to_owned();
        let difference = ReceiptDifference::Bytes { size, sha256, stated_size, stated_sha256 };
        add(package, difference, problems);
    }
}

fn add(package: &Installed, difference: ReceiptDifference, problems: &mut Problems) {
    let place = ProblemPlace::Package(package.file.clone());
    problems.add(Problem::ReceiptMismatch { place, difference });
}

fn add_at(package: &Installed, path: &str, difference: ReceiptDifference, problems: &mut Problems) {
    let place = ProblemPlace::File(package.at(path));
    problems.add(Problem::ReceiptMismatch { place, difference });
}

/// The texts of the relations that are not `there`, too.
fn only_here(here: &[RelationRecord], there: &[RelationRecord]) -> impl Iterator<Item = String> {
    let odd = here.iter().filter(|relation| !there.contains(relation));
    odd.map(|relation| format!("{}: {relation}", relation.kind.as_str()))
}

fn same(member: &MemberRecord, node: &InstalledNode) -> bool {
    match node {
        InstalledNode::Directory { mode } => {
            member.kind == MemberKind::Directory && member.mode == *mode
        }
        InstalledNode::Link { target } => {
            member.kind == MemberKind::Link && member.target.as_ref() == Some(target)
        }
        InstalledNode::Special { .. } => false,
        InstalledNode::File { mode, facts } => {
            member.kind == MemberKind::File
                && member.mode == *mode
                && member.size == Some(facts.size)
                && member.sha256.as_ref() == Some(&hex(&facts.sha256))
        }
    }
}

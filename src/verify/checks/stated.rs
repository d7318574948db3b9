//! The statements of a receipt about the metadata of packages and about the whole set, compared with the
//! packages.

use std::collections::BTreeMap;

use crate::package::{Format, RoleKind};
use crate::receipt::{PackageRecord, Receipt};
use crate::verify::own::installed::Installed;
use crate::verify::problem::{Problem, ProblemPlace, Problems, ReceiptDifference};

/// Adds every field of a package's record that the package contradicts.
pub(super) fn check_package(record: &PackageRecord, package: &Installed, problems: &mut Problems) {
    compare(package, "version", &package.version, &record.version, problems);
    let format = package.format.map(Format::as_str).unwrap_or_default();
    compare(package, "format", format, record.format.as_str(), problems);
    compare(package, "file name", &file_name(package), &record.file_name, problems);
    if package.format == Some(Format::Deb) {
        compare(package, "name", &package.name, &record.id, problems);
    }
    let [own, stated] = [record.role == RoleKind::Kernels, record.group.is_some()]
        .map(|has| if has { "1" } else { "0" });
    compare(package, "number of groups", own, stated, problems);
}

fn compare(package: &Installed, field: &str, own: &str, stated: &str, problems: &mut Problems) {
    if own != stated {
        add(package, field, own, stated, problems);
    }
}

/// Adds what the receipt says of the whole set and packages contradict.
pub(super) fn check_set(receipt: &Receipt, packages: &[&Installed], problems: &mut Problems) {
    let start = format!("{}-{}", receipt.version, receipt.release);
    let mut first: BTreeMap<Format, &str> = BTreeMap::new();
    for package in packages {
        let version = package.version.as_str();
        let plain = version.split_once(':').map_or(version, |(_, rest)| rest);
        if !plain.starts_with(&start) {
            add(package, "version of the set", plain, &start, problems);
        }
        // Of one set, all packages of a format have one version.
        let Some(format) = package.format else { continue };
        let known = *first.entry(format).or_insert(version);
        if known != version {
            add(package, "version of the set", version, known, problems);
        }
    }
    check_pairs(&receipt.packages, problems);
}

/// Adds the differences between the records of one package in two formats.
fn check_pairs(records: &[PackageRecord], problems: &mut Problems) {
    let mut first: BTreeMap<&str, &PackageRecord> = BTreeMap::new();
    for record in records {
        let other = *first.entry(&record.id).or_insert(record);
        let pairs = [
            ("role", record.role == other.role),
            ("group", record.group == other.group),
            ("archs", record.archs == other.archs),
        ];
        for (field, _) in pairs.into_iter().filter(|(_, same)| !same) {
            let place = ProblemPlace::Package(record.file_name.clone());
            let (field, other) = (field.to_owned(), other.file_name.clone());
            let difference = ReceiptDifference::OtherFormat { field, other };
            problems.add(Problem::ReceiptMismatch { place, difference });
        }
    }
}

fn add(package: &Installed, field: &str, own: &str, stated: &str, problems: &mut Problems) {
    let place = ProblemPlace::Package(package.file.clone());
    let [field, own, stated] = [field, own, stated].map(str::to_owned);
    let difference = ReceiptDifference::Field { field, own, stated };
    problems.add(Problem::ReceiptMismatch { place, difference });
}

/// The file name that a package with these metadata has.
fn file_name(package: &Installed) -> String {
    let Installed { name, version, arch, format, .. } = package;
    let version = version.split_once(':').map_or(version.as_str(), |(_, rest)| rest);
    match format {
        Some(Format::Deb) => format!("{name}_{version}_{arch}.deb"),
        _ => format!("{name}-{version}.{arch}.rpm"),
    }
}

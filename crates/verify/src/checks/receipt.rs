//! Compares packages and wheels with their receipt: exactly the recorded files are present, with the recorded digests,
//! and every code object is in the recorded place.
//!
//! A file with the digest of the receipt is the recorded one, so its fields are not compared. Without a valid
//! signature, this proves only that the receipt and the packages agree.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use rockpack_core::content::{Content, Sha256Digest, hex};
use rockpack_core::error::Result;
use rockpack_package::Format;
use rockpack_package::receipt::wheels::{WheelKind, WheelReceipt, WheelRecord};
use rockpack_package::receipt::{
    CodeObjectPlace, CodeObjectRecord, PackageRecord, Receipt, part_of_sbom,
};

use crate::Options;
use crate::problem::{CodeLoss, Problem, Problems, RECEIPT, ReceiptGap};
use crate::readers::Sha;
use crate::readers::facts::{Class, FileFacts};
use crate::readers::installed::{ContentRole, PackageContents, files_of};
use crate::readers::wheel::Wheel;

/// Applies facts that only the receipt has: the archs of a kernel package, and that any other package without stated
/// archs is a host package, even if all its code is device code.
pub(crate) fn apply<'a>(
    receipt: &Receipt,
    packages: impl Iterator<Item = &'a mut PackageContents>,
) {
    let records = by_name(receipt);
    for package in packages {
        let Some(record) = records.get(package.file.as_str()) else { continue };
        if record.role.is_kernels() {
            package.stated_archs.get_or_insert_with(|| record.archs.clone());
        } else if package.stated_archs.is_none() {
            package.role = Some(ContentRole::Host);
        }
    }
}

/// Compares the packages of an argument with its receipt. `present` has the file names of its build; `packages` are
/// those that can be read, including packages of earlier builds that the receipt keeps.
pub(crate) fn check(
    receipt: &Receipt,
    present: &BTreeSet<String>,
    packages: &[&PackageContents],
    problems: &mut Problems,
) {
    let records = by_name(receipt);
    let own = receipt.packages.iter().map(|record| &record.file_name);
    add_incomplete(own.filter(|name| !present.contains(*name)), ReceiptGap::Package, problems);
    let unknown = present.iter().filter(|name| !records.contains_key(name.as_str()));
    add_incomplete(unknown, ReceiptGap::Record, problems);
    for package in packages {
        if let Some(record) = records.get(package.file.as_str()) {
            let own = (package.size, package.sha256);
            check_bytes(&package.file, own, (record.size, &record.sha256), problems);
        }
    }
    for format in Format::ALL {
        let all = packages.iter().filter(|package| package.format == Some(format));
        let set: Vec<&PackageContents> = all.copied().collect();
        if !set.is_empty() {
            check_code(receipt, &set, problems);
        }
    }
}

/// Compares SPDX documents with the digests in the receipt. With keys, each document needs one.
pub(crate) fn check_documents(
    receipt: &Receipt,
    documents: &[PathBuf],
    options: &Options<'_>,
    problems: &mut Problems,
) -> Result<()> {
    let stated = receipt.spdx.iter().map(|record| (record.file_name.as_str(), record));
    let mut stated: BTreeMap<&str, _> = stated.collect();
    for path in documents {
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(record) = stated.remove(file.as_str()) else {
            if !options.trust.keys.is_empty() || !receipt.spdx.is_empty() {
                add_incomplete([&file].into_iter(), ReceiptGap::Record, problems);
            }
            continue;
        };
        let content = Content::open(path, &options.budget)?;
        let size = content.len();
        check_bytes(&file, (size, content.sha256()?), (size, &record.sha256), problems);
    }
    // The documents of parts may be absent next to the joined receipt.
    let whole = stated.values().filter(|record| part_of_sbom(&record.file_name) == Some(None));
    add_incomplete(whole.map(|record| &record.file_name), ReceiptGap::Package, problems);
    Ok(())
}

/// Compares the wheels of an argument, whose file names are `present`, with its receipt. Applies the recorded archs if
/// the names do not state archs, or state more: a family may have members without code.
pub(crate) fn check_wheels(
    receipt: &WheelReceipt,
    present: &BTreeSet<String>,
    wheels: &mut [Wheel],
    problems: &mut Problems,
) {
    let records: BTreeMap<&str, &WheelRecord> =
        receipt.wheels.iter().map(|record| (record.file_name.as_str(), record)).collect();
    let own = receipt.wheels.iter().map(|record| &record.file_name);
    add_incomplete(own.filter(|name| !present.contains(*name)), ReceiptGap::Package, problems);
    let unknown = present.iter().filter(|name| !records.contains_key(name.as_str()));
    add_incomplete(unknown, ReceiptGap::Record, problems);
    for wheel in wheels.iter_mut().filter(|wheel| present.contains(&wheel.installed.file)) {
        let Some(record) = records.get(wheel.installed.file.as_str()) else { continue };
        if record.role == WheelKind::Device {
            let stated = &mut wheel.installed.stated_archs;
            let has = |named: &Vec<String>| record.archs.iter().all(|arch| named.contains(arch));
            if stated.as_ref().is_none_or(has) {
                *stated = Some(record.archs.clone());
            }
        }
        let PackageContents { file, size, sha256, .. } = &wheel.installed;
        check_bytes(file, (*size, *sha256), (record.size, &record.sha256), problems);
    }
}

fn by_name(receipt: &Receipt) -> BTreeMap<&str, &PackageRecord> {
    receipt.all_packages().map(|record| (record.file_name.as_str(), record)).collect()
}

fn add_incomplete<'a>(
    files: impl Iterator<Item = &'a String>,
    missing: ReceiptGap,
    problems: &mut Problems,
) {
    for file in files {
        problems.add(Problem::ReceiptIncomplete { package: file.clone(), missing });
    }
}

/// Compares the size and SHA-256 of a file with those of its record.
fn check_bytes(
    file: &str,
    (size, sha256): (u64, Sha),
    (stated_size, stated_sha256): (u64, &String),
    problems: &mut Problems,
) {
    let sha256 = Sha256Digest::from(sha256);
    if *stated_sha256 != sha256.to_string() || stated_size != size {
        let (file, stated_sha256) = (file.to_owned(), stated_sha256.clone());
        problems.add(Problem::ReceiptMismatch { file, size, sha256, stated_size, stated_sha256 });
    }
}

/// Reports recorded code objects that are not in their places in the packages of a format, and code objects that the
/// receipt does not record.
fn check_code(receipt: &Receipt, set: &[&PackageContents], problems: &mut Problems) {
    let files: BTreeMap<&str, &FileFacts> =
        set.iter().flat_map(|package| package.files()).collect();
    for record in receipt.all_code_objects() {
        let installed = record.place.path().to_owned();
        let loss = match files.get(record.place.path()) {
            None => CodeLoss::NotInstalled { installed },
            Some(facts) if is_at_its_place(record, facts) => continue,
            Some(_) => {
                CodeLoss::NotAtPlace { installed, key: key(&record.place).map(str::to_owned) }
            }
        };
        let path = match &record.place {
            CodeObjectPlace::Archive { binary, .. } => binary.clone(),
            CodeObjectPlace::File { file, .. } => file.clone(),
        };
        let (target, sha256) = (record.target.clone(), record.sha256.clone());
        problems.add(Problem::CodeObjectLost { path, target, sha256, loss });
    }
    let known: BTreeSet<&str> =
        receipt.all_code_objects().map(|record| record.sha256.as_str()).collect();
    for (package, path, facts) in files_of(set) {
        for (position, sha256) in facts.code_objects() {
            let sha256 = Sha256Digest::from(*sha256);
            if !known.contains(sha256.to_string().as_str()) {
                let (file, unknown_to) = (package.at(path), RECEIPT);
                problems.add(Problem::CodeObjectForeign { file, position, sha256, unknown_to });
            }
        }
    }
}

/// The key in an archive, or the id of the entry in a bundle.
fn key(place: &CodeObjectPlace) -> Option<&str> {
    match place {
        CodeObjectPlace::Archive { key, .. } => Some(key),
        CodeObjectPlace::File { entry, .. } => entry.as_deref(),
    }
}

fn is_at_its_place(record: &CodeObjectRecord, facts: &FileFacts) -> bool {
    match (&facts.class, key(&record.place)) {
        (Class::Archive(archive), Some(key)) => {
            let found = archive.at(key, &record.target);
            found.is_some_and(|found| hex(&found.sha256) == record.sha256)
        }
        (Class::Bundle(entries), Some(id)) => {
            entries.iter().any(|entry| entry.id == id && hex(&entry.sha256) == record.sha256)
        }
        (Class::CodeObject(_), None) => hex(&facts.sha256) == record.sha256,
        _ => false,
    }
}

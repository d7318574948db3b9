//! Packages of earlier builds that a set keeps, found among the other arguments.
//!
//! A receipt names them with their digests. If the folders of the earlier builds are named, too,
//! the whole set is checked; packages of those folders that the set has rebuilt do not belong to it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::argument::PackageArgument;
use crate::package::{Format, RelationKind};
use crate::receipt::Receipt;
use crate::report::Finding;
use crate::verify::problem::{Problem, Problems, ReceiptLack};

/// Gives the set whose receipt keeps packages of earlier builds, or has all of one anew, the packages that
/// it keeps and that are there, and takes away the arguments of these builds. Of several such sets, the one
/// of the highest release counts.
pub(in crate::verify) fn gather(arguments: &mut Vec<PackageArgument>, problems: &mut Problems) {
    let Some(position) = newest(arguments) else { return };
    let mut set = arguments.swap_remove(position);
    let Some(receipt) = set.receipt.clone() else { return };
    for package in lost(arguments, &receipt) {
        problems.add(Problem::ReceiptIncomplete { package, lack: ReceiptLack::Record });
    }
    let kept = receipt.kept.iter().flat_map(|kept| &kept.packages);
    let mut wanted: BTreeSet<&str> = kept.map(|record| record.file_name.as_str()).collect();
    set.kept = take_wanted(&mut set.packages, &mut wanted);
    for argument in arguments.iter_mut() {
        set.kept.extend(take_wanted(&mut argument.packages, &mut wanted));
        if argument.receipt.as_ref().is_some_and(|it| is_superseded(it, &receipt)) {
            set.superseded += argument.packages.len();
            *argument = PackageArgument::default();
        }
    }
    set.kept_absent = wanted.len();
    arguments.retain(|argument| !argument.packages.is_empty() || argument.receipt.is_some());
    arguments.push(set);
}

/// Takes out the packages whose names are wanted, and those names.
fn take_wanted(packages: &mut Vec<PathBuf>, wanted: &mut BTreeSet<&str>) -> Vec<PathBuf> {
    let all = std::mem::take(packages).into_iter();
    let (found, others) = all.partition(|path| wanted.remove(name(path)));
    *packages = others;
    found
}

/// The place of the set that others are builds before, if there is one.
fn newest(arguments: &[PackageArgument]) -> Option<usize> {
    let places = arguments.iter().enumerate();
    let all = places.filter_map(|(position, it)| Some((position, it.receipt.as_ref()?)));
    let updates = all.filter(|(_, receipt)| {
        let mut receipts = arguments.iter().filter_map(|argument| argument.receipt.as_ref());
        receipt.kept.is_some() || receipts.any(|earlier| is_superseded(earlier, receipt))
    });
    let newest = updates.max_by(|(_, one), (_, other)| {
        Format::Rpm.compare_versions(&one.release(), &other.release())
    });
    newest.map(|(position, _)| position)
}

/// Whether `earlier` is of a build before that of `receipt`, of the same version, which keeps packages or
/// has all of them anew.
fn is_superseded(earlier: &Receipt, receipt: &Receipt) -> bool {
    let (one, other) = (earlier.release(), receipt.release());
    let is_before = Format::Rpm.compare_versions(&one, &other).is_lt();
    let own: BTreeSet<(Format, &String)> =
        receipt.packages.iter().map(|record| (record.format, &record.id)).collect();
    let is_same_set = earlier.version == receipt.version && earlier.prefix == receipt.prefix;
    let mut records = earlier.all_packages();
    is_same_set
        && is_before
        && (receipt.kept.is_some()
            || records.all(|record| own.contains(&(record.format, &record.id))))
}

/// Files of packages of earlier builds that `receipt` neither has nor is said to lack: by a finding, or as
/// one that another package takes the place of. Of a format that it has nothing of, none.
fn lost(arguments: &[PackageArgument], receipt: &Receipt) -> Vec<String> {
    let receipts = arguments.iter().filter_map(|argument| argument.receipt.as_ref());
    let earlier: Vec<&Receipt> = receipts.filter(|it| is_superseded(it, receipt)).collect();
    let own: BTreeSet<(Format, &String)> =
        receipt.all_packages().map(|record| (record.format, &record.id)).collect();
    let formats: BTreeSet<Format> = own.iter().map(|(format, _)| *format).collect();
    let gone: BTreeSet<(Format, &str)> =
        earlier.iter().copied().chain([receipt]).flat_map(gone_by).collect();
    let records = earlier.iter().flat_map(|earlier| &earlier.packages);
    let lost = records.filter(|record| {
        let name = record.name().unwrap_or_default();
        formats.contains(&record.format)
            && !own.contains(&(record.format, &record.id))
            && !gone.contains(&(record.format, name.as_str()))
    });
    lost.map(|record| record.file_name.clone()).collect()
}

/// Packages that are no more in the set of `receipt`, as it says.
fn gone_by(receipt: &Receipt) -> impl Iterator<Item = (Format, &str)> {
    let dropped = receipt.findings.iter().filter_map(|record| match record.known()? {
        Finding::PackageDropped { package, format } => Some((*format, package.as_str())),
        _ => None,
    });
    let kinds = [RelationKind::Breaks, RelationKind::Conflicts, RelationKind::Obsoletes];
    let replaced = receipt.packages.iter().flat_map(move |package| {
        let relations = package.relations.iter().filter(move |it| kinds.contains(&it.kind));
        relations.map(|relation| (package.format, relation.name.as_str()))
    });
    dropped.chain(replaced)
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

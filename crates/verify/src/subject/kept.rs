//! Packages of earlier builds that a set keeps, found among the other arguments.
//!
//! A receipt names them with their digests. If the folders of the earlier builds are named, too,
//! the whole set is checked; packages of those folders that the set has rebuilt do not belong to it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::argument::PackageArgument;
use rockpack_package::Format;
use rockpack_package::receipt::Receipt;

/// Gives the set whose receipt keeps packages of earlier builds, or has all of one anew, the packages that
/// it keeps and that are there, and takes away the arguments of these builds. Of several such sets, the one
/// of the highest release counts.
pub(crate) fn gather(arguments: &mut Vec<PackageArgument>) {
    let Some(position) = newest(arguments) else { return };
    let mut set = arguments.swap_remove(position);
    let Some(receipt) = set.receipt.clone() else { return };
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

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

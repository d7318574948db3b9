//! Packages of earlier builds that a set keeps, found among the other arguments.
//!
//! A receipt names them with their digests. Whoever names the folders of the earlier builds, too, has
//! the whole set checked; of those folders, what the set has made anew is no part of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::argument::PackageArgument;
use crate::package::{Format, RelationKind};
use crate::receipt::{FindingRecord, PackageRecord, Receipt};
use crate::report::Finding;
use crate::verify::problem::{Problem, Problems, ReceiptLack};

/// Gives the set whose receipt keeps packages of earlier builds, or has all of one anew, the packages that
/// it keeps and that are there, and takes away the arguments of these builds. Of several such sets, the one
/// of the highest release counts.
pub(in crate::verify) fn gather(arguments: &mut Vec<PackageArgument>, problems: &mut Problems) {
    let receipts: Vec<&Receipt> = arguments.iter().filter_map(|it| it.receipt.as_ref()).collect();
    let updates = |argument: &PackageArgument| {
        argument.receipt.as_ref().is_some_and(|receipt| {
            receipt.kept.is_some() || receipts.iter().any(|it| is_superseded(it, receipt))
        })
    };
    let keepers = arguments.iter().enumerate().filter(|(_, argument)| updates(argument));
    let newest = keepers.max_by(|(_, one), (_, other)| {
        let release =
            |it: &PackageArgument| it.receipt.as_ref().map(Receipt::release).unwrap_or_default();
        Format::Rpm.compare_versions(&release(one), &release(other))
    });
    let Some((position, _)) = newest else { return };
    let mut set = arguments.swap_remove(position);
    let Some(receipt) = set.receipt.clone() else { return };
    let kept = receipt.kept.iter().flat_map(|kept| &kept.packages);
    let mut wanted: BTreeMap<&str, &PackageRecord> =
        kept.map(|record| (record.file_name.as_str(), record)).collect();
    let (found, own): (Vec<PathBuf>, Vec<PathBuf>) = std::mem::take(&mut set.packages)
        .into_iter()
        .partition(|path| wanted.remove(name(path)).is_some());
    (set.kept, set.packages) = (found, own);
    for argument in arguments.iter_mut() {
        let is_earlier = argument.receipt.as_ref().is_some_and(|it| is_superseded(it, &receipt));
        let (found, others): (Vec<PathBuf>, Vec<PathBuf>) = std::mem::take(&mut argument.packages)
            .into_iter()
            .partition(|path| wanted.remove(name(path)).is_some());
        set.kept.extend(found);
        if is_earlier {
            for path in &others {
                if argument.receipt.as_ref().is_some_and(|it| is_lost(name(path), it, &receipt)) {
                    let (package, lack) = (name(path).to_owned(), ReceiptLack::Record);
                    problems.add(Problem::ReceiptIncomplete { package, lack });
                }
            }
            set.superseded += others.len();
            *argument = PackageArgument::default();
        } else {
            argument.packages = others;
        }
    }
    set.kept_absent = wanted.len();
    arguments.retain(|argument| !argument.packages.is_empty() || argument.receipt.is_some());
    arguments.push(set);
}

/// Whether `earlier` is of a build before that of `receipt`, of the same version, which keeps packages or
/// has all of them anew.
fn is_superseded(earlier: &Receipt, receipt: &Receipt) -> bool {
    let (one, other) = (earlier.release(), receipt.release());
    let is_before = Format::Rpm.compare_versions(&one, &other).is_lt();
    let own = receipt.packages.iter().map(|record| (record.format, &record.id));
    let own: BTreeSet<(Format, &String)> = own.collect();
    let has_all =
        || earlier.all_packages().all(|record| own.contains(&(record.format, &record.id)));
    let is_same_set = earlier.version == receipt.version && earlier.prefix == receipt.prefix;
    is_same_set && is_before && (receipt.kept.is_some() || has_all())
}

/// Whether a package file of an `earlier` build is of a package that `receipt` neither has nor says to be
/// gone: by a finding, or as one that another package takes the place of.
fn is_lost(file: &str, earlier: &Receipt, receipt: &Receipt) -> bool {
    let Some(record) = earlier.all_packages().find(|record| record.file_name == file) else {
        return false;
    };
    let is_same = |it: &&PackageRecord| (it.format, &it.id) == (record.format, &record.id);
    let name = record.name().unwrap_or_default();
    let is_gone = receipt.findings.iter().filter_map(FindingRecord::known).any(|finding| {
        matches!(finding, Finding::PackageDropped { package, format }
            if *package == name && *format == record.format)
    });
    let kinds = [RelationKind::Breaks, RelationKind::Conflicts, RelationKind::Obsoletes];
    let own = receipt.packages.iter().filter(|own| own.format == record.format);
    let is_replaced = own
        .flat_map(|own| &own.relations)
        .any(|relation| kinds.contains(&relation.kind) && relation.name == name);
    !is_gone && !is_replaced && !receipt.all_packages().any(|it| is_same(&it))
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

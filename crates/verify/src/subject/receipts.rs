//! Reads receipts next to packages and wheels, checks their signatures, and combines receipts of several folders.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rockpack_core::content::{hex, if_exists, read_file, real_path};
use rockpack_core::error::{Kind, Result};
use rockpack_package::Format;
use rockpack_package::receipt::{JoinFault, Receipt, join as join_receipts};
use rockpack_report::ReceiptDoubt;
use rockpack_report::words::few;
use rockpack_signing::Trust;
use sha2::{Digest, Sha256};

use crate::problem::{Joined, Problem, Problems, Report};
use crate::subject::PackageArgument;

/// Reads receipts, and checks their signatures if keys are given.
pub(crate) struct ReceiptReader<'a> {
    trust: &'a Trust,
    problems: Problems,
    /// Number of receipts with a valid signature.
    signatures: usize,
}

impl<'a> ReceiptReader<'a> {
    pub(crate) fn new(trust: &'a Trust) -> Self {
        Self { trust, problems: Problems::default(), signatures: 0 }
    }

    /// Whether keys are given, so that every set needs a signed receipt.
    fn has_keys(&self) -> bool {
        !self.trust.keys.is_empty()
    }

    /// Groups files that are named one by one into sets. With keys, each folder is a set with its receipt; without
    /// keys, all are one set without a receipt.
    pub(crate) fn sets_of<T>(
        &mut self,
        files: Vec<PathBuf>,
        set: impl Fn(Option<&Path>, Vec<PathBuf>, &mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut folders: BTreeMap<Option<PathBuf>, Vec<PathBuf>> = BTreeMap::new();
        for file in files {
            let above = file.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = above.unwrap_or(Path::new("."));
            let folder = if self.has_keys() { real_path(folder)? } else { None };
            folders.entry(folder).or_default().push(file);
        }
        folders.into_iter().map(|(folder, files)| set(folder.as_deref(), files, self)).collect()
    }

    /// Reads, checks and parses a receipt; `None` if it is missing.
    pub(super) fn read<T>(
        &mut self,
        file: &Path,
        parse: impl Fn(&[u8]) -> Result<T>,
    ) -> Result<Option<T>> {
        let Some(bytes) = if_exists(file, "read", read_file(file))? else { return Ok(None) };
        if self.has_keys() {
            self.check_signature(file, &bytes)?;
        }
        parse(&bytes).map(Some).map_err(|error| error.file(file))
    }

    /// With keys, reports that the receipt `file` is missing.
    pub(super) fn report_missing(&mut self, file: &Path) {
        if self.has_keys() {
            self.add_unsigned(file, "is missing, so nothing is signed");
        }
    }

    fn check_signature(&mut self, file: &Path, receipt: &[u8]) -> Result<()> {
        let reason = match self.trust.receipt_doubt(file, receipt) {
            Ok(None) => {
                self.signatures += 1;
                return Ok(());
            }
            Ok(Some(ReceiptDoubt::OtherKeys(keys))) => {
                let keys = if keys.is_empty() { "no key".to_owned() } else { few(&keys, 5) };
                format!("is signed by none of the keys given; its signatures name {keys}")
            }
            Ok(Some(_)) => {
                self.add_unsigned(file, "is not signed: no .asc file is next to it");
                return Ok(());
            }
            Err(error) if error.is_format_fault() || error.kind() == Kind::Verify => {
                format!("its .asc {}", error.message())
            }
            Err(error) => return Err(error),
        };
        let receipt = file.display().to_string();
        self.problems.add(Problem::ReceiptSignature { receipt, reason });
        Ok(())
    }

    fn add_unsigned(&mut self, file: &Path, reason: &'static str) {
        let receipt = file.display().to_string();
        self.problems.add(Problem::ReceiptUnsigned { receipt, reason });
    }

    pub(crate) fn finish(self, report: &mut Report, problems: &mut Problems) {
        report.signatures += self.signatures;
        problems.extend(self.problems);
    }
}

/// Replaces all arguments that are parts of a set by one argument, if their receipts can be joined into the receipt
/// that one build of all packages would have written.
///
/// Every machine planned the whole set and recorded the digest of the plan; each receipt describes its own packages. So
/// if all parts are present, agree on the plan, and each package is in exactly the part that the plan assigns it to,
/// the joined receipt equals that of one build. The plan does not cover the content of files: `--against` proves that
/// every machine read the same input, since it compares all packages with one copy of the artifacts.
///
/// Parts of several releases are separate sets; the highest release is returned.
pub(crate) fn join(
    arguments: &mut Vec<PackageArgument>,
    problems: &mut Problems,
) -> Result<Option<Joined>> {
    for part in arguments.iter().filter_map(|argument| argument.misnamed) {
        problems.add(Problem::PartMisnamed { part });
    }
    let parts = arguments.iter().flat_map(|argument| &argument.parts);
    let mut releases: Vec<String> = parts.map(Receipt::release).collect();
    releases.sort_by(|one, other| Format::Rpm.compare_versions(one, other));
    releases.dedup();
    let mut newest = None;
    for release in releases {
        let parts = arguments.iter().flat_map(|argument| &argument.parts);
        let parts: Vec<&Receipt> = parts.filter(|part| part.release() == release).collect();
        let (receipt, faults) = join_receipts(&parts);
        let count = parts.len();
        for fault in faults {
            problems.add(match fault {
                JoinFault::Missing(part) => Problem::PartMissing { part },
                JoinFault::Different(difference) => Problem::PartsDiffer { difference },
                JoinFault::Package(package, breach) => Problem::PartMismatch { package, breach },
            });
        }
        newest = None;
        let Some(receipt) = receipt else { continue };
        let receipt_sha256 = hex(&Sha256::digest(receipt.to_bytes()?));
        let mut whole = PackageArgument { receipt: Some(receipt.clone()), ..Default::default() };
        let of_release =
            arguments.iter_mut().filter(|it| it.parts.iter().any(|part| part.release() == release));
        for argument in of_release {
            whole.packages.append(&mut argument.packages);
            whole.documents.append(&mut argument.documents);
            argument.parts.clear();
        }
        arguments.push(whole);
        newest = Some(Joined { parts: count, receipt_sha256, signed: None, receipt });
    }
    Ok(newest)
}

/// Moves packages of earlier builds that the newest receipt keeps to its argument, and removes the arguments of earlier
/// builds that it supersedes. If several receipts do that, the one of the highest release counts.
///
/// The receipt has the digests of kept packages. If the folders of the earlier builds are given, the whole set is
/// checked, without packages of those folders that the set rebuilt.
pub(crate) fn attach_kept_packages(arguments: &mut Vec<PackageArgument>) {
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

/// Removes and returns the packages whose file names are wanted, and removes those names.
fn take_wanted(packages: &mut Vec<PathBuf>, wanted: &mut BTreeSet<&str>) -> Vec<PathBuf> {
    let all = std::mem::take(packages).into_iter();
    let (found, others) = all.partition(|path| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| wanted.remove(name))
    });
    *packages = others;
    found
}

/// The position of the newest set that keeps or supersedes packages of earlier builds.
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

/// Whether `earlier` is an earlier release of the same version and prefix, and `receipt` keeps packages or rebuilt all
/// packages of `earlier`.
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

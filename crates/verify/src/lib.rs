//! Verifies finished output (packages, repositories, artifacts, installed prefixes, single files) with independent
//! code.
//!
//! The crate does not use the split, host binary, pack or emit stages that it checks. A receipt is trusted only if it
//! is signed; without one, packages are checked against each other and against their own metadata. `--against` compares
//! with the artifacts, whose bundles a second implementation reads.
//!
//! Packages are read once, several at a time. Only facts about their files are kept; a file that needs random access is
//! held in memory, or in an anonymous temporary file if the budget is exhausted.

mod against;
mod checks;
mod others;
mod partial;
mod problem;
mod readers;
mod repository;
mod subject;
mod wheels;

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::run::{Budget, threads};
use rockpack_core::tree::TreePath;
use rockpack_package::Format;
use rockpack_package::receipt::Receipt;
use rockpack_report::{Findings, Progress, Stage};
use rockpack_signing::Trust;
use rockpack_split::input::artifact::{self, Scan, ScanOptions};

use crate::against::SetComparison;
use crate::against::binaries::GivenBinary;
use crate::against::inputs::{self, ArtifactInputs, InputFile};
use crate::checks::excuses::Excuses;
use crate::checks::manifests::listings;
use crate::checks::receipt;
use crate::partial::PartialSetFilter;
use crate::readers::facts::{self, Class, Examiner};
use crate::readers::installed::PackageContents;
use crate::readers::package;
use crate::subject::receipts::{ReceiptReader, attach_kept_packages, join};
use crate::subject::{PackageArgument, Subject, WheelArgument, file_names};

pub use crate::partial::Extent;
pub use crate::problem::*;
pub use crate::repository::Element;

/// Verifies `paths`: packages and their folders as one set; repositories, artifacts, installed prefixes and single
/// files separately. With `against`, also checks that the packages have everything of those artifacts.
pub fn verify(paths: &[PathBuf], options: &Options<'_>, progress: &dyn Progress) -> Result<Report> {
    threads::in_current_pool(|| check(paths, options, progress))
}

struct Run<'a> {
    options: &'a Options<'a>,
    progress: &'a dyn Progress,
    report: Report,
    problems: Problems,
}

fn check(paths: &[PathBuf], options: &Options<'_>, progress: &dyn Progress) -> Result<Report> {
    let Options { against, binaries, trust, .. } = options;
    let (report, problems) = (Report::default(), Problems::default());
    let mut run = Run { options, progress, report, problems };
    let (mut arguments, wheels) = sort_paths(paths, &mut run)?;
    if (against.is_some() || !binaries.is_empty()) && arguments.is_empty() {
        return Err(Error::new(Kind::Usage, "--against compares packages with artifacts")
            .hint("name packages, or a folder of packages; wheels are compared with fat wheels"));
    }
    if !options.wheels.is_empty() && wheels.is_empty() {
        let message = "--against compares wheels with a fat wheel, and none are named";
        let hint = "name the host wheel and its device wheels, or the folder that holds them";
        return Err(Error::new(Kind::Usage, message).hint(hint));
    }
    let is_signable = run.report.repositories > 0 || !arguments.is_empty() || !wheels.is_empty();
    if !is_signable && !trust.keys.is_empty() {
        let message = "--key checks the signatures of receipts and repositories";
        let hint = "name packages, wheels or a repository";
        return Err(Error::new(Kind::Usage, message).hint(hint));
    }
    let others = std::mem::take(&mut run.problems);
    let parts = join(&mut arguments, &mut run.problems)?;
    attach_kept_packages(&mut arguments);
    verify_packages(&arguments, &mut run)?;
    run.problems.extend(others);
    let is_unsigned = run.report.signatures == 0;
    let unproved = &mut run.report.unproved;
    unproved.extend((is_signable && is_unsigned).then_some(Unproved::Origin));
    let has_packages = |it: &PackageArgument| !it.packages.is_empty() || !it.kept.is_empty();
    let has_sets = !wheels.is_empty() || arguments.iter().any(has_packages);
    let has_no_receipt = wheels.iter().any(|argument| argument.receipt.is_none())
        || arguments.iter().any(|it| it.receipt.is_none() && !it.packages.is_empty());
    if has_no_receipt || has_sets && is_unsigned {
        unproved.extend([Unproved::Scripts, Unproved::Relations]);
    }
    unproved.extend(has_no_receipt.then_some(Unproved::Completeness));
    wheels::check(&wheels, &mut run)?;
    let (more, problems) = (run.problems.more(), run.problems.finish());
    // Parts are joined only if there are no problems at all.
    let joined = parts.filter(|_| problems.is_empty());
    Ok(Report { problems, more, joined, ..run.report })
}

/// Returns the package and wheel arguments of `paths`, and checks all others.
fn sort_paths(
    paths: &[PathBuf],
    run: &mut Run<'_>,
) -> Result<(Vec<PackageArgument>, Vec<WheelArgument>)> {
    let Options { installed, trust, budget, .. } = run.options;
    let scan_options = ScanOptions::within(budget);
    let mut receipts = ReceiptReader::new(trust);
    let (mut arguments, mut packages) = (Vec::new(), Vec::new());
    let (mut wheels, mut wheel_files) = (Vec::new(), Vec::new());
    for path in paths {
        match Subject::of(path, *installed, &mut receipts)? {
            Subject::Package(path) => packages.push(path),
            Subject::Packages(argument) => arguments.push(*argument),
            Subject::Wheel(path) => wheel_files.push(path),
            Subject::Wheels(argument) => wheels.push(argument),
            Subject::Repository(path) => {
                let mut found = Problems::bounded();
                repository::check(&path, trust, budget, &mut run.report, &mut found)?;
                run.problems.extend(found);
            }
            Subject::Artifact(path) => {
                let scan = artifact::scan_artifact_readable(&path, &scan_options)?;
                others::check_artifacts(scan, Extent::Part, run)?;
            }
            Subject::Shards(path) => {
                let scan = artifact::scan_readable(&[path.into()], &scan_options);
                others::check_artifacts(scan, Extent::Whole, run)?;
            }
            Subject::Prefix(path) => others::check_prefix(&path, run),
            Subject::File(path) => others::check_file(&path, run)?,
        }
    }
    // With a key, packages that are named one by one use the receipt of their folder, but may still be a part.
    run.report.may_be_part = !packages.is_empty();
    arguments.extend(receipts.sets_of(packages, PackageArgument::of)?);
    wheels.extend(receipts.sets_of(wheel_files, WheelArgument::of)?);
    receipts.finish(&mut run.report, &mut run.problems);
    Ok((arguments, wheels))
}

#[derive(Debug, Clone)]
pub struct Options<'a> {
    /// Whether folders are installed prefixes.
    pub installed: bool,
    /// The artifacts that packages were made from.
    pub against: Option<&'a Scan>,
    /// Host binaries with device code that packages were made from.
    pub binaries: Vec<PathBuf>,
    /// The fat wheels that wheels were made from.
    pub wheels: Vec<PathBuf>,
    pub extent: Extent,
    /// The keys that must have signed receipts and repositories.
    pub trust: Trust,
    pub budget: Budget,
    /// `/sys`, from which the GPUs of the machine are read.
    pub sysfs: PathBuf,
}

fn verify_packages(arguments: &[PackageArgument], run: &mut Run<'_>) -> Result<()> {
    if arguments.is_empty() {
        return Ok(());
    }
    let mut packages = read_all(arguments, run);
    let (options, problems) = (run.options, &mut run.problems);
    for (position, argument) in arguments.iter().enumerate() {
        let Some(receipt) = &argument.receipt else { continue };
        let recorded = packages.iter_mut().filter(|package| package.argument == position);
        receipt::apply(receipt, recorded);
        let recorded: Vec<&PackageContents> =
            packages.iter().filter(|package| package.argument == position).collect();
        receipt::check(receipt, &file_names(&argument.packages), &recorded, problems);
        receipt::check_documents(receipt, &argument.documents, options, problems)?;
    }
    let receipts: Vec<&Receipt> = arguments.iter().filter_map(|s| s.receipt.as_ref()).collect();
    let mut excuses = Excuses::of(&receipts);
    excuses.is_part = problems.have_any(Check::PartMissing..=Check::PartsDiffer);
    let sets = Format::ALL.map(|format| -> Vec<&PackageContents> {
        packages.iter().filter(|package| package.format == Some(format)).collect()
    });
    for set in &sets {
        checks::check_set(set, &excuses, problems);
    }
    let report = &mut run.report;
    report.packages = packages.len();
    report.kept_absent = arguments.iter().map(|argument| argument.kept_absent).sum();
    report.superseded = arguments.iter().map(|argument| argument.superseded).sum();
    let extent = if report.kept_absent > 0 { Extent::Part } else { options.extent };
    let mut set_filter = PartialSetFilter::new(extent);
    run.problems = set_filter.filter(std::mem::take(&mut run.problems), packages.iter());
    compare(&receipts, &excuses, &sets, &mut set_filter, run)?;
    let report = &mut run.report;
    report.may_be_part =
        (receipts.is_empty() || report.may_be_part) && set_filter.has_undecidable();
    report.undecided = set_filter.undecided();
    others::count(&packages, report);
    report.warnings = Findings::of(receipts.iter().map(|it| &it.findings)).warnings();
    report.left_out = receipts.iter().map(|receipt| receipt.left_out.len()).sum();
    Ok(())
}

/// Compares the set of each format with its artifacts and binaries. Problems of each format are filtered separately:
/// all code of a binary for an arch is in one package of that format.
fn compare(
    receipts: &[&Receipt],
    excuses: &Excuses,
    sets: &[Vec<&PackageContents>],
    set_filter: &mut PartialSetFilter,
    run: &mut Run<'_>,
) -> Result<()> {
    let sets: Vec<&Vec<&PackageContents>> = sets.iter().filter(|set| !set.is_empty()).collect();
    let (options, progress) = (run.options, run.progress);
    let Run { report, problems, .. } = run;
    if let Some(scan) = options.against {
        let stated = prefix(receipts, &sets);
        let inputs = scan.findings.explain(ArtifactInputs::read(scan, progress))?;
        let all = sets.iter().copied().flatten().copied();
        let prefix = stated.unwrap_or_else(|| against::foreign::likely_prefix(all, &inputs));
        for packages in &sets {
            let (prefix, inputs, mut found) = (prefix.as_str(), &inputs, Problems::default());
            let comparison = SetComparison { packages, prefix, excuses, inputs };
            comparison.check(&mut found)?;
            // The prefix is unknown if no file has the same relative path as in the artifacts.
            match prefix {
                "" => set_filter.count_undecided(Check::FileForeign, packages.len()),
                _ => comparison.check_origins(&mut found),
            }
            problems.extend(set_filter.filter(found, packages.iter().copied()));
        }
        let count = inputs.in_binaries().count() + inputs.in_files().count();
        report.input_code_objects = Some(count as u64);
    }
    for path in &options.binaries {
        let binary = GivenBinary::open(path, &options.budget)?;
        for packages in &sets {
            let mut found = Problems::default();
            binary.check(packages, excuses, &mut found)?;
            // This check needs all artifacts and the prefix.
            set_filter.count_undecided(Check::FileForeign, packages.len());
            problems.extend(set_filter.filter(found, packages.iter().copied()));
        }
        *report.input_code_objects.get_or_insert(0) += binary.build.entries().count() as u64;
    }
    Ok(())
}

/// Reads a file both as an installed file and as a file of an artifact. Fails if it claims to contain device code, or
/// references to it, and is invalid.
pub fn read_file(path: &str, content: &Content) -> Result<()> {
    let facts = facts::examine_content(path, content)?;
    if let Class::Broken(_, error) = facts.class {
        return Err(error);
    }
    let path = TreePath::new(path.trim_start_matches('/'))?;
    let file = InputFile { shard: String::new(), content: content.clone(), mode: 0 };
    inputs::examine(&path, &file).map(drop)
}

fn read_all(arguments: &[PackageArgument], run: &mut Run<'_>) -> Vec<PackageContents> {
    let files = arguments.iter().enumerate().flat_map(|(position, argument)| {
        let paths = argument.packages.iter().chain(&argument.kept);
        paths.map(move |path| (position, path.as_path()))
    });
    let files: Vec<(usize, &Path)> = files.collect();
    let examiner = Examiner::within(&run.options.budget);
    let read = |file: &(usize, &Path)| package::read(file.1, file.0, &examiner);
    read_files(&files, |file| file.1, read, run)
}

/// Reads files; reports those that cannot be read.
fn read_files<F: Sync, T: Send>(
    files: &[F],
    path: impl Fn(&F) -> &Path + Sync,
    read: impl Fn(&F) -> Result<(T, Problems)> + Sync,
    run: &mut Run<'_>,
) -> Vec<T> {
    let mut good = Vec::with_capacity(files.len());
    let size = |file: &F| std::fs::metadata(path(file)).map_or(0, |metadata| metadata.len());
    let found = read_each(files, size, run.progress, read);
    for (file, found) in files.iter().zip(found) {
        match found {
            Ok((read, problems)) => {
                good.push(read);
                run.problems.extend(problems);
            }
            Err(error) => {
                let name = path(file).file_name().unwrap_or_default().to_string_lossy();
                run.problems.add_unreadable(ProblemPlace::Package(name.into_owned()), &error);
            }
        }
    }
    good
}

/// Calls `read` for each of `files`, several at a time, and reports the progress by their sizes.
fn read_each<F: Sync, R: Send>(
    files: &[F],
    size: impl Fn(&F) -> u64 + Sync,
    progress: &dyn Progress,
    read: impl Fn(&F) -> R + Sync,
) -> Vec<R> {
    progress.expect(Stage::Verify, files.iter().map(&size).sum());
    progress.begin(Stage::Verify);
    let found = files.par_iter().map(|file| {
        let found = read(file);
        progress.advance(Stage::Verify, size(file));
        found
    });
    let found = found.collect();
    progress.end(Stage::Verify);
    found
}

/// The install prefix of a receipt, or derived from a kernel manifest.
fn prefix(receipts: &[&Receipt], sets: &[&Vec<&PackageContents>]) -> Option<String> {
    if let Some(receipt) = receipts.first() {
        return Some(receipt.prefix.clone());
    }
    sets.iter().find_map(|set| {
        let listings = listings(set);
        listings.iter().find_map(|listing| listing.prefix().map(str::to_owned))
    })
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn name_of(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

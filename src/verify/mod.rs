//! Checks finished output (packages, repositories, artifacts, installed prefixes, single files) against the
//! invariants, with eyes of its own.
//!
//! Nothing here uses the split, host binary, pack or emit stages: what they did is what is in
//! question. The receipt is a claim like any other; without one, packages are checked against each
//! other and against what they say of themselves. `--against` compares with the artifacts, whose
//! bundles are taken apart a second way.
//!
//! Packages are read once, several at a time. Only facts about their files are kept; a file that
//! has to be read at will is held in memory up to 64 MiB and in an anonymous temporary file beyond.

mod against;
mod checks;
mod others;
mod own;
mod problem;
mod repository;
mod subject;

use std::path::{Path, PathBuf};

use rayon::prelude::*;

pub use problem::*;
pub use repository::{Element, PublicKeys, Trust};
pub use subject::FolderMeaning;

use crate::content::Content;
use crate::error::{Error, Kind, Result};
use crate::input::artifact::Scan;
use crate::package::Format;
use crate::receipt::Receipt;
use crate::report::{Progress, Stage};
use crate::run::{Budget, threads};
use crate::tree::TreePath;
use against::SetComparison;
use against::inputs::{self, ArtifactInputs};
use checks::claims::{self, Claims};
use checks::excuses::Excuses;
use checks::{documents, manifests};
use own::facts::{self, Class};
use own::installed::Installed;
use own::package;
use subject::Subject;
use subject::argument::{self, PackageArgument};
use subject::joined;

/// Checks what `paths` name: packages and their folders as one set, repositories, artifacts,
/// installed prefixes and single files each by itself. With `against`, also looks for everything that
/// those artifacts hold in the packages.
pub fn verify(paths: &[PathBuf], options: &Options<'_>, progress: &dyn Progress) -> Result<Report> {
    threads::some(|| check(paths, options, progress))
}

fn check(paths: &[PathBuf], options: &Options<'_>, progress: &dyn Progress) -> Result<Report> {
    let Options { folders, against, trust, budget } = options;
    let mut problems = Problems::default();
    let mut repositories = Report::default();
    let mut others = others::Others::within(budget);
    let mut arguments = Vec::new();
    for path in paths {
        match Subject::of(path, *folders)? {
            Subject::Packages(argument) => arguments.push(*argument),
            Subject::Repository(path) => {
                repository::check(&path, trust, &mut repositories, &mut problems)?;
            }
            subject => others.check(subject, progress, &mut problems)?,
        }
    }
    argument::each_once(&mut arguments)?;
    if against.is_some() && arguments.is_empty() {
        return Err(Error::new(Kind::Usage, "--against compares packages with artifacts")
            .hint("name packages, or a folder of packages"));
    }
    let joined = joined::join(&mut arguments, &mut problems)?;
    let mut report = verify_packages(&arguments, options, progress, &mut problems)?;
    others.count(&mut report);
    let Report { repositories, indexed, elsewhere, signatures, .. } = repositories;
    let problems = problems.finish();
    // Parts are the set only if nothing at all is wrong with them.
    let joined = joined.filter(|_| problems.is_empty());
    Ok(Report { problems, joined, repositories, indexed, elsewhere, signatures, ..report })
}

/// How arguments are read, and what they are compared with.
pub struct Options<'a> {
    /// Whether folders are taken for installed prefixes.
    pub folders: FolderMeaning,
    /// The artifacts that packages were made from.
    pub against: Option<&'a Scan>,
    /// What repositories are trusted by.
    pub trust: Trust,
    /// What reading takes is drawn from it.
    pub budget: Budget,
}

/// Checks packages as one set.
fn verify_packages(
    arguments: &[PackageArgument],
    options: &Options<'_>,
    progress: &dyn Progress,
    problems: &mut Problems,
) -> Result<Report> {
    if arguments.is_empty() {
        return Ok(Report::default());
    }
    let mut packages = read_all(arguments, &options.budget, progress, problems);
    for (position, argument) in arguments.iter().enumerate() {
        if let Some(receipt) = &argument.receipt {
            let own = packages.iter_mut().filter(|package| package.argument == position);
            claims::apply(receipt, &mut own.collect::<Vec<_>>());
            check_claims(receipt, position, argument, &packages, problems);
        }
        if !argument.documents.is_empty() {
            let own = packages.iter().filter(|package| package.argument == position);
            documents::check(argument, &own.collect::<Vec<_>>(), problems)?;
        }
    }
    let receipts: Vec<&Receipt> = arguments.iter().filter_map(|s| s.receipt.as_ref()).collect();
    let excuses = Excuses::of(receipts.iter().copied());
    let sets = Format::ALL.map(|format| of_format(&packages, format));
    for set in &sets {
        checks::check_set(set, &excuses, problems)?;
    }
    let mut report = Report { packages: packages.len(), ..Report::default() };
    others::count(&packages, &mut report);
    let findings = receipts.iter().flat_map(|receipt| &receipt.findings);
    report.warnings = findings.filter(|finding| finding.is_warning()).cloned().collect();
    report.left_out = receipts.iter().map(|receipt| receipt.left_out.len()).sum();
    if let Some(scan) = options.against {
        let prefix = prefix(&receipts, &sets)?;
        let inputs = scan.findings.explain(ArtifactInputs::read(scan, progress))?;
        for packages in sets.iter().filter(|set| !set.is_empty()) {
            let comparison =
                SetComparison { packages, prefix: &prefix, excuses: &excuses, inputs: &inputs };
            comparison.check(problems);
        }
        let count = inputs.in_binaries().count() + inputs.in_files().count();
        report.input_code_objects = Some(count as u64);
    }
    Ok(report)
}

/// Reads the file at `path` as one that is installed and as one of an artifact is read; fails where
/// it claims to hold device code, or references to it, and cannot be read.
pub fn read_file(path: &str, content: &Content) -> Result<()> {
    let facts = facts::examine(path, &mut content.reader(), content.len(), content.budget())?;
    if let Class::Broken(_, error) = facts.class {
        return Err(error);
    }
    let path = TreePath::new(path.trim_start_matches('/'))?;
    inputs::examine(&path, "", content).map(drop)
}

fn of_format(packages: &[Installed], format: Format) -> Vec<&Installed> {
    packages.iter().filter(|package| package.format == Some(format)).collect()
}

/// Reads every package; one that cannot be read is a problem.
fn read_all(
    arguments: &[PackageArgument],
    budget: &Budget,
    progress: &dyn Progress,
    problems: &mut Problems,
) -> Vec<Installed> {
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let files = arguments.iter().enumerate().flat_map(|(position, argument)| {
        argument.packages.iter().map(move |path| (position, path.as_path()))
    });
    let files: Vec<(usize, &Path)> = files.collect();
    progress.expect(Stage::Verify, files.iter().map(|(_, path)| size(path)).sum());
    progress.begin(Stage::Verify);
    let read = files.par_iter().map(|(position, path)| {
        let read = package::read(path, *position, budget);
        progress.advance(Stage::Verify, size(path));
        read
    });
    let read: Vec<_> = read.collect();
    progress.end(Stage::Verify);
    let mut packages = Vec::new();
    for ((_, path), result) in files.iter().zip(read) {
        match result {
            Ok((package, found)) => {
                packages.push(package);
                problems.extend(found);
            }
            Err(error) => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                problems.add(Problem::Unreadable {
                    place: ProblemPlace::Package(name.into_owned()),
                    fault: ReadFault::Failed { reason: error.to_string() },
                });
            }
        }
    }
    packages
}

fn check_claims(
    receipt: &Receipt,
    position: usize,
    argument: &PackageArgument,
    packages: &[Installed],
    problems: &mut Problems,
) {
    let own = packages.iter().filter(|package| package.argument == position);
    let claims = Claims { receipt, packages: own.collect(), present: argument.names() };
    claims.check(problems);
}

/// The install prefix: of a receipt, or else where a manifest of kernel archives lies.
fn prefix(receipts: &[&Receipt], sets: &[Vec<&Installed>]) -> Result<String> {
    let declared = receipts.first().map(|receipt| receipt.prefix.clone());
    let manifests = || {
        let listings = sets.iter().flat_map(|set| manifests::listings(set));
        listings.filter_map(|listing| listing.prefix().map(str::to_owned)).next()
    };
    declared.or_else(manifests).ok_or_else(|| {
        Error::new(Kind::Usage, "the install prefix of these packages is not known")
            .hint("verify the folder that holds packages.json")
    })
}

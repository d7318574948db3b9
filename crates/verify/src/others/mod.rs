//! Checks everything that is no package: artifacts, installed prefixes and single files.

pub(super) mod artifacts;
pub(super) mod folders;
mod installed_wheels;

use std::path::Path;

use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::run::Budget;

use super::checks::contents::{self, Together};
use super::checks::excuses::Excuses;
use super::checks::scope::Scope;
use super::checks::{check_files, manifests, markers};
use super::own::facts::{self, Class};
use super::own::installed::{Installed, InstalledNode, Side};
use super::problem::{Problems, Report};
use super::subject::Subject;
use artifacts::Extent;
use rockpack_report::Progress;
use rockpack_split::input::artifact::{self, Scan, ScanOptions};

/// Checks a subject that is no package, and adds what was read.
pub(super) fn check(
    subject: Subject,
    budget: &Budget,
    progress: &dyn Progress,
    report: &mut Report,
    problems: &mut Problems,
) -> Result<()> {
    let options = ScanOptions::within(budget);
    match subject {
        Subject::Artifact(path) => {
            let scan = artifact::scan_artifact_readable(&path, &options)?;
            check_artifacts(scan, Extent::One, progress, report, problems)
        }
        Subject::Shards(path) => {
            let scan = artifact::scan_readable(&[path], &options);
            check_artifacts(scan, Extent::Shards, progress, report, problems)
        }
        Subject::Prefix(path) => check_prefix(&path, budget, progress, report, problems),
        Subject::File(path) => check_file(&path, budget, report, problems),
        Subject::Package(_) | Subject::Packages(_) => {
            Err(Error::bug("packages are checked as a set"))
        }
        Subject::Wheel(_) | Subject::Wheels(_) => Err(Error::bug("wheels are checked together")),
        Subject::Repository(_) => Err(Error::bug("repositories are checked by themselves")),
    }
}

fn check_artifacts(
    (scan, error): (Scan, Option<Error>),
    extent: Extent,
    progress: &dyn Progress,
    report: &mut Report,
    problems: &mut Problems,
) -> Result<()> {
    // What cannot be read may be what the others need.
    let extent = if error.is_some() { Extent::One } else { extent };
    if let Some(error) = error {
        // A folder without any artifact is a wrong argument.
        if error.kind() == Kind::Usage {
            return Err(or_prefix(&error));
        }
        artifacts::refused(&error, problems);
    }
    let read = artifacts::check(&scan, extent, progress, problems)?;
    scan.inputs.recheck()?;
    report.artifacts += read.len();
    count(&read, report);
    Ok(())
}

fn check_prefix(
    path: &Path,
    budget: &Budget,
    progress: &dyn Progress,
    report: &mut Report,
    problems: &mut Problems,
) -> Result<()> {
    let files = folders::below(path, budget, problems);
    let name = path.display().to_string();
    let excuses = match installed_wheels::are_all_there(&files) {
        true => Excuses::default(),
        false => Excuses::of_some_wheels(),
    };
    let read = folders::examine(name, Side::Both, files, progress, problems);
    markers::check(&[&read], &excuses, Scope::Prefix, problems);
    manifests::check(&[&read], Scope::Prefix, problems);
    check_files(&[&read], &excuses, problems)?;
    report.prefixes += 1;
    count([&read], report);
    Ok(())
}

/// Checks a file by itself: nothing is known of what has to be beside it.
fn check_file(
    path: &Path,
    budget: &Budget,
    report: &mut Report,
    problems: &mut Problems,
) -> Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let place = format!("/{name}");
    let facts = facts::examine_content(&place, &Content::open(path, budget)?)?;
    let says_nothing = matches!(facts.class, Class::Other | Class::Script(_));
    let node = InstalledNode::File { mode: 0, facts };
    let folder = path.parent().unwrap_or(Path::new("")).display().to_string();
    let read = Installed::of_files(folder, Side::Both, [(place, node)].into());
    if says_nothing {
        let message = "is nothing that can be verified by itself";
        let hint = "packages, kernel archives, kernel manifests, host binaries and device code \
                    can be";
        return Err(Error::new(Kind::Usage, message).file(path).hint(hint));
    }
    contents::check(&read, &Together::alone(&[&read]), &Excuses::default(), problems);
    report.single_files += 1;
    count([&read], report);
    Ok(())
}

/// The error for a folder without artifacts, which may contain installed prefixes.
fn or_prefix(error: &Error) -> Error {
    let hint = error.hint_text().map_or(String::new(), |hint| format!("{hint}; "));
    let hint =
        format!("{hint}name an installed prefix itself, with --installed if it has no lib/.kpack");
    Error::new(Kind::Usage, error.message()).at(error.place()).hint(hint)
}

/// Adds what was read of `packages`.
pub(super) fn count<'a>(packages: impl IntoIterator<Item = &'a Installed>, report: &mut Report) {
    for (_, facts) in packages.into_iter().flat_map(Installed::files) {
        report.files += 1;
        if let Class::Archive(archive) = &facts.class {
            report.archive_rows += archive.row_count();
            report.code_objects += archive.code_objects.len() as u64;
        }
    }
}

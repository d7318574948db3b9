//! Checks finished output against the invariants, with eyes of its own.
//!
//! Nothing here uses the split, host binary or emit stages: what they did is what is in question.
//! The receipt is a claim like any other; without one, packages are checked against each other and
//! against what they say of themselves.

mod against;
mod claims;
mod facts;
mod hold;
mod host_elf;
mod installed;
mod originals;
mod package;
mod problem;
mod set;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

pub use problem::{Check, Problem, Report};

use crate::artifact::Scan;
use crate::error::{Error, Kind, Result};
use crate::plan::package::Format;
use crate::receipt::{self, Receipt};
use crate::report::{Progress, Stage};
use facts::Class;
use installed::Installed;

/// Checks the packages that `paths` name, folders or files, as one set; with `against`, also
/// looks for everything the artifacts hold.
pub fn verify(
    paths: &[PathBuf],
    against: Option<&Scan>,
    progress: &dyn Progress,
) -> Result<Report> {
    let sources = paths.iter().map(|path| Source::open(path)).collect::<Result<Vec<_>>>()?;
    let files: Vec<&PathBuf> = sources.iter().flat_map(|source| &source.packages).collect();
    if files.is_empty() {
        return Err(Error::new(Kind::Usage, "there is no .deb and no .rpm to verify"));
    }
    let (mut packages, mut problems) = read_all(&files, progress)?;
    for source in &sources {
        if let Some(receipt) = &source.receipt {
            claims::apply(receipt, &mut packages);
            problems.extend(claims::check(receipt, &packages));
        }
    }
    mark_kernel_packages(&mut packages);
    let receipts: Vec<&Receipt> = sources.iter().filter_map(|s| s.receipt.as_ref()).collect();
    let mut report = count(&packages);
    for format in [Format::Deb, Format::Rpm] {
        let set: Vec<&Installed> = packages.iter().filter(|p| p.format == format).collect();
        problems.extend(set::check(&set));
    }
    if let Some(scan) = against {
        let (found, code_objects) = check_against(&packages, &receipts, scan)?;
        problems.extend(found);
        report.input_code_objects = code_objects;
    }
    problems.sort();
    problems.dedup();
    Ok(Report { problems, ..report })
}

/// What one argument names.
struct Source {
    packages: Vec<PathBuf>,
    receipt: Option<Receipt>,
}

impl Source {
    fn open(path: &Path) -> Result<Self> {
        let metadata = std::fs::metadata(path).map_err(|e| Error::io(path, "inspect", e))?;
        if !metadata.is_dir() {
            return Ok(Self { packages: vec![path.to_path_buf()], receipt: None });
        }
        let entries = std::fs::read_dir(path).map_err(|e| Error::io(path, "list", e))?;
        let mut packages = Vec::new();
        for entry in entries {
            let found = entry.map_err(|e| Error::io(path, "list", e))?.path();
            if found.extension().is_some_and(|e| e == "deb" || e == "rpm") {
                packages.push(found);
            }
        }
        packages.sort();
        let file = path.join(receipt::FILE_NAME);
        let receipt = match std::fs::read(&file) {
            Ok(bytes) => Some(Receipt::parse(&bytes).map_err(|error| error.file(&file))?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(Error::io(&file, "read", error)),
        };
        Ok(Self { packages, receipt })
    }
}

fn read_all(files: &[&PathBuf], progress: &dyn Progress) -> Result<(Vec<Installed>, Vec<Problem>)> {
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    progress.begin(Stage::Verify, files.iter().map(|path| size(path)).sum());
    let read: Vec<_> = files
        .par_iter()
        .map(|path| {
            let read = package::read(path);
            progress.advance(Stage::Verify, size(path));
            read.map_err(|error| {
                Problem::new(Check::Unreadable, path.display().to_string(), error.to_string())
            })
        })
        .collect();
    progress.end(Stage::Verify);
    let mut packages = Vec::new();
    let mut problems = Vec::new();
    for result in read {
        match result {
            Ok((package, found)) => {
                packages.push(package);
                problems.extend(found);
            }
            Err(problem) => problems.push(problem),
        }
    }
    Ok((packages, problems))
}

/// A package that neither says itself nor by its receipt that it is for some archs is a kernel
/// package if it owns a kernel archive.
fn mark_kernel_packages(packages: &mut [Installed]) {
    for package in packages {
        let owns = package.files().any(|(_, facts)| matches!(facts.class, Class::Archive(_)));
        if package.kernel_archs.is_none() && owns {
            package.kernel_archs = Some(Vec::new());
        }
    }
}

fn count(packages: &[Installed]) -> Report {
    let mut report = Report { packages: packages.len(), ..Report::default() };
    for (_, facts) in packages.iter().flat_map(Installed::files) {
        report.files += 1;
        if let Class::Archive(archive) = &facts.class {
            report.archive_rows += archive.rows.values().map(|row| row.len() as u64).sum::<u64>();
            report.code_objects += archive.code_objects.len() as u64;
        }
    }
    report
}

fn check_against(
    packages: &[Installed],
    receipts: &[&Receipt],
    scan: &Scan,
) -> Result<(Vec<Problem>, u64)> {
    let findings = receipts.iter().flat_map(|receipt| &receipt.findings);
    let excused: BTreeSet<String> = findings.flat_map(|f| f.code_objects.clone()).collect();
    let declared = receipts.first().map(|receipt| receipt.prefix.clone());
    let prefix = declared.or_else(|| archive_prefix(packages)).ok_or_else(|| {
        Error::new(Kind::Usage, "the install prefix of these packages is not known")
            .hint("verify the folder that holds packages.json")
    })?;
    let sets = [Format::Deb, Format::Rpm].map(|format| {
        packages.iter().filter(|package| package.format == format).collect::<Vec<_>>()
    });
    let packed: Vec<_> = sets
        .iter()
        .filter(|set| !set.is_empty())
        .map(|set| against::Packed { packages: set, prefix: &prefix, excused: &excused })
        .collect();
    against::check(&packed, scan)
}

/// The prefix below which the first kernel archive is installed.
fn archive_prefix(packages: &[Installed]) -> Option<String> {
    let mut archives = packages.iter().flat_map(Installed::files);
    let (path, _) = archives.find(|(_, facts)| matches!(facts.class, Class::Archive(_)))?;
    path.split_once("/lib/.kpack/").map(|(prefix, _)| prefix.to_owned())
}

//! Checks Python wheels: each by itself, and host wheels with the device wheels that are pinned to them.
//!
//! Wheels do not name their set, so sets are found by METADATA: a host wheel has extras `device-…`, and a device wheel
//! requires exactly its host. Fat wheels and wheels without device code are checked by themselves.

mod against;
mod completeness;
mod set;

use std::collections::BTreeSet;
use std::path::PathBuf;

use rockpack_archive::wheel::{ListingFault, WheelName, normalized};
use rockpack_core::content::real_path;
use rockpack_core::error::Result;
use rockpack_package::receipt::wheels::{WheelKind, WheelReceipt};
use rockpack_report::Findings;

use crate::checks::excuses::Excuses;
use crate::checks::{Scope, check_files, check_ownership, check_twice, markers, needs, receipt};
use crate::partial::{Extent, PartialSetFilter};
use crate::problem::{Problem, Problems, Report};
use crate::readers::facts::{Class, FileFacts};
use crate::readers::installed::PackageContents;
use crate::readers::wheel::{self, Wheel};
use crate::subject::{WheelArgument, file_names};
use crate::wheels::against::WheelComparison;
use crate::wheels::completeness::check_between;
use crate::wheels::set::{WheelSet, WheelSets};
use crate::{Run, others, read_files};

/// The extensions of files that Python runs at startup or by name.
const RUN: [&str; 4] = ["py", "pyc", "pyo", "pth"];

/// The folder of scripts that installers put into `bin`.
const SCRIPTS: &str = "/.data/scripts/";

/// The file from which installers create programs.
const ENTRY_POINTS: &str = ".dist-info/entry_points.txt";

/// Checks the wheels of all arguments, each once.
pub(super) fn check(arguments: &[WheelArgument], run: &mut Run<'_>) -> Result<()> {
    if arguments.is_empty() {
        return Ok(());
    }
    let mut found = Problems::default();
    let paths = each_once(arguments.iter().flat_map(|argument| &argument.wheels))?;
    let receipts: Vec<&WheelReceipt> =
        arguments.iter().filter_map(|argument| argument.receipt.as_ref()).collect();
    let records = receipts.iter().flat_map(|receipt| &receipt.wheels);
    let copied = records.filter(|record| record.role == WheelKind::Copy);
    let copies: BTreeSet<&str> = copied.map(|record| record.file_name.as_str()).collect();
    let (options, progress) = (run.options, run.progress);
    let read = |path: &PathBuf| wheel::read(path, &copies, &options.budget);
    let mut wheels = read_files(&paths, PathBuf::as_path, read, run);
    let Run { report, problems, .. } = run;
    set::assign_roles(&mut wheels);
    for argument in arguments {
        if let Some(receipt) = &argument.receipt {
            receipt::check_wheels(receipt, &file_names(&argument.wheels), &mut wheels, &mut found);
        }
    }
    let findings = Findings::of(receipts.iter().map(|receipt| &receipt.findings));
    let excuses = Excuses::of_findings(findings.iter());
    report.warnings.extend(findings.warnings());
    let mut sets = WheelSets::of(&wheels);
    sets.unread = unread(&paths, &wheels);
    let of_copies = check_sets(&sets, &excuses, &mut found);
    completeness::check_gaps(&wheels, &copies, &mut found);
    check_between(&sets, &copies, &mut found);
    report.wheels = wheels.len();
    for wheel in &sets.others {
        check_files(&[&wheel.installed], &excuses, &mut found);
        report.wheels_without_digests += usize::from(wheel.if_split.iter().any(is_without_digest));
        note_stale(wheel, options.trust.strict, report, &mut found);
    }
    let mut set_filter = PartialSetFilter::new(options.extent);
    problems.extend(set_filter.filter(found, wheels.iter().map(|wheel| &wheel.installed)));
    let mut part = PartialSetFilter::new(Extent::Part);
    problems.extend(part.filter(of_copies, wheels.iter().map(|wheel| &wheel.installed)));
    report.undecided.extend(part.undecided());
    others::count(wheels.iter().map(|wheel| &wheel.installed), report);
    if !options.wheels.is_empty() {
        for Wheel { installed, texts, .. } in &mut wheels {
            installed.paths.retain(|path, _| !texts.contains_key(path));
        }
        let mut found = Problems::default();
        let (excuses, wheels, paths, receipts) = (&excuses, &*wheels, &*paths, &*receipts);
        let compared = WheelComparison { options, excuses, wheels, paths, receipts };
        let count = compared.check(&WheelSets::of(wheels), progress, &mut found)?;
        *report.input_code_objects.get_or_insert(0) += count;
        problems.extend(set_filter.filter(found, wheels.iter().map(|wheel| &wheel.installed)));
    }
    report.may_be_part |= set_filter.has_undecidable();
    report.undecided.extend(set_filter.undecided());
    Ok(())
}

fn is_without_digest(problem: &Problem) -> bool {
    matches!(problem, Problem::WheelRecord { fault: ListingFault::WithoutDigest, .. })
}

fn is_stale(problem: &&Problem) -> bool {
    matches!(problem, Problem::WheelRecord { fault: ListingFault::Stale(_), .. })
}

/// Reports the stale rows of a wheel that was not split; for a copy, its build already did.
fn note_stale(wheel: &Wheel, strict: bool, report: &mut Report, found: &mut Problems) {
    let stale = wheel.if_split.iter().filter(is_stale).filter(|_| !wheel.is_copy).cloned();
    if strict { stale.for_each(|it| found.add(it)) } else { report.tolerated.extend(stale) }
}

/// Removes duplicates from `paths`: a file and its folder may both be given.
fn each_once<'a>(paths: impl Iterator<Item = &'a PathBuf>) -> Result<Vec<PathBuf>> {
    let (mut seen, mut once) = (BTreeSet::new(), Vec::new());
    for path in paths {
        if seen.insert(real_path(path)?.unwrap_or_else(|| path.clone())) {
            once.push(path.clone());
        }
    }
    Ok(once)
}

/// The normalized names of the wheels among `paths` that could not be read.
fn unread(paths: &[PathBuf], wheels: &[Wheel]) -> BTreeSet<String> {
    let read: BTreeSet<&str> = wheels.iter().map(|wheel| wheel.installed.file.as_str()).collect();
    let names = paths.iter().filter_map(|path| path.file_name()?.to_str());
    let names = names.filter(|name| !read.contains(name)).filter_map(|name| name.parse().ok());
    names.map(|name: WheelName| normalized(&name.distribution)).collect()
}

/// Checks host wheels with their device wheels, and device wheels without a host. Returns the problems of copies
/// separately: the rest of a set that was split before may not have been in the run.
fn check_sets(sets: &WheelSets<'_>, excuses: &Excuses, problems: &mut Problems) -> Problems {
    let mut of_copies = Problems::default();
    for set in &sets.sets {
        let found = if set.host.is_copy { &mut of_copies } else { &mut *problems };
        check_set(set, excuses, found);
        completeness::check(set, sets, found);
    }
    for (device, host) in &sets.without_host {
        let found = if device.is_copy { &mut of_copies } else { &mut *problems };
        check_members(device, found);
        let (wheel, host) = (device.installed.file.clone(), host.clone());
        found.add(Problem::WheelHostMissing { wheel, host });
    }
    of_copies
}

fn check_set(set: &WheelSet<'_>, excuses: &Excuses, problems: &mut Problems) {
    let packages: Vec<&PackageContents> = set.wheels().map(|wheel| &wheel.installed).collect();
    for wheel in set.wheels().filter(|wheel| !wheel.is_copy) {
        wheel.if_split.iter().for_each(|problem| problems.add(problem.clone()));
    }
    check_twice(&packages, problems);
    check_ownership(&packages, Scope::Wheels, problems);
    markers::check(&packages, excuses, Scope::Wheels, problems);
    needs::check_shim(&[&set.host.installed], problems);
    set.devices.iter().for_each(|device| check_members(device, problems));
    check_files(&packages, excuses, problems);
}

/// Checks that neither Python nor a shell runs anything in a device wheel.
fn check_members(device: &Wheel, problems: &mut Problems) {
    // Licences in the metadata folder are not run, whatever their names are.
    let is_text = |path: &str| device.texts.contains_key(path) && !path.ends_with(ENTRY_POINTS);
    let run = device.installed.files().filter(|(path, facts)| is_run(path, facts));
    for (path, _) in run.filter(|(path, _)| !is_text(path)) {
        let reason = "is run by Python or a shell, but device wheels may only have device code";
        let file = device.installed.at(path);
        problems.add(Problem::WheelMember { file, reason: reason.to_owned() });
    }
}

fn is_run(path: &str, facts: &FileFacts) -> bool {
    let (_, ending) = path.rsplit_once('.').unwrap_or_default();
    matches!(facts.class, Class::Script(_))
        || RUN.contains(&ending)
        || path.starts_with(SCRIPTS)
        || path.ends_with(ENTRY_POINTS)
}

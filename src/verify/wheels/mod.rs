//! Python wheels: each by itself, and host wheels with the device wheels that are pinned to them.
//!
//! Wheels name nobody's set, so sets are found by what METADATA says: a host wheel offers extras
//! `device-…`, and a device wheel requires exactly its host. Fat wheels, and those that have nothing to
//! do with device code, are checked by themselves.

mod against;
mod between;
mod claims;
mod closed;
mod set;

use std::collections::BTreeSet;
use std::path::PathBuf;

use rockpack_base::content::real_path;
use rockpack_base::error::Result;
use rockpack_base::formats::wheel::{WheelName, normalized};

use super::checks::contents::{self, Together};
use super::checks::excuses::Excuses;
use super::checks::scope::Scope;
use super::checks::{integrity, markers, ownership, pairs, twice};
use super::own::facts::{Class, FileFacts};
use super::own::installed::Installed;
use super::own::wheel::{self, Wheel};
use super::partial::Sieve;
use super::problem::{ListingFault, MemberFault, Problem, Problems, Report};
use super::subject::wheels::WheelArgument;
use super::{Options, others, read_files};
use crate::receipt::FindingRecord;
use crate::report::Progress;
use against::Comparison;
use set::{Sets, WheelSet};

/// The endings of files that Python runs when it starts or by name.
const RUN: [&str; 4] = ["py", "pyc", "pyo", "pth"];

/// The folder of what installers put among programs.
const SCRIPTS: &str = "/.data/scripts/";

/// The file that has installers make programs.
const ENTRY_POINTS: &str = ".dist-info/entry_points.txt";

/// Checks the wheels of all arguments, each once, and adds what was looked at.
pub(super) fn check(
    arguments: &[WheelArgument],
    options: &Options<'_>,
    progress: &dyn Progress,
    report: &mut Report,
    problems: &mut Problems,
) -> Result<()> {
    if arguments.is_empty() {
        return Ok(());
    }
    let mut found = Problems::default();
    let paths = each_once(arguments.iter().flat_map(|argument| &argument.wheels))?;
    let read = |path: &PathBuf| wheel::read(path, &options.budget);
    let mut wheels = read_files(&paths, PathBuf::as_path, progress, read, &mut found);
    set::take_sides(&mut wheels);
    arguments.iter().for_each(|argument| claims::check(argument, &mut wheels, &mut found));
    let receipts: Vec<_> =
        arguments.iter().filter_map(|argument| argument.receipt.as_ref()).collect();
    let host_requires = receipts.iter().flat_map(|receipt| &receipt.host_requires).collect();
    let findings: Vec<FindingRecord> =
        receipts.iter().flat_map(|receipt| receipt.findings.clone()).collect();
    let excuses = Excuses::of_wheels(&findings);
    report.warnings.extend(findings.into_iter().filter(FindingRecord::is_warning));
    let sets = Sets::of(&wheels);
    let unread = unread(&paths, &wheels);
    for set in &sets.sets {
        check_set(set, &excuses, &mut found)?;
        closed::check(set, &sets, &unread, &mut found);
    }
    between::check(&sets, &mut found);
    for (device, host) in &sets.alone {
        check_members(device, &mut found);
        let (wheel, host) = (device.installed.file.clone(), host.clone());
        found.add(Problem::WheelHostMissing { wheel, host });
    }
    report.wheels = wheels.len();
    for wheel in &sets.others {
        check_alone(wheel, &mut found)?;
        report.wheels_without_digests += usize::from(wheel.if_split.iter().any(is_without_digest));
    }
    let mut sieve = Sieve::new(options.extent);
    problems.extend(sieve.sift(found, wheels.iter().map(|wheel| &wheel.installed)));
    others::count(wheels.iter().map(|wheel| &wheel.installed), report);
    if !options.wheels.is_empty() {
        wheels.iter_mut().for_each(Wheel::drop_texts);
        let mut found = Problems::default();
        let compared = Comparison { options, excuses: &excuses, paths: &paths, host_requires };
        let count = compared.check(&Sets::of(&wheels), progress, &mut found)?;
        *report.input_code_objects.get_or_insert(0) += count;
        problems.extend(sieve.sift(found, wheels.iter().map(|wheel| &wheel.installed)));
    }
    report.may_be_part |= sieve.has_open();
    report.undecided.extend(sieve.undecided());
    Ok(())
}

fn is_without_digest(problem: &Problem) -> bool {
    matches!(problem, Problem::WheelRecord { fault: ListingFault::WithoutDigest, .. })
}

/// The files at `paths`, which a file and its folder may both name.
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
    let names = paths
        .iter()
        .filter_map(|path| path.file_name()?.to_str())
        .filter(|name| !read.contains(name))
        .filter_map(|name| name.parse().ok());
    names.map(|name: WheelName| normalized(&name.distribution)).collect()
}

/// Checks a host wheel with its device wheels.
fn check_set(set: &WheelSet<'_>, excuses: &Excuses, problems: &mut Problems) -> Result<()> {
    let packages: Vec<&Installed> = set.wheels().map(|wheel| &wheel.installed).collect();
    let together = Together::of(&packages);
    for package in &packages {
        contents::check(package, &together, excuses, problems);
    }
    for wheel in set.wheels() {
        wheel.if_split.iter().for_each(|problem| problems.add(problem.clone()));
    }
    twice::check(&packages, problems);
    ownership::check(&packages, Scope::Wheels, problems);
    markers::check(&packages, excuses, Scope::Wheels, problems);
    pairs::check(&packages, excuses, problems)?;
    integrity::check(&packages, excuses, problems)?;
    set.devices.iter().for_each(|device| check_members(device, problems));
    Ok(())
}

/// Nothing in a device wheel is run by Python or a shell.
fn check_members(device: &Wheel, problems: &mut Problems) {
    // Licences in the folder of the metadata are not run, whatever they are called.
    let is_text = |path: &str| device.texts.contains_key(path) && !path.ends_with(ENTRY_POINTS);
    let run = device.installed.files().filter(|(path, facts)| is_run(path, facts));
    for (path, _) in run.filter(|(path, _)| !is_text(path)) {
        let (file, fault) = (device.installed.at(path), MemberFault::Run);
        problems.add(Problem::WheelMember { file, fault });
    }
}

fn is_run(path: &str, facts: &FileFacts) -> bool {
    let (_, ending) = path.rsplit_once('.').unwrap_or_default();
    matches!(facts.class, Class::Script(_))
        || RUN.contains(&ending)
        || path.starts_with(SCRIPTS)
        || path.ends_with(ENTRY_POINTS)
}

/// Checks a wheel that belongs to no set.
fn check_alone(wheel: &Wheel, problems: &mut Problems) -> Result<()> {
    let excuses = Excuses::default();
    let packages = [&wheel.installed];
    contents::check(&wheel.installed, &Together::of(&packages), &excuses, problems);
    pairs::check(&packages, &excuses, problems)?;
    integrity::check(&packages, &excuses, problems)
}

//! Checks artifacts, installed prefixes and single files.

pub(super) mod artifacts;
mod gpus;
mod records;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rockpack_archive::wheel::{Metadata, Requirement, Version, normalized};
use rockpack_core::content::{self, Content};
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::tree::Node;
use rockpack_package::device_wheel::EXTRA;
use rockpack_split::input::artifact::Scan;

use crate::checks::excuses::Excuses;
use crate::checks::{Scope, check_files, contents, manifests, markers, needs};
use crate::partial::Extent;
use crate::problem::{PackagePath, Problem, ProblemPlace, Report};
use crate::readers::facts::{self, Class};
use crate::readers::installed::{InstalledNode, PackageContents};
use crate::{Options, Run, read_each};

pub(super) fn check_artifacts(
    (scan, error): (Scan, Option<Error>),
    extent: Extent,
    run: &mut Run<'_>,
) -> Result<()> {
    // The other artifacts may need the unreadable ones.
    let extent = if error.is_some() { Extent::Part } else { extent };
    if let Some(error) = error {
        // A folder without any artifact is a wrong argument, and may contain installed prefixes.
        if error.kind() == Kind::Usage {
            let hint = error.hint_text().map_or(String::new(), |hint| format!("{hint}; "));
            let other = "name an installed prefix itself, with --installed if it has no lib/.kpack";
            let own = Error::new(Kind::Usage, error.message()).at(error.place());
            return Err(own.hint(hint + other));
        }
        artifacts::add_scan_faults(&error, &mut run.problems);
    }
    let read = artifacts::check(&scan, extent, run);
    scan.inputs.recheck()?;
    run.report.artifacts += read.len();
    count(&read, &mut run.report);
    Ok(())
}

/// Checks an installed prefix, and reports which GPUs of the machine it serves.
pub(super) fn check_prefix(path: &Path, run: &mut Run<'_>) {
    let Options { budget, sysfs, extent, .. } = run.options;
    let files = files_below(path, run);
    let name = path.display().to_string();
    let mut excuses = Excuses::default();
    excuses.lacks_wheels = !has_all_device_wheels(&files);
    excuses.is_part = *extent == Extent::Part;
    let read = examine(name, files, run);
    let Run { report, problems, .. } = run;
    markers::check(&[&read], &excuses, Scope::Prefix, problems);
    manifests::check(&[&read], Scope::Prefix, problems);
    needs::check_has_shim(&[&read], &excuses, problems);
    check_files(&[&read], &excuses, problems);
    records::check(path, &read, budget, problems);
    gpus::add(path, &read, sysfs, report);
    report.prefixes += 1;
    count([&read], report);
}

/// Checks a file by itself, without the files that belong to it.
pub(super) fn check_file(path: &Path, run: &mut Run<'_>) -> Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let place = format!("/{name}");
    let facts = facts::examine_content(&place, &Content::open(path, &run.options.budget)?)?;
    let says_nothing = matches!(facts.class, Class::Other | Class::Script(_));
    let node = InstalledNode::File { mode: 0, facts: facts.into() };
    let folder = path.parent().unwrap_or(Path::new("")).display().to_string();
    let read = PackageContents::of_files(folder, [(place, node)].into());
    if says_nothing {
        let message = "cannot be verified by itself";
        let hint = "packages, kernel archives, kernel manifests, host binaries and device code \
                    can be";
        return Err(Error::new(Kind::Usage, message).file(path).hint(hint));
    }
    let Run { report, problems, .. } = run;
    contents::check_one(&read, &[&read], &BTreeSet::new(), &Excuses::default(), problems);
    report.single_files += 1;
    count([&read], report);
    Ok(())
}

/// Counts the files, rows and code objects of `packages`.
pub(super) fn count<'a>(
    packages: impl IntoIterator<Item = &'a PackageContents>,
    report: &mut Report,
) {
    for (_, facts) in packages.into_iter().flat_map(PackageContents::files) {
        report.files += 1;
        if let Class::Archive(archive) = &facts.class {
            report.archive_rows +=
                archive.rows.values().map(|targets| targets.len() as u64).sum::<u64>();
            report.code_objects += archive.code_objects.len() as u64;
        }
    }
}

/// Unexamined files by absolute install path.
type FilesByPath = BTreeMap<String, Node<Content>>;

/// Examines all `files` of the artifact or prefix `name`; reports those that cannot be read.
fn examine(name: String, files: FilesByPath, run: &mut Run<'_>) -> PackageContents {
    let files: Vec<(String, Node<Content>)> = files.into_iter().collect();
    let size = |(_, node): &(String, Node<Content>)| node.data().map_or(0, Content::len);
    let found = read_each(&files, size, run.progress, examined);
    let mut paths = BTreeMap::new();
    for ((path, _), node) in files.into_iter().zip(found) {
        match node {
            Ok(node) => drop(paths.insert(path, node)),
            Err(error) => {
                let place = ProblemPlace::File(PackagePath::new(&name, path));
                run.problems.add_unreadable(place, &error);
            }
        }
    }
    PackageContents::of_files(name, paths)
}

fn examined((path, node): &(String, Node<Content>)) -> Result<InstalledNode> {
    Ok(match node {
        // Modes of folders depend on the machine.
        Node::Directory { .. } => InstalledNode::Directory { mode: 0 },
        Node::Link { target } => InstalledNode::Link { target: target.clone() },
        Node::File { data, mode } => {
            InstalledNode::File { mode: *mode, facts: facts::examine_content(path, data)?.into() }
        }
    })
}

/// Everything below `root`, by path relative to it with a leading `/`; reports what cannot be read.
fn files_below(root: &Path, run: &mut Run<'_>) -> FilesByPath {
    let mut files = FilesByPath::new();
    let mut waiting: Vec<(PathBuf, String)> = vec![(root.to_path_buf(), String::new())];
    while let Some((folder, at)) = waiting.pop() {
        if let Err(error) = list(&folder, &at, &mut files, &mut waiting, run) {
            run.problems.add_unreadable(ProblemPlace::Disk(folder.display().to_string()), &error);
        }
    }
    files
}

fn list(
    folder: &Path,
    at: &str,
    files: &mut FilesByPath,
    waiting: &mut Vec<(PathBuf, String)>,
    run: &mut Run<'_>,
) -> Result<()> {
    let problems = &mut run.problems;
    for entry in content::list(folder)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        let Some(name) = name.to_str() else {
            // Replacement characters could make two names equal.
            let name = name.as_encoded_bytes().escape_ascii();
            let place = ProblemPlace::Disk(format!("{}/{name}", folder.display()));
            problems.add(Problem::Unreadable { place, reason: "its name is not UTF-8".to_owned() });
            continue;
        };
        let place = format!("{at}/{name}");
        let kind = entry.file_type().map_err(|e| Error::io(&path, "inspect", e))?;
        if kind.is_dir() {
            files.insert(place.clone(), Node::Directory { mode: 0 });
            waiting.push((path, place));
        } else if kind.is_symlink() {
            let target = std::fs::read_link(&path).map_err(|e| Error::io(&path, "read", e))?;
            match target.into_os_string().into_string() {
                Ok(target) => drop(files.insert(place, Node::Link { target })),
                Err(_) => {
                    let place = ProblemPlace::Disk(path.display().to_string());
                    let reason = "its target is not UTF-8".to_owned();
                    problems.add(Problem::Unreadable { place, reason });
                }
            }
        } else if kind.is_file() {
            let data = Content::open(&path, &run.options.budget)?;
            files.insert(place, Node::File { data, mode: 0 });
        }
    }
    Ok(())
}

const METADATA: &str = ".dist-info/METADATA";

/// The longest METADATA that is read, in bytes.
const LIMIT: u64 = 16 << 20;

/// Whether all device wheels that extras of the installed wheels pin are installed, by the METADATA in `site-packages`.
/// Users may install a wheel with only some of its extras. Unreadable METADATA is ignored.
fn has_all_device_wheels(files: &FilesByPath) -> bool {
    let installed: Vec<Metadata> =
        files.iter().filter(|(path, _)| path.ends_with(METADATA)).filter_map(metadata).collect();
    let there: BTreeSet<String> = installed.iter().map(|it| normalized(it.name())).collect();
    installed.iter().flat_map(device_requirements).all(|needed| there.contains(&needed))
}

/// The distributions that device extras of a wheel require in exactly its own version.
fn device_requirements(wheel: &Metadata) -> impl Iterator<Item = String> {
    let needed = wheel.all("Requires-Dist").filter_map(|line| Requirement::parse(line).ok());
    let own: Option<Version> = wheel.version().parse().ok();
    let device_requirements = needed.filter(move |needed| {
        let extra = needed.condition.extras().first();
        extra.is_some_and(|extra| extra.starts_with(EXTRA))
            && needed.exact().is_some_and(|pin| own.as_ref() == Some(pin))
    });
    device_requirements.map(|needed| needed.project)
}

fn metadata((_, node): (&String, &Node<Content>)) -> Option<Metadata> {
    let data = node.data()?;
    Metadata::parse(&data.read_vec(0..data.len(), LIMIT, "METADATA").ok()?).ok()
}

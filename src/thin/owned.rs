//! The owners of files that would change: files that dpkg lists, and system paths of a root with an rpm database.
//!
//! Paths are compared without links: /lib may lead to /usr/lib, and /opt to another disk.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rockpack_core::content::{is_folder, list, read_file, real_path};
use rockpack_core::error::{Error, Result};
use rockpack_report::words::few;

/// The lists of dpkg, below a root.
const DPKG: &str = "var/lib/dpkg/info";

const RPM: [&str; 6] = [
    "var/lib/rpm/rpmdb.sqlite",
    "var/lib/rpm/Packages",
    "var/lib/rpm/Packages.db",
    "usr/lib/sysimage/rpm/rpmdb.sqlite",
    "usr/lib/sysimage/rpm/Packages",
    "usr/lib/sysimage/rpm/Packages.db",
];

/// The folders of a root that packages install into.
const SYSTEM: [&str; 8] = ["bin", "etc", "lib", "lib64", "opt", "sbin", "usr", "var"];

/// The folders of a root that packages leave to its users. Image-based systems have most of them in /var.
const LOCAL: [&str; 5] = ["home", "mnt", "root", "srv", "usr/local"];

/// Describes the files among `paths`, which contain no links, that belong to package managers: one text for each
/// package manager.
pub(super) fn owners(paths: &BTreeSet<PathBuf>) -> Result<Vec<String>> {
    let (mut packages, mut listed, mut of_rpm) =
        (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let roots: BTreeSet<&Path> = paths.iter().flat_map(|path| path.ancestors().skip(1)).collect();
    for root in roots {
        for (package, path) in listed_by_dpkg(root, paths)? {
            packages.insert(package);
            listed.insert(path);
        }
        of_rpm.extend(system_paths(root, paths)?);
    }
    let mut texts = Vec::new();
    if !listed.is_empty() {
        let (files, packages) = (shown(&listed), few(&Vec::from_iter(packages), 3));
        let seen = verification_report("dpkg", "??5??????");
        texts.push(format!(
            "{files} of the dpkg packages {packages}: reported by debsums, and {seen}"
        ));
    }
    if !of_rpm.is_empty() {
        let (files, seen) = (shown(&of_rpm), verification_report("rpm", "S.5......"));
        texts.push(format!("{files}, which rpm may own: reported {seen}"));
    }
    Ok(texts)
}

fn shown(paths: &BTreeSet<&PathBuf>) -> String {
    few(&Vec::from_iter(paths.iter().map(|path| path.display())), 3)
}

/// How verification reports changed and removed files.
fn verification_report(program: &str, changed: &str) -> String {
    format!(
        "by `{program} -V` as `{changed}` if changed and as `missing` if removed; an update restores the whole files"
    )
}

/// Those of `paths` that the lists of dpkg in `root` have, each with its package: `librocblas0:amd64`.
fn listed_by_dpkg<'a>(
    root: &Path,
    paths: &'a BTreeSet<PathBuf>,
) -> Result<Vec<(String, &'a PathBuf)>> {
    let (mut listed, folder) = (Vec::new(), root.join(DPKG));
    if !is_folder(&folder)? {
        return Ok(listed);
    }
    let names: BTreeSet<&OsStr> = paths.iter().filter_map(|path| path.file_name()).collect();
    for entry in list(&folder)? {
        let path = entry?.path();
        let package = path.file_name().and_then(|name| name.to_str());
        let Some(package) = package.and_then(|name| name.strip_suffix(".list")) else { continue };
        let bytes = read_file(&path).map_err(|fault| Error::io(&path, "read", fault))?;
        for line in String::from_utf8_lossy(&bytes).lines() {
            // Few names are the same, so few folders are resolved.
            let Some((folder, name)) = line.rsplit_once('/') else { continue };
            if !names.contains(OsStr::new(name)) {
                continue;
            }
            let folder = real_path(&root.join(folder.trim_start_matches('/')))?;
            let Some(folder) = folder else { continue };
            listed.extend(paths.get(&folder.join(name)).map(|path| (package.to_owned(), path)));
        }
    }
    Ok(listed)
}

/// Those of `paths` in the system folders of `root`, if rpm has a database there.
fn system_paths<'a>(root: &Path, paths: &'a BTreeSet<PathBuf>) -> Result<Vec<&'a PathBuf>> {
    if real_paths(root, &RPM)?.is_empty() {
        return Ok(Vec::new());
    }
    let (system, local) = (real_paths(root, &SYSTEM)?, real_paths(root, &LOCAL)?);
    let is_system = |path: &&PathBuf| {
        let is_below = |folder: &PathBuf| path.starts_with(folder);
        system.iter().any(is_below) && !local.iter().any(is_below)
    };
    Ok(paths.iter().filter(is_system).collect())
}

/// The paths below `root` that exist, without links.
fn real_paths(root: &Path, paths: &[&str]) -> Result<Vec<PathBuf>> {
    paths.iter().filter_map(|path| real_path(&root.join(path)).transpose()).collect()
}

#[cfg(test)]
#[path = "owned_tests.rs"]
mod tests;

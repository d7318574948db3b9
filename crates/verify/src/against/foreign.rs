//! Files of packages that no artifact has and no rule makes, and modes of files.
//!
//! Rules make kernel archives and their manifests, documents, the loader configuration and the marker of a series. They
//! are recognised by their path, and those that run or configure something also by their content. The script that names
//! packages for GPUs and the shim are trusted like maintainer scripts, which only a signed receipt proves.
//!
//! Debug files are below `/usr/lib/debug/.build-id` (`.rpm`) or `/usr/lib/debug/<package>/.build-id` (`.deb`) instead
//! of the prefix. A build-id link in the artifact may be the path of the installed file.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::tree::TreePath;
use rockpack_split::host_binary::SHIM;
use sha2::{Digest, Sha256};

use crate::against::SetComparison;
use crate::against::inputs::{ArtifactInputs, UnchangedNode};
use crate::against::plain::same;
use crate::problem::{FileLoss, Problem, Problems};
use crate::readers::Sha;
use crate::readers::facts::{Claimed, Class};
use crate::readers::installed::{InstalledNode, PackageContents, files_of};

/// The mode of folders and of executable files.
const EXECUTABLE: u32 = 0o755;
const READABLE: u32 = 0o644;

/// The name of the script that names packages for GPUs, in the folder of its package.
const GPU_SCRIPT: &str = "/gpu.sh";

/// The licence of the shim, relative to the prefix, and the suffix of its path in wheels.
const SHIM_LICENCE: &str = "share/doc/kpack-shim/LICENSE";
const SHIM_LICENCE_IN_WHEEL: &str = "/.kpack/librocm_kpack_shim.LICENSE";

/// The file that marks the prefix of an installed series, relative to the prefix.
const SERIES_MARKER: &str = "share/rockpack/series-link";

/// The folder in which debuggers look for debug files.
const DEBUG_FOLDER: &str = "/usr/lib/debug/";

/// The folder of split debug files, relative to the prefix and to folders of [`DEBUG_FOLDER`].
const BUILD_ID_FOLDER: &str = ".build-id/";

impl SetComparison<'_> {
    /// Reports every file, link and empty folder of unknown origin. The prefix must be known.
    pub(crate) fn check_origins(&self, problems: &mut Problems) {
        let plain = self.inputs.plain.values().flatten();
        let digests = plain.filter_map(|plain| {
            let UnchangedNode::File { sha256, .. } = plain else { return None };
            Some(*sha256)
        });
        let (digests, shipped): (BTreeSet<Sha>, _) = (digests.collect(), self.shipped());
        for package in self.packages {
            for (path, node) in &package.paths {
                let is_shipped = shipped.contains(path.as_str());
                if !self.is_expected(package, (path, node), is_shipped, &digests) {
                    let (file, kind) = (package.at(path), node.kind().to_owned());
                    problems.add(Problem::FileForeign { file, kind });
                } else if let Some(loss) = self.mode_difference(path, node) {
                    problems.add(Problem::FileLost { path: path.clone(), loss });
                }
            }
        }
    }

    /// The difference between the mode of a file or folder and that of the artifacts or rules. Packages use two modes,
    /// and for libraries the mode of their format. Wheels have the modes of the fat wheel.
    fn mode_difference(&self, path: &str, node: &InstalledNode) -> Option<FileLoss> {
        let (mode, modes) = match node {
            InstalledNode::Directory { mode } => (*mode, vec![EXECUTABLE]),
            InstalledNode::File { mode, .. } => (*mode, self.modes_at(path, node)),
            _ => return None,
        };
        let wanted = *modes.first().filter(|_| !modes.contains(&mode))?;
        Some(FileLoss::OtherMode { mode, wanted })
    }

    /// The valid modes of a file of a package; the first is the expected one.
    fn modes_at(&self, path: &str, node: &InstalledNode) -> Vec<u32> {
        let inside = path.strip_prefix(self.prefix).and_then(|path| path.strip_prefix('/'));
        let inside = inside.and_then(|path| TreePath::new(path).ok());
        let modes = inside.iter().flat_map(|path| self.inputs.modes(path));
        let normal = |mode: u32| if mode & 0o111 == 0 { READABLE } else { EXECUTABLE };
        let mut modes: Vec<u32> = modes.map(normal).collect();
        let is_moved = || inside.as_ref().is_some_and(|path| self.is_moved_here(path, node));
        if modes.is_empty() {
            modes.push(READABLE);
            let is_made = path.ends_with(GPU_SCRIPT) || is_library(path);
            let may_run = is_made || is_debug_place(path) || is_moved();
            modes.extend(may_run.then_some(EXECUTABLE));
        } else if is_library(path) {
            let formats = self.packages.iter().filter_map(|package| package.format);
            modes.extend(formats.take(1).map(|format| format.select(READABLE, EXECUTABLE)));
        }
        modes
    }

    /// Whether the file or link of the artifacts at `path` is among the installed debug files.
    pub(crate) fn is_debug_file(&self, path: &TreePath, plain: &UnchangedNode) -> bool {
        // Each with its `xx/yyyy.debug` path.
        let mut all = self.packages.iter().flat_map(|package| {
            let all = package.paths.range(DEBUG_FOLDER.to_owned()..);
            let inside =
                all.map_while(|(path, node)| Some((path.strip_prefix(DEBUG_FOLDER)?, node)));
            inside.filter_map(|(path, node)| Some((build_id_path(path)?, node)))
        });
        match plain {
            UnchangedNode::File { .. } => all.any(|(_, node)| same(plain, node)),
            UnchangedNode::Link { .. } => path
                .as_str()
                .strip_prefix(BUILD_ID_FOLDER)
                .is_some_and(|name| all.any(|(by_id, _)| by_id == name)),
            UnchangedNode::Directory => false,
        }
    }

    /// Whether the artifacts or a rule explain the node at a path; `known` are the digests of all files of the
    /// artifacts.
    fn is_expected(
        &self,
        package: &PackageContents,
        (path, node): (&str, &InstalledNode),
        is_shipped: bool,
        known: &BTreeSet<Sha>,
    ) -> bool {
        let rest = self.prefix.strip_prefix(path);
        // The folder of the prefix, and those above it.
        let is_above = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let has_below = || {
            let below = format!("{}/", path.trim_end_matches('/'));
            let next = package.paths.range(below.clone()..).next();
            next.is_some_and(|(path, _)| path.starts_with(&below))
        };
        if node.is_folder() && (is_above || has_below()) {
            return true;
        }
        match path.strip_prefix(self.prefix).and_then(|path| path.strip_prefix('/')) {
            Some(inside) => self.is_expected_in_prefix(inside, node, is_shipped),
            None => self.is_expected_outside(package, path, node, known),
        }
    }

    /// Whether the artifacts have this install-relative path, or a rule makes it; no rule makes archives that a
    /// component ships.
    fn is_expected_in_prefix(&self, path: &str, node: &InstalledNode, is_shipped: bool) -> bool {
        let Ok(path) = TreePath::new(path) else { return false };
        let is_made = node.facts().is_some_and(|facts| {
            let class = &facts.class;
            // An unreadable manifest is reported elsewhere.
            matches!(class, Class::Manifest(_) | Class::Broken(Claimed::Manifest, _))
                || class.claims_to_be_archive() && !is_shipped
        });
        self.inputs.has(&path)
            || is_made
            || self.is_moved_here(&path, node)
            || self.is_shim(&path, node)
            || self.is_series_marker(&path, node)
    }

    /// Whether it is the shim, with which binaries of the set register their wrappers, or its licence.
    fn is_shim(&self, path: &TreePath, node: &InstalledNode) -> bool {
        let is_own = match node.facts().map(|facts| &facts.class) {
            Some(Class::Host(host)) => path.name() == SHIM && host.elf.linked.is_shim(),
            Some(Class::Other) => {
                path.as_str() == SHIM_LICENCE || path.as_str().ends_with(SHIM_LICENCE_IN_WHEEL)
            }
            _ => false,
        };
        let mut hosts = files_of(self.packages).filter_map(|(_, _, facts)| facts.host());
        is_own && hosts.any(|host| host.elf.linked.shim().is_some())
    }

    /// Whether it is the series marker, whose content is the prefix without the series.
    fn is_series_marker(&self, path: &TreePath, node: &InstalledNode) -> bool {
        let link = self.prefix.rsplit_once('-').map(|(link, _)| format!("{link}\n"));
        let whole = link.map(|link| Sha::from(Sha256::digest(link)));
        path.as_str() == SERIES_MARKER
            && node.facts().is_some_and(|facts| Some(facts.sha256) == whole)
    }

    /// Whether a finding says that files of a parent folder were moved into folders below, and this is one of them.
    fn is_moved_here(&self, path: &TreePath, node: &InstalledNode) -> bool {
        let mut above = std::iter::successors(path.parent(), TreePath::parent);
        above.any(|folder| {
            let Ok(from) = folder.join(path.name()) else { return false };
            let mut variants = self.inputs.plain.get(&from).into_iter().flatten();
            self.excuses.moved.contains(&folder)
                && (variants.any(|plain| self.is_same(plain, path, node))
                    || self.is_merged(&from, node).unwrap_or(false))
        })
    }

    fn is_expected_outside(
        &self,
        package: &PackageContents,
        path: &str,
        node: &InstalledNode,
        known: &BTreeSet<Sha>,
    ) -> bool {
        let name = &package.name;
        let documents = format!("/usr/share/doc/{name}");
        match node {
            InstalledNode::File { facts, mode } => {
                let texts = [
                    format!("{documents}/copyright"),
                    format!("{documents}/changelog.Debian.gz"),
                    format!("/usr/share/licenses/{name}/copyright"),
                ];
                let is_made = match &facts.class {
                    Class::Other => texts.iter().any(|text| text == path),
                    Class::LoaderFolders(folders) => self.is_loader_file(folders, &facts.sha256),
                    _ => false,
                };
                let is_debug = is_debug_place(path) && known.contains(&facts.sha256);
                let is_script = path == format!("/usr/share/{name}{GPU_SCRIPT}");
                is_debug || is_script || is_made && mode & 0o111 == 0
            }
            // The documents of another package of the set.
            InstalledNode::Link { target } => path == documents && !target.contains('/'),
            InstalledNode::Directory { .. } | InstalledNode::Special { .. } => false,
        }
    }

    /// Whether a loader configuration contains one folder below the prefix and nothing else.
    fn is_loader_file(&self, folders: &[String], sha256: &Sha) -> bool {
        let [folder] = folders else { return false };
        let inside = folder.strip_prefix(self.prefix);
        let is_own = inside.is_some_and(|it| it.starts_with('/') && !it.contains("/.."));
        is_own && Sha::from(Sha256::digest(format!("{folder}\n"))) == *sha256
    }
}

/// Whether the file name is that of a shared library: `libx.so`, `libx.so.5.2`.
fn is_library(path: &str) -> bool {
    let version = path.rsplit_once(".so.").map(|(_, version)| version);
    path.ends_with(".so")
        || version.is_some_and(|version| version.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

/// The folder below which the most files of `packages` have the same relative path as in the artifacts; empty if no
/// file has one, and then paths are not compared.
pub(crate) fn likely_prefix<'a>(
    packages: impl Iterator<Item = &'a PackageContents>,
    inputs: &ArtifactInputs,
) -> String {
    let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
    let nodes = packages.flat_map(|package| &package.paths);
    let files = nodes.filter(|(_, node)| !node.is_folder());
    for (path, _) in files {
        let folders = path.match_indices('/').map(|(at, _)| path.split_at(at));
        let mut named = folders.filter(|(above, _)| !above.is_empty());
        let input = named.find(|(_, below)| {
            TreePath::new(below.trim_start_matches('/')).is_ok_and(|below| inputs.has(&below))
        });
        if let Some((above, _)) = input {
            *votes.entry(above).or_default() += 1;
        }
    }
    let most = votes.into_iter().max_by_key(|(_, count)| *count);
    most.map_or(String::new(), |(prefix, _)| prefix.to_owned())
}

/// Whether an absolute path is one where debuggers find a file by its build-id.
fn is_debug_place(path: &str) -> bool {
    path.strip_prefix(DEBUG_FOLDER).and_then(build_id_path).is_some()
}

/// The part after `.build-id/` of a path relative to the debug folder; `.build-id` is at the top, or in the folder of a
/// package.
fn build_id_path(path: &str) -> Option<&str> {
    let (folder, name) = path.split_once(BUILD_ID_FOLDER)?;
    (folder.matches('/').count() <= 1).then_some(name)
}

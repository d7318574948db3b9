//! Turns install-relative paths into absolute ones, and adds every folder above them.
//!
//! Folders from the prefix down belong to every package that has something in them; folders above the prefix
//! and elsewhere are listed in `.deb` only, whose archives name every folder. An `.rpm` owns only those that
//! no other package would remove.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::error::Result;
use rockpack_core::tree::{Node, TreePath};

use crate::outcome::FileSource;
use crate::prefix::Prefix;
use crate::texts::licences::Licence;
use rockpack_package::{Format, Formats, PackageEntry, Treatment};

/// All entries of a package in path order, each after the folders above it: files below the prefix by their
/// install-relative paths, with their special treatment if any, and files elsewhere.
pub(crate) fn entries(
    prefix: &Prefix,
    installed: BTreeMap<TreePath, Node<FileSource>>,
    treatments: &BTreeMap<TreePath, Treatment>,
    outside: Entries,
) -> Result<Entries> {
    let mut entries = BTreeMap::new();
    let mut last: Option<TreePath> = None;
    for (path, node) in installed {
        let treatment = treatments.get(&path).copied().unwrap_or(Treatment::Plain);
        let path = prefix.path().join(path.as_str())?;
        if last.as_ref().and_then(TreePath::folder) != path.folder() {
            add_folders(&mut entries, &path, |folder| {
                let is_within = folder == prefix.path() || folder.is_below(prefix.path());
                Some(if is_within { Formats::All } else { Formats::Only(Format::Deb) })
            });
        }
        last = Some(path.clone());
        let entry = PackageEntry { path: path.clone(), node, treatment, formats: Formats::All };
        entries.insert(path, entry);
    }
    for entry in outside {
        add_folders(&mut entries, &entry.path, |folder| folder_formats(folder, entry.formats));
        entries.insert(entry.path.clone(), entry);
    }
    Ok(entries.into_values().collect())
}

/// The formats that list a folder above an external file of `formats`. An `.rpm` lists only the folders in [`OWNED`],
/// which would otherwise remain after its removal; the distribution owns the others.
fn folder_formats(folder: &TreePath, formats: Formats) -> Option<Formats> {
    let owned = OWNED.iter().any(|own| folder.as_str().starts_with(own));
    match formats {
        formats if owned => Some(formats),
        Formats::All | Formats::Only(Format::Deb) => Some(Formats::Only(Format::Deb)),
        Formats::Only(Format::Rpm) => None,
    }
}

/// Folders outside of the prefix that an `.rpm` owns with their content: those of debug files, and that of its
/// licences.
const OWNED: [&str; 2] = ["usr/lib/debug", "usr/share/licenses/"];

pub(crate) type Entries = Vec<PackageEntry<FileSource>>;

pub(crate) type EntriesByPath = BTreeMap<TreePath, PackageEntry<FileSource>>;

fn add_folders(
    entries: &mut EntriesByPath,
    path: &TreePath,
    formats: impl Fn(&TreePath) -> Option<Formats>,
) {
    for folder in std::iter::successors(path.parent(), TreePath::parent) {
        let Some(formats) = formats(&folder) else { continue };
        let formats = match entries.get(&folder).map(|known| known.formats) {
            Some(known) if known != formats => Formats::All,
            Some(_) => continue,
            None => formats,
        };
        let (node, treatment) = (Node::Directory { mode: EXECUTABLE }, Treatment::Plain);
        entries.insert(folder.clone(), PackageEntry { path: folder, node, treatment, formats });
    }
}

pub(crate) const EXECUTABLE: u32 = 0o755;

/// The mode of a packed file, normalised: executable files have 0755, others 0644. Folders have 0755.
pub(crate) fn file_mode(mode: u32) -> u32 {
    if mode & 0o111 == 0 { 0o644 } else { EXECUTABLE }
}

/// The content of a package other than plain files below the prefix.
#[derive(Debug, Default)]
pub(crate) struct Extras {
    /// Files outside of the prefix, by their install paths.
    pub outside: EntriesByPath,
    /// The script that finds packages for GPUs, and its folder: the text differs between formats.
    pub gpu_scripts: Entries,
    pub treatments: BTreeMap<TreePath, Treatment>,
    /// Install-relative links that a debug file replaces.
    pub replaced: Vec<TreePath>,
    /// The build-ids of its debug files, in hex.
    pub build_ids: BTreeSet<String>,
    pub licences: Vec<Licence>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_folder_comes_before_what_is_in_it() {
        let mut installed = BTreeMap::new();
        installed.insert(tree_path("lib/a-b/x"), text_file("1"));
        installed.insert(tree_path("lib/a/x"), text_file("2"));
        let document = PackageEntry {
            path: tree_path("usr/share/doc/p/copyright"),
            node: text_file("3"),
            treatment: Treatment::Doc,
            formats: Formats::Only(Format::Deb),
        };
        let debug = PackageEntry {
            path: tree_path("usr/lib/debug/.build-id/x"),
            node: text_file("4"),
            treatment: Treatment::Plain,
            formats: Formats::All,
        };
        let prefix = Prefix::new("/opt/rocm-7.1").unwrap();
        let entries = entries(&prefix, installed, &BTreeMap::new(), vec![document, debug]).unwrap();
        let shown: Vec<String> = entries
            .iter()
            .map(|e| format!("{}{}", e.path, if e.formats == Formats::All { "" } else { " deb" }))
            .collect();
        let expected = [
            "opt deb",
            "opt/rocm-7.1",
            "opt/rocm-7.1/lib",
            "opt/rocm-7.1/lib/a",
            "opt/rocm-7.1/lib/a-b",
            "opt/rocm-7.1/lib/a-b/x",
            "opt/rocm-7.1/lib/a/x",
            "usr deb",
            "usr/lib deb",
            "usr/lib/debug",
            "usr/lib/debug/.build-id",
            "usr/lib/debug/.build-id/x",
            "usr/share deb",
            "usr/share/doc deb",
            "usr/share/doc/p deb",
            "usr/share/doc/p/copyright deb",
        ];
        assert_eq!(shown, expected);
    }

    fn text_file(text: &str) -> Node<FileSource> {
        Node::File { data: FileSource::Text(text.to_owned()), mode: file_mode(0) }
    }

    fn tree_path(text: &str) -> TreePath {
        TreePath::new(text).unwrap()
    }

    #[test]
    fn modes_are_one_of_two() {
        assert_eq!(
            [0o600, 0o664, 0o4755, 0o710, 0o001].map(file_mode),
            [0o644, 0o644, 0o755, 0o755, 0o755]
        );
    }
}

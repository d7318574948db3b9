//! Refuses names and paths that belong to two packages: all packages of a set can be installed together, and
//! with those of the distribution. Debug files, which packages may share, are checked where they are moved.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use derive_more::Display;
use rockpack_archive::deb::compare_versions;
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::tree::{Node, TreePath};

use crate::drafts::Draft;
use crate::extras::is_debug_path;
use crate::settings::PlanSettings;
use crate::shim;
use rockpack_package::Format;
use rockpack_report::{Findings, NameWinner, found};

/// Fails if two packages have one name (as `.deb`, which receipts use, or in one of `formats`) or one
/// path, or if a path lies below a file of another. Packages may share folders and the places of debug
/// files.
pub(crate) fn refuse(drafts: &[Draft], formats: &[Format]) -> Result<()> {
    let mut faults = Faults::default();
    let mut names: BTreeMap<(Format, &str), &Draft> = BTreeMap::new();
    let mut paths: BTreeMap<InstallPath<'_>, (&Draft, bool)> = BTreeMap::new();
    for draft in drafts {
        // Receipts and plans always identify packages by their name as .deb.
        for format in Format::ALL {
            if format == Format::Rpm && !formats.contains(&format) {
                continue;
            }
            if names.insert((format, draft.names.of(format)), draft).is_some() {
                let message = format!("two packages would be named {}", draft.names.of(format));
                let hint = "rename the group, or the package with a selector";
                faults.add(Error::new(Kind::Conflict, message).hint(hint));
            }
        }
        let inside = draft.files.iter().map(|(path, node)| (InstallPath::Inside(path), node));
        let outside = draft.extras.outside.iter().filter(|(path, _)| !is_debug_path(path));
        let outside = outside.map(|(path, entry)| (InstallPath::Outside(path), &entry.node));
        for (path, node) in inside.chain(outside) {
            let is_folder = matches!(node, Node::Directory { .. });
            if let Some((other, folder)) = paths.insert(path, (draft, is_folder))
                && !(folder && is_folder)
            {
                let (one, another) = (&other.names.deb, &draft.names.deb);
                let message = format!("{path} would be in both {one} and {another}");
                let is_shim = |draft: &Draft| draft.components.contains(shim::COMPONENT);
                let hint = if is_shim(other) || is_shim(draft) {
                    "remove it from the artifact: rockpack adds this library itself (`hip_shim`)"
                } else {
                    "packages that can be installed together cannot own the same path"
                };
                faults.add(Error::new(Kind::Conflict, message).hint(hint));
            }
        }
    }
    refuse_below_files(&paths, &mut faults);
    faults.finish()
}

/// Notes packages whose names the distribution uses for its own packages, and which of the two apt installs.
pub(crate) fn note_shared_names(setting: &PlanSettings, drafts: &[Draft], findings: &mut Findings) {
    if !setting.formats.contains(&Format::Deb) {
        return;
    }
    let version = setting.version.full(Format::Deb);
    for draft in drafts {
        let package = &draft.names.deb;
        let Some(other_version) = setting.known.package(package) else { continue };
        let winner = match compare_versions(&version, other_version) {
            Ordering::Greater => NameWinner::Set,
            Ordering::Less => NameWinner::Distribution,
            Ordering::Equal => NameWinner::Either,
        };
        findings.add(found::NameOfDistribution {
            package: package.into(),
            version: version.clone(),
            distribution: setting.known.distribution.clone(),
            other_version: other_version.to_owned(),
            winner,
        });
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Display)]
enum InstallPath<'a> {
    /// Relative to the prefix.
    #[display("{_0}")]
    Inside(&'a TreePath),
    /// Relative to the root.
    #[display("/{_0}")]
    Outside(&'a TreePath),
}

fn refuse_below_files(paths: &BTreeMap<InstallPath<'_>, (&Draft, bool)>, faults: &mut Faults) {
    let mut clear = None;
    for (path, (draft, _)) in paths {
        let InstallPath::Inside(relative) = path else { continue };
        if clear == Some(relative.folder()) {
            continue;
        }
        clear = Some(relative.folder());
        for above in std::iter::successors(relative.parent(), TreePath::parent) {
            if let Some((owner, false)) = paths.get(&InstallPath::Inside(&above)) {
                clear = None;
                let (one, another) = (&draft.names.deb, &owner.names.deb);
                let message =
                    format!("{path} of {one} is below {above}, which is not a folder in {another}");
                faults.add(Error::new(Kind::Conflict, message));
            }
        }
    }
}

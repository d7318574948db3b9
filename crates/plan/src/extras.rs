//! Finds the host files that package managers treat specially, by content and place: shared libraries,
//! licence texts, debug files.
//!
//! - A shared library has a different mode in each format.
//! - A licence text below `share/doc` or `share/licenses` is marked as one for rpm, and goes into the
//!   `copyright` of its family's packages.
//! - A debug file moves to `/usr/lib/debug/.build-id`, where gdb looks for the build-id of its library: below
//!   the prefix no debugger finds it. A debug file without a build-id, or one that cannot be read, stays at
//!   its place in the artifact, with a finding. Two files with the same build-id must be identical. Their
//!   package has no documents of its own (lintian: non-debug-file-in-debug-package).
//!
//! Source: Debian policy 8.1 and 10.9 (modes), gdb's manual, "Separate Debug Files".
//!
//! rockpack keeps the build-ids of the build, so several packages can have the same debug file: two families
//! with the same library, or two versions side by side in which a library did not change. (Fedora keeps them
//! apart by other build-ids for each release, Debian by a build-id for each build; both would change what was
//! built.) rpm lets several packages own an identical file. dpkg does not: a `.deb` has its debug files in a
//! folder of its own ([`package_debug_path`]), and its scripts make the place by build-id a link to one of them. The
//! folder's layout also suits gdb's `debug-file-directory`.

use std::collections::BTreeMap;

use object::elf;
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Faults, Kind, Result, ResultExt};
use rockpack_core::tree::{Node, TreePath};
use rockpack_elf::{ElfFile, build_id};

use crate::drafts::{Draft, LinkVersions};
use crate::naming::PackageNames;
use crate::outcome::FileSource;
use crate::recombine::{Component, Recombined};
use crate::texts::licences::{self, Licence};
use rockpack_package::{Formats, PackageEntry, RelationKind, Role, Treatment};
use rockpack_report::{ComponentFile, Findings, found};
use rockpack_split::input::artifact::ComponentKind;

pub(crate) fn add(
    recombined: &Recombined,
    drafts: &mut [Draft],
    findings: &mut Findings,
) -> Result<()> {
    let components = recombined.components.iter().map(|component| (&*component.id, component));
    let host = HostFiles(components.collect());
    let mut faults = Faults::default();
    let mut licences: BTreeMap<String, Vec<Licence>> = BTreeMap::new();
    let mut debug_files = BTreeMap::new();
    for draft in drafts.iter_mut() {
        let texts = faults.keep(host.treat(draft, findings)).unwrap_or_default();
        faults.keep(host.move_debug_files(draft, &mut debug_files, findings));
        licences.entry(draft.family.clone()).or_default().extend(texts);
    }
    for texts in licences.values_mut() {
        licences::deduplicate(texts);
    }
    // Packages of debug files, which hold nothing else, share the documents of the host that they need.
    let hosts = drafts.iter().filter(|draft| draft.role == Role::Host);
    let hosts: Vec<PackageNames> = hosts.map(|draft| draft.names.clone()).collect();
    for draft in drafts {
        if !draft.extras.build_ids.is_empty() {
            let needed = hosts.iter().find(|host| {
                let link = LinkVersions::Exact.link(RelationKind::Depends, host);
                draft.links.contains(&link)
            });
            draft.documents_of = needed.cloned();
        }
        draft.extras.licences = licences.get(&draft.family).cloned().unwrap_or_default();
    }
    faults.finish()
}

struct HostFiles<'a>(BTreeMap<&'a str, &'a Component>);

impl<'a> HostFiles<'a> {
    /// The bytes of a host file as in the input, with its component.
    fn content(&self, source: &FileSource) -> Option<(&'a Component, &'a Content)> {
        let (FileSource::Host { component, path } | FileSource::Fat { component, path, .. }) =
            source
        else {
            return None;
        };
        let component = self.0.get(&**component)?;
        Some((component, component.host.get(path)?.data()?.kind.original()))
    }

    /// Marks libraries and licence texts, and returns the texts.
    fn treat(&self, draft: &mut Draft, findings: &mut Findings) -> Result<Vec<Licence>> {
        let mut found = Vec::new();
        for (path, node) in &draft.files {
            let Node::File { data, .. } = node else { continue };
            let is_licence = licences::is_licence(path);
            if !is_licence && !is_library_name(path.name()) {
                continue;
            }
            let Some((component, content)) = self.content(data) else { continue };
            if is_licence {
                draft.extras.treatments.insert(path.clone(), Treatment::License);
                found.extend(licences::read(component, path, content, findings)?);
            } else if is_library(content)? {
                draft.extras.treatments.insert(path.clone(), Treatment::Library);
            }
        }
        Ok(found)
    }

    /// Moves the debug files of `draft` to the place where debuggers look; `known` has the files of all
    /// drafts.
    fn move_debug_files(
        &self,
        draft: &mut Draft,
        known: &mut BTreeMap<TreePath, &'a Content>,
        findings: &mut Findings,
    ) -> Result<()> {
        let mut components = draft.components.iter().filter_map(|id| self.0.get(id.as_str()));
        if !components.any(|component| component.kind == ComponentKind::Dbg) {
            return Ok(());
        }
        let mut moved: BTreeMap<TreePath, TreePath> = BTreeMap::new();
        for (path, node) in &draft.files {
            let Node::File { data, .. } = node else { continue };
            let Some((component, content)) = self.content(data) else { continue };
            if component.kind != ComponentKind::Dbg {
                continue;
            }
            let file = ComponentFile::new(&*component.id, path);
            let file_with_id = ElfFile::read(content, elf::EM_X86_64);
            let id = match file_with_id.and_then(|it| it.map_or(Ok(None), |it| build_id(&it))) {
                Ok(Some(id)) => id,
                Err(error) if error.is_read_failure() => {
                    return Err(error.structure(file.to_string()));
                }
                found => {
                    let reason = found.err().map(|error| error.message().to_owned());
                    findings.add(found::DebugFileWithoutId { file, reason });
                    continue;
                }
            };
            let place = debug_path(&id)?;
            if !known.entry(place.clone()).or_insert(content).same_bytes(content)? {
                let message = format!("{path} has the build-id {id} of another debug file");
                let hint = "a build-id must identify one file: rebuild both";
                let error = Error::new(Kind::Conflict, message).structure(&*component.id);
                return Err(error.hint(hint));
            }
            let entry = PackageEntry {
                path: place.clone(),
                node: node.clone(),
                treatment: Treatment::Plain,
                formats: Formats::All,
            };
            draft.extras.outside.insert(place.clone(), entry);
            draft.extras.build_ids.insert(id);
            moved.insert(path.clone(), place);
        }
        let replaced = draft.files.iter().filter(|(path, node)| is_superseded(path, node, &moved));
        draft.extras.replaced = replaced.map(|(path, _)| path.clone()).collect();
        let replaced = &draft.extras.replaced;
        draft.files.retain(|path, _| !moved.contains_key(path) && !replaced.contains(path));
        Ok(())
    }
}

/// Whether `content`, a file with the name of a library, is an x86-64 shared object and not a program. A file that
/// cannot be parsed is not a library.
fn is_library(content: &Content) -> Result<bool> {
    let read = ElfFile::read(content, elf::EM_X86_64).if_readable()?;
    let Some(file) = read.flatten() else { return Ok(false) };
    let is_program = file.segment(elf::PT_INTERP).is_some();
    Ok(file.header.e_type == elf::ET_DYN && !is_program)
}

/// Whether a name is that of a library: `libx.so`, `libx.so.5.2`.
pub(crate) fn is_library_name(name: &str) -> bool {
    let versioned = name
        .rsplit_once(".so.")
        .is_some_and(|(_, version)| version.chars().all(|c| c.is_ascii_digit() || c == '.'));
    versioned || name.ends_with(".so")
}

pub(crate) const DEBUG_ROOT: &str = "usr/lib/debug";

const DEBUG_FOLDER: &str = "usr/lib/debug/.build-id";

/// Whether `node` is a build-id link to a debug file that moves to the path of this link.
pub(crate) fn is_superseded(
    path: &TreePath,
    node: &Node<FileSource>,
    moved: &BTreeMap<TreePath, TreePath>,
) -> bool {
    let Node::Link { target } = node else { return false };
    // Builds with split debug files put them there, relative to the prefix.
    let below = path.as_str().strip_prefix(".build-id");
    let place = path.resolve_link(target).and_then(|target| moved.get(&target));
    below.zip(place).is_some_and(|(below, place)| {
        place.as_str().strip_prefix(DEBUG_FOLDER).is_some_and(|own| own == below)
    })
}

/// The path `…/xx/yyyy….debug` of a build-id, as debuggers form it.
pub(crate) fn debug_path(id: &str) -> Result<TreePath> {
    let (folder, rest) = id.split_at_checked(2).unwrap_or((id, ""));
    TreePath::new(format!("{DEBUG_FOLDER}/{folder}/{rest}.debug"))
}

pub(crate) fn is_debug_path(path: &TreePath) -> bool {
    path.as_str().strip_prefix(DEBUG_FOLDER).is_some_and(|rest| rest.starts_with('/'))
}

/// The path of the debug file for `place` in the `.deb` called `package`.
pub(crate) fn package_debug_path(package: &str, place: &TreePath) -> Result<TreePath> {
    let rest = place.as_str().strip_prefix(DEBUG_ROOT).unwrap_or_default();
    TreePath::new(format!("{DEBUG_ROOT}/{package}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_libraries_are_told_from_names_that_look_like_them() {
        for name in ["libx.so", "libx.so.5", "libx.so.5.2", "module.so"] {
            assert!(is_library_name(name), "{name}");
        }
        for name in ["Kernels.so-000-gfx1100.hsaco", "libx.so.txt", "x.sol", "libx.a"] {
            assert!(!is_library_name(name), "{name}");
        }
    }

    #[test]
    fn debug_files_lie_where_gdb_looks() {
        let place = debug_path("abcdef").unwrap();
        assert_eq!(place.as_str(), "usr/lib/debug/.build-id/ab/cdef.debug");
        assert!(is_debug_path(&place));
        let own = package_debug_path("rocm-x-dbgsym", &place).unwrap();
        assert_eq!(own.as_str(), "usr/lib/debug/rocm-x-dbgsym/.build-id/ab/cdef.debug");
        assert!(!is_debug_path(&own));
    }
}

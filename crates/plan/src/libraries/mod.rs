//! Finds the portions and external libraries that each portion needs, by what its programs link to.
//!
//! `library_set` looks up each library. A library outside of the linker path is *private*: files that find it
//! depend on its package, and no file elsewhere should find it by its name. The host package depends on the
//! needs of libraries in kernel packages, and kernel packages depend on the host package.

pub(super) mod discovered;
mod interpreters;
mod library_set;
pub(super) mod rules;
mod search_paths;
pub(super) mod symbols;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use object::elf;
use rockpack_core::content::Content;
use rockpack_core::error::{Result, ResultExt};
use rockpack_core::tree::{Node, TreePath};
use rockpack_elf::{ElfFile, Linking};

use crate::config::Runpath;
use crate::contents::Portion;
use crate::layout::file_mode;
use crate::settings::PlanSettings;
use discovered::{Discovered, Gatherer};
use interpreters::InterpreterNeeds;
use library_set::{LibrarySet, LinkedFile, LocatedFile};
use rockpack_package::dependencies::script::FirstLine;
use rockpack_package::receipt::listing::Listing;
use rockpack_report::{ComponentFile, DynamicPart, Findings, found};
use rockpack_split::host_binary::SHIM;
use rockpack_split::input::artifact::ComponentKind;
use rockpack_split::{HostBinary, HostKind};
use symbols::SetSymbols;

/// Reads the dynamic sections of all programs and libraries of a set that updates `earlier` ones.
pub(super) fn discover(
    setting: &PlanSettings,
    portions: &[Portion<'_>],
    earlier: &[Listing],
    findings: &mut Findings,
) -> Result<Linkage> {
    let mut linkage = Linkage::default();
    let linked_files = linked_files(setting, portions, &mut linkage, findings)?;
    let library_set = LibrarySet::new(setting, portions, &linked_files);
    let linked = linked_files.iter();
    let located = linked.map(|(linked, path)| locate(&library_set, linked, path, findings));
    let mut located: Vec<_> = located.collect();
    search_paths::mark_inherited(&library_set, &mut located);
    let public = library_set.public_files();
    let mut gatherer = Gatherer::new(setting);
    let mut interpreters = InterpreterNeeds::new(setting, portions);
    for file in &located {
        for (_, library) in file.in_set() {
            let portion = file.linked.portion;
            let others = library.portions.iter().copied().filter(|other| *other != portion);
            linkage.needs.entry(portion).or_default().extend(others);
        }
        gatherer.add(file, public.contains(file.linked.path))?;
        interpreters.add(file.linked);
    }
    let names = portions.iter().map(|portion| Ok(portion.host_names(&setting.names)?.deb));
    let names = names.collect::<Result<Vec<String>>>()?;
    linkage.symbols = symbols::find(setting, &library_set, &located, (&names, earlier));
    let name = |index: usize| names.get(index).cloned().unwrap_or_default();
    symbols::note_lacking(&library_set, &located, name, findings);
    search_paths::note_out_of_reach(&located, name, findings);
    search_paths::note_misplaced(setting, &library_set, &located, name, findings);
    linkage.discovered = gatherer.finish(name, findings)?;
    interpreters.finish(name, &mut linkage, findings)?;
    Ok(linkage)
}

fn locate<'a>(
    library_set: &LibrarySet<'_>,
    linked: &'a LinkedFile<'a>,
    search_path: &'a str,
    findings: &mut Findings,
) -> LocatedFile<'a> {
    let order = library_set.order(search_path, linked.path);
    let mut places = BTreeMap::new();
    for name in linked.needs.linking.iter().flat_map(|linking| &linking.needed) {
        if !places.contains_key(name.as_str()) {
            places.insert(name.as_str(), library_set.find(name, linked, &order, findings));
        }
    }
    LocatedFile { linked, search_path, places }
}

/// The files with needs, and their search paths: files of host packages, and libraries in kernel packages, for whose
/// needs the host package depends.
fn linked_files<'a>(
    setting: &PlanSettings,
    portions: &'a [Portion<'a>],
    linkage: &mut Linkage,
    findings: &mut Findings,
) -> Result<Vec<(LinkedFile<'a>, String)>> {
    let mut linked_files = Vec::new();
    for (index, portion) in portions.iter().enumerate() {
        let host = portion.files.iter().filter_map(|(path, owned)| match owned.node {
            Node::File { data, mode } => {
                Some((owned.component, *path, packed_content(setting, &data.kind), Some(*mode)))
            }
            _ => None,
        });
        let databases = portion.databases.iter().map(|database| {
            let content = Ok(Cow::Borrowed(&database.file.content));
            (database.component, &database.file.path, content, None)
        });
        for (component, path, content, mode) in host.chain(databases) {
            let content = content.context(|| format!("reading {path}"))?;
            let in_host = mode.is_some();
            match (in_host, is_native(&content)?) {
                (true, true) => drop(linkage.native.insert(index)),
                (false, false) => continue,
                _ => {}
            }
            let (kind, component) = (component.kind, &*component.id);
            let gets_rpath =
                in_host && search_paths::gets_rpath(setting, &content, component, path, findings)?;
            if gets_rpath {
                linkage.rewritten.insert(path.clone());
            }
            if !setting.parts.runs_programs_of(kind) {
                note_unread_needs(&content, kind, component, path, findings)?;
                continue;
            }
            let file = ComponentFile::new(component, path);
            let read = needs(&content, mode.unwrap_or(0));
            let read = read_or_note(read, &file, DynamicPart::NeededLibraries, findings)?;
            let stated = read.filter(|it| it.linking.is_some() || it.script.is_some());
            let Some(mut needs) = stated else { continue };
            if let Some(linking) = needs.linking.as_mut().filter(|_| gets_rpath) {
                linking.rpath = linking.runpath.take();
            }
            let family = portion.family.as_str();
            let linked = LinkedFile { portion: index, family, path, needs, in_host };
            let (search_path, is_new) =
                search_paths::search_path(setting, &linked, &content, component, findings)?;
            if is_new {
                linkage.rewritten.insert(path.clone());
            }
            linked_files.push((linked, search_path));
        }
    }
    if setting.runpath() == Runpath::Rpath && !linkage.rewritten.is_empty() {
        let files = linkage.rewritten.iter().cloned().collect();
        findings.add(found::RpathForRunpath { files });
    }
    Ok(linked_files)
}

/// The file as installed, without its final marker, which is not known yet and does not affect needs.
fn packed_content<'a>(setting: &PlanSettings, kind: &'a HostKind) -> Result<Cow<'a, Content>> {
    match kind {
        HostKind::Fat(fat)
            if setting.shim.is_some() && matches!(fat.binary, HostBinary::Fat(_)) =>
        {
            fat.binary.with_marker(b"marker", SHIM).map(Cow::Owned)
        }
        _ => Ok(Cow::Borrowed(kind.original())),
    }
}

/// The result of reading `part` of a file. `None` for a damaged file: it is packed unchanged, with a finding.
fn read_or_note<T>(
    read: Result<T>,
    file: &ComponentFile,
    part: DynamicPart,
    findings: &mut Findings,
) -> Result<Option<T>> {
    match read {
        Err(error) if !error.is_read_failure() => {
            let (file, reason) = (file.clone(), error.message().to_owned());
            findings.add(found::LibrariesUnreadable { file, part, reason });
            Ok(None)
        }
        read => read.map(Some),
    }
}

/// Notes a file that needs libraries in a part whose programs are not run.
fn note_unread_needs(
    content: &Content,
    kind: ComponentKind,
    component: &str,
    path: &TreePath,
    findings: &mut Findings,
) -> Result<()> {
    // A damaged file states no needs either.
    let linking = linking(content).if_readable()?.flatten();
    if linking.is_some_and(|linking| !linking.needed.is_empty()) {
        let file = ComponentFile::new(component, path);
        findings.add(found::LibrariesNotAsked { file, kind });
    }
    Ok(())
}

/// The needs of the portions of a set, by index of the portion.
#[derive(Debug, Default)]
pub(crate) struct Linkage {
    /// Portion → portions whose libraries it links to, without itself.
    pub needs: BTreeMap<usize, BTreeSet<usize>>,
    pub native: BTreeSet<usize>,
    /// Paths of files whose search paths, or options for them, change.
    pub rewritten: BTreeSet<TreePath>,
    /// Paths of scripts that get another first line, with that line.
    pub first_lines: BTreeMap<TreePath, FirstLine>,
    /// Portion → its needs from outside, and its offers.
    pub discovered: BTreeMap<usize, Discovered>,
    /// The libraries and symbols that packages of this set and of earlier ones import.
    pub symbols: SetSymbols,
}

impl Linkage {
    /// The nearest portions that `index` needs, directly or indirectly, and for which `wanted` holds. Portions
    /// further on are dependencies of these.
    pub fn nearest(&self, index: usize, wanted: impl Fn(usize) -> bool) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut seen = BTreeSet::from([index]);
        let mut open = vec![index];
        while let Some(at) = open.pop() {
            for &next in self.needs.get(&at).into_iter().flatten() {
                if !seen.insert(next) {
                    continue;
                }
                if wanted(next) {
                    found.insert(next);
                } else {
                    open.push(next);
                }
            }
        }
        found
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Needs {
    pub linking: Option<Linking>,
    pub script: Option<FirstLine>,
    pub is_executable: bool,
}

/// Whether `content` is for one processor: an ELF file or a static archive.
fn is_native(content: &Content) -> Result<bool> {
    let start = content.read_vec(0..content.len().min(8), 8, "start of a file")?;
    Ok(start.starts_with(b"\x7fELF") || start.starts_with(b"!<arch>\n"))
}

/// Reads the needs of an input file with `mode`. Only x86-64 programs and libraries have any; files without a dynamic
/// section (objects, static programs) have none.
fn needs(content: &Content, mode: u32) -> Result<Needs> {
    let is_executable = file_mode(mode) & 0o111 != 0;
    let script = if is_executable { FirstLine::read(content)? } else { None };
    Ok(Needs { linking: linking(content)?, script, is_executable })
}

fn linking(content: &Content) -> Result<Option<Linking>> {
    ElfFile::read(content, elf::EM_X86_64)?.map_or(Ok(None), |file| Linking::read(&file))
}

#[cfg(test)]
mod tests {
    use rockpack_core::run::Budget;

    use super::*;

    #[test]
    fn kernels_are_found_after_hosts_without_any() {
        let needs = [(0, vec![1, 4]), (1, vec![2, 0]), (2, vec![3]), (4, vec![])]
            .map(|(from, to)| (from, to.into_iter().collect()))
            .into();
        let linkage = Linkage { needs, ..Linkage::default() };
        assert_eq!(linkage.nearest(0, |at| at == 2 || at == 3), BTreeSet::from([2]));
        assert_eq!(linkage.nearest(0, |_| true), BTreeSet::from([1, 4]));
        assert!(linkage.nearest(4, |_| true).is_empty());
    }

    #[test]
    fn other_files_need_nothing() {
        for bytes in [b"".to_vec(), b"\x7fELF".to_vec(), vec![0; 100], b"#!/bin/sh\n".repeat(9)] {
            assert_eq!(needs(&Content::of_bytes(bytes), 0o644).unwrap(), Needs::default());
        }
        let script = needs(&Content::of_bytes(*b"#!/bin/sh"), 0o755).unwrap();
        assert_eq!(script.script.unwrap().interpreter, "/bin/sh");
        let own = std::env::current_exe().unwrap();
        let found = linking(&Content::open(own, &Budget::unlimited()).unwrap()).unwrap();
        assert!(found.is_some_and(|found| found.soname.is_none() && found.interpreter.is_some()));
    }
}

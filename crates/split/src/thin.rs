//! Removes the code of other targets from a tree whose files stay fat.
//!
//! | file | becomes |
//! |---|---|
//! | fat binary | the same binary with fewer entries in its bundles, shorter by whole pages |
//! | file of bundles | the same bundles with fewer entries |
//! | kernel database file or kernel archive without code for a kept target | removed, as are links to it |
//! | everything else, and a binary that cannot be rewritten | unchanged |
//!
//! A bundle keeps its kind, alignment and order; a compressed one is compressed again with the same CCOB version. A
//! bundle or binary that would not be shorter stays unchanged, and so does an LLVM offload binary with a kept target.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rayon::prelude::*;
use rockpack_core::content::{Content, Spool};
use rockpack_core::error::{Error, Faults, Kind, Result, ResultExt};
use rockpack_core::gfx::{self, Target};
use rockpack_core::tree::{ArtifactName, ComponentKind, LinkSet, Node, Tree, TreePath};
use rockpack_elf::ccob;
use rockpack_elf::code_object::{is_code_object, read_header};
use rockpack_elf::fatbin::{self, Bundles, FatbinBundle};
use rockpack_elf::kpack::split_key;
use rockpack_elf::marker::{self, AnyMarker};
use rockpack_report::words::few;
use rockpack_report::{Code, Finding, Findings, found};

use crate::archives::{distinct_rows, split_alone};
use crate::code_objects::entry_target;
use crate::fat_binary::{dangling_wrapper, keep_fat};
use crate::host_binary::{Analysis, MovedBundle};
use crate::input::artifact::{Artifact, StagePrefix};
use crate::input::database::DatabaseRules;
use crate::parts::{DatabaseFile, HostBinary, KernelArchive, Notes, SplitArtifact, SplitPolicy};

pub struct ThinOptions<'a> {
    pub rules: &'a DatabaseRules,
    /// The targets whose code stays.
    pub targets: &'a [Target],
    /// Whether a wrapper may lose all its code.
    pub allows_empty: bool,
    /// Holds the bundles that were compressed again.
    pub spool: &'a Spool,
}

/// The differences of the thinned tree from the original.
#[derive(Debug, Default)]
pub struct Thinned {
    /// The files that change, and the files and links that are removed (`None`).
    pub changes: BTreeMap<TreePath, Option<Content>>,
    /// The targets of all code that was found.
    pub targets: BTreeSet<Target>,
    /// The files that keep code of other targets.
    pub findings: Findings,
    /// The binaries with wrappers that lose all their code, unless that is allowed.
    pub emptied: Vec<Error>,
}

impl Thinned {
    fn note(&mut self, findings: &Findings) {
        for finding in findings.iter().filter(|finding| is_kept_code_finding(finding)) {
            if let Some(kept) = finding.found::<found::KeptFat>() {
                self.targets.extend(kept.targets.iter().cloned());
            }
            self.findings.add(finding.clone());
        }
    }
}

/// Whether code for `code` runs on some GPUs of `kept`. Features that `kept` does not specify match both settings.
pub fn serves(code: &Target, kept: &Target) -> bool {
    let is_other = |(name, on): &(String, bool)| {
        let mut fixed = kept.features().iter();
        fixed.any(|(kept_name, kept_on)| kept_name == name && kept_on != on)
    };
    let base = code.base();
    let is_base = base == kept.base() || Some(base) == gfx::generic_of(kept.base());
    base.is_spirv() || is_base && !code.features().iter().any(is_other)
}

/// Thins `tree`, which findings call `name`.
pub fn thin(name: &str, tree: &Tree<Content>, options: &ThinOptions<'_>) -> Result<Thinned> {
    let prefix = StagePrefix { path: String::new(), module: None, tree: tree.clone() };
    // Like a wheel, the tree has no artifact name.
    let kind = ComponentKind::Lib;
    let artifact_name = ArtifactName { name: "tree".to_owned(), kind, gpu_family: String::new() };
    let artifact = Artifact::new(name, artifact_name, Path::new(name), vec![prefix]);
    let policy = SplitPolicy { opens_bundles: false, ..SplitPolicy::lenient(options.rules) };
    let split = split_alone(&artifact, &policy)?;
    let mut thinned = Thinned::default();
    thinned.note(&split.findings);
    let mut faults = Faults::default();
    thin_binaries(&split, options, &mut thinned, &mut faults);
    for file in &split.databases {
        let changed = options.thin_database_file(file, &mut thinned.targets);
        let changed = changed.context(|| format!("thinning {}", file.path));
        if let Some(Some(change)) = faults.keep(changed) {
            thinned.changes.insert(file.path.clone(), change);
        }
    }
    faults.keep(remove_archives(&split, options, &mut thinned));
    keep_link_targets(tree, options, &mut thinned);
    remove_dangling_links(tree, &mut thinned);
    faults.finish().map(|()| thinned)
}

/// Whether a finding of the split is about device code that stays where it is.
fn is_kept_code_finding(finding: &Finding) -> bool {
    let kept = [
        Code::KeptFat,
        Code::DeviceCodeEmbedded,
        Code::DeviceCodeInData,
        Code::FatDevelopmentFile,
        Code::NoSectionTable,
    ];
    finding.code().is_some_and(|code| kept.contains(&code))
}

fn thin_binaries(
    split: &SplitArtifact,
    options: &ThinOptions<'_>,
    thinned: &mut Thinned,
    faults: &mut Faults,
) {
    let fat = split.binaries().filter_map(|(path, fat)| match &fat.binary {
        HostBinary::Fat(analysis) => Some((path, analysis)),
        HostBinary::Transformed(_) => None,
    });
    let all: Vec<_> = fat.collect();
    let results: Vec<_> = all
        .into_par_iter()
        .map(|(path, analysis)| (path, analysis, options.thin_binary(analysis)))
        .collect();
    for (path, analysis, thin) in results {
        let thin = match thin {
            Err(error) if error.kind() == Kind::Unsupported => {
                let mut notes = Notes::new(split.label(), Findings::default());
                let reason = Err(error.message());
                faults.keep(keep_fat(path, analysis.original(), reason, &mut notes));
                thinned.note(&notes.finish());
                continue;
            }
            thin => faults.keep(thin.context(|| format!("thinning {path}"))),
        };
        let Some(thin) = thin else { continue };
        thinned.targets.extend(thin.targets);
        let emptied = thin.emptied.map(|error| error.context(format!("thinning {path}")));
        thinned.emptied.extend(emptied);
        thinned.changes.extend(thin.content.map(|content| (path.clone(), Some(content))));
    }
}

fn remove_archives(
    split: &SplitArtifact,
    options: &ThinOptions<'_>,
    thinned: &mut Thinned,
) -> Result<()> {
    let mut names = [BTreeSet::new(), BTreeSet::new()];
    for archive in &split.archives {
        let targets = archive_targets(archive).context(|| format!("reading {}", archive.path))?;
        let is_kept = targets.iter().any(|target| options.keeps(target));
        let keys = archive.reader.toc().rows.keys();
        let kernel_names = keys.map(|key| split_key(key).map_or(key.as_str(), |(name, _)| name));
        names[usize::from(is_kept)].extend(kernel_names);
        if !is_kept && !targets.is_empty() {
            thinned.changes.insert(archive.path.clone(), None);
        }
        thinned.targets.extend(targets);
    }
    let [removed, kept] = names;
    for (_, fat) in split.binaries() {
        let HostBinary::Transformed(transformed) = &fat.binary else { continue };
        let AnyMarker::Map(marker) = marker::parse(transformed.marker())? else { continue };
        let name = marker.kernel_name.as_str();
        if removed.contains(name) && !kept.contains(name) {
            thinned.emptied.extend(options.empty_error(transformed.content(), "in archives"));
        }
    }
    Ok(())
}

fn archive_targets(archive: &KernelArchive) -> Result<BTreeSet<Target>> {
    let mut targets = BTreeSet::new();
    for rows in archive.reader.toc().rows.values() {
        targets.extend(distinct_rows(rows)?.into_iter().map(|row| row.target));
    }
    Ok(targets)
}

/// Keeps files that a link with a kept arch in its path points to: one file may serve several archs.
fn keep_link_targets(tree: &Tree<Content>, options: &ThinOptions<'_>, thinned: &mut Thinned) {
    let mut names: BTreeSet<&str> = BTreeSet::new();
    loop {
        let links = tree.iter().filter_map(|(path, node)| match node {
            Node::Link { target } => Some((path, target)),
            _ => None,
        });
        let is_named = |path: &TreePath| {
            let mut archs = gfx::archs_in(path.as_str()).into_iter();
            archs.any(|arch| options.keeps(&arch.into()))
        };
        let has_linked_name = |path: &TreePath| path.components().any(|part| names.contains(part));
        let kept = links.filter(|(path, _)| is_named(path) || has_linked_name(path));
        let new = kept.filter_map(|(_, target)| {
            target.rsplit('/').find(|part| !matches!(*part, "" | "." | ".."))
        });
        let all: BTreeSet<&str> = new.chain(names.iter().copied()).collect();
        if all.len() == names.len() {
            break;
        }
        names = all;
    }
    let has_linked_name = |path: &TreePath| path.components().any(|part| names.contains(part));
    thinned.changes.retain(|path, change| change.is_some() || !has_linked_name(path));
}

fn remove_dangling_links(tree: &Tree<Content>, thinned: &mut Thinned) {
    let dangling = |changes: &BTreeMap<TreePath, Option<Content>>| -> BTreeSet<TreePath> {
        let mut links = LinkSet::default();
        let is_kept = |path| !matches!(changes.get(path), Some(None));
        for (path, node) in tree.iter().filter(|(path, _)| is_kept(*path)) {
            links.add_node(path, node, "");
        }
        links.dangling().into_iter().map(|link| link.path).collect()
    };
    let before = dangling(&BTreeMap::new());
    let after = dangling(&thinned.changes);
    thinned.changes.extend(after.difference(&before).map(|path| (path.clone(), None)));
}

struct ThinBinary {
    content: Option<Content>,
    targets: BTreeSet<Target>,
    emptied: Option<Error>,
}

#[derive(Default)]
struct ThinBundles {
    bundles: Vec<MovedBundle>,
    is_changed: bool,
    /// Old offsets of bundles that lost all their code.
    emptied: BTreeSet<u64>,
    targets: BTreeSet<Target>,
}

impl ThinOptions<'_> {
    fn keeps(&self, code: &Target) -> bool {
        self.targets.iter().any(|kept| serves(code, kept))
    }

    fn thin_binary(&self, analysis: &Analysis) -> Result<ThinBinary> {
        let section = analysis.fatbin();
        let ThinBundles { bundles, is_changed, emptied, targets } = self.thin_bundles(&section)?;
        let starts: BTreeSet<u64> = bundles.iter().map(|bundle| bundle.from.start).collect();
        let wrappers = analysis.wrappers();
        if let Some(dangling) = wrappers.iter().find(|it| !starts.contains(&it.bundle_offset)) {
            return Err(dangling_wrapper(dangling, &section));
        }
        let empty = wrappers.iter().filter(|it| emptied.contains(&it.bundle_offset)).count();
        let place = format!("for {empty} of {} wrappers", wrappers.len());
        let emptied = (empty > 0).then(|| self.empty_error(analysis.original(), &place)).flatten();
        let changed = is_changed.then(|| analysis.with_bundles(bundles)).transpose()?;
        let content = changed.filter(|content| content.len() < analysis.original().len());
        Ok(ThinBinary { content, targets, emptied })
    }

    /// The error for a binary that loses all code of some wrappers, unless that is allowed.
    fn empty_error(&self, binary: &Content, place: &str) -> Option<Error> {
        let message =
            format!("would have no code left {place}: it has none for {}", few(self.targets, 5));
        let error = Error::new(Kind::Usage, message).hint(
            "its kernels would fail on every GPU: keep a target that the file has code for, or pass \
             --allow-empty",
        );
        let error = binary.files().next().into_iter().fold(error, Error::file);
        (!self.allows_empty).then_some(error)
    }

    /// The change of a database file: its new bytes, or `None` if it is removed.
    fn thin_database_file(
        &self,
        file: &DatabaseFile,
        targets: &mut BTreeSet<Target>,
    ) -> Result<Option<Option<Content>>> {
        let mut archs: Vec<Target> = file.archs.iter().cloned().map(Target::from).collect();
        if let ([arch], true) = (&*file.archs, is_code_object(&file.content)?) {
            let target = read_header(&file.content)?.target;
            let features = target.map(|target| target.features().to_vec()).unwrap_or_default();
            archs = vec![Target::new(arch.clone(), features)];
        }
        let is_kept = archs.iter().any(|arch| self.keeps(arch));
        if !is_kept || !fatbin::starts_bundle(&file.content)? {
            targets.extend(archs);
            return Ok((!is_kept).then_some(None));
        }
        let thin = self.thin_bundles(&file.content)?;
        targets.extend(thin.targets);
        if thin.emptied.len() == thin.bundles.len() {
            return Ok(Some(None));
        }
        let changed = thin.is_changed.then(|| MovedBundle::join(&thin.bundles)).transpose()?;
        Ok(changed.map(Some))
    }

    /// Thins the bundles of a section or file, and moves them to its front.
    fn thin_bundles(&self, section: &Content) -> Result<ThinBundles> {
        let mut thin = ThinBundles::default();
        let mut end = 0_u64;
        for next in Bundles::new(section) {
            let next = next?;
            let from = next.offset..next.offset + next.extent;
            // Keeps the alignment of the bundle, up to a page. Offsets within a file cannot overflow here.
            let to = end.next_multiple_of(1 << next.offset.trailing_zeros().min(ALIGNMENT_BITS));
            let content = match self.thin_bundle(&next, &mut thin)? {
                Some(content) if content.len() < next.extent => {
                    thin.is_changed = true;
                    content
                }
                _ => section.slice(from.clone())?,
            };
            end = to + content.len();
            thin.bundles.push(MovedBundle { from, to, content });
        }
        Ok(thin)
    }

    fn thin_bundle(&self, found: &FatbinBundle, thin: &mut ThinBundles) -> Result<Option<Content>> {
        if found.bundle.is_binary {
            for entry in &found.bundle.entries {
                thin.targets.extend(entry_target(entry)?);
            }
            return Ok(None);
        }
        let (mut had_code, mut keeps_code) = (false, false);
        let only = found.bundle.only(|entry| {
            let Some(target) = entry_target(entry)? else { return Ok(true) };
            let is_kept = self.keeps(&target);
            thin.targets.insert(target);
            (had_code, keeps_code) = (true, keeps_code || is_kept);
            Ok(is_kept)
        })?;
        if had_code && !keeps_code {
            thin.emptied.insert(found.offset);
        }
        match (only, &found.compression) {
            (Some(bundle), Some(header)) => {
                self.spool.append(&ccob::write(header.version, header.method, &bundle)?).map(Some)
            }
            (only, _) => Ok(only),
        }
    }
}

/// Logarithm of the largest alignment of bundles: a page.
const ALIGNMENT_BITS: u32 = 12;

//! The search for shards and their artifacts, and for install trees.
//!
//! A root is a shard (a folder of artifacts, each a folder itself or packed), a folder of shards or an install
//! tree; its content decides which. A root may also be a tarball of an install tree, or one ELF file. An entry
//! with the name of a packed artifact counts as one, so that no unreadable archive is skipped. A folder is an
//! artifact if it has a manifest, or at least an artifact's name. It is a shard if it contains artifacts; in a
//! folder with an artifact's name, only those with manifests count. `remote` reads addresses. A scan skips entries
//! whose names only begin like an artifact's (`blas_lib_gfx1151.tar.gz`), with a warning. It refuses a checksum
//! without its archive, because the artifact was lost in a copy.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rockpack_core::content::{Inputs, exists, is_file};
use rockpack_core::error::{Error, Faults, Kind, Result, ResultExt};
use rockpack_core::run::Budget;
use rockpack_core::tree::{ArtifactName, TreePath};

use super::ScanOptions;
use super::folder::{FolderEntry, list, list_matching, locate, open_manifest};
use super::kind::{
    FolderEntryKind, artifact_in, is_tree_without_artifacts, kind_of, named_like_artifacts,
    packed_name, refuse_unread,
};
use super::manifest::MANIFEST_NAME;
use super::packed::{CHECKSUM_ENDING, parse_name};
use super::remote::{RemoteArtifact, address_list};
use crate::input::tree::{
    INPUTS, InputPath, ONE_ARTIFACT, ONE_ARTIFACT_HINT, TreeForm, find_prefix, form_of,
    parse_tarball,
};
use rockpack_remote::Remote;
use rockpack_report::{Findings, found};

pub(super) struct Roots {
    pub shards: BTreeMap<String, FoundShard>,
    pub trees: Vec<FoundTree>,
    pub inputs: Inputs,
    pub findings: Findings,
    pub faults: Faults,
    prefix: Option<TreePath>,
    pub(super) remote: Arc<Remote>,
}

pub(super) struct FoundShard {
    pub folder: PathBuf,
    /// The artifacts in name order, not yet read.
    pub artifacts: Vec<FolderEntry>,
    /// The artifacts at addresses.
    pub objects: Vec<RemoteArtifact>,
}

pub(super) struct FoundTree {
    /// The name of its folder, or of its tarball without the ending.
    pub name: String,
    pub input: InputPath,
    pub form: TreeForm,
}

impl Roots {
    /// No roots yet. The lists of the input count against `budget`.
    fn within(budget: &Budget) -> Self {
        Self {
            shards: BTreeMap::new(),
            trees: Vec::new(),
            inputs: Inputs::within(budget),
            findings: Findings::default(),
            faults: Faults::default(),
            prefix: None,
            remote: Arc::default(),
        }
    }

    pub fn find(roots: &[InputPath], options: &ScanOptions) -> Self {
        let (prefix, remote) = (options.prefix.clone(), Arc::clone(&options.remote));
        let mut found = Self { prefix, remote, ..Self::within(&options.budget) };
        for root in roots {
            match &root.address {
                Some(address) => found.add_address(root, address),
                None => found.add_root(root),
            }
        }
        found
    }

    /// A shard with only the artifact at `path`.
    pub fn of_artifact(path: &Path, shard: String, entry: FolderEntry, budget: &Budget) -> Self {
        let folder = path.to_path_buf();
        let only = FoundShard { folder, artifacts: vec![entry], objects: Vec::new() };
        Self { shards: [(shard, only)].into(), ..Self::within(budget) }
    }

    pub fn find_shard(folder: &Path, budget: &Budget) -> Self {
        let mut found = Self::within(budget);
        if found.faults.keep(refuse_unreadable(folder)).is_none() {
            return found;
        }
        let entries = list(folder, &mut found.inputs, &mut found.faults);
        let kinds = found.kinds(&entries, false);
        found.add_shard(folder, entries, &kinds);
        found
    }

    /// Moves the install trees to a new value, which also has the names of the shards, so that no tree gets one.
    pub fn take_trees(&mut self) -> Self {
        let reserved = self.shards.iter().map(|(name, shard)| {
            let folder = shard.folder.clone();
            (name.clone(), FoundShard { folder, artifacts: Vec::new(), objects: Vec::new() })
        });
        let (shards, trees) = (reserved.collect(), std::mem::take(&mut self.trees));
        Self { shards, trees, ..Self::within(self.inputs.budget()) }
    }

    fn add_root(&mut self, input: &InputPath) {
        let root = &*input.path;
        match self.faults.keep(is_file(root)) {
            Some(false) => {}
            Some(true) => {
                if let Some(listed) = self.faults.keep(address_list(root)).flatten() {
                    return self.add_listed(input, &listed);
                }
                let form = self.faults.keep(form_of(root));
                return form.map_or((), |form| self.add_tree(input, form));
            }
            None => return,
        }
        if self.faults.keep(refuse_unreadable(root)).is_none() {
            return;
        }
        let is_artifact = exists(&root.join(MANIFEST_NAME));
        if self.faults.keep(is_artifact) == Some(true) {
            let prefix = listed_prefix(input, &mut self.inputs);
            let prefix = self.faults.keep(prefix);
            return prefix.map_or((), |prefix| self.add_tree(input, TreeForm::Listed(prefix)));
        }
        let entries = list(root, &mut self.inputs, &mut self.faults);
        let may_be_tree = input.name.is_some() || entries.iter().any(is_tree_without_artifacts);
        let mut kinds = self.kinds(&entries, may_be_tree);
        let unknown = kinds.contains(&FolderEntryKind::Unknown);
        let is_shard = kinds.iter().any(|kind| *kind != FolderEntryKind::Other);
        if may_be_tree && input.name.is_none() && is_shard && !unknown {
            // It is not a tree, so entries next to its artifacts must be classified, too.
            kinds = self.kinds(&entries, false);
        }
        let shards = kinds.contains(&FolderEntryKind::Shard);
        match (kinds.contains(&FolderEntryKind::Artifact), shards) {
            (false, false) if unknown => {}
            (false, false) => {
                let prefix = find_prefix(self.prefix.as_ref(), &|at| folders_in(root, at));
                match self.faults.keep(prefix.map_err(|error| error.file(root))) {
                    Some(Some(prefix)) => self.add_tree(input, TreeForm::Folder(prefix)),
                    Some(None) => self.report_no_input(root, &entries),
                    None => {}
                }
            }
            _ if input.name.is_some() => self.faults.add(named_shard(root)),
            (true, false) => self.add_shard(root, entries, &kinds),
            (false, true) => self.add_shards_in(entries, &kinds),
            (true, true) => self.faults.add(mixed(root, &entries, &kinds)),
        }
    }

    fn add_tree(&mut self, input: &InputPath, form: TreeForm) {
        let Some(mut name) = self.faults.keep(shard_name(&input.path)) else { return };
        if let (TreeForm::Packed(_), Some((stem, _))) = (&form, parse_tarball(&name)) {
            name = stem.to_owned();
        }
        self.trees.push(FoundTree { name, input: input.clone(), form });
    }

    /// Reports a folder without artifacts, and its entries that look like artifacts in an unsupported packing.
    fn report_no_input(&mut self, root: &Path, entries: &[FolderEntry]) {
        self.faults.add(no_input(root));
        let shard = root.file_name().unwrap_or_default().to_string_lossy();
        for entry in entries.iter().filter(|entry| artifact_in(&entry.name).is_some()) {
            self.report_non_artifact(&shard, &entry.name, &entry.path, &[]);
        }
    }

    fn add_shards_in(&mut self, entries: Vec<FolderEntry>, kinds: &[FolderEntryKind]) {
        for (entry, kind) in entries.into_iter().zip(kinds) {
            match kind {
                FolderEntryKind::Shard => {
                    let inside = list(&entry.path, &mut self.inputs, &mut self.faults);
                    let kinds = self.kinds(&inside, false);
                    self.add_shard(&entry.path, inside, &kinds);
                }
                FolderEntryKind::Unknown => {}
                FolderEntryKind::Artifact | FolderEntryKind::Other => self.report_non_shard(&entry),
            }
        }
    }

    /// Reports an entry of a folder of shards that is not a shard. A folder in which all artifacts have an
    /// unsupported packing was meant to be one.
    fn report_non_shard(&mut self, entry: &FolderEntry) {
        let Some(named) = self.faults.keep(named_like_artifacts(entry)) else { return };
        if named.is_empty() {
            self.report_skipped(None, &entry.name);
        }
        for lost in &named {
            self.report_non_artifact(&entry.name, &lost.name, &lost.path, &[]);
        }
    }

    fn add_shard(&mut self, folder: &Path, entries: Vec<FolderEntry>, kinds: &[FolderEntryKind]) {
        let Some(name) = self.faults.keep(shard_name(folder)) else { return };
        if let Some(FoundShard { folder: other, .. }) = self.shards.get(&name) {
            return self.faults.add(same_name(&name, other).file(folder));
        }
        let (mut artifacts, mut others) = (Vec::new(), Vec::new());
        for (entry, kind) in entries.into_iter().zip(kinds) {
            match kind {
                FolderEntryKind::Artifact => artifacts.push(entry),
                FolderEntryKind::Shard | FolderEntryKind::Other => others.push(entry),
                FolderEntryKind::Unknown => {}
            }
        }
        let names: Vec<&str> = artifacts.iter().map(|artifact| &*artifact.name).collect();
        for entry in &others {
            if self.faults.keep(is_checksum(entry, &artifacts)) == Some(false) {
                self.report_non_artifact(&name, &entry.name, &entry.path, &names);
            }
        }
        refuse_same_name(&artifacts, &mut self.faults);
        let folder = folder.to_path_buf();
        self.shards.insert(name, FoundShard { folder, artifacts, objects: Vec::new() });
    }

    /// The kind of each entry of a folder. Collects the faults of looking into them.
    fn kinds(&mut self, entries: &[FolderEntry], may_be_tree: bool) -> Vec<FolderEntryKind> {
        let kinds = entries.iter().map(|entry| self.faults.keep(kind_of(entry, may_be_tree)));
        kinds.map(|kind| kind.unwrap_or(FolderEntryKind::Unknown)).collect()
    }

    /// Reports an entry of `shard` that is not one of its `artifacts`.
    pub(super) fn report_non_artifact(
        &mut self,
        shard: &str,
        entry: &str,
        path: &Path,
        artifacts: &[&str],
    ) {
        let Some(name) = artifact_in(entry) else {
            return self.report_skipped(Some(shard), entry);
        };
        // Next to an artifact may be the archive that it was unpacked from, its checksum, or a build log.
        if artifacts.iter().any(|artifact| artifact_in(artifact) == Some(name)) {
            return self.report_skipped(Some(shard), entry);
        }
        let archive = entry.strip_suffix(CHECKSUM_ENDING).filter(|it| parse_name(it).is_some());
        if let Some(archive) = archive {
            return self.faults.add(without_archive(path, archive));
        }
        let (shard, entry) = (shard.to_owned(), entry.to_owned());
        self.findings.add(found::PackingUnknown { shard, entry });
    }

    pub(super) fn report_skipped(&mut self, shard: Option<&str>, entry: &str) {
        let (shard, entry) = (shard.map(str::to_owned), entry.to_owned());
        self.findings.add(found::NotAnArtifact { shard, entry });
    }
}

/// The names of the folders in the folder `at` (`""` for itself) of `root`; empty without such a folder.
pub(super) fn folders_in(root: &Path, at: &str) -> Result<Vec<String>> {
    let located = locate(root, at).if_readable()?;
    let Some(folder) = located.flatten() else { return Ok(Vec::new()) };
    let mut faults = Faults::default();
    let found = list_matching(&folder, &mut faults, |entry| Ok(entry.metadata.is_dir()));
    refuse_unread(faults)?;
    Ok(found.into_iter().map(|entry| entry.name).collect())
}

/// An error for a second shard called `name`; `other` is the first.
pub(in crate::input) fn same_name(name: &str, other: &Path) -> Error {
    let message = format!("a shard named {name} was also read from {}", other.display());
    let hint = "the folder names distinguish builds for several GPUs: rename one";
    Error::new(Kind::Conflict, message).hint(hint)
}

pub(super) fn named_shard(root: &Path) -> Error {
    let message = "has artifacts, whose names already contain their components";
    Error::new(Kind::Usage, message).file(root).hint("give the path without NAME=")
}

fn refuse_unreadable(root: &Path) -> Result<()> {
    let listed = std::fs::read_dir(root).map(drop).map_err(|e| Error::io(root, "list", e));
    listed.map_err(|error| error.named_by_user().hint(INPUTS).context("looking for artifacts"))
}

/// Refuses two artifacts with the same name in a shard. Skips invalid names: reading these artifacts reports them.
fn refuse_same_name(artifacts: &[FolderEntry], faults: &mut Faults) {
    let mut claimed: BTreeMap<ArtifactName, &Path> = BTreeMap::new();
    for entry in artifacts {
        let Some(packed) = faults.keep(packed_name(entry)) else { continue };
        let stem = packed.map_or(entry.name.as_str(), |(stem, _)| stem);
        let Ok(name) = stem.parse::<ArtifactName>() else { continue };
        if let Some(other) = claimed.get(&name) {
            let message = format!("has the same artifact name as {}: {name}", other.display());
            let hint = "a shard has each artifact once, packed or as a folder: remove one of them";
            faults.add(Error::new(Kind::Conflict, message).file(&entry.path).hint(hint));
        } else {
            claimed.insert(name, &entry.path);
        }
    }
}

fn is_checksum(entry: &FolderEntry, artifacts: &[FolderEntry]) -> Result<bool> {
    let archive = entry.name.strip_suffix(CHECKSUM_ENDING);
    match artifacts.iter().find(|artifact| Some(artifact.name.as_str()) == archive) {
        Some(artifact) => Ok(packed_name(artifact)?.is_some()),
        None => Ok(false),
    }
}

fn without_archive(checksum: &Path, archive: &str) -> Error {
    let message = format!("is the checksum of {archive}, which is missing");
    let hint = "fetch the archive again, or remove its checksum";
    Error::new(Kind::Conflict, message).file(checksum).hint(hint)
}

/// The install prefix that the manifest of `input`, an install tree, lists.
fn listed_prefix(input: &InputPath, inputs: &mut Inputs) -> Result<String> {
    if input.name.is_none() {
        let error = Error::new(Kind::Usage, ONE_ARTIFACT);
        return Err(error.file(&input.path).hint(ONE_ARTIFACT_HINT));
    }
    match &*open_manifest(&input.path, inputs)?.prefixes {
        [prefix] => Ok(prefix.to_string()),
        _ => {
            let message = "lists several stage prefixes, but an install tree has one";
            let path = input.path.join(MANIFEST_NAME);
            Err(Error::new(Kind::Usage, message).file(path).hint("list one of them"))
        }
    }
}

pub(super) fn shard_name(folder: &Path) -> Result<String> {
    let real = std::fs::canonicalize(folder).map_err(|e| Error::io(folder, "resolve", e))?;
    // A shard behind a symlink is named after the symlink; `.` is named after the folder.
    let os_name = folder.file_name().or(real.file_name());
    let name = os_name.and_then(|name| name.to_str()).map(str::to_owned);
    name.ok_or_else(|| Error::malformed("the shard's folder has no name in UTF-8").file(folder))
}

fn mixed(root: &Path, entries: &[FolderEntry], kinds: &[FolderEntryKind]) -> Error {
    let [artifact, shard] = [FolderEntryKind::Artifact, FolderEntryKind::Shard].map(|kind| {
        let at = kinds.iter().position(|k| *k == kind);
        at.map_or("", |at| entries[at].name.as_str())
    });
    let message = format!("has both an artifact ({artifact}) and a shard ({shard})");
    Error::new(Kind::Usage, message)
        .file(root)
        .hint("give a folder of artifacts, or a folder of such folders")
}

pub(super) fn no_input(root: &Path) -> Error {
    let message = "is not a shard, a folder of shards or an install tree";
    let hint = format!(
        "an install tree has a folder such as bin, include, lib or share: give the folder that contains it, single \
         libraries, or the location of the prefix with --prefix; {INPUTS}"
    );
    Error::new(Kind::Usage, message).file(root).hint(hint)
}

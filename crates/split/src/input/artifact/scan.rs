//! The reading of artifacts and install trees, folders and packed ones, into trees of files.
//!
//! Everything is sorted by name, so the order of directories never matters, and all faults of a scan are
//! reported together.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rockpack_core::compression::Method;
use rockpack_core::content::{BlockStore, Content, Inputs, real_path};
use rockpack_core::error::{Error, Faults, Kind, Result, ResultExt, is_invisible};
use rockpack_core::run::{Budget, threads};
use rockpack_core::tree::{ArtifactName, Node, Tree, TreePath};
use rockpack_remote::Object;
use rockpack_report::{Findings, InputArtifact, found};

use super::folder::{ArtifactDirectory, FolderEntry};
use super::kind::packed_name;
use super::manifest::{ArtifactManifest, module_of};
use super::packed::{ArchiveForm, ArchiveSource, CHECKSUM_ENDING, Checksum, Packed, parse_name};
use super::remote::{RemoteArtifact, cached};
use super::roots::{FoundTree, Roots, no_input, shard_name};
use super::{Artifact, Scan, ScanOptions, Shard, StagePrefix, refuse_missing};
use crate::input::tree::{
    self, InputPath, ReadTree, TreeForm, find_prefix, lone_file, remote_refused,
};

/// Reads `roots`, each a shard, a folder of shards or an install tree.
pub fn scan(roots: &[InputPath], options: &ScanOptions) -> Result<Scan> {
    Scanner::read(Roots::find(roots, options), options)
}

/// The places of artifacts that have not been read.
pub struct FoundArtifacts {
    /// The shards with the paths of their artifacts, both in name order.
    pub shards: Vec<(String, Vec<PathBuf>)>,
    pub findings: Findings,
}

impl FoundArtifacts {
    fn of(roots: Roots) -> Result<Self> {
        roots.findings.explain(roots.faults.finish())?;
        let shards = roots.shards.into_iter().map(|(name, shard)| {
            let paths = shard.artifacts.into_iter().map(|entry| entry.path);
            (name, paths.collect())
        });
        Ok(Self { shards: shards.collect(), findings: roots.findings })
    }
}

/// Finds the artifacts of the shards in `roots`, and reads the install trees.
pub fn find_all(roots: &[InputPath], options: &ScanOptions) -> Result<(FoundArtifacts, Scan)> {
    roots.iter().try_for_each(|input| input.local().map(drop))?;
    let mut roots = Roots::find(roots, options);
    if let Some(list) = roots.shards.values().find(|shard| !shard.objects.is_empty()) {
        return Err(remote_refused(&list.folder));
    }
    let trees = roots.take_trees();
    let found = FoundArtifacts::of(roots)?;
    Ok((found, Scanner::read(trees, options)?))
}

/// The artifacts of the shard in `folder`; fails without any.
pub fn find_shard(folder: &Path, budget: &Budget) -> Result<FoundArtifacts> {
    let found = FoundArtifacts::of(Roots::find_shard(folder, budget))?;
    if found.shards.iter().all(|(_, artifacts)| artifacts.is_empty()) {
        found.findings.explain(Err(no_input(folder)))
    } else {
        Ok(found)
    }
}

/// Reads one artifact, as the only one of a shard that has the name of the folder around it. `component`
/// (`blas_lib`) replaces the first two fields of its name, if given.
pub fn scan_artifact(path: &Path, component: Option<&str>, options: &ScanOptions) -> Result<Scan> {
    let (shard, entry) = single_entry(path, component)?;
    let roots = Roots::of_artifact(path, shard, entry, &options.budget);
    Scanner::read(roots, options)
}

/// Reads everything readable as [`scan`] does. The error has the faults of the rest. Refuses install trees.
pub fn scan_readable(roots: &[InputPath], options: &ScanOptions) -> (Scan, Option<Error>) {
    let mut roots = Roots::find(roots, options);
    for tree in std::mem::take(&mut roots.trees) {
        let error = Error::new(
            Kind::Usage,
            "is an install tree, which can be verified only through its packages",
        );
        let hint = "verify its packages with --against, or an installed prefix with --installed";
        roots.faults.add(error.file(&tree.input.path).hint(hint));
    }
    let (scan, faults) = Scanner::read_readable(roots, options);
    (scan, faults.finish().err())
}

/// Reads everything readable as [`scan_artifact`] does. The error has the faults of the rest.
pub fn scan_artifact_readable(path: &Path, options: &ScanOptions) -> Result<(Scan, Option<Error>)> {
    let (shard, entry) = single_entry(path, None)?;
    let roots = Roots::of_artifact(path, shard, entry, &options.budget);
    let (scan, faults) = Scanner::read_readable(roots, options);
    Ok((scan, faults.finish().err()))
}

/// The shard and the name that [`scan_artifact`] gives an artifact, which is not read.
pub fn name_artifact(path: &Path, component: Option<&str>) -> Result<(String, ArtifactName)> {
    let (shard, entry) = single_entry(path, component)?;
    let stem = packed_name(&entry)?.map_or(entry.name.as_str(), |(stem, _)| stem);
    Ok((shard, stem.parse().map_err(|error: Error| error.file(path))?))
}

/// Whether [`scan_artifact`] accepts `path`; fails if that cannot be read.
pub fn is_artifact(path: &Path) -> Result<bool> {
    Ok(name_artifact(path, None).if_readable()?.is_some())
}

/// An artifact without its shard, under the name that it will have.
fn single_entry(path: &Path, component: Option<&str>) -> Result<(String, FolderEntry)> {
    let real =
        std::fs::canonicalize(path).map_err(|e| Error::io(path, "resolve", e).named_by_user())?;
    let metadata = std::fs::metadata(&real).map_err(|e| Error::io(path, "inspect", e))?;
    let own = real.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if !metadata.is_dir() && parse_name(own).is_none() {
        return Err(Error::new(Kind::Usage, "is not an artifact folder").file(path));
    }
    let name = match component {
        Some(component) => {
            let family = own.rsplit('_').next().unwrap_or_default();
            format!("{component}_{family}")
        }
        None => own.to_owned(),
    };
    let shard = match real.parent() {
        Some(parent) if parent.file_name().is_some() => shard_name(parent)?,
        _ => own.to_owned(),
    };
    Ok((shard, FolderEntry { name, path: path.to_path_buf(), metadata }))
}

/// Fails if `folder`, an output called `what`, lies inside of one of `roots`: a second run would read the
/// output of the first.
pub fn refuse_inside(roots: &[impl AsRef<Path>], folder: &Path, what: &str) -> Result<()> {
    let there = nearest_existing(folder)?;
    for root in roots.iter().map(AsRef::as_ref) {
        // The scan reports a missing root.
        let real = real_path(root)?;
        if real.is_some_and(|real| there.starts_with(real)) {
            let message = format!("the {what} lies inside of {}", root.display());
            let hint = "give a folder outside of all artifacts that are read";
            return Err(Error::new(Kind::Usage, message).file(folder).hint(hint));
        }
    }
    Ok(())
}

/// The real path of `folder`, or of the nearest existing one above it.
fn nearest_existing(folder: &Path) -> Result<PathBuf> {
    for path in folder.ancestors().filter(|path| *path != Path::new("")) {
        if let Some(there) = real_path(path)? {
            return Ok(there);
        }
    }
    // A relative path without a folder is below the current one.
    Path::new(".").canonicalize().map_err(|e| Error::io(folder, "resolve", e))
}

struct Scanner {
    pending: Vec<Pending>,
    inputs: Inputs,
    faults: Faults,
}

impl Scanner {
    fn read(roots: Roots, options: &ScanOptions) -> Result<Scan> {
        let (scan, faults) = Self::read_readable(roots, options);
        scan.explain(faults.finish())?;
        Ok(scan)
    }

    fn read_readable(roots: Roots, options: &ScanOptions) -> (Scan, Faults) {
        let Roots { shards, trees, inputs, findings, faults, .. } = roots;
        let mut scanner = Self { pending: Vec::new(), inputs, faults };
        let mut artifacts: BTreeMap<String, Vec<Artifact>> = BTreeMap::new();
        for (name, shard) in &shards {
            let entries = shard.artifacts.iter();
            let read = entries.filter_map(|entry| scanner.artifact(name, entry)).collect();
            shard.objects.iter().for_each(|object| scanner.object(name, object));
            artifacts.insert(name.clone(), read);
        }
        let mut read: Vec<ReadTree> =
            trees.into_iter().filter_map(|tree| scanner.tree(tree)).collect();
        let Self { mut pending, inputs, mut faults } = scanner;
        let names = artifacts.values().flatten().map(|artifact| &artifact.name);
        let names = names.chain(pending.iter().filter_map(Pending::name));
        if faults.keep(refuse_missing(names, &options.expect)).is_none() {
            pending.clear();
        }
        for unpacked in unpack(pending, options, &mut faults) {
            match unpacked {
                Unpacked::Tree(tree) => read.push(tree),
                Unpacked::Artifact(artifact) => {
                    artifacts.entry(artifact.shard.clone()).or_default().push(artifact);
                }
            }
        }
        tree::add_trees(read, &mut artifacts, &mut faults);
        let shards = artifacts.into_iter().map(|(name, mut artifacts)| {
            artifacts.iter_mut().for_each(report_invisible);
            artifacts.sort_by(|a, b| a.name.cmp(&b.name));
            Shard { name, artifacts }
        });
        (Scan { shards: shards.collect(), inputs, findings }, faults)
    }

    /// Reads an install tree; a packed one is queued.
    fn tree(&mut self, tree: FoundTree) -> Option<ReadTree> {
        let FoundTree { name, input, form } = tree;
        let read = match form {
            TreeForm::Packed(method) => {
                let path = input.path.clone();
                let form = PendingForm::Tree(input);
                let pending = Pending::new(&name, form, &path, method, &mut self.inputs);
                self.pending.extend(self.faults.keep(pending));
                return None;
            }
            TreeForm::Fetched(method, object) => {
                let form = PendingForm::Tree(input);
                self.pending.push(Pending::of_object(&name, form, method, &object, None));
                return None;
            }
            TreeForm::Folder(prefix) => {
                self.tree_in(name, input, &prefix).and_then(ReadTree::installed)
            }
            TreeForm::Listed(prefix) => {
                let read = self.tree_in(name, input, &prefix);
                read.map(|read| ReadTree { prefix: String::new(), ..read })
            }
            TreeForm::File => lone_file(&input.path, &mut self.inputs).map(|content| ReadTree {
                name,
                input,
                prefix: String::new(),
                content,
                outside: Vec::new(),
                sha256: None,
            }),
        };
        self.faults.keep(read)
    }

    fn tree_in(&mut self, name: String, input: InputPath, prefix: &str) -> Result<ReadTree> {
        let root = &input.path.clone();
        let mut folder = ArtifactDirectory { root, inputs: &mut self.inputs };
        ReadTree::read(name, input, prefix, &mut folder, &mut self.faults)
    }

    fn object(&mut self, shard: &str, artifact: &RemoteArtifact) {
        let Some((stem, method)) = parse_name(&artifact.file_name) else { return };
        let name = stem.parse::<ArtifactName>().map_err(|e| e.file(artifact.object.path()));
        if let Some(name) = self.faults.keep(name) {
            let (form, checksum) = (PendingForm::Artifact(name), artifact.checksum.as_ref());
            self.pending.push(Pending::of_object(shard, form, method, &artifact.object, checksum));
        }
    }

    /// Reads an artifact that is a folder; a packed one is queued.
    fn artifact(&mut self, shard: &str, entry: &FolderEntry) -> Option<Artifact> {
        let packed = self.faults.keep(packed_name(entry))?;
        let stem = packed.map_or(entry.name.as_str(), |(stem, _)| stem);
        let name = stem.parse::<ArtifactName>().map_err(|e| e.file(&entry.path));
        let name = self.faults.keep(name);
        if let Some((_, method)) = packed {
            let form = PendingForm::Artifact(name?);
            let pending = Pending::new(shard, form, &entry.path, method, &mut self.inputs);
            self.pending.extend(self.faults.keep(pending));
            return None;
        }
        let mut folder = ArtifactDirectory { root: &entry.path, inputs: &mut self.inputs };
        let Some(name) = name else {
            // Its other faults were reported already.
            folder.manifest(&mut self.faults);
            return None;
        };
        assemble(shard, name, &entry.path, &mut folder, &mut self.faults)
    }
}

/// The files of an artifact. Problems with them are added to the faults.
pub(in crate::input) trait Contents {
    fn manifest(&mut self, faults: &mut Faults) -> Option<ArtifactManifest>;
    /// Reads the files below a stage prefix, `""` for the whole; `None` if it does not exist.
    fn prefix(&mut self, prefix: &str, faults: &mut Faults) -> Result<Option<Tree<Content>>>;
    /// The files outside all of `prefixes` except the manifest, by their paths, folder by folder.
    fn outside(&mut self, prefixes: &[TreePath], faults: &mut Faults) -> Vec<String>;
}

/// Reads the artifact at `root`; `None` without a manifest.
fn assemble(
    shard: &str,
    name: ArtifactName,
    root: &Path,
    contents: &mut dyn Contents,
    faults: &mut Faults,
) -> Option<Artifact> {
    let manifest = contents.manifest(faults)?;
    let mut artifact = Artifact::new(shard, name, root, Vec::new());
    let named = InputArtifact::new(&artifact.shard, &artifact.name);
    for path in &manifest.prefixes {
        let read = contents.prefix(path.as_str(), faults);
        match faults.keep(read) {
            Some(Some(tree)) => artifact.prefixes.push(StagePrefix {
                path: path.to_string(),
                module: module_of(path),
                tree,
            }),
            Some(None) => {
                let (named, prefix) = (named.clone(), path.clone());
                artifact.findings.add(found::PrefixAbsent { artifact: named, prefix });
            }
            None => {}
        }
    }
    if artifact.prefixes.is_empty() {
        artifact.findings.add(found::ArtifactEmpty { artifact: named.clone() });
    }
    let files = contents.outside(&manifest.prefixes, faults);
    if !files.is_empty() {
        artifact.findings.add(found::OutsidePrefixes { artifact: named, files });
    }
    Some(artifact)
}

/// Reports paths, and links with texts, that have invisible characters.
fn report_invisible(artifact: &mut Artifact) {
    let nodes = artifact.prefixes.iter().flat_map(|prefix| prefix.tree.iter());
    let odd = nodes.filter(|(path, node)| {
        let target = match node {
            Node::Link { target } => target.as_str(),
            Node::File { .. } | Node::Directory { .. } => "",
        };
        [path.as_str(), target].iter().any(|text| !text.is_ascii() && text.contains(is_invisible))
    });
    let files: Vec<String> = odd.map(|(path, _)| path.to_string()).collect();
    if !files.is_empty() {
        let named = InputArtifact::new(&artifact.shard, &artifact.name);
        artifact.findings.add(found::NamesUnseen { artifact: named, files });
    }
}

/// Limit on archives that are decoded at a time. A decoder's window may take 128 MiB, and all windows must fit a
/// run of 1 GiB.
const DECODERS: usize = 4;

struct Pending {
    /// The name of the shard, or of the tree.
    name: String,
    form: PendingForm,
    method: Method,
    source: ArchiveSource,
    checksum: Option<Checksum>,
    /// The checksum of an object, which is not read yet.
    remote_checksum: Option<Arc<Object>>,
}

enum PendingForm {
    Artifact(ArtifactName),
    Tree(InputPath),
}

impl Pending {
    /// The archive at `path`. Notes it and its checksum file in `inputs`.
    fn new(
        name: &str,
        form: PendingForm,
        path: &Path,
        method: Method,
        inputs: &mut Inputs,
    ) -> Result<Self> {
        let source = ArchiveSource::File(inputs.open(path)?);
        let (name, checksum) = (name.to_owned(), Checksum::of(path, inputs)?);
        Ok(Self { name, form, method, source, checksum, remote_checksum: None })
    }

    fn name(&self) -> Option<&ArtifactName> {
        match &self.form {
            PendingForm::Artifact(name) => Some(name),
            PendingForm::Tree(_) => None,
        }
    }

    fn of_object(
        name: &str,
        form: PendingForm,
        method: Method,
        object: &Arc<Object>,
        checksum: Option<&Arc<Object>>,
    ) -> Self {
        let (source, name) = (ArchiveSource::Object(Arc::clone(object)), name.to_owned());
        Self { name, form, method, source, checksum: None, remote_checksum: checksum.cloned() }
    }

    fn unpack(&self, store: &Arc<BlockStore>, options: &ScanOptions) -> Result<Unpacked> {
        let fetched = self.remote_checksum.as_ref().map(|checksum| {
            let name = checksum.name();
            Checksum::of_object(checksum, name.strip_suffix(CHECKSUM_ENDING).unwrap_or(&name))
        });
        let fetched = fetched.transpose()?;
        let checksum = self.checksum.as_ref().or(fetched.as_ref().map(|(_, checksum)| checksum));
        let cache = options.fetch_cache.as_deref();
        let source = match &self.source {
            ArchiveSource::Object(object) => cached(object, checksum, cache, store.budget())?,
            ArchiveSource::File(_) => None,
        };
        let source = source.as_ref().unwrap_or(&self.source);
        let open = |form| Packed::open(source, self.method, form, checksum, store);
        let mut faults = Faults::default();
        let (name, root, wanted) = (&self.name, self.source.path(), options.prefix.as_ref());
        let unpacked = match &self.form {
            PendingForm::Artifact(artifact) => {
                let (mut packed, sha256) = open(ArchiveForm::Artifact)?;
                let read = assemble(name, artifact.clone(), root, &mut packed, &mut faults);
                read.map(|it| Unpacked::Artifact(Artifact { sha256: Some(sha256), ..it }))
            }
            PendingForm::Tree(input) => {
                let (mut packed, sha256) = open(ArchiveForm::Tree)?;
                let prefix = find_prefix(wanted, &|at| Ok(packed.folders(at)));
                let prefix = prefix.map_err(|error| error.file(root))?;
                let prefix = prefix.ok_or_else(|| no_input(root))?;
                let (name, input) = (name.clone(), input.clone());
                let read = ReadTree::read(name, input, &prefix, &mut packed, &mut faults)?;
                Some(Unpacked::Tree(ReadTree { sha256: Some(sha256), ..read.installed()? }))
            }
        };
        faults.finish()?;
        unpacked.ok_or_else(|| Error::bug("a packed artifact has no manifest"))
    }
}

enum Unpacked {
    Artifact(Artifact),
    Tree(ReadTree),
}

/// Decodes all of `pending`. Results and faults keep their order.
fn unpack(pending: Vec<Pending>, options: &ScanOptions, faults: &mut Faults) -> Vec<Unpacked> {
    if pending.is_empty() {
        return Vec::new();
    }
    let Some(store) = faults.keep(BlockStore::create(&options.spool_dir, &options.budget)) else {
        return Vec::new();
    };
    let decoders = threads::count().min(DECODERS);
    // Not in the thread pool: its threads take other work while they wait, and would hold a decoder for each
    // archive at the same time.
    let unpacked = threads::each(&pending, decoders, |one| one.unpack(&store, options));
    let unpacked = faults.keep(unpacked).into_iter().flatten();
    unpacked.filter_map(|result| faults.keep(result)).collect()
}

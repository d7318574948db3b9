//! Install trees as artifacts: what a project installed, in a folder, a tarball or one ELF file, divided into
//! components by the names of its files.
//!
//! ```text
//! DIR, DIR/usr, DIR/opt/rocm-7.1     the install prefix (`prefix`)
//!   lib/librocblas.so.5              blas_lib: the artifact by a name (`config/install-tree.toml`), the kind by
//!   include/rocblas/rocblas.h        blas_dev  the place (`components`)
//!   lib/libother.so.1                misc_lib: no row has the name
//! ```
//!
//! Every file, link and empty folder goes to one artifact `{name}_{kind}_generic` with the stage prefix `stage`; other
//! folders are in all artifacts that have files in them. Files outside of the install prefix are in no artifact.

mod components;
mod form;
mod prefix;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rockpack_core::content::Content;
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::tree::{
    ArtifactName, ComponentKind, Node, Tree, TreePath, first_below, folders_around,
};
use rockpack_remote::Address;
use rockpack_report::words::shell_word;
use rockpack_report::{Findings, InputArtifact, found};

use super::artifact::{Artifact, Contents, StagePrefix, same_name};

pub(super) use form::{
    ONE_ARTIFACT, ONE_ARTIFACT_HINT, TreeForm, form_of, lone_file, tarball_method,
};
pub use form::{is_tarball, parse_tarball};
pub(super) use prefix::{find as find_prefix, is_tree_folder};

/// The artifact of files that no row of the table names.
const MISC: &str = "misc";

/// The path of the only stage prefix.
const STAGE: &str = "stage";

/// Names at the top of the source or build folder of a project.
const SOURCES: [&str; 3] = [".git", "CMakeCache.txt", "CMakeLists.txt"];

/// The hint about all kinds of input.
pub(super) const INPUTS: &str = "docs/guides/package-what-you-have.md lists all kinds of input";

/// An input as users name it: `[NAME=]PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputPath {
    /// The name of the component of an install tree.
    pub name: Option<InputName>,
    /// The shard, folder of shards, install tree, tarball or file; for an address, its text for messages.
    pub path: PathBuf,
    /// The address of a shard, folder of shards or tarball.
    pub address: Option<Address>,
}

/// The name of the component of an install tree: `blas`, or `blas_dev` with the kind of all its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputName {
    artifact: String,
    kind: Option<ComponentKind>,
}

impl InputPath {
    /// Parses an argument. The text before the first `=` is the name, unless it contains a `/`.
    pub fn parse(text: OsString) -> Result<Self> {
        let bytes = text.as_bytes();
        let end = bytes.iter().position(|byte| *byte == b'=');
        let Some(end) = end.filter(|end| !bytes[..*end].contains(&b'/')) else {
            return Self::unnamed(text);
        };
        let (name, path) = (String::from_utf8_lossy(&bytes[..end]), &bytes[end + 1..]);
        let has_kind = name.contains('_');
        let full_name = format!("{name}_{}", if has_kind { "generic" } else { "lib_generic" });
        let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "._+-".contains(c));
        let parsed = full_name.parse().ok().filter(|_| is_plain && !path.is_empty());
        let ArtifactName { name: artifact, kind, .. } = parsed.ok_or_else(|| {
            let message = format!("`{}` does not begin with the name of a component", text.display());
            let hint = "write NAME=PATH with a name such as sparse, or one with a kind (lib, run, dev, doc, test or \
                        dbg), such as sparse_dev; write ./ before a path that contains a `=`";
            Error::new(Kind::Usage, message).hint(hint)
        })?;
        let name = InputName { artifact, kind: has_kind.then_some(kind) };
        Ok(Self { name: Some(name), ..Self::unnamed(OsStr::from_bytes(path).to_owned())? })
    }

    /// The path; an address is refused.
    pub fn local(&self) -> Result<&Path> {
        if self.address.is_none() { Ok(&self.path) } else { Err(remote_refused(&self.path)) }
    }

    fn unnamed(text: OsString) -> Result<Self> {
        match text.to_str().filter(|text| Address::is_one(text)) {
            Some(text) => Address::parse(text).map(Self::from),
            None => Ok(PathBuf::from(text).into()),
        }
    }
}

/// An error for artifacts at addresses where only files are read.
pub(super) fn remote_refused(place: &Path) -> Error {
    let message = "names addresses, but this command reads only folders and files";
    let hint = "download them first: `rockpack fetch ADDRESS --out DIR`";
    Error::new(Kind::Usage, message).file(place).hint(hint)
}

impl From<Address> for InputPath {
    fn from(address: Address) -> Self {
        Self { name: None, path: address.to_string().into(), address: Some(address) }
    }
}

impl From<PathBuf> for InputPath {
    /// Without trailing slashes, because it is compared with the paths of files in it.
    fn from(path: PathBuf) -> Self {
        Self { name: None, path: path.components().collect(), address: None }
    }
}

impl AsRef<Path> for InputPath {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}

impl fmt::Display for InputPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.as_ref().map_or(Ok(()), |name| write!(f, "{name}="))?;
        write!(f, "{}", self.path.display())
    }
}

impl fmt::Display for InputName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.artifact)?;
        self.kind.map_or(Ok(()), |kind| write!(f, "_{kind}"))
    }
}

/// The files, links and empty folders of a tree by artifact and kind.
type PathsByArtifact<'a> = BTreeMap<(String, ComponentKind), Vec<&'a TreePath>>;

pub(super) struct ReadTree {
    /// The name of its folder, or of its tarball without the ending.
    pub name: String,
    pub input: InputPath,
    /// The path of the install prefix in it, found by the search; `""` for the whole tree, or if a manifest lists it.
    pub prefix: String,
    pub content: Tree<Content>,
    pub outside: Vec<String>,
    pub sha256: Option<[u8; 32]>,
}

impl ReadTree {
    /// Reads what `input` names, with the install prefix `prefix`.
    pub fn read(
        name: String,
        input: InputPath,
        prefix: &str,
        contents: &mut dyn Contents,
        faults: &mut Faults,
    ) -> Result<Self> {
        let content = contents.prefix(prefix, faults)?.filter(|content| !content.is_empty());
        let content = content.ok_or_else(|| {
            let message = format!("has no files in its install prefix `{prefix}`");
            Error::new(Kind::Usage, message).file(&input.path).hint(INPUTS)
        })?;
        let path = TreePath::new(prefix).ok();
        let outside = path.map_or_else(Vec::new, |path| contents.outside(&[path], faults));
        Ok(Self { name, input, prefix: prefix.to_owned(), content, outside, sha256: None })
    }

    /// Refuses the source or build folder of a project.
    pub fn installed(self) -> Result<Self> {
        let above = |path: &str| match path.rsplit_once('/') {
            Some((folder, name)) => SOURCES.contains(&name) && self.prefix.starts_with(folder),
            None => SOURCES.contains(&path),
        };
        let is_source = self.content.keys().any(|path| SOURCES.contains(&path.as_str()));
        if !is_source && !self.outside.iter().any(|path| above(path)) {
            return Ok(self);
        }
        let message = "is the source or build folder of a project, not an install tree";
        let hint = "install the project first, for example with `cmake --install BUILD --prefix TREE`, and give TREE";
        Err(Error::new(Kind::Usage, message).file(&self.input.path).hint(hint))
    }

    /// The name with its parent folder's, for builds in folders of the same name: `b-install` for `b/install`.
    fn long_name(&self) -> String {
        let around = self.input.path.parent().and_then(Path::file_name);
        let around = around.or(self.input.path.file_name()).unwrap_or_default();
        format!("{}-{}", around.to_string_lossy(), self.name)
    }

    fn is_in(&self, artifacts: &[Artifact]) -> bool {
        let others = || artifacts.iter().flat_map(|artifact| &artifact.prefixes);
        let is_file = |node: &Node<Content>| !matches!(node, Node::Directory { .. });
        let mut files = self.content.iter().filter(|(_, node)| is_file(node));
        files.any(|(path, _)| others().any(|other| other.tree.get(path).is_some_and(is_file)))
    }

    fn places(&self) -> PathsByArtifact<'_> {
        let mut places = PathsByArtifact::new();
        for (path, node) in &self.content {
            let is_folder = matches!(node, Node::Directory { .. });
            if !is_folder || first_below(&self.content, path.as_str()).is_none() {
                let component = component_of(path, self.input.name.as_ref());
                places.entry(component).or_default().push(path);
            }
        }
        self.merge_small(&mut places);
        places
    }

    /// Moves files that need no package of their own to other files: licences without a library to the headers, and
    /// links and empty folders of unknown names to the first component.
    fn merge_small(&self, places: &mut PathsByArtifact<'_>) {
        let keys: Vec<_> = places.keys().cloned().collect();
        for key @ (name, kind) in &keys {
            let dev = (name.clone(), ComponentKind::Dev);
            let are_licences = places[key].iter().all(|path| components::is_licence(path));
            if *kind == ComponentKind::Lib && are_licences && keys.contains(&dev) {
                let moved = places.remove(key).unwrap_or_default();
                places.entry(dev).or_default().extend(moved);
            }
        }
        let is_file = |path: &&TreePath| matches!(self.content.get(path), Some(Node::File { .. }));
        let is_misc = |key: &(String, ComponentKind)| key.0 == MISC;
        let mut misc = places.iter().filter(|(key, _)| is_misc(key));
        let has_files = misc.any(|(_, paths)| paths.iter().any(is_file));
        let first = places.keys().find(|key| !is_misc(key)).cloned();
        let Some(first) = first.filter(|_| !has_files) else { return };
        for key in keys.iter().filter(|key| is_misc(key)) {
            let moved = places.remove(key).unwrap_or_default();
            places.entry(first.clone()).or_default().extend(moved);
        }
    }

    fn artifacts(&self, shard: &str) -> Result<Vec<Artifact>> {
        let places = self.places();
        let is_named = self.input.name.is_some();
        if !is_named && places.keys().all(|(artifact, _)| artifact == MISC) {
            let message = "has no files of a component that rockpack knows by name";
            let (path, word) = (&self.input.path, shell_word(&self.input.path));
            let hint = format!(
                "give it a name, as in `rockpack build hello={word} --out packages`; {INPUTS}"
            );
            return Err(Error::new(Kind::Usage, message).file(path).hint(hint));
        }
        // The first artifact has the findings about the whole tree.
        let made = places.into_iter().enumerate().map(|(index, ((name, kind), paths))| {
            let name = ArtifactName { name, kind, gpu_family: "generic".to_owned() };
            let artifact = InputArtifact::new(shard, &name);
            let mut findings = Findings::default();
            if name.name == MISC && !is_named {
                let files = paths.iter().map(|path| path.to_string()).collect();
                findings.add(found::ComponentUnknown { artifact: artifact.clone(), files });
            }
            if index == 0 && !self.prefix.is_empty() {
                let (input, prefix) = (self.input.to_string(), self.prefix.clone());
                findings.add(found::PrefixFound { input, prefix });
            }
            if index == 0 && !self.outside.is_empty() {
                findings.add(found::OutsidePrefixes { artifact, files: self.outside.clone() });
            }
            let tree = part(&self.content, &paths)?;
            let prefixes = vec![StagePrefix { path: STAGE.to_owned(), module: None, tree }];
            let (shard, root, sha256) = (shard.to_owned(), self.input.path.clone(), self.sha256);
            Ok(Artifact { shard, name, root, sha256, prefixes, findings })
        });
        made.collect()
    }
}

/// Adds the artifacts of `trees` to `shards`. Trees without a common file share a shard, as parts of one build do:
/// builds for several GPUs have the same files. A tree with kernel archives, which are for its own binaries, has a
/// shard of its own.
pub(super) fn add_trees(
    mut trees: Vec<ReadTree>,
    shards: &mut BTreeMap<String, Vec<Artifact>>,
    faults: &mut Faults,
) {
    trees.sort_by(|one, other| (&one.name, &one.input.path).cmp(&(&other.name, &other.input.path)));
    // A tree that is given twice is read twice, but counts once.
    trees.dedup_by(|one, other| one.input == other.input);
    let mut own: Vec<String> = Vec::new();
    for tree in trees {
        let is_apart = tree.content.keys().any(|path| path.as_str().contains(".kpack/"));
        let mut others = own.iter().filter(|_| !is_apart);
        let free = others.find(|name| shards.get(*name).is_none_or(|it| !tree.is_in(it)));
        let mut names = [tree.name.clone(), tree.long_name()].into_iter();
        let Some(shard) = free.cloned().or_else(|| names.find(|name| !shards.contains_key(name)))
        else {
            let other = shards.get(&tree.name).and_then(|there| there.first());
            let other = other.map_or(Path::new(&tree.name), |one| &one.root);
            faults.add(same_name(&tree.name, other).file(&tree.input.path));
            continue;
        };
        if !is_apart && !own.contains(&shard) {
            own.push(shard.clone());
        }
        let made = faults.keep(tree.artifacts(&shard)).unwrap_or_default();
        let there = shards.entry(shard).or_default();
        for artifact in made {
            match there.iter_mut().find(|other| other.name == artifact.name) {
                Some(other) => join(other, artifact),
                None => there.push(artifact),
            }
        }
    }
}

fn join(artifact: &mut Artifact, other: Artifact) {
    for mut prefix in other.prefixes {
        prefix.path = format!("{STAGE}-{}", artifact.prefixes.len() + 1);
        artifact.prefixes.push(prefix);
    }
    artifact.findings.extend(other.findings);
    // Its files come from several archives.
    artifact.sha256 = None;
}

/// The artifact and the kind of the file at `path` of a tree that the user called `name`.
fn component_of(path: &TreePath, name: Option<&InputName>) -> (String, ComponentKind) {
    let artifact = match name {
        Some(name) => &name.artifact,
        None => components::artifact_of(path).unwrap_or(MISC),
    };
    let kind = name.and_then(|name| name.kind).unwrap_or_else(|| components::kind_of(path));
    (artifact.to_owned(), kind)
}

fn part(tree: &Tree<Content>, paths: &[&TreePath]) -> Result<Tree<Content>> {
    let mut part = Tree::new();
    let around = folders_around(paths.iter().copied());
    let folders = around.into_iter().map(TreePath::new).collect::<Result<Vec<_>>>()?;
    for path in folders.iter().chain(paths.iter().copied()) {
        if let Some(node) = tree.get(path) {
            part.insert(path.clone(), node.clone())?;
        }
    }
    Ok(part)
}

//! The forms of install trees: folders, tarballs and single ELF files.

use std::path::Path;
use std::sync::Arc;

use rockpack_core::compression::Method;
use rockpack_core::content::{Content, Inputs};
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::run::Budget;
use rockpack_core::tree::{ArtifactName, Node, Tree, TreePath};

use rockpack_elf::FileHeader;
use rockpack_remote::Object;

use super::INPUTS;
use crate::input::artifact::{lone_node, parse_name};

pub(in crate::input) enum TreeForm {
    /// A folder, with the path of the install prefix in it (`""` for itself).
    Folder(String),
    /// A folder with a manifest that lists the install prefix.
    Listed(String),
    Packed(Method),
    Fetched(Method, Arc<Object>),
    /// A file that is installed by itself.
    File,
}

/// The file name without its ending, and the compression, of a tarball.
pub fn parse_tarball(file_name: &str) -> Option<(&str, Method)> {
    let endings = [
        (".tar.zst", Method::Zstd),
        (".tar.xz", Method::Xz),
        (".tar.gz", Method::Gzip),
        (".tgz", Method::Gzip),
        (".tar", Method::Stored),
    ];
    let named = |(ending, method)| Some((file_name.strip_suffix(ending)?, method));
    endings.into_iter().find_map(named).filter(|(stem, _)| !stem.is_empty())
}

/// Whether `path` has the name of a tarball.
pub fn is_tarball(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| parse_tarball(name).is_some())
}

/// The compression of the tarball `name`, given as an input; `None` for another file.
pub(in crate::input) fn tarball_method(name: &str) -> Result<Option<Method>> {
    if parse_name(name).is_some_and(|(stem, _)| stem.parse::<ArtifactName>().is_ok()) {
        return Err(Error::new(Kind::Usage, ONE_ARTIFACT).hint(ONE_ARTIFACT_HINT));
    }
    Ok(parse_tarball(name).map(|(_, method)| method))
}

/// The form of the file at `path`, given as an input.
pub(in crate::input) fn form_of(path: &Path) -> Result<TreeForm> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if let Some(method) = tarball_method(name).map_err(|error| error.file(path))? {
        return Ok(TreeForm::Packed(method));
    }
    let (message, hint) = if is_elf(path)? {
        return Ok(TreeForm::File);
    } else if name.ends_with(".whl") {
        ("is a Python wheel", "split it with `rockpack wheel`")
    } else if [".deb", ".rpm"].iter().any(|ending| name.ends_with(ending)) {
        ("is a package", "unpack it with `dpkg-deb -x` or `rpm2cpio`, and give the tree")
    } else {
        ("is neither an ELF file nor a tarball (.tar, .tar.gz, .tgz, .tar.xz, .tar.zst)", INPUTS)
    };
    Err(Error::new(Kind::Usage, message).file(path).hint(hint))
}

fn is_elf(path: &Path) -> Result<bool> {
    let content = Content::open(path, &Budget::unlimited()).map_err(Error::named_by_user)?;
    Ok(FileHeader::read(&content)?.is_some())
}

pub(in crate::input) const ONE_ARTIFACT: &str = "is one artifact, not a folder of artifacts";
pub(in crate::input) const ONE_ARTIFACT_HINT: &str =
    "give the folder that contains the artifact: that is the shard";

/// The install tree with one file: a library or, without `.so` in its name, a program.
pub(in crate::input) fn lone_file(path: &Path, inputs: &mut Inputs) -> Result<Tree<Content>> {
    let real = std::fs::canonicalize(path).map_err(|e| Error::io(path, "resolve", e))?;
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let folder = TreePath::new(if name.contains(".so") { "lib" } else { "bin" })?;
    let place = folder.join(name).map_err(|error| error.file(path))?;
    let node = lone_node(&real, &place, inputs)?;
    let mut tree = Tree::new();
    tree.insert(folder, Node::Directory { mode: 0o755 })?;
    tree.insert(place, node)?;
    Ok(tree)
}

//! Packed artifacts as input: they give the same packages as folders, and errors name the archive, the member
//! and the offset.

mod damaged;
mod differ;
mod equal;
mod members;
mod refused;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rockpack_core::content::Content;
use rockpack_core::error::Error;
use rockpack_core::tree::{Node, TreePath};
use rockpack_report::Code;
use rockpack_split::input::artifact::Scan;
use support::archives::{self, Handmade, Packing, archive_of, artifacts, pack, sum, tar};
use support::example::{self, GROUPS, Set, build_of, contents, copy_shards, names, rockpack};
use support::fixtures::scan;
use support::tools::{self, need};
use tempfile::TempDir;

const BOTH: [Packing; 2] = [Packing::Zstd, Packing::Xz];

/// A folder with a shard that has one packed artifact.
struct Packed {
    folder: TempDir,
    archive: PathBuf,
}

impl Packed {
    fn new(tar: &[u8]) -> Self {
        Self::compressed(Packing::Zstd, &zstd::encode_all(tar, 1).unwrap())
    }

    fn compressed(packing: Packing, bytes: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let shard = folder.path().join("shard");
        fs::create_dir(&shard).unwrap();
        let archive = shard.join(format!("a_lib_generic.{}", packing.ending()));
        fs::write(&archive, bytes).unwrap();
        Self { folder, archive }
    }

    fn scan(&self) -> Result<Scan, Error> {
        scan(&[self.folder.path().to_path_buf()])
    }

    fn refusal(&self) -> Error {
        self.scan().unwrap_err()
    }

    /// The name of a member in errors.
    fn member(&self, name: &str) -> PathBuf {
        format!("{}({name})", self.archive.display()).into()
    }
}

fn assert_names(error: &Error, path: &Path, message: &str) {
    assert_eq!(error.place().file.as_deref(), Some(path), "{error}");
    assert!(error.to_string().contains(message), "{error}");
}

/// Fails unless an archive with the members that `add` adds is refused, naming `member`.
fn refuses(member: &str, message: &str, add: impl FnOnce(&mut Handmade)) {
    let mut archive = Handmade::with_manifest();
    add(&mut archive);
    let packed = Packed::new(&archive.finish());
    assert_names(&packed.refusal(), &packed.member(member), message);
}

fn node<'a>(scan: &'a Scan, path: &str) -> &'a Node<Content> {
    let prefix = &scan.shards[0].artifacts[0].prefixes[0];
    prefix.tree.get(&TreePath::new(path).unwrap()).unwrap()
}

fn text(scan: &Scan, path: &str) -> Vec<u8> {
    match node(scan, path) {
        Node::File { data, .. } => data.read_vec(0..data.len(), 1 << 20, "file").unwrap(),
        _ => panic!("{path} is no file"),
    }
}

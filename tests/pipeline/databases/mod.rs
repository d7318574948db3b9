//! Kernel databases: the arch of each file of a library, and the result of joining several shards.

mod built;
mod compressed;
mod forms;
mod integrity;
mod rules;
mod tensile;
mod whole;

use std::collections::BTreeMap;

use rmpv::Value;
use rockpack_core::content::Content;
use rockpack_core::tree::{Node, Tree, TreePath};
use rockpack_report::Findings;
use rockpack_split::input::artifact::{Artifact, StagePrefix};
use rockpack_split::input::database::DatabaseRules;
use rockpack_split::{SplitArtifact, SplitPolicy, split};

/// File contents by install path.
type Files = BTreeMap<String, Vec<u8>>;

/// The header of a code object; `mach` is the processor's number in its flags.
fn code_object(mach: u8) -> Vec<u8> {
    let mut file = vec![0_u8; 64];
    file[..9].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1, 64, 2]);
    file[16] = 3;
    file[18] = 224;
    file[48] = mach;
    file
}

fn encoded(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    rmpv::encode::write_value(&mut bytes, value).unwrap();
    bytes
}

fn map(entries: &[(&str, Value)]) -> Value {
    let entries = entries.iter().map(|(key, value)| (Value::from(*key), value.clone()));
    Value::Map(entries.collect())
}

fn bytes(content: &Content) -> Vec<u8> {
    content.read_vec(0..content.len(), 1 << 30, "test content").unwrap()
}

/// The artifact `name` of `shard` with `files`.
fn artifact(shard: &str, name: &str, files: &Files) -> Artifact {
    let mut tree = Tree::new();
    for (path, bytes) in files {
        let data = Content::of_bytes(bytes.clone());
        tree.insert(TreePath::new(path).unwrap(), Node::File { data, mode: 0o644 }).unwrap();
    }
    let module = Some("module".to_owned());
    Artifact {
        shard: shard.to_owned(),
        name: name.parse().unwrap(),
        root: shard.into(),
        sha256: None,
        prefixes: vec![StagePrefix { path: "math-libs/module/stage".to_owned(), module, tree }],
        findings: Findings::default(),
    }
}

/// The split of an artifact `blas_lib_all` of `shard` with `files`.
fn split_files(shard: &str, files: &Files) -> SplitArtifact {
    let artifact = artifact(shard, "blas_lib_all", files);
    split(&artifact, &SplitPolicy::strict(&DatabaseRules::builtin().unwrap())).unwrap()
}

/// The archs of all files by path; `host` for files that stay with the host files.
fn placed(split: &SplitArtifact) -> BTreeMap<String, String> {
    let host = split.host.keys().map(|path| (path.to_string(), "host".to_owned()));
    let databases = split.databases.iter().map(|file| {
        let archs: Vec<&str> = file.archs.iter().map(|arch| arch.as_str()).collect();
        (file.path.to_string(), archs.join(" "))
    });
    host.chain(databases).collect()
}

/// Code and file of each finding.
fn findings(split: &SplitArtifact) -> Vec<(&str, &str)> {
    let found = split.findings.iter();
    found.map(|f| (f.code().unwrap().id, f.subject().rsplit('/').next().unwrap())).collect()
}

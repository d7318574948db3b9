//! Hand-made split artifacts for the tests of this stage and its neighbours.
//!
//! A code object here is a text: the names of its kernels, a `|`, and anything that distinguishes it from
//! others. [`names`] reads it.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use rockpack_core::content::Content;
use rockpack_core::error::Result;
use rockpack_core::tree::{Node, Tree, TreePath};

use crate::config::{Config, Syntax};
use crate::recombine::{Recombined, recombine_with};
use rockpack_report::{Findings, found};
use rockpack_split::host_binary::{self, Analysis, Examined};
use rockpack_split::{
    CodeObject, DatabaseFile, FatBinary, HostBinary, HostFile, HostKind, SharedFile, SplitArtifact,
    WrapperCode,
};

/// A library with one wrapper and a bundle without code objects. An [`ArtifactBuilder`] adds code objects
/// separately.
const FAT_LIBRARY: &str = r#"
    .section .hip_fatbin, "a", @progbits
    .p2align 12
bundle:
    .ascii "__CLANG_OFFLOAD_BUNDLE__"
    .quad 1, bundle_end - bundle, 0, name_end - name
name:
    .ascii "host-x86_64-unknown-linux-gnu-"
name_end:
    .p2align 12
bundle_end:
    .section .hipFatBinSegment, "aw", @progbits
    .p2align 3
    .long 0x48495046, 1
    .quad bundle, 0
    .section .note.GNU-stack, "", @progbits
"#;

/// Compiles the library with the C compiler that cargo links with.
fn fat_library() -> Content {
    static LIBRARY: OnceLock<Content> = OnceLock::new();
    let made = LIBRARY.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let (source, file) = (folder.path().join("fat.s"), folder.path().join("libfat.so"));
        std::fs::write(&source, FAT_LIBRARY).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-nostdlib", "-o"]).args([&file, &source]);
        assert!(compiler.status().unwrap().success());
        Content::of_bytes(std::fs::read(&file).unwrap())
    });
    made.clone()
}

/// The analysis of the library: the only place that makes one.
fn analysis() -> Analysis {
    match host_binary::examine(&fat_library()).unwrap() {
        Examined::Fat(analysis) => *analysis,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn path(text: &str) -> TreePath {
    TreePath::new(text).unwrap()
}

fn names(content: &Content) -> Result<BTreeSet<String>> {
    let bytes = content.read_vec(0..content.len(), 1 << 20, "code object")?;
    let text = String::from_utf8(bytes).unwrap();
    let kernels = text.split('|').next().unwrap_or_default();
    Ok(kernels.split_whitespace().map(str::to_owned).collect())
}

pub(crate) fn wrapper(code_objects: &[(&str, &str)]) -> WrapperCode {
    let code_objects = code_objects.iter().map(|(target, text)| CodeObject {
        target: target.parse().unwrap(),
        content: Content::of_bytes(text.as_bytes()),
        stored_size: None,
    });
    WrapperCode { symbol: None, code_objects: code_objects.collect() }
}

/// A split artifact under construction.
pub(crate) struct ArtifactBuilder(SplitArtifact);

impl ArtifactBuilder {
    pub fn new(shard: &str, name: &str) -> Self {
        Self(SplitArtifact {
            shard: shard.to_owned(),
            name: name.parse().unwrap(),
            sha256: None,
            host: Tree::new(),
            databases: Vec::new(),
            shared: BTreeMap::new(),
            archives: Vec::new(),
            archive_manifests: Vec::new(),
            findings: Findings::default(),
        })
    }

    /// Makes it a packed artifact, whose archive has a SHA-256 of these bytes.
    pub fn packed(mut self, digest: u8) -> Self {
        self.0.sha256 = Some([digest; 32]);
        self
    }

    fn node(mut self, at: &str, node: Node<HostFile>) -> Self {
        let above = std::iter::successors(path(at).parent(), TreePath::parent);
        for above in above {
            if self.0.host.get(&above).is_none() {
                let folder = Node::Directory { mode: 0o775 };
                self.0.host.insert(above, folder).unwrap();
            }
        }
        self.0.host.insert(path(at), node).unwrap();
        self
    }

    fn file(self, at: &str, module: Option<&str>, mode: u32, kind: HostKind) -> Self {
        let module = module.map(str::to_owned);
        let data = HostFile { module, kind };
        self.node(at, Node::File { data, mode })
    }

    pub fn plain(self, at: &str, text: &str) -> Self {
        self.content(at, None, Content::of_bytes(text.as_bytes()))
    }

    pub fn content(self, at: &str, module: Option<&str>, content: Content) -> Self {
        self.file(at, module, 0o664, HostKind::Plain(content))
    }

    pub fn program(self, at: &str, text: &str) -> Self {
        let kind = HostKind::Plain(Content::of_bytes(text.as_bytes()));
        self.file(at, None, 0o775, kind)
    }

    pub fn fat(self, at: &str, wrappers: Vec<WrapperCode>) -> Self {
        self.fat_of(at, None, wrappers)
    }

    pub fn fat_of(self, at: &str, module: Option<&str>, wrappers: Vec<WrapperCode>) -> Self {
        let binary = HostBinary::Fat(Box::new(analysis()));
        let fat = FatBinary { binary, wrappers };
        self.file(at, module, 0o755, HostKind::Fat(Arc::new(fat)))
    }

    pub fn link(self, at: &str, target: &str) -> Self {
        let target = target.to_owned();
        self.node(at, Node::Link { target })
    }

    pub fn folder(self, at: &str) -> Self {
        self.node(at, Node::Directory { mode: 0o700 })
    }

    /// Adds a file of `archs`, which commas separate.
    pub fn database(mut self, at: &str, archs: &str, text: &str) -> Self {
        self.0.databases.push(DatabaseFile {
            path: path(at),
            archs: archs.split(',').map(|arch| arch.parse().unwrap()).collect(),
            for_arch_family: false,
            of_whole_family: false,
            module: None,
            shard: self.0.shard.clone(),
            rule: "rocblas".to_owned(),
            moves: false,
            opens_dir: true,
            content: Content::of_bytes(text.as_bytes()),
            mode: 0o644,
        });
        self
    }

    /// Adds a database file in the directory of the family `archs`, which commas separate.
    pub fn family(self, at: &str, archs: &str, text: &str) -> Self {
        let mut part = self.database(at, archs, text);
        part.0
            .databases
            .iter_mut()
            .filter(|file| file.path == path(at))
            .for_each(|f| (f.for_arch_family, f.of_whole_family) = (true, true));
        part
    }

    /// Adds a host file that serves all archs of its shard, as the split reports it.
    pub fn shared(mut self, at: &str, shared: SharedFile, content: Content) -> Self {
        let (file, rule) = (super::host::label(&self.0).file(&path(at)), shared.rule.clone());
        let (is_cache, code_objects) = (shared.cache, Vec::new());
        self.0.findings.add(found::DatabaseShared { file, rule, is_cache, code_objects });
        self.0.shared.insert(path(at), shared);
        self.content(at, None, content)
    }

    /// Marks the database files added so far as ones that their libraries look for in directories of archs
    /// first.
    pub fn moving(mut self) -> Self {
        self.0.databases.iter_mut().for_each(|file| file.moves = true);
        self
    }

    /// Marks the database files added so far as ones that do not make their library look there.
    pub fn without_lead(mut self) -> Self {
        self.0.databases.iter_mut().for_each(|file| file.opens_dir = false);
        self
    }

    pub fn done(self) -> SplitArtifact {
        self.0
    }
}

pub(crate) fn config(toml: &str) -> Config {
    Config::parse(toml, Syntax::Toml).unwrap()
}

pub(crate) fn join(parts: Vec<ArtifactBuilder>, toml: &str) -> Result<Recombined> {
    let split = parts.into_iter().map(ArtifactBuilder::done).collect();
    let config = config(toml);
    recombine_with(split, &config, &config.grouping, &names)
}

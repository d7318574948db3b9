//! Packages to emit, and the tools that judge them.

use std::path::{Path, PathBuf};

use rockpack_core::content::Content;
use rockpack_core::run::{Budget, Limits};
use rockpack_core::tree::{Node, TreePath};
use rockpack_emit::{Compression, Contexts, EmitOptions, EmittedPackage, Staging, emit_package};
use rockpack_package::{
    Comparison, DebControl, Format, Formats, Identity, Package, PackageEntry, Relation,
    RelationKind, Rights, Role, RpmControl, Treatment,
};
use rockpack_report::Silent;

/// 2024-01-01, the date of all payload entries of these tests.
pub const CONTENT_DATE: u32 = 1_704_067_200;
/// 2023-11-14, the build date of these packages.
pub const EPOCH: u32 = 1_700_000_000;

/// A relation to any version, or with `= version`.
pub fn relation(kind: RelationKind, name: &str, version: Option<&str>) -> Relation {
    Relation {
        kind,
        name: name.to_owned(),
        version: version.map(|version| (Comparison::Equal, version.to_owned())),
    }
}

/// The entries of a package, under construction.
#[derive(Default)]
pub struct Tree(Vec<PackageEntry<Content>>);

impl Tree {
    fn add(
        mut self,
        path: &str,
        node: Node<Content>,
        treatment: Treatment,
        formats: Formats,
    ) -> Self {
        let path = TreePath::new(path).unwrap();
        self.0.push(PackageEntry { path, node, treatment, formats });
        self
    }

    /// Adds a directory in both formats.
    pub fn directory(self, path: &str) -> Self {
        self.add(path, Node::Directory { mode: 0o755 }, Treatment::Plain, Formats::All)
    }

    /// Adds a directory that only the .deb lists.
    pub fn deb_directory(self, path: &str) -> Self {
        let formats = Formats::Only(Format::Deb);
        self.add(path, Node::Directory { mode: 0o755 }, Treatment::Plain, formats)
    }

    /// Adds a file.
    pub fn file(self, path: &str, data: Content, mode: u32, treatment: Treatment) -> Self {
        self.add(path, Node::File { data, mode }, treatment, Formats::All)
    }

    /// Adds a plain text file.
    pub fn text(self, path: &str, text: &str) -> Self {
        self.file(path, Content::of_bytes(text.as_bytes()), 0o644, Treatment::Plain)
    }

    /// Adds a link.
    pub fn link(self, path: &str, target: &str) -> Self {
        let node = Node::Link { target: target.to_owned() };
        self.add(path, node, Treatment::Plain, Formats::All)
    }

    /// The entries in path order.
    pub fn entries(mut self) -> Vec<PackageEntry<Content>> {
        self.0.sort_by(|a, b| a.path.cmp(&b.path));
        self.0
    }
}

/// A package `name` 7.1.0-1 for both formats.
pub fn package(name: &str, entries: Vec<PackageEntry<Content>>) -> Package<Content> {
    Package {
        id: name.to_owned(),
        role: Role::Host,
        summary: "Basic linear algebra for GPUs".to_owned(),
        description: vec!["First paragraph.".to_owned(), "Second paragraph.".to_owned()],
        homepage: Some("https://example.org/".to_owned()),
        rights: Rights { license: "MIT".to_owned(), ..Rights::default() },
        deb: Some(DebControl {
            name: name.to_owned(),
            version: "7.1.0-1".to_owned(),
            architecture: "amd64".to_owned(),
            section: "libs".to_owned(),
            priority: "optional".to_owned(),
            maintainer: "Packager <packager@example.org>".to_owned(),
            relations: Vec::new(),
            fields: vec![("X-ROCm-GPU-Architecture".to_owned(), "gfx1100".to_owned())],
            triggers: Vec::new(),
            scripts: Vec::new(),
        }),
        rpm: Some(RpmControl {
            discovered: Vec::new(),
            name: name.to_owned(),
            epoch: None,
            version: "7.1.0".to_owned(),
            release: "1".to_owned(),
            arch: "x86_64".to_owned(),
            group: "System Environment/Libraries".to_owned(),
            license: "MIT".to_owned(),
            vendor: Some("Vendor".to_owned()),
            packager: Some("Packager <packager@example.org>".to_owned()),
            relations: Vec::new(),
            prefixes: vec!["/opt/rocm-7.1".to_owned()],
            scripts: Vec::new(),
            changes: Vec::new(),
        }),
        identity: Identity::default(),
        entries,
    }
}

/// Options with only the number of jobs and the compression open.
pub fn options(jobs: usize, compression: Compression) -> EmitOptions<'static> {
    EmitOptions {
        cache: None,
        jobs,
        budget: Budget::new(Limits { compressors: 896 << 20, ..Limits::default() }),
        contexts: Contexts::default(),
        compression: compression.into(),
        content_date: CONTENT_DATE,
        source_date_epoch: EPOCH,
        indexed: false,
        sha1: false,
        signer: None,
        progress: &Silent,
    }
}

/// A receipt with the parts that the commit reads.
pub fn receipt(emitted: &[EmittedPackage]) -> Vec<u8> {
    let packages = emitted.iter().map(|package| {
        serde_json::json!({ "file_name": package.file_name, "sha256": crate::hex(&package.sha256) })
    });
    serde_json::to_vec(&serde_json::json!({ "packages": Vec::from_iter(packages) })).unwrap()
}

/// Emits and commits a set, and returns its packages.
pub fn emit_set(
    out: &Path,
    packages: &[Package<Content>],
    options: &EmitOptions<'_>,
) -> Vec<EmittedPackage> {
    let staging = Staging::begin(out).unwrap();
    let emitted: Vec<EmittedPackage> = packages
        .iter()
        .flat_map(|package| emit_package(package, &staging, options).unwrap())
        .collect();
    staging
        .commit(&std::collections::BTreeSet::new(), |sink| sink.write_all(&receipt(&emitted)))
        .unwrap();
    emitted
}

/// Emits one package in both formats, and returns the paths of the `.deb` and the `.rpm`.
pub fn emit_one(out: &Path, package: &Package<Content>) -> (PathBuf, PathBuf) {
    let [deb, rpm] = emit_both(out, package, &options(2, Compression::default()));
    (deb, rpm)
}

/// Emits one package in both formats with these options.
pub fn emit_both(
    out: &Path,
    package: &Package<Content>,
    options: &EmitOptions<'_>,
) -> [PathBuf; 2] {
    let emitted = emit_set(out, std::slice::from_ref(package), options);
    [Format::Deb, Format::Rpm].map(|format| {
        let found = emitted.iter().find(|emitted| emitted.format == format);
        out.join(&found.unwrap().file_name)
    })
}

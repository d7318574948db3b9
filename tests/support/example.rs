//! The main job, run from outside: the program, the example shards, and known facts about them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use object::{Object, ObjectSection};
use serde_json::Value;
use tempfile::TempDir;

use crate::program::scratch;
use crate::tools;

/// Upstream version of the sets.
pub const VERSION: &str = "7.1.0";
/// The install prefix, relative to the root.
pub const PREFIX: &str = "opt/rocm-7.1";
/// The start of every code object's tag.
pub const TAG: &str = "rockpack-example ";

/// The package with the loader's configuration: the only one for every processor.
pub const COMMON: &str = "rocm-common";

/// The entries of a package, one of the `packages` of a receipt, by absolute path, each as an object.
pub fn entries(packages: &Value, package: &Value) -> BTreeMap<String, Value> {
    let same = packages.as_array().unwrap().iter().filter(|it| it["id"] == package["id"]);
    let shared = same.filter_map(|it| it.get("shared_folders"));
    let folders = shared.chain([&package["folders"]]).flat_map(|it| it.as_object().unwrap());
    let entries = folders.flat_map(|(folder, entries)| {
        let entries = entries.as_object().unwrap().iter();
        entries.map(move |(name, entry)| (format!("{folder}{name}"), as_object(entry)))
    });
    entries.collect()
}

fn as_object(entry: &Value) -> Value {
    let Some(fields) = entry.as_array() else { return entry.clone() };
    ["size", "sha256", "mode"].into_iter().zip(fields.iter().cloned()).collect()
}

/// A group of the example configuration and its shard.
pub struct Group {
    /// The end of the group's package names.
    pub suffix: &'static str,
    /// The group's name in the configuration.
    pub name: &'static str,
    /// The shard's name in tags; its folder's name ends in `-build`.
    pub shard: &'static str,
    /// The family label of the shard's artifacts.
    pub family: &'static str,
    /// The archs of the group.
    pub archs: &'static [&'static str],
}

/// The groups of the example configuration.
pub const GROUPS: [Group; 3] = [
    Group {
        suffix: "gfx110x",
        name: "gfx110X",
        shard: "gfx110X",
        family: "gfx110X-dgpu",
        archs: &["gfx1100", "gfx1101", "gfx1102"],
    },
    Group {
        suffix: "gfx115x",
        name: "gfx115X",
        shard: "gfx1151",
        family: "gfx1151",
        archs: &["gfx1151"],
    },
    Group {
        suffix: "gfx120x",
        name: "gfx120X",
        shard: "gfx120X",
        family: "gfx120X-all",
        archs: &["gfx1200", "gfx1201"],
    },
];

/// The translation unit of every wrapper, by key, in the primary shard's order of wrappers.
pub const UNITS: [(&str, &str); 4] = [
    ("bin/exblas-bench#0", "bench"),
    ("lib/libexblas.so.1.2#0", "axpy"),
    ("lib/libexblas.so.1.2#1", "gemm"),
    ("libexec/exblas/exblas-tune#0", "tune"),
];

impl Group {
    /// The shard's folder in `artifacts`.
    pub fn folder(&self, artifacts: &Path) -> PathBuf {
        artifacts.join(format!("{}-build", self.shard))
    }

    /// The stage prefix of rocBLAS in an artifact of the shard (`lib` or `run`).
    pub fn stage(&self, artifacts: &Path, component: &str) -> PathBuf {
        let artifact = format!("blas_{component}_{}", self.family);
        self.folder(artifacts).join(artifact).join("math-libs/BLAS/rocBLAS/stage")
    }

    /// The path of a file in the shard, by install path.
    pub fn original(&self, artifacts: &Path, installed: &str) -> PathBuf {
        let component = if installed.starts_with("bin/") { "run" } else { "lib" };
        self.stage(artifacts, component).join(installed)
    }

    /// The tag of the code object of a translation unit.
    pub fn tag(&self, unit: &str, arch: &str) -> String {
        format!("{TAG}shard={} tu={unit} arch={arch}", self.shard)
    }
}

/// The committed shards.
pub fn shards() -> PathBuf {
    tools::repository("examples/shards")
}

/// The example configuration.
pub fn configuration() -> PathBuf {
    tools::repository("examples/packaging-config.json")
}

pub use crate::program::rockpack;

/// `rockpack build` of `artifacts` into `out` by the example configuration.
pub fn build_of(artifacts: &Path, out: &Path) -> Command {
    let mut command = rockpack();
    command.arg("build").arg("--artifacts").arg(artifacts).arg("--config").arg(configuration());
    command.args(["--version", VERSION]).arg("--out").arg(out);
    command
}

/// A built set.
pub struct Set {
    folder: TempDir,
    /// The output of the build.
    pub output: Output,
}

impl Set {
    /// A copy of the example set, which is built once in a run.
    pub fn build() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let (built, output) = copy_set(&out);
        // The output names the folder.
        let [from, to] = [built, &out].map(|path| path.to_str().unwrap());
        let renamed =
            |bytes: &Vec<u8>| std::str::from_utf8(bytes).unwrap().replace(from, to).into_bytes();
        let [stdout, stderr] = [&output.stdout, &output.stderr].map(renamed);
        Self { folder, output: Output { status: output.status, stdout, stderr } }
    }

    /// Builds the example set with further options.
    pub fn with(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let output = tools::run(build_of(&shards(), &folder.path().join("out")).args(options));
        Self { folder, output }
    }

    /// The folder of the packages.
    pub fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    /// A path for a test's own files, beside the packages.
    pub fn scratch(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The path of a file of the set.
    pub fn file(&self, name: &str) -> PathBuf {
        self.out().join(name)
    }

    /// The `.deb` of a package.
    pub fn deb(&self, package: &str) -> PathBuf {
        self.file(&deb_name(package))
    }

    /// The `.rpm` of a package.
    pub fn rpm(&self, package: &str) -> PathBuf {
        self.file(&rpm_name(package))
    }

    /// The parsed receipt.
    pub fn receipt(&self) -> Value {
        serde_json::from_slice(&fs::read(self.file("packages.json")).unwrap()).unwrap()
    }

    /// Unpacks `.deb`s with dpkg-deb into `root`, as an installation leaves their content.
    pub fn unpack_debs(&self, packages: &[&str], root: &Path) {
        for package in packages {
            tools::run(Command::new("dpkg-deb").arg("-x").arg(self.deb(package)).arg(root));
        }
    }
}

/// Copies the example set to `out`. It is built once in a run; returns its folder and what the build printed.
pub fn copy_set(out: &Path) -> &'static (PathBuf, Output) {
    static BUILT: OnceLock<(PathBuf, Output)> = OnceLock::new();
    let build = || {
        let out = scratch("example-set").join("out");
        let output = tools::run(&mut build_of(&shards(), &out));
        (out, output)
    };
    let built = BUILT.get_or_init(build);
    plant(&tree(&built.0), out, false);
    built
}

/// The name of a package's `.deb`.
pub fn deb_name(package: &str) -> String {
    let arch = if package == COMMON { "all" } else { "amd64" };
    format!("{package}_{VERSION}-1_{arch}.deb")
}

/// The name of a package's `.rpm`.
pub fn rpm_name(package: &str) -> String {
    let arch = if package == COMMON { "noarch" } else { "x86_64" };
    format!("{package}-{VERSION}-1.{arch}.rpm")
}

/// The name of a group's kernel package.
pub fn kernels(group: &Group) -> String {
    format!("rocm-blas-{}", group.suffix)
}

/// The names in a folder; empty if the folder is missing.
pub fn names(folder: &Path) -> BTreeSet<String> {
    let Ok(entries) = fs::read_dir(folder) else { return BTreeSet::new() };
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// The files of a folder: content by name.
pub fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let read = |name: String| (name.clone(), fs::read(folder.join(name)).unwrap());
    names(folder).into_iter().map(read).collect()
}

/// A file, folder or link in a tree.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Entry {
    Folder { mode: u32 },
    Link { target: String },
    File { mode: u32, bytes: Vec<u8> },
}

/// All entries below `root` by relative path, without the root itself.
pub fn tree(root: &Path) -> BTreeMap<String, Entry> {
    let mut entries = BTreeMap::new();
    walk(root, "", &mut entries);
    entries
}

fn walk(root: &Path, folder: &str, entries: &mut BTreeMap<String, Entry>) {
    for name in names(&root.join(folder)) {
        let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
        let place = root.join(&path);
        let metadata = fs::symlink_metadata(&place).unwrap();
        let mode = metadata.mode() & 0o7777;
        if metadata.is_dir() {
            walk(root, &path, entries);
            entries.insert(path, Entry::Folder { mode });
        } else if metadata.is_symlink() {
            let target = fs::read_link(&place).unwrap().into_os_string().into_string().unwrap();
            entries.insert(path, Entry::Link { target });
        } else {
            entries.insert(path, Entry::File { mode, bytes: fs::read(&place).unwrap() });
        }
    }
}

/// The bytes of the regular files below `root`, by relative path.
pub fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let file = |(path, entry)| match entry {
        Entry::File { bytes, .. } => Some((path, bytes)),
        Entry::Folder { .. } | Entry::Link { .. } => None,
    };
    tree(root).into_iter().filter_map(file).collect()
}

/// Writes a tree that [`tree`] has read, in reverse order of its paths if `reversed`.
pub fn plant(entries: &BTreeMap<String, Entry>, root: &Path, reversed: bool) {
    let mut paths: Vec<_> = entries.iter().collect();
    if reversed {
        paths.reverse();
    }
    for (path, entry) in paths {
        let place = root.join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        match entry {
            Entry::Folder { mode } => {
                fs::create_dir_all(&place).unwrap();
                fs::set_permissions(&place, Permissions::from_mode(*mode)).unwrap();
            }
            Entry::Link { target } => symlink(target, &place).unwrap(),
            Entry::File { mode, bytes } => {
                fs::write(&place, bytes).unwrap();
                fs::set_permissions(&place, Permissions::from_mode(*mode)).unwrap();
            }
        }
    }
}

/// Copies the example shards, to be damaged.
pub fn copy_shards(root: &Path) {
    for group in &GROUPS {
        let folder = group.folder(root);
        fs::create_dir_all(&folder).unwrap();
        plant(&tree(&group.folder(&shards())), &folder, false);
    }
}

/// All tags in `bytes`.
pub fn tags(bytes: &[u8]) -> Vec<String> {
    let starts =
        bytes.windows(TAG.len()).enumerate().filter(|(_, window)| *window == TAG.as_bytes());
    let text = |at: usize| bytes[at..].iter().take_while(|byte| (32..127).contains(*byte));
    starts.map(|(at, _)| text(at).map(|byte| char::from(*byte)).collect()).collect()
}

/// Offset and size of a section in an ELF file.
pub fn section(bytes: &[u8], name: &str) -> (usize, usize) {
    let file = object::File::parse(bytes).unwrap();
    let section = file.section_by_name(name).unwrap_or_else(|| panic!("no {name}"));
    let (offset, size) = section.file_range().unwrap();
    (usize::try_from(offset).unwrap(), usize::try_from(size).unwrap())
}

/// The bundles in an example binary's `.hip_fatbin`, where each starts on a page.
pub fn bundles(bytes: &[u8]) -> Vec<&[u8]> {
    let (offset, size) = section(bytes, ".hip_fatbin");
    let data = &bytes[offset..offset + size];
    let is_start = |at: &usize| {
        data[*at..].starts_with(b"CCOB") || data[*at..].starts_with(b"__CLANG_OFFLOAD_BUNDLE__")
    };
    let starts: Vec<usize> = (0..size).step_by(4096).filter(is_start).collect();
    let ends = starts.iter().skip(1).copied().chain([size]);
    starts.iter().zip(ends).map(|(&start, end)| unpadded(&data[start..end])).collect()
}

/// Cuts a compressed bundle where its header says; clang-19 writes version 2.
fn unpadded(bundle: &[u8]) -> &[u8] {
    if !bundle.starts_with(b"CCOB") {
        return bundle;
    }
    assert_eq!(bundle[4..6], 2u16.to_le_bytes());
    let total = u32::from_le_bytes(bundle[8..12].try_into().unwrap());
    &bundle[..usize::try_from(total).unwrap()]
}

/// A bundle's code objects by arch, unbundled by clang's own tool.
pub fn unbundle(bundle: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("bundle");
    fs::write(&input, bundle).unwrap();
    let list = tools::succeed(bundler(&input).arg("--list"));
    let targets: Vec<&str> = list.lines().filter(|entry| !entry.starts_with("host-")).collect();
    let outputs: Vec<PathBuf> =
        (0..targets.len()).map(|index| folder.path().join(index.to_string())).collect();
    let mut command = bundler(&input);
    command.args(["--unbundle", &format!("--targets={}", targets.join(","))]);
    for output in &outputs {
        command.arg(format!("--output={}", output.display()));
    }
    tools::run(&mut command);
    let arch = |entry: &str| {
        entry
            .strip_prefix("hipv4-amdgcn-amd-amdhsa--")
            .unwrap_or_else(|| panic!("{entry}"))
            .to_owned()
    };
    let read = |(entry, output): (&&str, &PathBuf)| (arch(entry), fs::read(output).unwrap());
    let found: BTreeMap<_, _> = targets.iter().zip(&outputs).map(read).collect();
    assert_eq!(found.len(), targets.len(), "{targets:?}");
    found
}

fn bundler(input: &Path) -> Command {
    let mut command = Command::new("clang-offload-bundler-19");
    command.arg("--type=o").arg(format!("--input={}", input.display()));
    command
}

/// SHA-256 in hex, computed by sha256sum.
pub fn sha256(file: &Path) -> String {
    let line = tools::succeed(Command::new("sha256sum").arg(file));
    line.split_whitespace().next().unwrap().to_owned()
}

//! `rockpack thin`: device code of other GPUs goes, and everything else stays as it is.

mod copies;
mod databases;
mod in_place;
mod libraries;
mod owned;
mod refused;
mod reports;
mod split;
mod tarballs;
mod targets;

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

use rockpack_core::content::Content;
use rockpack_core::gfx::{self, SPIRV, Target};
use rockpack_elf::ccob::CcobMethod;
use rockpack_elf::fatbin;
use serde_json::Value;
use support::ccob::ccob;
use support::example::{Entry, tree};
use support::fixtures::content;
use support::program::rockpack;
use support::transform::analyse;
use support::{kpack, sha256};
use tempfile::TempDir;

use crate::odd_code::{self, HOST, code_object};

/// The alignment of bundles in libraries.
const PAGE: usize = 4096;

/// A code object of five pages for `target`, different for every `seed`.
fn code(target: &str, seed: u32) -> Vec<u8> {
    let text = String::from_utf8(kpack::code(seed, 20_000)).unwrap();
    if target == SPIRV {
        return [&[0x03, 0x02, 0x23, 0x07][..], text.as_bytes()].concat();
    }
    let target: Target = target.parse().unwrap();
    let mut flags = u32::from(gfx::mach_of(target.base()).unwrap());
    for (feature, on) in target.features() {
        let shift = if feature == "xnack" { 8 } else { 10 };
        flags |= (if *on { 3 } else { 2 }) << shift;
    }
    if !target.base().is_generic() {
        return code_object(flags, &text);
    }
    // Code objects of generic targets have a version, and version 6 of the format.
    let mut code = code_object(flags | 1 << 24, &text);
    code[8] = 4;
    code
}

fn entry_id(target: &str) -> String {
    if target == SPIRV {
        return "hip-spirv64-amd-amdhsa--amdgcnspirv".to_owned();
    }
    format!("hipv4-amdgcn-amd-amdhsa--{target}")
}

/// A bundle with code for `targets`; the first has [`code`] of `seed`, the next of `seed + 1`.
fn bundle_of(targets: &[&str], seed: u32) -> Vec<u8> {
    let ids: Vec<String> = targets.iter().map(|target| entry_id(target)).collect();
    let codes = targets.iter().zip(seed..).map(|(target, seed)| code(target, seed));
    let mut entries = vec![(HOST, Vec::new())];
    entries.extend(ids.iter().map(String::as_str).zip(codes));
    odd_code::bundle(&entries)
}

/// A compressed bundle.
fn compressed(version: u16, method: CcobMethod, plain: &[u8]) -> Vec<u8> {
    let mut stream = Vec::new();
    match method {
        CcobMethod::Zlib => {
            let mut encoder = flate2::read::ZlibEncoder::new(plain, flate2::Compression::default());
            encoder.read_to_end(&mut stream).unwrap();
        }
        CcobMethod::Zstd => stream = zstd::encode_all(plain, 3).unwrap(),
    }
    ccob(version, if method == CcobMethod::Zlib { 0 } else { 1 }, plain, &stream)
}

/// The bundles one after the other, each at the start of a page.
fn joined(bundles: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for bundle in bundles {
        bytes.resize(bytes.len().next_multiple_of(PAGE), 0);
        bytes.extend(bundle);
    }
    bytes
}

/// A bundle that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ReadBundle {
    offset: u64,
    /// The version and method of a compressed one.
    compression: Option<(u16, CcobMethod)>,
    /// Ids and digests.
    entries: Vec<(String, String)>,
}

impl ReadBundle {
    /// The entries for the host and for `targets`.
    fn only(&self, targets: &[&str]) -> Vec<(String, String)> {
        let ids: Vec<String> = targets.iter().map(|target| entry_id(target)).collect();
        let is_kept = |id: &String| id.starts_with("host-") || ids.contains(id);
        self.entries.iter().filter(|(id, _)| is_kept(id)).cloned().collect()
    }
}

/// Reads the bundles of a section or file.
fn read_bundles(section: &Content) -> Vec<ReadBundle> {
    let read = |found: fatbin::FatbinBundle| {
        let own = found.bundle.entries.iter();
        let entries = own.map(|it| (it.id.text.clone(), sha256(&kpack::bytes(&it.content))));
        ReadBundle {
            offset: found.offset,
            compression: found.compression.as_ref().map(|header| (header.version, header.method)),
            entries: entries.collect(),
        }
    };
    fatbin::parse(section).unwrap().into_iter().map(read).collect()
}

/// The bundles of a fat binary.
fn bundles_in(binary: &Path) -> Vec<ReadBundle> {
    read_bundles(&analyse(binary).fatbin())
}

/// The offset of the bundle that each wrapper of a fat binary points to.
fn wrappers(binary: &Path) -> Vec<u64> {
    analyse(binary).wrappers().iter().map(|wrapper| wrapper.bundle_offset).collect()
}

/// All entries below `root` by path: kind, mode and time of modification, and the digest of a file or the target of
/// a link.
fn snapshot(root: &Path) -> BTreeMap<String, String> {
    let describe = |(path, entry): (String, Entry)| {
        let modified = fs::symlink_metadata(root.join(&path)).unwrap().modified().unwrap();
        let time = modified.duration_since(UNIX_EPOCH).unwrap().as_nanos();
        let text = match entry {
            Entry::Folder { mode } => format!("folder {mode:o} {time}"),
            Entry::Link { target } => format!("link {target}"),
            Entry::File { mode, bytes } => format!("file {mode:o} {time} {}", sha256(&bytes)),
        };
        (path, text)
    };
    tree(root).into_iter().map(describe).collect()
}

/// A folder with inputs and outputs, in which commands run.
pub struct Room(pub TempDir);

impl Room {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file, and the folders above it.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    /// Links a library with a wrapper for each of `bundles`.
    fn library(&self, name: &str, bundles: &[Vec<u8>]) -> PathBuf {
        self.library_with(name, bundles, "")
    }

    /// Links a library as [`Room::library`] does, with `more` assembly in front of the wrappers.
    fn library_with(&self, name: &str, bundles: &[Vec<u8>], more: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        odd_code::link(tempfile::tempdir().unwrap().path(), &path, bundles, more);
        path
    }

    /// A library with code for gfx1100 and gfx90a.
    fn usual(&self, name: &str) -> PathBuf {
        self.library(name, &[bundle_of(&["gfx1100", "gfx90a"], 1)])
    }

    /// The program with these words, in this folder.
    fn rockpack(&self, words: &str) -> Command {
        let mut command = rockpack();
        command.args(words.split_whitespace()).current_dir(self.0.path());
        command.env_remove("HSA_OVERRIDE_GFX_VERSION");
        command
    }

    /// Runs `rockpack thin` with these words.
    fn thin(&self, words: &str) -> Run {
        Run::of(&mut self.rockpack(&format!("thin {words}")))
    }
}

/// A run that ended.
struct Run {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Run {
    fn of(command: &mut Command) -> Self {
        let output = command.output().unwrap();
        let [stdout, stderr] =
            [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        Self { code: output.status.code(), stdout, stderr }
    }

    /// Fails unless the run succeeded.
    #[track_caller]
    fn done(self) -> Self {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        self
    }

    /// The JSON that a run with `--json` printed.
    #[track_caller]
    fn json(self) -> Value {
        serde_json::from_str(&self.done().stdout).unwrap()
    }

    /// Fails unless the run failed with this exit code and an error with all of `texts`.
    #[track_caller]
    fn failed(&self, code: i32, texts: &[&str]) {
        assert_eq!((self.code, self.stdout.as_str()), (Some(code), ""), "{}", self.stderr);
        for text in texts {
            assert!(self.stderr.contains(text), "no `{text}` in {}", self.stderr);
        }
    }
}

/// The files of the first input of a report: path, bytes before and afterwards (`None` if it is removed).
fn changed(report: &Value) -> Vec<(String, u64, Option<u64>)> {
    let files = report["inputs"][0]["files"].as_array().unwrap().iter();
    let file = |file: &Value| {
        (crate::text(&file["path"]), file["before"].as_u64().unwrap(), file["after"].as_u64())
    };
    files.map(file).collect()
}

/// The paths of [`changed`].
fn changed_paths(report: &Value) -> Vec<String> {
    changed(report).into_iter().map(|(path, ..)| path).collect()
}

/// The bundles of a file that consists of them.
fn bundles_of_file(path: &Path) -> Vec<ReadBundle> {
    read_bundles(&content(path))
}

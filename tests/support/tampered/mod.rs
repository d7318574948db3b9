//! The example packages, and ways to damage them.

mod archive;
mod edit;
mod rpm;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use clap::{Args, FromArgMatches};
use object::{Object, ObjectSection};
use rockpack::settings::{Environment, VerifyArguments};
use rockpack_package::receipt::Receipt;
use tempfile::TempDir;

use crate::program::repository;
use crate::tools::{self, have};

pub use archive::Archive;

/// The result of `verify --json`.
pub struct Run {
    pub status: i32,
    pub text: String,
}

impl Run {
    /// The problems, one object for each.
    pub fn problems(&self) -> Vec<serde_json::Value> {
        let json: serde_json::Value = serde_json::from_str(&self.text).unwrap();
        json["problems"].as_array().unwrap().clone()
    }

    /// The codes of the failed checks, each once, in order.
    pub fn codes(&self) -> Vec<String> {
        let codes = self.problems();
        let codes = codes.iter().map(|problem| problem["code"].as_str().unwrap().to_owned());
        codes.collect::<BTreeSet<_>>().into_iter().collect()
    }
}

fn rockpack() -> Command {
    let mut command = crate::program::rockpack();
    command.current_dir(repository(""));
    command
}

impl Run {
    /// Fails unless exactly these checks failed.
    #[track_caller]
    pub fn fired(&self, codes: &[&str]) {
        assert_eq!(self.codes(), codes, "{}", self.text);
        assert_eq!(self.status, i32::from(!codes.is_empty()));
    }
}

/// The result of `rockpack verify --json`, or its errors about input that cannot be verified, for which it is
/// started.
pub fn verify(paths: &[&str], arguments: &[&str]) -> Run {
    verified_here(&[paths, arguments].concat(), true).unwrap_or_else(|| {
        let output = rockpack().arg("verify").args(paths).args(arguments).arg("--json").output();
        let output = output.unwrap();
        let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
        Run { status: output.status.code().unwrap(), text: String::from_utf8(text).unwrap() }
    })
}

/// Fails unless these packages pass all checks, also those against the artifacts.
#[track_caller]
pub fn passes(packages: &Path, artifacts: &Path) {
    let [packages, artifacts] = [packages, artifacts].map(|path| path.to_str().unwrap());
    verify(&[packages], &["--against", artifacts]).fired(&[]);
}

/// What `rockpack verify` tells with these words, and its exit status. It is started for errors, and where it
/// tells the warnings of builds.
pub fn told(words: &[&str]) -> String {
    let here = verified_here(words, false).filter(|run| !run.text.contains(" build warning"));
    match here {
        Some(Run { status, text }) => format!("{text}exit status: {status}\n"),
        None => tools::told(crate::program::rockpack().arg("verify").args(words)),
    }
}

/// What the program would print, by its own functions in this process: a start takes as long as most sets.
/// Nothing if they fail, or would write a file.
fn verified_here(words: &[&str], is_json: bool) -> Option<Run> {
    let command = VerifyArguments::augment_args(clap::Command::new("verify"));
    let words = ["verify"].iter().chain(words);
    let arguments = VerifyArguments::from_arg_matches(&command.try_get_matches_from(words).ok()?);
    let arguments = arguments.ok()?;
    let is_json = is_json || arguments.json;
    let settings = arguments.resolve(&Environment::default()).ok()?;
    if settings.join.is_some() {
        return None;
    }
    let (text, has_failed) = rockpack::cli::verified(&settings, is_json).ok()?;
    Some(Run { status: i32::from(has_failed), text })
}

/// The libraries artifact of an example shard.
pub fn shard(name: &str) -> PathBuf {
    let family = match name {
        "gfx110X" => "gfx110X-dgpu",
        "gfx120X" => "gfx120X-all",
        name => name,
    };
    repository("examples/shards").join(format!("{name}-build/blas_lib_{family}"))
}

/// A copy of the example packages, to be damaged.
pub struct Set {
    folder: TempDir,
    receipt: Vec<u8>,
    format: &'static str,
}

/// The packages of each format, and of both together, built once.
fn built() -> &'static Path {
    static BUILT: OnceLock<TempDir> = OnceLock::new();
    let build = || {
        let folder = tempfile::tempdir().unwrap();
        for formats in ["deb", "rpm", "deb,rpm"] {
            let run = rockpack()
                .args(["build", "--artifacts", "examples/shards", "--version", "7.1.0"])
                .args(["--config", "examples/packaging-config.json", "--format", formats])
                .arg("--out")
                .arg(folder.path().join(formats))
                .output()
                .unwrap();
            assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        }
        folder
    };
    BUILT.get_or_init(build).path()
}

impl Set {
    /// The `.deb` packages and their receipt.
    #[expect(clippy::new_without_default, reason = "it builds a set")]
    pub fn new() -> Self {
        Self::copy("deb")
    }

    /// The `.deb` packages and their receipt.
    pub fn of_debs() -> Self {
        Self::copy("deb")
    }

    /// The `.rpm` packages and their receipt.
    pub fn of_rpms() -> Self {
        Self::copy("rpm")
    }

    /// The set of `.deb` packages and the set of `.rpm` packages, without those whose tools for editing are
    /// missing.
    pub fn of_each_format() -> Vec<Self> {
        let tools = [("deb", &["dpkg-deb"][..]), ("rpm", &rpm::TOOLS[..])];
        let there = tools.into_iter().filter(|(_, tools)| have(tools));
        there.map(|(format, _)| Self::copy(format)).collect()
    }

    /// The packages of both formats.
    pub fn of_both_formats() -> Self {
        Self::copy("deb,rpm")
    }

    /// An empty folder to build into.
    pub fn empty() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), receipt: Vec::new(), format: "deb" }
    }

    /// Reloads the receipt after another build.
    pub fn reopen(mut self) -> Self {
        self.receipt = fs::read(self.path("packages.json")).unwrap();
        self
    }

    fn copy(format: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for entry in fs::read_dir(built().join(format)).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
        }
        let receipt = fs::read(folder.path().join("packages.json")).unwrap();
        Self { folder, receipt, format }
    }

    /// The file name of a package.
    pub fn named(&self, package: &str) -> String {
        match self.format {
            "rpm" => format!("{package}-7.1.0-1.x86_64.rpm"),
            _ => format!("{package}_7.1.0-1_amd64.deb"),
        }
    }

    /// The file name of the package with libraries and programs.
    pub fn host(&self) -> String {
        self.named("rocm-blas")
    }

    /// The file name of a group's kernel package.
    pub fn kernels(&self, group: &str) -> String {
        self.named(&format!("rocm-blas-{group}"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The paths of all packages.
    pub fn packages(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let package = |path: &PathBuf| path.extension().is_some_and(|e| e == "deb" || e == "rpm");
        entries.filter(package).map(|path| path.to_str().unwrap().to_owned()).collect()
    }

    pub fn verify(&self, arguments: &[&str]) -> Run {
        self.verify_paths(&[self.folder.path().to_str().unwrap()], arguments)
    }

    pub fn verify_paths(&self, paths: &[&str], arguments: &[&str]) -> Run {
        verify(paths, arguments)
    }

    /// The text that `verify` prints for people.
    pub fn verify_text(&self) -> String {
        let output = rockpack().arg("verify").arg(self.folder.path()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Fails unless exactly these checks fail.
    #[track_caller]
    pub fn fires(&self, arguments: &[&str], codes: &[&str]) {
        let run = self.verify(arguments);
        assert_eq!(run.codes(), codes, "{}", run.text);
        assert_eq!(run.status, i32::from(!codes.is_empty()));
    }

    /// Restores the receipt of the build.
    pub fn fresh_receipt(&self) {
        fs::write(self.path("packages.json"), &self.receipt).unwrap();
    }

    pub fn remove_receipt(&self) {
        fs::remove_file(self.path("packages.json")).unwrap();
    }

    pub fn edit_receipt(&self, edit: impl FnOnce(&mut Receipt)) {
        let file = self.path("packages.json");
        let mut receipt = Receipt::parse(&fs::read(&file).unwrap()).unwrap();
        edit(&mut receipt);
        fs::write(file, receipt.to_bytes().unwrap()).unwrap();
    }
}

/// Offset and size of a section in an ELF file.
pub fn section(bytes: &[u8], name: &str) -> (usize, usize) {
    let file = object::File::parse(bytes).unwrap();
    let (offset, size) = file.section_by_name(name).unwrap().file_range().unwrap();
    (usize::try_from(offset).unwrap(), usize::try_from(size).unwrap())
}

/// The offset of a binary's wrappers.
pub fn wrapper_section(file: &Path) -> usize {
    section(&fs::read(file).unwrap(), ".hipFatBinSegment").0
}

/// Overwrites bytes of a file.
pub fn patch(file: &Path, offset: usize, bytes: &[u8]) {
    let mut content = fs::read(file).unwrap();
    content[offset..offset + bytes.len()].copy_from_slice(bytes);
    fs::write(file, content).unwrap();
}

/// Replaces the only `old` in a file.
pub fn replace(file: &Path, old: &[u8], new: &[u8]) {
    let content = fs::read(file).unwrap();
    let places: Vec<usize> = content
        .windows(old.len())
        .enumerate()
        .filter(|(_, w)| *w == old)
        .map(|(at, _)| at)
        .collect();
    assert_eq!(places.len(), 1);
    patch(file, places[0], new);
}

pub use crate::{hex, sha256};

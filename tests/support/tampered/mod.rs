//! The example packages, and ways to spoil them.

#![allow(dead_code, clippy::unwrap_used)]

mod archive;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use object::{Object, ObjectSection};
use rockpack::receipt::{MemberRecord, Receipt};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

pub use archive::Archive;
use archive::{field, rows};

/// What a run of `verify --json` gave.
pub struct Run {
    pub status: i32,
    pub text: String,
}

impl Run {
    /// The problems, one object each.
    pub fn problems(&self) -> Vec<serde_json::Value> {
        let json: serde_json::Value = serde_json::from_str(&self.text).unwrap();
        json["problems"].as_array().unwrap().clone()
    }

    /// The codes of the checks that failed, each once, in order.
    pub fn codes(&self) -> Vec<String> {
        let codes = self.problems();
        let codes = codes.iter().map(|problem| problem["code"].as_str().unwrap().to_owned());
        codes.collect::<BTreeSet<_>>().into_iter().collect()
    }
}

fn rockpack() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rockpack"));
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command
}

impl Run {
    /// Asserts which checks failed, all of them and no others.
    #[track_caller]
    pub fn fired(&self, codes: &[&str]) {
        assert_eq!(self.codes(), codes, "{}", self.text);
        assert_eq!(self.status, i32::from(!codes.is_empty()));
    }
}

/// Runs `rockpack verify --json`; what cannot be verified is told on stderr.
pub fn verify(paths: &[&str], arguments: &[&str]) -> Run {
    let output = rockpack().arg("verify").args(paths).args(arguments).arg("--json").output();
    let output = output.unwrap();
    let text = match output.stdout.is_empty() {
        true => output.stderr,
        false => output.stdout,
    };
    Run { status: output.status.code().unwrap(), text: String::from_utf8(text).unwrap() }
}

/// The artifact of libraries of an example shard.
pub fn shard(name: &str) -> PathBuf {
    let family = match name {
        "gfx110X" => "gfx110X-dgpu",
        "gfx120X" => "gfx120X-all",
        name => name,
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/shards");
    root.join(format!("{name}-build/blas_lib_{family}"))
}

/// A copy of the example packages that may be spoiled.
pub struct Set {
    folder: TempDir,
    receipt: Vec<u8>,
}

/// The packages of both formats, built once.
fn built() -> &'static Path {
    static BUILT: OnceLock<TempDir> = OnceLock::new();
    let build = || {
        let folder = tempfile::tempdir().unwrap();
        for formats in ["deb", "deb,rpm"] {
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
    pub fn new() -> Self {
        Self::copy("deb")
    }

    /// The same.
    pub fn of_debs() -> Self {
        Self::copy("deb")
    }

    /// The packages of both formats.
    pub fn of_both_formats() -> Self {
        Self::copy("deb,rpm")
    }

    /// An empty folder, to be built into.
    pub fn empty() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), receipt: Vec::new() }
    }

    /// The set with the receipt that a build has written by now.
    pub fn reopen(mut self) -> Self {
        self.receipt = fs::read(self.path("packages.json")).unwrap();
        self
    }

    fn copy(formats: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for entry in fs::read_dir(built().join(formats)).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
        }
        let receipt = fs::read(folder.path().join("packages.json")).unwrap();
        Self { folder, receipt }
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

    /// What `verify` prints for people.
    pub fn verify_text(&self) -> String {
        let output = rockpack().arg("verify").arg(self.folder.path()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Asserts which checks fail, all of them and no others.
    #[track_caller]
    pub fn fires(&self, arguments: &[&str], codes: &[&str]) {
        let run = self.verify(arguments);
        assert_eq!(run.codes(), codes, "{}", run.text);
        assert_eq!(run.status, i32::from(!codes.is_empty()));
    }

    /// The receipt of the build again.
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

    /// Makes the receipt say that the file or archive whose path ends with `path` is in `package`.
    pub fn record_in(&self, path: &str, package: &str) {
        self.edit_receipt(|receipt| {
            let there = receipt.code_objects.iter_mut().filter(|r| r.place.path().ends_with(path));
            there.for_each(|record| record.package = package.to_owned());
        });
    }

    /// Takes a `.deb` apart, edits it, brings its md5sums up to date and puts it together again;
    /// the receipt, if there is one, says so.
    pub fn edit(&self, name: &str, edit: impl FnOnce(&Path)) {
        self.rebuild(name, |root| {
            sum(root);
            edit(root);
            let kept = fs::read_to_string(root.join("DEBIAN/md5sums")).unwrap();
            sum(root);
            // What the edit itself added to the sums stays.
            let sums = root.join("DEBIAN/md5sums");
            let added = kept.lines().filter(|line| line.starts_with(&"0".repeat(32)));
            let added: String = added.map(|line| format!("{line}\n")).collect();
            fs::write(&sums, fs::read_to_string(&sums).unwrap() + &added).unwrap();
        });
    }

    /// The same with the md5sums as they were.
    pub fn edit_without_sums(&self, name: &str, edit: impl FnOnce(&Path)) {
        self.rebuild(name, edit);
    }

    fn rebuild(&self, name: &str, edit: impl FnOnce(&Path)) {
        let root = self.unpack(name);
        edit(root.path());
        let mut build = Command::new("dpkg-deb");
        build.args(["--root-owner-group", "-Zgzip", "-b"]).arg(root.path()).arg(self.path(name));
        super::tools::run(&mut build);
        if self.path("packages.json").exists() {
            self.update(name, root.path());
        }
    }

    fn unpack(&self, name: &str) -> TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        super::tools::run(Command::new("dpkg-deb").arg("-R").arg(self.path(name)).arg(root.path()));
        root
    }

    /// A file inside a package.
    pub fn file_of(&self, name: &str, path: &str) -> Vec<u8> {
        fs::read(self.unpack(name).path().join(path)).unwrap()
    }

    /// Makes the receipt tell the truth about a package.
    fn update(&self, name: &str, root: &Path) {
        let package = fs::read(self.path(name)).unwrap();
        let mut members = Vec::new();
        walk(root, root, &mut members);
        let archives = members.iter();
        let archives =
            archives.filter(|member| member.kind == "file" && member.path.ends_with(".kpack"));
        let count = archives.map(|member| {
            let bytes = fs::read(root.join(&member.path[1..])).unwrap();
            u64::from(u32::from_le_bytes(bytes[64..68].try_into().unwrap()))
        });
        let count = count.sum();
        self.edit_receipt(|receipt| {
            let record = receipt.packages.iter_mut().find(|r| r.file_name == name).unwrap();
            (record.size, record.sha256) = (package.len() as u64, sha256(&package));
            record.members = members;
            record.code_objects = count;
        });
    }

    /// Replaces a field of a package's control file.
    pub fn edit_control(&self, name: &str, field: &str, value: &str) {
        self.edit(name, |root| {
            let file = root.join("DEBIAN/control");
            let prefix = format!("{field}: ");
            let control = fs::read_to_string(&file).unwrap();
            let line = |line: &str| match line.starts_with(&prefix) {
                true => format!("{prefix}{value}\n"),
                false => format!("{line}\n"),
            };
            let mut lines: Vec<String> = control.lines().map(line).collect();
            if !lines.iter().any(|line| line.starts_with(&prefix)) {
                lines.push(format!("{prefix}{value}\n"));
            }
            fs::write(file, lines.concat()).unwrap();
        });
    }

    /// Makes the manifest in the host package tell the truth about the archive of `arch`.
    pub fn edit_manifest(&self, arch: &str) {
        let archive = format!("opt/rocm-7.1/lib/.kpack/blas_lib_{arch}.kpack");
        let packages = self.packages();
        let bytes = packages.iter().find_map(|package| {
            let root = self.unpack(package);
            fs::read(root.path().join(&archive)).ok()
        });
        let bytes = bytes.unwrap();
        self.edit("rocm-blas_7.1.0-1_amd64.deb", |root| {
            let file = root.join("opt/rocm-7.1/lib/.kpack/blas_lib.kpm");
            let mut manifest =
                rmpv::decode::read_value(&mut &fs::read(&file).unwrap()[..]).unwrap();
            let entry = field(field(&mut manifest, "kpack_files"), arch);
            *field(entry, "size") = (bytes.len() as u64).into();
            *field(entry, "kernel_count") = rows(&bytes).into();
            let mut out = Vec::new();
            rmpv::encode::write_value(&mut out, &manifest).unwrap();
            fs::write(file, out).unwrap();
        });
    }

    /// SHA-256 of the code objects of a fat binary, as `inspect` and the receipt know them.
    pub fn code_objects_of(&self, fat: &[u8]) -> Vec<String> {
        let (offset, size) = section(fat, ".hip_fatbin");
        let fatbin = rockpack::content::Content::of_bytes(&fat[offset..offset + size]);
        let mut digests = Vec::new();
        for bundle in rockpack::formats::fatbin::parse(&fatbin).unwrap() {
            for entry in &bundle.bundle.entries {
                let content = &entry.content;
                let bytes = content.read_vec(0..content.len(), 1 << 24, "entry").unwrap();
                digests.push(sha256(&bytes));
            }
        }
        digests
    }
}

/// Writes md5sums of all files of an unpacked package.
fn sum(root: &Path) {
    let mut members = Vec::new();
    walk(root, root, &mut members);
    let mut sums = String::new();
    for member in members.iter().filter(|member| member.kind == "file") {
        use md5::Digest as _;
        let bytes = fs::read(root.join(&member.path[1..])).unwrap();
        sums += &format!("{}  {}\n", hex(&md5::Md5::digest(&bytes)), &member.path[1..]);
    }
    fs::write(root.join("DEBIAN/md5sums"), sums).unwrap();
}

fn walk(root: &Path, folder: &Path, members: &mut Vec<MemberRecord>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path == root.join("DEBIAN") {
            continue;
        }
        let metadata = path.symlink_metadata().unwrap();
        let mut member = MemberRecord {
            path: format!("/{}", path.strip_prefix(root).unwrap().display()),
            kind: "file".to_owned(),
            mode: metadata.permissions().mode() & 0o7777,
            size: None,
            sha256: None,
            target: None,
        };
        if metadata.is_dir() {
            member.kind = "directory".to_owned();
            walk(root, &path, members);
        } else if metadata.is_symlink() {
            member.kind = "link".to_owned();
            member.target = Some(fs::read_link(&path).unwrap().display().to_string());
        } else {
            let bytes = fs::read(&path).unwrap();
            (member.size, member.sha256) = (Some(bytes.len() as u64), Some(sha256(&bytes)));
        }
        members.push(member);
    }
}

/// Offset and size of a section in an ELF file.
pub fn section(bytes: &[u8], name: &str) -> (usize, usize) {
    let file = object::File::parse(bytes).unwrap();
    let (offset, size) = file.section_by_name(name).unwrap().file_range().unwrap();
    (usize::try_from(offset).unwrap(), usize::try_from(size).unwrap())
}

/// Offset of the wrappers of a binary.
pub fn wrapper_section(file: &Path) -> usize {
    section(&fs::read(file).unwrap(), ".hipFatBinSegment").0
}

/// Overwrites bytes of a file.
pub fn patch(file: &Path, offset: usize, bytes: &[u8]) {
    let mut content = fs::read(file).unwrap();
    content[offset..offset + bytes.len()].copy_from_slice(bytes);
    fs::write(file, content).unwrap();
}

/// Overwrites the one place where `old` stands.
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

pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

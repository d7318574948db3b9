//! Packed artifacts, made with GNU tar and the compressors' own programs.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::tools;

/// How an archive is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// The archive is compressed with `zstd`.
    Zstd,
    /// The archive is compressed with `xz`.
    Xz,
}

impl Packing {
    /// The file name ending of such archives.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Zstd => "tar.zst",
            Self::Xz => "tar.xz",
        }
    }

    fn command(self) -> Command {
        let mut command = Command::new(match self {
            Self::Zstd => "zstd",
            Self::Xz => "xz",
        });
        command.args(["-c", "-q", "-1"]);
        command
    }

    /// Compresses `bytes`.
    pub fn compress(self, bytes: &[u8]) -> Vec<u8> {
        tools::need(&TOOLS);
        piped(self.command(), bytes)
    }
}

/// The tools that packing needs.
pub const TOOLS: [&str; 4] = ["tar", "zstd", "xz", "sha256sum"];

/// The output of a filter for `bytes`.
fn piped(mut command: Command, bytes: &[u8]) -> Vec<u8> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || input.write_all(bytes).unwrap());
        child.wait_with_output().unwrap()
    });
    assert!(output.status.success(), "{command:?}");
    output.stdout
}

/// The tar archive of the folder `artifact`, with the manifest first and further options of tar.
pub fn tar(artifact: &Path, options: &[&str]) -> Vec<u8> {
    let mut names: Vec<String> = fs::read_dir(artifact)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "artifact_manifest.txt")
        .collect();
    names.sort();
    let mut command = Command::new("tar");
    command.args(options).arg("-C").arg(artifact);
    command.args(["-cf", "-", "artifact_manifest.txt"]).args(names);
    tools::run(&mut command).stdout
}

/// Packs the folder `artifact` into an archive next to it, removes the folder, and returns the archive's path.
pub fn pack(artifact: &Path, packing: Packing) -> PathBuf {
    let bytes = packing.compress(&tar(artifact, &[]));
    let archive = archive_of(artifact, packing);
    fs::write(&archive, bytes).unwrap();
    fs::remove_dir_all(artifact).unwrap();
    archive
}

/// The path at which [`pack`] writes a folder's archive.
pub fn archive_of(artifact: &Path, packing: Packing) -> PathBuf {
    let name = artifact.file_name().unwrap().to_str().unwrap();
    artifact.with_file_name(format!("{name}.{}", packing.ending()))
}

/// Writes an archive's checksum file as sha256sum does.
pub fn sum(archive: &Path) -> PathBuf {
    let name = archive.file_name().unwrap();
    let mut command = Command::new("sha256sum");
    let text = tools::run(command.current_dir(archive.parent().unwrap()).arg(name)).stdout;
    let path = PathBuf::from(format!("{}.sha256sum", archive.display()));
    fs::write(&path, text).unwrap();
    path
}

/// The artifact folders below a folder of shards, in order.
pub fn artifacts(shards: &Path) -> Vec<PathBuf> {
    folders_in(shards).iter().flat_map(|shard| folders_in(shard)).collect()
}

fn folders_in(path: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(path).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    paths.into_iter().filter(|path| path.is_dir()).collect()
}

/// A tar archive made by hand, for members that tar would not write.
pub struct Handmade {
    bytes: Vec<u8>,
}

impl Handmade {
    /// An archive without members.
    #[expect(clippy::new_without_default, reason = "what it begins with is no default")]
    pub fn new() -> Self {
        Self { bytes: Vec::new() }
    }

    /// An archive with the manifest of one prefix, `libs/A/stage`.
    pub fn with_manifest() -> Self {
        let mut archive = Self::new();
        archive.file("artifact_manifest.txt", b"libs/A/stage\n");
        archive
    }

    /// Adds a file.
    pub fn file(&mut self, name: &str, content: &[u8]) {
        self.member(name, b'0', "", 0o644, content);
    }

    /// Adds a member of any type.
    pub fn member(&mut self, name: &str, kind: u8, target: &str, mode: u32, content: &[u8]) {
        self.owned(["", ""], (name, kind, target, mode), content);
    }

    /// Adds a file, and overwrites its header with `bytes` at offset `at`.
    pub fn patched(&mut self, name: &str, content: &[u8], at: usize, bytes: &[u8]) {
        let start = self.bytes.len();
        self.file(name, content);
        let header = &mut self.bytes[start..start + 512];
        header[at..at + bytes.len()].copy_from_slice(bytes);
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }

    /// Adds a member that names its owner and group.
    pub fn owned(
        &mut self,
        [user, group]: [&str; 2],
        (name, kind, target, mode): (&str, u8, &str, u32),
        content: &[u8],
    ) {
        let mut header = [0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        for (at, text) in [
            (100, format!("{mode:07o}")),
            (108, "0000000".into()),
            (116, "0000000".into()),
            (124, format!("{:011o}", content.len())),
            (136, "00000000000".into()),
            (148, " ".repeat(8)),
            (156, char::from(kind).into()),
            (157, target.into()),
            (257, "ustar\0".to_owned() + "00"),
            (265, user.into()),
            (297, group.into()),
        ] {
            header[at..at + text.len()].copy_from_slice(text.as_bytes());
        }
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.bytes.extend_from_slice(&header);
        self.bytes.extend_from_slice(content);
        let rest = self.bytes.len().next_multiple_of(512) - self.bytes.len();
        self.bytes.extend_from_slice(&[0; 512][..rest]);
    }

    /// The bytes of the archive, with its end.
    pub fn finish(mut self) -> Vec<u8> {
        self.bytes.extend([0; 1024]);
        self.bytes
    }
}

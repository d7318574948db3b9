//! The content of the artifacts, by install-relative path.

use std::collections::BTreeMap;

use rockpack_base::content::Content;
use rockpack_base::error::Result;
use rockpack_base::formats::kpm;
use rockpack_base::tree::{Node, TreePath};

use super::split_inputs::{
    self, ArchiveInput, ArchiveRows, BinaryBuild, SplitInputs, TransformedInput, UnclaimedCode,
};
use crate::input::artifact::Scan;
use crate::report::Progress;
use crate::verify::own::digest::Sha;
use crate::verify::own::host_elf;
use crate::verify::own::originals::{self, DeviceEntry};
use crate::verify::read_each;

/// All artifacts of all shards.
#[derive(Default)]
pub(in crate::verify) struct ArtifactInputs {
    /// The files that are packaged unchanged: all that the shards have at a path.
    pub(in crate::verify) plain: BTreeMap<TreePath, Vec<Plain>>,
    /// Builds of binaries with device code.
    pub(in crate::verify) fat: BTreeMap<TreePath, Vec<BinaryBuild>>,
    /// Code objects of kernel archives that belong to no binary.
    unclaimed: Vec<UnclaimedCode>,
}

/// The file of one shard at a path.
pub(in crate::verify) enum Plain {
    /// A file, and the code objects of one that is device code: itself, or those of its bundles.
    File {
        shard: String,
        sha256: Sha,
        device: Vec<DeviceEntry>,
        /// The mode in the artifact.
        mode: u32,
        content: Content,
    },
    Link {
        target: String,
    },
    Directory,
}

/// A file of a shard.
#[derive(Clone, Copy)]
struct InputFile<'a> {
    path: &'a TreePath,
    shard: &'a str,
    content: &'a Content,
    mode: u32,
}

/// A file and what was found in it.
pub(in crate::verify) enum ExaminedInput {
    Plain(Plain),
    Fat(BinaryBuild),
    Transformed(TransformedInput),
    Archive(ArchiveRows),
    /// A manifest of archives, which every package rewrites: the files that it lists.
    Manifest(Vec<String>),
}

impl ArtifactInputs {
    /// Reads all artifacts.
    pub(in crate::verify) fn read(scan: &Scan, progress: &dyn Progress) -> Result<Self> {
        let mut inputs = Self::default();
        let mut files: Vec<InputFile<'_>> = Vec::new();
        for shard in &scan.shards {
            let prefixes = shard.artifacts.iter().flat_map(|artifact| &artifact.prefixes);
            for (path, node) in prefixes.flat_map(|prefix| &prefix.tree) {
                match node {
                    // What kernel archives lie in goes with them: packages have their own.
                    Node::Directory { .. } if path.name() == ".kpack" => {}
                    Node::Directory { .. } => inputs.add(path, Plain::Directory),
                    Node::Link { target } => {
                        inputs.add(path, Plain::Link { target: target.clone() })
                    }
                    Node::File { data, mode } => {
                        let (shard, content, mode) = (shard.name.as_str(), data, *mode);
                        files.push(InputFile { path, shard, content, mode });
                    }
                }
            }
        }
        let found = read_each(&files, |file| file.content.len(), progress, examine_any);
        let mut split = SplitInputs::default();
        for (InputFile { path, shard, content, mode }, found) in files.iter().zip(found) {
            match found? {
                ExaminedInput::Transformed(binary) => split.binary(path, binary),
                ExaminedInput::Archive(rows) => {
                    let (path, content, mode) = ((*path).clone(), (*content).clone(), *mode);
                    split.archive(shard, ArchiveInput { path, rows, mode, content });
                }
                ExaminedInput::Manifest(listed) => split.manifest(shard, path, &listed),
                ExaminedInput::Plain(plain) => inputs.add(path, plain),
                ExaminedInput::Fat(build) => {
                    inputs.fat.entry((*path).clone()).or_default().push(build)
                }
            }
        }
        for (shard, archive) in split.take_shipped(inputs.fat.keys()) {
            let ArchiveInput { path, rows, mode, content } = archive;
            let device = rows.into_values().flatten().collect();
            inputs.add(&path, plain(&shard, (&content, mode), device)?);
        }
        let (builds, unclaimed) = split.builds();
        for (path, build) in builds {
            inputs.fat.entry(path).or_default().push(build);
        }
        Ok(Self { unclaimed, ..inputs })
    }

    fn add(&mut self, path: &TreePath, plain: Plain) {
        self.plain.entry(path.clone()).or_default().push(plain);
    }

    /// Whether the artifacts have anything at an install-relative path.
    pub(in crate::verify) fn has(&self, path: &TreePath) -> bool {
        self.plain.contains_key(path) || self.fat.contains_key(path)
    }

    /// The code objects of all builds of binaries.
    pub(in crate::verify) fn in_binaries(&self) -> impl Iterator<Item = &DeviceEntry> {
        self.fat.values().flatten().flat_map(|build| build.device.entries())
    }

    /// The code objects of all files that are device code, and those of archives that belong to no
    /// binary.
    pub(in crate::verify) fn in_files(&self) -> impl Iterator<Item = CodeInFile<'_>> {
        let files = self
            .plain
            .iter()
            .flat_map(|(path, found)| found.iter().map(move |f| (path, f)))
            .flat_map(|(path, found)| {
                let (shard, device) = match found {
                    Plain::File { shard, device, .. } => (shard.as_str(), device.as_slice()),
                    Plain::Link { .. } | Plain::Directory => ("", [].as_slice()),
                };
                device.iter().map(move |entry| CodeInFile { path, shard, entry })
            });
        let unclaimed = self.unclaimed.iter();
        files.chain(unclaimed.map(|left| CodeInFile {
            path: &left.path,
            shard: &left.shard,
            entry: &left.entry,
        }))
    }
}

/// A code object of a file that is device code, or of an archive that belongs to no binary.
pub(in crate::verify) struct CodeInFile<'a> {
    pub(in crate::verify) path: &'a TreePath,
    pub(in crate::verify) shard: &'a str,
    pub(in crate::verify) entry: &'a DeviceEntry,
}

/// Examines a file of a shard. A build may package a file unchanged that this reader cannot take apart, such
/// as an odd ELF file: a package must have it with the same bytes.
fn examine_any(file: &InputFile<'_>) -> Result<ExaminedInput> {
    let InputFile { path, shard, content, mode } = *file;
    match examine(path, shard, (content, mode)) {
        Err(error) if error.is_of_format() => {
            Ok(ExaminedInput::Plain(plain(shard, (content, mode), Vec::new())?))
        }
        examined => examined,
    }
}

fn plain(shard: &str, (content, mode): (&Content, u32), device: Vec<DeviceEntry>) -> Result<Plain> {
    let (shard, sha256, content) = (shard.to_owned(), content.sha256()?, content.clone());
    Ok(Plain::File { shard, sha256, device, mode, content })
}

/// Examines the file `content` with `mode` at an install-relative path. Fails if it cannot be read as the
/// kind that it claims to be.
pub(in crate::verify) fn examine(
    path: &TreePath,
    shard: &str,
    (content, mode): (&Content, u32),
) -> Result<ExaminedInput> {
    let _open = content.pin()?;
    if let Some(elf) = host_elf::read(content)? {
        if let Some(device) = originals::read(content, &elf)? {
            let (shard, content) = (shard.to_owned(), content.clone());
            let build = BinaryBuild { shard, device, code: elf.code, mode, content };
            return Ok(ExaminedInput::Fat(build));
        }
        if let Some(binary) = split_inputs::transformed(shard, (content, mode), &elf)? {
            return Ok(ExaminedInput::Transformed(binary));
        }
    }
    if let Some(rows) = split_inputs::rows(content)? {
        return Ok(ExaminedInput::Archive(rows));
    }
    if path.name().ends_with(".kpm")
        && let Ok(manifest) = kpm::Manifest::parse(content)
    {
        let files = manifest.archives.into_values().map(|archive| archive.file);
        return Ok(ExaminedInput::Manifest(files.collect()));
    }
    Ok(ExaminedInput::Plain(plain(shard, (content, mode), originals::loose(content)?)?))
}

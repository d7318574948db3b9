//! The content of the artifacts, by install-relative path.

use std::collections::BTreeMap;

use rockpack_core::content::Content;
use rockpack_core::error::Result;
use rockpack_core::tree::{Node, TreePath};
use rockpack_elf::kpm;

use super::split_inputs::{
    self, ArchiveInput, ArchiveRows, BinaryBuild, InputFile, SplitInputs, TransformedInput,
};
use crate::own::digest::Sha;
use crate::own::host_elf;
use crate::own::originals::{self, DeviceEntry};
use crate::read_each;
use rockpack_report::Progress;
use rockpack_split::input::artifact::Scan;

/// All artifacts of all shards.
#[derive(Default)]
pub(crate) struct ArtifactInputs {
    /// The files that are packaged unchanged: all that the shards have at a path.
    pub(crate) plain: BTreeMap<TreePath, Vec<Plain>>,
    /// Builds of binaries with device code.
    pub(crate) fat: BTreeMap<TreePath, Vec<BinaryBuild>>,
}

/// The file of one shard at a path.
pub(crate) enum Plain {
    /// A file, and the code objects of one that is device code: itself, or those of its bundles.
    File {
        file: InputFile,
        sha256: Sha,
        device: Vec<DeviceEntry>,
    },
    Link {
        target: String,
    },
    Directory,
}

impl Plain {
    fn file(&self) -> Option<&InputFile> {
        match self {
            Self::File { file, .. } => Some(file),
            Self::Link { .. } | Self::Directory => None,
        }
    }

    pub(super) fn content(&self) -> Option<&Content> {
        self.file().map(|file| &file.content)
    }
}

/// A file and what was found in it.
pub(crate) enum ExaminedInput {
    Plain(Plain),
    Fat(BinaryBuild),
    Transformed(TransformedInput),
    Archive(ArchiveRows),
    /// A manifest of archives, which every package rewrites: the files that it lists.
    Manifest(Vec<String>),
}

impl ArtifactInputs {
    /// Reads all artifacts.
    pub(crate) fn read(scan: &Scan, progress: &dyn Progress) -> Result<Self> {
        let mut inputs = Self::default();
        let mut files: Vec<(&TreePath, InputFile)> = Vec::new();
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
                        let (shard, content) = (shard.name.clone(), data.clone());
                        files.push((path, InputFile { shard, content, mode: *mode }));
                    }
                }
            }
        }
        let found = read_each(&files, |(_, file)| file.content.len(), progress, examine_any);
        let mut split = SplitInputs::default();
        for ((path, file), found) in files.into_iter().zip(found) {
            match found? {
                ExaminedInput::Transformed(binary) => split.binary(path, binary),
                ExaminedInput::Archive(rows) => {
                    split.archive(ArchiveInput { path: path.clone(), file, rows });
                }
                ExaminedInput::Manifest(listed) => split.manifest(&file.shard, path, &listed),
                ExaminedInput::Plain(plain) => inputs.add(path, plain),
                ExaminedInput::Fat(build) => {
                    inputs.fat.entry(path.clone()).or_default().push(build);
                }
            }
        }
        for ArchiveInput { path, file, rows } in split.take_shipped(inputs.fat.keys()) {
            let device = rows.into_values().flatten().collect();
            inputs.add(&path, plain(&file, device)?);
        }
        for (path, build) in split.builds() {
            inputs.fat.entry(path).or_default().push(build);
        }
        Ok(inputs)
    }

    fn add(&mut self, path: &TreePath, plain: Plain) {
        self.plain.entry(path.clone()).or_default().push(plain);
    }

    /// Whether the artifacts have anything at an install-relative path.
    pub(crate) fn has(&self, path: &TreePath) -> bool {
        self.plain.contains_key(path) || self.fat.contains_key(path)
    }

    /// The modes of the files at an install-relative path.
    pub(super) fn modes(&self, path: &TreePath) -> impl Iterator<Item = u32> {
        let plain = self.plain.get(path).into_iter().flatten().filter_map(Plain::file);
        let fat = self.fat.get(path).into_iter().flatten().map(|build| &build.file);
        plain.chain(fat).map(|file| file.mode)
    }

    /// The code objects of all builds of binaries.
    pub(crate) fn in_binaries(&self) -> impl Iterator<Item = &DeviceEntry> {
        self.fat.values().flatten().flat_map(|build| build.device.entries())
    }

    /// The code objects of all files that are device code.
    pub(crate) fn in_files(&self) -> impl Iterator<Item = CodeInFile<'_>> {
        self.plain.iter().flat_map(|(path, found)| {
            let files = found.iter().filter_map(|plain| match plain {
                Plain::File { file, device, .. } => Some((file, device)),
                Plain::Link { .. } | Plain::Directory => None,
            });
            let entries = files.flat_map(|(file, device)| device.iter().map(move |it| (file, it)));
            entries.map(move |(file, entry)| CodeInFile { path, shard: &file.shard, entry })
        })
    }
}

/// A code object of a file that is device code.
pub(crate) struct CodeInFile<'a> {
    pub(crate) path: &'a TreePath,
    pub(crate) shard: &'a str,
    pub(crate) entry: &'a DeviceEntry,
}

/// Examines a file of a shard. A build may package a file unchanged that this reader cannot take apart, such
/// as an odd ELF file: a package must have it with the same bytes.
fn examine_any((path, file): &(&TreePath, InputFile)) -> Result<ExaminedInput> {
    match examine(path, file) {
        Err(error) if error.is_of_format() => Ok(ExaminedInput::Plain(plain(file, Vec::new())?)),
        examined => examined,
    }
}

fn plain(file: &InputFile, device: Vec<DeviceEntry>) -> Result<Plain> {
    Ok(Plain::File { file: file.clone(), sha256: file.content.sha256()?, device })
}

/// Examines a file at an install-relative path. Fails if it cannot be read as the kind that it claims to be.
pub(crate) fn examine(path: &TreePath, file: &InputFile) -> Result<ExaminedInput> {
    let content = &file.content;
    let _open = content.pin()?;
    if let Some(elf) = host_elf::read(content)? {
        if let Some(device) = originals::read(content, &elf)? {
            let build = BinaryBuild { file: file.clone(), device, code: elf.code };
            return Ok(ExaminedInput::Fat(build));
        }
        if let Some(binary) = split_inputs::transformed(file, &elf)? {
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
    Ok(ExaminedInput::Plain(plain(file, originals::loose(content)?)?))
}

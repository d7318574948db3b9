//! What the artifacts hold, by install-relative path.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::split_inputs::{
    self, ArchiveRows, BinaryBuild, SplitInputs, TransformedInput, UnclaimedCode,
};
use crate::content::Content;
use crate::error::Result;
use crate::formats::kpm;
use crate::input::artifact::Scan;
use crate::report::{Progress, Stage};
use crate::tree::{Node, TreePath};
use crate::verify::own::digest::Sha;
use crate::verify::own::host_elf;
use crate::verify::own::originals::{self, DeviceEntry};
use crate::verify::own::script;

/// All artifacts of all shards.
#[derive(Default)]
pub(in crate::verify) struct ArtifactInputs {
    /// What is packaged as it is: all that the shards have at a path.
    pub(in crate::verify) plain: BTreeMap<TreePath, Vec<Plain>>,
    /// Builds of binaries with device code.
    pub(in crate::verify) fat: BTreeMap<TreePath, Vec<BinaryBuild>>,
    /// Code objects of kernel archives that belong to no binary.
    unclaimed: Vec<UnclaimedCode>,
}

/// What one shard has at a path.
pub(in crate::verify) enum Plain {
    /// A file, and the code objects of one that is device code: itself, or those of its bundles.
    File {
        shard: String,
        sha256: Sha,
        /// The digest of what stays where a file is written anew: a program's or library's machine code,
        /// everything behind the first line of a script.
        code: Option<Sha>,
        device: Vec<DeviceEntry>,
    },
    Link {
        target: String,
    },
    Directory,
}

/// A file and what was found in it.
pub(in crate::verify) enum ExaminedInput {
    Plain(Plain),
    Fat(BinaryBuild),
    Transformed(TransformedInput),
    Archive(ArchiveRows),
    /// A manifest of archives, which is made again for every package.
    Manifest,
}

impl ArtifactInputs {
    /// Reads all artifacts.
    pub(in crate::verify) fn read(scan: &Scan, progress: &dyn Progress) -> Result<Self> {
        let mut inputs = Self::default();
        let mut files: Vec<(&TreePath, &str, &Content)> = Vec::new();
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
                    Node::File { data, .. } => files.push((path, &shard.name, data)),
                }
            }
        }
        progress.expect(Stage::Verify, files.iter().map(|file| file.2.len()).sum());
        progress.begin(Stage::Verify);
        let found: Result<Vec<ExaminedInput>> = files
            .par_iter()
            .map(|(path, shard, content)| {
                let found = examine(path, shard, content);
                progress.advance(Stage::Verify, content.len());
                found
            })
            .collect();
        progress.end(Stage::Verify);
        let mut split = SplitInputs::default();
        for ((path, shard, _), found) in files.iter().zip(found?) {
            match found {
                ExaminedInput::Transformed(binary) => split.binary(path, binary),
                ExaminedInput::Archive(rows) => split.archive(shard, path, rows),
                ExaminedInput::Manifest => {}
                ExaminedInput::Plain(plain) => inputs.add(path, plain),
                ExaminedInput::Fat(build) => {
                    inputs.fat.entry((*path).clone()).or_default().push(build)
                }
            }
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
    /// binary, with the path and shard of the file.
    pub(in crate::verify) fn in_files(
        &self,
    ) -> impl Iterator<Item = (&TreePath, &str, &DeviceEntry)> {
        let files =
            self.plain.iter().flat_map(|(path, found)| found.iter().map(move |f| (path, f)));
        let files = files.flat_map(|(path, found)| {
            let (shard, device) = match found {
                Plain::File { shard, device, .. } => (shard.as_str(), device.as_slice()),
                Plain::Link { .. } | Plain::Directory => ("", [].as_slice()),
            };
            device.iter().map(move |entry| (path, shard, entry))
        });
        let unclaimed = self.unclaimed.iter();
        files.chain(unclaimed.map(|left| (&left.path, left.shard.as_str(), &left.entry)))
    }
}

pub(in crate::verify) fn examine(
    path: &TreePath,
    shard: &str,
    content: &Content,
) -> Result<ExaminedInput> {
    let shard = shard.to_owned();
    let _open = content.pin()?;
    let mut code = None;
    if let Some(elf) = host_elf::read(content)? {
        if let Some(device) = originals::read(content, &elf)? {
            let content = content.clone();
            return Ok(ExaminedInput::Fat(BinaryBuild { shard, device, code: elf.code, content }));
        }
        if let Some(binary) = split_inputs::transformed(&shard, content, &elf)? {
            return Ok(ExaminedInput::Transformed(binary));
        }
        code = Some(elf.code);
    }
    if let Some(rows) = split_inputs::rows(content)? {
        return Ok(ExaminedInput::Archive(rows));
    }
    if path.name().ends_with(".kpm") && kpm::Manifest::parse(content).is_ok() {
        return Ok(ExaminedInput::Manifest);
    }
    let code = match code {
        Some(code) => Some(code),
        None => script::read(content)?.map(|script| script.body),
    };
    let (sha256, device) = (content.sha256()?, originals::loose(content)?);
    Ok(ExaminedInput::Plain(Plain::File { shard, sha256, code, device }))
}

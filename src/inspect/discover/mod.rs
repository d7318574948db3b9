//! Discovery: which targets each build artifact has device code for.
//!
//! Owns counting (code objects of fat binaries and kernel archives per target, files of kernel databases per arch),
//! distinguishing intended archs from fallbacks of the compiler (see `fallback`), and the packaging configuration that
//! follows from both. It reads what `scan` and `split` found. `recombine` checks whether shards fit together.

mod fallback;
mod propose;

use std::collections::BTreeMap;

use rockpack_core::gfx::{self, BaseArch, Target};
use rockpack_core::tree::Node;
use rockpack_report::Findings;
use rockpack_split::input::artifact::Scan;
use rockpack_split::{HostBinary, HostKind, KernelArchive, SplitArtifact};
use serde::Serialize;

pub use propose::{PrimaryShard, Proposal, UngroupedArch, default_grouping, propose};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Discovery {
    /// The shards in name order.
    pub shards: Vec<ShardContents>,
    /// Every base arch with device code, by generation.
    pub architectures: Vec<ArchSummary>,
    pub findings: Findings,
}

/// Sums up what `split` holds of the artifacts of `scan`.
pub fn discover(scan: &Scan, split: &[SplitArtifact]) -> Discovery {
    let shards = scan.shards.iter().map(|own| {
        let of_shard: Vec<_> = split.iter().filter(|one| one.shard == own.name).collect();
        shard(&own.name, &of_shard)
    });
    let shards: Vec<ShardContents> = shards.collect();
    let parts = split.iter().map(|artifact| &artifact.findings);
    let mut findings = Findings::of([&scan.findings].into_iter().chain(parts));
    findings.sort();
    Discovery { architectures: architectures(&shards), shards, findings }
}

/// A number of things and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Amount {
    pub count: u64,
    /// The sum of their bytes: uncompressed for code objects, on disk for files.
    pub bytes: u64,
}

impl Amount {
    /// Counts one more thing of `bytes` bytes.
    fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    fn join(&mut self, other: Self) {
        self.count += other.count;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShardContents {
    pub name: String,
    /// The artifacts in name order.
    pub artifacts: Vec<ArtifactContents>,
    /// The archs with code only because the compiler fell back to them, each with the evidence.
    pub fallbacks: BTreeMap<BaseArch, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArtifactContents {
    /// E.g. `blas_lib_gfx110X-dgpu`.
    pub name: String,
    /// The GPU family, e.g. `gfx110X-dgpu`.
    #[serde(rename = "family")]
    pub gpu_family: String,
    /// Host files and their bytes; for fat binaries, the bytes that remain without their device code.
    pub host_files: Amount,
    /// Fat binaries among them, and binaries whose code is in kernel archives.
    pub binaries: u64,
    /// Code objects of fat binaries and in kernel archives, by target.
    pub code_objects: BTreeMap<Target, Amount>,
    /// Files of kernel databases by arch; a file for several archs counts for each.
    pub databases: BTreeMap<BaseArch, Amount>,
}

impl ArtifactContents {
    /// Whether it has device code.
    pub fn has_device_code(&self) -> bool {
        !self.code_objects.is_empty() || !self.databases.is_empty()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArchSummary {
    pub arch: BaseArch,
    /// E.g. `RDNA 3`; empty if no generation is known.
    pub generation: String,
    /// Products with it.
    pub products: Vec<String>,
    /// The shards that have device code for it.
    pub shards: Vec<String>,
    /// Code objects of fat binaries and kernel archives.
    pub code_objects: Amount,
    /// Files of kernel databases.
    pub databases: Amount,
    /// Whether each of these shards has it only because the compiler fell back to it.
    pub fallback: bool,
}

fn shard(name: &str, split: &[&SplitArtifact]) -> ShardContents {
    let artifacts: Vec<_> = split.iter().map(|one| artifact(one)).collect();
    // The archs of every wrapper of every binary with device code, in it or in archives.
    let binaries = split.iter().flat_map(|one| one.binaries());
    let archs = binaries.flat_map(|(_, fat)| &fat.wrappers).map(|wrapper| {
        wrapper.code_objects.iter().map(|code| code.target.base().clone()).collect()
    });
    let wrappers: Vec<Vec<BaseArch>> = archs.collect();
    let fallbacks = fallback::fallbacks(&artifacts, &wrappers);
    ShardContents { name: name.to_owned(), artifacts, fallbacks }
}

fn artifact(split: &SplitArtifact) -> ArtifactContents {
    let mut found = ArtifactContents {
        name: split.name.to_string(),
        gpu_family: split.name.gpu_family.clone(),
        host_files: Amount::default(),
        binaries: 0,
        code_objects: BTreeMap::new(),
        databases: BTreeMap::new(),
    };
    for (_, node) in split.host.iter() {
        let Node::File { data, .. } = node else { continue };
        match &data.kind {
            HostKind::Plain(content) => found.host_files.add(content.len()),
            HostKind::Fat(fat) => {
                found.binaries += 1;
                found.host_files.add(fat.binary.output_len());
                // The code of transformed binaries is counted in their archives.
                if let HostBinary::Fat(_) = fat.binary {
                    for code in fat.code_objects() {
                        let target = code.target.clone();
                        found.code_objects.entry(target).or_default().add(code.content.len());
                    }
                }
            }
        }
    }
    for archive in &split.archives {
        count_archive(archive, &mut found.code_objects);
    }
    for file in &split.databases {
        for arch in &file.archs {
            found.databases.entry(arch.clone()).or_default().add(file.content.len());
        }
    }
    found
}

/// The code objects of an archive, each once for every key.
fn count_archive(archive: &KernelArchive, code_objects: &mut BTreeMap<Target, Amount>) {
    for targets in archive.reader.toc().rows.values() {
        let rows = targets.iter().filter_map(|(target, row)| {
            Some((target.parse().ok()?, row.ordinal, row.original_size))
        });
        for (target, size) in distinct(rows) {
            code_objects.entry(target).or_default().add(size);
        }
    }
}

/// The distinct code objects of `rows` (target, ordinal, size). A code object that several targets share
/// counts for the one with the fewest features.
fn distinct(rows: impl Iterator<Item = (Target, u32, u64)>) -> Vec<(Target, u64)> {
    let mut found: BTreeMap<u32, (Target, u64)> = BTreeMap::new();
    for (target, ordinal, size) in rows {
        let (known, _) = found.entry(ordinal).or_insert_with(|| (target.clone(), size));
        if target.features().len() < known.features().len() {
            *known = target;
        }
    }
    found.into_values().collect()
}

fn architectures(shards: &[ShardContents]) -> Vec<ArchSummary> {
    let mut found: BTreeMap<(usize, BaseArch), ArchSummary> = BTreeMap::new();
    for shard in shards {
        for artifact in &shard.artifacts {
            for (target, amount) in &artifact.code_objects {
                entry(&mut found, target.base(), shard).code_objects.join(*amount);
            }
            for (arch, amount) in &artifact.databases {
                entry(&mut found, arch, shard).databases.join(*amount);
            }
        }
    }
    let mut architectures: Vec<_> = found.into_values().collect();
    for arch in &mut architectures {
        let mut with_code = shards.iter().filter(|shard| arch.shards.contains(&shard.name));
        arch.fallback = with_code.all(|shard| shard.fallbacks.contains_key(&arch.arch));
    }
    architectures
}

fn entry<'a>(
    found: &'a mut BTreeMap<(usize, BaseArch), ArchSummary>,
    arch: &BaseArch,
    shard: &ShardContents,
) -> &'a mut ArchSummary {
    let known = gfx::processor_row(arch);
    // A longer number is a later generation: gfx942 before gfx1100.
    let length = arch.as_str().split('-').next().unwrap_or_default().len();
    let found = found.entry((length, arch.clone())).or_insert_with(|| ArchSummary {
        arch: arch.clone(),
        generation: known.map(|row| row.generation.clone()).unwrap_or_default(),
        products: rockpack_hardware::products([arch]).into_iter().map(str::to_owned).collect(),
        shards: Vec::new(),
        code_objects: Amount::default(),
        databases: Amount::default(),
        fallback: false,
    });
    if !found.shards.contains(&shard.name) {
        found.shards.push(shard.name.clone());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_code_object_counts_once_for_the_plainest_target() {
        let given = [
            ("gfx90a:sramecc+:xnack+", 0, 10),
            ("gfx90a:sramecc+:xnack-", 1, 20),
            ("gfx90a:sramecc-:xnack-", 1, 20),
            ("gfx90a:xnack-", 1, 20),
        ];
        let rows = given.into_iter().map(|(text, ordinal, size)| (target(text), ordinal, size));
        let expected = [(target("gfx90a:sramecc+:xnack+"), 10), (target("gfx90a:xnack-"), 20)];
        assert_eq!(distinct(rows), expected);
    }

    fn target(text: &str) -> Target {
        text.parse().unwrap()
    }
}

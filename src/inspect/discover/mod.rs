//! Discovery: which targets each build artifact has device code for.
//!
//! Owns counting (code objects of fat binaries and kernel archives per target, files of kernel
//! databases per arch), telling archs that are there on purpose from those that the compiler fell back
//! to (`fallback` says how), and the packaging configuration that follows from both. It reads what
//! `scan` and `split` found and judges nothing else: whether shards fit together is the business of
//! `recombine`.

mod configuration;
mod count;
mod fallback;
#[cfg(test)]
mod fixture;
mod found;
mod propose;
mod settle;

use serde::Serialize;

use rockpack_report::Findings;
use rockpack_split::SplitArtifact;
use rockpack_split::input::artifact::Scan;

pub use found::{Amount, ArchFound, ArtifactContents, ShardContents};
pub use propose::{PrimaryShard, Proposal, UngroupedArch, propose};
pub use settle::settle;

/// The result of discovery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Discovery {
    /// The shards in name order.
    pub shards: Vec<ShardContents>,
    /// Every base arch with device code, by generation.
    pub architectures: Vec<ArchFound>,
    /// The findings of scan and split.
    pub findings: Findings,
}

/// Sums up what `split` holds of the artifacts of `scan`.
pub fn discover(scan: &Scan, split: &[SplitArtifact]) -> Discovery {
    let names = scan.shards.iter().map(|shard| shard.name.as_str());
    let shards: Vec<ShardContents> = names
        .map(|name| {
            let of_shard: Vec<_> = split.iter().filter(|one| one.shard == name).collect();
            count::shard(name, &of_shard)
        })
        .collect();
    let mut findings = scan.findings.clone();
    split.iter().for_each(|artifact| findings.extend(artifact.findings.clone()));
    findings.sort();
    Discovery { architectures: count::architectures(&shards), shards, findings }
}

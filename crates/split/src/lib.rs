//! The split stage: an artifact becomes host files, code objects per wrapper, and databases.
//!
//! Every file of the artifact ends up in the host files or in the databases, and every code object in a
//! wrapper's list, in a database file or in a finding. The stage only reads content.
//!
//! Artifacts may be split already: transformed binaries are then joined with the kernel archives of their
//! shard (`attach.rs`), and later stages treat them like fat binaries.

pub mod aks2;
mod alone;
mod archives;
mod attach;
pub mod code_file;
mod code_objects;
mod databases;
mod development;
mod fat_binary;
pub mod host_binary;
mod parts;
#[cfg(test)]
mod tests;
pub mod thin;

pub mod input {
    //! The input of a run: artifacts as build jobs leave them, install trees, Python wheels, and the rules for which
    //! of their files belong to the kernel databases that libraries read at run time.

    pub mod artifact;
    pub mod database;
    pub mod tree;
    pub mod wheel;
}

use rayon::prelude::*;
use rockpack_core::error::{Faults, Result};
use rockpack_report::{Findings, Progress, Stage};

use crate::input::artifact::{Artifact, Scan};
use attach::attach;

pub use alone::{kept_code, split};
pub use archives::split_alone;
pub use code_objects::{StandaloneCode, standalone_code};
pub use fat_binary::{is_old, needed, needed_shim};
pub use parts::{
    CodeObject, DatabaseFile, FatBinary, HostBinary, HostFile, HostKind, KernelArchive,
    ManifestFile, SharedFile, SplitArtifact, SplitPolicy, WrapperCode,
};

/// Splits all artifacts of a scan on the threads of the current rayon pool; faults of several are reported
/// together.
pub fn split_all(
    scan: &Scan,
    options: &SplitPolicy<'_>,
    progress: &dyn Progress,
) -> Result<Vec<SplitArtifact>> {
    let artifacts: Vec<_> = scan.shards.iter().flat_map(|shard| &shard.artifacts).collect();
    scan.inputs.explain(split_artifacts(&artifacts, options, progress))
}

/// Splits these artifacts in parallel, and joins those that were split already. Faults of several are reported
/// together.
pub fn split_artifacts(
    artifacts: &[&Artifact],
    options: &SplitPolicy<'_>,
    progress: &dyn Progress,
) -> Result<Vec<SplitArtifact>> {
    progress.expect(Stage::Split, artifacts.iter().map(|artifact| artifact.bytes()).sum());
    progress.begin(Stage::Split);
    let taken = split_each(artifacts, options, progress);
    let split = taken.and_then(|taken| join(taken, artifacts, options));
    progress.end(Stage::Split);
    split
}

/// Splits each of these artifacts in parallel, without joining those that were split already; the caller begins and
/// ends the stage.
pub fn split_each(
    artifacts: &[&Artifact],
    options: &SplitPolicy<'_>,
    progress: &dyn Progress,
) -> Result<Vec<SplitArtifact>> {
    let results: Vec<_> = artifacts
        .par_iter()
        .map(|artifact| {
            let split = split(artifact, options);
            progress.advance(Stage::Split, artifact.bytes());
            split
        })
        .collect();
    let mut faults = Faults::default();
    let taken: Vec<_> = results.into_iter().filter_map(|result| faults.keep(result)).collect();
    let noticed = Findings::of(taken.iter().map(|artifact| &artifact.findings));
    noticed.explain(faults.finish().map(|()| taken))
}

/// Joins already split binaries with their kernel archives, across all of `artifacts`.
pub fn join(
    taken: Vec<SplitArtifact>,
    artifacts: &[&Artifact],
    options: &SplitPolicy<'_>,
) -> Result<Vec<SplitArtifact>> {
    let noticed = Findings::of(taken.iter().map(|artifact| &artifact.findings));
    let mut attached = noticed.explain(attach(taken, artifacts, options))?;
    attached.iter_mut().for_each(fat_binary::note_without_code);
    Ok(attached)
}

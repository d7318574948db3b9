//! Discoveries for unit tests.

use std::collections::BTreeMap;

use super::{Amount, ArchFound, ArtifactContents, Discovery, ShardContents};
use rockpack_report::Findings;

/// A shard with this number of host files and of code objects.
pub(super) fn shard(name: &str, host: u64, code: u64) -> ShardContents {
    let [host_files, code] = [host, code].map(|count| Amount { count, bytes: count });
    let artifact = ArtifactContents {
        name: "blas_lib_all".to_owned(),
        gpu_family: "all".to_owned(),
        host_files,
        binaries: 1,
        code_objects: BTreeMap::from([("gfx906".parse().unwrap(), code)]),
        databases: BTreeMap::new(),
    };
    ShardContents { name: name.to_owned(), artifacts: vec![artifact], fallbacks: BTreeMap::new() }
}

/// One shard with these archs, each with whether it is a fallback.
pub(super) fn discovery(archs: &[(&str, bool)]) -> Discovery {
    let architectures = archs.iter().map(|(name, fallback)| ArchFound {
        arch: name.parse().unwrap(),
        generation: String::new(),
        products: Vec::new(),
        shards: vec!["one".to_owned()],
        code_objects: Amount::default(),
        databases: Amount::default(),
        fallback: *fallback,
    });
    Discovery {
        architectures: architectures.collect(),
        shards: vec![shard("one", 1, 1)],
        findings: Findings::default(),
    }
}

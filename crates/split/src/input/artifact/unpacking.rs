//! Decoding of all packed artifacts of a scan.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rockpack_core::compression::Method;
use rockpack_core::content::{BlockStore, Inputs, StampedFile};
use rockpack_core::error::{Error, Faults, Result};
use rockpack_core::run::threads;
use rockpack_core::tree::ArtifactName;

use super::contents::{Whereabouts, assemble};
use super::options::ScanOptions;
use super::packed::{Checksum, Packed};
use super::shard::Artifact;

/// Most archives that are decoded at a time. A decoder's window may take 128 MiB, and all windows must fit a
/// run of 1 GiB.
const DECODERS: usize = 4;

/// A packed artifact to decode.
pub(super) struct Pending {
    shard: String,
    name: ArtifactName,
    path: PathBuf,
    method: Method,
    file: Arc<StampedFile>,
    checksum: Option<Checksum>,
}

impl Pending {
    /// The packed artifact at `path`. Notes it and its checksum file in `inputs`.
    pub fn new(
        shard: &str,
        name: ArtifactName,
        path: &Path,
        method: Method,
        inputs: &mut Inputs,
    ) -> Result<Self> {
        let file = inputs.open(path)?;
        let checksum = Checksum::of(path, inputs)?;
        let (shard, path) = (shard.to_owned(), path.to_path_buf());
        Ok(Self { shard, name, path, method, file, checksum })
    }

    fn unpack(&self, store: &Arc<BlockStore>) -> Result<Artifact> {
        let checksum = self.checksum.as_ref();
        let (mut packed, sha256) = Packed::open(&self.file, self.method, checksum, store)?;
        let mut faults = Faults::default();
        let name = self.name.clone();
        let whereabouts = Whereabouts { shard: &self.shard, name, root: &self.path };
        let assembled = assemble(whereabouts, &mut packed, &mut faults);
        faults.finish()?;
        let artifact = assembled.ok_or_else(|| Error::bug("a packed artifact has no manifest"))?;
        Ok(Artifact { sha256: Some(sha256), ..artifact })
    }
}

/// Decodes all of `pending`. Artifacts and faults keep their order.
pub(super) fn unpack(
    pending: &[Pending],
    options: &ScanOptions,
    faults: &mut Faults,
) -> Vec<Artifact> {
    if pending.is_empty() {
        return Vec::new();
    }
    let Some(store) = faults.keep(BlockStore::create(&options.spool_dir, &options.budget)) else {
        return Vec::new();
    };
    let decoders = threads::count().min(DECODERS);
    // Not in the thread pool: its threads take other work while they wait, and would hold a decoder for every
    // archive at once.
    let unpacked = threads::each(pending, decoders, |one| one.unpack(&store));
    let unpacked = faults.keep(unpacked).into_iter().flatten();
    unpacked.filter_map(|result| faults.keep(result)).collect()
}

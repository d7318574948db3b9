//! Decoding of all packed artifacts of a scan.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::contents::{Whereabouts, assemble};
use super::packed::{Checksum, Packed};
use super::{Artifact, ArtifactName, ScanOptions};
use crate::content::{BlockStore, InputFile, Inputs};
use crate::error::{Error, Faults, Result, ResultExt};
use crate::formats::compression::Method;
use crate::run::threads;

/// Most archives that are decoded at a time. The window of a decoder may have 128 MiB, and that of
/// all has to fit a run of 1 GiB.
const DECODERS: usize = 4;

/// A packed artifact that was found.
pub(super) struct Pending {
    shard: String,
    name: ArtifactName,
    path: PathBuf,
    method: Method,
    file: Arc<InputFile>,
    checksum: Option<Checksum>,
}

impl Pending {
    /// The one at `path`, which, with its checksum file, is noted in `inputs`.
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
        let artifact = assemble(whereabouts, &mut packed, &mut faults);
        faults.finish()?;
        let artifact = artifact.ok_or_else(|| Error::bug("a packed artifact has no manifest"))?;
        Ok(Artifact { sha256: Some(sha256), ..artifact })
    }
}

/// Decodes all of `pending`, whose order is that of the artifacts and faults.
pub(super) fn unpack(
    pending: &[Pending],
    options: &ScanOptions,
    faults: &mut Faults,
) -> Vec<Artifact> {
    let Some(first) = pending.first() else {
        return Vec::new();
    };
    let Some(store) = faults.keep(BlockStore::create(&options.spool_dir, &options.budget)) else {
        return Vec::new();
    };
    let decoders = threads::count().min(DECODERS).min(pending.len());
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let decode = || {
        while let Some((at, one)) = take(pending, &next) {
            let result = one.unpack(&store);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
        }
    };
    // Not on the pool's own threads: while one of those waits it takes up other work, and would
    // hold a decoder for every archive at once.
    let started = thread::scope(|scope| {
        let start =
            |_| thread::Builder::new().spawn_scoped(scope, decode).map_err(Error::no_thread);
        start(0)?;
        // Fewer do where the system starts no more.
        (1..decoders).take_while(|number| start(*number).is_ok()).for_each(drop);
        Ok(())
    });
    faults.keep(started.file(&first.path));
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().filter_map(|(_, result)| faults.keep(result)).collect()
}

fn take<'a>(pending: &'a [Pending], next: &AtomicUsize) -> Option<(usize, &'a Pending)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    pending.get(at).map(|one| (at, one))
}

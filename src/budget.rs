//! What a build may take, and how it compresses: its memory by parts, its threads.

use crate::content;
use crate::dependencies::distribution::PayloadCompression;
use crate::emit::Compression;
use crate::error::Result;
use crate::formats::compression::Method;
use crate::options::BuildOptions;
use crate::pack;
use crate::plan::Plan;
use crate::policy::Shares;
use crate::records;

impl BuildOptions {
    /// How payloads are compressed.
    pub(crate) fn compression(&self, plan: &Plan) -> Result<Compression> {
        self.policy.payload(readable(plan.compression))
    }

    /// The memory of its parts, with payloads of that compression.
    pub(crate) fn shares(&self, payload: Compression) -> Result<Shares> {
        let thread = pack::thread_memory(self.policy.archive_level()?);
        self.policy.shares(payload, self.set.formats.len(), thread)
    }

    /// Everything beside the plan that decides the bytes of packages.
    pub(crate) fn settings(&self, plan: &Plan) -> Result<String> {
        let (compression, level) = (self.compression(plan)?, self.policy.archive_level()?);
        let signer = self.signer.as_ref().map(|signer| signer.fingerprint());
        Ok(format!("{compression:?} {level} {:?} {signer:?}", self.set.source_date_epoch))
    }
}

/// Threads of a build, within its budget. What cannot be is refused before anything is read.
pub(crate) fn pack_threads(options: &BuildOptions) -> Result<(usize, records::Limited)> {
    let BuildOptions { policy, set, .. } = options;
    let payload = policy.payload(policy.method.unwrap_or(Method::Zstd))?;
    let shares = options.shares(payload)?;
    let fitting = shares.threads / pack::thread_memory(policy.archive_level()?);
    let threads = set.jobs.min(usize::try_from(fitting).unwrap_or(usize::MAX)).max(1);
    content::limit_held(shares.held);
    // As long as the input is read, nothing is compressed yet.
    Ok((threads, records::limit(shares.frames, shares.compressors, threads)))
}

/// How payloads are compressed that a package manager has to read.
fn readable(compression: PayloadCompression) -> Method {
    match compression {
        PayloadCompression::Zstd => Method::Zstd,
        PayloadCompression::Xz => Method::Xz,
    }
}

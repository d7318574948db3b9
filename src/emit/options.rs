//! Options of the writer of packages.

use std::sync::Arc;

use rockpack_base::formats::compression::{Compression, Contexts};
use rockpack_base::run::Budget;

use crate::pack::cache::Cache;
use crate::report::Progress;
use crate::signing::Signer;

/// How packages are written.
#[derive(Clone)]
pub struct EmitOptions<'a> {
    /// Threads to spread over the compressors; the bytes do not depend on their number.
    pub jobs: usize,
    /// What the memory of compressors is drawn from.
    pub budget: Budget,
    /// Contexts of compressors, for all packages.
    pub contexts: Contexts,
    /// How payloads are compressed.
    pub compression: Compression,
    /// Modification time of every payload entry, seconds since 1970.
    pub content_date: i64,
    /// BUILDTIME in rpm headers and the time in a deb's ar and control members, seconds since
    /// 1970.
    pub source_date_epoch: i64,
    /// Whether the packages are to be published: what the index of a repository says of them is
    /// found out while they are digested.
    pub indexed: bool,
    /// Whether the SHA-1 of every file is found out, too, as SPDX documents have it.
    pub sha1: bool,
    /// What signs the headers of `.rpm`s; a `.deb` has no signature that apt asks for.
    pub signer: Option<&'a Arc<dyn Signer>>,
    /// Where payloads are looked for that an earlier run compressed, and kept for later ones.
    pub cache: Option<&'a Cache>,
    /// Told of every window read (`advance`), every payload and every whole package; the caller says
    /// how many bytes to expect.
    pub progress: &'a dyn Progress,
}

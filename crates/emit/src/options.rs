//! Options of the writer of packages.

use std::sync::Arc;

use rockpack_core::compression::{Compression, Contexts};
use rockpack_core::run::Budget;

use rockpack_files::cache::Cache;
use rockpack_report::Progress;
use rockpack_signing::Signer;

/// The options for writing packages.
#[derive(Clone)]
pub struct EmitOptions<'a> {
    /// Threads to spread over the compressors; the bytes do not depend on their number.
    pub jobs: usize,
    /// Budget for the memory of compressors.
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
    /// Whether the packages are to be published. If so, the entries for a repository's index are made while
    /// the packages are digested.
    pub indexed: bool,
    /// Whether to compute the SHA-1 of every file as well, for SPDX documents.
    pub sha1: bool,
    /// Signer of the headers of `.rpm`s. A `.deb` is not signed, as apt does not check signatures in it.
    pub signer: Option<&'a Arc<dyn Signer>>,
    /// Cache of payloads that an earlier run compressed; new payloads are kept there too.
    pub cache: Option<&'a Cache>,
    /// Receives every window read, payload and finished package; the caller states the expected bytes.
    pub progress: &'a dyn Progress,
}

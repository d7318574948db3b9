//! What a caller of the pipeline decides: values, nothing is done here.

use std::path::PathBuf;
use std::sync::Arc;

use crate::config::{Config, PackageList, Scheme};
use crate::listing::Listing;
use crate::package::Format;
use crate::policy::Policy;
use crate::receipt::Part;
use crate::signing::Signer;

/// Which package set to build or to plan.
#[derive(Debug, Clone)]
pub struct SetOptions {
    /// Shards, or folders of shards.
    pub artifacts: Vec<PathBuf>,
    /// The packaging configuration.
    pub config: Config,
    /// A list of packages, in place of the configuration's selectors and parts.
    pub packages: Option<PackageList>,
    /// Naming scheme, before the configuration's.
    pub scheme: Option<Scheme>,
    /// The kind of build in names and prefix, before the configuration's, e.g. `asan`.
    pub variant: Option<String>,
    /// Upstream version, before the configuration's.
    pub version: Option<String>,
    /// Package release, before the configuration's.
    pub release: Option<String>,
    /// Install prefix, before the configuration's.
    pub prefix: Option<String>,
    /// Distribution whose libraries packages depend on, before the configuration's.
    pub distro: Option<String>,
    /// Package formats to write.
    pub formats: Vec<Format>,
    /// Components to build; all if empty.
    pub only: Vec<String>,
    /// Earlier sets that this one updates.
    pub since: Vec<Listing>,
    /// Number of threads.
    pub jobs: usize,
    /// Whether warnings are errors.
    pub strict: bool,
    /// Stamp of headers and changelogs in seconds since the epoch; the date of the contents if
    /// unset.
    pub source_date_epoch: Option<i64>,
}

/// What to build.
#[derive(Debug, Clone)]
pub struct BuildOptions {
    /// The set.
    pub set: SetOptions,
    /// Where the packages go; created if missing.
    pub out: PathBuf,
    /// How hard it compresses, and in how much memory.
    pub policy: Policy,
    /// What signs the headers of `.rpm`s, if they are to be signed.
    pub signer: Option<Arc<dyn Signer>>,
    /// The part of the set to write; all of it if unset.
    pub part: Option<Part>,
    /// Where compression of earlier builds is looked for, and kept for later ones.
    pub cache: Option<CacheOptions>,
    /// Whether an SPDX document lists what the set holds, beside the receipt.
    pub sbom: bool,
    /// Whether the signer is there for the indexes of a repository, too.
    pub signs_indexes: bool,
}

/// A cache of finished compression.
#[derive(Debug, Clone)]
pub struct CacheOptions {
    /// Its folder; created if missing.
    pub folder: PathBuf,
    /// Bytes that it may take.
    pub limit: u64,
}

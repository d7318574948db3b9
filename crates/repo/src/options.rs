//! The options of a publication.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rockpack_archive::rpm::HeaderSigner;
use rockpack_core::compression::Method;
use rockpack_core::content::Content;
use rockpack_core::error::Result;
use rockpack_package::Package;
use rockpack_package::indexed::{IndexedPackage, PackageKind};
use rockpack_signing::{IndexSigner, Trust};

use super::python::Yank;
use super::settings::ChannelSettings;
use super::store::WhenLocked;

/// The packages to publish and the settings of the publication.
#[derive(Clone)]
pub struct RepoOptions<'a> {
    /// Package files, and folders of them.
    pub packages: Vec<PathBuf>,
    /// The folder of the repository; created if missing.
    pub out: PathBuf,
    /// Kinds of packages to publish; if empty, the kinds that are given or in the repository.
    pub kinds: Vec<PackageKind>,
    pub suite: String,
    pub component: String,
    pub settings: ChannelSettings,
    pub changes: PackageChanges,
    /// Refuses a publication with a warning.
    pub strict: bool,
    /// Reads all packages again.
    pub check: bool,
    pub dry_run: bool,
    /// The file for the upload plan, if one is requested.
    pub upload_plan: Option<PathBuf>,
    /// The keys whose receipts are trusted, in addition to those of `signer`. With any, unsigned receipts are
    /// reported.
    pub receipts: Trust,
    pub index_page: bool,
    /// The reaction to another run that writes to the repository.
    pub when_locked: WhenLocked,
    /// How many generations unused indexes and packages stay, at least one.
    pub generations: u64,
    /// The time of the publication, in seconds since 1970.
    pub date: i64,
    pub confirmed: ConfirmedChanges,
    /// How the lists of the rpm repository are compressed: gzip or zstd.
    pub list_method: Method,
    pub signer: Option<Arc<dyn IndexSigner>>,
    /// The signer of headers of added `.rpm` packages; it replaces their signatures.
    pub package_signer: Option<HeaderSigner>,
    /// Packages of `packages` that this run wrote, by path. They are not read, and may be hard-linked into the pool.
    pub built: BTreeMap<PathBuf, IndexedPackage>,
    /// The key package to build and publish.
    pub key_package: Option<KeyPackage<'a>>,
}

#[derive(Debug, Clone, Default)]
pub struct PackageChanges {
    /// How many versions of a package to keep, in addition to the given ones; all if unset.
    pub keep: Option<usize>,
    /// Packages to remove: `name`, or `name=version`.
    pub remove: Vec<String>,
    /// Accepts packages with a lower version than the channel has.
    pub allow_downgrade: bool,
    /// Accepts packages with requirements that the repository does not meet.
    pub allow_unmet: bool,
    /// Leaves out damaged packages and those that clients refuse; otherwise they are errors.
    pub skip_bad: bool,
    pub yank: Vec<Yank>,
    /// Wheels that are no longer yanked, named as in `remove` or by file name.
    pub unyank: Vec<String>,
}

impl RepoOptions<'_> {
    pub(super) fn includes(&self, kind: PackageKind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }
}

/// Changes since the last publication that are refused unless confirmed.
#[derive(Debug, Clone, Copy, Default)]
pub struct ConfirmedChanges {
    /// Accepts a time before the last publication.
    pub any_date: bool,
    /// Accepts another origin, label or codename of a suite.
    pub release_info: bool,
}

/// Writes a package into a folder. Returns the index entries of its files.
pub type WriteKeyPackage<'a> =
    dyn Fn(&Package<Content>, &Path) -> Result<BTreeMap<PathBuf, IndexedPackage>> + Sync + 'a;

/// A package that installs the keys that clients trust.
#[derive(Clone, Copy)]
pub struct KeyPackage<'a> {
    pub version: &'a str,
    pub maintainer: &'a str,
    /// The function that writes it, signed as packages of the repository are.
    pub write: &'a WriteKeyPackage<'a>,
}

//! The options of a run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rockpack_archive::rpm::HeaderSigner;
use rockpack_core::compression::Method;
use rockpack_core::content::Content;
use rockpack_core::error::Result;
use rockpack_package::Package;
use rockpack_package::indexed::{Indexed, PackageKind};
use rockpack_signing::{IndexSigner, Trust};

use super::python::Yank;
use super::settings::ChannelSettings;
use super::store::WhenLocked;

/// The packages to publish, and the way to do it.
#[derive(Clone)]
pub struct RepoOptions<'a> {
    /// Packages, and folders of packages.
    pub packages: Vec<PathBuf>,
    /// The folder of the repository; created if missing.
    pub out: PathBuf,
    /// Kinds of packages to publish; those that are given, or there, if empty.
    pub kinds: Vec<PackageKind>,
    /// The apt suite.
    pub suite: String,
    /// The component that given debs go to.
    pub component: String,
    /// The settings of a channel that the run changes.
    pub settings: ChannelSettings,
    /// The changes to the packages of the repository.
    pub changes: Changes,
    /// Whether a publication with a warning is refused.
    pub strict: bool,
    /// Whether all packages are read again.
    pub check: bool,
    /// Whether the publication is only computed.
    pub dry_run: bool,
    /// The file that gets the order in which the repository is uploaded, if that is asked for.
    pub upload_plan: Option<PathBuf>,
    /// The keys by which receipts are trusted, besides those of `signer`. With any, unsigned receipts are reported.
    pub receipts: Trust,
    /// Whether the repository has a page for people.
    pub index_page: bool,
    /// The reaction to another run that writes to the repository.
    pub when_locked: WhenLocked,
    /// Generations that indexes and packages stay after they went out of use, at least one.
    pub generations: u64,
    /// The time of the publication, in seconds since 1970.
    pub date: i64,
    /// The confirmed publications that clients would refuse.
    pub confirmed: Confirmed,
    /// How the lists of the rpm repository are compressed: gzip or zstd.
    pub list_method: Method,
    /// The signer of indexes.
    pub signer: Option<Arc<dyn IndexSigner>>,
    /// The signer of headers of added `.rpm` packages; it replaces their signatures.
    pub package_signer: Option<HeaderSigner>,
    /// Packages of `packages` that were just written, by path: they are not read, and packages may
    /// be hard links to them.
    pub built: BTreeMap<PathBuf, Indexed>,
    /// The package with the keys, if one is to be made and published.
    pub key_package: Option<KeyPackage<'a>>,
}

/// The changes to the packages of a channel.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Versions of a package to keep, besides those that the run is given; all if unset.
    pub keep: Option<usize>,
    /// Packages to remove: `name`, or `name=version`.
    pub remove: Vec<String>,
    /// Whether a package may come back in a lower version than the channel has.
    pub allow_downgrade: bool,
    /// Whether packages may need what the repository does not have.
    pub allow_unmet: bool,
    /// Whether damaged packages, and those that clients refuse, are left out; otherwise they are errors.
    pub skip_bad: bool,
    /// Wheels that nobody should install any more.
    pub yank: Vec<Yank>,
    /// Wheels that may be installed again, as in `remove`, or by their file names.
    pub unyank: Vec<String>,
}

impl RepoOptions<'_> {
    pub(super) fn asks_for(&self, kind: PackageKind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }
}

/// Changes since the last publication that are refused unless they are confirmed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Confirmed {
    /// A time before the last publication.
    pub any_date: bool,
    /// Another origin, label or codename of a suite.
    pub release_info: bool,
}

/// Writes a package into a folder and says what the index has of its files.
pub type WriteKeyPackage<'a> =
    dyn Fn(&Package<Content>, &Path) -> Result<BTreeMap<PathBuf, Indexed>> + Sync + 'a;

/// A package with the keys that clients are to trust.
#[derive(Clone, Copy)]
pub struct KeyPackage<'a> {
    /// The version.
    pub version: &'a str,
    /// The maintainer.
    pub maintainer: &'a str,
    /// The function that writes it, signed as packages of the repository are.
    pub write: &'a WriteKeyPackage<'a>,
}

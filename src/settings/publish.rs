//! Options for publishing packages, shared by `build --repo` and `repo`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use rockpack_archive::apt_index::format_date;
use rockpack_core::compression::Method;
use rockpack_core::error::{Error, Faults, Kind, Result};

use super::environment::{DAY, Now};
use super::signing::Signers;
use rockpack_package::indexed::PackageKind;
use rockpack_repo::{self as repo, Changes, Confirmed, RepoOptions, WhenLocked};
use rockpack_signing::{IndexSigner, PublicKeys, Trust, read_key_file};

/// Most days of --valid-days: a hundred years.
const MOST_DAYS: i64 = 36_525;

/// The highest priority that apt reads.
const MOST_PIN: i64 = 32_767;

/// The options of a publication.
#[derive(Debug, Args)]
pub struct PublicationArguments {
    /// apt suite
    #[arg(long, value_name = "NAME", default_value = repo::DEFAULT_SUITE)]
    suite: String,
    /// apt component that the packages go to
    #[arg(long, value_name = "NAME", default_value = repo::DEFAULT_COMPONENT)]
    component: String,
    /// Codename of the suite [default: its name]
    #[arg(long, hide_short_help = true, value_name = "NAME")]
    codename: Option<String>,
    /// Publisher of the suite
    #[arg(long, hide_short_help = true, value_name = "TEXT")]
    origin: Option<String>,
    /// Label of the suite
    #[arg(long, hide_short_help = true, value_name = "TEXT")]
    label: Option<String>,
    /// Description of the repository, in one line
    #[arg(long, hide_short_help = true, value_name = "TEXT")]
    description: Option<String>,
    /// Days after which clients refuse the suite; 0: never
    ///
    /// The field Valid-Until of a publication; 36525 at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=MOST_DAYS))]
    valid_days: Option<u32>,
    /// URL that REPO is served at (https://…)
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Name of the files for clients [default: made from the host of --url]
    ///
    /// The host example.org makes the name example-org. Later runs keep the name, also with another --url
    #[arg(long, hide_short_help = true, value_name = "NAME")]
    name: Option<String>,
    /// Priority of REPO against the distribution's packages of the same names
    ///
    /// A priority of apt, for which clients get a preferences file. For dnf and zypper the .repo file gets
    /// priority=50 if N is more than 500, apt's default for repositories, and priority=150 if it is less
    #[arg(long, hide_short_help = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=MOST_PIN))]
    pin: Option<u16>,
    /// Compression of the lists for dnf and zypper
    #[arg(long, hide_short_help = true, default_value = "gzip", value_name = "METHOD")]
    rpm_md_compression: ListCompression,
    /// Publications that replaced files are kept for
    ///
    /// Unused indexes and packages stay for that many publications, and at least an hour, because clients may
    /// be reading them
    #[arg(long, hide_short_help = true, default_value = "3", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    generations: u64,
    /// Publish packages of a lower version than REPO has
    #[arg(long)]
    allow_downgrade: bool,
    /// Publish packages that need what REPO will not have
    ///
    /// Without this option, a package is refused if its build has what it needs and REPO does not, and a removal
    /// if packages that stay need what is removed
    #[arg(long, hide_short_help = true)]
    allow_unmet: bool,
    /// Publish at a date far from the clock, or before the last one
    ///
    /// Allows dates more than a day ahead of the clock, or before the last publication. apt refuses a suite
    /// from the future, and ignores one that is older than what it has
    #[arg(long, hide_short_help = true)]
    allow_any_date: bool,
    /// Change --origin, --label or --codename of a suite
    ///
    /// Every apt-get update fails then, until a person accepts the change with apt's option of this name
    #[arg(long, hide_short_help = true)]
    allow_releaseinfo_change: bool,
    /// Public keys that clients are to trust as well
    ///
    /// The next key, or the previous one; may be given several times
    #[arg(long, hide_short_help = true, value_name = "FILE", requires = "sign_key")]
    also_key: Vec<PathBuf>,
    /// Wait for another run that writes to REPO, instead of failing
    #[arg(long)]
    wait: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ListCompression {
    /// Read by every dnf, yum and zypper
    Gzip,
    /// Smaller; not for the yum of Enterprise Linux 7
    Zstd,
}

/// A publication without its options.
#[derive(Default)]
pub struct PublishRequest {
    /// Packages, and folders of packages.
    pub packages: Vec<PathBuf>,
    /// The folder of the repository.
    pub out: PathBuf,
    /// Kinds of packages to publish. If empty: the kinds that are given, or that the repository has.
    pub kinds: Vec<PackageKind>,
    /// Changes to packages in the repository.
    pub changes: Changes,
    /// Whether a publication with a warning is refused.
    pub strict: bool,
    /// Whether all packages are read again.
    pub check: bool,
    /// Whether the publication is only computed.
    pub dry_run: bool,
    /// The keys by which receipts are trusted, besides those of the signer.
    pub receipt_keys: PublicKeys,
    /// The time of the publication and of the clock. `None` if it is unknown, which has been reported.
    pub now: Option<Now>,
}

/// Settings of a publication.
pub struct PublishSettings {
    pub(super) options: RepoOptions<'static>,
    /// The signer of the indexes; `None` if they are not signed.
    pub(super) signer: Option<Arc<dyn IndexSigner>>,
}

impl PublishSettings {
    /// The options of the publication, with the signer of its indexes.
    pub fn options(&self) -> RepoOptions<'_> {
        RepoOptions { signer: self.signer.as_deref(), ..self.options.clone() }
    }
}

impl PublicationArguments {
    /// Resolves the settings. `signers` sign the indexes.
    pub fn resolve(
        self,
        request: PublishRequest,
        signers: &Signers,
        faults: &mut Faults,
    ) -> Option<PublishSettings> {
        let now = request.now;
        if let Some(now) = now.filter(|_| !self.allow_any_date) {
            faults.keep(refuse_future(now));
        }
        let signer = now.and_then(|now| faults.keep(self.index_signer(signers, now)));
        let options = self.options(request);
        faults.keep(repo::check(&options))?;
        Some(PublishSettings { options, signer: signer? })
    }

    /// The signer of the indexes at that time.
    fn index_signer(&self, signers: &Signers, now: Now) -> Result<Option<Arc<dyn IndexSigner>>> {
        let others: Vec<Vec<u8>> = self
            .also_key
            .iter()
            .map(|key| read_key_file(key, "key of --also-key"))
            .collect::<Result<_>>()?;
        signers.texts(now.moment(), &others)
    }

    /// The options of the publication, without signers.
    fn options(self, request: PublishRequest) -> RepoOptions<'static> {
        RepoOptions {
            packages: request.packages,
            out: request.out,
            kinds: request.kinds,
            suite: self.suite,
            component: self.component,
            settings: repo::ChannelSettings {
                origin: self.origin,
                label: self.label,
                codename: self.codename,
                description: self.description,
                valid_days: self.valid_days,
                name: self.name,
                url: self.url,
                pin: self.pin,
            },
            changes: Changes {
                allow_downgrade: self.allow_downgrade,
                allow_unmet: self.allow_unmet,
                ..request.changes
            },
            strict: request.strict,
            check: request.check,
            dry_run: request.dry_run,
            receipts: Trust {
                keys: request.receipt_keys,
                at: request.now.map(Now::moment).unwrap_or_default(),
                strict: false,
            },
            when_locked: if self.wait { WhenLocked::Wait } else { WhenLocked::Fail },
            generations: self.generations,
            date: request.now.map_or(0, |now| now.time),
            confirmed: Confirmed {
                any_date: self.allow_any_date,
                release_info: self.allow_releaseinfo_change,
            },
            list_method: match self.rpm_md_compression {
                ListCompression::Gzip => Method::Gzip,
                ListCompression::Zstd => Method::Zstd,
            },
            signer: None,
            package_signer: None,
            built: BTreeMap::new(),
            key_package: None,
        }
    }
}

/// Refuses a publication that is dated more than a day ahead of the clock.
fn refuse_future(now: Now) -> Result<()> {
    if now.time <= now.clock.saturating_add(DAY) {
        return Ok(());
    }
    let message = format!(
        "the publication would be dated {}, more than a day ahead of the clock ({})",
        format_date(now.time)?,
        format_date(now.clock)?
    );
    Err(Error::new(Kind::Usage, message).structure("SOURCE_DATE_EPOCH").hint(
        "apt refuses it until then, and every publication before then would be refused: set \
         SOURCE_DATE_EPOCH to a time that has been, or unset it; --allow-any-date publishes it all \
         the same",
    ))
}

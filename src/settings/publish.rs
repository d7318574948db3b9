//! The settings of `repo`, and the options for publishing packages, which `build --repo` shares.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use rockpack_archive::apt_index::format_date;
use rockpack_core::compression::Method;
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_package::indexed::PackageKind;
use rockpack_plan::config::{Keys, is_maintainer};
use rockpack_repo::{
    self as repo, Changes, Confirmed, KeyPackage, RepoOptions, WhenLocked, WriteKeyPackage, Yank,
    check_wheels, keyring,
};
use rockpack_signing::judge::Moment;
use rockpack_signing::{
    IndexSigner, OpenPgpKey, Trust, header_signer, header_signer_of, read_key_file,
};

use super::signing::{ReceiptKeyArguments, Signers, SigningArguments};
use super::{DAY, Environment, output_path};

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
    #[arg(long, hide_short_help = true, value_name = "NAME", default_value = repo::DEFAULT_COMPONENT)]
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
    #[arg(long, hide_short_help = true, value_name = "N", value_parser = clap::value_parser!(u32).range(..=MOST_DAYS))]
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
    /// Leave out index.html, the page with the commands that install packages
    ///
    /// An index.html that `repo` wrote is removed. One of somebody else is never replaced
    #[arg(long, hide_short_help = true)]
    no_index_page: bool,
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

impl PublicationArguments {
    /// Checks the options of a publication. `signers` sign the indexes.
    pub fn resolve(
        &self,
        options: RepoOptions<'static>,
        now: Option<Moment>,
        signers: &Signers,
        faults: &mut Faults,
    ) -> Option<RepoOptions<'static>> {
        if let Some(now) = now.filter(|_| !self.allow_any_date) {
            faults.keep(refuse_future(now));
        }
        let signer = now.and_then(|now| faults.keep(self.index_signer(signers, now)));
        faults.keep(repo::check(&options))?;
        Some(RepoOptions { signer: signer?, ..options })
    }

    /// The signer of the indexes at that time.
    fn index_signer(&self, signers: &Signers, now: Moment) -> Result<Option<Arc<dyn IndexSigner>>> {
        let others = self.also_key.iter().map(|key| read_key_file(key, "key of --also-key"));
        signers.texts(now, &others.collect::<Result<Vec<_>>>()?)
    }

    /// The options of a publication in `out`, without packages and signers. `now` is `None` if the time is unknown,
    /// which has been reported.
    pub fn options(
        &self,
        out: PathBuf,
        kinds: Vec<PackageKind>,
        now: Option<Moment>,
    ) -> RepoOptions<'static> {
        RepoOptions {
            packages: Vec::new(),
            out,
            kinds,
            suite: self.suite.clone(),
            component: self.component.clone(),
            settings: repo::ChannelSettings {
                origin: self.origin.clone(),
                label: self.label.clone(),
                codename: self.codename.clone(),
                description: self.description.clone(),
                valid_days: self.valid_days,
                name: self.name.clone(),
                url: self.url.clone(),
                pin: self.pin,
            },
            changes: Changes {
                allow_downgrade: self.allow_downgrade,
                allow_unmet: self.allow_unmet,
                ..Changes::default()
            },
            strict: false,
            check: false,
            dry_run: false,
            upload_plan: None,
            receipts: Trust { at: now.unwrap_or_default(), ..Trust::default() },
            index_page: !self.no_index_page,
            when_locked: if self.wait { WhenLocked::Wait } else { WhenLocked::Fail },
            generations: self.generations,
            date: now.map_or(0, |now| now.time),
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
fn refuse_future(now: Moment) -> Result<()> {
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

/// Publish packages in a repository that apt, dnf, zypper, pip and uv use as it is.
///
/// REPO gets pool/ and dists/ for apt, packages/ and repodata/ for dnf and zypper, wheels/ and simple/ for
/// pip and uv. It can be served while it is written: the file that makes a publication visible is put in
/// place last, and files no longer in use stay for a while. Packages are added to the existing ones; files
/// that were published before, by name, size and time, are not read again. Packages next to a receipt, such as
/// packages.json, have to be those that it names. SOURCE_DATE_EPOCH sets the time of the publication.
#[derive(Debug, Args)]
#[allow(rustdoc::invalid_html_tags, reason = "these are the words of --help")]
pub struct RepoArguments {
    /// Packages, wheels, source distributions of Python, and folders of them
    ///
    /// Without any, REPO is published again, with a new date
    #[arg(value_name = "DIR|PACKAGE")]
    packages: Vec<PathBuf>,
    /// Folder of the repository; created if missing
    #[arg(long, value_name = "REPO", value_parser = output_path())]
    out: PathBuf,
    #[command(flatten)]
    publication: PublicationArguments,
    #[command(flatten)]
    pub(crate) signing: SigningArguments,
    /// Sign the headers of the .rpm packages that are added
    ///
    /// The signer of the indexes signs them, and replaces signatures that they have. Once all packages have
    /// signatures, the files for clients require them
    #[arg(long)]
    sign_packages: bool,
    /// Publish a package with the public keys as well
    ///
    /// The package <name>-archive-keyring in this version, which clients need when the key changes
    #[arg(long, value_name = "VERSION")]
    key_package: Option<String>,
    /// Maintainer of the key package
    #[arg(long, value_name = "NAME <ADDRESS>", requires = "key_package", default_value_t = Keys::default().maintainer)]
    maintainer: String,
    /// Publish only .deb packages
    #[arg(long)]
    deb: bool,
    /// Publish only .rpm packages (with --deb: both)
    #[arg(long)]
    rpm: bool,
    /// Publish only wheels and source distributions (with --deb or --rpm: these, too)
    #[arg(long)]
    wheel: bool,
    /// Keep only the N highest versions of each package, and what this run is given
    ///
    /// Wheels that a kept version requires stay with it: device wheels with their host wheels
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,
    /// Take packages out: NAME or NAME=VERSION; may be given several times
    #[arg(long, value_name = "NAME")]
    remove: Vec<String>,
    /// Mark wheels as yanked: NAME=VERSION or FILE, and =REASON if you like
    ///
    /// Yanked wheels stay, but are installed only where exactly this version is required; may be given
    /// several times
    #[arg(long, hide_short_help = true, value_name = "NAME=VERSION|FILE[=REASON]")]
    yank: Vec<String>,
    /// Remove the mark again: NAME=VERSION or FILE
    #[arg(long, hide_short_help = true, value_name = "NAME=VERSION|FILE", conflicts_with = "yank")]
    unyank: Vec<String>,
    /// Treat warnings as errors, before anything is written
    #[arg(long)]
    strict: bool,
    /// Leave out bad packages, publish the others, and exit with 1
    ///
    /// Bad packages are damaged, or apt, dpkg, dnf, rpm, pip or uv refuses them. Without this option, nothing
    /// is published if there is one
    #[arg(long)]
    skip_bad: bool,
    /// Read all packages again, including those of REPO
    #[arg(long)]
    check: bool,
    /// Show what would be published, and change nothing
    #[arg(long, conflicts_with = "key_package")]
    dry_run: bool,
    /// Write the order in which REPO is uploaded to an object store
    ///
    /// A JSON file outside of REPO: what to upload first and last, what to remove an hour later, and the content
    /// type and cache header of each file. In this order, clients see the earlier publication or the new one
    #[arg(long, value_name = "FILE", hide_short_help = true, value_parser = output_path(), conflicts_with = "dry_run")]
    upload_plan: Option<PathBuf>,
    #[command(flatten)]
    receipts: ReceiptKeyArguments,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

/// The settings of a publication, and its signers.
pub struct RepoSettings {
    options: RepoOptions<'static>,
    /// The first key file, which signs packages.
    pub signer: Option<Arc<OpenPgpKey>>,
    /// The version of the package with the public keys, if one is published.
    key_version: Option<String>,
    /// The maintainer of that package.
    maintainer: String,
}

impl RepoSettings {
    /// The options of the publication. `write` writes the package with the public keys.
    pub fn options<'a>(&'a self, write: &'a WriteKeyPackage<'a>) -> RepoOptions<'a> {
        let (version, maintainer) = (self.key_version.as_deref(), &self.maintainer);
        let key_package = version.map(|version| KeyPackage { version, maintainer, write });
        RepoOptions { key_package, ..self.options.clone() }
    }
}

impl RepoArguments {
    /// Resolves the settings without reading packages. Reports the faults of all settings together.
    pub fn resolve(self, environment: &Environment) -> Result<RepoSettings> {
        let mut faults = Faults::default();
        self.refuse_without_key(&mut faults);
        let (key_version, maintainer) = (self.key_package, self.maintainer);
        if let Some(version) = &key_version {
            faults.keep(keyring::check_version(version));
            faults.keep(check_maintainer(&maintainer));
        }
        let now = faults.keep(environment.now());
        let signers = faults.keep(self.signing.signers(environment, now));
        let keys = faults.keep(self.receipts.keys()).unwrap_or_default();
        let keep = self.keep.map(|keep| usize::try_from(keep).unwrap_or(usize::MAX));
        let (deb, rpm) = ((self.deb, PackageKind::Deb), (self.rpm, PackageKind::Rpm));
        let asked = [deb, rpm, (self.wheel, PackageKind::Wheel)];
        let yank = self.yank.iter().filter_map(|text| faults.keep(Yank::parse(text))).collect();
        for wheels in &self.unyank {
            faults.keep(check_wheels("--unyank", wheels));
        }
        let kinds = asked.into_iter().filter_map(|(asked, it)| asked.then_some(it)).collect();
        let (remove, unyank, skip_bad) = (self.remove, self.unyank, self.skip_bad);
        let options = self.publication.options(self.out, kinds, now);
        let options = RepoOptions {
            packages: self.packages,
            changes: Changes { keep, remove, yank, unyank, skip_bad, ..options.changes },
            strict: self.strict,
            check: self.check,
            dry_run: self.dry_run,
            upload_plan: self.upload_plan,
            receipts: Trust { keys, ..options.receipts },
            ..options
        };
        let signers = signers.unwrap_or_default();
        let mut options = self.publication.resolve(options, now, &signers, &mut faults);
        let signer = signers.keys.into_iter().next();
        if let Some(options) = options.as_mut().filter(|_| self.sign_packages) {
            // The key file signs packages, or else the program that signs indexes.
            let package_signer = match &signer {
                Some(key) => header_signer(key, options.date).map(Some),
                None => Ok(options.signer.clone().map(header_signer_of)),
            };
            options.package_signer = faults.keep(package_signer).flatten();
        }
        let settings =
            options.map(|options| RepoSettings { options, signer, key_version, maintainer });
        faults.of_settings().settle(settings)
    }

    /// Refuses options that need a key if no key is named. Whether a named key works is checked elsewhere.
    fn refuse_without_key(&self, faults: &mut Faults) {
        if self.signing.is_given() {
            return;
        }
        let needs = [
            (self.sign_packages, "--sign-packages needs a key"),
            (self.key_package.is_some(), "a key package needs a key"),
        ];
        for (_, message) in needs.into_iter().filter(|(wanted, _)| *wanted) {
            let hint = "give --sign-key, --gpg-key-id or --sign-command";
            faults.add(Error::new(Kind::Usage, message).hint(hint));
        }
    }
}

fn check_maintainer(text: &str) -> Result<()> {
    if is_maintainer(text) {
        return Ok(());
    }
    let message = format!("--maintainer `{}` is no name with an address", text.escape_debug());
    let hint = "it is written as in `ROCm packagers <rocm@example.org>`";
    Err(Error::new(Kind::Usage, message).hint(hint))
}

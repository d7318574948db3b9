//! The settings of `repo`, and those of a publication, which `build --repo` shares.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use rockpack_archive::apt_index::format_date;
use rockpack_core::compression::Method;
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_package::indexed::PackageKind;
use rockpack_plan::config::{Config, ListCompression, RepositoryKeys, is_maintainer};
use rockpack_repo::{
    self as repo, ConfirmedChanges, KeyPackage, PackageChanges, RepoOptions, WhenLocked,
    WriteKeyPackage, Yank, check_wheel_spec, keyring,
};
use rockpack_signing::judge::CheckTime;
use rockpack_signing::{OpenPgpKey, Trust, header_signer, header_signer_of};
use serde_json::Value;

use super::signing::{ReceiptKeyArguments, Signers, SigningArguments};
use super::{DAY, Environment, output_path};

/// A change since the last publication that is an error unless it is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AllowedChange {
    /// packages of a lower version than REPO has
    Downgrade,
    /// packages with dependencies that REPO will not have
    Unmet,
    /// a date more than a day ahead of the clock, or before the last publication
    AnyDate,
    /// another origin, label or codename: apt-get update fails until each user accepts it
    ReleaseinfoChange,
}

/// The options of a publication in `out` with these keys, without packages and signers. `now` is `None` if the
/// time is unknown, which has been reported.
pub fn publication_options(
    keys: RepositoryKeys,
    out: PathBuf,
    kinds: Vec<PackageKind>,
    now: Option<CheckTime>,
) -> RepoOptions<'static> {
    RepoOptions {
        packages: Vec::new(),
        out,
        kinds,
        suite: keys.suite,
        component: keys.component,
        settings: repo::ChannelSettings {
            origin: keys.origin,
            label: keys.label,
            codename: keys.codename,
            description: keys.description,
            valid_days: keys.valid_days,
            name: keys.name,
            url: keys.url,
            pin: keys.pin,
        },
        changes: PackageChanges::default(),
        strict: false,
        check: false,
        dry_run: false,
        upload_plan: None,
        receipts: Trust { at: now.unwrap_or_default(), ..Trust::default() },
        index_page: keys.index_page,
        when_locked: WhenLocked::Fail,
        generations: keys.generations.into(),
        date: now.map_or(0, |now| now.time),
        confirmed: ConfirmedChanges::default(),
        list_method: match keys.rpm_md_compression {
            ListCompression::Gzip => Method::Gzip,
            ListCompression::Zstd => Method::Zstd,
        },
        signer: None,
        package_signer: None,
        built: BTreeMap::new(),
        key_package: None,
    }
}

/// Checks the options of a publication, and adds the signer of its indexes, with further public keys for clients.
pub fn with_signer(
    options: RepoOptions<'static>,
    now: Option<CheckTime>,
    signers: &Signers,
    others: &[Vec<u8>],
    faults: &mut Faults,
) -> Option<RepoOptions<'static>> {
    if let Some(now) = now.filter(|_| !options.confirmed.any_date) {
        faults.keep(refuse_future(now));
    }
    let signer = now.and_then(|now| faults.keep(signers.text_signer(now, others)));
    faults.keep(repo::check(&options))?;
    Some(RepoOptions { signer: signer?, ..options })
}

/// The keys with settings `KEY=VALUE`, which are the values of `option`.
pub fn with_settings(
    keys: RepositoryKeys,
    settings: &[String],
    option: &str,
    faults: &mut Faults,
) -> RepositoryKeys {
    settings.iter().fold(keys, |keys, setting| {
        faults.keep(with_setting(&keys, setting, option)).unwrap_or(keys)
    })
}

fn with_setting(keys: &RepositoryKeys, setting: &str, option: &str) -> Result<RepositoryKeys> {
    let refuse = |why: String| {
        let message = format!("`{}`: {why}", setting.escape_debug());
        let hint = "as in name=rocm; `rockpack config schema` lists the keys of `repository`";
        Error::new(Kind::Usage, message).structure(option).hint(hint)
    };
    let Some((key, value)) = setting.split_once('=') else {
        return Err(refuse("has no =".to_owned()));
    };
    let with = |value: Value| {
        let mut all = serde_json::to_value(keys)?;
        all[key] = value;
        serde_json::from_value(all)
    };
    // `version=7` is a text or a number, as the key expects.
    let read = with(value.into()).or_else(|error| with(value.parse().map_err(|_| error)?));
    read.map_err(|error| refuse(error.to_string()))
}

/// Refuses a publication that is dated more than a day ahead of the clock.
fn refuse_future(now: CheckTime) -> Result<()> {
    if now.time <= now.clock.saturating_add(DAY) {
        return Ok(());
    }
    let message = format!(
        "the publication would be dated {}, more than a day ahead of the clock ({})",
        format_date(now.time)?,
        format_date(now.clock)?
    );
    Err(Error::new(Kind::Usage, message).structure("SOURCE_DATE_EPOCH").hint(
        "apt refuses it until then, and rockpack any publication with an earlier date: set \
         SOURCE_DATE_EPOCH to a time in the past, or unset it; `rockpack repo --allow=any-date` \
         publishes it anyway",
    ))
}

/// Publish packages in a repository that apt, dnf, zypper, pip and uv use as it is.
///
/// REPO gets pool/ and dists/ for apt, packages/ and repodata/ for dnf and zypper, wheels/ and simple/ for pip and uv.
/// It can be served while it is written: the file that makes a publication visible is replaced last, and unused files
/// are kept for a while. Packages are added to the existing ones; files with the name, size and time of a published
/// file are not read again. Packages next to a receipt, such as packages.json, must be those that it lists.
/// SOURCE_DATE_EPOCH sets the time of the publication.
#[derive(Debug, Args)]
#[allow(rustdoc::invalid_html_tags, reason = "these are the words of --help")]
pub struct RepoArguments {
    /// Packages, wheels, source distributions of Python, and folders of them
    ///
    /// Without any, REPO is published again with a new date
    #[arg(value_name = "DIR|PACKAGE")]
    packages: Vec<PathBuf>,
    /// Folder of the repository; created if missing
    #[arg(long, value_name = "REPO", value_parser = output_path())]
    out: PathBuf,
    /// Packaging configuration (.json or .toml); only its table `repository` and `maintainer` are used
    ///
    /// Names and texts of the suite, days of validity, the name and priority for clients, and the maintainer of the key
    /// package. Keys that are not set keep their published values
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Set a key of the table `repository`, as in name=rocm or pin=990; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// apt suite [default: `stable`]
    #[arg(long, value_name = "NAME")]
    suite: Option<String>,
    /// URL that REPO is served at (https://…)
    ///
    /// With it, REPO gets index.html, and the files that add REPO as a source to apt, dnf and zypper
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Allow changes that are otherwise errors
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    allow: Vec<AllowedChange>,
    /// Wait for another run that writes to REPO, instead of failing
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    pub(crate) signing: SigningArguments,
    /// Sign the headers of the .rpm packages that are added
    ///
    /// The signer of the indexes signs them, and replaces existing signatures. Once all packages are signed, the files
    /// for clients require signatures
    #[arg(long)]
    sign_packages: bool,
    /// Also publish a package with the public keys
    ///
    /// The package is <name>-archive-keyring in this version. Clients need it when the key changes
    #[arg(long, value_name = "VERSION")]
    key_package: Option<String>,
    /// Publish only .deb packages
    #[arg(long)]
    deb: bool,
    /// Publish only .rpm packages (with --deb: both)
    #[arg(long)]
    rpm: bool,
    /// Publish only wheels and source distributions (with --deb or --rpm: these, too)
    #[arg(long)]
    wheel: bool,
    /// Keep only the N highest versions of each package, and the packages of this run
    ///
    /// Wheels that a kept version requires are kept, too: device wheels with their host wheels
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,
    /// Remove packages: NAME or NAME=VERSION; may be given several times
    #[arg(long, value_name = "NAME")]
    remove: Vec<String>,
    /// Mark wheels as yanked: NAME=VERSION or FILE, optionally with =REASON
    ///
    /// Yanked wheels are kept, but installed only if exactly this version is required; may be given several times
    #[arg(long, hide_short_help = true, value_name = "NAME=VERSION|FILE[=REASON]")]
    yank: Vec<String>,
    /// Undo --yank: NAME=VERSION or FILE
    #[arg(long, hide_short_help = true, value_name = "NAME=VERSION|FILE", conflicts_with = "yank")]
    unyank: Vec<String>,
    /// Treat warnings as errors, before anything is written
    #[arg(long)]
    strict: bool,
    /// Leave out bad packages, publish the others, and exit with 1
    ///
    /// Bad packages are damaged, or apt, dpkg, dnf, rpm, pip or uv refuses them. Without this option, one bad package
    /// fails the run, and nothing is published
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
    /// A JSON file outside of REPO: what to upload first and last, what to remove an hour later, and the content type
    /// and cache header of each file. In this order, clients always see one complete publication
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
        let config = Config::of(self.config.as_deref(), &mut faults);
        let keys = config.map(|config| config.keys).unwrap_or_default();
        let settings = with_settings(keys.repository, &self.set, "--set", &mut faults);
        let maintainer = settings.maintainer.clone().unwrap_or(keys.maintainer);
        let key_version = self.key_package;
        if let Some(version) = &key_version {
            faults.keep(keyring::check_version(version));
            faults.keep(check_maintainer(&maintainer));
        }
        let RepositoryKeys { suite, url, .. } = settings.clone();
        let (suite, url) = (self.suite.unwrap_or(suite), self.url.or(url));
        let settings = RepositoryKeys { suite, url, ..settings };
        let now = faults.keep(environment.now());
        let signers = faults.keep(self.signing.signers(environment, now));
        let trusted = faults.keep(self.receipts.keys()).unwrap_or_default();
        let others = faults.keep(self.signing.further_keys()).unwrap_or_default();
        let keep = self.keep.map(|keep| usize::try_from(keep).unwrap_or(usize::MAX));
        let (deb, rpm) = ((self.deb, PackageKind::Deb), (self.rpm, PackageKind::Rpm));
        let asked = [deb, rpm, (self.wheel, PackageKind::Wheel)];
        let yank = self.yank.iter().filter_map(|text| faults.keep(Yank::parse(text))).collect();
        for wheels in &self.unyank {
            faults.keep(check_wheel_spec("--unyank", wheels));
        }
        let kinds = asked.into_iter().filter_map(|(asked, it)| asked.then_some(it)).collect();
        let (remove, unyank, skip_bad) = (self.remove, self.unyank, self.skip_bad);
        let allows = |what| self.allow.contains(&what);
        let (allow_downgrade, allow_unmet) =
            (allows(AllowedChange::Downgrade), allows(AllowedChange::Unmet));
        let (any_date, release_info) =
            (allows(AllowedChange::AnyDate), allows(AllowedChange::ReleaseinfoChange));
        let options = publication_options(settings, self.out, kinds, now);
        let options = RepoOptions {
            packages: self.packages,
            changes: PackageChanges {
                keep,
                remove,
                allow_downgrade,
                allow_unmet,
                skip_bad,
                yank,
                unyank,
            },
            confirmed: ConfirmedChanges { any_date, release_info },
            when_locked: if self.wait { WhenLocked::Wait } else { WhenLocked::Fail },
            strict: self.strict,
            check: self.check,
            dry_run: self.dry_run,
            upload_plan: self.upload_plan,
            receipts: Trust { keys: trusted, ..options.receipts },
            ..options
        };
        let signers = signers.unwrap_or_default();
        let mut options = with_signer(options, now, &signers, &others, &mut faults);
        let signer = signers.keys.into_iter().next();
        if let Some(options) = options.as_mut().filter(|_| self.sign_packages) {
            // The key file signs packages; without one, the program that signs indexes does.
            let package_signer = match &signer {
                Some(key) => header_signer(key, options.date).map(Some),
                None => Ok(options.signer.clone().map(header_signer_of)),
            };
            options.package_signer = faults.keep(package_signer).flatten();
        }
        let settings =
            options.map(|options| RepoSettings { options, signer, key_version, maintainer });
        faults.into_settings_faults().settle(settings)
    }

    /// Refuses options that need a key if none is given. The key itself is checked elsewhere.
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
    let message = format!("the maintainer `{}` has no name or no address", text.escape_debug());
    let hint = "as in `ROCm packagers <rocm@example.org>`";
    Err(Error::new(Kind::Usage, message).hint(hint))
}

//! The settings of `repo`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use rockpack_archive::rpm::HeaderSigner;
use rockpack_core::error::{Error, Faults, Kind, Result};

use super::environment::Environment;
use super::output_path::output_path;
use super::publish::{PublicationArguments, PublishRequest, PublishSettings};
use super::signing::{ReceiptKeyArguments, SigningArguments};
use rockpack_package::indexed::PackageKind;
use rockpack_plan::config::{Keys, is_maintainer};
use rockpack_repo::{
    Changes, KeyPackage, RepoOptions, WriteKeyPackage, Yank, check_wheels, keyring,
};
use rockpack_signing::{Signer, header_signer, header_signer_of};

/// The options of `repo`.
#[derive(Debug, Args)]
#[allow(rustdoc::invalid_html_tags, reason = "these are the words of --help")]
pub struct RepoArguments {
    /// Packages, wheels, and folders of them
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
    /// Publish only wheels (with --deb or --rpm: these, too)
    #[arg(long)]
    wheel: bool,
    /// Keep no more than the N highest versions of each package
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
    #[command(flatten)]
    receipts: ReceiptKeyArguments,
}

/// The settings of a publication, and its signers.
pub struct RepoSettings {
    publish: PublishSettings,
    /// The first key file, which signs packages.
    pub signer: Option<Arc<dyn Signer>>,
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
        RepoOptions { key_package, ..self.publish.options() }
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
        let (remove, unyank, skip_bad) = (self.remove, self.unyank, self.skip_bad);
        let changes = Changes { keep, remove, yank, unyank, skip_bad, ..Changes::default() };
        let request = PublishRequest {
            packages: self.packages,
            out: self.out,
            kinds: asked.into_iter().filter_map(|(asked, it)| asked.then_some(it)).collect(),
            changes,
            strict: self.strict,
            check: self.check,
            dry_run: self.dry_run,
            receipt_keys: keys,
            now,
        };
        let signers = signers.unwrap_or_default();
        let mut publish = self.publication.resolve(request, &signers, &mut faults);
        let signer = signers.keys.into_iter().next();
        if let Some(publish) = publish.as_mut().filter(|_| self.sign_packages) {
            let package_signer = faults.keep(package_signer(signer.as_ref(), publish));
            publish.options.package_signer = package_signer.flatten();
        }
        let settings =
            publish.map(|publish| RepoSettings { publish, signer, key_version, maintainer });
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

/// The signer of packages: the key file, or else the program that signs indexes.
fn package_signer(
    key: Option<&Arc<dyn Signer>>,
    publish: &PublishSettings,
) -> Result<Option<HeaderSigner>> {
    match key {
        Some(key) => header_signer(key, publish.options.date).map(Some),
        None => Ok(publish.signer.clone().map(header_signer_of)),
    }
}

//! `rockpack repo`: packages in, a repository out.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use rockpack_base::content::Content;
use rockpack_base::error::{Error, Faults, Kind, Result};
use rockpack_base::formats::rpm::HeaderSigner;

use super::Outcome;
use super::progress::Terminal;
use crate::cli::render;
use crate::config::{Keys, is_maintainer};
use crate::package::{Format, Package};
use crate::repo::{Changes, KeyPackage, RepoOptions, keyring, publish};
use crate::report::Progress;
use crate::settings::{
    Environment, PublicationArguments, PublishRequest, PublishSettings, SigningArguments,
    output_path,
};
use crate::signing::{Signer, header_signer, header_signer_of};

/// Publish packages in a repository that apt, dnf and zypper use as it is.
///
/// REPO gets pool/ and dists/ for apt, packages/ and repodata/ for dnf and zypper. It can be served
/// while it is written to: the file that makes a publication visible is put in place last, and
/// what went out of use stays for a while. Packages are added to those that are there; files that
/// were published before, by name, size and time, are not read again. SOURCE_DATE_EPOCH stands for
/// the time of the publication.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Packages, and folders of packages
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
    signing: SigningArguments,
    /// Sign the headers of the .rpm packages that are added
    ///
    /// By what signs the indexes, in place of signatures that they have; clients are told to insist
    /// on signatures when all packages have one
    #[arg(long)]
    sign_packages: bool,
    /// Also publish a package with the public keys
    ///
    /// The package <name>-archive-keyring of this version: what clients need when the key changes
    #[arg(long, value_name = "VERSION")]
    key_package: Option<String>,
    /// Who maintains the key package
    #[arg(long, value_name = "NAME <ADDRESS>", requires = "key_package", default_value_t = Keys::default().maintainer)]
    maintainer: String,
    /// Publish only .deb packages
    #[arg(long)]
    deb: bool,
    /// Publish only .rpm packages (with --deb: both)
    #[arg(long)]
    rpm: bool,
    /// Keep no more than the N highest versions of each package
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,
    /// Take packages out: NAME or NAME=VERSION; may be given several times
    #[arg(long, value_name = "NAME")]
    remove: Vec<String>,
    /// Treat warnings as errors, before anything is written
    #[arg(long)]
    strict: bool,
    /// Read all packages again, those of REPO, too
    #[arg(long)]
    check: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(mut arguments: Arguments, progress: &Terminal) -> Result<Outcome> {
    let prints_json = arguments.json;
    let (check, strict) = (arguments.check, arguments.strict);
    let key_version = arguments.key_package.take();
    let maintainer = std::mem::take(&mut arguments.maintainer);
    let exposed = arguments.signing.exposed();
    let settings = arguments.resolve(key_version.as_deref(), &maintainer)?;
    exposed.iter().for_each(|finding| progress.warn(finding));
    let write = |package: &Package<Content>, folder: &Path| {
        crate::pipeline::write_key_package(package, folder, settings.signer.as_ref())
    };
    let maintainer = &maintainer;
    let key_package =
        key_version.as_deref().map(|version| KeyPackage { version, maintainer, write: &write });
    let package_signer = settings.package_signer.clone();
    let given = settings.publish.options();
    let options = RepoOptions { strict, check, key_package, package_signer, ..given };
    let published = publish(&options, progress)?;
    progress.findings(&published.findings);
    if prints_json {
        progress.print_json(&published)?
    } else {
        progress.print(&render::published_text(&published))?
    }
    progress.note(&render::published_end(&published, &options.out));
    Ok(Outcome::Done)
}

/// What is published, and by which keys.
struct RepoSettings {
    publish: PublishSettings,
    /// The first key in a file, which signs packages.
    signer: Option<Arc<dyn Signer>>,
    /// What signs the packages that are added, if they are to be signed.
    package_signer: Option<HeaderSigner>,
}

impl Arguments {
    /// Resolves the settings, whatever the packages are. Faults of several settings are refused together.
    fn resolve(self, key_version: Option<&str>, maintainer: &str) -> Result<RepoSettings> {
        let environment = Environment::of_process();
        let mut faults = Faults::default();
        self.refuse_without_key(key_version, &mut faults);
        if let Some(version) = key_version {
            faults.keep(keyring::check_version(version));
            faults.keep(check_maintainer(maintainer));
        }
        let now = faults.keep(environment.now());
        let signers = faults.keep(self.signing.signers(&environment, now));
        let keep = self.keep.map(|keep| usize::try_from(keep).unwrap_or(usize::MAX));
        let asked = [(self.deb, Format::Deb), (self.rpm, Format::Rpm)];
        let request = PublishRequest {
            packages: self.packages,
            out: self.out,
            formats: asked.into_iter().filter_map(|(asked, it)| asked.then_some(it)).collect(),
            changes: Changes { keep, remove: self.remove, ..Changes::default() },
            now,
        };
        let known = signers.as_deref().unwrap_or_default();
        let publish = self.publication.resolve(request, known, &mut faults);
        let package_signer = match &publish {
            Some(publish) if self.sign_packages => {
                faults.keep(package_signer(known.first(), publish))
            }
            _ => None,
        };
        let settings = signers.zip(publish).map(|(signers, publish)| RepoSettings {
            publish,
            signer: signers.into_iter().next(),
            package_signer: package_signer.flatten(),
        });
        faults.of_settings().settle(settings)
    }

    /// Refuses what needs a key where none is named; whether it can be used is told apart.
    fn refuse_without_key(&self, key_version: Option<&str>, faults: &mut Faults) {
        if self.signing.has_key() || self.publication.has_own_key() {
            return;
        }
        let needs = [
            (self.sign_packages, "--sign-packages needs a key"),
            (key_version.is_some(), "a key package needs a key"),
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

/// What signs packages: the key in the file, or the program that signs indexes.
fn package_signer(
    key: Option<&Arc<dyn Signer>>,
    publish: &PublishSettings,
) -> Result<Option<HeaderSigner>> {
    match (key, publish.index_signer()) {
        (Some(key), _) => header_signer(key, publish.options().date).map(Some),
        (None, other) => Ok(other.map(|other| header_signer_of(Arc::clone(other)))),
    }
}

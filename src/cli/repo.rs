//! `rockpack repo`: packages in, a repository out.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use super::progress::Terminal;
use super::{Outcome, terminal};
use crate::cli::render;
use crate::content::Content;
use crate::error::{Error, Kind, Result};
use crate::formats::rpm::HeaderSigner;
use crate::package::{Format, Package};
use crate::repo::{Changes, KeyPackage, publish};
use crate::settings::{Environment, PublicationArguments, SigningArguments};
use crate::signing::{IndexSigner, Signer, header_signer, header_signer_of};

/// Publish packages in a repository that apt, dnf and zypper use as it is.
///
/// REPO gets pool/ and dists/ for apt, packages/ and repodata/ for dnf and zypper. It can be served
/// while it is written to: the file that makes a publication visible is put in place last, and
/// what went out of use stays for a while. Packages are added to those that are there; files that
/// were published before, by name, size and time, are not read again. SOURCE_DATE_EPOCH stands for
/// the time of the publication.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Packages, and folders of packages; without any, REPO is published again, with a new date
    #[arg(value_name = "DIR|PACKAGE")]
    packages: Vec<PathBuf>,
    /// Folder of the repository; created if missing
    #[arg(long, value_name = "REPO")]
    out: PathBuf,
    #[command(flatten)]
    publication: PublicationArguments,
    #[command(flatten)]
    signing: SigningArguments,
    /// Sign the headers of the .rpm packages that are added by what signs the indexes, in place of
    /// signatures that they have; clients are told to insist on signatures when all packages have
    /// one
    #[arg(long)]
    sign_packages: bool,
    /// Also make and publish the package <name>-archive-keyring of this version, with the public
    /// keys: what clients need when the key changes
    #[arg(long, value_name = "VERSION")]
    key_package: Option<String>,
    /// Who maintains the key package
    #[arg(long, value_name = "NAME <ADDRESS>", requires = "key_package")]
    maintainer: Option<String>,
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
    /// Read all packages again, those of REPO, too
    #[arg(long)]
    check: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Who maintains a key package where nobody is named.
const DEFAULT_MAINTAINER: &str = "Unnamed packager <packager@rockpack.invalid>";

pub(super) fn run(arguments: Arguments, progress: &Terminal) -> Result<Outcome> {
    let keep = arguments.keep.map(|keep| usize::try_from(keep).unwrap_or(usize::MAX));
    let changes = Changes { keep, remove: arguments.remove, ..Changes::default() };
    let environment = Environment::of_process();
    let signer = arguments.signing.signer(&environment)?;
    let publication = arguments.publication;
    let index_signer = publication.index_signer(signer.as_ref(), environment.now()?)?;
    let mut options =
        publication.options(arguments.packages, arguments.out, changes, &environment)?;
    options.check = arguments.check;
    if arguments.sign_packages {
        let by = package_signer(signer.as_ref(), index_signer.as_ref(), options.date)?;
        options.package_signer = Some(by);
    }
    options.signer = index_signer.as_deref();
    let asked = [(arguments.deb, Format::Deb), (arguments.rpm, Format::Rpm)];
    options.formats =
        asked.into_iter().filter_map(|(asked, format)| asked.then_some(format)).collect();
    let write = |package: &Package<Content>, folder: &Path| {
        crate::write_key_package(package, folder, signer.as_ref())
    };
    let maintainer = arguments.maintainer.as_deref().unwrap_or(DEFAULT_MAINTAINER);
    options.key_package = arguments.key_package.as_deref().map(|version| KeyPackage {
        version,
        maintainer,
        write: &write,
    });
    let published = publish(&options, progress)?;
    if arguments.json {
        terminal::print_json(&published)?
    } else {
        terminal::print(&render::published_text(&published))?
    }
    Ok(Outcome::Done)
}

/// What signs packages: the key in the file, or the program that signs indexes.
fn package_signer(
    key: Option<&Arc<dyn Signer>>,
    other: Option<&Arc<dyn IndexSigner>>,
    time: i64,
) -> Result<HeaderSigner> {
    match (key, other) {
        (Some(key), _) => header_signer(key, time),
        (None, Some(other)) => Ok(header_signer_of(Arc::clone(other))),
        (None, None) => Err(Error::new(Kind::Usage, "--sign-packages needs a key")
            .hint("give --sign-key, --gpg-key-id or --sign-command")),
    }
}

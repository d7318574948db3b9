//! `rockpack repo`: packages in, a repository out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Parser, ValueEnum};

use super::progress::Terminal;
use super::signing::{SigningArguments, TrustArguments};
use super::{Outcome, environment, terminal};
use crate::content::Content;
use crate::error::{Error, Kind, Result};
use crate::formats::compression::Method;
use crate::formats::rpm::HeaderSigner;
use crate::package::{Format, Package};
use crate::render;
use crate::repo::{Changes, KeyPackage, RepoOptions, Settings, publish};
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
    publication: Publication,
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

/// How packages are published: the options that `build --repo` has, too.
#[derive(Debug, Clone, PartialEq, Args)]
pub(super) struct Publication {
    /// apt suite [default: stable]
    #[arg(long, value_name = "NAME")]
    suite: Option<String>,
    /// apt component that the packages go to [default: main]
    #[arg(long, value_name = "NAME")]
    component: Option<String>,
    /// Codename of the suite [default: its name]
    #[arg(long, value_name = "NAME")]
    codename: Option<String>,
    /// Who publishes the suite
    #[arg(long, value_name = "TEXT")]
    origin: Option<String>,
    /// Label of the suite
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// What the repository is, in one line
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Clients refuse the suite that many days after its publication (Valid-Until); 0: never
    #[arg(long, value_name = "N")]
    valid_days: Option<u32>,
    /// Where REPO is served (https://…): writes a .sources and a .repo file for clients
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// What the files for clients are called [default: rocm]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Compression of the lists for dnf and zypper
    #[arg(long, default_value = "gzip", value_name = "METHOD")]
    rpm_md_compression: ListCompression,
    /// How many publications indexes and packages stay that are in use no longer; an hour at least
    #[arg(long, default_value = "3", value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    generations: u64,
    /// Publish packages of a lower version than REPO has
    #[arg(long)]
    allow_downgrade: bool,
    #[command(flatten)]
    trust: TrustArguments,
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

/// The options of a publication, none of them given.
#[derive(Debug, Parser)]
struct NoneGiven {
    #[command(flatten)]
    publication: Publication,
    #[command(flatten)]
    /// Options of the publication refer to these.
    signing: SigningArguments,
}

impl Publication {
    /// Fails if an option is given that has no effect without a repository.
    pub(super) fn refuse_if_given(&self) -> Result<()> {
        let none = NoneGiven::try_parse_from([""]);
        let none = none.map_err(|e| Error::bug("options without defaults").cause(e))?;
        match *self == none.publication {
            true => Ok(()),
            false => Err(Error::new(Kind::Usage, "options of a repository are given without one")
                .hint("name the repository by --repo, or leave its options out")),
        }
    }

    /// What signs the indexes.
    pub(super) fn index_signer(
        &self,
        signer: Option<&Arc<dyn Signer>>,
    ) -> Result<Option<Arc<dyn IndexSigner>>> {
        self.trust.index_signer(signer, environment::now()?)
    }

    /// Options to publish `packages` in `out`.
    pub(super) fn options<'a>(
        self,
        packages: Vec<PathBuf>,
        out: PathBuf,
        changes: Changes,
    ) -> Result<RepoOptions<'a>> {
        Ok(RepoOptions {
            packages,
            out,
            formats: Vec::new(),
            suite: self.suite.unwrap_or_else(|| "stable".to_owned()),
            component: self.component.unwrap_or_else(|| "main".to_owned()),
            settings: Settings {
                origin: self.origin,
                label: self.label,
                codename: self.codename,
                description: self.description,
                valid_days: self.valid_days,
                name: self.name,
                url: self.url,
            },
            changes: Changes { allow_downgrade: self.allow_downgrade, ..changes },
            check: false,
            wait: self.wait,
            generations: self.generations,
            date: environment::now()?,
            list_method: match self.rpm_md_compression {
                ListCompression::Gzip => Method::Gzip,
                ListCompression::Zstd => Method::Zstd,
            },
            signer: None,
            package_signer: None,
            built: BTreeMap::new(),
            key_package: None,
        })
    }
}

pub(super) fn run(arguments: Arguments, progress: &Terminal) -> Result<Outcome> {
    let keep = arguments.keep.map(|keep| usize::try_from(keep).unwrap_or(usize::MAX));
    let changes = Changes { keep, remove: arguments.remove, ..Changes::default() };
    let signer = arguments.signing.signer()?;
    let index_signer = arguments.publication.index_signer(signer.as_ref())?;
    let mut options = arguments.publication.options(arguments.packages, arguments.out, changes)?;
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
    match arguments.json {
        true => terminal::print_json(&published)?,
        false => terminal::print(&render::published_text(&published))?,
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

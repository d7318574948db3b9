//! The settings of a build.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::run::parse_size;

use super::cost::{CostArguments, CostSettings};
use super::environment::{Environment, Now};
use super::given::GivenOptions;
use super::origin::{Gathered, Origin};
use super::output_path::output_path;
use super::publish::{PublicationArguments, PublishRequest, PublishSettings};
use super::set::{SetArguments, SetSettings};
use super::signing::SigningArguments;
use rockpack_emit::Staging;
use rockpack_files::cache::Cache;
use rockpack_package::Format;
use rockpack_package::indexed::PackageKind;
use rockpack_package::receipt::{self, SetPart};
use rockpack_repo as repo;
use rockpack_signing::{IndexSigner, PASSPHRASE_VARIABLE, PublicKeys, Signer};
use rockpack_split::input::artifact;

/// The options of a build.
#[derive(Debug, Args)]
pub struct BuildArguments {
    #[command(flatten)]
    set: SetArguments,
    #[command(flatten)]
    output: OutputArguments,
    #[command(flatten, next_help_heading = "Cost")]
    cost: CostArguments,
    #[command(flatten, next_help_heading = "Signing")]
    pub(crate) signing: SigningArguments,
    /// Publish the packages in this repository as well
    ///
    /// The same as `rockpack repo`, without reading the packages again: they become hard links to those in
    /// OUT where possible
    #[arg(long, value_name = "REPO", value_parser = output_path(), help_heading = "Repository")]
    repo: Option<PathBuf>,
    #[command(flatten, next_help_heading = "Repository")]
    publication: PublicationArguments,
}

/// The output of a build, and its place.
#[derive(Debug, Args)]
struct OutputArguments {
    /// Folder for the packages; created if missing
    #[arg(long, required = true, value_name = "DIR", value_parser = output_path())]
    out: Option<PathBuf>,
    /// Build one part of the set, of N parts
    ///
    /// `plan --matrix` lists the parts. OUT then gets packages-I-of-N.json in place of
    /// packages.json, so that all parts fit into one folder; `verify` joins them
    #[arg(long, value_name = "I/N")]
    partition: Option<SetPart>,
    /// Cache compressed data here for later builds
    ///
    /// A later build with another version below the same prefix, other dependencies, scripts or descriptions
    /// compresses only the host packages and metapackages of .deb again, because their changelog changes. The
    /// packages are the same with and without a cache, byte for byte. Several builds may use one cache at the
    /// same time. Anyone who can write to it can change the content of packages
    #[arg(long, value_name = "DIR", value_parser = output_path())]
    cache: Option<PathBuf>,
    /// Limit of the cache in bytes
    ///
    /// The suffixes K, M, G and T multiply by powers of 1024. Entries that were not used for the longest time
    /// are removed first
    #[arg(long, hide_short_help = true, value_name = "BYTES", requires = "cache", default_value = "32G", value_parser = parse_size)]
    cache_size: u64,
    /// Write an SPDX document of the set, too
    ///
    /// packages.spdx.json is an SPDX 2.3 document with every package and file of the set, their digests, and
    /// the artifacts that they were made from. A part of a set has its own, packages-I-of-N.spdx.json
    #[arg(long)]
    sbom: bool,
}

/// All settings of a build.
pub struct BuildSettings {
    /// The package set.
    pub set: SetSettings,
    /// The output and its place.
    pub output: OutputSettings,
    /// Compression and memory.
    pub cost: CostSettings,
    /// The signer of `.rpm` headers, if they are to be signed.
    pub signer: Option<Arc<dyn Signer>>,
    /// The signer of the receipt, if it is to be signed.
    pub receipt_signer: Option<Arc<dyn IndexSigner>>,
    /// The repository that the packages are published in, if any.
    pub publish: Option<PublishSettings>,
}

/// The output of a build, and its place.
#[derive(Debug, Clone)]
pub struct OutputSettings {
    /// The folder for the packages; created if missing.
    pub folder: PathBuf,
    /// The part of the set to write; all of it if unset.
    pub part: Option<SetPart>,
    /// The cache of compressed data, if one is used.
    pub cache: Option<CacheSettings>,
    /// Whether to write an SPDX document beside the receipt.
    pub sbom: bool,
}

/// A cache of compressed data.
#[derive(Debug, Clone)]
pub struct CacheSettings {
    /// The folder; created if missing.
    pub folder: PathBuf,
    /// The limit in bytes.
    pub limit: u64,
}

impl BuildArguments {
    /// Resolves the settings without reading input. Reports the faults of all settings together.
    pub fn resolve(self, given: &GivenOptions, environment: &Environment) -> Result<BuildSettings> {
        let mut gathered = Gathered::default();
        let settings = self.gather(given, environment, &mut gathered);
        gathered.faults.of_settings().settle(settings)
    }

    pub(super) fn gather(
        self,
        given: &GivenOptions,
        environment: &Environment,
        gathered: &mut Gathered,
    ) -> Option<BuildSettings> {
        let Self { set, output, cost, signing, repo, publication } = self;
        let formats = set.formats();
        let output = output.settings();
        output.check(&mut gathered.faults);
        output.refuse_inside(&set.artifacts, &mut gathered.faults);
        if let Some(repo) = &repo {
            refuse_place(repo, &set.artifacts, &output, &mut gathered.faults);
        }
        let mut set = set.gather(environment, gathered);
        let cost = cost.resolve(set.as_ref(), formats.len(), given, gathered);
        let needs_now = repo.is_some() || signing.is_given();
        let now = needs_now.then(|| read_now(environment, gathered)).flatten();
        if environment.passphrase.is_some() && signing.has_key() {
            let variable = PASSPHRASE_VARIABLE;
            gathered.note(variable, "set", Origin::Environment { variable });
        }
        let signers = gathered.faults.keep(signing.signers(environment, now)).unwrap_or_default();
        let time = set.as_ref().map_or(u32::MAX, |set| set.plan.time);
        let receipt_signer = signers.receipts(time.into(), now, &mut gathered.faults);
        let own = receipt_signer.as_deref().map(PublicKeys::of_signer).transpose();
        if let (Some(set), Some(own)) = (&mut set, gathered.faults.keep(own).flatten()) {
            set.trust.keys = std::mem::take(&mut set.trust.keys).and(own);
        }
        let signs_headers = formats.contains(&Format::Rpm);
        let publish = match repo {
            Some(repo) => {
                let kinds = formats.into_iter().map(PackageKind::from).collect();
                let request = PublishRequest { out: repo, kinds, now, ..Default::default() };
                publication.resolve(request, &signers, &mut gathered.faults)
            }
            None => {
                gathered.faults.keep(refuse_given(given));
                None
            }
        };
        let signer = signers.keys.into_iter().next().filter(|_| signs_headers);
        Some(BuildSettings { set: set?, output, cost: cost?, signer, receipt_signer, publish })
    }
}

/// Reads the clock. A faulty SOURCE_DATE_EPOCH is reported with the set, and gives `None`; a faulty clock is
/// reported here.
fn read_now(environment: &Environment, gathered: &mut Gathered) -> Option<Now> {
    let now = environment.now();
    if environment.epoch().is_err() { None } else { gathered.faults.keep(now) }
}

/// Refuses a repository inside the artifacts, and one that contains the output folder.
fn refuse_place(repo: &Path, artifacts: &[PathBuf], output: &OutputSettings, faults: &mut Faults) {
    faults.keep(artifact::refuse_inside(artifacts, repo, "repository"));
    // `config show` may lack an output folder.
    if !output.folder.as_os_str().is_empty() {
        faults.keep(repo::refuse_output_inside(repo, &output.folder));
    }
}

/// Refuses options of a publication without `--repo`.
fn refuse_given(given: &GivenOptions) -> Result<()> {
    let given = given.options_of::<PublicationArguments>();
    if given.is_empty() {
        Ok(())
    } else {
        let message = format!("{}: nothing is published without --repo", given.join(", "));
        let hint = "name the repository by --repo, or leave these options out";
        Err(Error::new(Kind::Usage, message).hint(hint))
    }
}

impl OutputArguments {
    fn settings(&self) -> OutputSettings {
        let limit = self.cache_size;
        let cache = self.cache.clone().map(|folder| CacheSettings { folder, limit });
        // `config show` writes nothing, and so needs no folder.
        let folder = self.out.clone().unwrap_or_default();
        OutputSettings { folder, part: self.partition, cache, sbom: self.sbom }
    }
}

impl OutputSettings {
    /// Refuses an output folder or cache that cannot be written, before the build spends time.
    fn check(&self, faults: &mut Faults) {
        // `config show` may lack an output folder.
        if !self.folder.as_os_str().is_empty() {
            let receipt = receipt::file_name(self.part);
            faults.keep(Staging::check_ahead(&self.folder, &receipt, self.sbom));
        }
        if let Some(cache) = &self.cache {
            faults.keep(Cache::check_ahead(&cache.folder));
        }
    }

    fn refuse_inside(&self, artifacts: &[PathBuf], faults: &mut Faults) {
        faults.keep(artifact::refuse_inside(artifacts, &self.folder, "output folder"));
        if let Some(cache) = &self.cache {
            faults.keep(artifact::refuse_inside(artifacts, &cache.folder, "cache"));
        }
    }
}

//! The settings of `verify`.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use rockpack_archive::wheel::WheelName;
use rockpack_core::content::{is_file, is_folder, list};
use rockpack_core::error::{Error, Faults, Kind, Result, ResultExt};
use rockpack_core::run::{Budget, Limits};
use rockpack_files::new_file;
use rockpack_signing::{PublicKeys, Trust};
use rockpack_split::input::tree::{InputPath, is_tarball};
use rockpack_split::input::{artifact, wheel};
use rockpack_verify::{Extent, Options};

use super::signing::{Signers, SigningArguments};
use super::{Environment, input_path, output_path};

/// Check packages, Python wheels, repositories, artifacts, installed prefixes, kernel archives, manifests and
/// host binaries.
///
/// Packages are checked as one set, which must be complete: a host package fails without its kernel packages. With
/// --partial, only what the given packages show is checked. With --against, the packages must have every file and code
/// object of the artifacts, and no others. With --key, packages and wheels need a signed receipt (packages.json,
/// wheels.json). Of repositories (folders with dists/, repodata/ or simple/), every index is compared with every
/// package, and, with --key, with its signature. Folders of parts that `build --partition` wrote are joined: all parts
/// must be there and belong to one plan. Artifacts (one, a shard, or a folder of shards) are checked by component:
/// split ones have host code in the generic artifact, and code of its arch in each other. A folder's kind is recognised
/// by its contents. Exits with 1 if a check fails.
#[derive(Debug, Args)]
pub struct VerifyArguments {
    /// Packages, wheels, repositories, artifacts, prefixes or single files
    ///
    /// Folders of packages (with their packages.json, if there), of wheels, artifacts (folders, .tar.zst,
    /// .tar.xz), shards, installed prefixes, kernel archives, manifests, host binaries
    #[arg(required = true, value_name = "DIR|FILE")]
    paths: Vec<PathBuf>,
    /// Treat every folder as an installed prefix, such as /opt/rocm-7.1 or site-packages
    #[arg(long)]
    installed: bool,
    /// Read the GPUs of the machine from another folder
    #[arg(long, value_name = "DIR", default_value = "/sys", requires = "installed")]
    sysfs: PathBuf,
    /// The given packages are only part of a set
    ///
    /// Checks that need the other packages are skipped, and listed
    #[arg(long, conflicts_with = "join")]
    partial: bool,
    /// The artifacts or fat wheels that packages or wheels were made from
    ///
    /// Artifacts and install trees as for build, fat wheels or folders of them, or single host binaries with device
    /// code; may be given several times. During the run, TMPDIR holds the contents of tarballs and wheels, which need
    /// somewhat more space than the files
    #[arg(long, value_name = "[NAME=]PATH", value_parser = input_path())]
    against: Vec<InputPath>,
    /// Public key that must have made the signatures
    ///
    /// One of the keys must have signed the receipt next to packages or wheels (packages.json.asc), the indexes
    /// of repositories, and the packages in them that are signed; may be given several times
    #[arg(long, value_name = "FILE")]
    key: Vec<PathBuf>,
    /// Fail also for packages of a repository that rpm 6 refuses (V106), and for stale rows in RECORD of a wheel (V093)
    #[arg(long)]
    strict: bool,
    /// Write the packages.json of the whole set here
    ///
    /// Needs the folders of all parts, and is written only if no check fails. The file is the same that one build of
    /// the whole set writes. With signing options, FILE.asc is its signature
    #[arg(long, value_name = "FILE", value_parser = output_path())]
    join: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) signing: SigningArguments,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug)]
pub struct VerifySettings {
    pub paths: Vec<PathBuf>,
    /// How they are checked. The artifacts are not read yet.
    pub options: Options<'static>,
    /// Artifacts and install trees that packages were made from.
    pub artifacts: Vec<InputPath>,
    /// The file for the receipt of the joined set, if it is wanted.
    pub join: Option<PathBuf>,
    pub signers: Signers,
}

impl VerifyArguments {
    /// Resolves the settings without reading what is to be verified. Reports the faults of all settings
    /// together.
    pub fn resolve(self, environment: &Environment) -> Result<VerifySettings> {
        let mut faults = Faults::default();
        let keys = faults.keep(PublicKeys::open(&self.key, "--key"));
        let now = faults.keep(environment.now());
        if let Some(file) = &self.join {
            faults.keep(new_file::check_place(file));
        } else if self.signing.is_given() {
            let message = "a signer is named, but only the receipt that --join writes is signed";
            faults.add(Error::new(Kind::Usage, message).hint("give --join, or no signer"));
        }
        let signers = faults.keep(self.signing.signers(environment, now)).unwrap_or_default();
        // Reports a signer that fails before the packages are read.
        if let Some(at) = now {
            signers.receipt_signer(at.time, now, &mut faults);
        }
        check_existing(&self.paths, "the paths to verify", &mut faults);
        let given = self.against.iter().filter(|input| input.address.is_none());
        check_existing(given, "the artifacts of --against", &mut faults);
        let extent = if self.partial { Extent::Part } else { Extent::Whole };
        let Self { paths, installed, sysfs, against, strict, join, .. } = self;
        let trust = keys.zip(now).map(|(keys, now)| Trust { keys, at: now, strict });
        let trust = faults.into_settings_faults().settle(trust)?;
        let (mut binaries, mut wheels, mut artifacts) = (Vec::new(), Vec::new(), Vec::new());
        for input in against {
            let path = &input.path;
            if input.name.is_some() || input.address.is_some() {
                artifacts.push(input);
            } else if has_wheels(path)? || WheelName::is_one(path) {
                wheels.push(input.path);
            } else if !is_file(path)? || is_tarball(path) {
                artifacts.push(input);
            } else {
                binaries.push(input.path);
            }
        }
        let mut duplicates = Faults::default();
        let wheels = wheel::find(&wheels, &mut duplicates)?;
        duplicates.finish()?;
        let budget = Budget::new(Limits::of_machine());
        let options =
            Options { installed, against: None, binaries, wheels, extent, trust, budget, sysfs };
        Ok(VerifySettings { paths, options, artifacts, join, signers })
    }
}

fn has_wheels(path: &Path) -> Result<bool> {
    if !is_folder(path)? || artifact::is_artifact(path)? {
        return Ok(false);
    }
    for entry in list(path)? {
        if WheelName::is_one(&entry?.path()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Refuses paths that do not exist. Errors call them `what`.
fn check_existing<P: AsRef<Path>>(
    paths: impl IntoIterator<Item = P>,
    what: &str,
    faults: &mut Faults,
) {
    for path in paths {
        let path = path.as_ref();
        let found = fs::metadata(path).map_err(|e| Error::io(path, "inspect", e));
        faults.keep(found.context(|| format!("looking for {what}")));
    }
}

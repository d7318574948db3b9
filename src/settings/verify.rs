//! The settings of `verify`.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use rockpack_base::content::is_file;
use rockpack_base::error::{Error, Faults, Result, ResultExt};
use rockpack_base::formats::wheel::WheelName;

use super::environment::Environment;
use super::output_path::output_path;
use crate::files::new_file;
use crate::input::artifact;
use crate::verify::{Extent, FolderMeaning, PublicKeys, Trust};

/// The options of `verify`.
#[derive(Debug, Args)]
pub struct VerifyArguments {
    /// Packages, wheels, repositories, artifacts, prefixes or single files
    ///
    /// Folders of packages (with their packages.json, if there), of wheels, artifacts (folders, .tar.zst,
    /// .tar.xz), shards, installed prefixes, kernel archives, manifests, host binaries
    #[arg(required = true, value_name = "DIR|FILE")]
    paths: Vec<PathBuf>,
    /// Take every folder for an installed prefix, such as /opt/rocm-7.1
    #[arg(long, visible_alias = "prefix")]
    installed: bool,
    /// The packages named are a part of a set
    ///
    /// The checks that only the other packages could decide are left out, and named
    #[arg(long, conflicts_with = "join")]
    partial: bool,
    /// The artifacts or fat wheels that packages or wheels were made from
    ///
    /// Artifacts as for build, each fat wheel, or single host binaries with device code; may
    /// be given several times. What .tar.zst, .tar.xz and wheels hold is kept in TMPDIR meanwhile,
    /// somewhat larger than they are
    #[arg(long, value_name = "ARTIFACTS")]
    against: Vec<PathBuf>,
    /// Public key that has to have signed
    ///
    /// The indexes of repositories must be signed by one of the keys, and packages that are signed,
    /// too; may be given several times
    #[arg(long, value_name = "FILE")]
    key: Vec<PathBuf>,
    /// Write the packages.json of the whole set here
    ///
    /// If parts of it were named and no check fails: with the packages of all parts it is what one
    /// build of the set writes
    #[arg(long, value_name = "FILE", value_parser = output_path())]
    join: Option<PathBuf>,
}

/// The things to verify, and what they are held against.
#[derive(Debug)]
pub struct VerifySettings {
    /// The things to check.
    pub paths: Vec<PathBuf>,
    /// The meaning of folders.
    pub folders: FolderMeaning,
    /// How much of the package set is named.
    pub extent: Extent,
    /// Artifacts that packages were made from.
    pub artifacts: Vec<PathBuf>,
    /// Host binaries with device code that packages were made from.
    pub binaries: Vec<PathBuf>,
    /// Fat wheels that wheels were made from.
    pub wheels: Vec<PathBuf>,
    /// What repositories are trusted by.
    pub trust: Trust,
    /// The file of the joined set's receipt, if it is wanted.
    pub join: Option<PathBuf>,
}

impl VerifyArguments {
    /// Resolves the settings, whatever is to be checked. Faults of several settings are refused together.
    pub fn resolve(self, environment: &Environment) -> Result<VerifySettings> {
        let mut faults = Faults::default();
        let keys = faults.keep(PublicKeys::open(&self.key));
        let now = faults.keep(environment.now());
        if let Some(file) = &self.join {
            faults.keep(new_file::check_place(file));
        }
        refuse_absent(&self.paths, "what is to be verified", &mut faults);
        refuse_absent(&self.against, "the artifacts of --against", &mut faults);
        let folders =
            if self.installed { FolderMeaning::Prefixes } else { FolderMeaning::ByContent };
        let extent = if self.partial { Extent::Part } else { Extent::Whole };
        let (paths, join) = (self.paths, self.join);
        let trust = keys.zip(now).map(|(keys, now)| Trust { keys, at: now.moment() });
        let trust = faults.of_settings().settle(trust)?;
        let (mut binaries, mut wheels, mut artifacts) = (Vec::new(), Vec::new(), Vec::new());
        for path in self.against {
            if !is_file(&path)? || artifact::is_artifact(&path)? {
                artifacts.push(path);
            } else if WheelName::is_one(&path) {
                wheels.push(path);
            } else {
                binaries.push(path);
            }
        }
        Ok(VerifySettings { paths, folders, extent, artifacts, binaries, wheels, trust, join })
    }
}

/// Refuses paths of nothing, each meant to be `what`.
fn refuse_absent(paths: &[PathBuf], what: &str, faults: &mut Faults) {
    for path in paths {
        let found = fs::metadata(path).map_err(|e| Error::io(path, "inspect", e));
        faults.keep(found.context(|| format!("looking for {what}")));
    }
}

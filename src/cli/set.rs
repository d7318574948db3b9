//! The options that say which package set is meant, the same for every command that makes one.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::environment;
use crate::config::{Config, PackageList, Scheme};
use crate::error::{Error, Kind, Result};
use crate::package::Format;
use crate::run::threads;
use crate::{SetOptions, listing};

#[derive(Debug, Args)]
pub(super) struct SetArguments {
    /// A shard (folder of artifacts) or a folder of shards; may be given several times. An artifact
    /// is a folder, or a .tar.zst or .tar.xz, whose .sha256sum is checked if it is there
    #[arg(long, required = true, num_args = 1.., value_name = "DIR")]
    artifacts: Vec<PathBuf>,
    /// Packaging configuration (.json or .toml): primary shard, arch groups, validation rules for
    /// all or for single components, packages by module (README: table of keys)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// TheRock's package.json: which parts of which artifacts each package takes, what it depends
    /// on and says of itself, in place of the configuration's selectors and parts; with --scheme
    /// amdrocm the names are AMD's own
    #[arg(long, value_name = "FILE")]
    packages: Option<PathBuf>,
    /// What packages are called: rocm, rocm-versioned (minor versions side by side), amdrocm
    /// (AMD's own names, kernel packages per target), or a FILE.toml of your own (README: schemes)
    /// [default: rocm]
    #[arg(long, value_name = "NAME")]
    scheme: Option<String>,
    /// Kind of build, as a word in names and prefix, e.g. asan
    #[arg(long, value_name = "WORD")]
    variant: Option<String>,
    /// Upstream version, e.g. 7.1.0
    #[arg(long)]
    version: Option<String>,
    /// Package release [default: 1]
    #[arg(long)]
    release: Option<String>,
    /// Install prefix [default: the scheme's, /opt/rocm-<major>.<minor>]
    #[arg(long, value_name = "DIR")]
    prefix: Option<String>,
    /// Distribution whose libraries the .deb packages depend on: debian-12, debian-13
    /// [default: debian-12, which debian-13 satisfies where it has the libraries at all]
    #[arg(long, value_name = "NAME")]
    distro: Option<String>,
    /// Package formats
    #[arg(long, value_delimiter = ',', default_value = "deb,rpm", value_name = "FORMAT")]
    format: Vec<FormatArgument>,
    /// Only these artifacts (blas), components (blas_lib) or packages (rocm-blas); the set then
    /// holds nothing but them
    #[arg(long, num_args = 1.., value_name = "COMPONENT")]
    only: Vec<String>,
    /// Earlier set that this one updates: a packages.json, a plan (JSON) or a folder of packages; may
    /// be given several times. Paths that were in another package there are taken over cleanly
    #[arg(long, num_args = 1.., value_name = "SET")]
    since: Vec<PathBuf>,
    /// Number of threads; the packages do not depend on it [default: all cores]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Turn warnings into errors
    #[arg(long)]
    strict: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatArgument {
    Deb,
    Rpm,
}

impl SetArguments {
    /// What is asked for, with the configuration read.
    pub fn options(self) -> Result<SetOptions> {
        let config = match &self.config {
            Some(path) => Config::open(path)?,
            None => Config::default(),
        };
        let jobs = match self.jobs {
            Some(jobs) => usize::from(jobs),
            None => threads::count(),
        };
        let read_all = || self.since.iter().map(|path| listing::read(path)).collect();
        let since: Vec<_> = threads::with(jobs, read_all)?;
        let mut formats: Vec<Format> = self.format.into_iter().map(Format::from).collect();
        formats.sort();
        formats.dedup();
        Ok(SetOptions {
            artifacts: self.artifacts,
            config,
            packages: self.packages.as_deref().map(PackageList::open).transpose()?,
            scheme: self.scheme.as_deref().map(scheme).transpose()?,
            variant: self.variant,
            version: self.version,
            release: self.release,
            prefix: self.prefix,
            distro: self.distro,
            formats,
            only: self.only,
            since,
            jobs,
            strict: self.strict,
            source_date_epoch: environment::source_date_epoch()?,
        })
    }
}

/// A shipped scheme by its name, or one of the user's own.
fn scheme(name: &str) -> Result<Scheme> {
    if name.ends_with(".toml") {
        return Scheme::open(Path::new(name));
    }
    let usage = |error: Error| {
        let hint = error.hint_text().unwrap_or_default();
        Error::new(Kind::Usage, error.message()).structure("--scheme").hint(hint)
    };
    Scheme::shipped(name).map_err(usage)
}

impl From<FormatArgument> for Format {
    fn from(argument: FormatArgument) -> Self {
        match argument {
            FormatArgument::Deb => Format::Deb,
            FormatArgument::Rpm => Format::Rpm,
        }
    }
}

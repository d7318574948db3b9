//! `rockpack build`: artifacts in, packages out.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::progress::Terminal;
use super::{Outcome, environment, terminal};
use crate::config::Config;
use crate::emit::Compression;
use crate::error::Result;
use crate::plan::package::Format;
use crate::{BuildOptions, render};

/// Build the packages of one or more shards of artifacts.
///
/// Writes the packages and, last, packages.json (what each package holds and where every code
/// object of the input went) into OUT, in place of the set that an earlier build wrote there: its
/// packages that are not in the new set are removed and named. SOURCE_DATE_EPOCH stamps headers and changelogs.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// A shard (folder of artifacts) or a folder of shards; may be given several times. An artifact
    /// is a folder, or a .tar.zst or .tar.xz, whose .sha256sum is checked if it is there
    #[arg(long, required = true, num_args = 1.., value_name = "DIR")]
    artifacts: Vec<PathBuf>,
    /// Packaging configuration (.json or .toml): primary shard, arch groups, validation rules for
    /// all or for single components, packages by module (README: table of keys)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Folder for the packages; created if missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Upstream version, e.g. 7.1.0
    #[arg(long)]
    version: Option<String>,
    /// Package release [default: 1]
    #[arg(long)]
    release: Option<String>,
    /// Install prefix [default: /opt/rocm-<major>.<minor>]
    #[arg(long, value_name = "DIR")]
    prefix: Option<String>,
    /// Package formats to write
    #[arg(long, value_delimiter = ',', default_value = "deb,rpm", value_name = "FORMAT")]
    format: Vec<FormatArgument>,
    /// Build only these artifacts (blas), components (blas_lib) or packages (rocm-blas); OUT then
    /// holds nothing but them
    #[arg(long, num_args = 1.., value_name = "COMPONENT")]
    only: Vec<String>,
    /// Compressor of the package payloads
    #[arg(long, default_value = "zstd")]
    compression: CompressionArgument,
    /// Number of threads; the packages do not depend on it [default: all cores]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Turn warnings into errors
    #[arg(long)]
    strict: bool,
    /// Print the receipt, and as `removed` the packages of an earlier set that are gone, as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatArgument {
    Deb,
    Rpm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CompressionArgument {
    /// zstd -9 with long-distance matching, window 27
    Zstd,
    /// xz -6, for package managers that cannot read zstd
    Xz,
}

pub(super) fn run(arguments: Arguments) -> Result<Outcome> {
    let json = arguments.json;
    let options = options(arguments)?;
    let built = crate::build(&options, &Terminal::new())?;
    match json {
        true => terminal::print_json(&built)?,
        false => terminal::print(&render::build_text(&built.receipt, &built.removed))?,
    }
    Ok(Outcome::Done)
}

fn options(arguments: Arguments) -> Result<BuildOptions> {
    let config = match &arguments.config {
        Some(path) => Config::open(path)?,
        None => Config::default(),
    };
    let mut formats: Vec<Format> = arguments.format.into_iter().map(Format::from).collect();
    formats.sort();
    formats.dedup();
    Ok(BuildOptions {
        artifacts: arguments.artifacts,
        config,
        out: arguments.out,
        version: arguments.version,
        release: arguments.release,
        prefix: arguments.prefix,
        formats,
        only: arguments.only,
        compression: match arguments.compression {
            CompressionArgument::Zstd => Compression::default(),
            CompressionArgument::Xz => Compression::Xz { preset: 6 },
        },
        jobs: match arguments.jobs {
            Some(jobs) => usize::from(jobs),
            None => std::thread::available_parallelism().map_or(1, usize::from),
        },
        strict: arguments.strict,
        source_date_epoch: environment::source_date_epoch()?,
    })
}

impl From<FormatArgument> for Format {
    fn from(argument: FormatArgument) -> Self {
        match argument {
            FormatArgument::Deb => Format::Deb,
            FormatArgument::Rpm => Format::Rpm,
        }
    }
}

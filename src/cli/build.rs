//! `rockpack build`: artifacts in, packages out.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::memory::parse_size;
use super::progress::Terminal;
use super::repo::Publication;
use super::set::SetArguments;
use super::signing::SigningArguments;
use super::{Outcome, terminal};
use crate::error::Result;
use crate::formats::compression::Method;
use crate::policy::{Policy, Preset};
use crate::receipt::Part;
use crate::repo::{Changes, Published};
use crate::{BuildOptions, Built, CacheOptions, render};

/// Build the packages of one or more shards of artifacts.
///
/// Writes the packages and, last, packages.json (what each package holds and where every code
/// object of the input went) into OUT, in place of the set that an earlier build wrote there: its
/// packages that are not in the new set are removed and named. SOURCE_DATE_EPOCH
/// is the time of headers, changelogs, signatures, SPDX documents and the indexes of --repo.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    set: SetArguments,
    /// Folder for the packages; created if missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Build one part of the set, of as many as the number behind the stroke; `plan --matrix` lists
    /// them. OUT then gets packages-I-of-N.json in place of packages.json, so that all parts fit
    /// into one folder; `verify` joins them
    #[arg(long, value_name = "I/N")]
    partition: Option<Part>,
    /// Keep what is compressed in this folder, and take from it what an earlier build compressed:
    /// with another version below the same prefix, other dependencies, scripts or descriptions
    /// nothing is compressed again but the host packages and metapackages of .deb, whose changelog
    /// changes. The packages are the same, byte for
    /// byte. Several builds may use one cache at the same time; whoever may write to it decides what
    /// is in the packages
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Bytes that the cache may take, with K, M, G or T behind the number for powers of 1024; what
    /// was not used for the longest time goes first
    #[arg(long, value_name = "BYTES", requires = "cache", default_value = "32G", value_parser = parse_size)]
    cache_size: u64,
    /// Write packages.spdx.json, too: an SPDX 2.3 document with every package and file of the set,
    /// their digests, and the artifacts that they were made from. A part of a set has one of its own,
    /// packages-I-of-N.spdx.json
    #[arg(long)]
    sbom: bool,
    #[command(flatten, next_help_heading = "Cost")]
    cost: CostArguments,
    #[command(flatten, next_help_heading = "Signing")]
    signing: SigningArguments,
    /// Print the receipt, and as `removed` the packages of an earlier set that are gone, as JSON
    #[arg(long)]
    json: bool,
    /// Publish the packages in this repository as `rockpack repo` does, without reading them again:
    /// they become hard links to those in OUT where that is possible
    #[arg(long, value_name = "REPO", help_heading = "Repository")]
    repo: Option<PathBuf>,
    #[command(flatten, next_help_heading = "Repository")]
    publication: Publication,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CompressionArgument {
    /// zstd with long-distance matching, window 27
    Zstd,
    /// xz, for package managers that cannot read zstd
    Xz,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PresetArgument {
    /// zstd -3, xz -1: three quarters of the time, 7 % larger
    Fast,
    /// zstd -9, xz -6
    Balanced,
    /// zstd -19, xz -7: smaller, in many times the time
    Small,
}

/// How hard to compress, and in how much memory.
#[derive(Debug, Args)]
struct CostArguments {
    /// Compressor of the package payloads [default: the best that the distribution can read]
    #[arg(long)]
    compression: Option<CompressionArgument>,
    /// Levels of kernel archives and payloads
    #[arg(long, default_value = "balanced")]
    preset: PresetArgument,
    /// zstd level of the code objects in kernel archives, 1 to 22 [default: the preset's]
    #[arg(long, value_name = "LEVEL")]
    archive_level: Option<i32>,
    /// Level of the payloads, 1 to 19 for zstd and 0 to 9 for xz [default: the preset's]
    #[arg(long, value_name = "LEVEL")]
    payload_level: Option<u32>,
    /// Memory to keep to, e.g. 4G; the packages do not depend on it. With less there are fewer
    /// threads, and more in nameless files beside OUT [default: a quarter of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory: Option<u64>,
}

impl CostArguments {
    fn policy(&self) -> Policy {
        Policy {
            method: self.compression.map(|compression| match compression {
                CompressionArgument::Zstd => Method::Zstd,
                CompressionArgument::Xz => Method::Xz,
            }),
            preset: match self.preset {
                PresetArgument::Fast => Preset::Fast,
                PresetArgument::Balanced => Preset::Balanced,
                PresetArgument::Small => Preset::Small,
            },
            archive_level: self.archive_level,
            payload_level: self.payload_level,
            memory: self.memory,
        }
    }
}

pub(super) fn run(arguments: Arguments, progress: &Terminal) -> Result<Outcome> {
    let json = arguments.json;
    let options = BuildOptions {
        set: arguments.set.options()?,
        out: arguments.out,
        policy: arguments.cost.policy(),
        part: arguments.partition,
        cache: arguments.cache.map(|folder| CacheOptions { folder, limit: arguments.cache_size }),
        signer: arguments.signing.signer()?,
        sbom: arguments.sbom,
        signs_indexes: arguments.repo.is_some(),
    };
    let (built, published) = match arguments.repo {
        None => {
            arguments.publication.refuse_if_given()?;
            (crate::build(&options, progress)?, None)
        }
        Some(repo) => {
            let (built, published) = publish(&options, progress, arguments.publication, repo)?;
            (built, Some(published))
        }
    };
    progress.summary();
    match json {
        true => terminal::print_json(&Printed { built: &built, published: published.as_ref() })?,
        false => {
            let text = render::build_text(&built.receipt, &built.removed);
            let more = published.as_ref().map(render::published_text).unwrap_or_default();
            terminal::print(&(text + &more))?;
        }
    }
    Ok(Outcome::Done)
}

#[derive(Serialize)]
struct Printed<'a> {
    #[serde(flatten)]
    built: &'a Built,
    #[serde(skip_serializing_if = "Option::is_none")]
    published: Option<&'a Published>,
}

fn publish(
    options: &BuildOptions,
    progress: &Terminal,
    publication: Publication,
    out: PathBuf,
) -> Result<(Built, Published)> {
    let signer = publication.index_signer(options.signer.as_ref())?;
    let mut repo = publication.options(Vec::new(), out, Changes::default())?;
    repo.signer = signer.as_deref();
    crate::build_and_publish(options, repo, progress)
}

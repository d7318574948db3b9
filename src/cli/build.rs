//! `rockpack build`: artifacts in, packages out.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::progress::Terminal;
use super::repo::Publication;
use super::set::SetArguments;
use super::signing::SigningArguments;
use super::{Outcome, terminal};
use crate::emit::Compression;
use crate::error::Result;
use crate::repo::{Changes, Published};
use crate::{BuildOptions, Built, render};

/// Build the packages of one or more shards of artifacts.
///
/// Writes the packages and, last, packages.json (what each package holds and where every code
/// object of the input went) into OUT, in place of the set that an earlier build wrote there: its
/// packages that are not in the new set are removed and named. SOURCE_DATE_EPOCH stamps headers and changelogs.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    set: SetArguments,
    /// Folder for the packages; created if missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Compressor of the package payloads [default: the best that the distribution can read]
    #[arg(long)]
    compression: Option<CompressionArgument>,
    #[command(flatten)]
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
    /// zstd -9 with long-distance matching, window 27
    Zstd,
    /// xz -6, for package managers that cannot read zstd
    Xz,
}

pub(super) fn run(arguments: Arguments) -> Result<Outcome> {
    let json = arguments.json;
    let options = BuildOptions {
        set: arguments.set.options()?,
        out: arguments.out,
        compression: arguments.compression.map(|compression| match compression {
            CompressionArgument::Zstd => Compression::default(),
            CompressionArgument::Xz => Compression::XZ,
        }),
        signer: arguments.signing.signer()?,
        signs_indexes: arguments.repo.is_some(),
    };
    let (built, published) = match arguments.repo {
        None => {
            arguments.publication.refuse_if_given()?;
            (crate::build(&options, &Terminal::new())?, None)
        }
        Some(repo) => {
            let (built, published) = publish(&options, arguments.publication, repo)?;
            (built, Some(published))
        }
    };
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
    publication: Publication,
    out: PathBuf,
) -> Result<(Built, Published)> {
    let signer = publication.index_signer(options.signer.as_ref())?;
    let mut repo = publication.options(Vec::new(), out, Changes::default())?;
    repo.signer = signer.as_deref();
    crate::build_and_publish(options, repo, &Terminal::new())
}

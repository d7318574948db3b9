//! `rockpack build`: artifacts in, packages out.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::progress::Terminal;
use super::set::SetArguments;
use super::signing::SigningArguments;
use super::{Outcome, terminal};
use crate::emit::Compression;
use crate::error::Result;
use crate::{BuildOptions, render};

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
    /// Compressor of the package payloads
    #[arg(long, default_value = "zstd")]
    compression: CompressionArgument,
    #[command(flatten)]
    signing: SigningArguments,
    /// Print the receipt, and as `removed` the packages of an earlier set that are gone, as JSON
    #[arg(long)]
    json: bool,
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
        compression: match arguments.compression {
            CompressionArgument::Zstd => Compression::default(),
            CompressionArgument::Xz => Compression::Xz { preset: 6 },
        },
        signer: arguments.signing.signer()?,
    };
    let built = crate::build(&options, &Terminal::new())?;
    match json {
        true => terminal::print_json(&built)?,
        false => terminal::print(&render::build_text(&built.receipt, &built.removed))?,
    }
    Ok(Outcome::Done)
}

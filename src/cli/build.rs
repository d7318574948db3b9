//! `rockpack build`: artifacts in, packages out.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};

use super::progress::Terminal;
use super::set::SetArguments;
use super::{Outcome, terminal};
use crate::emit::Compression;
use crate::error::Result;
use crate::signing::{OpenPgpKey, Passphrase, Signer};
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
    /// OpenPGP secret key (armored or binary, RSA or Ed25519) that signs the headers of .rpm
    /// packages; its passphrase comes from --sign-passphrase-file or the environment variable
    /// ROCKPACK_SIGN_PASSPHRASE
    #[arg(long, value_name = "FILE")]
    sign_key: Option<PathBuf>,
    /// File whose first line is the passphrase of --sign-key
    #[arg(long, value_name = "FILE", requires = "sign_key")]
    sign_passphrase_file: Option<PathBuf>,
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
    let signer = signer(arguments.sign_key.as_deref(), arguments.sign_passphrase_file.as_deref())?;
    let options = BuildOptions {
        signer,
        set: arguments.set.options()?,
        signer,
        out: arguments.out,
        compression: match arguments.compression {
            CompressionArgument::Zstd => Compression::default(),
            CompressionArgument::Xz => Compression::Xz { preset: 6 },
        },
    };
    let built = crate::build(&options, &Terminal::new())?;
    match json {
        true => terminal::print_json(&built)?,
        false => terminal::print(&render::build_text(&built.receipt, &built.removed))?,
    }
    Ok(Outcome::Done)
}

/// The environment variable with the passphrase of the signing key.
const PASSPHRASE: &str = "ROCKPACK_SIGN_PASSPHRASE";

fn signer(key: Option<&Path>, passphrase: Option<&Path>) -> Result<Option<Arc<dyn Signer>>> {
    let Some(key) = key else {
        return Ok(None);
    };
    let passphrase = match passphrase {
        Some(file) => Passphrase::read(file)?,
        None => std::env::var_os(PASSPHRASE)
            .map(|text| Passphrase::new(text.into_encoded_bytes()))
            .unwrap_or_default(),
    };
    let signer: Arc<dyn Signer> = Arc::new(OpenPgpKey::open(key, &passphrase)?);
    Ok(Some(signer))
}

//! `rockpack wheel`: fat wheels in, host wheels and device wheels out.

use clap::Args;
use rockpack_core::error::{Result, printable};

use super::Outcome;
use super::progress::Terminal;
use crate::cli::render;
use crate::pipeline;
use crate::settings::{Environment, WheelArguments};
use rockpack_report::Progress;
use rockpack_report::words::counted;

/// Split Python wheels into a host wheel and one device wheel per architecture or group.
///
/// A host wheel has the name, version and tags of its input, all of its files except device code, and an
/// extra for each group: `pip install "x[device-gfx1100]"` installs it with the device wheel for these GPUs,
/// which is tied to exactly this version. wheels.json lists the content of each wheel and the place of every
/// code object; a signing key signs it (wheels.json.asc). A wheel that was split, or of which nothing goes to device wheels, is copied unchanged. Wheels
/// that an earlier run wrote into DIR are removed when the new ones are complete. SOURCE_DATE_EPOCH sets the
/// time of all members.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    wheel: WheelArguments,
    /// Print the receipt as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments, progress: &Terminal) -> Result<Outcome> {
    let exposed = arguments.wheel.signing.exposed();
    let settings = arguments.wheel.resolve(&Environment::of_process())?;
    exposed.iter().for_each(|finding| progress.warn(finding));
    let made = pipeline::split_wheels(&settings, progress)?;
    progress.summary();
    progress.findings(&made.findings);
    progress.print_result(arguments.json, &made, || render::wheels_text(&made))?;
    let out = printable(&settings.out.to_string_lossy()).into_owned();
    let count = made.receipt.wheels.len() as u64;
    progress.note(&format!("{} in {out}", counted(count, "wheel")));
    Ok(Outcome::Done)
}

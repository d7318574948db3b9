//! `rockpack recombine`: the artifacts of all shards in, artifacts per arch group out.

use clap::Args;
use rockpack_core::error::{Result, printable};
use rockpack_core::run::threads;

use super::Outcome;
use super::progress::Terminal;
use crate::cli::render::{self, DirectoriesReport};
use crate::settings::RecombineArguments;
use rockpack_emit::directories;

/// Join shards into {component}_generic and {component}_{group}.
///
/// The shards may be split already or not. Host files are the primary shard's, device code comes from all;
/// the groups are the configuration's. Other artifacts of the same components in the output folder are
/// removed and listed.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    recombine: RecombineArguments,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments, progress: &Terminal) -> Result<Outcome> {
    let options = arguments.recombine.resolve()?;
    let out = printable(&options.out.to_string_lossy()).into_owned();
    let report =
        threads::with(options.budget.threads(), || directories::recombine(&options, progress))?;
    progress.warnings(&report.findings);
    progress.print_result(arguments.json, &DirectoriesReport::of_recombine(&report), || {
        let text = render::directories_text(&report.artifacts, &report.removed);
        let count = report.artifacts.len();
        format!("{text}Recombining complete: {count} artifacts in {out}\n")
    })?;
    Ok(Outcome::Done)
}

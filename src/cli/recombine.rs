//! `rockpack recombine`: the artifacts of all shards in, artifacts per arch group out.

use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args};
use rockpack_base::error::{Faults, Result, printable};
use rockpack_base::run::threads;

use super::Outcome;
use super::progress::Terminal;
use super::written::WrittenArguments;
use crate::cli::render::{self, DirectoriesReport};
use crate::config::Config;
use crate::emit::directories::{self, RecombineOptions};
use crate::settings::output_path;

/// Join shards into {component}_generic and {component}_{group}.
///
/// The shards may be split already or not. Host files are the primary shard's, device code comes
/// from all; the groups are the configuration's. Other artifacts of the same components that lie in
/// the output folder are removed and named.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("input").required(true))]
pub(super) struct Arguments {
    /// A folder of shards
    #[arg(long, value_name = "DIR", group = "input")]
    input_shards_dir: Option<PathBuf>,
    /// Shards, or folders of shards; may be given several times
    #[arg(long, num_args = 1.., value_name = "DIR", group = "input")]
    artifacts: Vec<PathBuf>,
    /// Packaging configuration: primary shard, architecture groups, validation (.json or .toml)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Folder for the artifacts; created if missing
    #[arg(long, value_name = "DIR", value_parser = output_path())]
    output_dir: PathBuf,
    #[command(flatten)]
    written: WrittenArguments,
}

pub(super) fn run(arguments: Arguments, progress: &Terminal) -> Result<Outcome> {
    let Arguments { input_shards_dir, artifacts, config, output_dir, written } = arguments;
    let artifacts = input_shards_dir.into_iter().chain(artifacts).collect();
    let options = options(artifacts, config.as_deref(), output_dir, &written)?;
    let out = printable(&options.out.to_string_lossy()).into_owned();
    let work = || directories::recombine(&options, progress);
    let report = threads::with(options.budget.threads(), work)?;
    progress.warnings(&report.findings);
    if written.json {
        progress.print_json(&DirectoriesReport::of_recombine(&report))?;
        return Ok(Outcome::Done);
    }
    let text = render::directories_text(&report.artifacts, &report.removed);
    let count = report.artifacts.len();
    progress.print(&format!("{text}Recombining complete: {count} artifacts in {out}\n"))?;
    Ok(Outcome::Done)
}

/// All that is wrong with the options, whatever the artifacts are, is refused together.
fn options(
    artifacts: Vec<PathBuf>,
    config: Option<&Path>,
    out: PathBuf,
    written: &WrittenArguments,
) -> Result<RecombineOptions> {
    let mut faults = Faults::default();
    let config = faults.keep(config.map_or_else(Config::none, Config::open));
    faults.keep(directories::check_ahead(&artifacts, &out));
    let budget = written.memory.budget();
    let options = config.map(|config| RecombineOptions { artifacts, config, out, budget });
    faults.of_settings().settle(options)
}

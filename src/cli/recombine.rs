//! `rockpack recombine`: the artifacts of all shards in, artifacts per arch group out.

use std::path::PathBuf;

use clap::{ArgGroup, Args};

use super::progress::Terminal;
use super::written::WrittenArguments;
use super::{Outcome, terminal};
use crate::cli::render::{self, DirectoriesReport};
use crate::config::Config;
use crate::emit::directories::{self, RecombineOptions};
use crate::error::{Result, printable};

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
    #[arg(long, value_name = "DIR")]
    output_dir: PathBuf,
    #[command(flatten)]
    written: WrittenArguments,
}

pub(super) fn run(arguments: Arguments, progress: &Terminal) -> Result<Outcome> {
    let config = match &arguments.config {
        Some(path) => Config::open(path)?,
        None => Config::default(),
    };
    let artifacts = arguments.input_shards_dir.into_iter().chain(arguments.artifacts).collect();
    let out = printable(&arguments.output_dir.to_string_lossy()).into_owned();
    let report = arguments.written.memory.within(|budget| {
        let options = RecombineOptions { artifacts, config, out: arguments.output_dir, budget };
        directories::recombine(&options, progress)
    })?;
    if arguments.written.json {
        terminal::print_json(&DirectoriesReport::of_recombine(&report))?;
        return Ok(Outcome::Done);
    }
    let shown = arguments.written.shown(&report.findings);
    let text = render::directories_text(&report.artifacts, &report.removed, &shown);
    let count = report.artifacts.len();
    terminal::print(&format!("{text}Recombining complete: {count} artifacts in {out}\n"))?;
    Ok(Outcome::Done)
}

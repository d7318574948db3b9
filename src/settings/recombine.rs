//! The settings of `recombine`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use rockpack_core::error::{Faults, Result};

use super::memory::MemoryArguments;
use super::output_path::output_path;
use rockpack_emit::directories::{RecombineOptions, check_ahead};
use rockpack_plan::config::Config;

/// The options of `recombine`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("input").required(true))]
pub struct RecombineArguments {
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
    memory: MemoryArguments,
}

impl RecombineArguments {
    /// Resolves the settings without reading artifacts. Reports the faults of all settings together.
    pub fn resolve(self) -> Result<RecombineOptions> {
        let artifacts = self.input_shards_dir.into_iter().chain(self.artifacts).collect::<Vec<_>>();
        let (out, budget) = (self.output_dir, self.memory.budget());
        let mut faults = Faults::default();
        let config = Config::of(self.config.as_deref(), &mut faults);
        faults.keep(check_ahead(&artifacts, &out));
        let options = config.map(|config| RecombineOptions { artifacts, config, out, budget });
        faults.of_settings().settle(options)
    }
}

//! The settings of `split`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::{ArgGroup, Args};
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::gfx::BaseArch;

use super::memory::MemoryArguments;
use super::output_path::output_path;
use super::targets::in_any_spelling;
use rockpack_emit::directories::{SplitInput, SplitOptions};
use rockpack_plan::config::check_glob;

/// The options of `split`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("input").required(true))]
pub struct SplitArguments {
    /// One artifact: a folder, or a .tar.zst or .tar.xz
    #[arg(long, visible_alias = "input-dir", value_name = "DIR", group = "input")]
    artifact_dir: Option<PathBuf>,
    /// All artifacts of a shard
    #[arg(long, value_name = "DIR", group = "input")]
    batch_artifact_parent_dir: Option<PathBuf>,
    /// Shards, or folders of shards: each gets a folder of its own in the output
    #[arg(long, num_args = 1.., value_name = "DIR", group = "input")]
    artifacts: Vec<PathBuf>,
    /// Folder for the artifacts; created if missing
    #[arg(long, value_name = "DIR", value_parser = output_path())]
    output_dir: PathBuf,
    /// {name}_{kind} of the one artifact [default: from the name of its folder]
    #[arg(
        long,
        visible_alias = "component-name",
        value_name = "NAME",
        conflicts_with_all = ["batch_artifact_parent_dir", "artifacts"]
    )]
    artifact_prefix: Option<String>,
    /// Archs to keep, separated by spaces, commas or semicolons [default: all]
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "ARCH")]
    gpu_targets: Vec<String>,
    /// Globs of files for other machines that stay unchanged
    ///
    /// Files for another machine than x86-64, by their paths below the prefix, like `other_machines` in a
    /// configuration; other such files are refused
    #[arg(long, num_args = 1.., value_name = "GLOB")]
    other_machines: Vec<String>,
    #[command(flatten)]
    memory: MemoryArguments,
    /// Accepted and not used: kernel databases are always split
    #[arg(long, num_args = 0.., value_name = "NAME")]
    split_databases: Option<Vec<String>>,
    /// Accepted and not used: nothing is unpacked on the way
    #[arg(long, value_name = "DIR")]
    tmp_dir: Option<PathBuf>,
    /// Accepted and not used: bundles are read without other tools
    #[arg(long, value_name = "PATH")]
    clang_offload_bundler: Option<PathBuf>,
}

impl SplitArguments {
    /// The options that were given but have no effect, each with the reason.
    pub fn unused(&self) -> impl Iterator<Item = &'static str> + use<> {
        let unused = [
            (
                self.split_databases.is_some(),
                "--split-databases: kernel databases are always split",
            ),
            (self.tmp_dir.is_some(), "--tmp-dir: nothing is unpacked on the way"),
            (
                self.clang_offload_bundler.is_some(),
                "--clang-offload-bundler: no other tool is needed",
            ),
        ];
        unused.into_iter().filter_map(|(is_given, why)| is_given.then_some(why))
    }

    /// Resolves the settings without reading artifacts. Reports the faults of all settings together.
    pub fn resolve(self) -> Result<SplitOptions> {
        let input = match (self.artifact_dir, self.batch_artifact_parent_dir) {
            (Some(folder), _) => SplitInput::Artifact { folder, component: self.artifact_prefix },
            (None, Some(folder)) => SplitInput::Shard(folder),
            (None, None) => SplitInput::Shards(self.artifacts),
        };
        let (out, other_machines) = (self.output_dir, self.other_machines);
        let mut faults = Faults::default();
        let targets = targets(&self.gpu_targets, &mut faults);
        for glob in &other_machines {
            faults.keep(check_glob(glob).map_err(|error| {
                let message = format!("--other-machines: {}", error.message());
                let hint = error.hint_text().unwrap_or_default();
                Error::new(Kind::Usage, message).hint(hint)
            }));
        }
        faults.keep(input.check_ahead(&out));
        let budget = self.memory.budget();
        let options = SplitOptions { input, out, targets, other_machines, budget };
        faults.of_settings().settle(Some(options))
    }
}

/// The archs of target IDs. Features are ignored, because one archive serves all feature variants of an arch.
fn targets(texts: &[String], faults: &mut Faults) -> BTreeSet<BaseArch> {
    let named =
        texts.iter().flat_map(|text| text.split([';', ' '])).filter(|text| !text.is_empty());
    let read = named.map(|text| in_any_spelling(text, "--gpu-targets"));
    read.filter_map(|target| faults.keep(target)).map(|target| target.base().clone()).collect()
}

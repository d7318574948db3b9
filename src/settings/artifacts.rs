//! The settings of `split`, `recombine` and `discover`, and GPU targets in options.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args};
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::gfx::{self, BaseArch, Target, TargetFault};
use rockpack_core::tree::TreePath;
use rockpack_emit::directories::{RecombineOptions, SplitInput, SplitOptions, check_ahead};
use rockpack_files::new_file;
use rockpack_plan::config::{Config, Syntax, arch_hint, check_glob};
use rockpack_split::input::tree::InputPath;

use super::{MemoryArguments, PrefixArgument, input_path, output_path};

/// Split artifacts into host code ({component}_generic) and device code ({component}_{arch}).
///
/// Artifacts that are already split are copied unchanged. Older artifacts of the same components in the output folder
/// are removed and listed. If a component fails, the others are still written, and the exit code is 2.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("input").required(true))]
pub struct SplitArguments {
    /// One artifact: a folder, or a .tar.zst or .tar.xz
    #[arg(long, visible_alias = "input-dir", value_name = "DIR", group = "input")]
    artifact_dir: Option<PathBuf>,
    /// All artifacts of a shard
    #[arg(long, value_name = "DIR", group = "input")]
    batch_artifact_parent_dir: Option<PathBuf>,
    /// Install trees, shards, or folders of shards; each shard gets its own folder in the output
    #[arg(value_name = "[NAME=]PATH", value_parser = input_path(), group = "input")]
    paths: Vec<InputPath>,
    /// Alternative to PATH; may be given several times
    #[arg(long, num_args = 1.., value_name = "PATH", value_parser = input_path(), group = "input")]
    artifacts: Vec<InputPath>,
    /// Folder for the artifacts; created if missing
    #[arg(long, value_name = "DIR", value_parser = output_path())]
    output_dir: PathBuf,
    /// Name of the artifact, as {name}_{kind} [default: from the name of its folder]
    #[arg(
        long,
        visible_alias = "component-name",
        value_name = "NAME",
        conflicts_with_all = ["batch_artifact_parent_dir", "artifacts", "paths"]
    )]
    artifact_prefix: Option<String>,
    /// Archs to keep, separated by spaces, commas or semicolons [default: all]
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "ARCH")]
    gpu_targets: Vec<String>,
    /// Globs of files for other machines that stay unchanged
    ///
    /// Files for machines other than x86-64, by their paths below the prefix, like `other_machines` in a configuration.
    /// Without a match, such a file is an error
    #[arg(long, num_args = 1.., value_name = "GLOB")]
    other_machines: Vec<String>,
    #[command(flatten)]
    prefix: PrefixArgument,
    #[command(flatten)]
    memory: MemoryArguments,
    /// Ignored: kernel databases are always split
    #[arg(long, num_args = 0.., value_name = "NAME")]
    split_databases: Option<Vec<String>>,
    /// Ignored: nothing is unpacked to disk
    #[arg(long, value_name = "DIR")]
    tmp_dir: Option<PathBuf>,
    /// Ignored: bundles are read without other tools
    #[arg(long, value_name = "PATH")]
    clang_offload_bundler: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

impl SplitArguments {
    /// The given options that have no effect, each with the reason.
    pub fn unused(&self) -> impl Iterator<Item = &'static str> + use<> {
        let Self { split_databases, tmp_dir, clang_offload_bundler: bundler, .. } = self;
        let unused = [
            (split_databases.is_some(), "--split-databases: kernel databases are always split"),
            (tmp_dir.is_some(), "--tmp-dir: nothing is unpacked to disk"),
            (bundler.is_some(), "--clang-offload-bundler: no other tool is needed"),
        ];
        unused.into_iter().filter_map(|(is_given, why)| is_given.then_some(why))
    }

    /// Resolves the settings without reading artifacts. Reports the faults of all settings together.
    pub fn resolve(self) -> Result<SplitOptions> {
        let input = match (self.artifact_dir, self.batch_artifact_parent_dir) {
            (Some(folder), _) => SplitInput::Artifact { folder, component: self.artifact_prefix },
            (None, Some(folder)) => SplitInput::Shard(folder),
            (None, None) => SplitInput::Shards([self.paths, self.artifacts].concat()),
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
        let prefix = self.prefix.prefix;
        let options = SplitOptions { input, out, targets, other_machines, prefix, budget };
        faults.into_settings_faults().settle(Some(options))
    }
}

/// The archs of target IDs in any spelling. Features are ignored, because one archive serves all feature variants of an
/// arch.
fn targets(texts: &[String], faults: &mut Faults) -> BTreeSet<BaseArch> {
    let named =
        texts.iter().flat_map(|text| text.split([';', ' '])).filter(|text| !text.is_empty());
    let read = named.map(|text| {
        plausible_target(text, Target::parse_spelling(text)).map_err(|(message, hint)| {
            Error::new(Kind::Usage, format!("--gpu-targets: {message}")).hint(hint)
        })
    });
    read.filter_map(|target| faults.keep(target)).map(|target| target.base().clone()).collect()
}

/// Join shards into {component}_generic and {component}_{group}.
///
/// Shards may be split or not. Host files come from the primary shard, device code from all shards; the configuration
/// defines the groups. Older artifacts of the same components in the output folder are removed and listed.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("input").required(true))]
pub struct RecombineArguments {
    /// A folder of shards
    #[arg(long, value_name = "DIR", group = "input")]
    input_shards_dir: Option<PathBuf>,
    /// Install trees, shards, or folders of shards; may be given several times
    #[arg(long, num_args = 1.., value_name = "PATH", value_parser = input_path(), group = "input")]
    artifacts: Vec<InputPath>,
    /// Packaging configuration: primary shard, architecture groups, validation (.json or .toml)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Folder for the artifacts; created if missing
    #[arg(long, value_name = "DIR", value_parser = output_path())]
    output_dir: PathBuf,
    #[command(flatten)]
    memory: MemoryArguments,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

impl RecombineArguments {
    /// Resolves the settings without reading artifacts. Reports the faults of all settings together.
    pub fn resolve(self) -> Result<RecombineOptions> {
        let shards = self.input_shards_dir.into_iter().map(InputPath::from);
        let artifacts: Vec<InputPath> = shards.chain(self.artifacts).collect();
        let (out, budget) = (self.output_dir, self.memory.budget());
        let mut faults = Faults::default();
        let config = Config::of(self.config.as_deref(), &mut faults);
        faults.keep(check_ahead(&artifacts, &out));
        let options = config.map(|config| RecombineOptions { artifacts, config, out, budget });
        faults.into_settings_faults().settle(options)
    }
}

/// Show which GPU targets are in which artifact, and propose a packaging configuration.
///
/// Counts the code objects of fat binaries and the files of kernel databases, by content. Lists archs that the compiler
/// only fell back to (gfx906 in every shard).
#[derive(Debug, Args)]
pub struct DiscoverArguments {
    /// Install trees, tarballs, libraries, or shards of artifacts
    #[arg(value_name = "[NAME=]PATH", value_parser = input_path(), required_unless_present = "artifacts")]
    paths: Vec<InputPath>,
    /// Alternative to PATH; may be given several times
    #[arg(long, num_args = 1.., value_name = "PATH", value_parser = input_path())]
    artifacts: Vec<InputPath>,
    #[command(flatten)]
    prefix: PrefixArgument,
    /// Propose a packaging configuration
    ///
    /// Writes it to FILE (.json or .toml), or as TOML to stdout, in place of the table. An existing file with other
    /// content is not replaced
    #[arg(long, num_args = 0..=1, value_name = "FILE", value_parser = output_path())]
    propose: Option<Option<PathBuf>>,
    /// Print JSON; with --propose it includes the proposal and its reasons
    #[arg(long)]
    pub json: bool,
}

/// The artifacts to look into, and the place of a proposal.
#[derive(Debug)]
pub struct DiscoverSettings {
    /// Shards, folders of shards, and install trees.
    pub artifacts: Vec<InputPath>,
    /// The install prefix to use, if an input has several.
    pub prefix: Option<TreePath>,
    /// `None` if no configuration is to be proposed.
    pub propose: Option<ProposalPlace>,
}

/// The place of a proposed configuration.
#[derive(Debug)]
pub enum ProposalPlace {
    Output,
    File {
        path: PathBuf,
        /// The syntax of its extension.
        syntax: Syntax,
    },
}

impl DiscoverArguments {
    /// Resolves the settings without reading artifacts. Reports the faults of all settings together.
    pub fn resolve(self) -> Result<DiscoverSettings> {
        let mut faults = Faults::default();
        let propose = match self.propose {
            None => None,
            Some(None) => Some(ProposalPlace::Output),
            Some(Some(path)) => {
                let syntax = faults.keep(syntax_of(&path));
                faults.keep(new_file::check_place(&path));
                syntax.map(|syntax| ProposalPlace::File { path, syntax })
            }
        };
        let artifacts = [self.paths, self.artifacts].concat();
        let prefix = self.prefix.prefix;
        faults.into_settings_faults().settle(Some(DiscoverSettings { artifacts, prefix, propose }))
    }
}

fn syntax_of(file: &Path) -> Result<Syntax> {
    match file.extension().and_then(|ending| ending.to_str()) {
        Some("json") => Ok(Syntax::Json),
        Some("toml") => Ok(Syntax::Toml),
        _ => {
            let error = Error::new(Kind::Usage, "is neither a .json nor a .toml file");
            let hint = "--propose takes the file to write; name the folders before it";
            Err(error.file(file).hint(hint))
        }
    }
}

/// Parses the target ID `text`, for the parser of the command line.
pub fn target_id(text: &str) -> Result<Target, String> {
    plausible_target(text, text.parse()).map_err(|(message, hint)| format!("{message}: {hint}"))
}

/// Accepts any plausible arch: options cannot declare archs that are newer than this version of rockpack. An error
/// is the fault and a hint.
fn plausible_target(
    text: &str,
    target: Result<Target, TargetFault>,
) -> Result<Target, (String, String)> {
    match target {
        Ok(target) if gfx::is_plausible(target.base()) => Ok(target),
        Ok(target) => {
            let arch = target.base();
            Err((format!("`{arch}` is not a GPU arch"), target_hint(arch.as_str())))
        }
        Err(fault) => Err((fault.to_string(), target_hint(text))),
    }
}

fn target_hint(word: &str) -> String {
    let meant = arch_hint(word).map(|meant| format!("{meant} "));
    meant.unwrap_or_default() + "give archs such as gfx1100 or gfx90a"
}

//! `rockpack split`: artifacts in, artifacts of host code and of each arch out.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::{ArgGroup, Args};
use rockpack_base::error::{Error, Faults, Kind, Result, printable};
use rockpack_base::gfx::BaseArch;
use rockpack_base::run::threads;

use super::Outcome;
use super::progress::Terminal;
use super::targets::in_any_spelling;
use super::written::WrittenArguments;
use crate::cli::render::{self, DirectoriesReport};
use crate::config::check_glob;
use crate::emit::directories::{self, SplitInput, SplitOptions, SplitReport};
use crate::report::Progress;
use crate::settings::output_path;

/// Split artifacts into host code ({component}_generic) and device code ({component}_{arch}).
///
/// Artifacts that are split already stay as they are. Other artifacts of the same components that
/// lie in the output folder are removed and named. A component that fails does not keep the others
/// from being written; the exit code is 2 then.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("input").required(true))]
pub(super) struct Arguments {
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
    /// Globs of files for other machines that stay as they are
    ///
    /// Files for another machine than x86-64, by their paths below the prefix, as `other_machines`
    /// of a configuration has them; other such files are refused
    #[arg(long, num_args = 1.., value_name = "GLOB")]
    other_machines: Vec<String>,
    #[command(flatten)]
    written: WrittenArguments,
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

pub(super) fn run(mut arguments: Arguments, progress: &Terminal) -> Result<Outcome> {
    note_unused(&arguments, progress);
    let written = std::mem::take(&mut arguments.written);
    let options = options(arguments, &written)?;
    let out = printable(&options.out.to_string_lossy()).into_owned();
    let work = || directories::split(&options, progress);
    let report = threads::with(options.budget.threads(), work)?;
    progress.warnings(&report.findings);
    let printed = if written.json {
        progress.print_json(&DirectoriesReport::of_split(&report))
    } else {
        progress.print(&render::directories_text(&report.artifacts, &report.removed))
    };
    finish(report, printed, written.json, progress, &out)
}

/// Fails with all failures, if there is one, that to print the result among them.
fn finish(
    report: SplitReport,
    printed: Result<()>,
    json: bool,
    progress: &Terminal,
    out: &str,
) -> Result<Outcome> {
    let (failed, written) = (report.failures.len(), report.artifacts.len());
    let failures = report.failures.into_iter().map(|(_, error)| error).chain(printed.err());
    match Error::gather(failures.collect()) {
        None if json => Ok(Outcome::Done),
        None => {
            progress.print(&format!("Splitting complete: {written} artifacts in {out}\n"))?;
            Ok(Outcome::Done)
        }
        Some(error) if failed == 0 => Err(error),
        Some(error) => {
            let components = if failed == 1 { "component" } else { "components" };
            let artifacts = if written == 1 { "artifact" } else { "artifacts" };
            progress.note(&format!(
                "{failed} {components} failed; {written} {artifacts} written to {out}"
            ));
            Err(error)
        }
    }
}

fn note_unused(arguments: &Arguments, progress: &Terminal) {
    let unused = [
        (
            arguments.split_databases.is_some(),
            "--split-databases: kernel databases are always split",
        ),
        (arguments.tmp_dir.is_some(), "--tmp-dir: nothing is unpacked on the way"),
        (
            arguments.clang_offload_bundler.is_some(),
            "--clang-offload-bundler: no other tool is needed",
        ),
    ];
    for (_, why) in unused.iter().filter(|(given, _)| *given) {
        progress.note(&format!("note: not used: {why}"));
    }
}

/// All that is wrong with the options, whatever the artifacts are, is refused together.
fn options(arguments: Arguments, written: &WrittenArguments) -> Result<SplitOptions> {
    let input = match (arguments.artifact_dir, arguments.batch_artifact_parent_dir) {
        (Some(folder), _) => SplitInput::Artifact { folder, component: arguments.artifact_prefix },
        (None, Some(folder)) => SplitInput::Shard(folder),
        (None, None) => SplitInput::Shards(arguments.artifacts),
    };
    let out = arguments.output_dir;
    let mut faults = Faults::default();
    let targets = targets(&arguments.gpu_targets, &mut faults);
    let other_machines = arguments.other_machines;
    for glob in &other_machines {
        faults.keep(check_glob(glob).map_err(|error| {
            let message = format!("--other-machines: {}", error.message());
            let hint = error.hint_text().unwrap_or_default();
            Error::new(Kind::Usage, message).hint(hint)
        }));
    }
    faults.keep(input.check_ahead(&out));
    let budget = written.memory.budget();
    let options = SplitOptions { input, out, targets, other_machines, budget };
    faults.of_settings().settle(Some(options))
}

/// The archs of target IDs: features are left out, since an arch has one archive for all of them.
fn targets(texts: &[String], faults: &mut Faults) -> BTreeSet<BaseArch> {
    let named =
        texts.iter().flat_map(|text| text.split([';', ' '])).filter(|text| !text.is_empty());
    let read = named.map(|text| in_any_spelling(text, "--gpu-targets"));
    read.filter_map(|target| faults.keep(target)).map(|target| target.base().clone()).collect()
}

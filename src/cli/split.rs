//! `rockpack split`: artifacts in, artifacts of host code and of each arch out.

use clap::Args;
use rockpack_core::error::{Error, Result, printable};
use rockpack_core::run::threads;

use super::Outcome;
use super::progress::Terminal;
use crate::cli::render::{self, DirectoriesReport};
use crate::settings::SplitArguments;
use rockpack_emit::directories::{self, SplitReport};
use rockpack_report::Progress;
use rockpack_report::words::counted;

/// Split artifacts into host code ({component}_generic) and device code ({component}_{arch}).
///
/// Artifacts that are split already are copied unchanged. Other artifacts of the same components in the
/// output folder are removed and listed. A component that fails does not stop the others from being written;
/// the exit code is 2 then.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    split: SplitArguments,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments, progress: &Terminal) -> Result<Outcome> {
    let Arguments { split, json } = arguments;
    split.unused().for_each(|why| progress.note(&format!("note: not used: {why}")));
    let options = split.resolve()?;
    let out = printable(&options.out.to_string_lossy()).into_owned();
    let report =
        threads::with(options.budget.threads(), || directories::split(&options, progress))?;
    progress.warnings(&report.findings);
    let printed = if json {
        progress.print_json(&DirectoriesReport::of_split(&report))
    } else {
        progress.print(&render::directories_text(&report.artifacts, &report.removed))
    };
    finish(report, printed, json, progress, &out)
}

/// Fails with all failures, if there are any, including that of printing the result.
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
            let (failed, written) = (counted(failed, "component"), counted(written, "artifact"));
            progress.note(&format!("{failed} failed; {written} written to {out}"));
            Err(error)
        }
    }
}

//! `rockpack verify`: finished output against the invariants.

use std::path::Path;

use clap::Args;
use rockpack_base::content::Content;
use rockpack_base::error::{Error, Kind, Result};
use rockpack_base::run::interrupt;

use super::progress::Terminal;
use super::{Outcome, memory};
use crate::cli::render;
use crate::files::new_file;
use crate::input::artifact::{self, ScanOptions};
use crate::settings::{Environment, VerifyArguments, VerifySettings};
use crate::verify::{self, Options, Report};

/// Check packages, Python wheels, repositories, artifacts, installed prefixes, kernel archives, manifests and
/// host binaries.
///
/// Packages are checked as one set, so it should be whole: a host package alone finds no archives. With
/// --partial, it need not be: only what the given packages show is checked. With --against, the packages must
/// have every file and code object of the artifacts, and no others. Of repositories (folders with dists/,
/// repodata/ or simple/), every index is compared with every package, and, with --key, with its signature.
/// Folders of parts that `build --partition` wrote are joined: all parts must be there and belong to one
/// plan. Artifacts (one, a shard, or a folder of shards) are checked by component: split ones have host code
/// in the generic artifact, and code of its arch in each other. A folder's kind is recognised by its
/// contents. Exits with 1 if a check fails.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    verify: VerifyArguments,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments, progress: &Terminal) -> Result<Outcome> {
    let settings = arguments.verify.resolve(&Environment::of_process())?;
    let VerifySettings { paths, folders, extent, artifacts, binaries, wheels, trust, join } =
        settings;
    let budget = memory::by_default();
    let scan = if artifacts.is_empty() {
        None
    } else {
        Some(artifact::scan(&artifacts, &ScanOptions::within(&budget))?)
    };
    let (against, binaries, wheels) = (scan.as_ref(), &binaries, &wheels);
    let options = Options { folders, against, binaries, wheels, extent, trust, budget };
    let report = verify::verify(&paths, &options, progress)?;
    // A file that was not read because of a signal is no problem of the package.
    interrupt::check()?;
    scan.map_or(Ok(()), |scan| scan.inputs.recheck())?;
    if let Some(file) = &join {
        write_joined(&report, file)?;
    }
    progress.recorded(&report.warnings);
    progress.problems(&report.problems);
    progress.print_result(arguments.json, &report, || render::verify_text(&report))?;
    Ok(if report.problems.is_empty() { Outcome::Done } else { Outcome::ChecksFailed })
}

/// Writes the receipt of the whole set, unless a check failed.
fn write_joined(report: &Report, file: &Path) -> Result<()> {
    let Some(joined) = &report.joined else {
        if !report.problems.is_empty() {
            return Ok(());
        }
        let error = Error::new(Kind::Usage, "no parts of a set are named, so none are joined");
        return Err(error.hint("name the folders that `build --partition` wrote"));
    };
    new_file::write_single(file, &Content::of_bytes(joined.receipt.to_bytes()?)).map(drop)
}

//! `rockpack verify`: finished packages against the invariants.

use std::path::PathBuf;

use clap::Args;

use super::progress::Terminal;
use super::{Outcome, terminal};
use crate::error::Result;
use crate::{artifact, report, verify};

/// Check finished packages: digests, contents, ownership, dependencies, and that every binary
/// finds its device code.
///
/// What is named is checked as one set, so it should be whole: a host package alone finds no
/// archives. With --against, every file and code object of the artifacts is looked for in the
/// packages, and nothing else may be in them. Exits with 1 if a check fails.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Folders of packages (with their packages.json, if there) or single packages
    #[arg(required = true, value_name = "DIR|PACKAGE")]
    paths: Vec<PathBuf>,
    /// The artifacts that the packages were made from, as for build; may be given several times.
    /// What .tar.zst and .tar.xz hold is kept in TMPDIR meanwhile, somewhat larger than they are
    #[arg(long, value_name = "ARTIFACTS")]
    against: Vec<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments) -> Result<Outcome> {
    let scan = match arguments.against.is_empty() {
        true => None,
        false => Some(artifact::scan(&arguments.against)?),
    };
    let report = verify::verify(&arguments.paths, scan.as_ref(), &Terminal::new())?;
    scan.map_or(Ok(()), |scan| scan.inputs.recheck())?;
    match arguments.json {
        true => terminal::print_json(&report)?,
        false => terminal::print(&report::verify_text(&report))?,
    }
    Ok(if report.problems.is_empty() { Outcome::Done } else { Outcome::ChecksFailed })
}

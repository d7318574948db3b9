//! `rockpack verify`: finished output against the invariants.

use std::path::PathBuf;

use clap::Args;

use super::progress::Terminal;
use super::{Outcome, environment, terminal};
use crate::error::Result;
use crate::verify::{Folders, Keys, Options, Trust};
use crate::{artifact, render, verify};

/// Check packages, repositories, artifacts, installed prefixes, kernel archives, manifests and host
/// binaries.
///
/// Packages are checked as one set, so it should be whole: a host package alone finds no archives.
/// With --against, every file and code object of the artifacts is looked for in the packages, and
/// nothing else may be in them. Of repositories (folders with dists/ or repodata/), every index is
/// held against every package, and, with --key, against its signature. Artifacts (one, a shard, or a folder of shards) are checked by
/// component: split ones have host code in the generic artifact, and code of its arch in each
/// other. What a folder is, is told by what is in it. Exits with 1 if a check fails.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Packages, folders of packages (with their packages.json, if there), artifacts (folders,
    /// .tar.zst, .tar.xz), shards, installed prefixes, single files
    #[arg(required = true, value_name = "DIR|FILE")]
    paths: Vec<PathBuf>,
    /// Take every folder for an installed prefix, such as /opt/rocm-7.1
    #[arg(long)]
    prefix: bool,
    /// The artifacts that the packages were made from, as for build; may be given several times.
    /// What .tar.zst and .tar.xz hold is kept in TMPDIR meanwhile, somewhat larger than they are
    #[arg(long, value_name = "ARTIFACTS")]
    against: Vec<PathBuf>,
    /// Public keys: the indexes of repositories must be signed by one of them, and packages that
    /// are signed, too; may be given several times
    #[arg(long, value_name = "FILE")]
    key: Vec<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments) -> Result<Outcome> {
    let scan = match arguments.against.is_empty() {
        true => None,
        false => Some(artifact::scan(&arguments.against)?),
    };
    let folders = match arguments.prefix {
        true => Folders::Prefixes,
        false => Folders::ByContent,
    };
    let trust = Trust { keys: Keys::open(&arguments.key)?, now: environment::now()? };
    let options = Options { folders, against: scan.as_ref(), trust };
    let report = verify::verify(&arguments.paths, &options, &Terminal::new())?;
    scan.map_or(Ok(()), |scan| scan.inputs.recheck())?;
    match arguments.json {
        true => terminal::print_json(&report)?,
        false => terminal::print(&render::verify_text(&report))?,
    }
    Ok(if report.problems.is_empty() { Outcome::Done } else { Outcome::ChecksFailed })
}

//! `rockpack verify`: finished output against the invariants.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use rockpack_base::content::{Content, is_file};
use rockpack_base::error::{Error, Faults, Kind, Result, ResultExt};
use rockpack_base::run::interrupt;

use super::progress::Terminal;
use super::{Outcome, memory};
use crate::cli::render;
use crate::files::new_file;
use crate::input::artifact;
use crate::input::artifact::ScanOptions;
use crate::settings::{Environment, output_path};
use crate::verify;
use crate::verify::{Extent, FolderMeaning, Options, PublicKeys, Report, Trust};

/// Check packages, repositories, artifacts, installed prefixes, kernel archives, manifests and host
/// binaries.
///
/// Packages are checked as one set, so it should be whole: a host package alone finds no archives.
/// With --partial, it need not be: what the packages that are named show is checked.
/// With --against, every file and code object of the artifacts is looked for in the packages, and
/// nothing else may be in them. Of repositories (folders with dists/ or repodata/), every index is
/// held against every package, and, with --key, against its signature. Folders of parts that
/// `build --partition` wrote are joined: all have to be there and to be of one plan. Artifacts (one, a shard, or a folder of shards) are checked by
/// component: split ones have host code in the generic artifact, and code of its arch in each
/// other. What a folder is, is told by what is in it. Exits with 1 if a check fails.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Packages, repositories, artifacts, prefixes or single files
    ///
    /// Folders of packages (with their packages.json, if there), artifacts (folders, .tar.zst,
    /// .tar.xz), shards, installed prefixes, kernel archives, manifests, host binaries
    #[arg(required = true, value_name = "DIR|FILE")]
    paths: Vec<PathBuf>,
    /// Take every folder for an installed prefix, such as /opt/rocm-7.1
    #[arg(long, visible_alias = "prefix")]
    installed: bool,
    /// The packages named are a part of a set
    ///
    /// The checks that only the other packages could decide are left out, and named
    #[arg(long, conflicts_with = "join")]
    partial: bool,
    /// The artifacts that the packages were made from
    ///
    /// As for build, or single host binaries with device code; may be given several times. What
    /// .tar.zst and .tar.xz hold is kept in TMPDIR meanwhile, somewhat larger than they are
    #[arg(long, value_name = "ARTIFACTS")]
    against: Vec<PathBuf>,
    /// Public key that has to have signed
    ///
    /// The indexes of repositories must be signed by one of the keys, and packages that are signed,
    /// too; may be given several times
    #[arg(long, value_name = "FILE")]
    key: Vec<PathBuf>,
    /// Write the packages.json of the whole set here
    ///
    /// If parts of it were named and no check fails: with the packages of all parts it is what one
    /// build of the set writes
    #[arg(long, value_name = "FILE", value_parser = output_path())]
    join: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments, progress: &Terminal) -> Result<Outcome> {
    let trust = trust(&arguments)?;
    let budget = memory::by_default();
    let (binaries, artifacts) = origins(&arguments.against)?;
    let scan = if artifacts.is_empty() {
        None
    } else {
        Some(artifact::scan_with(&artifacts, &ScanOptions::within(&budget))?)
    };
    let extent = if arguments.partial { Extent::Part } else { Extent::Whole };
    let folders =
        if arguments.installed { FolderMeaning::Prefixes } else { FolderMeaning::ByContent };
    let (against, binaries) = (scan.as_ref(), &binaries);
    let options = Options { folders, against, binaries, extent, trust, budget };
    let report = verify::verify(&arguments.paths, &options, progress)?;
    // What could not be read because the run was asked to end is no problem of the package.
    interrupt::check()?;
    scan.map_or(Ok(()), |scan| scan.inputs.recheck())?;
    if let Some(file) = &arguments.join {
        write_joined(&report, file)?;
    }
    progress.recorded(&report.warnings);
    progress.problems(&report.problems);
    if arguments.json {
        progress.print_json(&report)?
    } else {
        progress.print(&render::verify_text(&report))?
    }
    Ok(if report.problems.is_empty() { Outcome::Done } else { Outcome::ChecksFailed })
}

/// The host binaries and the artifacts among what packages were made from.
fn origins(paths: &[PathBuf]) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let (mut binaries, mut artifacts) = (Vec::new(), Vec::new());
    for path in paths {
        let is_binary = is_file(path)? && !artifact::is_artifact(path)?;
        if is_binary { &mut binaries } else { &mut artifacts }.push(path.clone());
    }
    Ok((binaries, artifacts))
}

/// What is trusted. All that is wrong with the options, whatever is to be checked, is refused together.
fn trust(arguments: &Arguments) -> Result<Trust> {
    let mut faults = Faults::default();
    let keys = faults.keep(PublicKeys::open(&arguments.key));
    let now = faults.keep(Environment::of_process().now());
    if let Some(file) = &arguments.join {
        faults.keep(new_file::check_place(file));
    }
    refuse_absent(&arguments.paths, "what is to be verified", &mut faults);
    refuse_absent(&arguments.against, "the artifacts of --against", &mut faults);
    let trust = keys.zip(now).map(|(keys, now)| Trust { keys, at: now.moment() });
    faults.of_settings().settle(trust)
}

/// Refuses paths of nothing, each meant to be `what`.
fn refuse_absent(paths: &[PathBuf], what: &str, faults: &mut Faults) {
    for path in paths {
        let found = fs::metadata(path).map_err(|e| Error::io(path, "inspect", e));
        faults.keep(found.context(|| format!("looking for {what}")));
    }
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

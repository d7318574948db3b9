//! `rockpack verify`: finished output against the invariants.

use std::fs;
use std::path::Path;

use clap::Args;
use rockpack_core::content::{Content, is_there};
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::run::interrupt;

use super::progress::Terminal;
use super::{Outcome, memory};
use crate::cli::render;
use crate::settings::{Environment, VerifyArguments, VerifySettings};
use rockpack_files::new_file::{self, WriteOutcome};
use rockpack_package::receipt::{Receipt, signature_path};
use rockpack_report::Progress;
use rockpack_signing::judge::Moment;
use rockpack_split::input::artifact::{self, ScanOptions};
use rockpack_verify::{self as verify, Options, Report};

/// Check packages, Python wheels, repositories, artifacts, installed prefixes, kernel archives, manifests and
/// host binaries.
///
/// Packages are checked as one set, so it should be whole: a host package alone finds no archives. With
/// --partial, it need not be: only what the given packages show is checked. With --against, the packages must
/// have every file and code object of the artifacts, and no others. With --key, packages and wheels need a
/// signed receipt (packages.json, wheels.json). Of repositories (folders with dists/, repodata/ or simple/),
/// every index is compared with every package, and, with --key, with its signature.
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
    let exposed = arguments.verify.signing.exposed();
    let environment = Environment::of_process();
    let settings = arguments.verify.resolve(&environment)?;
    exposed.iter().for_each(|finding| progress.warn(finding));
    let VerifySettings { paths, folders, extent, artifacts, binaries, wheels, trust, .. } =
        settings;
    let (budget, at) = (memory::by_default(), trust.at);
    let scan = if artifacts.is_empty() {
        None
    } else {
        Some(artifact::scan(&artifacts, &ScanOptions::within(&budget))?)
    };
    let (against, binaries, wheels) = (scan.as_ref(), &binaries, &wheels);
    let options = Options { folders, against, binaries, wheels, extent, trust, budget };
    let mut report = verify::verify(&paths, &options, progress)?;
    // A file that was not read because of a signal is no problem of the package.
    interrupt::check()?;
    scan.map_or(Ok(()), |scan| scan.inputs.recheck())?;
    if let Some(file) = &settings.join {
        let epoch = environment.epoch()?;
        write_joined(&mut report, file, |receipt| {
            // The same bytes are signed with the same signature, as a build of the whole set makes it.
            let time = epoch.unwrap_or(receipt.content_date);
            let signer = settings.signers.texts(Moment { time, ..at }, &[])?;
            signer.map(|signer| signer.sign_detached(&receipt.to_bytes()?)).transpose()
        })?;
    }
    progress.recorded(&report.warnings);
    progress.problems(&report.problems);
    progress.print_result(arguments.json, &report, || render::verify_text(&report))?;
    Ok(if report.problems.is_empty() { Outcome::Done } else { Outcome::ChecksFailed })
}

/// Writes the receipt of the whole set and its signature, unless a check failed.
fn write_joined(
    report: &mut Report,
    file: &Path,
    sign: impl Fn(&Receipt) -> Result<Option<String>>,
) -> Result<()> {
    let Some(joined) = &mut report.joined else {
        if !report.problems.is_empty() {
            return Ok(());
        }
        let error = Error::new(Kind::Usage, "no parts of a set are named, so none are joined");
        return Err(error.hint("name the folders that `build --partition` wrote"));
    };
    let signature = sign(&joined.receipt)?;
    joined.signed = Some(signature.is_some());
    let (receipt, beside) = (Content::of_bytes(joined.receipt.to_bytes()?), signature_path(file));
    let Some(signature) = signature else {
        if is_there(&beside)? {
            let message = "is there already, and this run signs nothing";
            let hint = "name a signer, move it away or choose another place";
            return Err(Error::new(Kind::Conflict, message).file(beside).hint(hint).refused());
        }
        return new_file::write_single(file, &receipt).map(drop);
    };
    new_file::is_there(file, &receipt)?;
    // Where the receipt is, its signature is, too.
    let written = new_file::write_single(&beside, &Content::of_bytes(signature))?;
    new_file::write_single(file, &receipt).map(drop).inspect_err(|_| {
        if written == WriteOutcome::Written {
            let _ = fs::remove_file(&beside);
        }
    })
}

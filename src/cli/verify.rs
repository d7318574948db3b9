//! `rockpack verify`: finished output against the invariants.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rockpack_core::content::{Content, exists, is_file};
use rockpack_core::error::{Error, Kind, Result, printable_lines};
use rockpack_core::run::{Budget, interrupt};
use rockpack_core::tree::TreePath;
use rockpack_files::new_file::{self, WriteOutcome};
use rockpack_package::receipt::{self, Receipt, signature_path};
use rockpack_report::words::{counted, few, shell_word};
use rockpack_report::{Progress, Silent};
use rockpack_signing::judge::CheckTime;
use rockpack_split::input::artifact::{self, ScanOptions};
use rockpack_verify::{
    self as verify, CheckCount, GpuCoverage, Options, Report, Unproved, UnreadData, UnservedLibrary,
};

use super::Outcome;
use super::progress::Terminal;
use super::render::EXPLAIN;
use super::terminal::json_text;
use crate::settings::{Environment, VerifyArguments, VerifySettings};

pub(super) fn run(arguments: VerifyArguments, progress: &Terminal) -> Result<Outcome> {
    let (json, readable_secrets) = (arguments.json, arguments.signing.readable_secrets());
    let environment = Environment::of_process();
    let settings = arguments.resolve(&environment)?;
    readable_secrets.iter().for_each(|finding| progress.warn(finding));
    let (mut report, at) = (run_checks(&settings, progress)?, settings.options.trust.at);
    if let Some(file) = &settings.join {
        let epoch = environment.epoch()?;
        write_joined(&mut report, file, |receipt| {
            // The time at which a build of the whole set signs, so that the signature is the same.
            let time = epoch.unwrap_or(receipt.content_date);
            let signer = settings.signers.text_signer(CheckTime { time, ..at }, &[])?;
            signer.map(|signer| signer.sign_detached(&receipt.to_bytes()?)).transpose()
        })?;
    }
    progress.receipt_findings(&report.warnings);
    progress.problems(&report.problems);
    progress.print_result(json, &report, || verify_text(&report))?;
    Ok(if report.problems.is_empty() { Outcome::Done } else { Outcome::ChecksFailed })
}

/// Runs the checks. Does not write the receipt of joined parts.
fn run_checks(settings: &VerifySettings, progress: &dyn Progress) -> Result<Report> {
    let VerifySettings { paths, options, artifacts, .. } = settings;
    let scan = || {
        let prefix = prefix_of(paths, &options.budget)?;
        artifact::scan(artifacts, &ScanOptions { prefix, ..ScanOptions::within(&options.budget) })
    };
    let scan = (!artifacts.is_empty()).then(scan).transpose()?;
    let options = Options { against: scan.as_ref(), ..options.clone() };
    let report = verify::verify(paths, &options, progress)?;
    // After a signal, files that were not read are not a problem of the package.
    interrupt::check()?;
    scan.map_or(Ok(()), |scan| scan.inputs.recheck())?;
    Ok(report)
}

/// The install prefix in the first receipt.
fn prefix_of(paths: &[PathBuf], budget: &Budget) -> Result<Option<TreePath>> {
    for path in paths.iter().map(|path| path.join(receipt::FILE_NAME)) {
        if is_file(&path)? {
            let content = Content::open(&path, budget)?;
            let bytes = content.read_vec(0..content.len(), receipt::LIMIT, "receipt")?;
            // Verification reports what is wrong with it.
            let Ok(receipt) = Receipt::parse(&bytes) else { return Ok(None) };
            return Ok(TreePath::new(receipt.prefix.trim_start_matches('/')).ok());
        }
    }
    Ok(None)
}

/// What `verify` prints by these settings without `--join`, and whether a check failed: for programs that verify many
/// sets, as the tests do.
pub fn verified(settings: &VerifySettings, is_json: bool) -> Result<(String, bool)> {
    let report = run_checks(settings, &Silent)?;
    let text = if is_json {
        json_text(serde_json::to_string_pretty(&report))?
    } else {
        printable_lines(&verify_text(&report)).into_owned()
    };
    Ok((text, !report.problems.is_empty()))
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
        let error = Error::new(Kind::Usage, "--join needs parts of a set, and none are named");
        return Err(error.hint("name the folders that `build --partition` wrote"));
    };
    let signature = sign(&joined.receipt)?;
    joined.signed = Some(signature.is_some());
    let (receipt, signature_file) =
        (Content::of_bytes(joined.receipt.to_bytes()?), signature_path(file));
    let Some(signature) = signature else {
        if exists(&signature_file)? {
            let message = "already exists, and this run does not sign";
            let hint = "name a signer, move the file, or choose another path";
            return Err(Error::new(Kind::Conflict, message)
                .file(signature_file)
                .hint(hint)
                .refused());
        }
        return new_file::write_single(file, &receipt).map(drop);
    };
    new_file::exists(file, &receipt)?;
    // The signature comes first, so that the receipt never exists without it.
    let written = new_file::write_single(&signature_file, &Content::of_bytes(signature))?;
    new_file::write_single(file, &receipt).map(drop).inspect_err(|_| {
        if written == WriteOutcome::Written {
            let _ = fs::remove_file(&signature_file);
        }
    })
}

/// Failed checks, one a line, then the extent of the check.
fn verify_text(report: &Report) -> String {
    let mut text = String::new();
    text.extend(report.tolerated.iter().map(|problem| text_line!("warning: {problem}")));
    text.extend(report.problems.iter().map(|problem| text_line!("failed: {problem}")));
    for CheckCount { code, name, count } in &report.more {
        text.push_str(&text_line!("failed: {code} {name}: {count} more, which are not listed"));
    }
    text.push_str(&read_text(report));
    text.push_str(&gpus_text(report));
    add_repository(&mut text, report);
    add_compared(&mut text, report);
    if report.external_dependencies > 0 {
        let count = report.external_dependencies;
        text.push_str(&text_line!("dependencies on packages of other repositories: {count}"));
    }
    for (count, what, rest) in [
        (report.left_out, "path", "of the artifacts left out on purpose (--only)"),
        (report.warnings.len(), "build warning", "(they do not fail the verification)"),
        (report.wheels_without_digests, "wheel", "with files that have no digest in RECORD"),
    ] {
        if count > 0 {
            text.push_str(&text_line!("{} {rest}", counted(count, what)));
        }
    }
    add_kept(&mut text, report);
    add_unproved(&mut text, report);
    if !report.undecided.is_empty() {
        let text_of = |it: &CheckCount| format!("{} {} ({})", it.code, it.name, it.count);
        let checks: Vec<String> = report.undecided.iter().map(text_of).collect();
        text.push_str(&text_line!(
            "not checked, because the other packages of the set are needed: {}",
            checks.join(", ")
        ));
    }
    if report.may_be_part {
        text.push_str(
            "if these are only some packages of a set, verify its folder, or add --partial\n",
        );
    }
    let reported = report.problems.len() + report.tolerated.len() + report.warnings.len();
    if reported > 0 {
        text.push_str(&text_line!("{EXPLAIN}"));
    }
    match report.failed() {
        0 => text.push_str("all checks passed\n"),
        count => text.push_str(&text_line!("{} failed", counted(count, "check"))),
    }
    text
}

/// The GPUs of the machine and the libraries of installed prefixes.
fn gpus_text(report: &Report) -> String {
    let mut texts = Vec::new();
    for GpuCoverage { prefix, gpu, served, unserved } in &report.gpus {
        let product = gpu.product.as_deref().unwrap_or("AMD GPU");
        let instead = gpu.overridden_by.iter().map(|target| format!(", runs code for {target}"));
        let name = format!("{product} ({}{})", gpu.target, instead.collect::<String>());
        let in_prefix = |count: usize| format!("{} in {prefix}", counted(count, "library"));
        let mut text = String::new();
        if *served > 0 {
            text.push_str(&text_line!("{name}: {} with code for it", in_prefix(*served)));
        }
        let mut by_packages: BTreeMap<&[String], Vec<&str>> = BTreeMap::new();
        for UnservedLibrary { library, packages } in unserved {
            by_packages.entry(packages).or_default().push(library);
        }
        for (packages, libraries) in by_packages {
            let words = packages.iter().map(|package| shell_word(Path::new(package)));
            let remedy = match words.collect::<Vec<_>>().as_slice() {
                [] => "no known package has it".to_owned(),
                words => format!("install {}", words.join(" ")),
            };
            let (count, few) = (in_prefix(libraries.len()), few(&libraries, 5));
            text.push_str(&text_line!("{name}: {count} without code for it ({few}); {remedy}"));
        }
        texts.push(text);
    }
    let skipped = report.skipped_gpus.iter();
    texts.extend(skipped.map(|it| text_line!("skipped: {}: {}", it.what, it.why)));
    // A machine may have several GPUs of one product.
    texts.dedup();
    texts.concat()
}

/// The packages of earlier builds that were not checked.
fn add_kept(text: &mut String, report: &Report) {
    if report.kept_absent > 0 {
        let packages = counted(report.kept_absent as u64, "package");
        text.push_str(&text_line!(
            "the set keeps {packages} of earlier builds; to check the whole set, also name the folders of these \
             builds"
        ));
    }
    if report.superseded > 0 {
        let packages = counted(report.superseded as u64, "package");
        text.push_str(&text_line!(
            "{packages} of earlier builds not checked, because the set no longer has them"
        ));
    }
}

/// The unchecked data of repositories, and the missing keys.
fn add_repository(text: &mut String, report: &Report) {
    for key in &report.additional_keys {
        text.push_str(&text_line!("a signed index names the key {key}, which --key does not have"));
    }
    for UnreadData { file, reason } in &report.data_unread {
        text.push_str(&text_line!("files of {file} were not checked: {reason}"));
    }
}

/// The sources that packages were compared with, and the parts that were not compared.
fn add_compared(text: &mut String, report: &Report) {
    if let Some(joined) = &report.joined {
        let (parts, sha256) = (counted(joined.parts as u64, "part"), &joined.receipt_sha256);
        let signed = match joined.signed {
            Some(true) => ", written with a signature",
            Some(false) => ", written without a signature",
            None => "",
        };
        text.push_str(&text_line!(
            "{parts}, which are the set whose packages.json has the SHA-256 {sha256}{signed}"
        ));
    }
    if let Some(count) = report.input_code_objects {
        let count = counted(count, "code object");
        text.push_str(&text_line!(
            "{count} of the artifacts, packed or left out, looked for in each format"
        ));
    }
}

/// The lines about claims that were not verified.
fn add_unproved(text: &mut String, report: &Report) {
    let is_unproved = |what: Unproved| report.unproved.contains(&what);
    if is_unproved(Unproved::Origin) {
        let more = if is_unproved(Unproved::Scripts) { ", scripts and relations" } else { "" };
        text.push_str(&text_line!(
            "not proved: the origin{more} (no good signature, or no --key to check it)"
        ));
    }
    if is_unproved(Unproved::Completeness) {
        text.push_str("not proved: that no package is missing (there is no receipt)\n");
    }
}

/// The extent of the check.
fn read_text(report: &Report) -> String {
    let read = [
        (report.packages, "package"),
        (report.wheels, "wheel"),
        (report.artifacts, "artifact"),
        (report.prefixes, "installed prefix"),
        (report.repositories, "repository"),
        (report.indexes, "index file"),
        (report.indexed, "indexed package"),
        (report.signatures, "good signature"),
        (report.single_files, "single file"),
    ];
    let counted_read = read.into_iter().filter(|(count, _)| *count > 0);
    let mut parts: Vec<String> =
        counted_read.map(|(count, what)| counted(count as u64, what)).collect();
    // In repositories, packages are compared with indexes, and their files are not checked.
    if report.files > 0 || report.repositories == 0 {
        parts.push(counted(report.files, "file"));
        parts.push(match report.archive_rows {
            0 => "no kernel archives".to_owned(),
            rows => format!(
                "kernel archives with {} and {}",
                counted(report.code_objects, "code object"),
                counted(rows, "row")
            ),
        });
    }
    text_line!("{}", parts.join(", "))
}

//! Commands that write no packages: `split` takes artifacts apart into host code and the code of each arch, `recombine`
//! joins the artifacts of all shards per arch group, `wheel` splits fat wheels into host wheels and device wheels.

use std::path::Path;

use rockpack_core::error::{Error, Result, printable};
use rockpack_core::run::threads;
use rockpack_emit::directories::{self, DirectoriesReport, WrittenArtifact};
use rockpack_package::receipt::wheels::{WheelKind, WheelReceipt};
use rockpack_report::words::counted;
use rockpack_report::{Findings, Progress, found};
use rockpack_wheel::WheelsReport;
use serde::Serialize;
use serde_json::Value;

use super::Outcome;
use super::progress::Terminal;
use super::render::{TextTable, bytes, count_or_dash, shell_word, words_or};
use crate::settings::{Environment, RecombineArguments, SplitArguments, WheelArguments};

pub(super) fn split(arguments: SplitArguments, progress: &Terminal) -> Result<()> {
    arguments.unused().for_each(|why| progress.note(&format!("note: not used: {why}")));
    let json = arguments.json;
    let options = arguments.resolve()?;
    let report =
        threads::with(options.budget.threads(), || directories::split(&options, progress))?;
    finish(report, "Splitting", &options.out, json, progress)
}

/// Prints the report, then fails with all failures of components and of printing.
fn finish(
    report: DirectoriesReport,
    what: &str,
    out: &Path,
    json: bool,
    progress: &Terminal,
) -> Result<()> {
    progress.warnings(&report.findings);
    let printed =
        progress.print_result(json, &DirectoriesOutput::of(&report), || directories_text(&report));
    let out = printable(&out.to_string_lossy()).into_owned();
    let (failed, written) = (report.failures.len(), report.artifacts.len());
    let failures = report.failures.into_iter().map(|(_, error)| error).chain(printed.err());
    match Error::gather(failures.collect()) {
        None if json => Ok(()),
        None => progress.print(&format!("{what} complete: {written} artifacts in {out}\n")),
        Some(error) if failed == 0 => Err(error),
        Some(error) => {
            let (failed, written) = (counted(failed, "component"), counted(written, "artifact"));
            progress.note(&format!("{failed} failed; {written} written to {out}"));
            Err(error)
        }
    }
}

pub(super) fn recombine(arguments: RecombineArguments, progress: &Terminal) -> Result<()> {
    let json = arguments.json;
    let options = arguments.resolve()?;
    let report =
        threads::with(options.budget.threads(), || directories::recombine(&options, progress))?;
    finish(report, "Recombining", &options.out, json, progress)
}

pub(super) fn wheel(arguments: WheelArguments, progress: &Terminal) -> Result<Outcome> {
    let (json, readable_secrets) = (arguments.json, arguments.signing.readable_secrets());
    let settings = arguments.resolve(&Environment::of_process())?;
    readable_secrets.iter().for_each(|finding| progress.warn(finding));
    let made = rockpack_wheel::split_wheels(&settings, progress)?;
    progress.summary();
    progress.print_result(json, &made, || wheels_text(&made))?;
    let out = printable(&settings.out.to_string_lossy()).into_owned();
    let wheels = counted(made.receipt.wheels.len() as u64, "wheel");
    let word = shell_word(&settings.out);
    progress
        .note(&format!("{wheels} in {out}; publish them with `rockpack repo {word} --out REPO`"));
    progress.findings(&made.findings);
    let skips_bad =
        made.findings.iter().any(|finding| finding.found::<found::PackageFileLeftOut>().is_some());
    Ok(if skips_bad { Outcome::ChecksFailed } else { Outcome::Done })
}

/// The JSON output of `split` and `recombine`.
#[derive(Debug, Serialize)]
struct DirectoriesOutput<'a> {
    artifacts: &'a [WrittenArtifact],
    /// The removed artifacts of the same components from an earlier run, with their shard's folder if any.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    removed: &'a [String],
    findings: &'a Findings,
    failures: Vec<FailureRecord<'a>>,
}

#[derive(Debug, Serialize)]
struct FailureRecord<'a> {
    component: &'a str,
    error: String,
    /// The further faults, each with its context.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    others: Vec<String>,
    /// The findings before the component failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<Value>,
}

impl<'a> DirectoriesOutput<'a> {
    fn of(report: &'a DirectoriesReport) -> Self {
        let DirectoriesReport { artifacts, removed, findings, failures } = report;
        let records = failures.iter().map(|(component, error)| FailureRecord {
            component,
            error: error.full_text(),
            others: error.flattened().skip(1).map(Error::full_text).collect(),
            findings: remarks(error),
        });
        Self { artifacts, removed, findings, failures: records.collect() }
    }
}

/// The findings that an error carries.
fn remarks(error: &Error) -> Vec<Value> {
    let remarks = error.remarks().into_iter();
    remarks.filter_map(|remark| serde_json::from_str(&remark.json).ok()).collect()
}

/// Artifacts as a table, then those of an earlier run that were removed.
fn directories_text(report: &DirectoriesReport) -> String {
    let mut table = TextTable::new(["artifact", ">files", ">size"]);
    for written in &report.artifacts {
        let shard = written.shard.iter().map(|shard| format!("{shard}/"));
        let name: String = shard.chain([written.artifact.clone()]).collect();
        table.row([name, written.files.to_string(), bytes(written.bytes)]);
    }
    let mut text = table.render();
    text.extend(report.removed.iter().map(|name| text_line!("removed {name} of an earlier run")));
    text
}

/// Wheels as a table, then those of an earlier set that were removed.
fn wheels_text(made: &WheelsReport) -> String {
    let WheelsReport { receipt, removed, .. } = made;
    let total: u64 = receipt.wheels.iter().map(|wheel| wheel.size).sum();
    let mut text = format!(
        "{}\n{}, {}; {} of the input packed\n",
        wheel_table(receipt),
        counted(receipt.wheels.len(), "wheel"),
        bytes(total),
        counted(receipt.code_objects.len(), "code object"),
    );
    text.extend(removed.iter().map(|name| text_line!("removed {name} of the earlier set")));
    text
}

fn wheel_table(receipt: &WheelReceipt) -> String {
    let columns = ["wheel", "role", ">size", ">installed", ">code objects", "archs"];
    let mut table = TextTable::new(columns);
    for wheel in &receipt.wheels {
        let own = receipt.code_objects.iter().filter(|code| code.package == wheel.file_name);
        let role = match wheel.role {
            WheelKind::Host => "host",
            WheelKind::Device => "device",
            WheelKind::Copy => "copy",
        };
        table.row([
            wheel.file_name.clone(),
            role.to_owned(),
            bytes(wheel.size),
            bytes(wheel.installed_size),
            count_or_dash(own.count()),
            words_or(&wheel.archs, "-"),
        ]);
    }
    table.render()
}

//! `rockpack build`: artifacts in, packages out.

use std::path::Path;

use clap::Args;
use rockpack_core::content::is_file;
use rockpack_core::error::Result;
use serde::Serialize;

use super::Outcome;
use super::progress::Terminal;
use crate::cli::render;
use crate::pipeline::{self, Built};
use crate::settings::{BuildArguments, Environment, GivenOptions};
use rockpack_files::closed_mode;
use rockpack_package::receipt;
use rockpack_repo::Published;
use rockpack_report::{Finding, Findings, Progress};

/// Build the packages of one or more shards of artifacts.
///
/// Writes the packages and, last, packages.json (the content of each package, and the place of every code
/// object of the input) into OUT; a signing key signs it (packages.json.asc). They replace the set of an earlier
/// build: its packages that are not in the new set are removed and listed. SOURCE_DATE_EPOCH sets the time of headers, changelogs, signatures, SPDX
/// documents and the indexes of --repo.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    build: BuildArguments,
    /// Print the receipt as JSON
    ///
    /// `removed` lists the removed packages of an earlier set
    #[arg(long, help_heading = None)]
    json: bool,
}

pub(super) fn run(
    arguments: Arguments,
    given: &GivenOptions,
    progress: &Terminal,
) -> Result<Outcome> {
    let environment = Environment::of_process();
    let exposed = arguments.build.signing.exposed();
    let settings = arguments.build.resolve(given, &environment)?;
    exposed.iter().for_each(|finding| progress.warn(finding));
    let out = &settings.output.folder;
    let is_built_again = is_file(&out.join(receipt::FILE_NAME))?;
    let (built, published) = pipeline::build_and_publish(&settings, progress)?;
    progress.summary();
    progress.findings(&built.receipt.known_findings());
    if is_built_again {
        progress.findings(&closed(out)?);
    }
    published.iter().for_each(|published| progress.findings(&published.findings));
    if arguments.json {
        progress.print_json(&Printed { built: &built, published: published.as_ref() })?
    } else {
        let text = render::build_text(&built.receipt, &built.removed);
        let more = published.as_ref().map(render::published_text).unwrap_or_default();
        progress.print(&(text + &more))?;
    }
    progress.note(&render::build_end(&built.receipt, &settings, published.as_ref()));
    Ok(Outcome::Done)
}

/// The finding that other users may not list the output folder. It matters if an earlier run created the
/// folder; of a folder without an earlier build, the user knows.
fn closed(out: &Path) -> Result<Findings> {
    let mut findings = Findings::default();
    if let Some(mode) = closed_mode(out)? {
        let (folder, mode) = (out.display().to_string(), format!("{mode:04o}"));
        findings.add(Finding::FolderClosed { folder, mode, others: 0 });
    }
    Ok(findings)
}

#[derive(Serialize)]
struct Printed<'a> {
    #[serde(flatten)]
    built: &'a Built,
    #[serde(skip_serializing_if = "Option::is_none")]
    published: Option<&'a Published>,
}

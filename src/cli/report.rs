//! `rockpack report`: a report on a package set.

use std::path::{Path, PathBuf, absolute};

use clap::Args;
use rockpack_core::content::{Content, exists};
use rockpack_core::error::Result;
use rockpack_files::new_file::{NewFiles, check_place};
use rockpack_files::parent_folder;
use rockpack_report::Progress;

use super::about;
use super::progress::Terminal;
use crate::report::{DocumentFormat, Report, read};
use crate::settings::output_path;

/// Report what the user of each GPU downloads and has on disk from a package set.
///
/// Compares these sizes with the fat original and with an earlier set. Shows the sizes by library and GPU, the findings
/// and how to solve them, the changes, and the files left out. Reads only receipts, not packages.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The set: a packages.json, or the folder that `build` wrote
    #[arg(value_name = "SET")]
    set: PathBuf,
    /// The set that users have now
    ///
    /// A packages.json, or the folder that `build` wrote
    #[arg(long, value_name = "SET")]
    since: Option<PathBuf>,
    /// File for the report, .html or .md; an existing file is replaced
    ///
    /// Without it, Markdown is printed. An HTML file needs no other files and no network
    #[arg(long, value_name = "FILE", value_parser = output_path())]
    out: Option<PathBuf>,
    /// Print JSON
    #[arg(long, conflicts_with = "out")]
    json: bool,
}

pub(super) fn run(arguments: &Arguments, terminal: &Terminal) -> Result<()> {
    let Arguments { set, since, out, json } = arguments;
    out.as_deref().map_or(Ok(()), |file| check_output(file, None))?;
    let since = since.as_deref().map(read).transpose()?;
    let report = Report::new(&read(set)?, since.as_ref(), &remedy)?;
    match out {
        _ if *json => terminal.print_json(&report),
        None => terminal.print(&report.render(DocumentFormat::Markdown)?),
        Some(file) => write(&report, file, terminal),
    }
}

/// Fails if a report cannot be written to `file`. Its folder may be missing if it is `created`, which this run creates.
pub(super) fn check_output(file: &Path, created: Option<&Path>) -> Result<()> {
    DocumentFormat::of_file(file)?;
    let folder = parent_folder(file);
    let is_created = created.is_some_and(|it| absolute(it).ok() == absolute(folder).ok());
    if is_created && !exists(folder)? { Ok(()) } else { check_place(file) }
}

pub(super) fn write(report: &Report, file: &Path, terminal: &Terminal) -> Result<()> {
    let text = report.render(DocumentFormat::of_file(file)?)?;
    let new = NewFiles::begin(parent_folder(file), "reports")?;
    new.write("report", &Content::of_bytes(text))?;
    new.replace("report", file)?;
    terminal.note(&format!("the report is in {}", file.display()));
    Ok(())
}

/// Returns how to solve a finding, from its explanation: one paragraph of Markdown without links.
pub(super) fn remedy(code: &str) -> Option<String> {
    let (_, text) = about::find(code)?.text.split_once("To solve it: ")?;
    let mut rest = text.split("\n\n").next()?;
    let mut plain = String::new();
    while let Some((before, link)) = rest.split_once('[')
        && let Some((words, target)) = link.split_once("](")
        && let Some((_, after)) = target.split_once(')')
    {
        plain = plain + before + words;
        rest = after;
    }
    Some((plain + rest).replace('\n', " "))
}

//! `rockpack report`: a package set for people.

use std::path::{Path, PathBuf, absolute};

use clap::Args;
use rockpack_core::content::{Content, is_there};
use rockpack_core::error::Result;
use rockpack_files::folder_of;
use rockpack_files::new_file::{NewFiles, check_place};
use rockpack_report::Progress;

use super::about;
use super::progress::Terminal;
use crate::report::{Form, Report, read};
use crate::settings::output_path;

/// Report on a package set for people: what the user of each GPU downloads and has on disk.
///
/// Compares these sizes with the fat original and with an earlier set, and shows the sizes by library and GPU, the findings
/// with what solves them, what changed, and what was left out. Reads receipts alone, no packages.
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
    /// File for the report, .html or .md; it is replaced
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
    out.as_deref().map_or(Ok(()), |file| check(file, None))?;
    let since = since.as_deref().map(read).transpose()?;
    let report = Report::new(&read(set)?, since.as_ref(), &remedy)?;
    match out {
        _ if *json => terminal.print_json(&report),
        None => terminal.print(&report.render(Form::Markdown)?),
        Some(file) => write(&report, file, terminal),
    }
}

/// Refuses the place of a report that cannot be written. The folder `made` may be missing.
pub(super) fn check(file: &Path, made: Option<&Path>) -> Result<()> {
    Form::of_file(file)?;
    let folder = folder_of(file);
    let is_made = made.is_some_and(|made| absolute(made).ok() == absolute(folder).ok());
    if is_made && !is_there(folder)? { Ok(()) } else { check_place(file) }
}

/// Writes the report about the set at `set`, which follows the one at `since`.
pub(super) fn write(report: &Report, file: &Path, terminal: &Terminal) -> Result<()> {
    let text = report.render(Form::of_file(file)?)?;
    let new = NewFiles::begin(folder_of(file), "reports")?;
    new.write("report", &Content::of_bytes(text))?;
    new.replace("report", file)?;
    terminal.note(&format!("the report is in {}", file.display()));
    Ok(())
}

/// What solves a finding, from its page: one paragraph of Markdown without links.
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

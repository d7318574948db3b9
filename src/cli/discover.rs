//! `rockpack discover`: which targets are inside of which artifact.

use std::path::{Path, PathBuf};

use clap::Args;
use rockpack_base::content::Content;
use rockpack_base::error::{Error, Faults, Kind, Result, ResultExt, printable};
use serde::Serialize;

use super::progress::Terminal;
use super::{Outcome, memory};
use crate::cli::render;
use crate::config::Syntax;
use crate::files::new_file;
use crate::inspect::discover::{Discovery, Proposal, propose};
use crate::pipeline;
use crate::settings::output_path;

/// Show which GPU targets are inside of which artifact, and propose a packaging configuration.
///
/// Counts the code objects of fat binaries and the files of kernel databases, by content. Archs
/// that are only there because the compiler fell back to them (gfx906 in every shard) are named.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// A shard (folder of artifacts) or a folder of shards
    #[arg(value_name = "DIR", required_unless_present = "artifacts")]
    folders: Vec<PathBuf>,
    /// The same as DIR; may be given several times
    #[arg(long, num_args = 1.., value_name = "DIR")]
    artifacts: Vec<PathBuf>,
    /// Propose a packaging configuration
    ///
    /// Into FILE (.json or .toml), which must not be there with another content, or to stdout as
    /// TOML in place of the table
    #[arg(long, num_args = 0..=1, value_name = "FILE", value_parser = output_path())]
    propose: Option<Option<PathBuf>>,
    /// Print JSON; with --propose it holds the proposal and its reasons, too
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct DiscoverOutput {
    #[serde(flatten)]
    discovery: Discovery,
    #[serde(skip_serializing_if = "Option::is_none")]
    proposal: Option<Proposal>,
}

pub(super) fn run(arguments: Arguments, progress: &Terminal) -> Result<Outcome> {
    let file = arguments.propose.as_ref().and_then(Option::as_deref);
    let mut faults = Faults::default();
    let syntax = file.and_then(|file| faults.keep(syntax_of(file)));
    if let Some(file) = file {
        faults.keep(new_file::check_place(file));
    }
    faults.of_settings().finish()?;
    let folders = [arguments.folders, arguments.artifacts].concat();
    let discovery = pipeline::discover(&folders, &memory::by_default(), progress)?;
    let proposal = arguments.propose.as_ref().map(|_| propose(&discovery)).transpose()?;
    if let (Some(proposal), Some(file), Some(syntax)) = (&proposal, file, syntax) {
        let text = proposal.configuration(syntax)?;
        let written = new_file::write_single(file, &Content::of_bytes(text));
        written.context(|| "writing the proposed configuration".to_owned())?;
    }
    progress.findings(&discovery.findings);
    if arguments.json {
        progress.print_json(&DiscoverOutput { discovery, proposal })?;
        return Ok(Outcome::Done);
    }
    match (&proposal, file) {
        (None, _) => progress.print(&render::discovery_text(&discovery))?,
        (Some(proposal), Some(file)) => {
            let written = format!("wrote {}\n", printable(&file.to_string_lossy()));
            let reasons = reasons(proposal, "  ");
            progress.print(&(render::discovery_text(&discovery) + "\n" + &written + &reasons))?;
        }
        (Some(proposal), None) => {
            let text = reasons(proposal, "# ") + "\n" + &proposal.configuration(Syntax::Toml)?;
            progress.print(&text)?;
        }
    }
    Ok(Outcome::Done)
}

fn reasons(proposal: &Proposal, start: &str) -> String {
    let lines = render::proposal_reasons(proposal);
    lines.iter().map(|line| format!("{start}{line}\n")).collect()
}

fn syntax_of(file: &Path) -> Result<Syntax> {
    match file.extension().and_then(|ending| ending.to_str()) {
        Some("json") => Ok(Syntax::Json),
        Some("toml") => Ok(Syntax::Toml),
        _ => {
            let error = Error::new(Kind::Usage, "names neither a .json nor a .toml file");
            let hint = "--propose takes the file to write; give the folders before it";
            Err(error.file(file).hint(hint))
        }
    }
}

//! `rockpack discover`: the targets inside of each artifact.

use clap::Args;
use rockpack_core::content::Content;
use rockpack_core::error::{Result, ResultExt, printable};
use serde::Serialize;

use super::progress::Terminal;
use super::{Outcome, memory};
use crate::cli::render;
use crate::inspect::discover::{Discovery, Proposal, propose};
use crate::pipeline;
use crate::settings::{DiscoverArguments, ProposalPlace};
use rockpack_files::new_file;
use rockpack_plan::config::Syntax;

/// Show which GPU targets are inside of which artifact, and propose a packaging configuration.
///
/// Counts the code objects of fat binaries and the files of kernel databases, by content. Lists archs that
/// exist only because the compiler fell back to them (gfx906 in every shard).
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    discover: DiscoverArguments,
    /// Print JSON; with --propose it has the proposal and its reasons, too
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
    let settings = arguments.discover.resolve()?;
    let discovery = pipeline::discover(&settings.artifacts, &memory::by_default(), progress)?;
    let proposal = settings.propose.as_ref().map(|_| propose(&discovery)).transpose()?;
    let proposed = proposal.as_ref().zip(settings.propose.as_ref());
    if let Some((proposal, ProposalPlace::File { path, syntax })) = proposed {
        let text = proposal.configuration(*syntax)?;
        let written = new_file::write_single(path, &Content::of_bytes(text));
        written.context(|| "writing the proposed configuration".to_owned())?;
    }
    progress.findings(&discovery.findings);
    if arguments.json {
        progress.print_json(&DiscoverOutput { discovery, proposal })?;
        return Ok(Outcome::Done);
    }
    match proposed {
        None => progress.print(&render::discovery_text(&discovery))?,
        Some((proposal, ProposalPlace::File { path, .. })) => {
            let written = format!("wrote {}\n", printable(&path.to_string_lossy()));
            let reasons = reasons(proposal, "  ");
            progress.print(&(render::discovery_text(&discovery) + "\n" + &written + &reasons))?;
        }
        Some((proposal, ProposalPlace::Output)) => {
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

//! `rockpack discover`: the targets in each artifact.

use rockpack_core::content::Content;
use rockpack_core::error::{Result, ResultExt, printable};
use rockpack_files::new_file;
use rockpack_plan::config::Syntax;
use serde::Serialize;

use super::default_budget;
use super::progress::Terminal;
use super::render::{TextTable, bytes};
use crate::inspect::discover::{
    Amount, ArchSummary, ArtifactContents, Discovery, Proposal, ShardContents, propose,
};
use crate::pipeline;
use crate::settings::{DiscoverArguments, ProposalPlace};

#[derive(Serialize)]
struct DiscoverOutput {
    #[serde(flatten)]
    discovery: Discovery,
    #[serde(skip_serializing_if = "Option::is_none")]
    proposal: Option<Proposal>,
}

pub(super) fn run(arguments: DiscoverArguments, progress: &Terminal) -> Result<()> {
    let json = arguments.json;
    let settings = arguments.resolve()?;
    let discovery = pipeline::discover(&settings, &default_budget(), progress)?;
    let proposal = settings.propose.as_ref().map(|_| propose(&discovery)).transpose()?;
    let proposed = proposal.as_ref().zip(settings.propose.as_ref());
    if let Some((proposal, ProposalPlace::File { path, syntax })) = proposed {
        let text = proposal.configuration(*syntax)?;
        let written = new_file::write_single(path, &Content::of_bytes(text));
        written.context(|| "writing the proposed configuration".to_owned())?;
    }
    let findings = discovery.findings.clone();
    if json {
        progress.print_json(&DiscoverOutput { discovery, proposal })?;
    } else {
        progress.print(&text(&discovery, proposed)?)?;
    }
    progress.findings(&findings);
    Ok(())
}

/// The targets, with the proposed configuration or its place. If the configuration goes to standard output, only its
/// reasons are printed with it, as comments.
fn text(found: &Discovery, proposed: Option<(&Proposal, &ProposalPlace)>) -> Result<String> {
    Ok(match proposed {
        None => discovery_text(found),
        Some((proposal, ProposalPlace::File { path, .. })) => {
            let written = format!("wrote {}\n", printable(&path.to_string_lossy()));
            discovery_text(found) + "\n" + &written + &reasons(proposal, "  ")
        }
        Some((proposal, ProposalPlace::Output)) => {
            reasons(proposal, "# ") + "\n" + &proposal.configuration(Syntax::Toml)?
        }
    })
}

/// A table of the artifacts, one of the archs, and the archs that were shipped unintentionally.
fn discovery_text(found: &Discovery) -> String {
    let mut table = TextTable::new([
        "shard",
        "artifact",
        "target",
        ">code objects",
        ">bytes",
        ">database files",
        ">bytes",
    ]);
    for shard in &found.shards {
        shard.artifacts.iter().for_each(|artifact| artifact_rows(&mut table, shard, artifact));
    }
    let mut text = table.render();
    text.push('\n');
    text.push_str(&architectures_text(&found.architectures));
    text.push_str(&fallbacks_text(found));
    text
}

/// One row for each target with code, and for each arch with database files whose plain target has no code.
/// An artifact with neither has a row `none`.
fn artifact_rows(table: &mut TextTable<7>, shard: &ShardContents, artifact: &ArtifactContents) {
    let mut rows: Vec<(String, Amount, Amount)> = Vec::new();
    for (target, code) in &artifact.code_objects {
        // The files of an arch are in the row of its plain target.
        let plain = target.features().is_empty();
        let files = artifact.databases.get(target.base()).filter(|_| plain);
        rows.push((target.to_string(), *code, files.copied().unwrap_or_default()));
    }
    for (arch, files) in &artifact.databases {
        if rows.iter().all(|(target, ..)| target != arch.as_str()) {
            rows.push((arch.to_string(), Amount::default(), *files));
        }
    }
    if rows.is_empty() {
        rows.push(("none".to_owned(), Amount::default(), Amount::default()));
    }
    rows.sort_by_cached_key(|(target, ..)| (base_of(target).len(), target.clone()));
    for (target, code, files) in rows {
        let fallback = shard.fallbacks.keys().any(|arch| arch.as_str() == base_of(&target));
        let target = if fallback { format!("{target} (fallback)") } else { target };
        let [objects, object_bytes] = cells(code);
        let [count, file_bytes] = cells(files);
        let (shard, artifact) = (shard.name.clone(), artifact.name.clone());
        table.row([shard, artifact, target, objects, object_bytes, count, file_bytes]);
    }
}

/// The arch of a target ID.
fn base_of(target: &str) -> &str {
    target.split(':').next().unwrap_or_default()
}

fn cells(amount: Amount) -> [String; 2] {
    match amount.count {
        0 => ["-".to_owned(), "-".to_owned()],
        count => [count.to_string(), bytes(amount.bytes)],
    }
}

fn architectures_text(architectures: &[ArchSummary]) -> String {
    let columns = ["arch", "generation", "shards", ">code objects", ">database files"];
    let mut table = TextTable::new(columns);
    for found in architectures {
        let generation = match found.generation.as_str() {
            "" => "-".to_owned(),
            generation => generation.to_owned(),
        };
        let [code, _] = cells(found.code_objects);
        let [files, _] = cells(found.databases);
        table.row([found.arch.to_string(), generation, found.shards.join(", "), code, files]);
    }
    table.render()
}

/// The archs that were shipped unintentionally, with the evidence from each shard.
fn fallbacks_text(found: &Discovery) -> String {
    let mut text = String::new();
    for arch in found.architectures.iter().filter(|arch| arch.fallback) {
        text.push_str(&text_line!("{} is only a fallback of the compiler:", arch.arch));
        for shard in &found.shards {
            if let Some(reason) = shard.fallbacks.get(&arch.arch) {
                text.push_str(&text_line!("  {}: {reason}", shard.name));
            }
        }
    }
    text
}

/// The reasons for the proposal, one line each, after `start`.
fn reasons(proposal: &Proposal, start: &str) -> String {
    let primary = &proposal.primary_shard;
    let mut lines = vec![format!("primary_shard is {}: {}", primary.name, primary.reason)];
    for ungrouped in &proposal.left_out {
        lines.push(format!("{} is in no group: {}", ungrouped.arch, ungrouped.reason));
    }
    lines.iter().map(|line| format!("{start}{}\n", printable(line))).collect()
}

//! `rockpack inspect`: what is in a file.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::{Outcome, terminal};
use crate::content::Content;
use crate::error::{Result, ResultExt};
use crate::inspect::{Inspected, inspect};
use crate::report;

/// Show what is in kernel archives, kernel manifests and host binaries.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// .kpack archives, .kpm manifests, ELF host binaries
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print JSON, one object per file
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Named {
    file: String,
    #[serde(flatten)]
    inspected: Inspected,
}

pub(super) fn run(arguments: Arguments) -> Result<Outcome> {
    let mut all = Vec::new();
    for path in &arguments.files {
        let content = Content::open(path)?;
        let inspected = inspect(&content).file(path)?;
        all.push(Named { file: path.display().to_string(), inspected });
    }
    if arguments.json {
        terminal::print_json(&all)?;
        return Ok(Outcome::Done);
    }
    for (position, named) in all.iter().enumerate() {
        let gap = if position == 0 { "" } else { "\n" };
        let heading = if all.len() > 1 { format!("{gap}{}:\n", named.file) } else { String::new() };
        terminal::print(&(heading + &report::inspect_text(&named.inspected)))?;
    }
    Ok(Outcome::Done)
}

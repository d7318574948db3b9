//! `rockpack explain`: the meaning of a code, its importance, and the remedy.

use clap::Args;
use rockpack_core::error::{Error, Kind, Result};

use super::Outcome;
use super::progress::Terminal;
use crate::cli::explained;
use crate::cli::render;

/// Say what a code means, why it matters, and what solves it: of a finding (R070) or of a check
/// of verify (V031).
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Codes or their names; all of them are listed if none is given
    #[arg(value_name = "CODE")]
    codes: Vec<String>,
}

pub(super) fn run(arguments: &Arguments, terminal: &Terminal) -> Result<Outcome> {
    let codes = arguments.codes.iter();
    let answers = codes.map(|code| explained::find(code).ok_or_else(|| unknown(code)));
    let found = answers.collect::<Result<Vec<_>>>()?;
    let texts: Vec<String> = found.iter().map(render::explanation_text).collect();
    let text =
        if texts.is_empty() { render::codes_text(explained::all()) } else { texts.join("\n") };
    terminal.print(&text)?;
    Ok(Outcome::Done)
}

fn unknown(code: &str) -> Error {
    let error = Error::new(Kind::Usage, format!("no finding and no check is called `{code}`"));
    error.hint(match explained::nearest(code) {
        Some(nearest) => format!("`{nearest}` is; `rockpack explain` lists them all"),
        None => "`rockpack explain` lists them all".to_owned(),
    })
}

//! `rockpack inspect`: the content of a file.

use std::path::PathBuf;

use clap::Args;
use rockpack_core::content::{Content, is_folder};
use rockpack_core::error::{Error, Faults, Result, ResultExt, printable};
use rockpack_core::run::interrupt;
use serde::Serialize;

use super::progress::Terminal;
use super::{Outcome, memory};
use crate::cli::render;
use crate::inspect::{Inspected, inspect, inspect_artifact, of_named};
use rockpack_split::input::artifact::is_artifact;

/// Show what is in packages, wheels, kernel archives and manifests, host binaries, code objects and bundles.
///
/// Of packages and wheels: fields, members, and which of them hold device code; of host binaries: wrappers,
/// bundles, markers; of code objects: target, kernels and the content of their notes.
///
/// Files that cannot be read do not stop the others from being shown. The exit code is then that of the first
/// such file: 2, or 64 if it does not exist.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Packages, wheels, kernel archives, manifests, binaries, artifacts
    ///
    /// .deb and .rpm packages, .whl, .kpack archives, .kpm manifests, ELF files, offload bundles, .dat
    /// indexes of kernel databases, artifacts (folders, .tar.zst, .tar.xz)
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print JSON: a list with one object per file
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct InspectedFile {
    file: String,
    #[serde(flatten)]
    inspected: Inspected,
}

pub(super) fn run(arguments: Arguments, terminal: &Terminal) -> Result<Outcome> {
    let budget = memory::by_default();
    let mut all = Vec::new();
    let mut faults = Faults::default();
    for path in &arguments.files {
        let is_whole = is_folder(path)
            .and_then(|it| Ok(it || is_artifact(path)?))
            .context(|| "looking for what is to be inspected".to_owned());
        let inspected = is_whole.and_then(|it| {
            if it {
                inspect_artifact(path, &budget).map(Inspected::Artifact)
            } else {
                let content = Content::open(path, &budget).map_err(Error::of_named);
                content
                    .and_then(|content| inspect(&content).file(path).map_err(|e| of_named(e, path)))
            }
        });
        if let Some(inspected) = faults.keep(inspected) {
            all.push(InspectedFile { file: path.display().to_string(), inspected });
        }
    }
    // Faults of an interrupted run say nothing about the files.
    interrupt::check()?;
    for file in &all {
        if let Inspected::Artifact(artifact) = &file.inspected {
            terminal.findings(&artifact.findings);
        }
    }
    if all.is_empty() {
        // The faults are the whole output.
    } else if arguments.json {
        faults.keep(terminal.print_json(&all));
    } else {
        faults.keep(terminal.print(&text(&all, arguments.files.len() > 1)));
    }
    faults.finish().map(|()| Outcome::Done)
}

/// The text of all files, each under its name if there are several.
fn text(all: &[InspectedFile], several: bool) -> String {
    let texts = all.iter().map(|file| {
        let heading = if several { format!("{}:\n", printable(&file.file)) } else { String::new() };
        heading + &render::inspect_text(&file.inspected)
    });
    texts.collect::<Vec<_>>().join("\n")
}

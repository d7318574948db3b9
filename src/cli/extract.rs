//! `rockpack extract`: code objects out of archives, fat binaries and bundles.

use std::path::PathBuf;

use clap::Args;
use rockpack_core::error::Result;
use rockpack_core::gfx::Target;

use super::progress::Terminal;
use super::{Outcome, memory};
use crate::cli::render;
use crate::inspect::extract::{Selection, extract};
use crate::settings::{output_path, target_id};

/// Write the code objects of kernel archives, fat binaries, offload bundles and kernel packages into separate
/// files.
///
/// A file is named <binary>-<index>-<target>.hsaco: the binary from the archive's key, or the name of FILE,
/// with other characters than letters, digits and ._-+ as %XX; the index of the wrapper (of the bundle, in a
/// file of bundles); the target with - before its features. A key without an index gives a name without one,
/// a bundle without a wrapper has bundle<offset> in its place, and SPIR-V ends in .spv. If a second archive
/// of a package has other code under the same key, its path and %3A precede the binary. Nothing is
/// overwritten: an existing file must have the same content.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// .kpack archives, fat binaries, offload bundles (also CCOB), .deb and .rpm packages
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Folder for the code objects; created if missing
    #[arg(long, value_name = "DIR", value_parser = output_path())]
    out: PathBuf,
    /// Only code for this target, e.g. gfx1100 or gfx90a:xnack+
    ///
    /// May be given several times. An arch without features means all of its variants
    #[arg(long, value_name = "TARGET", value_parser = target_id)]
    target: Vec<Target>,
    /// Only code objects that define this kernel; may be given several times
    #[arg(long, value_name = "NAME")]
    kernel: Vec<String>,
    /// Print JSON: a list with one object per code object
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: Arguments, terminal: &Terminal) -> Result<Outcome> {
    let selection = Selection { targets: arguments.target, kernels: arguments.kernel };
    let extracted = extract(&arguments.files, &arguments.out, &selection, &memory::by_default())?;
    terminal.print_result(arguments.json, &extracted, || render::extract_text(&extracted))?;
    Ok(Outcome::Done)
}

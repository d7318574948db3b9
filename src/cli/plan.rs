//! `rockpack plan`: the result of a build, predicted.

use std::path::PathBuf;

use clap::Args;
use rockpack_core::error::Result;

use super::progress::Terminal;
use super::{Outcome, memory};
use crate::cli::render;
use crate::pipeline;
use crate::settings::{Environment, SetArguments};
use rockpack_emit::pack::planned::Digests;
use rockpack_package::receipt::SetPart;
use rockpack_package::receipt::{difference, listing};

/// Show the package set that `build` would write, before anything is compressed.
///
/// Names, versions, relations, paths and the sizes of installed files are those of `build`, except for kernel
/// archives and their manifests. Their sizes and those of package files are estimated from samples, and
/// marked with ~. Writes nothing.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    set: SetArguments,
    /// Show also the relations and files of every package
    #[arg(long, conflicts_with_all = ["json", "dot", "diff"])]
    details: bool,
    /// Print the plan, with --diff the differences, as JSON
    #[arg(long)]
    json: bool,
    /// Print the dependencies as a graph for Graphviz
    ///
    /// One node for each package of the first format, solid lines for requirements, dashed ones for
    /// recommendations
    #[arg(long, conflicts_with_all = ["json", "diff"])]
    dot: bool,
    /// Compare with an earlier set
    ///
    /// A plan (JSON), a packages.json, or a folder of packages
    #[arg(long, value_name = "OTHER")]
    diff: Option<PathBuf>,
    /// With --diff, end with exit code 1 if there are differences
    #[arg(long, requires = "diff")]
    exit_code: bool,
    /// Print how the set is cut into at most N parts
    ///
    /// As JSON in one line, for the matrix of a CI system: parts of similar size. `include` has one object
    /// for each, whose `partition` is the value for `build`
    #[arg(long, value_name = "N", conflicts_with_all = ["details", "dot", "diff", "digests"],
        value_parser = clap::value_parser!(u32).range(1..=i64::from(SetPart::MOST)))]
    matrix: Option<u32>,
    /// Read every file for its digest
    ///
    /// Comparisons then see contents, not only sizes
    #[arg(long)]
    digests: bool,
}

pub(super) fn run(arguments: Arguments, progress: &Terminal) -> Result<Outcome> {
    let budget = memory::by_default();
    let settings = arguments.set.resolve(&Environment::of_process())?;
    if let Some(jobs) = arguments.matrix {
        let matrix = pipeline::plan_matrix(&settings, jobs, &budget, progress)?;
        progress.print_json_line(&matrix)?;
        return Ok(Outcome::Done);
    }
    let digests = if arguments.digests { Digests::OfFiles } else { Digests::Without };
    let earlier = arguments.diff.as_deref().map(|path| listing::read(path, &budget, &|_| Ok(None)));
    let earlier = earlier.transpose()?;
    let planned = pipeline::plan_set(&settings, digests, &budget, progress)?;
    progress.findings(&planned.findings);
    let Some(earlier) = earlier else {
        match (arguments.json, arguments.dot) {
            (true, _) => progress.print_json(&planned)?,
            (_, true) => progress.print(&render::plan_dot(&planned))?,
            _ => progress.print(&render::plan_text(&planned, arguments.details))?,
        }
        return Ok(Outcome::Done);
    };
    let difference = difference::between(&earlier, &planned.listing());
    progress.print_result(arguments.json, &difference, || render::difference_text(&difference))?;
    Ok(if arguments.exit_code && !difference.is_empty() {
        Outcome::ChecksFailed
    } else {
        Outcome::Done
    })
}

//! `rockpack thin`: removes the device code of other GPUs from existing files.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::gfx::Target;
use rockpack_core::run::threads;
use rockpack_hardware::{Machine, Skipped};
use rockpack_report::words::counted;
use rockpack_report::{Findings, Progress, found};

use super::default_budget;
use super::progress::Terminal;
use super::render::{TextTable, bytes};
use crate::settings::{output_path, target_id};
use crate::thin::{self, ThinReport, ThinSettings, ThinnedInput};

/// Remove the device code of other GPUs from libraries, programs, code files and kernel databases.
///
/// The files stay fat, and run as before on the GPUs whose code is kept: code for the given targets, for their generic
/// targets, and SPIR-V. Files with code for other targets only are removed; everything else is unchanged, byte for
/// byte. With --in-place, each file is replaced atomically: even after an error, it is the old or the new one.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("place").args(["out", "in_place", "dry_run"]).multiple(true).required(true))]
pub(super) struct Arguments {
    /// Folders, such as an install prefix or site-packages, tarballs, and single files
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Targets whose code is kept, e.g. gfx1100 or gfx90a:xnack-, or `auto` for the GPUs of this machine
    ///
    /// May be given several times. An arch without features means all of its variants
    #[arg(long, required = true, value_delimiter = ',', value_name = "TARGET|auto", value_parser = choice)]
    target: Vec<Choice>,
    /// Folder for thinned copies, each with the name of its PATH; created if missing
    #[arg(long, value_name = "DIR", value_parser = output_path(), conflicts_with = "in_place")]
    out: Option<PathBuf>,
    /// Change the files themselves
    #[arg(long)]
    in_place: bool,
    /// Change nothing, and show what would be saved
    #[arg(long)]
    dry_run: bool,
    /// Also change files that dpkg or rpm installed
    #[arg(long)]
    allow_owned: bool,
    /// Remove all code of a library or program that has none for the targets
    #[arg(long)]
    allow_empty: bool,
    /// Folder to read instead of /sys
    #[arg(long, value_name = "DIR", default_value = "/sys", hide_short_help = true)]
    sysfs: PathBuf,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// A value of `--target`.
#[derive(Debug, Clone)]
enum Choice {
    Named(Target),
    OfMachine,
}

fn choice(text: &str) -> Result<Choice, String> {
    if text == "auto" {
        return Ok(Choice::OfMachine);
    }
    let target = target_id(text)?;
    // With an unsupported feature, code of all variants would be kept.
    let known = target.base().supported_features();
    match target.features().iter().find(|(name, _)| !known.contains(&name.as_str())) {
        Some((name, _)) => Err(format!("{} has no feature `{name}`", target.base())),
        None => Ok(Choice::Named(target)),
    }
}

pub(super) fn run(arguments: Arguments, terminal: &Terminal) -> Result<()> {
    let (mut targets, mut own_targets) = (Vec::new(), Vec::new());
    for choice in &arguments.target {
        match choice {
            Choice::Named(target) => targets.push(target.clone()),
            Choice::OfMachine => own_targets = targets_of_machine(&arguments, terminal)?,
        }
    }
    let settings = ThinSettings {
        paths: arguments.paths,
        targets,
        own_targets,
        out: arguments.out,
        dry_run: arguments.dry_run,
        allow_owned: arguments.allow_owned,
        allow_empty: arguments.allow_empty,
        budget: default_budget(),
    };
    let report = threads::with(0, || thin::run(&settings, terminal))?;
    let (mut kept_fat, mut others) = (Findings::default(), 0_u64);
    for finding in report.findings.iter() {
        match finding.found::<found::KeptFat>() {
            Some(_) => kept_fat.add(finding.clone()),
            None => others += 1,
        }
    }
    terminal.print_result(arguments.json, &report, || text(&report, settings.dry_run))?;
    if others > 0 {
        let files = counted(others, "file");
        terminal.note(&format!(
            "device code is kept in {files} of other kinds, such as static libraries: --json lists them"
        ));
    }
    terminal.findings(&kept_fat);
    Ok(())
}

fn targets_of_machine(arguments: &Arguments, terminal: &Terminal) -> Result<Vec<Target>> {
    let Machine { gpus, skipped } = Machine::read(&arguments.sysfs);
    for Skipped { what, why } in skipped {
        terminal.note(&format!("{what}: {why}"));
    }
    if gpus.is_empty() {
        let error = Error::new(Kind::Usage, "this machine has no GPU whose target is known");
        return Err(error.hint("name the targets; `rockpack gpu` shows those of a product"));
    }
    Ok(gpus.iter().flat_map(|gpu| gpu.targets()).cloned().map(Target::from).collect())
}

/// The changed files of all paths, then the sums.
fn text(report: &ThinReport, dry_run: bool) -> String {
    let mut table = TextTable::new(["file", ">before", ">after"]);
    for input in &report.inputs {
        for file in &input.files {
            let after = file.after.map_or_else(|| "removed".to_owned(), bytes);
            let is_input = input.files_before == 1 && input.path.ends_with(file.path.as_str());
            let below = if is_input { String::new() } else { format!("/{}", file.path) };
            table.row([format!("{}{below}", input.path), bytes(file.before), after]);
        }
    }
    let kept = Vec::from_iter(report.targets.iter().map(Target::to_string)).join(", ");
    let changes = report.inputs.iter().any(|input| !input.files.is_empty());
    let mut text = if changes { table.render() } else { String::new() };
    text.extend(report.inputs.iter().map(|input| sum(input, dry_run)));
    text + &text_line!("code for {kept} is kept")
}

fn sum(input: &ThinnedInput, dry_run: bool) -> String {
    let ThinnedInput { path, bytes_before, bytes_after, files_before, files } = input;
    let removed = files.iter().filter(|file| file.after.is_none()).count();
    text_line!(
        "{path}: {} {} {}; of {}, {} {}, {} removed",
        bytes(*bytes_before),
        if dry_run { "would become" } else { "became" },
        bytes(*bytes_after),
        counted(*files_before, "file"),
        files.len() - removed,
        if dry_run { "would be thinned" } else { "thinned" },
        removed
    )
}

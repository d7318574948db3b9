//! `rockpack build`: artifacts in, packages out; and `rockpack config`: the settings of a build, and the schema of
//! configurations.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use rockpack_core::content::is_file;
use rockpack_core::error::Result;
use rockpack_files::unlistable_mode;
use rockpack_package::Format;
use rockpack_package::receipt::listing::Size;
use rockpack_package::receipt::{self, Receipt};
use rockpack_repo::Published;
use rockpack_report::words::counted;
use rockpack_report::{Findings, Progress, found};
use serde::Serialize;
use serde_json::Value;

use super::progress::Terminal;
use super::render::{
    TextTable, bytes, count_or_dash, installed_legend, shell_word, size, words_or,
};
use super::repo::{published_text, verify_command};
use super::report;
use crate::pipeline::{self, Built};
use crate::report::{Report, read};
use crate::settings::{
    self, BuildArguments, BuildSettings, Environment, GivenOptions, Resolved, output_path,
};

/// Build packages from install trees, libraries, or shards of artifacts.
///
/// Writes the packages into OUT, then packages.json: the content of each package, and where each code object of the
/// input went. With a signing key, packages.json.asc is its signature. The set of an earlier build is replaced:
/// packages that the new set does not have are removed and listed. SOURCE_DATE_EPOCH sets the time of headers,
/// changelogs, signatures, SPDX documents and the indexes of --repo.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    build: BuildArguments,
    /// Print the receipt as JSON
    ///
    /// `removed` lists the removed packages of an earlier set
    #[arg(long, help_heading = None)]
    json: bool,
    /// Write a report, .html or .md; an existing file is replaced
    ///
    /// The same as `rockpack report` writes. With --since, it compares the set with the last of these that has a
    /// packages.json
    #[arg(long, value_name = "FILE", help_heading = None, value_parser = output_path(), conflicts_with = "partition")]
    report: Option<PathBuf>,
}

pub(super) fn run(arguments: Arguments, given: &GivenOptions, progress: &Terminal) -> Result<()> {
    let environment = Environment::of_process();
    let readable_secrets = arguments.build.signing.readable_secrets();
    let settings = arguments.build.resolve(given, &environment)?;
    readable_secrets.iter().for_each(|finding| progress.warn(finding));
    let out = &settings.output.folder;
    arguments.report.as_deref().map_or(Ok(()), |file| report::check_output(file, Some(out)))?;
    let is_built_again = is_file(&out.join(receipt::FILE_NAME))?;
    // Read before the build, which may replace it. A plan or a folder without a receipt is not enough.
    let since = settings.set.since.iter().rev().filter(|path| {
        arguments.report.is_some() && (path.is_file() || path.join(receipt::FILE_NAME).is_file())
    });
    let mut since = since.map(|path| read(path));
    let since = since.find(|it| it.as_ref().map_or(true, |earlier| earlier.receipt.is_some()));
    let since = since.transpose()?;
    let (built, published) = pipeline::build(&settings, progress)?;
    progress.summary();
    let mut findings = built.receipt.findings.clone();
    if is_built_again {
        findings.extend(unlistable_folder(out)?);
    }
    findings.extend(published.iter().flat_map(|published| published.findings.iter().cloned()));
    let printed = BuildOutput { built: &built, published: published.as_ref() };
    progress.print_result(arguments.json, &printed, || {
        let more = published.as_ref().map(published_text).unwrap_or_default();
        let removed = built.removed.iter();
        let removed = removed.map(|name| text_line!("removed {name} of the earlier set"));
        set_text(&built.receipt) + &removed.collect::<String>() + &more
    })?;
    if let Some(file) = &arguments.report {
        report::write(&Report::new(&read(out)?, since.as_ref(), &report::remedy)?, file, progress)?;
    }
    progress.note(&closing_line(&built.receipt, &settings, published.as_ref()));
    progress.findings(&findings);
    Ok(())
}

/// The finding that other users cannot list the output folder, for folders that an earlier run may have created.
fn unlistable_folder(out: &Path) -> Result<Findings> {
    let mut findings = Findings::default();
    if let Some(mode) = unlistable_mode(out)? {
        let (folder, mode) = (out.display().to_string(), format!("{mode:04o}"));
        findings.add(found::FolderClosed { folder, mode, others: 0 });
    }
    Ok(findings)
}

#[derive(Serialize)]
struct BuildOutput<'a> {
    #[serde(flatten)]
    built: &'a Built,
    #[serde(skip_serializing_if = "Option::is_none")]
    published: Option<&'a Published>,
}

/// Show the settings of a build, or the schema of packaging configurations.
#[derive(Debug, Args)]
pub(super) struct ConfigArguments {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    Show(Box<ShowArguments>),
    /// Print the JSON Schema of packaging configurations, for editors and checks
    Schema,
}

/// Show every setting that `build` or `plan` would have with the same options, and where its value comes
/// from: an option, a place in the configuration, a variable, the naming scheme, the artifacts, or a default.
///
/// Fails wherever `build` fails before it reads input. Neither PATH nor --out is needed.
#[derive(Debug, Args)]
#[command(mut_group("inputs", |group| group.required(false)))]
#[command(mut_arg("out", |argument| argument.required(false)))]
struct ShowArguments {
    #[command(flatten)]
    build: BuildArguments,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run_config(
    arguments: ConfigArguments,
    given: &GivenOptions,
    terminal: &Terminal,
) -> Result<()> {
    match arguments.command {
        ConfigCommand::Schema => terminal.print_json(&settings::schema()),
        ConfigCommand::Show(arguments) => {
            let shown = arguments.build.show(given, &Environment::of_process())?;
            terminal.print_result(arguments.json, &shown, || settings_text(&shown))
        }
    }
}

/// The packages of a set as a table, and their sums. `inspect` shows a receipt with it, so sums must not overflow.
pub(super) fn set_text(receipt: &Receipt) -> String {
    let mut in_archives: BTreeMap<&str, usize> = BTreeMap::new();
    let archived = receipt.code_objects.iter().filter(|it| it.place.path().ends_with(".kpack"));
    archived.for_each(|code| *in_archives.entry(&code.package).or_default() += 1);
    let table = match receipt.packages.len() {
        0 => String::new(),
        _ => package_table(receipt, &in_archives) + "\n",
    };
    let total: Size = receipt.packages.iter().map(|package| Size::exact(package.size)).sum();
    let part = receipt.part.as_ref().map_or(String::new(), |it| format!(" of part {}", it.part));
    let mut text = format!(
        "{table}{}{part}, {}; {} of the input packed, {} of them in kernel archives\n",
        counted(receipt.packages.len(), "package"),
        size(total),
        counted(receipt.code_objects.len(), "code object"),
        in_archives.values().sum::<usize>(),
    );
    if let Some(kept) = &receipt.kept {
        let current_packages = counted(kept.packages.len(), "package");
        text.push_str(&format!("{current_packages} of earlier sets kept\n"));
    }
    text + &kernels_text(receipt) + installed_legend(receipt.packages.iter().map(|it| it.format))
}

/// The sums of the kernel packages of each format.
fn kernels_text(receipt: &Receipt) -> String {
    let mut text = String::new();
    for format in Format::ALL {
        let own = receipt.packages.iter().filter(|it| it.format == format && it.role.is_kernels());
        let ids: BTreeSet<&str> = own.clone().map(|package| package.id.as_str()).collect();
        if ids.is_empty() {
            continue;
        }
        let code = receipt.code_objects.iter().filter(|code| ids.contains(code.package.as_str()));
        let sum = |sizes: &mut dyn Iterator<Item = u64>| size(sizes.map(Size::exact).sum());
        let download = sum(&mut own.clone().map(|package| package.size));
        let installed = sum(&mut own.map(|package| package.installed_size));
        let code = sum(&mut code.map(|code| code.size));
        text += &text_line!(
            "kernel packages (.{format}): {download} to download, {installed} installed; {code} of \
             code before compression"
        );
    }
    text
}

/// The packages, with the number of code objects that each has in kernel archives.
fn package_table(receipt: &Receipt, in_archives: &BTreeMap<&str, usize>) -> String {
    let mut table = TextTable::new(["package", ">size", ">installed", ">code objects", "archs"]);
    for package in &receipt.packages {
        table.row([
            package.file_name.clone(),
            bytes(package.size),
            bytes(package.installed_size),
            count_or_dash(in_archives.get(&*package.id).copied().unwrap_or_default()),
            words_or(&package.archs, "-"),
        ]);
    }
    table.render()
}

/// One line at the end of a run: the place of the packages, and the next step.
fn closing_line(
    receipt: &Receipt,
    settings: &BuildSettings,
    published: Option<&Published>,
) -> String {
    let folder = &settings.output.folder;
    let packages = counted(receipt.packages.len(), "package");
    let place = folder.display();
    if let Some(part) = settings.output.part {
        return format!(
            "{packages} of part {part} in {place}; when all parts are built, join them with \
             `rockpack verify FOLDERS --join packages.json`"
        );
    }
    match settings.publish.as_ref().zip(published) {
        Some((publish, published)) => {
            let repo = &publish.out;
            let (shown, command) = (repo.display(), verify_command(published, repo));
            format!("{packages} in {place}, published in {shown}; check them with `{command}`")
        }
        None if receipt.packages.is_empty() => {
            format!("no package changed; {place} has the receipt of the complete set")
        }
        None => {
            let word = shell_word(folder);
            format!("{packages} in {place}; publish them with `rockpack repo {word} --out REPO`")
        }
    }
}

/// One line for each setting: its key, its value, the origin of the value.
fn settings_text(settings: &[Resolved]) -> String {
    let mut table = TextTable::new(["key", "value", "from"]);
    for Resolved { key, value, unset, origin } in settings {
        let value = unset.as_ref().map_or_else(|| value_text(value), |words| format!("({words})"));
        table.row([key.clone(), value, origin.to_string()]);
    }
    table.render()
}

fn value_text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(list) if !list.is_empty() && !list.iter().any(Value::is_object) => {
            list.iter().map(value_text).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

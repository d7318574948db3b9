//! `rockpack plan`: predicts the result of a build, as text, JSON or a Graphviz graph, and compares it with another
//! set.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use clap::Args;
use rockpack_core::error::Result;
use rockpack_emit::pack::partition::Job;
use rockpack_emit::pack::planned::{DefaultSizes, Digests, GroupSum, Planned};
use rockpack_package::RelationKind;
use rockpack_package::receipt::SetPart;
use rockpack_package::receipt::difference::{
    self, Changed, ChangedPackage, Difference, UnpairedPackage,
};
use rockpack_package::receipt::listing::{self, ListedMember, ListedPackage, Size};
use rockpack_report::Progress;
use rockpack_report::words::counted;

use super::progress::Terminal;
use super::render::{TextTable, bytes, installed_legend, size, words_or};
use super::terminal::json_text;
use super::{Outcome, default_budget};
use crate::pipeline;
use crate::settings::{Environment, SetArguments};

/// Show the package set that `build` would write, before anything is compressed.
///
/// Names, versions, relations, paths and sizes of installed files are exact. Sizes of kernel archives, of their
/// manifests and of package files are estimated from samples, and marked with ~. Writes nothing.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    set: SetArguments,
    /// Also show the relations and files of every package
    #[arg(long, conflicts_with_all = ["json", "dot", "diff"])]
    details: bool,
    /// Print JSON: the plan, or with --diff the differences
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
    /// Print how the set is divided into at most N parts
    ///
    /// One line of JSON for the matrix of a CI system. `include` has one object for each part, whose `partition` is the
    /// value for `build --partition`. The parts have similar sizes, as far as packages allow it
    #[arg(long, value_name = "N", conflicts_with_all = ["details", "dot", "diff", "digests"],
        value_parser = clap::value_parser!(u32).range(1..=i64::from(SetPart::MOST)))]
    matrix: Option<u32>,
    /// Compute the digest of every file
    ///
    /// Comparisons then include contents, not only sizes
    #[arg(long)]
    digests: bool,
}

pub(super) fn run(arguments: Arguments, progress: &Terminal) -> Result<Outcome> {
    let budget = default_budget();
    let settings = arguments.set.resolve(&Environment::of_process())?;
    if let Some(jobs) = arguments.matrix {
        let include = pipeline::plan_matrix(&settings, jobs, &budget, progress)?;
        imbalance_note(&include).iter().for_each(|note| progress.note(note));
        let matrix = BTreeMap::from([("include", include)]);
        progress.print(&json_text(serde_json::to_string(&matrix))?)?;
        return Ok(Outcome::Done);
    }
    let digests = if arguments.digests { Digests::OfFiles } else { Digests::Without };
    let earlier = arguments.diff.as_deref().map(|path| listing::read(path, &budget, &|_| Ok(None)));
    let earlier = earlier.transpose()?;
    let planned = pipeline::plan_set(&settings, digests, &budget, progress)?;
    let Some(earlier) = earlier else {
        match (arguments.json, arguments.dot) {
            (true, _) => progress.print_json(&planned)?,
            (_, true) => progress.print(&plan_dot(&planned))?,
            _ => progress.print(&plan_text(&planned, arguments.details))?,
        }
        progress.findings(&planned.findings);
        return Ok(Outcome::Done);
    };
    let difference = difference::between(&earlier, &planned.listing());
    progress.print_result(arguments.json, &difference, || difference_text(&difference))?;
    progress.findings(&planned.findings);
    let is_failure = arguments.exit_code && !difference.is_empty();
    Ok(if is_failure { Outcome::ChecksFailed } else { Outcome::Done })
}

/// The note that one part is more than twice as large as parts are on average. Such a part is one unit, which `divide`
/// cannot cut.
fn imbalance_note(jobs: &[Job]) -> Option<String> {
    let total: u64 = jobs.iter().map(|job| job.bytes).sum();
    let largest = jobs.iter().max_by_key(|job| job.bytes)?;
    let is_uneven = largest.bytes.saturating_mul(jobs.len() as u64) > total.saturating_mul(2);
    let (part, own, total) = (&largest.partition, bytes(largest.bytes), bytes(total));
    is_uneven.then(|| {
        format!(
            "note: part {part} is {own} of {total} to compress: a host package and its kernel packages cannot \
             be divided"
        )
    })
}

/// The packages, and the needs of each group; with `details` also the relations and files of every package.
fn plan_text(planned: &Planned, details: bool) -> String {
    let mut text = packages_text(planned);
    text.push('\n');
    if !planned.groups.is_empty() {
        text.push_str(&groups_text(&planned.groups));
        if planned.groups.iter().any(|group| group.by_default.is_some()) {
            text += "`archive_level`, `code_files`: docs/guides/smaller.md compares their values\n";
        }
        text.push('\n');
    }
    if details {
        text.extend(planned.packages.iter().map(details_text));
    }
    text
}

fn packages_text(planned: &Planned) -> String {
    let columns = ["package", ">download", ">installed", ">files", ">needs", "archs"];
    let mut table = TextTable::new(columns);
    for package in &planned.packages {
        let files = package.members.iter().filter(|member| !member.is_directory()).count();
        table.row([
            package.file_name.clone(),
            size(package.download),
            size(package.installed),
            files.to_string(),
            package.relations_of(RelationKind::Depends).count().to_string(),
            words_or(&package.archs, "-"),
        ]);
    }
    let mut text = table.render();
    let total: Size = planned.packages.iter().map(|package| package.download).sum();
    let (count, prefix) = (counted(planned.packages.len(), "package"), &planned.prefix);
    text.push('\n');
    text.push_str(&text_line!("{count}, {}; installed below {prefix}", size(total)));
    text + installed_legend(planned.packages.iter().map(|it| it.format))
}

fn groups_text(groups: &[GroupSum]) -> String {
    let mut table = TextTable::new(["group", "format", ">packages", ">download", ">installed"]);
    for group in groups {
        table.row([
            group.group.clone(),
            group.format.to_string(),
            group.packages.len().to_string(),
            size(group.download),
            size(group.installed),
        ]);
        if let Some(DefaultSizes { download, installed }) = group.by_default {
            let [blank, name] = ["", "by default"].map(str::to_owned);
            table.row([blank.clone(), name, blank, size(download), size(installed)]);
        }
    }
    table.render()
}

fn details_text(package: &ListedPackage) -> String {
    let mut text = text_line!("{}", package.file_name);
    text.extend(package.relations.iter().map(|it| text_line!("  {}: {it}", it.kind)));
    let shown = package.members.iter().filter(|member| !member.is_directory());
    text.extend(shown.map(|member| text_line!("  {}", member_text(member))));
    text.push('\n');
    text
}

fn member_text(member: &ListedMember) -> String {
    match (&member.target, member.size) {
        (Some(target), _) => format!("{} -> {target}", member.path),
        (None, Some(bytes)) => format!("{} {}", member.path, size(bytes)),
        (None, None) => member.path.clone(),
    }
}

/// The packages of the first format as a graph in Graphviz's language. Packages of a group are
/// drawn together; packages and capabilities from outside of the set are dotted.
fn plan_dot(planned: &Planned) -> String {
    let format = planned.packages.first().map(|package| package.format);
    let packages: Vec<_> = planned.packages.iter().filter(|p| Some(p.format) == format).collect();
    let names: BTreeSet<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    let mut text = String::from("digraph packages {\n  rankdir=LR;\n  node [shape=box];\n");
    let mut clusters: BTreeMap<Option<&str>, String> = BTreeMap::new();
    for package in &packages {
        let nodes = clusters.entry(package.group.as_deref()).or_default();
        let label = format!("{}\\n{}", escaped(&package.name), size(package.download));
        nodes.push_str(&text_line!("    \"{}\" [label=\"{label}\"];", escaped(&package.name)));
    }
    for (index, (group, nodes)) in clusters.iter().enumerate() {
        match group {
            None => text.push_str(nodes),
            Some(group) => {
                let label = text_line!("    label=\"{}\";", escaped(group));
                text.push_str(&format!("  subgraph cluster_{index} {{\n{label}{nodes}  }}\n"));
            }
        }
    }
    let (edges, outside) = edges(&packages, &names);
    for name in outside {
        text.push_str(&text_line!("  \"{}\" [style=dotted];", escaped(&name)));
    }
    text + &edges + "}\n"
}

/// The edges between packages, and the names in them that are not packages of the set.
fn edges(packages: &[&ListedPackage], names: &BTreeSet<&str>) -> (String, BTreeSet<String>) {
    let mut outside = BTreeSet::new();
    let mut text = String::new();
    for package in packages {
        for (kind, style) in
            [(RelationKind::Depends, "solid"), (RelationKind::Recommends, "dashed")]
        {
            let needed: BTreeSet<&str> =
                package.relations_of(kind).map(|relation| relation.name.as_str()).collect();
            for name in needed {
                if !names.contains(name) {
                    outside.insert(name.to_owned());
                }
                let (from, to) = (escaped(&package.name), escaped(name));
                text.push_str(&text_line!("  \"{from}\" -> \"{to}\" [style={style}];"));
            }
        }
    }
    (text, outside)
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// One line for each difference, `+` for new and `-` for removed things, then what was not compared.
fn difference_text(difference: &Difference) -> String {
    let mut text = text_line!("from {} to {}", difference.earlier, difference.later);
    if let Some(Changed { from, to }) = &difference.prefix {
        text.push_str(&text_line!("prefix: {from} → {to}"));
    }
    difference.removed.iter().for_each(|package| text.push_str(&unpaired_text("-", package)));
    difference.added.iter().for_each(|package| text.push_str(&unpaired_text("+", package)));
    for moved in &difference.moved {
        let (format, path) = (&moved.format, &moved.path);
        text.push_str(&text_line!("moved {format} {path}: {} → {}", moved.from, moved.to));
    }
    difference.changed.iter().for_each(|package| text.push_str(&changed_text(package)));
    if difference.is_empty() {
        text.push_str("no differences\n");
    }
    text + &uncompared_text(difference)
}

fn unpaired_text(sign: &str, package: &UnpairedPackage) -> String {
    let UnpairedPackage { format, name, version, architecture, download, installed } = package;
    let (download, installed) = (size(*download), size(*installed));
    text_line!(
        "{sign} {format} {name} {version} {architecture} ({download}, installed {installed})"
    )
}

fn changed_text(package: &ChangedPackage) -> String {
    let mut head = format!("~ {} {}", package.format, package.name);
    for Changed { from, to } in [&package.version, &package.architecture].into_iter().flatten() {
        head.push_str(&format!(" {from} → {to}"));
    }
    let mut text = String::new();
    for (what, sizes) in [("download", &package.download), ("installed", &package.installed)] {
        if sizes.is_resized() {
            let Changed { from, to } = sizes;
            text.push_str(&text_line!("    {what}: {} → {}", bytes(from.bytes), bytes(to.bytes)));
        }
    }
    text.extend(package.relations_removed.iter().map(|it| text_line!("    - {}: {it}", it.kind)));
    text.extend(package.relations_added.iter().map(|it| text_line!("    + {}: {it}", it.kind)));
    text.extend(package.files_removed.iter().map(|path| text_line!("    - {path}")));
    text.extend(package.files_added.iter().map(|path| text_line!("    + {path}")));
    for file in &package.files_changed {
        let how: Vec<String> = file.changes.iter().map(ToString::to_string).collect();
        text.push_str(&text_line!("    ~ {} ({})", file.path, how.join(", ")));
    }
    // A package that differs only in moved paths has nothing else to show.
    if text.is_empty() && package.version.is_none() && package.architecture.is_none() {
        return text;
    }
    text_line!("{head}") + &text
}

fn uncompared_text(difference: &Difference) -> String {
    let mut text = String::new();
    if difference.by_size > 0 {
        text.push_str(&text_line!(
            "{} of the same size {} compared by size only; --digests compares contents",
            counted(difference.by_size, "file"),
            if difference.by_size == 1 { "was" } else { "were" }
        ));
    }
    if difference.uncompared > 0 {
        text.push_str(&text_line!(
            "kernel archives and manifests not compared: {}; --digests compares the code objects of archives \
             with those of a packages.json",
            difference.uncompared
        ));
    }
    let sizes = difference.changed.iter().flat_map(|it| [&it.download, &it.installed]);
    let estimated = sizes.filter(|sizes| sizes.is_estimated()).count();
    if estimated > 0 {
        text.push_str(&text_line!(
            "sizes of changed packages not compared: {estimated}; they are estimates, which --json \
             shows"
        ));
    }
    text
}

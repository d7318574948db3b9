//! A plan, for people and for Graphviz.

use std::collections::{BTreeMap, BTreeSet};

use super::table::TextTable;
use super::units::size;
use rockpack_emit::pack::planned::{GroupSum, Planned};
use rockpack_package::RelationKind;
use rockpack_package::receipt::listing::{ListedMember, ListedPackage, Size};
use rockpack_report::words::counted;

/// The packages, and the needs of each group; with `details` also the relations and files of every package.
pub fn plan_text(planned: &Planned, details: bool) -> String {
    let mut text = packages_text(planned);
    text.push('\n');
    if !planned.groups.is_empty() {
        text.push_str(&groups_text(&planned.groups));
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
        let archs = if package.archs.is_empty() { "-".to_owned() } else { package.archs.join(" ") };
        table.row([
            package.file_name.clone(),
            size(package.download),
            size(package.installed),
            files.to_string(),
            package.relations_of(RelationKind::Depends).count().to_string(),
            archs,
        ]);
    }
    let mut text = table.render();
    let total: Size = planned.packages.iter().map(|package| package.download).sum();
    let (count, prefix) = (counted(planned.packages.len(), "package"), &planned.prefix);
    text.push('\n');
    text.push_str(&text_line!("{count}, {}; installed below {prefix}", size(total)));
    text
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
pub fn plan_dot(planned: &Planned) -> String {
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

/// The lines between packages, and the names in them that are no packages of the set.
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

/// Escapes the text of a string in quotes.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

//! The difference between two sets, for people.

use super::units::size;
use rockpack_package::receipt::difference::{Changed, ChangedPackage, Difference, UnpairedPackage};
use rockpack_package::receipt::listing::Size;
use rockpack_report::words::counted;

/// One line for each difference, `+` for new and `-` for removed things, and a last one with the extent of
/// the comparison.
pub fn difference_text(difference: &Difference) -> String {
    let mut text = text_line!("from {} to {}", difference.earlier, difference.later);
    if let Some(Changed { from, to }) = &difference.prefix {
        text.push_str(&text_line!("prefix: {from} → {to}"));
    }
    difference.removed.iter().for_each(|package| text.push_str(&named("-", package)));
    difference.added.iter().for_each(|package| text.push_str(&named("+", package)));
    for moved in &difference.moved {
        let (format, path) = (&moved.format, &moved.path);
        text.push_str(&text_line!("moved {format} {path}: {} → {}", moved.from, moved.to));
    }
    difference.changed.iter().for_each(|package| text.push_str(&changed(package)));
    if difference.is_empty() {
        text.push_str("no differences\n");
    }
    text + &limits(difference)
}

fn named(sign: &str, package: &UnpairedPackage) -> String {
    let UnpairedPackage { format, name, version, architecture, download, installed } = package;
    let (download, installed) = (size(*download), size(*installed));
    text_line!(
        "{sign} {format} {name} {version} {architecture} ({download}, installed {installed})"
    )
}

fn changed(package: &ChangedPackage) -> String {
    let mut head = format!("~ {} {}", package.format, package.name);
    for Changed { from, to } in [&package.version, &package.architecture].into_iter().flatten() {
        head.push_str(&format!(" {from} → {to}"));
    }
    let mut text = text_line!("{head}");
    text.push_str(&sizes("download", &package.download));
    text.push_str(&sizes("installed", &package.installed));
    text.extend(package.relations_removed.iter().map(|it| text_line!("    - {}: {it}", it.kind)));
    text.extend(package.relations_added.iter().map(|it| text_line!("    + {}: {it}", it.kind)));
    text.extend(package.files_removed.iter().map(|path| text_line!("    - {path}")));
    text.extend(package.files_added.iter().map(|path| text_line!("    + {path}")));
    for file in &package.files_changed {
        let how: Vec<String> = file.changes.iter().map(ToString::to_string).collect();
        text.push_str(&text_line!("    ~ {} ({})", file.path, how.join(", ")));
    }
    text
}

fn sizes(what: &str, Changed { from, to }: &Changed<Size>) -> String {
    if from == to {
        String::new()
    } else {
        text_line!("    {what}: {} → {}", size(*from), size(*to))
    }
}

fn limits(difference: &Difference) -> String {
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
            "kernel archives and manifests not compared: {}; their bytes are known once they \
             are built, the code objects of archives with --digests and from a packages.json",
            difference.uncompared
        ));
    }
    text
}

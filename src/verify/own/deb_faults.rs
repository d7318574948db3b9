//! Features of a `.deb` that rockpack never writes: fields on which dpkg and apt may act, files that dpkg
//! keeps as configuration, archives in another form.

use std::collections::BTreeSet;

use rockpack_base::formats::deb::DebReader;
use rockpack_base::formats::payload::Oddities;

use super::installed::Installed;
use super::rpm_header::{is_loader_file, may_be};
use crate::package::DEB_FIELDS;
use crate::verify::problem::{DebFault, LeftOutAs};

/// The fields that a build writes, beside those of relations.
const FIELDS: [&str; 12] = [
    "Package",
    "Version",
    "Architecture",
    "Maintainer",
    "Installed-Size",
    "Section",
    "Priority",
    "Homepage",
    "X-ROCm-GPU-Architecture",
    "Build-Ids",
    "Auto-Built-Package",
    "Description",
];

/// The beginning of a line of `conffiles` that has dpkg remove a file.
const REMOVED: &str = "remove-on-upgrade";

/// Finds all such features in a package whose files are known.
pub(super) fn of(deb: &DebReader, oddities: &Oddities, package: &Installed) -> Vec<DebFault> {
    let fields = deb.control().names().map(|name| name.to_string()).filter(|name| is_foreign(name));
    let mut faults: Vec<DebFault> = fields
        .map(|name| {
            let value = deb.control().get(name.as_str()).cloned().unwrap_or_default();
            DebFault::Field { name, value }
        })
        .collect();
    let kept: BTreeSet<String> = deb.conffiles().map(|path| format!("/{path}")).collect();
    let lost = package
        .paths
        .keys()
        .filter(|path| is_loader_file(package, path))
        .filter(|path| !kept.contains(*path));
    faults.extend(lost.map(|path| DebFault::NotKept { path: path.clone() }));
    let listed = deb.control_files().get("conffiles").map(|text| text.lines());
    let lines = listed.into_iter().flatten().map(str::trim).filter(|line| !line.is_empty());
    for line in lines.filter(|line| line.starts_with(REMOVED) || !may_stay(line, package)) {
        faults.push(DebFault::Conffile { line: line.to_owned() });
    }
    if let Some(first) = &oddities.first {
        let (first, others) = (first.clone(), oddities.count - 1);
        faults.push(DebFault::Archive { first, others });
    }
    faults
}

fn is_foreign(field: &str) -> bool {
    let mut written = FIELDS.into_iter().chain(DEB_FIELDS.map(|(_, name)| name));
    !written.any(|own| own.eq_ignore_ascii_case(field))
}

fn may_stay(path: &str, package: &Installed) -> bool {
    let node = package.paths.get(path);
    node.is_some_and(|node| may_be(LeftOutAs::Config, path, node))
}

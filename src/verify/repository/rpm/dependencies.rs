//! The requirements of packages on each other, for each machine.

use std::collections::BTreeSet;

use super::lists::{RelationEntry, RpmEntry};
use super::names::REPOMD;
use crate::package::{Comparison, Format};
use crate::verify::problem::OpenDependency;
use crate::verify::repository::closure::{self, KnownNames, PackageNode, Wish};
use crate::verify::repository::context::Context;

/// More than any repository has; what is for all of them is held against the packages of each.
const MACHINES_MAX: usize = 64;

pub(super) fn check(context: &mut Context<'_>, primary: &[RpmEntry]) {
    let nodes: Vec<(PackageNode<'_>, &str)> = primary.iter().map(node).collect();
    let known = KnownNames::of(nodes.iter().map(|(node, _)| node));
    let archs: BTreeSet<&str> = nodes.iter().map(|(_, arch)| *arch).collect();
    let machines: Vec<&str> =
        archs.iter().filter(|arch| !["noarch", "src"].contains(*arch)).copied().collect();
    let machines = if machines.is_empty() { vec!["noarch"] } else { machines };
    if machines.len() > MACHINES_MAX {
        let count = machines.len();
        let reason = format!("has packages for {count} architectures, more than {MACHINES_MAX}");
        context.bad_index(REPOMD, reason);
        return;
    }
    for machine in machines {
        let together: Vec<&PackageNode<'_>> = nodes
            .iter()
            .filter(|(_, arch)| *arch == machine || *arch == "noarch")
            .map(|(node, _)| node)
            .collect();
        let open = closure::open(&together, &known, Format::Rpm);
        context.open_wishes(open, |alternatives| {
            let arch = machine.to_owned();
            OpenDependency::Rpm { alternatives, arch }
        });
    }
}

/// A package and its architecture. Files and rich dependencies are for the client's solver.
fn node(package: &RpmEntry) -> (PackageNode<'_>, &str) {
    let provides = package.list("rpm:provides").iter();
    let offers = provides.map(|entry| (&*entry.name, bound(entry).map(|(_, version)| version)));
    let requires = package.list("rpm:requires").iter();
    let plain = requires.filter(|entry| !entry.name.starts_with(['/', '(']));
    let wishes =
        plain.map(|entry| Wish { name: &entry.name, bound: bound(entry), is_alternative: false });
    let (offers, wishes) = (offers.collect(), wishes.collect());
    (PackageNode { path: &package.path, offers, wishes }, &package.arch)
}

fn bound(entry: &RelationEntry) -> Option<(Comparison, &str)> {
    Comparison::of_index(&entry.flags).map(|sign| (sign, &*entry.evr))
}

//! What packages require of each other, for each machine.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use super::lists::{RelationEntry, RpmEntry};
use super::names::REPOMD;
use crate::formats::rpm;
use crate::verify::problem::{IndexFault, OpenDependency, Problem};
use crate::verify::repository::closure::{self, OpenWish, PackageNode, Sign, VersionRules, Wish};
use crate::verify::repository::context::Context;

/// More than any repository has; what is for all of them is held against the packages of each.
const MACHINES_MAX: usize = 64;

pub(super) fn check(context: &mut Context<'_>, primary: &[RpmEntry]) {
    let nodes: Vec<(PackageNode, String)> = primary.iter().map(node).collect();
    let known: BTreeSet<&str> =
        nodes.iter().flat_map(|(node, _)| &node.offers).map(|(name, _)| name.as_str()).collect();
    let archs: BTreeSet<&str> = nodes.iter().map(|(_, arch)| arch.as_str()).collect();
    let own = |arch: &&&str| !["noarch", "src"].contains(*arch);
    let machines: Vec<&str> = archs.iter().filter(own).copied().collect();
    let machines = if machines.is_empty() { vec!["noarch"] } else { machines };
    if machines.len() > MACHINES_MAX {
        let (count, most) = (machines.len(), MACHINES_MAX);
        context.bad_index(REPOMD, IndexFault::Architectures { count, most });
        return;
    }
    let rules = VersionRules { compare: compare_versions, bare_meets: true };
    for machine in machines {
        let together = nodes.iter().filter(|(_, arch)| arch == machine || arch == "noarch");
        let together: Vec<&PackageNode> = together.map(|(node, _)| node).collect();
        let (open, elsewhere) = closure::open(&together, &known, rules);
        context.report.elsewhere += elsewhere;
        for OpenWish { path: file, alternatives } in open {
            let dependency = OpenDependency::Rpm { alternatives, arch: machine.to_owned() };
            context.problems.add(Problem::DependencyOpen { file, dependency });
        }
    }
}

/// Where one of the two has no release, it is not compared.
fn compare_versions(left: &str, right: &str) -> Ordering {
    let bare = |evr: &str| evr.split('-').next().unwrap_or_default().to_owned();
    if left.contains('-') && right.contains('-') {
        rpm::compare_versions(left, right)
    } else {
        rpm::compare_versions(&bare(left), &bare(right))
    }
}

/// A package and its architecture. Files and rich dependencies are for the client's solver.
fn node(package: &RpmEntry) -> (PackageNode, String) {
    let bound =
        |entry: &RelationEntry| Sign::of(&entry.flags).map(|sign| (sign, entry.evr.clone()));
    let offers = package
        .list("rpm:provides")
        .iter()
        .map(|entry| (entry.name.clone(), bound(entry).map(|(_, version)| version)));
    let plain = |entry: &&RelationEntry| !entry.name.starts_with(['/', '(']);
    let wishes = package
        .list("rpm:requires")
        .iter()
        .filter(plain)
        .map(|entry| vec![Wish { name: entry.name.clone(), bound: bound(entry) }]);
    let path = package.path.clone();
    let node = PackageNode { path, offers: offers.collect(), wishes: wishes.collect() };
    (node, package.arch.clone())
}

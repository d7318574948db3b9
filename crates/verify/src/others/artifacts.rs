//! Artifact folders, fat or split.
//!
//! ```text
//! {name}_{kind}_generic    host code only
//! {name}_{kind}_{arch}     device code of one arch only
//! {name}_{kind}_{other}    fat artifact: host and device code
//!                          recombined artifact: device code of a group
//! ```
//!
//! The family in the name is only a label, so the content decides: a component is split in a shard if one of its
//! artifacts has kernel archives, kernel manifests or transformed binaries; archives that the component ships do not
//! count. The artifacts of a component in a shard are checked together, with all stage prefixes flattened onto one
//! install prefix, because binaries and archives find each other there once they are installed.

use std::collections::BTreeMap;

use rockpack_core::content::Content;
use rockpack_core::error::{Error, Result};
use rockpack_core::gfx::Target;
use rockpack_core::tree::{Node, TreePath};
use rockpack_split::input::artifact::{Artifact, Scan};

use crate::Run;
use crate::checks::excuses::Excuses;
use crate::checks::set_archives::shipped;
use crate::checks::{Scope, check_ownership, contents, manifests, markers, pairs};
use crate::others::{FilesByPath, examine};
use crate::partial::Extent;
use crate::problem::{PackagePath, Problem, ProblemPlace, Problems};
use crate::readers::facts::Class;
use crate::readers::installed::{ContentRole, PackageContents};

/// Reads and checks all artifacts of a scan, and returns their content. If `extent` is a part of the shards, related
/// artifacts may be elsewhere.
pub(crate) fn check(scan: &Scan, extent: Extent, run: &mut Run<'_>) -> Vec<PackageContents> {
    let (mut all, excuses) = (Vec::new(), Excuses::default());
    for shard in &scan.shards {
        let mut components: BTreeMap<String, Vec<(&Artifact, PackageContents)>> = BTreeMap::new();
        for artifact in &shard.artifacts {
            let name = format!("{}/{}", artifact.shard, artifact.name);
            let files = flattened(artifact, &name, &mut run.problems);
            let read = examine(name, files, run);
            components.entry(artifact.name.component()).or_default().push((artifact, read));
        }
        for mut artifacts in components.into_values() {
            let split = is_split(&artifacts.iter().map(|(_, read)| read).collect::<Vec<_>>())
                || is_split_without_host(&artifacts);
            artifacts.iter_mut().for_each(|(artifact, read)| role(artifact, split, read));
            let read: Vec<PackageContents> = artifacts.into_iter().map(|(_, read)| read).collect();
            let (own, problems) = (read.iter().collect::<Vec<_>>(), &mut run.problems);
            contents::check(&own, &excuses, problems);
            if split && extent == Extent::Whole {
                check_ownership(&own, Scope::Artifacts, problems);
                markers::check(&own, &excuses, Scope::Artifacts, problems);
                manifests::check(&own, Scope::Artifacts, problems);
            }
            // A part of a split component needs artifacts that were not given.
            if !split || extent == Extent::Whole {
                pairs::check(&own, &excuses, problems);
            }
            all.extend(read);
        }
    }
    all
}

/// Adds a problem for each fault of a failed scan.
pub(crate) fn add_scan_faults(error: &Error, problems: &mut Problems) {
    for fault in std::iter::once(error).chain(error.others()) {
        let file = fault.place().file.as_ref().map(|file| file.display().to_string());
        let (file, text) = (file.unwrap_or_default(), fault.to_string());
        let reason = text.strip_prefix(&format!("{file}: ")).unwrap_or(&text);
        problems.add(Problem::BadArtifact { file, reason: reason.to_owned() });
    }
}

/// The files of all stage prefixes; if two have the same path, the first one. Reports those that differ.
fn flattened(artifact: &Artifact, name: &str, problems: &mut Problems) -> FilesByPath {
    let mut from: BTreeMap<&TreePath, (&str, &Node<Content>)> = BTreeMap::new();
    for prefix in &artifact.prefixes {
        for (path, node) in &prefix.tree {
            let (first, own) = *from.entry(path).or_insert((&prefix.path, node));
            if std::ptr::eq(own, node) {
                continue;
            }
            let file = PackagePath::new(name, format!("/{path}"));
            match is_same(own, node) {
                Ok(true) => {}
                Ok(false) => {
                    let second = &prefix.path;
                    let reason = format!("differs between the prefixes {first} and {second}");
                    problems.add(Problem::PathOwnedTwice { path: file.to_string(), reason });
                }
                Err(error) => problems.add_unreadable(ProblemPlace::File(file), &error),
            }
        }
    }
    from.into_iter().map(|(path, (_, node))| (format!("/{path}"), node.clone())).collect()
}

/// Whether nodes of two stage prefixes at one path are equal. The comparison of `split` is not used, because it would
/// repeat its own mistakes.
fn is_same(own: &Node<Content>, other: &Node<Content>) -> Result<bool> {
    match (own, other) {
        (Node::Directory { .. }, Node::Directory { .. }) => Ok(true),
        (Node::Link { target }, Node::Link { target: other }) => Ok(target == other),
        (Node::File { data, mode }, Node::File { data: other, mode: other_mode }) => {
            Ok(mode == other_mode && data.same_bytes(other)?)
        }
        _ => Ok(false),
    }
}

fn is_split(artifacts: &[&PackageContents]) -> bool {
    let shipped = shipped(artifacts);
    let mut files = artifacts.iter().flat_map(|read| read.files());
    files.any(|(path, facts)| match &facts.class {
        Class::Manifest(_) => true,
        class if class.claims_to_be_archive() => !shipped.contains(path),
        Class::Host(host) => host.claims_to_be_transformed(),
        _ => false,
    })
}

/// Whether a component without host code, such as hipDNN's kernel provider, was split: several of its artifacts are for
/// one arch each.
fn is_split_without_host(artifacts: &[(&Artifact, PackageContents)]) -> bool {
    let mut of_archs = artifacts.iter().filter(|(artifact, _)| !artifact.name.is_generic());
    of_archs.clone().count() > 1
        && of_archs.all(|(artifact, read)| {
            artifact.name.gpu_family.parse::<Target>().is_ok()
                && read.files().all(|(_, facts)| facts.host().is_none())
        })
}

/// Sets the kind of content that an artifact may have.
fn role(artifact: &Artifact, split: bool, read: &mut PackageContents) {
    if artifact.name.is_generic() {
        read.role = Some(ContentRole::Host);
    } else if split {
        read.role = Some(ContentRole::Kernels);
        // Other names are groups, named by a configuration.
        if let Ok(target) = artifact.name.gpu_family.parse::<Target>() {
            read.stated_archs = Some(vec![target.base().to_string()]);
        }
    }
}

//! Artifact folders, fat or split.
//!
//! ```text
//! {name}_{kind}_generic    host code, and no device code
//! {name}_{kind}_{arch}     device code of one arch, and no host code
//! {name}_{kind}_{other}    of a fat artifact: host and device code
//!                          of a recombined one: the device code of a group
//! ```
//!
//! The family in the name is a label, so content says what an artifact is: a component is split in
//! a shard if one of its artifacts has kernel archives, kernel manifests or transformed
//! binaries; archives that the component ships itself do not count. The artifacts of a
//! component in a shard are checked together, with all their stage prefixes flattened onto one
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
use crate::own::facts::Class;
use crate::own::installed::{Installed, Side};
use crate::partial::Extent;
use crate::problem::{PackagePath, Problem, ProblemPlace, Problems};

/// Reads and checks all artifacts of a scan, and returns what they hold. They are whole shards, or a part: then those
/// that belong to them may lie elsewhere.
pub(crate) fn check(scan: &Scan, extent: Extent, run: &mut Run<'_>) -> Vec<Installed> {
    let (mut all, excuses) = (Vec::new(), Excuses::default());
    for shard in &scan.shards {
        let mut components: BTreeMap<String, Vec<(&Artifact, Installed)>> = BTreeMap::new();
        for artifact in &shard.artifacts {
            let name = format!("{}/{}", artifact.shard, artifact.name);
            let files = flattened(artifact, &name, &mut run.problems);
            let read = examine(name, files, run);
            components.entry(artifact.name.component()).or_default().push((artifact, read));
        }
        for mut artifacts in components.into_values() {
            let split = is_split(&artifacts.iter().map(|(_, read)| read).collect::<Vec<_>>())
                || is_apart(&artifacts);
            artifacts.iter_mut().for_each(|(artifact, read)| side(artifact, split, read));
            let read: Vec<Installed> = artifacts.into_iter().map(|(_, read)| read).collect();
            let (own, problems) = (read.iter().collect::<Vec<_>>(), &mut run.problems);
            contents::check(&own, &excuses, problems);
            if split && extent == Extent::Whole {
                check_ownership(&own, Scope::Artifacts, problems);
                markers::check(&own, &excuses, Scope::Artifacts, problems);
                manifests::check(&own, Scope::Artifacts, problems);
            }
            // A part of a split component needs artifacts that were not named.
            if !split || extent == Extent::Whole {
                pairs::check(&own, &excuses, problems);
            }
            all.extend(read);
        }
    }
    all
}

/// Adds a problem for each fault of a failed scan.
pub(crate) fn refused(error: &Error, problems: &mut Problems) {
    for fault in std::iter::once(error).chain(error.others()) {
        let file = fault.place().file.as_ref().map(|file| file.display().to_string());
        let (file, text) = (file.unwrap_or_default(), fault.to_string());
        let reason = text.strip_prefix(&format!("{file}: ")).unwrap_or(&text);
        problems.add(Problem::BadArtifact { file, reason: reason.to_owned() });
    }
}

/// The files of all stage prefixes; of two at one path, the first, and a problem if they differ.
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
                Err(error) => problems.add_unread(ProblemPlace::File(file), &error),
            }
        }
    }
    from.into_iter().map(|(path, (_, node))| (format!("/{path}"), node.clone())).collect()
}

/// Whether nodes of two stage prefixes at one path are the same; one of them is installed. It is not what
/// `split` compares by, which would not see its own mistakes.
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

fn is_split(artifacts: &[&Installed]) -> bool {
    let shipped = shipped(artifacts);
    let mut files = artifacts.iter().flat_map(|read| read.files());
    files.any(|(path, facts)| match &facts.class {
        Class::Manifest(_) => true,
        class if class.claims_to_be_archive() => !shipped.contains(path),
        Class::Host(host) => host.claims_to_be_transformed(),
        _ => false,
    })
}

/// Tells a component of device code alone, as hipDNN's kernel provider may be, that was split: nothing in
/// it was taken out of binaries, and several of its artifacts are for one arch each.
fn is_apart(artifacts: &[(&Artifact, Installed)]) -> bool {
    let mut of_archs = artifacts.iter().filter(|(artifact, _)| !artifact.name.is_generic());
    of_archs.clone().count() > 1
        && of_archs.all(|(artifact, read)| {
            artifact.name.gpu_family.parse::<Target>().is_ok()
                && read.files().all(|(_, facts)| facts.host().is_none())
        })
}

/// Sets the kind of content that an artifact may have. A generic one is for every GPU.
fn side(artifact: &Artifact, split: bool, read: &mut Installed) {
    if artifact.name.is_generic() {
        read.side = Some(Side::Host);
    } else if split {
        read.side = Some(Side::Kernels);
        // A group has the name that its configuration gives it.
        if let Ok(target) = artifact.name.gpu_family.parse::<Target>() {
            read.stated_archs = Some(vec![target.base().to_string()]);
        }
    }
}

//! The host tree of a component, joined from the trees of all shards.

use std::borrow::Cow;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::tree::{Node, Tree, TreePath, first_below, folders_around};

use super::{Join, host_form};
use rockpack_report::words::list;
use rockpack_report::{ComponentFile, HostDifference, InputArtifact, SameFile, found};
use rockpack_split::{HostFile, HostKind, SplitArtifact};

const EXECUTABLE: u32 = 0o111;

#[derive(Clone, Copy)]
pub(super) struct HostClaim<'a> {
    pub part: &'a SplitArtifact,
    pub node: &'a Node<HostFile>,
}

/// The first claim to each path.
pub(super) type HostClaims<'a> = BTreeMap<&'a TreePath, HostClaim<'a>>;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Compare {
    Kinds,
    /// The kinds, and the content of links and files without device code. For two artifacts of one shard or name:
    /// their builds of a fat binary differ like those of several shards.
    Plain,
    All,
}

pub(super) enum Verdict {
    Agree,
    OtherKind(HostDifference),
    /// The nodes are of the same kind and differ in this.
    Differ(HostDifference),
    /// The host-only forms of fat binaries differ, or no configuration can join the nodes, for this reason.
    Clash(Cow<'static, str>),
}

/// The artifact in messages, with its shard to distinguish it from others of its component.
pub(super) fn label(part: &SplitArtifact) -> InputArtifact {
    InputArtifact::new(&part.shard, &part.name)
}

impl Join<'_> {
    /// The host files of a component: each path from the first source that has it.
    pub(super) fn host(&mut self, parts: &[SplitArtifact]) -> Tree<HostFile> {
        let mut claims = HostClaims::new();
        // The paths of database files for all archs of a shard.
        let databases: BTreeSet<TreePath> =
            parts.iter().flat_map(|part| part.shared.keys().cloned()).collect();
        for part in parts {
            let of_part = part.host.iter().map(|(path, node)| (path, HostClaim { part, node }));
            if claims.is_empty() {
                claims = of_part.collect();
                continue;
            }
            for (path, claim) in of_part {
                match claims.entry(path) {
                    Entry::Vacant(slot) => drop(slot.insert(claim)),
                    Entry::Occupied(first) => {
                        let compare = self.validation.verify_generic_artifacts_match
                            && !databases.contains(path);
                        self.merge_claim(path, *first.get(), claim, compare);
                    }
                }
            }
        }
        self.note_other_shards(parts, &claims);
        if self.validation.verify_generic_artifacts_match {
            let of_host = claims.keys().copied().filter(|path| !databases.contains(*path));
            self.refuse_missing(parts, of_host);
        }
        self.note_not_packed(parts, &claims);
        let folders = folders_around(claims.keys().copied());
        for (path, claim) in claims.iter().filter(|(path, _)| folders.contains(path.as_str())) {
            let is_folder = matches!(claim.node, Node::Directory { .. });
            // A file cannot have paths below it.
            if !is_folder && let Some((below, _)) = first_below(&claims, path.as_str()) {
                let (kind, shard) = (claim.node.kind(), label(claim.part));
                let message = format!("{below} is below {path}, which is a {kind} in {shard}");
                let error = Error::new(Kind::Conflict, message);
                self.faults.add(error.structure(self.component.clone()));
            }
        }
        let nodes = claims.iter().map(|(path, claim)| ((*path).clone(), claim.node.clone()));
        BTreeMap::from_iter(nodes).into()
    }

    fn merge_claim(
        &mut self,
        path: &TreePath,
        first: HostClaim<'_>,
        again: HostClaim<'_>,
        compare_shards: bool,
    ) {
        let same_shard = first.part.shard == again.part.shard;
        let compare = match (compare_shards, same_shard) {
            (true, _) => Compare::All,
            (false, true) => Compare::Plain,
            (false, false) => Compare::Kinds,
        };
        let verdict = verdict(first.node, again.node, compare);
        let Some(verdict) = self.faults.keep(verdict) else { return };
        // Merging directories loses nothing, and all builds of a fat binary contribute their device code.
        let is_merged = match again.node {
            Node::File { data, .. } => data.fat().is_none(),
            Node::Link { .. } => true,
            Node::Directory { .. } => false,
        };
        match verdict {
            Verdict::Agree if same_shard && is_merged => {
                let file = label(first.part).file(path);
                let same = SameFile::Artifact(label(again.part));
                self.findings.add(found::FileMerged { file, same });
            }
            Verdict::Agree => {}
            Verdict::OtherKind(difference) if compare == Compare::Kinds => {
                let file = ComponentFile::new(&self.component, path);
                let (first, other) = (label(first.part), label(again.part));
                self.findings.add(found::HostFilesDiffer { file, difference, first, other });
            }
            Verdict::OtherKind(why) | Verdict::Differ(why) => {
                self.conflict(path, &why.to_string(), first, again);
            }
            Verdict::Clash(why) => self.conflict(path, &why, first, again),
        }
    }

    fn conflict(&mut self, path: &TreePath, why: &str, first: HostClaim<'_>, again: HostClaim<'_>) {
        let (one, other) = (label(first.part), label(again.part));
        let message = format!("{path} {why}: {one} comes first, {other} disagrees");
        let hint = "build the shards from one source tree with the same options, or name \
                    another primary_shard";
        let error = Error::new(Kind::Conflict, message).structure(self.component.clone());
        self.faults.add(error.hint(hint));
    }

    /// Adds a fault for each shard that has the component and lacks one of its paths.
    fn refuse_missing<'p>(
        &mut self,
        parts: &[SplitArtifact],
        paths: impl Iterator<Item = &'p TreePath>,
    ) {
        let mut shards: BTreeMap<&str, Vec<&SplitArtifact>> = BTreeMap::new();
        for part in parts {
            shards.entry(part.shard.as_str()).or_default().push(part);
        }
        for path in paths {
            let (with, without): (Vec<_>, Vec<_>) = shards
                .iter()
                .partition(|(_, parts)| parts.iter().any(|part| part.host.get(path).is_some()));
            if without.is_empty() {
                continue;
            }
            let [without, with] = [without, with].map(|shards| list(shards.iter().map(|it| it.0)));
            let message = format!("{path} is in {with} and missing in {without}");
            let error = Error::new(Kind::Conflict, message).structure(self.component.clone());
            self.faults.add(error.hint("verify_generic_artifacts_match is set"));
        }
    }

    /// Adds a finding for each path that the primary shard lacks, or, if it lacks the whole component, for each shard
    /// that provides its files.
    fn note_other_shards(&mut self, parts: &[SplitArtifact], claims: &HostClaims<'_>) {
        let primary = self.primary;
        let elsewhere = claims.iter().filter(|(_, claim)| {
            claim.part.shard != primary && !matches!(claim.node, Node::Directory { .. })
        });
        let has_primary = parts.iter().any(|part| part.shard == primary);
        let mut counts: BTreeMap<(Option<&TreePath>, &String), usize> = BTreeMap::new();
        for (path, claim) in elsewhere {
            let path = has_primary.then_some(*path);
            *counts.entry((path, &claim.part.shard)).or_default() += 1;
        }
        for ((path, shard), files) in counts {
            self.findings.add(found::HostFromOtherShard {
                component: self.component.as_str().into(),
                path: path.cloned(),
                primary: primary.to_owned(),
                shard: shard.clone(),
                files,
            });
        }
    }
}

pub(super) fn verdict(
    first: &Node<HostFile>,
    again: &Node<HostFile>,
    compare: Compare,
) -> Result<Verdict> {
    Ok(match (first, again) {
        (Node::Directory { .. }, Node::Directory { .. }) => Verdict::Agree,
        (Node::Directory { .. }, _) | (_, Node::Directory { .. }) => {
            Verdict::Clash("is a directory on one side only".into())
        }
        (Node::Link { target: one }, Node::Link { target: other })
            if compare != Compare::Kinds && one != other =>
        {
            let (first, other) = (one.clone(), other.clone());
            Verdict::Differ(HostDifference::Targets { first, other })
        }
        (Node::Link { .. }, Node::Link { .. }) => Verdict::Agree,
        (Node::File { mode, .. }, Node::File { mode: other, .. })
            if compare != Compare::Kinds
                && (mode & EXECUTABLE == 0) != (other & EXECUTABLE == 0) =>
        {
            Verdict::Differ(HostDifference::Modes { first: *mode, other: *other })
        }
        (Node::File { data: one, .. }, Node::File { data: other, .. }) => {
            files(&one.kind, &other.kind, compare)?
        }
        (Node::Link { .. }, Node::File { data, .. }) if data.fat().is_some() => Verdict::Clash(
            "is a link in one shard and a binary with device code in another: nothing would load it"
                .into(),
        ),
        (Node::Link { .. }, Node::File { .. }) | (Node::File { .. }, Node::Link { .. }) => {
            Verdict::OtherKind(HostDifference::Link)
        }
    })
}

fn files(one: &HostKind, other: &HostKind, compare: Compare) -> Result<Verdict> {
    Ok(match (one, other) {
        (HostKind::Plain(_), HostKind::Fat(_)) => Verdict::Clash(
            "has no device code in one shard and could not load the device code of another".into(),
        ),
        // Reported even if content is not compared: that shard adds no code to the binary's archives.
        (HostKind::Fat(_), HostKind::Plain(_)) => Verdict::OtherKind(HostDifference::DeviceCode),
        (HostKind::Fat(one), HostKind::Fat(other)) if compare == Compare::All => {
            let difference = host_form::difference(one.binary.original(), other.binary.original())?;
            difference.map_or(Verdict::Agree, |why| Verdict::Clash(why.into()))
        }
        (HostKind::Plain(one), HostKind::Plain(other)) if compare != Compare::Kinds => {
            let size = one.len();
            match other.len() {
                other if other != size => {
                    Verdict::Differ(HostDifference::Sizes { first: size, other })
                }
                _ if one.same_bytes(other)? => Verdict::Agree,
                _ => Verdict::Differ(HostDifference::Bytes { size }),
            }
        }
        _ => Verdict::Agree,
    })
}

//! One host tree out of the trees of all shards.

use std::collections::BTreeMap;

use super::Join;
use crate::error::{Error, Kind};
use crate::report::{Code, Finding};
use crate::split::{HostFile, HostKind, SplitArtifact};
use crate::tree::{Node, Tree, TreePath};

/// Any execute bit.
const EXECUTABLE: u32 = 0o111;

/// A node and the artifact it comes from.
#[derive(Clone, Copy)]
struct Claim<'a> {
    part: &'a SplitArtifact,
    node: &'a Node<HostFile>,
}

/// How two claims to one path go together.
enum Verdict {
    /// They do not contradict each other.
    Agree,
    /// Why they do.
    Differ(&'static str),
    /// Why they cannot be joined, whatever the configuration says.
    Clash(&'static str),
}

/// The name of an artifact in messages: its shard tells it apart from others of its component.
pub(super) fn label(part: &SplitArtifact) -> String {
    format!("{}/{}", part.shard, part.name)
}

impl Join<'_> {
    /// The host files of a component: of every path, the first source's that has it.
    pub(super) fn host(&mut self, parts: &[SplitArtifact]) -> Tree<HostFile> {
        let mut claims: BTreeMap<&TreePath, Claim<'_>> = BTreeMap::new();
        for part in parts {
            for (path, node) in &part.host {
                let claim = Claim { part, node };
                match claims.get(path) {
                    None => drop(claims.insert(path, claim)),
                    Some(first) => self.claimed_again(path, *first, claim),
                }
            }
        }
        self.note_other_shards(parts, &claims);
        let mut tree = Tree::new();
        for (path, claim) in &claims {
            self.refuse_below_file(path, &claims);
            let inserted = tree.insert((*path).clone(), claim.node.clone());
            self.faults.keep(inserted);
        }
        tree
    }

    fn claimed_again(&mut self, path: &TreePath, first: Claim<'_>, again: Claim<'_>) {
        let same_shard = first.part.shard == again.part.shard;
        let compare = same_shard || self.config.validation.verify_generic_artifacts_match;
        let verdict = verdict(first.node, again.node, compare);
        let Some(verdict) = self.faults.keep(verdict) else {
            return;
        };
        match verdict {
            Verdict::Agree if same_shard && is_merged(again.node) => {
                let message = format!("is the same in {}, too", label(again.part));
                let subject = format!("{}/{path}", label(first.part));
                self.findings.add(Finding::new(Code::FileMerged, subject, message));
            }
            Verdict::Agree => {}
            Verdict::Differ(why) if !compare => {
                let (one, other) = (label(first.part), label(again.part));
                let message = format!("{why} in {one} and {other}; the first is packed");
                let subject = format!("{}/{path}", self.component);
                self.findings.add(Finding::new(Code::HostFilesDiffer, subject, message));
            }
            Verdict::Differ(why) | Verdict::Clash(why) => self.clash(path, why, first, again),
        }
    }

    fn clash(&mut self, path: &TreePath, why: &str, first: Claim<'_>, again: Claim<'_>) {
        let (one, other) = (label(first.part), label(again.part));
        let message = format!("{path} {why}: {one} comes first, {other} disagrees");
        let hint = "build the shards from one source tree with the same options, or name \
                    another primary_shard";
        let error = Error::new(Kind::Conflict, message).structure(self.component.clone());
        self.faults.add(error.hint(hint));
    }

    /// A file that has files below it elsewhere: no file system can hold both.
    fn refuse_below_file(&mut self, path: &TreePath, claims: &BTreeMap<&TreePath, Claim<'_>>) {
        let above = std::iter::successors(path.parent(), TreePath::parent);
        for above in above {
            let Some(claim) = claims.get(&above) else {
                continue;
            };
            if !matches!(claim.node, Node::Directory { .. }) {
                let kind = claim.node.kind();
                let shard = label(claim.part);
                let message = format!("{path} lies below {above}, which is a {kind} in {shard}");
                let error = Error::new(Kind::Conflict, message);
                self.faults.add(error.structure(self.component.clone()));
            }
        }
    }

    /// One finding per path that the primary shard lacks, or one for the component if it has
    /// nothing of it.
    fn note_other_shards(
        &mut self,
        parts: &[SplitArtifact],
        claims: &BTreeMap<&TreePath, Claim<'_>>,
    ) {
        let primary = self.primary;
        let elsewhere = claims.iter().filter(|(_, claim)| {
            claim.part.shard != primary && !matches!(claim.node, Node::Directory { .. })
        });
        if parts.iter().any(|part| part.shard == primary) {
            for (path, claim) in elsewhere {
                let shard = &claim.part.shard;
                let message =
                    format!("is not in the primary shard {primary} and comes from {shard}");
                let subject = format!("{}/{path}", self.component);
                self.findings.add(Finding::new(Code::HostFromOtherShard, subject, message));
            }
            return;
        }
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for (_, claim) in elsewhere {
            *counts.entry(claim.part.shard.as_str()).or_default() += 1;
        }
        for (shard, count) in counts {
            let message = format!(
                "the primary shard {primary} has none of it; {count} files come from {shard}"
            );
            let subject = self.component.clone();
            self.findings.add(Finding::new(Code::HostFromOtherShard, subject, message));
        }
    }
}

/// Compares content only if asked to; kinds always.
fn verdict(
    first: &Node<HostFile>,
    again: &Node<HostFile>,
    compare: bool,
) -> crate::error::Result<Verdict> {
    Ok(match (first, again) {
        (Node::Directory { .. }, Node::Directory { .. }) => Verdict::Agree,
        (Node::Directory { .. }, _) | (_, Node::Directory { .. }) => {
            Verdict::Clash("is a directory on one side only")
        }
        (Node::Link { target: one }, Node::Link { target: other }) => match one == other {
            false if compare => Verdict::Differ("is a link to different files"),
            _ => Verdict::Agree,
        },
        (Node::File { data: one, mode }, Node::File { data: other, mode: mode_there }) => {
            if compare && (mode & EXECUTABLE == 0) != (mode_there & EXECUTABLE == 0) {
                return Ok(Verdict::Differ("is executable on one side only"));
            }
            return files(&one.kind, &other.kind, compare);
        }
        (Node::Link { .. }, Node::File { data, .. }) if is_fat(data) => Verdict::Clash(
            "is a link, and a binary with device code that nothing would load elsewhere",
        ),
        (Node::Link { .. }, Node::File { .. }) | (Node::File { .. }, Node::Link { .. }) => {
            Verdict::Differ("is a link on one side only")
        }
    })
}

/// Whether a node that agrees with an earlier one is left out for it. Directories have nothing to
/// leave out, and of binaries with device code the device code of all is packed.
fn is_merged(node: &Node<HostFile>) -> bool {
    match node {
        Node::File { data, .. } => !is_fat(data),
        Node::Link { .. } => true,
        Node::Directory { .. } => false,
    }
}

fn is_fat(file: &HostFile) -> bool {
    matches!(file.kind, HostKind::Fat(_))
}

fn files(one: &HostKind, other: &HostKind, compare: bool) -> crate::error::Result<Verdict> {
    Ok(match (one, other) {
        (HostKind::Fat(_), HostKind::Fat(_)) => Verdict::Agree,
        (HostKind::Plain(_), HostKind::Fat(_)) => Verdict::Clash(
            "has no device code, hence nothing that could load the device code found elsewhere",
        ),
        // Said even where nothing is compared: that shard adds no code to the binary's archives.
        (HostKind::Fat(_), HostKind::Plain(_)) => {
            Verdict::Differ("has device code on one side only")
        }
        (HostKind::Plain(one), HostKind::Plain(other)) => {
            match !compare || one.same_bytes(other)? {
                true => Verdict::Agree,
                false => Verdict::Differ("has different content"),
            }
        }
    })
}

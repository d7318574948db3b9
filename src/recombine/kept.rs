//! Binaries that keep their device code because they cannot be transformed.
//!
//! Such a binary is packed as one shard has it. What another shard's build of it holds is in no
//! package then: its finding says so instead of saying that it is kept.

use std::collections::{BTreeMap, BTreeSet};

use super::Join;
use super::host::{Claims, label};
use crate::content::Content;
use crate::report::{Code, Finding, Findings};
use crate::split::{HostFile, HostKind, SplitArtifact};
use crate::tree::{Node, TreePath};

/// `<shard>/<artifact>/<path>` of builds that are not packed → the artifact that provides the file.
pub(super) type NotPacked = BTreeMap<String, String>;

impl Join<'_> {
    /// Notes the builds that are not packed.
    pub(super) fn note_kept(&mut self, parts: &[SplitArtifact], claims: &Claims<'_>) {
        for part in parts {
            let kept = part.findings.iter().filter(|finding| finding.code == Code::KeptFat);
            for subject in kept.map(|finding| &finding.subject) {
                let path = subject.strip_prefix(&format!("{}/", label(part)));
                let path = path.and_then(|path| TreePath::new(path).ok());
                let Some(claim) = path.as_ref().and_then(|path| claims.get(path)) else {
                    continue;
                };
                let own = path.as_ref().and_then(|path| part.host.get(path));
                let same = match (plain(claim.node), own.and_then(plain)) {
                    (Some(packed), Some(own)) => self.faults.keep(packed.same_bytes(own)),
                    _ => Some(false),
                };
                if same == Some(false) {
                    self.not_packed.insert(subject.clone(), label(claim.part));
                }
            }
        }
    }
}

fn plain(node: &Node<HostFile>) -> Option<&Content> {
    match node {
        Node::File { data: HostFile { kind: HostKind::Plain(content), .. }, .. } => Some(content),
        _ => None,
    }
}

/// The findings, with the truth about builds that are not packed.
pub(super) fn settle(findings: &Findings, not_packed: &NotPacked) -> Findings {
    let is_packed = |finding: &&Finding| {
        finding.code == Code::KeptFat && !not_packed.contains_key(&finding.subject)
    };
    let kept: BTreeSet<&String> =
        findings.iter().filter(is_packed).flat_map(|finding| &finding.code_objects).collect();
    let mut settled = Findings::default();
    for finding in findings.iter() {
        let winner = not_packed.get(&finding.subject);
        settled.add(match winner.filter(|_| finding.code == Code::KeptFat) {
            Some(winner) => dropped(finding, winner, &kept),
            None => finding.clone(),
        });
    }
    settled.sort();
    settled
}

fn dropped(finding: &Finding, winner: &str, kept: &BTreeSet<&String>) -> Finding {
    let lost = finding.code_objects.iter().filter(|digest| !kept.contains(digest));
    let lost: Vec<String> = lost.cloned().collect();
    let message = format!(
        "keeps its device code, but {winner} provides the file: {} of its code objects are in no \
         package",
        lost.len()
    );
    let mut dropped = Finding::new(Code::KeptFatDropped, finding.subject.clone(), message);
    dropped.code_objects = lost;
    dropped
}

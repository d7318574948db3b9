//! Binaries that keep their device code because they cannot be transformed.
//!
//! Such a binary is packed from one shard. The device code of another shard's build is then in no package,
//! and its finding says so instead of reporting it as kept.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::content::{Content, Sha256Digest};
use rockpack_core::tree::Node;

use super::Join;
use super::host::{HostClaims, label};
use rockpack_report::{Finding, Findings, InputArtifact, InputFile};
use rockpack_split::{HostFile, SplitArtifact};

/// The builds that are not packed, each with the artifact that provides the file.
pub(super) type NotPacked = BTreeMap<InputFile, InputArtifact>;

impl Join<'_> {
    /// Notes the builds that are not packed.
    pub(super) fn note_kept(&mut self, parts: &[SplitArtifact], claims: &HostClaims<'_>) {
        for part in parts {
            for finding in part.findings.iter() {
                let Finding::KeptFat { file, .. } = finding else { continue };
                let Some(claim) = claims.get(&file.path) else { continue };
                let own = part.host.get(&file.path);
                let same = match (plain(claim.node), own.and_then(plain)) {
                    (Some(packed), Some(own)) => self.faults.keep(packed.same_bytes(own)),
                    _ => Some(false),
                };
                if same == Some(false) {
                    self.not_packed.insert(file.clone(), label(claim.part));
                }
            }
        }
    }
}

pub(super) fn plain(node: &Node<HostFile>) -> Option<&Content> {
    node.data()?.plain()
}

/// The findings, corrected for builds that are not packed.
pub(super) fn settle(findings: &Findings, not_packed: &NotPacked) -> Findings {
    let packed: BTreeSet<Sha256Digest> = findings
        .iter()
        .filter_map(|finding| match finding {
            Finding::KeptFat { file, code_objects, .. } if !not_packed.contains_key(file) => {
                Some(code_objects)
            }
            _ => None,
        })
        .flatten()
        .copied()
        .collect();
    let mut settled = Findings::default();
    for finding in findings.iter() {
        settled.add(dropped(finding, not_packed, &packed).unwrap_or_else(|| finding.clone()));
    }
    settled.sort();
    settled
}

/// The corrected finding, if `finding` is about a build that is not packed.
fn dropped(
    finding: &Finding,
    not_packed: &NotPacked,
    packed: &BTreeSet<Sha256Digest>,
) -> Option<Finding> {
    let Finding::KeptFat { file, code_objects, .. } = finding else { return None };
    let lost = code_objects.iter().filter(|digest| !packed.contains(digest));
    Some(Finding::KeptFatDropped {
        file: file.clone(),
        provided_by: not_packed.get(file)?.clone(),
        code_objects: lost.copied().collect(),
    })
}

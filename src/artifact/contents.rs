//! What is made of an artifact's manifest and files, however they are stored.

use std::path::{Path, PathBuf};

use super::manifest::{Manifest, module_of};
use super::{Artifact, ArtifactName, Prefix};
use crate::content::Content;
use crate::error::Faults;
use crate::report::{Code, Finding, Findings};
use crate::tree::{Tree, TreePath};

/// How many files outside of all prefixes a finding names.
const NAMED_FILES: usize = 5;

/// The files of an artifact. What is wrong with them is added to the faults.
pub(super) trait Contents {
    /// Its manifest.
    fn manifest(&mut self, faults: &mut Faults) -> Option<Manifest>;
    /// What is below a stage prefix; `None` if there is none or it cannot be read.
    fn prefix(&mut self, prefix: &TreePath, faults: &mut Faults) -> Found;
    /// The files below none of `prefixes`, by their paths in the artifact, folder by folder; the
    /// manifest is none of them.
    fn outside(&mut self, prefixes: &[TreePath], faults: &mut Faults) -> Vec<String>;
}

/// What was found of a stage prefix.
pub(super) enum Found {
    Tree(Tree<Content>),
    Absent,
    /// There is something; the faults say what is wrong with it.
    Faulty,
}

/// The name of an artifact and where it is.
pub(super) struct Whereabouts<'a> {
    pub shard: &'a str,
    pub name: ArtifactName,
    pub root: &'a Path,
}

/// Reads an artifact; `None` without a manifest.
pub(super) fn assemble(
    whereabouts: Whereabouts<'_>,
    contents: &mut dyn Contents,
    faults: &mut Faults,
) -> Option<Artifact> {
    let manifest = contents.manifest(faults)?;
    let mut artifact = Artifact {
        shard: whereabouts.shard.to_owned(),
        name: whereabouts.name,
        root: PathBuf::from(whereabouts.root),
        sha256: None,
        prefixes: Vec::new(),
        findings: Findings::default(),
    };
    for path in &manifest.prefixes {
        match contents.prefix(path, faults) {
            Found::Tree(tree) => artifact.prefixes.push(Prefix {
                path: path.to_string(),
                module: module_of(path),
                tree,
            }),
            Found::Absent => {
                let message = format!("the listed stage prefix {path} does not exist");
                note(&mut artifact, Code::PrefixAbsent, message);
            }
            Found::Faulty => {}
        }
    }
    if artifact.prefixes.is_empty() {
        let message = "none of its listed stage prefixes exists, so nothing of it is packed";
        note(&mut artifact, Code::ArtifactEmpty, message.to_owned());
    }
    note_outside(&mut artifact, &contents.outside(&manifest.prefixes, faults));
    Some(artifact)
}

/// One finding for all files that no prefix holds.
fn note_outside(artifact: &mut Artifact, files: &[String]) {
    if files.is_empty() {
        return;
    }
    let count = files.len();
    let more = match count > NAMED_FILES {
        true => ", …",
        false => "",
    };
    let names = files[..count.min(NAMED_FILES)].join(", ");
    let message = format!(
        "{count} files lie outside of all listed prefixes and are in no package: {names}{more}"
    );
    note(artifact, Code::OutsidePrefixes, message);
}

/// The subject is the same however the artifact is stored and wherever it lies, because findings
/// are part of the output.
fn note(artifact: &mut Artifact, code: Code, message: String) {
    let subject = format!("{}/{}", artifact.shard, artifact.name);
    artifact.findings.add(Finding::new(code, subject, message));
}

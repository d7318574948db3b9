//! Files that are packaged unchanged, except for changes that findings name.

use std::collections::BTreeSet;

use object::elf::EM_X86_64;
use rockpack_core::content::Content;
use rockpack_core::error::{Result, ResultExt};
use rockpack_core::gfx::archs_in;
use rockpack_core::tree::TreePath;
use rockpack_split::input::database::union;

use crate::against::inputs::UnchangedNode;
use crate::against::{SetComparison, host_form};
use crate::problem::{FileLoss, Problem, Problems};
use crate::readers::Sha;
use crate::readers::facts::{self, Class, SCRIPT};
use crate::readers::installed::InstalledNode;

impl SetComparison<'_> {
    /// Checks that what the shards have at a path is in a package.
    pub(super) fn check_plain(
        &self,
        path: &TreePath,
        variants: &[UnchangedNode],
        problems: &mut Problems,
    ) -> Result<()> {
        let nodes = self.at(path);
        // If files differ, that of one shard is installed; moved files are all installed. Folders may be missing.
        let found = match variants.iter().all(|plain| matches!(plain, UnchangedNode::Directory)) {
            true => nodes.iter().all(|node| node.is_folder()),
            false => variants
                .iter()
                .any(|plain| nodes.iter().any(|node| self.is_same(plain, path, node))),
        };
        let all_elsewhere =
            || variants.iter().all(|it| self.is_moved(path, it) || self.is_debug_file(path, it));
        let merged = nodes.iter().map(|node| self.is_merged(path, node));
        let found = found || merged.collect::<Result<Vec<bool>>>()?.contains(&true);
        if found || self.is_rewritten(path, variants)? || all_elsewhere() {
            return Ok(());
        }
        if !nodes.is_empty() || !self.is_dropped(path, variants)? {
            let loss = if nodes.is_empty() { FileLoss::Absent } else { FileLoss::OtherContent };
            problems.add(Problem::FileLost { path: format!("{}/{path}", self.prefix), loss });
        }
        Ok(())
    }

    /// Whether findings drop all files at `path`. They cannot drop a host binary whose path does not name an arch.
    fn is_dropped(&self, path: &TreePath, variants: &[UnchangedNode]) -> Result<bool> {
        let names_arch = !archs_in(path.as_str()).is_empty();
        for plain in variants {
            let UnchangedNode::File { file, sha256, .. } = plain else { return Ok(false) };
            let head =
                if file.content.len() < 20 { [0; 20] } else { file.content.read_array(0)? };
            let is_for_all = !names_arch && facts::is_elf(&head, EM_X86_64);
            if is_for_all || !self.excuses.explains_absence(sha256) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the node at an install-relative path is that of the artifact, or a bundle with it as the only code
    /// object, as a finding says.
    pub(super) fn is_same(
        &self,
        plain: &UnchangedNode,
        path: &TreePath,
        node: &InstalledNode,
    ) -> bool {
        let compressed = node.facts().filter(|_| self.excuses.compressed.contains(path));
        let holds = |sha256: &Sha| match compressed.map(|facts| facts.code_objects()).as_deref() {
            Some([(_, code)]) => *code == sha256,
            _ => false,
        };
        same(plain, node) || matches!(plain, UnchangedNode::File { sha256, .. } if holds(sha256))
    }

    /// Whether a finding says that the shards' files at `path` are merged, and the node is their union.
    pub(super) fn is_merged(&self, path: &TreePath, node: &InstalledNode) -> Result<bool> {
        let variants = self.inputs.plain.get(path).filter(|_| self.excuses.merged.contains(path));
        let (Some(variants), Some(facts)) = (variants, node.facts()) else { return Ok(false) };
        let contents: Vec<Content> =
            variants.iter().filter_map(UnchangedNode::content).cloned().collect();
        let Some(Ok(merged)) = union(&contents).if_readable()? else { return Ok(false) };
        Ok(merged.sha256()? == facts.sha256)
    }

    /// Whether a finding says that search paths or the first line of the file at `path` were rewritten, and nothing
    /// else differs.
    fn is_rewritten(&self, path: &TreePath, variants: &[UnchangedNode]) -> Result<bool> {
        let rewritten =
            self.excuses.rewritten.contains_key(path) || self.excuses.rpath_files.contains(path);
        let settled = self.excuses.settled.get(path);
        for installed in self.at(path).into_iter().filter_map(InstalledNode::facts) {
            for content in variants.iter().filter_map(UnchangedNode::content) {
                if rewritten && host_form::is_rewritten(content, installed, path, self.excuses)? {
                    return Ok(true);
                }
                if let (Class::Script(line), Some(settled)) = (&installed.class, settled)
                    && let Some(own) = facts::first_line(content)?
                    && is_settled(&own, line, settled)
                    && digest_with(line, content, own.len() as u64)? == installed.sha256
                {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Whether a finding says that the file was moved into a folder below its own, and it is there.
    fn is_moved(&self, path: &TreePath, plain: &UnchangedNode) -> bool {
        let folder = path.parent().filter(|folder| self.excuses.moved.contains(folder));
        let Some(folder) = folder else { return false };
        let (below, name) = (format!("{}/{folder}/", self.prefix), format!("/{}", path.name()));
        self.packages.iter().any(|package| {
            let all = package.paths.range(below.clone()..);
            let mut inside = all.take_while(|(path, _)| path.starts_with(&below));
            inside.any(|(path, node)| {
                let inside = path.strip_prefix(self.prefix).unwrap_or(path).trim_start_matches('/');
                path.ends_with(&name)
                    && TreePath::new(inside).is_ok_and(|path| self.is_same(plain, &path, node))
            })
        })
    }
}

/// Whether the node is that of the artifact, apart from its mode.
pub(super) fn same(plain: &UnchangedNode, node: &InstalledNode) -> bool {
    match (plain, node) {
        (UnchangedNode::File { sha256, .. }, InstalledNode::File { facts, .. }) => {
            facts.sha256 == *sha256
        }
        (UnchangedNode::Link { target }, InstalledNode::Link { target: installed }) => {
            target == installed
        }
        (UnchangedNode::Directory, InstalledNode::Directory { .. }) => true,
        _ => false,
    }
}

/// The digest of a script whose first `len` bytes, its first line, are replaced by `line`.
fn digest_with(line: &[u8], script: &Content, len: u64) -> Result<Sha> {
    let rest = script.slice(len..script.len())?;
    Content::concat([&Content::of_bytes(line), &rest]).sha256()
}

/// Whether the first line of a script changed only by the replacement of its interpreter by one of these.
fn is_settled(own: &[u8], installed: &[u8], interpreters: &BTreeSet<String>) -> bool {
    let new = interpreters.iter().map(|new| new.as_bytes());
    let known: BTreeSet<&[u8]> = words(own).chain(new).collect();
    words(installed).all(|word| known.contains(word))
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let line = line.strip_prefix(SCRIPT).unwrap_or_default();
    line.split(|byte| b" \t\r\n\0".contains(byte)).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_line_has_another_interpreter_and_nothing_else() {
        let own = b"#!/usr/bin/env -S A=b python3 -u\n";
        let settled = BTreeSet::from(["/usr/bin/python3".to_owned()]);
        for (line, expected) in [
            ("#!/usr/bin/env -S A=b /usr/bin/python3 -u\n", true),
            ("#! /usr/bin/python3 -u", true),
            ("#!/usr/bin/python3 -i\n", false),
            ("#!/usr/bin/python3.1 -u\n", false),
            ("#!/bin/sh -u\n", false),
        ] {
            assert_eq!(is_settled(own, line.as_bytes(), &settled), expected, "{line}");
        }
    }
}

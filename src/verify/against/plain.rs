//! Files that are packaged unchanged, except for changes that findings name, and their modes.

use std::collections::BTreeSet;

use rockpack_base::content::Content;
use rockpack_base::error::Result;
use rockpack_base::tree::TreePath;

use super::SetComparison;
use super::host_form;
use super::inputs::Plain;
use crate::input::database::{Union, union};
use crate::package::Format;
use crate::verify::own::facts::Class;
use crate::verify::own::installed::InstalledNode;
use crate::verify::own::script::{self, Script};
use crate::verify::problem::{FileLoss, Problem, Problems};

/// The mode of folders, and of files that somebody may run.
const EXECUTABLE: u32 = 0o755;
/// The mode of other files.
const READABLE: u32 = 0o644;

impl SetComparison<'_> {
    /// Checks that what the shards have at a path is in a package.
    pub(super) fn check_plain(
        &self,
        path: &TreePath,
        variants: &[Plain],
        problems: &mut Problems,
    ) -> Result<()> {
        let nodes = self.at(path);
        self.check_modes(path, &variants.iter().filter_map(mode).collect::<Vec<_>>(), problems);
        // Of files that differ, one shard's is installed; of files that were moved, all are. Folders may be gone.
        let found = match variants.iter().all(|plain| matches!(plain, Plain::Directory)) {
            true => nodes.iter().all(|node| matches!(node, InstalledNode::Directory { .. })),
            false => variants.iter().any(|plain| nodes.iter().any(|node| same(plain, node))),
        };
        if self.is_merged(path, variants)? || self.is_rewritten(path, variants)? || found {
            return Ok(());
        }
        let all_elsewhere = variants.iter().all(|plain| {
            self.moved(path, plain).next().is_some() || self.is_debug_file(path, plain)
        });
        if all_elsewhere {
            self.check_modes_elsewhere(path, variants, problems);
            return Ok(());
        }
        let all_excused = variants.iter().all(|plain| match plain {
            Plain::File { sha256, .. } => self.excuses.absence(sha256),
            Plain::Link { .. } | Plain::Directory => false,
        });
        if !all_excused {
            let loss = if nodes.is_empty() { FileLoss::Absent } else { FileLoss::OtherContent };
            problems.add(Problem::FileLost { path: format!("{}/{path}", self.prefix), loss });
        }
        Ok(())
    }

    /// Whether a finding says that the file at `path` is the union of those of the shards, and it is.
    fn is_merged(&self, path: &TreePath, variants: &[Plain]) -> Result<bool> {
        if !self.excuses.merged.contains(path) {
            return Ok(false);
        }
        let contents: Vec<Content> = variants.iter().filter_map(content).cloned().collect();
        let merged = match union(&contents) {
            Ok(Union::Merged(merged)) => merged.sha256()?,
            Err(error) if error.is_of_reading() => return Err(error),
            Ok(Union::None(_)) | Err(_) => return Ok(false),
        };
        let mut facts = self.at(path).into_iter().filter_map(InstalledNode::facts);
        Ok(facts.any(|facts| facts.sha256 == merged))
    }

    /// Whether a finding says that the search paths or the first line of the file at `path` were written
    /// anew, and nothing else of it is another.
    fn is_rewritten(&self, path: &TreePath, variants: &[Plain]) -> Result<bool> {
        let rewritten = self.excuses.rewritten.contains_key(path);
        let settled = self.excuses.settled.get(path);
        for facts in self.at(path).into_iter().filter_map(InstalledNode::facts) {
            for content in variants.iter().filter_map(content) {
                if rewritten && host_form::is_rewritten(content, facts, path, self.excuses)? {
                    return Ok(true);
                }
                if let (Class::Script(installed), Some(settled)) = (&facts.class, settled)
                    && let Some(own) = script::read(content)?
                    && is_settled(&own, installed, settled)
                {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Checks the modes at `path`, where the shards have files or folders with `modes`.
    pub(super) fn check_modes(&self, path: &TreePath, modes: &[u32], problems: &mut Problems) {
        for node in self.at(path) {
            let (InstalledNode::File { mode, .. } | InstalledNode::Directory { mode }) = node
            else {
                continue;
            };
            let wanted = self.wanted(path, node, modes);
            note_mode(&format!("{}/{path}", self.prefix), *mode, &wanted, problems);
        }
    }

    /// Checks the modes of what packages have at other places than the artifacts.
    fn check_modes_elsewhere(&self, path: &TreePath, variants: &[Plain], problems: &mut Problems) {
        for plain in variants {
            let modes: Vec<u32> = mode(plain).into_iter().collect();
            for (place, node) in self.moved(path, plain) {
                if let InstalledNode::File { mode, .. } = node {
                    note_mode(place, *mode, &self.wanted(path, node, &modes), problems);
                }
            }
            // Of files that are the same, each package has its own, with its mode.
            let wanted = BTreeSet::from([READABLE, EXECUTABLE]);
            for (place, node) in self.debug_files_like(plain) {
                if let InstalledNode::File { mode, .. } = node {
                    note_mode(place, *mode, &wanted, problems);
                }
            }
        }
    }

    /// The modes that packages may have there: those of the inputs, and for libraries those of their format. Wheels
    /// have the modes of the wheel that they are made from.
    fn wanted(&self, path: &TreePath, node: &InstalledNode, modes: &[u32]) -> BTreeSet<u32> {
        let is_library = node.facts().is_some() && is_library_name(path.name());
        let formats = self.packages.first().and_then(|package| package.format);
        let of_library = formats.filter(|_| is_library).map(|format| match format {
            Format::Deb => READABLE,
            Format::Rpm => EXECUTABLE,
        });
        modes.iter().map(normal).chain(of_library).collect()
    }

    /// The place of a file that a finding moved into a folder below its own.
    fn moved(
        &self,
        path: &TreePath,
        plain: &Plain,
    ) -> impl Iterator<Item = (&str, &InstalledNode)> {
        let folder = path.parent().filter(|folder| self.excuses.moved.contains(folder));
        let below = folder.map(|folder| format!("{}/{folder}/", self.prefix));
        let name = format!("/{}", path.name());
        let packages = below.into_iter().flat_map(|below| {
            self.packages.iter().flat_map(move |package| {
                let below = below.clone();
                let all = package.paths.range(below.clone()..);
                all.take_while(move |(path, _)| path.starts_with(&below))
            })
        });
        let found = packages.filter(move |(path, node)| path.ends_with(&name) && same(plain, node));
        found.map(|(path, node)| (path.as_str(), node))
    }
}

/// The mode that packages give a file or folder that has `mode` in an artifact.
fn normal(mode: &u32) -> u32 {
    if mode & 0o111 == 0 { READABLE } else { EXECUTABLE }
}

/// Names the file or folder that a package has at `path` with a mode that is not `wanted`.
fn note_mode(path: &str, mode: u32, wanted: &BTreeSet<u32>, problems: &mut Problems) {
    if let Some(first) = wanted.iter().next().filter(|_| !wanted.contains(&mode)) {
        let loss = FileLoss::OtherMode { mode, wanted: *first };
        problems.add(Problem::FileLost { path: path.to_owned(), loss });
    }
}

/// Tells whether the node is the artifact's, apart from its mode.
pub(super) fn same(plain: &Plain, node: &InstalledNode) -> bool {
    match (plain, node) {
        (Plain::File { sha256, .. }, InstalledNode::File { facts, .. }) => facts.sha256 == *sha256,
        (Plain::Link { target }, InstalledNode::Link { target: installed }) => target == installed,
        (Plain::Directory, InstalledNode::Directory { .. }) => true,
        _ => false,
    }
}

fn content(plain: &Plain) -> Option<&Content> {
    match plain {
        Plain::File { content, .. } => Some(content),
        Plain::Link { .. } | Plain::Directory => None,
    }
}

fn mode(plain: &Plain) -> Option<u32> {
    match plain {
        Plain::File { mode, .. } => Some(*mode),
        Plain::Directory => Some(EXECUTABLE),
        Plain::Link { .. } => None,
    }
}

/// Whether a script is another one with one of these interpreters in place of its own.
fn is_settled(own: &Script, installed: &Script, interpreters: &BTreeSet<String>) -> bool {
    let known: BTreeSet<&[u8]> =
        words(&own.line).chain(interpreters.iter().map(|new| new.as_bytes())).collect();
    own.body == installed.body && words(&installed.line).all(|word| known.contains(word))
}

/// The words of the first line of a script.
fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let line = line.strip_prefix(script::MAGIC).unwrap_or_default();
    line.split(|byte| b" \t\r\0".contains(byte)).filter(|word| !word.is_empty())
}

/// Whether loaders look for a file of this name: `libx.so`, `libx.so.5.2`.
fn is_library_name(name: &str) -> bool {
    let version = name.rsplit_once(".so.").map(|(_, version)| version);
    name.ends_with(".so")
        || version.is_some_and(|version| version.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_line_has_another_interpreter_and_nothing_else() {
        let own = script_with("#!/usr/bin/env -S A=b python3 -u");
        let settled = BTreeSet::from(["/usr/bin/python3".to_owned()]);
        for (line, expected) in [
            ("#!/usr/bin/env -S A=b /usr/bin/python3 -u", true),
            ("#! /usr/bin/python3 -u", true),
            ("#!/usr/bin/python3 -i", false),
            ("#!/usr/bin/python3.1 -u", false),
            ("#!/bin/sh -u", false),
        ] {
            assert_eq!(is_settled(&own, &script_with(line), &settled), expected, "{line}");
        }
    }

    fn script_with(first_line: &str) -> Script {
        let text = format!("{first_line}\nbody\n");
        script::read(&Content::of_bytes(text.into_bytes())).unwrap().unwrap()
    }
}

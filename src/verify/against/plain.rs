//! Files that are packaged unchanged, except for changes that findings name, and their modes.

use std::collections::BTreeSet;

use rockpack_base::content::Content;
use rockpack_base::error::Result;
use rockpack_base::tree::TreePath;

use super::SetComparison;
use super::account::{self, SearchRewrite};
use super::inputs::Plain;
use crate::input::database::{Union, union};
use crate::package::Format;
use crate::verify::own::facts::Class;
use crate::verify::own::installed::InstalledNode;
use crate::verify::own::script::{self, Script};
use crate::verify::problem::{FileLoss, InputVariant, Problem, Problems};

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
        // Of files that differ, one shard's is installed; of files that were moved, all are.
        let found = variants.iter().any(|plain| {
            nodes.iter().any(|node| same(plain, node))
                || matches!(plain, Plain::Directory) && self.has_below(path)
        });
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
            let was = described(variants);
            let loss = match other_than_unread(variants) {
                _ if nodes.is_empty() => FileLoss::Absent { was },
                Some(loss) => loss,
                None => FileLoss::OtherContent { was },
            };
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
        let place = SearchRewrite { path, prefix: self.prefix, rewritten: true };
        let rewritten = self.excuses.rewritten.contains(path);
        let settled = self.excuses.settled.get(path);
        for facts in self.at(path).into_iter().filter_map(InstalledNode::facts) {
            for content in variants.iter().filter_map(content) {
                if rewritten && is_search_path(content, &facts.sha256, place)? {
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
            for (place, node) in self.debug_files_like(plain) {
                let InstalledNode::File { mode, .. } = node else { continue };
                let mut wanted: BTreeSet<u32> = modes.iter().map(normal).collect();
                if !wanted.contains(mode) {
                    // Of files that are the same, each package has its own.
                    let all = self.inputs.plain.values().flatten();
                    let others = all.filter(|other| same(other, node)).filter_map(self::mode);
                    wanted.extend(others.map(|mode| normal(&mode)));
                }
                note_mode(place, *mode, &wanted, problems);
            }
        }
    }

    /// The modes that packages may have there: libraries have those of their format.
    fn wanted(&self, path: &TreePath, node: &InstalledNode, modes: &[u32]) -> BTreeSet<u32> {
        let named_class = match node {
            InstalledNode::File { facts, .. } if is_library_name(path.name()) => Some(&facts.class),
            _ => None,
        };
        let all_are_debs = self.all_have_format(Some(Format::Deb));
        let of_library = if all_are_debs { READABLE } else { EXECUTABLE };
        let modes = modes.iter().map(normal);
        // Wheels have the modes of the wheel that they are made from.
        let class = named_class.filter(|_| !self.all_have_format(None));
        match class {
            // A library of one arch as a whole is packed as device code is.
            Some(Class::Host(_)) if self.excuses.is_whole(&format!("{}/{path}", self.prefix)) => {
                modes.collect()
            }
            Some(Class::Host(host)) if !host.elf.fixed && !host.elf.linked.is_program => {
                BTreeSet::from([of_library])
            }
            Some(Class::Host(_)) | None => modes.collect(),
            // Perhaps a library, which cannot be read here.
            Some(_) => modes.chain([of_library]).collect(),
        }
    }

    fn all_have_format(&self, format: Option<Format>) -> bool {
        self.packages.iter().all(|package| package.format == format)
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

    /// Whether a directory goes with what is below it.
    fn has_below(&self, path: &TreePath) -> bool {
        let below = format!("{}/{path}/", self.prefix);
        let left_out = self.excuses.leaves_out_below(&below);
        left_out
            || self.packages.iter().any(|package| {
                let next = package.paths.range(below.clone()..).next();
                next.is_some_and(|(path, _)| path.starts_with(&below))
            })
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

/// Whether `sha256` is that of the ELF file `content` with other search paths.
fn is_search_path(content: &Content, sha256: &[u8; 32], place: SearchRewrite<'_>) -> Result<bool> {
    match account::is_plain(content, sha256, place) {
        Err(error) if !error.is_of_reading() => Ok(false),
        found => found,
    }
}

/// Whether a script is another one with one of these interpreters in place of its own.
fn is_settled(own: &Script, installed: &Script, interpreters: &BTreeSet<String>) -> bool {
    let starts = interpreter_starts(&own.line);
    own.body == installed.body
        && starts
            .iter()
            .any(|at| interpreters.iter().any(|new| is_replaced(own, installed, *at, new)))
}

/// Whether the first line of `installed` is that of `own` with `new` in place of the interpreter at `at`.
fn is_replaced(own: &Script, installed: &Script, at: usize, new: &str) -> bool {
    let Some((start, rest)) = own.line.split_at_checked(at) else { return false };
    let line = installed.line.strip_prefix(start);
    let behind = line.and_then(|line| line.strip_prefix(new.as_bytes()));
    behind.is_some_and(|behind| {
        let is_apart = behind.first().is_none_or(|byte| b" \t\r\0".contains(byte));
        is_apart && rest.ends_with(behind)
    })
}

/// The offsets at which the interpreter of a first line may begin: behind `#!`, or behind `env -S` and its
/// variables.
fn interpreter_starts(line: &[u8]) -> Vec<usize> {
    let first = next_word(line, 2);
    let mut starts = vec![first.0];
    let option = next_word(line, first.1);
    if bytes_between(line, first).ends_with(b"/env") && bytes_between(line, option) == b"-S" {
        let mut at = next_word(line, option.1);
        starts.push(at.0);
        while bytes_between(line, at).contains(&b'=') {
            at = next_word(line, at.1);
            starts.push(at.0);
        }
    }
    starts
}

/// The start and the end of the first word from `at` on.
fn next_word(line: &[u8], at: usize) -> (usize, usize) {
    let rest = line.get(at..).unwrap_or_default();
    let start = at + rest.iter().take_while(|byte| is_blank(byte)).count();
    let word = line.get(start..).unwrap_or_default();
    (start, start + word.iter().take_while(|byte| !is_blank(byte)).count())
}

fn bytes_between(line: &[u8], (start, end): (usize, usize)) -> &[u8] {
    line.get(start..end).unwrap_or_default()
}

fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Whether loaders look for a file of this name: `libx.so`, `libx.so.5.2`.
fn is_library_name(name: &str) -> bool {
    let version = name.rsplit_once(".so.").map(|(_, version)| version);
    name.ends_with(".so")
        || version.is_some_and(|version| version.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

/// The loss of a file, one variant of which cannot be read as the kind that it claims to be; `None` if all
/// can.
pub(super) fn other_than_unread(variants: &[Plain]) -> Option<FileLoss> {
    let reason = variants.iter().find_map(|plain| match plain {
        Plain::File { unread, .. } => unread.clone(),
        Plain::Link { .. } | Plain::Directory => None,
    })?;
    Some(FileLoss::OtherThanUnread { was: described(variants), reason })
}

/// Describes the files of the shards at a path.
fn described(variants: &[Plain]) -> InputVariant {
    let shards: BTreeSet<&str> = variants
        .iter()
        .filter_map(|plain| match plain {
            Plain::File { shard, .. } => Some(shard.as_str()),
            _ => None,
        })
        .collect();
    match variants.first() {
        Some(Plain::Link { target }) => InputVariant::Link { target: target.clone() },
        Some(Plain::Directory) => InputVariant::Directory,
        _ => InputVariant::File { shards: shards.into_iter().map(str::to_owned).collect() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_line_has_another_interpreter_and_nothing_else() {
        let own = script_with("#! /build/bin/python3 -u");
        let settled = BTreeSet::from(["/usr/bin/python3".to_owned()]);
        for (line, expected) in [
            ("#! /usr/bin/python3 -u", true),
            ("#! /usr/bin/python3", true),
            ("#!/usr/bin/python3 -u", false),
            ("#! /usr/bin/python3 -i", false),
            ("#! /usr/bin/python3.1 -u", false),
            ("#! /bin/sh -u", false),
        ] {
            assert_eq!(is_settled(&own, &script_with(line), &settled), expected, "{line}");
        }
        let env = script_with("#!/usr/bin/env -S  A=b  python3  -u -B");
        for (line, expected) in [
            ("#!/usr/bin/env -S  A=b  /usr/bin/python3  -u -B", true),
            ("#!/usr/bin/env -S  /usr/bin/python3  -u -B", true),
            ("#!/usr/bin/python3  -u -B", true),
            ("#!/usr/bin/env -S  A=c  /usr/bin/python3  -u -B", false),
            ("#!/usr/bin/env -S  A=b  /usr/bin/python3  -c x", false),
            ("#!/usr/bin/env A=b  /usr/bin/python3  -u -B", false),
        ] {
            assert_eq!(is_settled(&env, &script_with(line), &settled), expected, "{line}");
        }
        let other = script::read(&Content::of_bytes(*b"#! /usr/bin/python3 -u\nelse\n"));
        assert!(!is_settled(&own, &other.unwrap().unwrap(), &settled));
    }

    fn script_with(first_line: &str) -> Script {
        let text = format!("{first_line}\nbody\n");
        script::read(&Content::of_bytes(text.into_bytes())).unwrap().unwrap()
    }
}

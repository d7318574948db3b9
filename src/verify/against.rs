//! Packages against the artifacts they were made from.
//!
//! Every file of the artifacts has to be in a package with the same bytes, every code object in
//! an archive under the wrapper and target it had, or be named by a finding of the receipt; and no
//! archive may hold a code object that the artifacts do not hold.

use std::collections::{BTreeMap, BTreeSet};

use super::facts::Class;
use super::installed::{Installed, InstalledNode};
use super::originals::{self, DeviceEntry};
use super::problem::{Check, Problem};
use crate::artifact::Scan;
use crate::content::{Content, hex};
use crate::error::Result;
use crate::tree::{Node, TreePath};

type Digest = [u8; 32];

/// What the artifacts hold, by install-relative path.
#[derive(Default)]
struct Originals {
    /// Contents of plain files over all shards, and whether the path is a directory or link.
    plain: BTreeMap<TreePath, Vec<Plain>>,
    /// Device code of fat binaries, per shard.
    fat: BTreeMap<TreePath, Vec<(String, originals::Device)>>,
}

enum Plain {
    File { shard: String, sha256: Digest },
    Link { target: String },
    Directory,
}

/// The packages of one format, as far as this comparison needs them.
pub(super) struct Packed<'a> {
    pub(super) packages: &'a [&'a Installed],
    /// Install prefix, absolute.
    pub(super) prefix: &'a str,
    /// SHA-256 of what findings account for.
    pub(super) excused: &'a BTreeSet<String>,
}

/// Compares the packages of each format with `scan`. Returns the problems and how many code
/// objects the artifacts hold.
pub(super) fn check(formats: &[Packed<'_>], scan: &Scan) -> Result<(Vec<Problem>, u64)> {
    let originals = read_originals(scan)?;
    let mut problems = Vec::new();
    for packed in formats {
        check_files(packed, &originals, &mut problems);
        check_code_objects(packed, &originals, &mut problems);
        check_foreign(packed, &originals, &mut problems);
    }
    Ok((problems, originals.entries().count() as u64))
}

impl Originals {
    fn entries(&self) -> impl Iterator<Item = &DeviceEntry> {
        self.fat
            .values()
            .flatten()
            .flat_map(|(_, device)| device.by_wrapper.iter().flatten().chain(&device.unreferenced))
    }
}

fn read_originals(scan: &Scan) -> Result<Originals> {
    let mut originals = Originals::default();
    for shard in &scan.shards {
        let prefixes = shard.artifacts.iter().flat_map(|artifact| &artifact.prefixes);
        for (path, node) in prefixes.flat_map(|prefix| &prefix.tree) {
            match node {
                Node::Directory { .. } => originals.add(path, Plain::Directory),
                Node::Link { target } => {
                    originals.add(path, Plain::Link { target: target.clone() })
                }
                Node::File { data, .. } => originals.add_file(path, &shard.name, data)?,
            }
        }
    }
    Ok(originals)
}

impl Originals {
    fn add(&mut self, path: &TreePath, plain: Plain) {
        self.plain.entry(path.clone()).or_default().push(plain);
    }

    fn add_file(&mut self, path: &TreePath, shard: &str, content: &Content) -> Result<()> {
        if let Some(elf) = super::host_elf::read(content)?
            && let Some(device) = originals::read(content, &elf)?
        {
            self.fat.entry(path.clone()).or_default().push((shard.to_owned(), device));
            return Ok(());
        }
        self.add(path, Plain::File { shard: shard.to_owned(), sha256: content.sha256()? });
        Ok(())
    }
}

fn check_files(packed: &Packed<'_>, originals: &Originals, problems: &mut Vec<Problem>) {
    for (path, variants) in &originals.plain {
        let absolute = format!("{}/{path}", packed.prefix);
        let nodes: Vec<_> = packed.packages.iter().filter_map(|p| p.paths.get(&absolute)).collect();
        let there = variants.iter().any(|plain| nodes.iter().any(|node| same(plain, node)));
        let excused = variants.iter().all(|plain| match plain {
            Plain::File { sha256, .. } => packed.excused.contains(&hex(sha256)),
            Plain::Link { .. } | Plain::Directory => false,
        });
        if !there && !excused {
            let shards: Vec<_> = variants.iter().filter_map(shard_of).collect();
            let message = match nodes.is_empty() {
                true => format!("of {} is in no package", shards.join(", ")),
                false => format!("of {} is in a package with other content", shards.join(", ")),
            };
            problems.push(Problem::new(Check::FileLost, absolute, message));
        }
    }
}

fn shard_of(plain: &Plain) -> Option<&str> {
    match plain {
        Plain::File { shard, .. } => Some(shard),
        Plain::Link { .. } | Plain::Directory => None,
    }
}

fn same(plain: &Plain, node: &InstalledNode) -> bool {
    match (plain, node) {
        (Plain::File { sha256, .. }, InstalledNode::File { facts, .. }) => facts.sha256 == *sha256,
        (Plain::Link { target }, InstalledNode::Link { target: installed }) => target == installed,
        (Plain::Directory, InstalledNode::Directory { .. }) => true,
        _ => false,
    }
}

/// Key → target → code object, over all archives of the packages.
fn rows(packages: &[&Installed]) -> BTreeMap<String, BTreeMap<String, Digest>> {
    let mut rows: BTreeMap<String, BTreeMap<String, Digest>> = BTreeMap::new();
    for (_, facts) in packages.iter().flat_map(|package| package.files()) {
        if let Class::Archive(archive) = &facts.class {
            for (key, targets) in &archive.rows {
                rows.entry(key.clone()).or_default().extend(targets.clone());
            }
        }
    }
    rows
}

fn check_code_objects(packed: &Packed<'_>, originals: &Originals, problems: &mut Vec<Problem>) {
    let rows = rows(packed.packages);
    for (path, shards) in &originals.fat {
        for (shard, device) in shards {
            for (index, entries) in device.by_wrapper.iter().enumerate() {
                let subject = format!("{path} of {shard}, wrapper {index}");
                check_wrapper(path, entries, &rows, packed, &subject, problems);
            }
            let lost =
                device.unreferenced.iter().filter(|e| !packed.excused.contains(&hex(&e.sha256)));
            for entry in lost {
                let message =
                    format!("{} of a bundle without wrapper is in no finding", entry.target);
                problems.push(Problem::new(
                    Check::CodeObjectLost,
                    format!("{path} of {shard}"),
                    message,
                ));
            }
        }
    }
}

/// All packed code objects of a wrapper stand under one and the same key of its binary, each under
/// its own target.
fn check_wrapper(
    path: &TreePath,
    entries: &[DeviceEntry],
    rows: &BTreeMap<String, BTreeMap<String, Digest>>,
    packed: &Packed<'_>,
    subject: &str,
    problems: &mut Vec<Problem>,
) {
    let own_prefix = format!("{path}#");
    let mut common: Option<BTreeSet<&str>> = None;
    for entry in entries {
        let holds =
            |targets: &BTreeMap<String, Digest>| targets.get(&entry.target) == Some(&entry.sha256);
        let own =
            rows.range(own_prefix.clone()..).take_while(|(key, _)| key.starts_with(&own_prefix));
        let keys: BTreeSet<&str> =
            own.filter(|(_, t)| holds(t)).map(|(key, _)| key.as_str()).collect();
        if keys.is_empty() {
            if !packed.excused.contains(&hex(&entry.sha256)) {
                let message = format!("{} {} is in no archive", entry.target, hex(&entry.sha256));
                problems.push(Problem::new(Check::CodeObjectLost, subject, message));
            }
            continue;
        }
        common = Some(match common {
            None => keys,
            Some(before) => before.intersection(&keys).copied().collect(),
        });
    }
    if common.is_some_and(|keys| keys.is_empty()) {
        let message = "its code objects are scattered over several keys";
        problems.push(Problem::new(Check::CodeObjectMisplaced, subject, message));
    }
}

fn check_foreign(packed: &Packed<'_>, originals: &Originals, problems: &mut Vec<Problem>) {
    let known: BTreeSet<Digest> = originals.entries().map(|entry| entry.sha256).collect();
    for (key, targets) in rows(packed.packages) {
        for (target, sha256) in targets.iter().filter(|(_, sha256)| !known.contains(*sha256)) {
            let message = format!("{target} {} comes from no artifact", hex(sha256));
            problems.push(Problem::new(Check::CodeObjectForeign, &key, message));
        }
    }
}

//! Packages against the artifacts they were made from.
//!
//! Every file of the artifacts has to be in a package with the same bytes, every code object in
//! an archive under the wrapper and target it had, or be named by a finding of the receipt; and no
//! package may hold what the artifacts do not hold and no rule makes.

pub(super) mod binaries;
pub(super) mod builds;
pub(super) mod debug_files;
pub(super) mod foreign;
pub(super) mod inputs;
pub(super) mod keys;
pub(super) mod prefix;
pub(super) mod split_inputs;

use std::collections::{BTreeMap, BTreeSet};

use super::checks::excuses::Excuses;
use super::checks::twice;
use super::own::digest::Sha;
use super::own::facts::{Class, FileFacts};
use super::own::installed::{Installed, InstalledNode};
use super::own::originals::DeviceEntry;
use super::problem::{
    CodeLoss, CodePosition, CodeWitness, FileLoss, InputVariant, Misplacement, PackagePath,
    Problem, Problems,
};
use crate::content::hex;
use crate::tree::TreePath;
use builds::{Wrappers, check_builds};
use inputs::{ArtifactInputs, Plain};
use keys::{InstalledRows, WrapperKeys};
use split_inputs::BinaryBuild;

/// The packages of one format beside the artifacts.
pub(super) struct SetComparison<'a> {
    pub(super) packages: &'a [&'a Installed],
    /// Install prefix, absolute.
    pub(super) prefix: &'a str,
    pub(super) excuses: &'a Excuses,
    pub(super) inputs: &'a ArtifactInputs,
}

impl<'a> SetComparison<'a> {
    /// Adds all that is lost, foreign or misplaced.
    pub(super) fn check(&self, problems: &mut Problems) {
        for (path, variants) in &self.inputs.plain {
            // Where another shard's build has device code, that build is what is installed.
            if !self.inputs.fat.contains_key(path) && !self.is_left_out(path) {
                self.check_plain(path, variants, problems);
            }
        }
        let rows = self.rows(problems);
        for (path, builds) in &self.inputs.fat {
            let keys = WrapperKeys::of(path, &rows);
            self.check_lost(path, builds, &keys, problems);
            if self.is_left_out(path) {
                continue;
            }
            self.check_host(path, builds, problems);
            let installed = self.installed_code(path).map(|(code, _)| code);
            check_builds(&Wrappers { path, keys: &keys, installed }, builds, problems);
        }
        self.check_files_lost(problems);
        self.check_foreign(problems);
        self.check_uninvited(problems);
    }

    fn is_left_out(&self, path: &TreePath) -> bool {
        self.excuses.left_out.contains(&format!("{}/{path}", self.prefix))
    }

    /// What stands at an install-relative path, in any package.
    fn at(&self, path: &TreePath) -> Vec<&'a InstalledNode> {
        let absolute = format!("{}/{path}", self.prefix);
        self.packages.iter().filter_map(|package| package.paths.get(&absolute)).collect()
    }

    fn check_plain(&self, path: &TreePath, variants: &[Plain], problems: &mut Problems) {
        let nodes = self.at(path);
        if self.excuses.merged.contains(path) && !nodes.is_empty() {
            return;
        }
        let there = |plain: &Plain| nodes.iter().any(|node| same(plain, node));
        let implied = |plain: &Plain| matches!(plain, Plain::Directory) && self.has_below(path);
        if self.excuses.rewritten.contains(path) && variants.iter().any(|v| self.has_code(path, v))
        {
            return;
        }
        // Of files that differ, one shard's is installed; of files that were moved, all are.
        let found = variants.iter().any(|plain| there(plain) || implied(plain));
        let elsewhere = |plain| self.is_moved(path, plain) || self.is_debug_file(path, plain);
        if found || variants.iter().all(elsewhere) {
            return;
        }
        let excused = |plain: &Plain| match plain {
            Plain::File { sha256, .. } => self.excuses.absence(sha256),
            Plain::Link { .. } | Plain::Directory => false,
        };
        if !variants.iter().all(excused) {
            let was = described(variants);
            let loss = if nodes.is_empty() {
                FileLoss::Absent { was }
            } else {
                FileLoss::OtherContent { was }
            };
            problems.add(Problem::FileLost { path: format!("{}/{path}", self.prefix), loss });
        }
    }

    /// Whether the machine code of `plain`, or the body of a script, is what is installed at `path`.
    fn has_code(&self, path: &TreePath, plain: &Plain) -> bool {
        let body = self.at(path).into_iter().find_map(|node| match &node.facts()?.class {
            Class::Script(script) => Some(script.body),
            _ => None,
        });
        let installed = self.installed_code(path).map(|(code, _)| code).or(body);
        matches!(plain, Plain::File { code, .. } if code.is_some() && *code == installed)
    }

    /// Whether a file is in a folder below its own, as a finding says of its folder.
    fn is_moved(&self, path: &TreePath, plain: &Plain) -> bool {
        let Some(folder) = path.parent().filter(|folder| self.excuses.moved.contains(folder))
        else {
            return false;
        };
        let (below, name) = (format!("{}/{folder}/", self.prefix), format!("/{}", path.name()));
        self.packages.iter().any(|package| {
            let all = package.paths.range(below.clone()..);
            let mut inside = all.take_while(|(path, _)| path.starts_with(&below));
            inside.any(|(path, node)| path.ends_with(&name) && same(plain, node))
        })
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

    /// A transformed binary has the machine code and the wrappers of one of the builds.
    fn check_host(&self, path: &TreePath, builds: &[BinaryBuild], problems: &mut Problems) {
        let absolute = format!("{}/{path}", self.prefix);
        let installed = self.installed_code(path);
        let wrappers = |build: &BinaryBuild| build.device.by_wrapper.len();
        let loss = match installed {
            None => FileLoss::BinaryAbsent,
            Some((code, count))
                if !builds.iter().any(|b| b.code == code && wrappers(b) == count) =>
            {
                FileLoss::OtherBinary
            }
            Some(_) => return,
        };
        problems.add(Problem::FileLost { path: absolute, loss });
    }

    /// Machine code and number of wrappers of the host binary installed at `path`.
    pub(super) fn installed_code(&self, path: &TreePath) -> Option<(Sha, usize)> {
        self.at(path).into_iter().find_map(|node| match &node.facts()?.class {
            Class::Host(host) => Some((host.elf.code, host.elf.wrappers.len())),
            _ => None,
        })
    }

    /// The rows of all archives, of several versions of a package those of the newest. What stands
    /// under a key is compared once: archives that have other code there are a problem, since any of
    /// them may be the one that is loaded.
    fn rows(&self, problems: &mut Problems) -> InstalledRows<'a> {
        let mut rows = InstalledRows::new();
        let mut places = BTreeMap::new();
        let mut others: BTreeMap<(PackagePath, PackagePath), usize> = BTreeMap::new();
        let packages = twice::newest(self.packages);
        let files = packages.iter().flat_map(|p| p.files().map(move |file| (*p, file)));
        for (package, (path, facts)) in files {
            let Class::Archive(archive) = &facts.class else {
                continue;
            };
            for (key, target, facts) in archive.entries() {
                let first = rows.entry(key).or_default().entry(target).or_insert(facts);
                let (other, at) = places.entry((key, target)).or_insert((package, path));
                if first.sha256 != facts.sha256 {
                    *others.entry((package.at(path), other.at(at))).or_default() += 1;
                }
            }
        }
        for ((archive, other), count) in others {
            let misplacement = Misplacement::Contradiction { archive, other, count };
            problems.add(Problem::CodeObjectMisplaced { misplacement });
        }
        rows
    }

    /// Every code object of a binary is under one of its keys and its own target.
    fn check_lost(
        &self,
        path: &TreePath,
        builds: &[BinaryBuild],
        keys: &WrapperKeys<'_>,
        problems: &mut Problems,
    ) {
        for build in builds.iter().filter(|build| !self.is_kept_fat(path, build)) {
            for (index, entries) in build.device.by_wrapper.iter().enumerate() {
                let lost = entries.iter().filter(|entry| {
                    keys.get(entry).is_none() && !self.excuses.absence(&entry.sha256)
                });
                for entry in lost {
                    let shard = build.shard.clone();
                    let loss = CodeLoss::OfWrapper { shard, wrapper: index };
                    problems.add(lost_code(path, entry, loss));
                }
            }
            let unreferenced = build.device.unreferenced.iter();
            for entry in unreferenced.filter(|entry| !self.excuses.absence(&entry.sha256)) {
                let loss = CodeLoss::WithoutWrapper { shard: build.shard.clone() };
                problems.add(lost_code(path, entry, loss));
            }
        }
    }

    /// Every code object of a file that is device code is in such a file of a package.
    fn check_files_lost(&self, problems: &mut Problems) {
        let files = self.packages.iter().flat_map(|package| package.files());
        let mut packed: BTreeSet<&Sha> = BTreeSet::new();
        for (_, facts) in files {
            match &facts.class {
                Class::CodeObject(_) => drop(packed.insert(&facts.sha256)),
                Class::Bundle(entries) => packed.extend(entries.iter().map(|e| &e.sha256)),
                _ => {}
            }
        }
        for (path, shard, entry) in self.inputs.in_files() {
            if !packed.contains(&entry.sha256) && !self.excuses.absence(&entry.sha256) {
                let loss = CodeLoss::OfFile { shard: shard.to_owned() };
                problems.add(lost_code(path, entry, loss));
            }
        }
    }

    /// Whether a finding keeps device code in the binary at `path`, or takes the whole for one
    /// arch's, and it is there: the installed file is the build itself.
    fn is_kept_fat(&self, path: &TreePath, build: &BinaryBuild) -> bool {
        let mut entries = build.device.entries();
        let all_kept = entries.all(|entry| self.excuses.keeps(&entry.sha256))
            || self.excuses.is_whole(&format!("{}/{path}", self.prefix));
        let fat = self.at(path).into_iter().find_map(|node| match node.facts()? {
            FileFacts { class: Class::Host(host), sha256, .. } if host.device_code.is_some() => {
                Some(*sha256)
            }
            _ => None,
        });
        all_kept && fat.is_some_and(|sha256| build.content.sha256().is_ok_and(|own| own == sha256))
    }

    /// All device code of the packages comes from the artifacts.
    fn check_foreign(&self, problems: &mut Problems) {
        let in_files = self.inputs.in_files().map(|(_, _, entry)| entry);
        let entries = self.inputs.in_binaries().chain(in_files);
        let known: BTreeSet<&Sha> = entries.map(|entry| &entry.sha256).collect();
        for package in self.packages {
            for (path, facts) in package.files() {
                let found: Vec<(CodePosition, &Sha)> = match &facts.class {
                    Class::Archive(archive) => archive
                        .entries()
                        .map(|(key, target, found)| (CodePosition::row(key, target), &found.sha256))
                        .collect(),
                    Class::CodeObject(_) => vec![(CodePosition::File, &facts.sha256)],
                    Class::Bundle(entries) => entries
                        .iter()
                        .map(|entry| (CodePosition::Entry { id: entry.id.clone() }, &entry.sha256))
                        .collect(),
                    _ => Vec::new(),
                };
                for (position, sha256) in found.into_iter().filter(|(_, sha)| !known.contains(sha))
                {
                    problems.add(Problem::CodeObjectForeign {
                        file: package.at(path),
                        position,
                        sha256: hex(sha256),
                        unknown_to: CodeWitness::Artifacts,
                    });
                }
            }
        }
    }
}

pub(super) fn same(plain: &Plain, node: &InstalledNode) -> bool {
    match (plain, node) {
        (Plain::File { sha256, .. }, InstalledNode::File { facts, .. }) => facts.sha256 == *sha256,
        (Plain::Link { target }, InstalledNode::Link { target: installed }) => target == installed,
        (Plain::Directory, InstalledNode::Directory { .. }) => true,
        _ => false,
    }
}

fn lost_code(path: &TreePath, entry: &DeviceEntry, loss: CodeLoss) -> Problem {
    let (path, target) = (path.to_string(), entry.target.clone());
    Problem::CodeObjectLost { path, target, sha256: hex(&entry.sha256), loss }
}

/// What the shards have at a path.
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

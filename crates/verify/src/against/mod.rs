//! Compares packages with the artifacts that they were made from.
//!
//! Every file of the artifacts must be in a package with the same bytes and the mode of packages. A binary with device
//! code must have the form of a build without that code ([`host_form`]). Every code object must be in an archive under
//! its wrapper and target. Findings of the receipt may explain exceptions. Everything in a package must come from the
//! artifacts or be made by a rule.

pub(super) mod binaries;
mod builds;
pub(super) mod foreign;
mod host_form;
pub(super) mod inputs;
mod plain;

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::content::hex;
use rockpack_core::error::Result;
use rockpack_core::tree::TreePath;

use crate::against::builds::{InstalledRows, WrapperKeys, check_builds};
use crate::against::inputs::{ArtifactInputs, BinaryBuild};
use crate::checks::excuses::{Excuses, matches_any};
use crate::checks::set_archives::{has_rows_of, shipped};
use crate::checks::{check_versions, newest};
use crate::problem::{ARTIFACTS, CodeLoss, CodePosition, PackagePath, Problem, Problems};
use crate::readers::Sha;
use crate::readers::archive::ArchiveRow;
use crate::readers::facts::Class;
use crate::readers::fat_binary::DeviceEntry;
use crate::readers::installed::{InstalledNode, PackageContents, files_of};

/// The packages of one format and the artifacts.
pub(super) struct SetComparison<'a> {
    pub(super) packages: &'a [&'a PackageContents],
    /// Absolute install prefix; empty for the root, or if unknown.
    pub(super) prefix: &'a str,
    pub(super) excuses: &'a Excuses,
    pub(super) inputs: &'a ArtifactInputs,
}

impl<'a> SetComparison<'a> {
    /// Reports lost or misplaced files and code, and foreign device code.
    pub(super) fn check(&self, problems: &mut Problems) -> Result<()> {
        check_versions(self.packages, problems);
        for (path, variants) in &self.inputs.plain {
            // If the build of another shard has device code, that build is installed.
            if !self.inputs.fat.contains_key(path) && !self.is_left_out(path) {
                self.check_plain(path, variants, problems)?;
            }
        }
        let rows = self.rows(problems);
        for (path, builds) in &self.inputs.fat {
            let keys = WrapperKeys::of(path, &rows);
            self.check_lost(path, builds, &keys, problems);
            if self.is_left_out(path) {
                continue;
            }
            self.check_host(path, builds, problems)?;
            let mut hosts = self.at(path).into_iter().filter_map(|node| node.facts()?.host());
            check_builds(path, &keys, hosts.next().map(|it| it.elf.code), builds, problems);
        }
        self.check_files_lost(problems);
        self.check_foreign(problems);
        Ok(())
    }

    /// The paths of archives that components ship: no marker or manifest leads to them, and they have no row for a
    /// binary of the artifacts, whose package may be missing.
    fn shipped(&self) -> BTreeSet<&'a str> {
        let binaries: BTreeSet<&str> = self.inputs.fat.keys().map(TreePath::as_str).collect();
        let mut shipped = shipped(self.packages);
        for (path, facts) in self.packages.iter().flat_map(|package| package.files()) {
            if has_rows_of(&facts.class, &binaries) {
                shipped.remove(path);
            }
        }
        shipped
    }

    /// Whether the receipt leaves out the path, and no package has it.
    fn is_left_out(&self, path: &TreePath) -> bool {
        self.excuses.left_out.contains(&format!("{}/{path}", self.prefix))
            && self.at(path).is_empty()
    }

    fn at(&self, path: &TreePath) -> Vec<&'a InstalledNode> {
        let absolute = format!("{}/{path}", self.prefix);
        self.packages.iter().filter_map(|package| package.paths.get(&absolute)).collect()
    }

    /// The rows of all archives that were split off binaries, from the newest version of each package. Reports archives
    /// with different code under the same key: any of them may be loaded.
    fn rows(&self, problems: &mut Problems) -> InstalledRows<'a> {
        let shipped = self.shipped();
        let mut rows = InstalledRows::new();
        let mut places = BTreeMap::new();
        let mut others: BTreeMap<(PackagePath, PackagePath), usize> = BTreeMap::new();
        for (package, path, facts) in files_of(&newest(self.packages)) {
            let archive = facts.archive().filter(|_| !shipped.contains(path));
            let Some(archive) = archive else { continue };
            for ArchiveRow { key, target, facts } in archive.entries() {
                let first = rows.entry(key).or_default().entry(target).or_insert(facts);
                let (other, at) = places.entry((key, target)).or_insert((package, path));
                if first.sha256 != facts.sha256 {
                    *others.entry((package.at(path), other.at(at))).or_default() += 1;
                }
            }
        }
        for ((archive, other), count) in others {
            let reason = format!("has other code than {other} under {count} of its keys");
            problems.add(Problem::CodeObjectMisplaced { place: archive.to_string(), reason });
        }
        // Foreign code is reported separately.
        let known = self.known();
        rows.values_mut().for_each(|row| row.retain(|_, facts| known.contains(&facts.sha256)));
        rows
    }

    /// Checks that every code object of a binary is under one of its keys and its own target.
    fn check_lost(
        &self,
        path: &TreePath,
        builds: &[BinaryBuild],
        keys: &WrapperKeys<'_>,
        problems: &mut Problems,
    ) {
        for build in builds.iter().filter(|build| !self.is_kept_fat(path, build)) {
            let mut dropped = BTreeMap::new();
            for (index, entries) in build.by_wrapper.iter().enumerate() {
                let lost = entries.iter().filter(|entry| {
                    let may_be_dropped = || keys.can_be_dropped(&entry.target, build, builds);
                    keys.get(entry).is_none()
                        && !(self.excuses.explains_absence(&entry.sha256)
                            && *dropped.entry(&entry.target).or_insert_with(may_be_dropped))
                });
                for entry in lost {
                    let shard = build.file.shard.clone();
                    let loss = CodeLoss::NotInArchive { shard, wrapper: index };
                    problems.add(lost_code(path.as_str(), entry, loss));
                }
            }
        }
    }

    /// Checks that every code object of a device code file is in a device code file of a package.
    fn check_files_lost(&self, problems: &mut Problems) {
        let shipped = self.shipped();
        let files = self.packages.iter().flat_map(|package| package.files());
        let are_device_code = files.filter(|(path, facts)| {
            !matches!(facts.class, Class::Archive(_)) || shipped.contains(path)
        });
        let found = are_device_code.flat_map(|(_, facts)| facts.code_objects());
        let packed: BTreeSet<&Sha> = found.map(|(_, sha256)| sha256).collect();
        for (path, file, entry) in self.inputs.in_files() {
            if !packed.contains(&entry.sha256) && !self.excuses.explains_absence(&entry.sha256) {
                let loss = CodeLoss::NotInPackage { shard: file.shard.clone() };
                problems.add(lost_code(path.as_str(), entry, loss));
            }
        }
    }

    /// Whether a finding keeps device code in the binary at `path`, or says that the file is for one arch, and the
    /// installed file is the build itself.
    fn is_kept_fat(&self, path: &TreePath, build: &BinaryBuild) -> bool {
        let mut entries = build.entries();
        let all_kept = entries.all(|entry| self.excuses.keeps_code(&entry.sha256))
            || matches_any(&self.excuses.whole, &format!("{}/{path}", self.prefix));
        let mut files = self.at(path).into_iter().filter_map(InstalledNode::facts);
        let fat = files.find(|it| it.host().is_some_and(|host| host.device_code.is_some()));
        let build = &build.file.content;
        let is_build = |fat| host_form::is_rewritten(build, fat, path, self.excuses);
        all_kept && fat.is_some_and(|fat| is_build(fat).unwrap_or(false))
    }

    fn known(&self) -> BTreeSet<&'a Sha> {
        let in_files = self.inputs.in_files().map(|(_, _, entry)| entry);
        let entries = self.inputs.in_binaries().chain(in_files);
        entries.map(|entry| &entry.sha256).collect()
    }

    /// Checks that all device code of the packages is in the artifacts.
    fn check_foreign(&self, problems: &mut Problems) {
        let (known, shipped) = (self.known(), self.shipped());
        for (package, path, facts) in files_of(self.packages) {
            let mut found = facts.code_objects();
            if let Some(archive) = facts.archive().filter(|_| !shipped.contains(path)) {
                let named: BTreeSet<&Sha> = found.iter().map(|(_, sha256)| *sha256).collect();
                let all = archive.code_objects.iter().flatten().map(|code| &code.sha256);
                let of_no_row = all.filter(|sha256| !named.contains(sha256));
                found.extend(of_no_row.map(|sha256| (CodePosition::File, sha256)));
            }
            found.retain(|(_, sha256)| !known.contains(sha256));
            for (position, sha256) in found {
                let (file, sha256, unknown_to) = (package.at(path), (*sha256).into(), ARTIFACTS);
                problems.add(Problem::CodeObjectForeign { file, position, sha256, unknown_to });
            }
        }
    }
}

fn lost_code(path: &str, entry: &DeviceEntry, loss: CodeLoss) -> Problem {
    let (path, target) = (path.to_owned(), entry.target.clone());
    Problem::CodeObjectLost { path, target, sha256: hex(&entry.sha256), loss }
}

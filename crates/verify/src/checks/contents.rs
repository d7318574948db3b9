//! The content that each kind of package may have.

use std::collections::BTreeSet;

use rockpack_core::error::Error;
use rockpack_core::gfx::{BaseArch, Target};
use rockpack_report::words::few;

use crate::checks::excuses::{Excuses, matches_any};
use crate::checks::set_archives::shipped;
use crate::problem::{PackagePath, Problem, ProblemPlace, Problems, SetFault};
use crate::readers::Sha;
use crate::readers::archive::{ArchiveFacts, ArchiveRow, CodeKind, row_fault};
use crate::readers::elf_file::addresses_of;
use crate::readers::facts::{Claimed, Class, FileFacts, HostFacts};
use crate::readers::host_elf::{HIPK, HostElf, WrapperRecord};
use crate::readers::index::{arch_family_at, serves_all};
use crate::readers::installed::{ContentRole, InstalledNode, PackageContents};

pub(crate) fn check(set: &[&PackageContents], excuses: &Excuses, problems: &mut Problems) {
    let shipped = shipped(set);
    set.iter().for_each(|package| check_one(package, set, &shipped, excuses, problems));
}

/// Checks the files of one package of `set`. `shipped` are the paths of archives that components ship; it is empty for
/// single files, whose install path is unknown: their archives count as split off binaries.
pub(crate) fn check_one(
    package: &PackageContents,
    set: &[&PackageContents],
    shipped: &BTreeSet<&str>,
    excuses: &Excuses,
    problems: &mut Problems,
) {
    // This reads all files, so it is called once.
    let role = package.role();
    for (path, facts) in package.files() {
        let is_shipped = shipped.contains(path);
        let mut file = CheckedFile { package, set, path, is_shipped, problems };
        if let Class::Archive(archive) = &facts.class {
            file.archive(archive);
        }
        match role {
            ContentRole::Kernels => file.check_in_kernel_package(facts, excuses),
            // A wheel may keep archives that nothing in it refers to.
            ContentRole::Unsplit if facts.class.claims_to_be_archive() => {}
            ContentRole::Host | ContentRole::Unsplit => {
                file.check_in_host_package(&facts.class, &facts.sha256, excuses)
            }
            ContentRole::Both => match &facts.class {
                Class::Host(host) if host.claims_to_be_transformed() => file.host(host, excuses),
                Class::Broken(claimed, error) => {
                    file.unreadable(*claimed, error, ContentRole::Both)
                }
                _ => {}
            },
        }
    }
}

struct CheckedFile<'a> {
    package: &'a PackageContents,
    set: &'a [&'a PackageContents],
    path: &'a str,
    /// Whether it is an archive that a component ships.
    is_shipped: bool,
    problems: &'a mut Problems,
}

impl CheckedFile<'_> {
    fn place(&self) -> PackagePath {
        self.package.at(self.path)
    }

    fn bad_archive(&mut self, reason: String) {
        self.problems.add(Problem::BadArchive { file: self.place(), reason });
    }

    fn add_foreign_arch(&mut self, reason: String) {
        self.problems.add(Problem::ForeignArch { place: ProblemPlace::File(self.place()), reason });
    }

    fn add_device_code_in_host(&mut self, reason: impl Into<String>) {
        let (file, reason) = (self.place(), reason.into());
        self.problems.add(Problem::DeviceCodeInHost { file, reason });
    }

    fn bad_host(&mut self, reason: String) {
        self.problems.add(Problem::BadHostBinary { file: self.place(), reason });
    }

    /// Checks that every row has a code object that runs on its target.
    fn archive(&mut self, archive: &ArchiveFacts) {
        for fault in &archive.faults {
            self.bad_archive(fault.clone());
        }
        let is_shipped = self.is_shipped;
        let row_fault = if is_shipped { shipped_fault } else { row_fault };
        for ArchiveRow { key, target, facts } in archive.entries() {
            if let Some(fault) = row_fault(target, &facts.code_kind) {
                self.bad_archive(format!("{key} [{target}]: {fault}"));
            }
        }
        let rows: BTreeSet<&String> = archive.rows.values().flat_map(|row| row.keys()).collect();
        let listed: BTreeSet<&String> = archive.listed.iter().collect();
        for target in rows.difference(&listed) {
            self.bad_archive(format!("has rows for {target}, which it does not list"));
        }
        for target in listed.difference(&rows).filter(|_| !is_shipped) {
            self.bad_archive(format!("lists {target}, for which it has no row"));
        }
    }

    fn check_in_kernel_package(&mut self, facts: &FileFacts, excuses: &Excuses) {
        match &facts.class {
            Class::Host(_) if matches_any(&excuses.whole, self.path) => {}
            Class::Host(_) | Class::Broken(Claimed::Host, _) => {
                self.problems.add(Problem::HostCodeInKernels { file: self.place() });
            }
            // Manifests are checked in host packages.
            Class::Broken(Claimed::Manifest, _) => {}
            Class::Broken(claimed, error) => self.unreadable(*claimed, error, ContentRole::Kernels),
            Class::CodeObject(CodeKind::Compiled(target)) => self.check_arch(target.base()),
            Class::Bundle(entries) => {
                let targets = entries.iter().map(|entry| entry.target.as_str());
                self.whole_file(archs_of(targets), &facts.sha256);
            }
            Class::Archive(archive) if self.is_shipped => {
                let targets = archive.rows.values().flat_map(|row| row.keys());
                self.whole_file(archs_of(targets.map(String::as_str)), &facts.sha256);
            }
            Class::Archive(archive) => {
                let targets = archive.listed.iter().filter_map(|text| text.parse::<Target>().ok());
                targets.for_each(|target| self.check_arch(target.base()));
            }
            Class::Index(index) if !index.archs.is_empty() => {
                if let Some(own) = &self.package.stated_archs
                    && !index.archs.iter().any(|arch| own.iter().any(|own| own == arch.as_str()))
                {
                    let indexed: Vec<&BaseArch> = index.archs.iter().collect();
                    let (indexed, own) = (few(&indexed, 5), few(own, 5));
                    self.add_foreign_arch(format!(
                        "is an index for {indexed}; the package is for {own}"
                    ));
                }
            }
            _ => {}
        }
    }

    /// Checks a bundle or archive that its library opens as one file: the packages of all its archs have the same file.
    fn whole_file(&mut self, archs: BTreeSet<BaseArch>, sha256: &Sha) {
        if !archs.iter().any(|arch| self.serves(arch)) {
            return archs.iter().for_each(|arch| self.check_arch(arch));
        }
        for arch in archs.iter().filter(|arch| !self.serves(arch)).collect::<Vec<_>>() {
            let others = self.set.iter().filter(|it| it.stated_archs.is_some() && it.states(arch));
            for other in others {
                let own = other.paths.get(self.path).and_then(InstalledNode::facts);
                if own.is_some_and(|facts| facts.sha256 == *sha256) {
                    continue;
                }
                let own = few(self.package.stated_archs.as_deref().unwrap_or_default(), 5);
                let other = &other.file;
                self.add_foreign_arch(format!(
                    "is a bundle for {own} and {arch}, but {other} does not have the same file"
                ));
            }
        }
    }

    /// Checks that the package states `arch`, for which the file has code.
    fn check_arch(&mut self, arch: &BaseArch) {
        if let Some(own) = &self.package.stated_archs
            && !self.serves(arch)
        {
            self.add_foreign_arch(format!(
                "holds code for {arch}; the package is for {}",
                few(own, 5)
            ));
        }
    }

    /// Whether the package is for `arch`, or `arch` is generic and the package is for a member of the arch family of
    /// the file's directory.
    fn serves(&self, arch: &BaseArch) -> bool {
        let is_for_member = || arch_family_at(self.path).iter().any(|it| self.package.states(it));
        self.package.states(arch) || arch.is_generic() && is_for_member()
    }

    fn check_in_host_package(&mut self, class: &Class, sha256: &[u8; 32], excuses: &Excuses) {
        match class {
            Class::CodeObject(_) if !excuses.keeps_code(sha256) => {
                self.add_device_code_in_host("is a code object, and no finding keeps it here");
            }
            Class::Bundle(_) if matches_any(&excuses.embedded, self.path) => {}
            Class::Bundle(entries) if !entries.iter().all(|it| excuses.keeps_code(&it.sha256)) => {
                self.add_device_code_in_host("is a bundle, and no finding keeps it here");
            }
            // A shipped archive may stay if it has no code, or if a finding keeps its code there.
            Class::Archive(archive)
                if !self.is_shipped
                    || !archive.entries().all(|row| excuses.keeps_code(&row.facts.sha256)) =>
            {
                self.add_device_code_in_host("is a kernel archive in a host package");
            }
            Class::Index(index)
                if !matches_any(&excuses.kept_files, self.path) && !serves_all(self.path) =>
            {
                if let (Some(arch), 1) = (index.archs.first(), index.archs.len()) {
                    self.add_device_code_in_host(format!("is an index for {arch} alone"));
                }
            }
            Class::Host(host) => self.host(host, excuses),
            Class::Broken(claimed, error) => self.unreadable(*claimed, error, ContentRole::Host),
            _ => {}
        }
    }

    fn host(&mut self, host: &HostFacts, excuses: &Excuses) {
        if let Some(found) = &host.device_code
            && !matches_any(&excuses.kept_files, self.path)
        {
            self.add_device_code_in_host(found);
        }
        if let Some(found) = &host.embedded
            && !matches_any(&excuses.embedded, self.path)
            && !matches_any(&excuses.kept_files, self.path)
        {
            self.add_device_code_in_host(found);
        }
        if let Some(reason) = &host.marker_fault {
            self.bad_host(reason.clone());
        }
        for fault in wrapper_faults(&host.elf) {
            self.bad_host(fault);
        }
    }

    /// Reports a file of a package for `role` that is invalid for the format that it claims.
    fn unreadable(&mut self, claimed: Claimed, error: &Error, role: ContentRole) {
        let (file, reason) = (self.place(), error.to_string());
        match claimed {
            Claimed::Host => self.bad_host(reason),
            Claimed::Device | Claimed::Archive if role == ContentRole::Host => {
                self.add_device_code_in_host(reason)
            }
            Claimed::Device | Claimed::Archive => self.bad_archive(reason),
            Claimed::Database => self.problems.add(Problem::BadDatabase { file, reason }),
            Claimed::Manifest => {
                self.problems.add(Problem::BadManifest { file, fault: SetFault::wrong(reason) });
            }
        }
    }
}

/// The fault of a row of an archive that rockpack did not write. Such a row may use any known spelling of its target,
/// and may have code for a generic target in rows of single archs.
fn shipped_fault(target: &str, code_kind: &CodeKind) -> Option<String> {
    let plain = Target::parse_spelling(target).map(|target| target.to_string());
    let is_generic = matches!(code_kind, CodeKind::Compiled(own) if own.base().is_generic());
    let fault = row_fault(plain.as_deref().unwrap_or(target), code_kind)?;
    (plain.is_err() || !is_generic).then_some(fault)
}

fn archs_of<'t>(targets: impl Iterator<Item = &'t str>) -> BTreeSet<BaseArch> {
    let targets = targets.filter_map(|text| Target::parse_spelling(text).ok());
    targets.map(|target| target.base().clone()).collect()
}

fn wrapper_faults(elf: &HostElf) -> Vec<String> {
    let mut faults = Vec::new();
    let transformed = elf.wrappers.iter().filter(|w| w.magic == HIPK).count();
    if transformed == 0 {
        let alone = "has a marker, but no wrapper that points to it";
        return elf.marker.iter().map(|_| alone.to_owned()).collect();
    }
    let marker = elf.marker.as_ref().map(|section| addresses_of(section).start);
    let count = elf.wrappers.len();
    if transformed != count {
        faults.push(format!("{transformed} of {count} wrappers are transformed"));
    }
    for (position, wrapper) in elf.wrappers.iter().enumerate() {
        let WrapperRecord { version, pointer, moves, co_index, .. } = *wrapper;
        let leads_elsewhere = marker.is_some_and(|marker| marker != pointer);
        let possible = [
            (version != 1, format!("has version {version}, where runtimes expect 1")),
            (leads_elsewhere, format!("points to {pointer:#x}, not to the marker")),
            (
                !elf.fixed && !moves,
                "has a pointer that no relocation moves with the file".to_owned(),
            ),
            (usize::try_from(co_index) != Ok(position), format!("has the index {co_index}")),
        ];
        let found = possible.into_iter().filter(|(is_wrong, _)| *is_wrong);
        faults.extend(found.map(|(_, fault)| format!("wrapper {position} {fault}")));
    }
    faults
}

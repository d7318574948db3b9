//! The content that each kind of package may have.

use std::collections::BTreeSet;

use rockpack_core::error::Error;
use rockpack_core::gfx::{BaseArch, Target};
use rockpack_report::words::few;

use crate::checks::excuses::{Excuses, is_one_of};
use crate::checks::set_archives::shipped;
use crate::own::Sha;
use crate::own::archive::{ArchiveFacts, ArchiveRow, Nature, row_fault};
use crate::own::elf_file::addresses_of;
use crate::own::facts::{Claimed, Class, FileFacts, HostFacts};
use crate::own::host_elf::{HIPK, HostElf, WrapperRecord};
use crate::own::index::{arch_family_at, serves_all};
use crate::own::installed::{Installed, InstalledNode, Side};
use crate::problem::{PackagePath, Problem, ProblemPlace, Problems, SetFault};

/// Checks the files of all packages of `set`.
pub(crate) fn check(set: &[&Installed], excuses: &Excuses, problems: &mut Problems) {
    let shipped = shipped(set);
    set.iter().for_each(|package| check_one(package, set, &shipped, excuses, problems));
}

/// Checks the files of one package of `set`; `shipped` are the paths of archives that components ship themselves.
/// Of single files, whose place of installation is unknown, none is: archives count as split off binaries.
pub(crate) fn check_one(
    package: &Installed,
    set: &[&Installed],
    shipped: &BTreeSet<&str>,
    excuses: &Excuses,
    problems: &mut Problems,
) {
    // All files are looked at for it.
    let side = package.side();
    for (path, facts) in package.files() {
        let is_shipped = shipped.contains(path);
        let mut file = CheckedFile { package, set, path, is_shipped, problems };
        if let Class::Archive(archive) = &facts.class {
            file.archive(archive);
        }
        match side {
            Side::Kernels => file.of_kernels(facts, excuses),
            // A wheel may keep archives that nothing in it asks for.
            Side::Plain if facts.class.claims_to_be_archive() => {}
            Side::Host | Side::Plain => file.of_host(&facts.class, &facts.sha256, excuses),
            Side::Both => match &facts.class {
                Class::Host(host) if host.claims_to_be_transformed() => file.host(host, excuses),
                Class::Broken(claimed, error) => file.unreadable(*claimed, error, Side::Both),
                _ => {}
            },
        }
    }
}

struct CheckedFile<'a> {
    package: &'a Installed,
    set: &'a [&'a Installed],
    path: &'a str,
    /// Whether it is an archive that a component ships itself.
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

    fn foreign(&mut self, reason: String) {
        self.problems.add(Problem::ForeignArch { place: ProblemPlace::File(self.place()), reason });
    }

    fn hosted(&mut self, reason: impl Into<String>) {
        let (file, reason) = (self.place(), reason.into());
        self.problems.add(Problem::DeviceCodeInHost { file, reason });
    }

    fn bad_host(&mut self, reason: String) {
        self.problems.add(Problem::BadHostBinary { file: self.place(), reason });
    }

    /// Every row names a code object that runs on its target.
    fn archive(&mut self, archive: &ArchiveFacts) {
        for fault in &archive.faults {
            self.bad_archive(fault.clone());
        }
        let is_shipped = self.is_shipped;
        let row_fault = if is_shipped { shipped_fault } else { row_fault };
        for ArchiveRow { key, target, facts } in archive.entries() {
            if let Some(fault) = row_fault(target, &facts.nature) {
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

    fn of_kernels(&mut self, facts: &FileFacts, excuses: &Excuses) {
        match &facts.class {
            Class::Host(_) if is_one_of(&excuses.whole, self.path) => {}
            Class::Host(_) | Class::Broken(Claimed::Host, _) => {
                self.problems.add(Problem::HostCodeInKernels { file: self.place() });
            }
            // Manifests are looked at where they belong, in host packages.
            Class::Broken(Claimed::Manifest, _) => {}
            Class::Broken(claimed, error) => self.unreadable(*claimed, error, Side::Kernels),
            Class::CodeObject(Nature::Compiled(target)) => self.of_arch(target.base()),
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
                targets.for_each(|target| self.of_arch(target.base()));
            }
            Class::Index(index) if !index.archs.is_empty() => {
                if let Some(own) = &self.package.stated_archs
                    && !index.archs.iter().any(|arch| own.iter().any(|own| own == arch.as_str()))
                {
                    let indexed: Vec<&BaseArch> = index.archs.iter().collect();
                    let (indexed, own) = (few(&indexed, 5), few(own, 5));
                    self.foreign(format!("is an index for {indexed}; the package is for {own}"));
                }
            }
            _ => {}
        }
    }

    /// Checks a bundle or archive that its library opens whole and that is not cut: it is unchanged in the
    /// packages of all archs that it is for.
    fn whole_file(&mut self, archs: BTreeSet<BaseArch>, sha256: &Sha) {
        if !archs.iter().any(|arch| self.serves(arch)) {
            return archs.iter().for_each(|arch| self.of_arch(arch));
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
                self.foreign(format!(
                    "is a bundle for {own} and {arch}, and {other} has no equal file"
                ));
            }
        }
    }

    /// Device code for `arch` is in a package that says it is for it.
    fn of_arch(&mut self, arch: &BaseArch) {
        if let Some(own) = &self.package.stated_archs
            && !self.serves(arch)
        {
            self.foreign(format!("holds code for {arch}; the package is for {}", few(own, 5)));
        }
    }

    /// Whether the package is for `arch`, or for a member of the arch family of the file's directory, which runs code
    /// for a generic one.
    fn serves(&self, arch: &BaseArch) -> bool {
        let is_for_member = || arch_family_at(self.path).iter().any(|it| self.package.states(it));
        self.package.states(arch) || arch.is_generic() && is_for_member()
    }

    fn of_host(&mut self, class: &Class, sha256: &[u8; 32], excuses: &Excuses) {
        match class {
            Class::CodeObject(_) if !excuses.keeps(sha256) => {
                self.hosted("is a code object, and no finding keeps it here");
            }
            Class::Bundle(_) if is_one_of(&excuses.embedded, self.path) => {}
            Class::Bundle(entries) if !entries.iter().all(|it| excuses.keeps(&it.sha256)) => {
                self.hosted("is a bundle, and no finding keeps it here");
            }
            // It may stay if a component ships it itself, and it holds no code, or code that a finding keeps there.
            Class::Archive(archive)
                if !self.is_shipped
                    || !archive.entries().all(|row| excuses.keeps(&row.facts.sha256)) =>
            {
                self.hosted("is a kernel archive in a host package");
            }
            Class::Index(index)
                if !is_one_of(&excuses.kept_files, self.path) && !serves_all(self.path) =>
            {
                if let (Some(arch), 1) = (index.archs.first(), index.archs.len()) {
                    self.hosted(format!("is an index for {arch} alone"));
                }
            }
            Class::Host(host) => self.host(host, excuses),
            Class::Broken(claimed, error) => self.unreadable(*claimed, error, Side::Host),
            _ => {}
        }
    }

    fn host(&mut self, host: &HostFacts, excuses: &Excuses) {
        if let Some(found) = &host.device_code
            && !is_one_of(&excuses.kept_files, self.path)
        {
            self.hosted(found);
        }
        if let Some(found) = &host.embedded
            && !is_one_of(&excuses.embedded, self.path)
            && !is_one_of(&excuses.kept_files, self.path)
        {
            self.hosted(found);
        }
        if let Some(reason) = &host.marker_fault {
            self.bad_host(reason.clone());
        }
        for fault in wrapper_faults(&host.elf) {
            self.bad_host(fault);
        }
    }

    /// A file of a package for `side` that cannot be read as what it claims to be.
    fn unreadable(&mut self, claimed: Claimed, error: &Error, side: Side) {
        let (file, reason) = (self.place(), error.to_string());
        match claimed {
            Claimed::Host => self.bad_host(reason),
            Claimed::Device | Claimed::Archive if side == Side::Host => self.hosted(reason),
            Claimed::Device | Claimed::Archive => self.bad_archive(reason),
            Claimed::Database => self.problems.add(Problem::BadDatabase { file, reason }),
            Claimed::Manifest => {
                self.problems.add(Problem::BadManifest { file, fault: SetFault::wrong(reason) });
            }
        }
    }
}

/// The fault of a row of an archive that rockpack did not write. Such a row may spell its target in any of
/// the ways in use, and have code for a generic target in rows of single archs.
fn shipped_fault(target: &str, nature: &Nature) -> Option<String> {
    let plain = Target::parse_spelling(target).map(|target| target.to_string());
    let is_generic = matches!(nature, Nature::Compiled(own) if own.base().is_generic());
    let fault = row_fault(plain.as_deref().unwrap_or(target), nature)?;
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

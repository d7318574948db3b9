//! What may be in which kind of package, by content.

use std::collections::BTreeSet;

use super::excuses::Excuses;
use crate::gfx::{BaseArch, Target};
use crate::verify::own::archive::{ArchiveFacts, Nature, row_fault};
use crate::verify::own::digest::Sha;
use crate::verify::own::facts::{Claimed, Class, FileFacts, HostFacts};
use crate::verify::own::host_elf::{HIPK, HostElf};
use crate::verify::own::installed::{Installed, Side};
use crate::verify::own::originals::DeviceEntry;
use crate::verify::problem::{Check, Problems};

/// Checks the files of one package of `set`.
pub(in crate::verify) fn check(
    package: &Installed,
    set: &[&Installed],
    excuses: &Excuses,
    problems: &mut Problems,
) {
    // All files are looked at for it.
    let side = package.side();
    for (path, facts) in package.files() {
        let mut file = CheckedFile { package, set, path, problems };
        if let Class::Archive(archive) = &facts.class {
            file.archive(archive);
        }
        match side {
            Side::Kernels => file.of_kernels(facts, excuses),
            Side::Host => file.of_host(&facts.class, &facts.sha256, excuses),
            Side::Both => file.of_both(&facts.class, excuses),
        }
    }
}

/// A file that is looked at.
struct CheckedFile<'a> {
    package: &'a Installed,
    set: &'a [&'a Installed],
    path: &'a str,
    problems: &'a mut Problems,
}

impl CheckedFile<'_> {
    fn add(&mut self, check: Check, message: impl Into<String>) {
        self.problems.add(check, self.package.at(self.path), message);
    }

    /// Every row names a code object that runs on its target.
    fn archive(&mut self, archive: &ArchiveFacts) {
        for fault in &archive.faults {
            self.add(Check::BadArchive, fault);
        }
        for (key, target, facts) in archive.entries() {
            if let Some(fault) = row_fault(target, &facts.nature) {
                self.add(Check::BadArchive, format!("{key} [{target}]: {fault}"));
            }
        }
        let rows: BTreeSet<&String> = archive.rows.values().flat_map(|row| row.keys()).collect();
        let listed: BTreeSet<&String> = archive.listed.iter().collect();
        for target in rows.difference(&listed) {
            self.add(Check::BadArchive, format!("has rows for {target}, which it does not list"));
        }
        for target in listed.difference(&rows) {
            self.add(Check::BadArchive, format!("lists {target}, for which it has no row"));
        }
    }

    fn of_kernels(&mut self, facts: &FileFacts, excuses: &Excuses) {
        match &facts.class {
            Class::Host(_) if excuses.is_whole(self.path) => {}
            Class::Host(_) | Class::Broken(Claimed::Host, _) => {
                self.add(Check::HostCodeInKernels, "a kernel package installs x86-64 code");
            }
            Class::Broken(Claimed::Database, error) => {
                self.add(Check::BadDatabase, error.to_string());
            }
            Class::CodeObject(Nature::Compiled(target)) => self.of_arch(target.base()),
            Class::Bundle(entries) => self.bundle(entries, &facts.sha256),
            Class::Archive(archive) => archive.listed.iter().for_each(|text| self.of_target(text)),
            Class::Index(index) if !index.archs.is_empty() => self.index(&index.archs),
            Class::Broken(Claimed::Device | Claimed::Archive, error) => {
                self.add(Check::BadArchive, error.to_string())
            }
            _ => {}
        }
    }

    fn of_target(&mut self, text: &str) {
        if let Ok(target) = text.parse::<Target>() {
            self.of_arch(target.base());
        }
    }

    /// A bundle is not cut: it lies, as it is, in the artifacts of all archs that it is for.
    fn bundle(&mut self, entries: &[DeviceEntry], sha256: &Sha) {
        let targets = entries.iter().filter_map(|entry| entry.target.parse::<Target>().ok());
        let archs: BTreeSet<BaseArch> = targets.map(|target| target.base().clone()).collect();
        let own = |arch: &BaseArch| self.package.states(arch);
        if !archs.iter().any(own) {
            return archs.iter().for_each(|arch| self.of_arch(arch));
        }
        for arch in archs.iter().filter(|arch| !own(arch)).collect::<Vec<_>>() {
            let others = self.set.iter().filter(|other| other.says_it_is_for(arch));
            for other in others.filter(|other| !other.has_file(self.path, sha256)) {
                let own = self.package.stated_archs.as_deref().unwrap_or_default().join(", ");
                let message = format!(
                    "is a bundle for {own} and {arch}, and {} has no equal file",
                    other.file
                );
                self.problems.add(Check::ForeignArch, self.package.at(self.path), message);
            }
        }
    }

    /// Device code for `arch` is in a package that says it is for it.
    fn of_arch(&mut self, arch: &BaseArch) {
        if let Some(own) = &self.package.stated_archs
            && !self.package.states(arch)
        {
            let message = format!("holds code for {arch}; the package is for {}", own.join(", "));
            self.add(Check::ForeignArch, message);
        }
    }

    fn index(&mut self, archs: &BTreeSet<BaseArch>) {
        if let Some(own) = &self.package.stated_archs
            && !archs.iter().any(|arch| own.iter().any(|own| own == arch.as_str()))
        {
            let archs: Vec<&str> = archs.iter().map(BaseArch::as_str).collect();
            let own = own.join(", ");
            let message = format!("is an index for {}; the package is for {own}", archs.join(", "));
            self.add(Check::ForeignArch, message);
        }
    }

    fn of_host(&mut self, class: &Class, sha256: &[u8; 32], excuses: &Excuses) {
        let kept = |entry: &DeviceEntry| excuses.keeps(&entry.sha256);
        match class {
            Class::CodeObject(_) if !excuses.keeps(sha256) => {
                self.add(Check::DeviceCodeInHost, "is a code object, and no finding keeps it here");
            }
            Class::Bundle(entries) if !entries.iter().all(kept) => {
                self.add(Check::DeviceCodeInHost, "is a bundle, and no finding keeps it here");
            }
            Class::Archive(_) => {
                self.add(Check::DeviceCodeInHost, "is a kernel archive in a host package");
            }
            Class::Index(index) if index.archs.len() == 1 && !excuses.keeps_file(self.path) => {
                let arch = index.archs.first().map(BaseArch::as_str).unwrap_or_default();
                self.add(Check::DeviceCodeInHost, format!("is an index for {arch} alone"));
            }
            Class::Host(host) => self.host(host, excuses),
            Class::Broken(claimed, error) => {
                self.add(check_of(*claimed, Check::DeviceCodeInHost), error.to_string());
            }
            _ => {}
        }
    }

    /// Where host and device code lie together, files have to be in order by themselves.
    fn of_both(&mut self, class: &Class, excuses: &Excuses) {
        match class {
            Class::Host(host) if host.claims_to_be_transformed() => self.host(host, excuses),
            Class::Broken(claimed, error) => {
                self.add(check_of(*claimed, Check::BadArchive), error.to_string());
            }
            _ => {}
        }
    }

    fn host(&mut self, host: &HostFacts, excuses: &Excuses) {
        if let Some(found) = &host.device_code
            && !excuses.keeps_file(self.path)
        {
            self.add(Check::DeviceCodeInHost, format!("still has {found}"));
        }
        if let Some(fault) = &host.marker_fault {
            self.add(Check::BadHostBinary, fault);
        }
        for fault in wrapper_faults(&host.elf) {
            self.add(Check::BadHostBinary, fault);
        }
    }
}

/// What a file fails that cannot be read as what it claims to be; `device` if that is device code.
fn check_of(claimed: Claimed, device: Check) -> Check {
    match claimed {
        Claimed::Host => Check::BadHostBinary,
        Claimed::Device | Claimed::Archive => device,
        Claimed::Database => Check::BadDatabase,
        Claimed::Manifest => Check::BadManifest,
    }
}

/// What contradicts itself in the wrappers of a host binary.
fn wrapper_faults(elf: &HostElf) -> Vec<String> {
    let mut faults = Vec::new();
    let transformed = elf.wrappers.iter().filter(|w| w.magic == HIPK).count();
    if transformed == 0 {
        let orphan =
            elf.marker.map(|_| "has a marker, but no wrapper that points to it".to_owned());
        return orphan.into_iter().collect();
    }
    if transformed != elf.wrappers.len() {
        faults.push(format!("{transformed} of {} wrappers are transformed", elf.wrappers.len()));
    }
    for (position, wrapper) in elf.wrappers.iter().enumerate() {
        let mut fault = |what: String| faults.push(format!("wrapper {position} {what}"));
        if wrapper.version != 1 {
            fault(format!("has version {}, where runtimes expect 1", wrapper.version));
        }
        if elf.marker.is_some_and(|marker| marker.address != wrapper.pointer) {
            fault(format!("points to {:#x}, not to the marker", wrapper.pointer));
        }
        if !elf.fixed && !wrapper.moves {
            fault("has a pointer that no relocation moves with the file".to_owned());
        }
        if usize::try_from(wrapper.co_index) != Ok(position) {
            fault(format!("has the index {}", wrapper.co_index));
        }
    }
    faults
}

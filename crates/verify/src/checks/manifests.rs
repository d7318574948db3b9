//! The manifests of a set: which files lie where they say, and whether they list the archives of the set as they
//! are.

use std::collections::BTreeSet;

use rockpack_elf::kpm::{Manifest, ManifestArchive};
use rockpack_report::words::few;

use crate::checks::Scope;
use crate::checks::set_archives::{Archives, archives, damaged};
use crate::folder_of;
use crate::own::archive::Nature;
use crate::own::facts::Class;
use crate::own::installed::{Installed, InstalledNode, files_of};
use crate::problem::{Problem, Problems, SetFault};

/// Whether every archive that a manifest lists is there.
pub(crate) fn are_complete(packages: &[&Installed]) -> bool {
    let archives = archives(packages);
    listings(packages).iter().all(|listing| {
        let mut files = listing.manifest.archives.values();
        files.all(|stated| archives.contains_key(listing.beside(&stated.file).as_str()))
    })
}

/// Checks every manifest, and that every archive is in one where manifests belong.
pub(crate) fn check(packages: &[&Installed], scope: Scope, problems: &mut Problems) {
    let (archives, damaged) = (archives(packages), damaged(packages));
    let mut listed = BTreeSet::new();
    for listing in listings(packages) {
        let mut found = Vec::new();
        if listing.prefix().is_none() {
            let Manifest { component_name, prefix, .. } = listing.manifest;
            let reason = format!("says it is {component_name}.kpm in a folder of {prefix}");
            found.push(SetFault::wrong(reason));
        }
        if scope == Scope::Prefix {
            found.extend(listing.unserved(packages, &archives, &damaged));
        }
        for (arch, stated) in &listing.manifest.archives {
            let path = listing.beside(&stated.file);
            let there = archives.contains_key(path.as_str());
            if there || scope != Scope::Prefix && !damaged.contains(path.as_str()) {
                found.extend(faults(arch, stated, &path, &archives));
            }
            listed.insert(path);
        }
        for fault in found {
            let file = listing.package.at(listing.path);
            problems.add(Problem::BadManifest { file, fault });
        }
    }
    if listed.is_empty() && scope != Scope::Set {
        return;
    }
    for (path, (package, _)) in archives.iter().filter(|(path, _)| !listed.contains(**path)) {
        let (file, fault) = (package.at(path), SetFault::absent("no manifest of the set lists it"));
        problems.add(Problem::BadManifest { file, fault });
    }
}

fn is_code_for(class: &Class, arch: &str) -> bool {
    matches!(class, Class::CodeObject(Nature::Compiled(target)) if target.base().as_str() == arch)
}

fn faults(arch: &str, stated: &ManifestArchive, path: &str, all: &Archives<'_>) -> Vec<SetFault> {
    let Some((package, archive)) = all.get(path) else {
        return vec![SetFault::absent(format!("lists {path}, which is not there"))];
    };
    let mut reasons = Vec::new();
    if let Some(InstalledNode::File { facts, .. }) = package.paths.get(path)
        && facts.size != stated.size
    {
        let (size, stated) = (facts.size, stated.size);
        reasons.push(format!("says that {path} has {stated} bytes, and it has {size}"));
    }
    if !archive.listed.iter().all(|target| target.split(':').next() == Some(arch)) {
        let targets = few(&archive.listed, 5);
        reasons.push(format!("lists {path} for {arch}, and it is for {targets}"));
    }
    reasons.into_iter().map(SetFault::wrong).collect()
}

/// The name of the install prefix in a manifest whose folder is right below it.
const PREFIX_ITSELF: &str = ".";

pub(crate) struct ManifestListing<'a> {
    pub(crate) package: &'a Installed,
    pub(crate) path: &'a str,
    pub(crate) manifest: &'a Manifest,
}

pub(crate) fn listings<'a>(packages: &[&'a Installed]) -> Vec<ManifestListing<'a>> {
    let listings = files_of(packages).filter_map(|(package, path, facts)| match &facts.class {
        Class::Manifest(manifest) => Some(ManifestListing { package, path, manifest }),
        _ => None,
    });
    listings.collect()
}

impl ManifestListing<'_> {
    /// Archs whose database code is installed, while all archives of theirs are gone. Where there
    /// are other archives of an arch, the groups of this component may not be installed.
    fn unserved(
        &self,
        packages: &[&Installed],
        archives: &Archives<'_>,
        damaged: &BTreeSet<&str>,
    ) -> Vec<SetFault> {
        let mut faults = Vec::new();
        for (arch, stated) in &self.manifest.archives {
            let archive = format!("_{arch}.kpack");
            if archives.keys().chain(damaged).any(|path| path.ends_with(&archive)) {
                continue;
            }
            let mut files = packages.iter().flat_map(|package| package.files());
            if let Some((path, _)) = files.find(|(_, facts)| is_code_for(&facts.class, arch)) {
                let archive = self.beside(&stated.file);
                faults.push(SetFault::absent(format!(
                    "lists {archive}, which is not there, and {path} is for {arch}"
                )));
            }
        }
        faults
    }

    pub(crate) fn beside(&self, file: &str) -> String {
        format!("{}/{file}", folder_of(self.path))
    }

    /// The install prefix, if the manifest lies where it says. What the folder of kernel archives
    /// itself is called, no manifest says: mostly `.kpack`.
    pub(crate) fn prefix(&self) -> Option<&str> {
        let Manifest { component_name, prefix, .. } = self.manifest;
        let folder = self.path.strip_suffix(&format!("/{component_name}.kpm"))?;
        let (above, _) = folder.rsplit_once('/')?;
        match prefix.as_str() {
            PREFIX_ITSELF => Some(above),
            prefix => above.strip_suffix(&format!("/{prefix}")),
        }
    }
}

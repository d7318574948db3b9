//! Checks that kernel manifests are at the path that they state, and that they list the archives of the set correctly.

use std::collections::BTreeSet;

use rockpack_elf::kpm::{Manifest, ManifestArchive};
use rockpack_report::words::few;

use crate::checks::Scope;
use crate::checks::set_archives::{Archives, archives, damaged};
use crate::folder_of;
use crate::problem::{Problem, Problems, SetFault};
use crate::readers::archive::CodeKind;
use crate::readers::facts::Class;
use crate::readers::installed::{InstalledNode, PackageContents, files_of};

/// Whether every archive that a manifest lists is present.
pub(crate) fn has_listed_archives(packages: &[&PackageContents]) -> bool {
    let archives = archives(packages);
    listings(packages).iter().all(|listing| {
        let mut files = listing.manifest.archives.values();
        files.all(|stated| archives.contains_key(listing.sibling_path(&stated.file).as_str()))
    })
}

/// Checks every manifest, and that a manifest lists every archive.
pub(crate) fn check(packages: &[&PackageContents], scope: Scope, problems: &mut Problems) {
    let (archives, damaged) = (archives(packages), damaged(packages));
    let mut listed = BTreeSet::new();
    for listing in listings(packages) {
        let mut found = Vec::new();
        if listing.prefix().is_none() {
            let Manifest { component_name, prefix, .. } = listing.manifest;
            let reason = format!("states that it is {component_name}.kpm in a folder of {prefix}");
            found.push(SetFault::wrong(reason));
        }
        if scope == Scope::Prefix {
            found.extend(listing.uncovered_archs(packages, &archives, &damaged));
        }
        for (arch, stated) in &listing.manifest.archives {
            let path = listing.sibling_path(&stated.file);
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
    matches!(class, Class::CodeObject(CodeKind::Compiled(target)) if target.base().as_str() == arch)
}

fn faults(arch: &str, stated: &ManifestArchive, path: &str, all: &Archives<'_>) -> Vec<SetFault> {
    let Some((package, archive)) = all.get(path) else {
        return vec![SetFault::absent(format!("lists {path}, which is missing"))];
    };
    let mut reasons = Vec::new();
    if let Some(InstalledNode::File { facts, .. }) = package.paths.get(path)
        && facts.size != stated.size
    {
        let (size, stated) = (facts.size, stated.size);
        reasons.push(format!("states {stated} bytes for {path}, which has {size}"));
    }
    if !archive.listed.iter().all(|target| target.split(':').next() == Some(arch)) {
        let targets = few(&archive.listed, 5);
        reasons.push(format!("lists {path} for {arch}, but it is for {targets}"));
    }
    reasons.into_iter().map(SetFault::wrong).collect()
}

/// The `prefix` field of a manifest whose folder is directly below the install prefix.
const PREFIX_ITSELF: &str = ".";

pub(crate) struct ManifestListing<'a> {
    pub(crate) package: &'a PackageContents,
    pub(crate) path: &'a str,
    pub(crate) manifest: &'a Manifest,
}

pub(crate) fn listings<'a>(packages: &[&'a PackageContents]) -> Vec<ManifestListing<'a>> {
    let listings = files_of(packages).filter_map(|(package, path, facts)| match &facts.class {
        Class::Manifest(manifest) => Some(ManifestListing { package, path, manifest }),
        _ => None,
    });
    listings.collect()
}

impl ManifestListing<'_> {
    /// Reports archs with installed database code but without any kernel archive. If there are other archives of an
    /// arch, the groups of this component may not be installed.
    fn uncovered_archs(
        &self,
        packages: &[&PackageContents],
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
                let archive = self.sibling_path(&stated.file);
                faults.push(SetFault::absent(format!(
                    "lists {archive}, which is missing, although {path} is for {arch}"
                )));
            }
        }
        faults
    }

    pub(crate) fn sibling_path(&self, file: &str) -> String {
        format!("{}/{file}", folder_of(self.path))
    }

    /// The install prefix, if the manifest is at the path that it states. Manifests do not state the name of the folder
    /// of kernel archives, usually `.kpack`.
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

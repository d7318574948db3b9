//! Whether manifests list the archives of the set as they are.

use std::collections::BTreeSet;

use super::scope::Scope;
use super::set_archives::{Archives, archives, damaged};
use crate::formats::kpm::{Manifest, ManifestArchive};
use crate::verify::own::archive::{ArchiveFacts, Nature};
use crate::verify::own::facts::Class;
use crate::verify::own::installed::{Installed, InstalledNode};
use crate::verify::problem::{Check, Problems};

/// What a manifest calls the install prefix, where its folder lies right below.
const PREFIX_ITSELF: &str = ".";

/// Whether every archive that a manifest lists is there.
pub(in crate::verify) fn are_complete(packages: &[&Installed]) -> bool {
    let archives = archives(packages);
    let has = |listing: &ManifestListing<'_>| {
        let mut files = listing.manifest.archives.values();
        files.all(|stated| archives.contains_key(listing.beside(&stated.file).as_str()))
    };
    listings(packages).iter().all(has)
}

/// A manifest of a package.
pub(in crate::verify) struct ManifestListing<'a> {
    pub(in crate::verify) package: &'a Installed,
    pub(in crate::verify) path: &'a str,
    pub(in crate::verify) manifest: &'a Manifest,
}

/// All manifests of `packages`.
pub(in crate::verify) fn listings<'a>(packages: &[&'a Installed]) -> Vec<ManifestListing<'a>> {
    let files = packages.iter().flat_map(|package| package.files().map(move |f| (*package, f)));
    let listings = files.filter_map(|(package, (path, facts))| match &facts.class {
        Class::Manifest(manifest) => Some(ManifestListing { package, path, manifest }),
        _ => None,
    });
    listings.collect()
}

impl ManifestListing<'_> {
    /// The install path of a file beside the manifest.
    pub(in crate::verify) fn beside(&self, file: &str) -> String {
        let folder = self.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{folder}/{file}")
    }

    /// Archs whose database code is installed, while all archives of theirs are gone. Where there
    /// are other archives of an arch, the groups of this component may not be installed.
    fn unserved(&self, packages: &[&Installed]) -> Vec<String> {
        let mut faults = Vec::new();
        for (arch, stated) in &self.manifest.archives {
            let files = || packages.iter().flat_map(|package| package.files());
            let archive = format!("_{arch}.kpack");
            if files().any(|(path, _)| path.ends_with(&archive)) {
                continue;
            }
            if let Some((path, _)) = files().find(|(_, facts)| is_code_for(&facts.class, arch)) {
                let file = self.beside(&stated.file);
                faults.push(format!("lists {file}, which is not there, and {path} is for {arch}"));
            }
        }
        faults
    }

    /// The install prefix, if the manifest lies where it says. What the folder of kernel archives
    /// itself is called, no manifest says: mostly `.kpack`.
    pub(in crate::verify) fn prefix(&self) -> Option<&str> {
        let Manifest { component_name, prefix, .. } = self.manifest;
        let folder = self.path.strip_suffix(&format!("/{component_name}.kpm"))?;
        let (above, _) = folder.rsplit_once('/')?;
        match prefix.as_str() {
            PREFIX_ITSELF => Some(above),
            prefix => above.strip_suffix(&format!("/{prefix}")),
        }
    }
}

/// Checks every manifest, and that every archive is in one where manifests belong.
pub(in crate::verify) fn check(packages: &[&Installed], scope: Scope, problems: &mut Problems) {
    let (archives, damaged) = (archives(packages), damaged(packages));
    let mut listed = BTreeSet::new();
    for listing in listings(packages) {
        let at = listing.package.at(listing.path);
        if listing.prefix().is_none() {
            let Manifest { component_name, prefix, .. } = listing.manifest;
            let message = format!("says it is {component_name}.kpm in a folder of {prefix}");
            problems.add(Check::BadManifest, &at, message);
        }
        if scope == Scope::Prefix {
            for fault in listing.unserved(packages) {
                problems.add(Check::BadManifest, &at, fault);
            }
        }
        for (arch, stated) in &listing.manifest.archives {
            let path = listing.beside(&stated.file);
            let there = archives.contains_key(path.as_str());
            if there || scope.has_all_archives() && !damaged.contains(path.as_str()) {
                for fault in faults(arch, stated, &path, &archives) {
                    problems.add(Check::BadManifest, &at, fault);
                }
            }
            listed.insert(path);
        }
    }
    if listed.is_empty() && !scope.has_all_manifests() {
        return;
    }
    for (path, (package, _)) in archives.iter().filter(|(path, _)| !listed.contains(**path)) {
        problems.add(Check::BadManifest, package.at(path), "no manifest of the set lists it");
    }
}

fn is_code_for(class: &Class, arch: &str) -> bool {
    matches!(class, Class::CodeObject(Nature::Compiled(target)) if target.base().as_str() == arch)
}

fn faults(
    arch: &str,
    stated: &ManifestArchive,
    path: &str,
    archives: &Archives<'_>,
) -> Vec<String> {
    let Some((package, archive)) = archives.get(path) else {
        return vec![format!("lists {path}, which is not there")];
    };
    let mut faults = Vec::new();
    if let Some(InstalledNode::File { facts, .. }) = package.paths.get(path)
        && facts.size != stated.size
    {
        let (size, stated) = (facts.size, stated.size);
        faults.push(format!("says that {path} has {stated} bytes, and it has {size}"));
    }
    let count = stated.kernel_count;
    if !kernel_counts(archive).contains(&count) {
        let message = format!("says that {path} has {count} kernels, and it has other rows");
        faults.push(message);
    }
    let own = |text: &String| text.split(':').next() == Some(arch);
    if !archive.listed.iter().all(own) {
        faults
            .push(format!("lists {path} for {arch}, and it is for {}", archive.listed.join(", ")));
    }
    faults
}

/// How many code objects wrappers name in an archive. Rows for full target IDs may repeat another
/// row's code object, so with features there is a least and a greatest count.
fn kernel_counts(archive: &ArchiveFacts) -> std::ops::RangeInclusive<u64> {
    let rows = archive.row_count();
    if !archive.listed.iter().any(|target| target.contains(':')) {
        return rows..=rows;
    }
    let distinct = |row: &std::collections::BTreeMap<String, usize>| {
        row.values().collect::<BTreeSet<_>>().len() as u64
    };
    archive.rows.values().map(distinct).sum()..=rows
}

//! Unchanged packages: a set that updates earlier sets of its version keeps them, and builds only the others.
//!
//! ```text
//! Plan ─ comparison: each package's metadata, and every byte of its files, equal the receipt's
//!      ─ here: packages that could not be installed together with the built ones are not kept
//!      ─ here: relations of built packages state the versions of kept ones
//! ```
//!
//! An unchanged package is kept if the versions of the set satisfy its relations. A kernel package and its
//! host are made together, as each requires exactly the other's version.

mod comparison;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use rockpack_core::error::Result;
use rockpack_core::gfx::BaseArch;
use rockpack_core::tree::Node;
use rockpack_elf::kpm::ManifestArchive;

use super::{Sources, archive};
use comparison::PackageComparison;
use rockpack_package::receipt::PackageRecord;
use rockpack_package::requirement::Bound;
use rockpack_package::{Comparison, Format, Package, RelationKind};
use rockpack_plan::recombine::Recombined;
use rockpack_plan::{FileSource, Plan};
use rockpack_report::found;

/// Moves the packages that can be kept from `plan.packages` to `plan.kept`, and adjusts the relations of the others.
pub fn keep(recombined: &Recombined, plan: &mut Plan) -> Result<()> {
    if plan.current_packages.is_empty() {
        return Ok(());
    }
    let comparison = PackageComparison::new(Sources::new(recombined, plan), &plan.current_packages);
    let mut unchanged = comparison.unchanged_ids(&plan.packages)?;
    let outside: BTreeSet<String> =
        plan.kept.packages.iter().map(|record| record.id.clone()).collect();
    while drop_bound(plan, &outside, &mut unchanged) {}
    let made: BTreeSet<String> = plan
        .packages
        .iter()
        .map(|package| package.id.clone())
        .filter(|id| !unchanged.contains(id))
        .collect();
    plan.kept = plan
        .current_packages
        .kept(|record| unchanged.contains(&record.id) || outside.contains(&record.id));
    for record in &mut plan.kept.packages {
        // Libraries move to other packages.
        let planned = plan.packages.iter().find(|package| package.id == record.id);
        planned.into_iter().for_each(|it| record.imports.clone_from(&it.identity.imports));
    }
    plan.keep(&made);
    let kept: KeptRecords = plan
        .kept
        .packages
        .iter()
        .filter_map(|record| Some(((record.format, record.name()?), record.clone())))
        .collect();
    plan.packages.iter_mut().for_each(|package| relate(package, &kept));
    keep_archives(recombined, plan)?;
    // The findings about kept packages, and about receipts that no signature proves.
    plan.current_packages.doubts(&plan.kept).for_each(|doubt| plan.findings.add(doubt));
    let kept = plan.kept.packages.iter();
    let packages: Vec<String> = kept.map(|record| record.file_name.clone()).collect();
    if !packages.is_empty() {
        let version = format!("{}-{}", plan.version.set_upstream(), plan.version.set_release());
        let made = plan.packages.iter().map(|package| package.formats().count()).sum();
        plan.findings.add(found::PackagesKept { version, made, packages });
    }
    plan.findings.sort();
    Ok(())
}

/// Removes the archives of kept packages from their sets, and notes their sizes and kernel counts for the
/// manifests.
fn keep_archives(recombined: &Recombined, plan: &mut Plan) -> Result<()> {
    let mut sizes: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
    for record in &plan.kept.packages {
        for member in &record.members {
            let Some(size) = member.size else { continue };
            let [deb, rpm] = sizes.entry(member.path.as_str()).or_insert([size; 2]);
            *record.format.select(deb, rpm) = size;
        }
    }
    let entries = plan.packages.iter().flat_map(|package| &package.entries);
    let made: HashSet<(&str, &BaseArch)> =
        entries.filter_map(|entry| entry.node.data()?.archive()).collect();
    let sources = Sources::new(recombined, plan);
    let mut sets = plan.archives.clone();
    for set in &mut sets {
        for arch in std::mem::take(&mut set.archs) {
            let file = archive::file_name(&set.name, arch.as_str());
            let path = format!("{}/{}/{file}", plan.prefix.absolute(), set.folder);
            match sizes.get(path.as_str()) {
                Some([deb, rpm]) if !made.contains(&(set.name.as_str(), &arch)) => {
                    let kernels = sources.kernels_for(&set.name, &arch)?;
                    let kernel_count = kernels.len() as u64;
                    let entry = |size| ManifestArchive { file: file.clone(), size, kernel_count };
                    set.kept.deb.insert(arch.clone(), entry(*deb));
                    set.kept.rpm.insert(arch, entry(*rpm));
                }
                _ => set.archs.push(arch),
            }
        }
    }
    plan.archives = sets;
    Ok(())
}

/// Removes from `unchanged` the packages that cannot be installed together with the built ones. Returns whether there
/// were any.
fn drop_bound(plan: &Plan, outside: &BTreeSet<String>, unchanged: &mut BTreeSet<String>) -> bool {
    let versions = Versions::of(plan, outside, unchanged);
    let mut dropped = BTreeSet::new();
    for package in &plan.packages {
        if unchanged.contains(&package.id) {
            let mut records = package
                .formats()
                .filter_map(|format| plan.current_packages.get(format, &package.id));
            if !records.all(|record| versions.satisfy(record)) {
                dropped.insert(package.id.clone());
            }
        } else if package.role.kind().is_kernels() {
            dropped.extend(versions.hosts(package).filter(|id| unchanged.contains(*id)).cloned());
        }
    }
    unchanged.retain(|id| !dropped.contains(id));
    !dropped.is_empty()
}

/// The version and id of each package in the set as it would be.
struct Versions(BTreeMap<(Format, String), (String, String)>);

impl Versions {
    fn of(plan: &Plan, outside: &BTreeSet<String>, unchanged: &BTreeSet<String>) -> Self {
        let mut versions = BTreeMap::new();
        let staying = plan
            .current_packages
            .packages()
            .filter(|record| outside.contains(&record.id) || unchanged.contains(&record.id));
        for record in staying {
            if let Some(name) = record.name() {
                let known = (record.version.clone(), record.id.clone());
                versions.insert((record.format, name), known);
            }
        }
        let made = plan.packages.iter().filter(|package| !unchanged.contains(&package.id));
        for (package, format) in made.flat_map(|p| Format::ALL.map(|format| (p, format))) {
            if let (Some(name), Some(version)) =
                (package.name(format), package.full_version(format))
            {
                versions.insert((format, name.to_owned()), (version, package.id.clone()));
            }
        }
        Self(versions)
    }

    /// Whether the versions satisfy the dependencies of `record` on packages of the set.
    fn satisfy(&self, record: &PackageRecord) -> bool {
        let format = record.format;
        let mut needed = record.relations.iter().filter(|r| r.kind == RelationKind::Depends);
        needed.all(|relation| {
            let (Some(sign), Some(bound)) = (relation.comparison, &relation.version) else {
                return true;
            };
            let version = Some((sign, Cow::Borrowed(bound.as_str())));
            let bound = Bound { name: Cow::Borrowed(&relation.name), version };
            let known = self.0.get(&(format, relation.name.clone()));
            known.is_none_or(|(version, _)| bound.admits(format, version))
        })
    }

    /// The ids of a planned package's host, and of the packages that it needs in its own version.
    fn hosts<'a>(&'a self, package: &'a Package<FileSource>) -> impl Iterator<Item = &'a String> {
        Format::ALL.into_iter().flat_map(move |format| {
            let own = package.full_version(format);
            let exact = package.relations(format).iter().filter(move |relation| {
                let bound = relation.version.as_ref();
                let is_own = bound.is_some_and(|(sign, bound)| {
                    *sign == Comparison::Equal && Some(bound) == own.as_ref()
                });
                let is_host = relation.kind == RelationKind::Enhances;
                is_host || (relation.kind == RelationKind::Depends && is_own)
            });
            exact.filter_map(move |relation| {
                self.0.get(&(format, relation.name.clone())).map(|(_, id)| id)
            })
        })
    }
}

type KeptRecords = BTreeMap<(Format, String), PackageRecord>;

/// Replaces the set's version in the relations of a package that is made by those of kept packages.
fn relate(package: &mut Package<FileSource>, kept: &KeptRecords) {
    let of_set = package.identity.of_set.clone();
    for (format, relation) in of_set {
        let Some(record) = kept.get(&(format, relation.name.clone())) else { continue };
        let Some(relations) = package.relations_mut(format) else { continue };
        for own in relations.iter_mut().filter(|own| **own == relation) {
            if let Some((_, bound)) = &mut own.version {
                bound.clone_from(&record.version);
            }
        }
        relations.sort();
    }
    relate_taken(package, kept);
}

/// Puts the versions of kept packages into the relations of a package that took paths from them. Kept
/// versions no longer have these paths: the relations mean only earlier ones.
fn relate_taken(package: &mut Package<FileSource>, kept: &KeptRecords) {
    let files: BTreeSet<String> = package
        .entries
        .iter()
        .filter(|e| !matches!(e.node, Node::Directory { .. }))
        .map(|entry| format!("/{}", entry.path))
        .collect();
    let mut superseding = std::mem::take(&mut package.identity.superseding);
    for (format, relation) in &mut superseding {
        let Some(record) = kept.get(&(*format, relation.name.clone())) else { continue };
        let own = package.full_version(*format);
        let has_none = record.members.iter().all(|member| !files.contains(&member.path));
        let before = relation.clone();
        let Some((_, bound)) = &mut relation.version else { continue };
        if has_none && Some(&*bound) == own.as_ref() {
            bound.clone_from(&record.version);
            if let Some(relations) = package.relations_mut(*format) {
                relations
                    .iter_mut()
                    .filter(|it| **it == before)
                    .for_each(|it| *it = relation.clone());
                relations.sort();
            }
        }
    }
    package.identity.superseding = superseding;
}

//! The comparison of a planned package with the existing one, without their versions.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use rockpack_core::content::hex;
use rockpack_core::error::{Error, Result, ResultExt};
use rockpack_core::gfx::BaseArch;
use rockpack_core::tree::Node;

use crate::pack::Sources;
use rockpack_package::receipt::listing::code_digests;
use rockpack_package::receipt::{CurrentPackages, MemberRecord, PackageRecord};
use rockpack_package::{MemberKind, Package, PackageEntry};
use rockpack_plan::FileSource;

pub(super) struct PackageComparison<'a> {
    sources: Sources<'a>,
    current_packages: &'a CurrentPackages,
    /// The digest of the code objects in each existing kernel archive, by path.
    code: BTreeMap<String, String>,
}

impl<'a> PackageComparison<'a> {
    pub fn new(sources: Sources<'a>, current_packages: &'a CurrentPackages) -> Self {
        Self { sources, current_packages, code: code_digests(current_packages.all_code_objects()) }
    }

    /// The ids of those `packages` that exist already, unchanged and with an earlier version, in every format
    /// that they are planned in. Reads every file of packages that seem unchanged.
    pub fn unchanged_ids(&self, packages: &[Package<FileSource>]) -> Result<BTreeSet<String>> {
        let changed = self.changed_archives(packages)?;
        let same: Vec<Result<bool>> = packages
            .par_iter()
            .map(|package| {
                let is_same = self.is_same(package, &changed);
                is_same.context(|| format!("comparing {} with the earlier set", package.id))
            })
            .collect();
        let mut ids = BTreeSet::new();
        for (package, is_same) in packages.iter().zip(same) {
            if is_same? {
                ids.insert(package.id.clone());
            }
        }
        Ok(ids)
    }

    /// The archives that are new or have other code.
    fn changed_archives(
        &self,
        packages: &'a [Package<FileSource>],
    ) -> Result<BTreeSet<ArchiveId<'a>>> {
        let entries = packages.iter().flat_map(|package| &package.entries);
        let archives: Vec<_> = entries
            .filter_map(|entry| Some((&entry.path, entry.node.data()?.archive()?)))
            .collect();
        let changed: Result<Vec<Option<_>>> = archives
            .par_iter()
            .map(|&(path, (set, arch))| {
                let known = self.code.get(&format!("/{path}"));
                let is_same =
                    known.is_some() && known == Some(&self.sources.code_digest(set, arch)?);
                Ok((!is_same).then_some((set, arch)))
            })
            .collect();
        Ok(changed?.into_iter().flatten().collect())
    }

    fn is_same(
        &self,
        package: &Package<FileSource>,
        changed: &BTreeSet<ArchiveId<'_>>,
    ) -> Result<bool> {
        let mut records = Vec::new();
        for format in package.formats() {
            let (found, own) =
                (self.current_packages.keepable(format, &package.id), package.full_version(format));
            let (Some(record), Some(own)) = (found, own) else { return Ok(false) };
            if format.compare_versions(&record.version, &own).is_ge() {
                return Ok(false);
            }
            records.push(record);
        }
        let are_alike = records.iter().all(|record| {
            record.metadata_sha256.is_some()
                && record.metadata_sha256.as_ref() == package.identity.control(record.format)
                && has_paths_of(record, package)
        });
        if !are_alike || package.entries.iter().any(|entry| uses_changed(entry, changed)) {
            return Ok(false);
        }
        self.has_content_of(&records, package)
    }

    /// Whether the files of `package` are those of `records`, except archives and their manifests,
    /// which are compared separately.
    fn has_content_of(
        &self,
        records: &[&PackageRecord],
        package: &Package<FileSource>,
    ) -> Result<bool> {
        for entry in &package.entries {
            let Some(source) = entry.node.data() else { continue };
            // Archives and manifests are compared separately, and a changelog has the version.
            if matches!(
                source,
                FileSource::Archive { .. } | FileSource::Manifest { .. } | FileSource::Changelog(_)
            ) {
                continue;
            }
            let known = self.sources.known(source)?;
            let content =
                known.ok_or_else(|| Error::bug(format!("{} has no bytes", entry.path)))?;
            let of_format: Vec<&PackageRecord> =
                records.iter().filter(|record| entry.formats.has(record.format)).copied().collect();
            let path = format!("/{}", entry.path);
            let members = of_format.iter().filter_map(|record| member(record, &path));
            let stated: Vec<&MemberRecord> = members.collect();
            let is_known = stated.len() == of_format.len();
            if !is_known || stated.iter().any(|member| member.size != Some(content.len())) {
                return Ok(false);
            }
            let digest = hex(&content.sha256()?);
            if stated.iter().any(|member| member.sha256.as_ref() != Some(&digest)) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// A kernel archive, by its set of archives and its arch.
type ArchiveId<'a> = (&'a str, &'a BaseArch);

/// Whether an entry is a changed archive, or the manifest of one: it has the sizes of all archives of
/// its set.
fn uses_changed(entry: &PackageEntry<FileSource>, changed: &BTreeSet<ArchiveId<'_>>) -> bool {
    match entry.node.data() {
        Some(FileSource::Archive { archives, arch }) => {
            changed.contains(&(archives.as_str(), arch))
        }
        Some(FileSource::Manifest { archives }) => changed.iter().any(|(set, _)| set == archives),
        _ => false,
    }
}

/// Whether both have the same entries at the same paths, regardless of file contents.
fn has_paths_of(record: &PackageRecord, package: &Package<FileSource>) -> bool {
    let format = record.format;
    let own: BTreeMap<String, (MemberKind, u32, Option<&String>)> = package
        .entries
        .iter()
        .filter(|entry| entry.formats.has(format))
        .map(|entry| {
            let (mode, target) = match &entry.node {
                Node::Directory { mode } => (*mode, None),
                Node::File { mode, .. } => (entry.treatment.mode(*mode, format), None),
                Node::Link { target } => (0, Some(target)),
            };
            (format!("/{}", entry.path), (entry.node.kind(), mode, target))
        })
        .collect();
    let stated = record.members.iter().map(|member| {
        let mode = if member.kind == MemberKind::Link { 0 } else { member.mode };
        (member.path.clone(), (member.kind, mode, member.target.as_ref()))
    });
    own == stated.collect()
}

/// The member of `record` at `path`; the members are in path order.
fn member<'r>(record: &'r PackageRecord, path: &str) -> Option<&'r MemberRecord> {
    let found = record.members.binary_search_by(|member| member.path.as_str().cmp(path));
    record.members.get(found.ok()?)
}

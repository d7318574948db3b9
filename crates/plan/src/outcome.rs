//! The result of the plan stage, the sources of its packages' bytes, and the effect of publishing the set on
//! systems with earlier sets.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rockpack_core::gfx::{BaseArch, generic_of};
use rockpack_core::tree::TreePath;
use rockpack_elf::kpm::ManifestArchive;

use crate::config::Runpath;
use crate::prefix::Prefix;
use crate::settings::PlanSettings;
use rockpack_package::dependencies::script::FirstLine;
use rockpack_package::offered::OfferedPackage;
use rockpack_package::receipt::listing::{ListedPackage, Listing};
use rockpack_package::receipt::{CurrentPackages, DistributionRecord, KeptRecord};
use rockpack_package::requirement::{Relations, Requirement};
use rockpack_package::updates::Effect;
use rockpack_package::{Format, Package, Version};
use rockpack_report::{Findings, found};

pub(crate) type PlannedPackage = Package<FileSource>;

/// A package set, complete except for the bytes of its files.
#[derive(Debug)]
pub struct Plan {
    pub packages: Vec<Package<FileSource>>,
    /// The kernel archives that the packages' files refer to, in the order of families and their parts.
    pub archives: Vec<ArchiveSet>,
    pub prefix: Prefix,
    pub version: Version,
    /// Time of every packed file, in seconds since 1970.
    pub content_date: u32,
    pub runpath: Runpath,
    /// Install-relative paths of files whose library search paths, or options for them, change; in order.
    pub rewritten: BTreeSet<TreePath>,
    /// Install-relative paths of scripts that get another first line, with that line.
    pub first_lines: BTreeMap<TreePath, FirstLine>,
    /// Paths of code files that packages have compressed, in their component.
    pub compressed: BTreeSet<TreePath>,
    /// The packages of earlier sets of this version.
    pub current_packages: CurrentPackages,
    /// The packages of earlier sets that this set keeps: those that [`Choices::only`](super::Choices::only) leaves
    /// out.
    pub kept: KeptRecord,
    /// Install-relative paths of the input that are in no package, in order: [`Choices::only`](super::Choices::only)
    /// leaves them out, or no entry of a package list takes them.
    pub left_out: Vec<TreePath>,
    pub distributions: Vec<DistributionRecord>,
    pub findings: Findings,
}

impl Plan {
    pub fn left_out_paths(&self) -> Vec<String> {
        let prefix = self.prefix.absolute();
        self.left_out.iter().map(|path| format!("{prefix}/{path}")).collect()
    }

    pub fn keep(&mut self, ids: &BTreeSet<String>) {
        self.packages.retain(|package| ids.contains(&package.id));
        self.archives = used(std::mem::take(&mut self.archives), &self.packages);
    }

    /// Notes the packages of `earlier` sets that this set would hold back from an update, or that would have to be
    /// removed for it. If several sets have a package, the last one counts.
    pub fn note_effect(&mut self, setting: &PlanSettings, earlier: &[Listing]) {
        for format in &setting.formats {
            let mut before: Vec<&ListedPackage> = Vec::new();
            for listing in earlier {
                let own: Vec<_> = listing.packages.iter().filter(|p| p.format == *format).collect();
                before.retain(|known| !own.iter().any(|package| package.key() == known.key()));
                before.extend(own);
            }
            let made: Vec<OfferedPackage<'_>> =
                self.packages.iter().filter_map(|package| offered(package, *format)).collect();
            if setting.only.is_empty() {
                // Packages that the set no longer has get a finding of their own.
                let kept = self.kept.packages.iter().filter(|record| record.format == *format);
                let mut names: BTreeSet<Cow<'_, str>> =
                    kept.filter_map(|record| record.name()).map(Cow::Owned).collect();
                names.extend(made.iter().map(|package| Cow::Borrowed(package.name)));
                before.retain(|package| names.contains(package.name.as_str()));
            }
            let before: Vec<OfferedPackage<'_>> =
                before.into_iter().map(ListedPackage::offered).collect();
            let after: Vec<OfferedPackage<'_>> = before.iter().cloned().chain(made).collect();
            let Effect { misfits, held_back, .. } = Effect::of(*format, &before, &after);
            if !misfits.is_empty() {
                let (format, held_back) = (*format, held_back.into_iter().collect());
                self.findings.add(found::EarlierHeldBack { format, misfits, held_back });
            }
        }
        self.findings.sort();
    }
}

pub(super) fn used(mut archives: Vec<ArchiveSet>, packages: &[PlannedPackage]) -> Vec<ArchiveSet> {
    let entries = packages.iter().flat_map(|package| &package.entries);
    let names: BTreeSet<&str> = entries.filter_map(|e| e.node.data()?.archives()).collect();
    archives.retain(|set| names.contains(set.name.as_str()));
    archives
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileSource {
    /// A host file, unchanged: the one at `path` in the host tree of the component with this id (`blas_lib`).
    Host { component: Arc<str>, path: TreePath },
    /// A fat binary, transformed, with a marker for the [`ArchiveSet`] of this name.
    Fat { component: Arc<str>, path: TreePath, archives: String },
    /// A file of a kernel database.
    Database { component: Arc<str>, path: TreePath },
    /// The kernel archive of one arch.
    Archive { archives: String, arch: BaseArch },
    /// The manifest of an [`ArchiveSet`].
    Manifest { archives: String },
    /// The text itself.
    Text(String),
    /// The compressed changelog of a `.deb`.
    Changelog(Vec<u8>),
}

impl FileSource {
    pub fn archives(&self) -> Option<&str> {
        match self {
            Self::Fat { archives, .. }
            | Self::Archive { archives, .. }
            | Self::Manifest { archives } => Some(archives),
            _ => None,
        }
    }

    pub fn archive(&self) -> Option<(&str, &BaseArch)> {
        match self {
            Self::Archive { archives, arch } => Some((archives, arch)),
            _ => None,
        }
    }
}

/// The kernel archives of one part of a family: one per arch, over all groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveSet {
    /// Prefix of the archives' names, e.g. `blas_lib`.
    pub name: String,
    /// Folder of the archives relative to the prefix, e.g. `lib/.kpack`.
    pub folder: TreePath,
    /// Further folders relative to the prefix where binaries look for them, in this order.
    pub search: Vec<TreePath>,
    /// The manifest's name for the folder above it, e.g. `lib`.
    pub manifest_prefix: String,
    /// The binaries whose device code they hold, as (component id, path in its host tree). A
    /// kernel belongs to the set if its component and binary are among them, and its arch among
    /// `archs`.
    pub binaries: BTreeSet<(String, TreePath)>,
    /// Archs with code, sorted, except those whose archives are kept.
    pub archs: Vec<BaseArch>,
    /// The archives of earlier builds that the set keeps.
    pub kept: KeptArchives,
}

/// The manifest entries, by arch, of archives that the set keeps from earlier builds. A format that is not built has
/// those of the other one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptArchives {
    pub deb: BTreeMap<BaseArch, ManifestArchive>,
    pub rpm: BTreeMap<BaseArch, ManifestArchive>,
}

impl KeptArchives {
    pub fn of(&self, format: Format) -> &BTreeMap<BaseArch, ManifestArchive> {
        format.select(&self.deb, &self.rpm)
    }
}

impl ArchiveSet {
    /// Whether packing reads kernels of `arch`: for its own archive, or for copies in the archive of a member of this
    /// generic target.
    pub fn packs(&self, arch: &BaseArch) -> bool {
        let mut made = self.archs.iter();
        self.archs.contains(arch)
            || self.kept.deb.contains_key(arch) && made.any(|made| generic_of(made) == Some(arch))
    }

    /// The folders where binaries look for the archives, the install folder first.
    pub fn folders(&self) -> impl Iterator<Item = &TreePath> {
        std::iter::once(&self.folder).chain(&self.search)
    }
}

fn offered(package: &PlannedPackage, format: Format) -> Option<OfferedPackage<'_>> {
    let arch = match format {
        Format::Deb => &package.deb.as_ref()?.architecture,
        Format::Rpm => &package.rpm.as_ref()?.arch,
    };
    let relations = Relations::of(package.all_relations(format)?.map(|relation| {
        let version = relation.version.as_ref();
        let version = version.map(|(sign, version)| (*sign, version.as_str().into()));
        (relation.kind, Requirement::of(format, &relation.name, version))
    }));
    let version = Cow::Owned(package.full_version(format)?);
    let name = package.name(format)?;
    Some(OfferedPackage { name, version, arch, relations, paths: Vec::new() })
}

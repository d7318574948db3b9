//! The plan stage: from components to packages, with names, files and relations.
//!
//! ```text
//! components ─ selectors: what goes into which family and part ─► bundles
//!    bundles ─ linkage: which need which others
//!            ─ drafts: host, support and kernel packages ─ metas ─► packages
//! ```
//!
//! A bundle gives one package for its host files and one per group that it has device code for.
//! Nothing here knows sizes or the clock; a file of a package says where its bytes come from, and
//! the pack stage makes them. What serves several groups at once is in a package that the kernel
//! packages of exactly these groups depend on. Refused: paths that two packages claim or none, names, versions and
//! prefixes that a format cannot express.
//!
//! Kernel packages are built for the architecture of their host although they hold data only: as
//! `all` or `noarch` they would satisfy, and be pulled in by, hosts of other architectures, whose
//! exact-version dependency no archive could then keep consistent.
//!
//! Libraries from outside of the set become dependencies by the tables of a distribution (deb) and
//! as capabilities (rpm); the configuration's `relations` add what no file shows.

mod device;
mod discovered;
mod drafts;
mod exclude;
mod families;
mod finish;
mod kernels;
mod layout;
mod left_out;
mod libraries;
mod linkage;
mod metas;
mod naming;
mod only;
pub mod package;
mod parts;
mod prefix;
mod relations;
mod runpath;
mod selectors;
mod setting;
mod texts;
mod version;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

pub use prefix::Prefix;
pub use version::Version;

use crate::config::Config;
use crate::dependencies::distribution::PayloadCompression;
use crate::error::{Error, Faults, Kind, Result};
use crate::gfx::BaseArch;
use crate::recombine::Recombined;
use crate::report::{Code, Finding, Findings};
use crate::tree::{Node, TreePath};
use drafts::Draft;
use only::Only;
use package::{Format, Package};
use parts::Parts;
use selectors::Bundle;
use setting::Setting;

/// What the command line says about the packages; it wins over the configuration.
#[derive(Debug, Clone)]
pub struct PlanOptions {
    /// Upstream version, e.g. `7.1.0`.
    pub version: Option<String>,
    /// Package release, e.g. `1`.
    pub release: Option<String>,
    /// Install prefix, e.g. `/opt/rocm-7.1`.
    pub prefix: Option<String>,
    /// The formats to make packages in.
    pub formats: Vec<Format>,
    /// Artifacts (`blas`), components (`blas_lib`) or packages (`rocm-blas`, with its kernel
    /// packages) to which the set is limited; all if empty. Metapackages of the whole set are then
    /// left out.
    pub only: Vec<String>,
    /// The distribution whose libraries the packages depend on, e.g. `debian-12`.
    pub distro: Option<String>,
    /// The time of changelog entries, in seconds since 1970: `SOURCE_DATE_EPOCH`. Without it,
    /// they carry the time of packed files.
    pub changelog_date: Option<i64>,
}

/// A package set, decided but for its bytes.
#[derive(Debug)]
pub struct Plan {
    /// In the order of their names.
    pub packages: Vec<Package<Source>>,
    /// The kernel archives that the packages' files refer to, in name order.
    pub archives: Vec<ArchiveSet>,
    /// Where everything is installed.
    pub prefix: Prefix,
    /// Of all packages.
    pub version: Version,
    /// Time of every packed file, in seconds since 1970.
    pub content_date: u32,
    /// Install-relative paths of files whose library search paths are written anew; in order.
    pub rewritten: BTreeSet<TreePath>,
    /// What the distribution's package manager can read, for where nothing else was asked for.
    pub compression: PayloadCompression,
    /// Install-relative paths of the input that are in no package, because [`PlanOptions::only`]
    /// leaves them out; in order.
    pub left_out: Vec<TreePath>,
    /// What was noticed.
    pub findings: Findings,
}

/// Where the bytes of a package's file come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A host file as it is: the one at `path` in the host tree of `component` (`blas_lib`).
    Host {
        /// Id of the component.
        component: String,
        /// Path in its host tree.
        path: TreePath,
    },
    /// A fat binary, transformed, with a marker that leads to the archives named `archives`.
    Fat {
        /// Id of the component.
        component: String,
        /// Path in its host tree.
        path: TreePath,
        /// Name of its [`ArchiveSet`].
        archives: String,
    },
    /// A database file.
    Database {
        /// Id of the component.
        component: String,
        /// Path of the file in the component.
        path: TreePath,
    },
    /// The kernel archive of one arch.
    Archive {
        /// Name of its [`ArchiveSet`].
        archives: String,
        /// The arch.
        arch: BaseArch,
    },
    /// The manifest of all archives of a set.
    Manifest {
        /// Name of its [`ArchiveSet`].
        archives: String,
    },
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl Source {
    /// The name of the archive set that it refers to.
    pub fn archives(&self) -> Option<&str> {
        match self {
            Self::Fat { archives, .. }
            | Self::Archive { archives, .. }
            | Self::Manifest { archives } => Some(archives),
            _ => None,
        }
    }
}

/// The kernel archives of one package component: one per arch, over all groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveSet {
    /// What archives are named after, e.g. `blas_lib`.
    pub name: String,
    /// Their folder relative to the prefix, e.g. `lib/.kpack`.
    pub folder: TreePath,
    /// What the manifest calls the folder above it, e.g. `lib`.
    pub manifest_prefix: String,
    /// The binaries whose device code they hold, as (component id, path in its host tree). A
    /// kernel belongs to the set if its component and binary are among them, and its arch among
    /// `archs`.
    pub binaries: BTreeSet<(String, TreePath)>,
    /// The archs there is code for, sorted.
    pub archs: Vec<BaseArch>,
}

/// Decides the packages of a set.
pub fn plan(recombined: &Recombined, config: &Config, options: &PlanOptions) -> Result<Plan> {
    let mut findings = Findings::default();
    let setting = Setting::new(config, options, &mut findings)?;
    let parts = Parts::shipped()?;
    let mut bundles = selectors::assign(recombined, config, &parts)?;
    exclude::apply(&mut bundles, config, &mut findings)?;
    bundles.retain(|bundle| !bundle.is_empty());
    note_hostless(&bundles, &mut findings);
    let linkage = linkage::discover(&setting, &bundles, &mut findings)?;
    let made = drafts::make(&setting, recombined, (&bundles, &linkage))?;
    note_empty_groups(recombined, &made.drafts, &mut findings);
    setting.note_runtime(!made.archives.is_empty(), &mut findings);
    let mut drafts = made.drafts;
    let metas = metas::make(&setting, recombined, &drafts)?;
    drafts.extend(metas);
    refuse_conflicts(&drafts)?;
    drafts::add_configured(&setting, &mut drafts)?;
    let only = Only::new(recombined, &drafts, &options.only)?;
    let (kept, dropped): (Vec<Draft>, Vec<Draft>) =
        drafts.into_iter().partition(|draft| only.keeps(draft));
    let input = (recombined, made.archives.as_slice());
    let left_out = left_out::left_out(input, (&kept, &dropped), &mut findings)?;
    let mut discovered = made.discovered;
    let packages = kept.into_iter().map(|draft| {
        let found = discovered.remove(&draft.names.deb).unwrap_or_default();
        let mut package = draft.finish(&setting)?;
        found.add_to(&mut package);
        discovered::add_build_ids(&mut package);
        Ok(package)
    });
    let mut packages = packages.collect::<Result<Vec<_>>>()?;
    packages.sort_by(|a, b| a.id.cmp(&b.id));
    findings.sort();
    Ok(Plan {
        archives: used(made.archives, &packages),
        packages,
        prefix: setting.prefix,
        version: setting.version,
        content_date: config.content_date,
        rewritten: linkage.rewritten,
        compression: setting.distribution.compression,
        left_out,
        findings,
    })
}

fn note_empty_groups(recombined: &Recombined, drafts: &[Draft], findings: &mut Findings) {
    for group in &recombined.groups {
        let has = |draft: &Draft| draft.group_name() == Some(group.name.as_str());
        if !drafts.iter().any(has) {
            let message = "has no device code, so there is no package for it";
            findings.add(Finding::new(Code::GroupEmpty, group.name.as_str(), message));
        }
    }
}

/// Notes host packages without host files: kernel packages need one to depend on.
fn note_hostless(bundles: &[Bundle<'_>], findings: &mut Findings) {
    for bundle in bundles.iter().filter(|bundle| bundle.files.is_empty()) {
        let message = "has no host files; the package only ties its kernel packages to one version";
        let names = bundle.part.names(&bundle.family);
        findings.add(Finding::new(Code::HostPackageEmpty, names.deb, message));
    }
}

/// No name and no path may belong to two packages: all of a set can be installed together.
fn refuse_conflicts(drafts: &[Draft]) -> Result<()> {
    let mut faults = Faults::default();
    let mut names: BTreeMap<(Format, &str), &Draft> = BTreeMap::new();
    let mut paths: BTreeMap<&TreePath, (&Draft, bool)> = BTreeMap::new();
    for draft in drafts {
        for format in [Format::Deb, Format::Rpm] {
            if names.insert((format, draft.names.of(format)), draft).is_some() {
                let message = format!("two packages would be named {}", draft.names.of(format));
                let hint = "rename the group, or the package with a selector";
                faults.add(Error::new(Kind::Conflict, message).hint(hint));
            }
        }
        for (path, node) in &draft.files {
            let is_folder = matches!(node, Node::Directory { .. });
            match paths.insert(path, (draft, is_folder)) {
                Some((other, folder)) if !(folder && is_folder) => {
                    let (one, another) = (&other.names.deb, &draft.names.deb);
                    let message = format!("{path} would be in both {one} and {another}");
                    let hint = "packages that can be installed together cannot own one path";
                    faults.add(Error::new(Kind::Conflict, message).hint(hint));
                }
                _ => {}
            }
        }
    }
    refuse_below_files(&paths, &mut faults);
    faults.finish()
}

fn refuse_below_files(paths: &BTreeMap<&TreePath, (&Draft, bool)>, faults: &mut Faults) {
    for (path, (draft, _)) in paths {
        for above in std::iter::successors(path.parent(), TreePath::parent) {
            if let Some((owner, false)) = paths.get(&above) {
                let (one, another) = (&draft.names.deb, &owner.names.deb);
                let message =
                    format!("{path} of {one} lies below {above}, which is no folder in {another}");
                faults.add(Error::new(Kind::Conflict, message));
            }
        }
    }
}

/// The archive sets that some package refers to.
fn used(mut archives: Vec<ArchiveSet>, packages: &[Package<Source>]) -> Vec<ArchiveSet> {
    let entries = packages.iter().flat_map(|package| &package.entries);
    let names = entries.filter_map(|entry| match &entry.node {
        Node::File { data, .. } => data.archives(),
        _ => None,
    });
    let names: BTreeSet<&str> = names.collect();
    archives.retain(|set| names.contains(set.name.as_str()));
    archives
}

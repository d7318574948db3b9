//! The result of a build, predicted before anything is compressed: `rockpack plan`.
//!
//! ```text
//! Plan ─ sizes: the size of each file, and its digest if it is known ─► packages
//!      ─ here: downloads and installed sizes for a GPU's owner  ─► Planned
//! ```
//!
//! A plan depends on no clock and no fact of the machine. Names, versions, relations, paths and modes are
//! those of the packages that `build` makes of the same input. The sizes of all files except kernel archives
//! and their manifests are exact; all other sizes are marked as estimates, see `sizes`.

mod sizes;

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Mutex;

use rayon::prelude::*;
use serde::Serialize;

use rockpack_archive::deb;
use rockpack_archive::payload::PayloadEntry;
use rockpack_archive::rpm;
use rockpack_core::compression::Workers;
use rockpack_core::content::hex;
use rockpack_core::error::{Result, ResultExt};

use crate::pack::Sources;
use crate::prepared::payload_entry;
use rockpack_package::offered::OfferedPackage;
use rockpack_package::receipt::RelationRecord;
use rockpack_package::receipt::listing::{
    ListedMember, ListedPackage, Listing, PLAN_KIND, PLAN_SCHEMA, Size, of_records, payload_member,
};
use rockpack_package::resolver::Resolver;
use rockpack_package::{Format, Formats, Package, PackageEntry, RelationKind, RoleKind};
use rockpack_plan::config::ArchiveLevel;
use rockpack_plan::recombine::{Group, Recombined};
use rockpack_plan::{FileSource, Plan};
use rockpack_report::Findings;
use sizes::{EstimateMethod, MeasuredFile, Sizes};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Planned {
    pub kind: &'static str,
    pub schema: u32,
    pub rockpack_version: &'static str,
    pub version: String,
    pub release: String,
    /// The absolute install prefix.
    pub prefix: String,
    /// The timestamp of every packed file, in seconds since 1970.
    pub content_date: u32,
    /// The packages by format and name.
    pub packages: Vec<ListedPackage>,
    /// The packages of earlier builds that the set keeps unchanged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<ListedPackage>,
    /// The download and installed size of each group, in the order of the configuration.
    pub groups: Vec<GroupSum>,
    /// The absolute install paths of input files in no package, because the set was limited to other
    /// components or no package of a list takes them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    pub findings: Findings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Digests {
    /// No digests: no file is read whole.
    Without,
    /// The SHA-256 of every file whose bytes do not depend on compression, and of the code objects of every
    /// archive.
    OfFiles,
}

/// Predicts the packages of `plan`, which was made from `recombined`. `archive_levels` are the configured levels in a
/// `.deb` and in an `.rpm`. Estimates sizes on the threads of the current rayon pool.
pub fn planned(
    recombined: &Recombined,
    plan: &Plan,
    archive_levels: [Option<ArchiveLevel>; 2],
    findings: Findings,
    digests: Digests,
) -> Result<Planned> {
    let (sources, compressor) = (Sources::new(recombined, plan), Mutex::new(Workers::new(1)));
    let sizes = Sizes { sources, digests, archive_levels, compressor };
    let results: Vec<Result<Vec<SizedPackage>>> = plan
        .packages
        .par_iter()
        .map(|package| of_package(package, &sizes).context(|| format!("estimating {}", package.id)))
        .collect();
    let lists: Result<Vec<Vec<SizedPackage>>> = results.into_iter().collect();
    let prefix = plan.prefix.absolute();
    let (mut packages, mut by_default) = (Vec::new(), BTreeMap::new());
    for (package, sizes) in lists?.into_iter().flatten() {
        by_default.extend(sizes.map(|sizes| (package.file_name.clone(), sizes)));
        packages.push(package);
    }
    let listing = Listing::new("plan".to_owned(), None, packages).sorted();
    let kept = of_records(plan.kept.packages.iter(), plan.kept.code_objects.iter())?;
    let kept = Listing::new("kept".to_owned(), None, kept).sorted().packages;
    let mut whole: Vec<ListedPackage> = listing.packages.iter().chain(&kept).cloned().collect();
    let mut groups = group_sums(&recombined.groups, &whole);
    for package in &mut whole {
        if let Some(DefaultSizes { download, installed }) = by_default.remove(&package.file_name) {
            (package.download, package.installed) = (download, installed);
        }
    }
    for (sum, default) in groups.iter_mut().zip(group_sums(&recombined.groups, &whole)) {
        let GroupSum { download, installed, .. } = default;
        let is_other = (download, installed) != (sum.download, sum.installed);
        sum.by_default = is_other.then_some(DefaultSizes { download, installed });
    }
    Ok(Planned {
        kind: PLAN_KIND,
        schema: PLAN_SCHEMA,
        rockpack_version: env!("CARGO_PKG_VERSION"),
        version: plan.version.set_upstream().to_owned(),
        release: plan.version.set_release().to_owned(),
        groups,
        packages: listing.packages,
        kept,
        content_date: plan.content_date,
        left_out: plan.left_out_paths(),
        prefix,
        findings,
    })
}

impl Planned {
    /// The packages of the whole set, for comparisons.
    pub fn listing(&self) -> Listing {
        let packages = self.packages.iter().chain(&self.kept).cloned().collect();
        let prefix = Some(self.prefix.clone());
        Listing::new("this plan".to_owned(), prefix, packages).sorted()
    }
}

/// A file's entry with its measured content.
struct MeasuredEntry<'a> {
    entry: &'a PackageEntry<FileSource>,
    /// Empty for folders and links.
    measured: MeasuredFile,
}

/// A package in one format, and its sizes by default if the settings change the form of code in it.
type SizedPackage = (ListedPackage, Option<DefaultSizes>);

fn of_package(package: &Package<FileSource>, sizes: &Sizes<'_>) -> Result<Vec<SizedPackage>> {
    let mut methods: BTreeSet<EstimateMethod> =
        package.formats().map(|format| sizes.method(package, format)).collect();
    let is_sampled = methods.remove(&EstimateMethod::Samples) && methods.is_empty();
    let first = if is_sampled { EstimateMethod::Samples } else { EstimateMethod::ByDefault };
    let listed = by_method(package, sizes, first)?.into_iter();
    let mut sized: Vec<SizedPackage> = listed.map(|package| (package, None)).collect();
    for method in methods {
        let configured = by_method(package, sizes, method)?;
        for ((listed, by_default), configured) in sized.iter_mut().zip(configured) {
            if sizes.method(package, configured.format) == method {
                let ListedPackage { download, installed, .. } = mem::replace(listed, configured);
                *by_default = Some(DefaultSizes { download, installed });
            }
        }
    }
    Ok(sized)
}

fn by_method(
    package: &Package<FileSource>,
    sizes: &Sizes<'_>,
    method: EstimateMethod,
) -> Result<Vec<ListedPackage>> {
    let mut looked = Vec::new();
    for entry in &package.entries {
        let measured = entry.node.data().map(|source| sizes.measure(source, method)).transpose()?;
        looked.push(MeasuredEntry { entry, measured: measured.unwrap_or_default() });
    }
    // Separately, because entries only in rpms have the content of entries only in debs.
    for of_rpm in [false, true] {
        let is_own =
            |it: &MeasuredEntry<'_>| (it.entry.formats == Formats::Only(Format::Rpm)) == of_rpm;
        let own = looked.iter_mut().filter(|looked| is_own(looked));
        sizes.compress(own.map(|looked| &mut looked.measured), method)?;
    }
    Ok(Format::ALL.into_iter().filter_map(|format| in_format(package, &looked, format)).collect())
}

fn in_format(
    package: &Package<FileSource>,
    looked: &[MeasuredEntry<'_>],
    format: Format,
) -> Option<ListedPackage> {
    let (name, architecture, file_name) = match format {
        Format::Deb => {
            let control = package.deb.as_ref()?;
            (&control.name, &control.architecture, control.file_name())
        }
        Format::Rpm => {
            let control = package.rpm.as_ref()?;
            (&control.name, &control.arch, control.file_name())
        }
    };
    let inside: Vec<&MeasuredEntry<'_>> =
        looked.iter().filter(|looked| looked.entry.formats.has(format)).collect();
    let entries: Vec<PayloadEntry> =
        inside.iter().map(|l| payload_entry(l.entry, l.measured.size.bytes, format)).collect();
    let installed = match format {
        Format::Deb => deb::installed_kib(&entries).saturating_mul(deb::INSTALLED_UNIT),
        Format::Rpm => rpm::installed_size(&entries),
    };
    let estimated = inside.iter().any(|l| l.measured.size.estimated);
    let members: Vec<ListedMember> =
        inside.iter().zip(&entries).map(|(looked, entry)| looked.member(entry)).collect();
    let payload = inside.iter().map(|l| l.measured.compressed).sum();
    let download = sizes::overhead(package, format, &members, payload) + payload;
    Some(ListedPackage {
        format,
        name: name.clone(),
        version: package.full_version(format)?,
        architecture: architecture.clone(),
        file_name,
        role: Some(package.role.kind()),
        group: package.role.group().map(str::to_owned),
        archs: package.role.archs().to_vec(),
        vendor: package.vendor(format),
        download: Size::estimate(download),
        installed: Size { bytes: installed, estimated },
        relations: RelationRecord::of_package(package, format)?,
        members,
    })
}

impl MeasuredEntry<'_> {
    fn member(&self, entry: &PayloadEntry) -> ListedMember {
        let MeasuredFile { size, sha256, code_sha256, .. } = &self.measured;
        let mut member = payload_member(entry, sha256.map(|digest| hex(&digest)));
        member.code_sha256.clone_from(code_sha256);
        member.size = self.entry.node.data().map(|_| *size);
        member
    }
}

/// The download for a GPU in one format: the kernel packages of its group and all packages of the set that they
/// require.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GroupSum {
    /// The group's name in the configuration, e.g. `gfx110X`, or a target in schemes with a package for each
    /// target.
    pub group: String,
    pub format: Format,
    /// The names of the installed packages of the set: the group's kernel packages, without those of tests,
    /// and their dependencies, by name. Packages of the distribution do not count.
    pub packages: Vec<String>,
    pub download: Size,
    pub installed: Size,
    /// Both without `archive_level` and `code_files`, if these change them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_default: Option<DefaultSizes>,
}

/// Sizes with archives and code files in their default form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DefaultSizes {
    pub download: Size,
    pub installed: Size,
}

/// The sums of all groups with kernel packages, forevery format, in the order of `groups`. In schemes with a
/// package for each target, targets take the place of their group.
fn group_sums(groups: &[Group], packages: &[ListedPackage]) -> Vec<GroupSum> {
    let distinct: BTreeSet<&str> =
        packages.iter().filter_map(|package| package.group.as_deref()).collect();
    let mut names: Vec<&str> = distinct.into_iter().collect();
    names.sort_by_key(|name| {
        // The group with this name or this target; the others come last.
        let place = groups.iter().position(|group| {
            group.name == *name || group.archs.iter().any(|arch| arch.as_str() == *name)
        });
        (place.unwrap_or(groups.len()), name.len(), *name)
    });
    let mut sums = Vec::new();
    for format in Format::ALL {
        let own: Vec<_> = packages.iter().filter(|package| package.format == format).collect();
        let offered: Vec<OfferedPackage<'_>> =
            own.iter().map(|package| package.offered()).collect();
        let resolver = Resolver::new(format, offered.iter().collect());
        for (place, group) in names.iter().enumerate() {
            let kernels = own.iter().enumerate().filter(|(_, package)| {
                package.group.as_deref() == Some(*group) && !is_of_tests(package, &own)
            });
            let needed = resolver.with_needs(kernels.map(|(at, _)| at)).into_iter();
            let members: BTreeMap<&str, &ListedPackage> =
                needed.map(|at| (own[at].name.as_str(), own[at])).collect();
            if !members.is_empty() {
                let sum = GroupSum {
                    group: (*group).to_owned(),
                    format,
                    packages: members.keys().map(|name| (*name).to_owned()).collect(),
                    download: members.values().map(|package| package.download).sum(),
                    installed: members.values().map(|package| package.installed).sum(),
                    by_default: None,
                };
                sums.push((place, sum));
            }
        }
    }
    sums.sort_by_key(|(place, _)| *place);
    sums.into_iter().map(|(_, sum)| sum).collect()
}

/// Whether the host of a kernel package, one of `all`, belongs to tests.
fn is_of_tests(package: &ListedPackage, all: &[&ListedPackage]) -> bool {
    package.relations_of(RelationKind::Enhances).any(|host| {
        let mut hosts = all.iter().filter(|other| other.name == host.name);
        hosts.any(|other| other.role == Some(RoleKind::Support))
    })
}

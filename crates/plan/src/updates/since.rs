//! Prepares updates from earlier sets (`--since`): relations to the packages that had the paths of others,
//! scripts if a folder becomes something else or the reverse (see [`super::path_type_changes`]), and findings about
//! changes that package managers cannot make.
//!
//! A set limited by `--only` is compared with the names of the whole set: a package that this run does not
//! build is not dropped. If the scheme has the series in names, packages of another series stay installed:
//! nothing updates, breaks or replaces them.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::error::{Error, Result};
use rockpack_core::tree::Node;

use super::path_type_changes::PathTypeChanges;
use super::upgrades::{OldOwner, is_newer, takeover};
use crate::drafts::Draft;
use crate::extras::is_debug_path;
use crate::naming::PackageNames;
use crate::outcome::{FileSource, PlannedPackage};
use crate::relations::need_version;
use crate::settings::PlanSettings;
use rockpack_distribution::SystemPackages;
use rockpack_package::receipt::CurrentPackages;
use rockpack_package::receipt::listing::{ListedPackage, Listing, PathOwners};
use rockpack_package::updates::VendorChanges;
use rockpack_package::{
    Format, MemberKind, PackageEntry, PathChange, Relation, RelationKind, Version,
};
use rockpack_report::{EarlierPackage, Findings, NotNewer, found};

/// Adds the relations and scripts for an update of the sets `earlier`, and notes changes that it cannot make.
pub(crate) fn add(
    setting: &PlanSettings,
    set: &SetNames,
    packages: &mut [PlannedPackage],
    (earlier, current_packages): (&[Listing], &CurrentPackages),
    findings: &mut Findings,
) -> Result<()> {
    let (mut changes, mut vendors) = (PathTypeChanges::default(), VendorChanges::default());
    set.refuse_packages_of_systems(earlier)?;
    for earlier in earlier {
        let (others, earlier): (Vec<_>, Vec<_>) =
            earlier.packages.iter().partition(|package| set.is_other_series(package, setting));
        note_other_series(&others, setting, packages, findings);
        let owners = PathOwners::of(earlier.iter().copied());
        for format in &setting.formats {
            let update = Update { earlier: &earlier, owners: &owners, set, format: *format };
            for (index, package) in packages.iter_mut().enumerate() {
                update.take_paths(package, findings);
                update.note_path_types(index, package, &mut changes, findings);
            }
            update.note_versions(packages, findings);
            update.note_unchanged_versions(packages, findings);
            update.note_vendors(packages, &mut vendors);
            if set.is_whole {
                update.note_dropped(packages, findings);
            }
        }
    }
    findings.extend(vendors.into_findings());
    inherit(setting, packages, current_packages, &mut changes);
    changes.add_scripts(setting, packages)
}

/// Adds the steps of earlier packages of this version for updates from sets before them: systems that skip a release
/// need them in the next one.
fn inherit(
    setting: &PlanSettings,
    packages: &mut [PlannedPackage],
    current_packages: &CurrentPackages,
    changes: &mut PathTypeChanges,
) {
    for (index, package) in packages.iter_mut().enumerate() {
        for format in &setting.formats {
            let record =
                current_packages.get(*format, &package.id).and_then(|it| it.update.as_ref());
            for change in record.into_iter().flat_map(|record| &record.paths) {
                changes.inherit((index, *format), package, change.clone());
            }
            let inherited = record.into_iter().flat_map(|record| &record.relations);
            add_relations(package, *format, inherited.map(Relation::from).collect());
            let changed = changes.of((index, *format)).map(|change| (*format, change.clone()));
            package.identity.changed.extend(changed);
        }
    }
}

/// Adds relations to packages of earlier sets. A stricter relation replaces a less strict one.
pub(super) fn add_relations(package: &mut PlannedPackage, format: Format, added: Vec<Relation>) {
    let Some(relations) = package.relations_mut(format) else { return };
    let added: Vec<Relation> =
        added.into_iter().filter(|new| !is_known(new, relations, format)).collect();
    relations.retain(|known| !is_known(known, &added, format));
    relations.extend(added.iter().cloned());
    relations.sort();
    let superseding = &mut package.identity.superseding;
    superseding.retain(|(of, known)| *of != format || !is_known(known, &added, format));
    package.identity.superseding.extend(added.into_iter().map(|relation| (format, relation)));
}

fn is_known(new: &Relation, relations: &[Relation], format: Format) -> bool {
    relations.iter().any(|known| {
        let same = known.kind == new.kind && known.name == new.name;
        let bounds = known.version.as_ref().zip(new.version.as_ref());
        same && bounds.is_none_or(|((sign, known), (new_sign, new))| {
            sign == new_sign && !is_newer(format, new, known)
        })
    })
}

/// The names of the whole set, whether or not all of it is made.
pub(crate) struct SetNames {
    names: Vec<PackageNames>,
    pub is_whole: bool,
}

impl SetNames {
    pub fn of(drafts: &[Draft], is_whole: bool) -> Self {
        Self { names: drafts.iter().map(|draft| draft.names.clone()).collect(), is_whole }
    }

    fn has(&self, format: Format, name: &str) -> bool {
        self.names.iter().any(|names| names.of(format) == name)
    }

    /// Refuses earlier packages of a distribution that are not of this set: the set would break, replace or obsolete
    /// packages that every system needs.
    fn refuse_packages_of_systems(&self, earlier: &[Listing]) -> Result<()> {
        if earlier.is_empty() {
            return Ok(());
        }
        let system = SystemPackages::known()?;
        for Listing { name: listing, packages, .. } in earlier {
            let odd = packages.iter().find(|package| {
                system.has(&package.name) && !self.has(package.format, &package.name)
            });
            let Some(ListedPackage { format, name, .. }) = odd else { continue };
            let message =
                "is a package of a distribution, not one that the naming scheme of this set makes";
            let error = Error::malformed(message).structure(format!("{format} {name}"));
            return Err(error.file(listing).hint(
                "this set would break and replace it: remove it from --since, or give the receipt \
                 or the packages of an earlier build",
            ));
        }
        Ok(())
    }

    /// Whether `earlier` has another version in its name than this set, so that the set does not update it.
    fn is_other_series(&self, earlier: &ListedPackage, setting: &PlanSettings) -> bool {
        let Some(own) = setting.names.side_by_side(&setting.version) else { return false };
        let Some(other) = series(earlier, setting) else { return false };
        let is_in_set = self.names.iter().any(|names| names.has(&earlier.name));
        other != own && earlier.name.contains(&other) && !is_in_set
    }
}

/// The part of the version of `earlier` that the scheme would have put into its name.
fn series(earlier: &ListedPackage, setting: &PlanSettings) -> Option<String> {
    setting.names.side_by_side(&Version::new(upstream(&earlier.version), "1").ok()?)
}

fn upstream(full: &str) -> &str {
    let version = full.split_once(':').map_or(full, |(_, rest)| rest);
    version.rsplit_once('-').map_or(version, |(upstream, _)| upstream)
}

/// Notes packages of an earlier set that are of another series, with the paths that both series have.
fn note_other_series(
    others: &[&ListedPackage],
    setting: &PlanSettings,
    packages: &[PlannedPackage],
    findings: &mut Findings,
) {
    let Some(first) = others.first() else { return };
    let Some(series) = series(first, setting) else { return };
    let owners = PathOwners::of(others.iter().copied());
    let mut shared = BTreeSet::new();
    let entries = packages.iter().flat_map(|package| &package.entries);
    for entry in entries.filter(|entry| !is_debug_path(&entry.path)) {
        let path = format!("/{}", entry.path);
        let is_folder = matches!(entry.node, Node::Directory { .. });
        let mut formats = setting.formats.iter().filter(|format| entry.formats.has(**format));
        if !is_folder && formats.any(|format| owners.has(*format, &path)) {
            shared.insert(path);
        }
    }
    let packages = others.iter().map(|package| package.name.clone()).collect();
    let shared_paths = shared.into_iter().collect();
    findings.add(found::OtherSeries { series, packages, shared_paths });
}

struct Update<'a> {
    earlier: &'a [&'a ListedPackage],
    owners: &'a PathOwners<'a>,
    set: &'a SetNames,
    format: Format,
}

impl Update<'_> {
    fn take_paths(&self, package: &mut PlannedPackage, findings: &mut Findings) {
        let (Some(own), Some(version)) =
            (package.name(self.format).map(str::to_owned), package.full_version(self.format))
        else {
            return;
        };
        let mut by_owner: BTreeMap<&str, (&ListedPackage, Vec<String>)> = BTreeMap::new();
        for entry in self.entries(package) {
            let path = format!("/{}", entry.path);
            let is_folder = matches!(entry.node, Node::Directory { .. });
            let there = self.owners.at(self.format, &path);
            // Folders are shared, unless another package has something else there.
            let owned = there.filter(|owned| !(is_folder && owned.member.is_directory()));
            for owner in owned.map(|owned| owned.package).filter(|owner| owner.name != own) {
                by_owner.entry(&owner.name).or_insert((owner, Vec::new())).1.push(path.clone());
            }
        }
        for (from, (owner, paths)) in by_owner {
            let known = package.relations(self.format).iter();
            let needed = need_version(known, from, &version);
            let former = OldOwner { name: from, in_set: self.set.has(self.format, from), needed };
            let added = takeover(&former, self.format, &version);
            package.identity.superseding.extend(added.iter().map(|it| (self.format, it.clone())));
            if let Some(relations) = package.relations_mut(self.format) {
                relations.extend(added);
                relations.sort();
                relations.dedup();
            }
            let (package, format, from) = (own.as_str().into(), self.format, from.into());
            findings.add(found::PathMoved { package, format, from, paths });
            if !is_newer(self.format, &version, &owner.version) {
                let (package, from) = (own.as_str().into(), earlier(owner));
                let not_newer = NotNewer::TakesPaths { package, from };
                findings.add(found::VersionNotNewer { version: version.clone(), not_newer });
            }
        }
    }

    /// The entries of `package` that no other package may have: all but debug files.
    fn entries<'p>(
        &self,
        package: &'p PlannedPackage,
    ) -> impl Iterator<Item = &'p PackageEntry<FileSource>> {
        let format = self.format;
        let own = package.entries.iter().filter(|entry| !is_debug_path(&entry.path));
        own.filter(move |entry| entry.formats.has(format))
    }

    fn note_path_types(
        &self,
        index: usize,
        package: &PlannedPackage,
        changes: &mut PathTypeChanges,
        findings: &mut Findings,
    ) {
        let Some(own) = package.name(self.format) else { return };
        for entry in self.entries(package) {
            let path = format!("/{}", entry.path);
            let is = entry.node.kind();
            let mut before = self.owners.at(self.format, &path);
            let changed = before.find(|owned| {
                let was = owned.member.kind;
                was != is && [was, is].contains(&MemberKind::Directory)
            });
            let Some(owned) = changed else { continue };
            let mut owners = self.owners.at(self.format, &path);
            let is_shared = owners.any(|owned| owned.package.name != own);
            let target = match &entry.node {
                Node::Link { target } => Some(target.clone()),
                _ => owned.member.target.clone(),
            };
            let (path, was, members) = (path.clone(), owned.member.kind, self.members(&path));
            findings.add(found::PathKindChanged { path: path.clone(), was, is });
            let change = PathChange { path, was, is, target, is_shared, members };
            changes.add((index, self.format), change);
        }
    }

    /// Paths that earlier packages have below `path`, relative to it.
    fn members(&self, path: &str) -> BTreeSet<String> {
        let packages = self.earlier.iter().filter(|package| package.format == self.format);
        let members = packages.flat_map(|package| &package.members);
        let below = members.filter_map(|member| member.path.strip_prefix(path)?.strip_prefix('/'));
        below.map(str::to_owned).collect()
    }

    /// Notes packages that are older than before, in one finding, because usually the whole set is older.
    fn note_versions(&self, packages: &[PlannedPackage], findings: &mut Findings) {
        let (mut own_version, mut newer) = (None, Vec::new());
        for package in packages {
            let (Some(own), Some(version)) =
                (package.name(self.format), package.full_version(self.format))
            else {
                continue;
            };
            let mut same = self.earlier.iter().filter(|p| p.key() == (self.format, own));
            if let Some(found) = same.find(|p| is_newer(self.format, &p.version, &version)) {
                newer.push(earlier(found));
                own_version.get_or_insert(version);
            }
        }
        if let Some(version) = own_version {
            let not_newer = NotNewer::Packages { format: self.format, newer };
            findings.add(found::VersionNotNewer { version, not_newer });
        }
    }

    /// Notes packages whose version is unchanged in this format, while the other format gets a newer upstream
    /// version.
    fn note_unchanged_versions(&self, packages: &[PlannedPackage], findings: &mut Findings) {
        let mut unraised: BTreeMap<String, Vec<EarlierPackage>> = BTreeMap::new();
        for package in packages {
            let before = |format| {
                let (own, version) = (package.name(format)?, package.full_version(format)?);
                let found = self.earlier.iter().find(|p| p.key() == (format, own))?;
                Some((found, version))
            };
            let other = self.format.select(Format::Rpm, Format::Deb);
            let (Some((found, version)), Some((other_found, other_version))) =
                (before(self.format), before(other))
            else {
                continue;
            };
            let is_kept = self.format.compare_versions(&version, &found.version).is_eq();
            let is_raised =
                is_newer(other, upstream(&other_version), upstream(&other_found.version));
            if is_kept && is_raised {
                unraised.entry(version).or_default().push(earlier(found));
            }
        }
        for (version, packages) in unraised {
            let not_newer = NotNewer::Unraised { format: self.format, packages };
            findings.add(found::VersionNotNewer { version, not_newer });
        }
    }

    fn note_vendors(&self, packages: &[PlannedPackage], vendors: &mut VendorChanges) {
        for package in packages {
            let (Some(own), Some(to)) = (package.name(self.format), package.vendor(self.format))
            else {
                continue;
            };
            let same = self.earlier.iter().filter(|p| p.key() == (self.format, own));
            same.filter_map(|p| p.vendor.as_deref()).for_each(|from| vendors.add(own, from, &to));
        }
    }

    fn note_dropped(&self, packages: &[PlannedPackage], findings: &mut Findings) {
        let removing = [RelationKind::Breaks, RelationKind::Conflicts, RelationKind::Obsoletes];
        let relations = packages.iter().flat_map(|package| package.relations(self.format));
        let relations = relations.filter(|relation| removing.contains(&relation.kind));
        let removed: BTreeSet<&str> = relations.map(|relation| relation.name.as_str()).collect();
        let earlier = self.earlier.iter().filter(|p| p.format == self.format);
        let gone: BTreeSet<&str> = earlier
            .map(|package| package.name.as_str())
            .filter(|name| !self.set.has(self.format, name) && !removed.contains(name))
            .collect();
        for name in gone {
            let package = name.into();
            findings.add(found::PackageDropped { package, format: self.format });
        }
    }
}

fn earlier(package: &ListedPackage) -> EarlierPackage {
    EarlierPackage { package: package.name.as_str().into(), version: package.version.clone() }
}

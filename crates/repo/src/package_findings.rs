//! Findings about packages that are published nevertheless.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use rockpack_archive::deb::parse_fields;
use rockpack_package::indexed::{IndexMetadata, PackageKind};
use rockpack_package::{Format, UNNAMED_PACKAGER, UNSET_VERSION};
use rockpack_report::{Findings, found};

use super::channel::Channel;
use super::channels::Channels;
use super::input::GivenPackage;

/// Findings for given packages that are not fully checked, that indexes describe with other texts, or whose own list
/// of files is stale.
pub(super) fn given_findings(given: &[&GivenPackage]) -> Findings {
    let mut findings = Findings::default();
    for given in given {
        let (file, facts) = (given.source.name.clone(), &given.indexed.facts);
        if let IndexMetadata::Deb(package) = facts
            && let Some(reason) = package.unread.clone()
        {
            findings.add(found::DataUnread { file, reason });
        } else if let IndexMetadata::Rpm(package) = facts
            && !package.replaced.is_empty()
        {
            findings.add(found::TextsReplaced { file, fields: package.replaced.clone() });
        } else if let IndexMetadata::Wheel(package) = facts
            && !package.stale.is_empty()
        {
            let members =
                package.stale.iter().map(|(name, fault)| (name.clone(), fault.to_string()));
            findings.add(found::WheelRecordStale { wheel: file, members: members.collect() });
        }
    }
    findings
}

/// Findings about packages with the placeholder version or packager of builds without these settings.
pub(super) fn placeholder_findings(given: &[GivenPackage]) -> Findings {
    // Packages by the placeholder and its remedy.
    let mut found: BTreeMap<[&str; 2], BTreeSet<String>> = BTreeMap::new();
    for facts in given.iter().map(|given| &given.indexed.facts) {
        let packager = match facts {
            IndexMetadata::Deb(package) => {
                parse_fields(&package.control).unwrap_or_default().get("Maintainer").cloned()
            }
            IndexMetadata::Rpm(package) => Some(package.packager.clone()),
            IndexMetadata::Wheel(_) => None,
        };
        if upstream_version(&facts.version()).rsplit(':').next() == Some(UNSET_VERSION) {
            let key = [UNSET_VERSION, "build again with `--version`"];
            found.entry(key).or_default().insert(facts.name().to_owned());
        }
        if packager.as_deref() == Some(UNNAMED_PACKAGER) {
            let remedy = "set the key `maintainer` and build again, or give `--set maintainer=…` for the \
                          key package";
            found.entry([UNNAMED_PACKAGER, remedy]).or_default().insert(facts.name().to_owned());
        }
    }
    let mut findings = Findings::default();
    for ([placeholder, remedy], packages) in found {
        let (placeholder, remedy) = (placeholder.to_owned(), remedy.to_owned());
        let packages = packages.into_iter().collect();
        findings.add(found::PlaceholderPublished { placeholder, packages, remedy });
    }
    findings
}

type Versions = BTreeSet<String>;

/// Findings about versions of a package that dpkg and rpm order differently, in the channels `all` before removals.
///
/// After `~`, `.` or `+`, dpkg sorts digits before letters, and rpm letters before digits: `7.12.0~dev20260202` is
/// newer than `7.12.0~20260202` for dpkg, and older for rpm. rpm ignores which separator it is: `7.1+1` and `7.1.1`
/// are equal for it.
///
/// Also about packages whose added version is newer than the present one in one format only:
/// `7.15.0~pre2` follows `7.15.0~20261120` for dpkg, and `7.15.0~rc2` does not for rpm.
pub(super) fn version_order_findings(
    all: &[Channel],
    channels: &Channels,
    given: &[GivenPackage],
) -> Findings {
    let states = all.iter().filter_map(|channel| channels.0.get(&channel.name()));
    let there = states.flat_map(|state| state.records.values()).map(|record| &record.indexed);
    let mut named: BTreeMap<&str, BTreeMap<PackageKind, PresentAndAdded>> = BTreeMap::new();
    let added = given.iter().map(|given| (&given.indexed, true));
    for (indexed, is_added) in there.map(|indexed| (indexed, false)).chain(added) {
        let facts: &IndexMetadata = &indexed.facts;
        let versions = named.entry(facts.name()).or_default().entry(facts.kind()).or_default();
        let list = if is_added { &mut versions.added } else { &mut versions.present };
        list.insert(facts.version());
    }
    let mut pairs: BTreeMap<[String; 2], BTreeSet<String>> = BTreeMap::new();
    for (name, kinds) in named {
        let (Some(debs), Some(rpms)) = (kinds.get(&PackageKind::Deb), kinds.get(&PackageKind::Rpm))
        else {
            continue;
        };
        for pair in misordered(&debs.all(), &rpms.all()).into_iter().chain(diverging(debs, rpms)) {
            pairs.entry(pair).or_default().insert(name.to_owned());
        }
    }
    let mut findings = Findings::default();
    for ([deb_newer, rpm_newer], packages) in pairs {
        let packages = packages.into_iter().collect();
        findings.add(found::VersionOrderDiffers { deb_newer, rpm_newer, packages });
    }
    findings
}

/// The versions of a package in one format: those in the repository, and those that a run adds.
#[derive(Default)]
struct PresentAndAdded {
    present: Versions,
    added: Versions,
}

impl PresentAndAdded {
    fn all(&self) -> Versions {
        self.present.union(&self.added).cloned().collect()
    }

    /// The newest added upstream version, and the newest in the repository that precedes the same release
    /// or is a build of it.
    fn newest(&self, format: Format) -> Option<[String; 2]> {
        let newest = |versions: Versions| {
            versions.into_iter().max_by(|one, other| format.compare_versions(one, other))
        };
        let added = newest(upstream_versions(&self.added))?;
        let mut present = upstream_versions(&self.present);
        present.retain(|version| version.split('~').next() == added.split('~').next());
        Some([added, newest(present)?])
    }
}

/// The pair of versions, as in [`differing`], if the added version is newer than the present one in one format and
/// older in the other.
fn diverging(debs: &PresentAndAdded, rpms: &PresentAndAdded) -> Option<[String; 2]> {
    let [deb, present_deb] = debs.newest(Format::Deb)?;
    let [rpm, present_rpm] = rpms.newest(Format::Rpm)?;
    let of_deb = Format::Deb.compare_versions(&deb, &present_deb);
    match (of_deb, Format::Rpm.compare_versions(&rpm, &present_rpm)) {
        (Ordering::Greater, Ordering::Less) => Some([deb, present_rpm]),
        (Ordering::Less, Ordering::Greater) => Some([present_deb, rpm]),
        _ => None,
    }
}

/// Pairs of versions that both formats have: the one that is newer for dpkg, then the one that is newer or equal for
/// rpm. Releases, which may end in a distribution tag, are compared only between equal upstream versions.
fn misordered(debs: &Versions, rpms: &Versions) -> Vec<[String; 2]> {
    let mut found = misordered_neighbours(
        upstream_versions(debs).intersection(&upstream_versions(rpms)).collect(),
    );
    let mut releases: BTreeMap<&str, Vec<&String>> = BTreeMap::new();
    for version in debs.intersection(rpms) {
        releases.entry(upstream_version(version)).or_default().push(version);
    }
    found.extend(releases.into_values().flat_map(misordered_neighbours));
    found
}

fn upstream_versions(versions: &Versions) -> Versions {
    versions.iter().map(|version| upstream_version(version).to_owned()).collect()
}

/// The version without the release, which follows the last dash in both formats.
fn upstream_version(version: &str) -> &str {
    version.rsplit_once('-').map_or(version, |(upstream, _)| upstream)
}

/// Neighbours in dpkg's order that rpm orders differently. If there are none, both orders are equal.
fn misordered_neighbours(mut versions: Vec<&String>) -> Vec<[String; 2]> {
    versions.sort_by(|one, other| Format::Deb.compare_versions(one, other));
    let neighbours = versions.iter().zip(versions.iter().skip(1));
    let differ = neighbours.filter_map(|(older, newer)| {
        let deb = Format::Deb.compare_versions(older, newer);
        let rpm = Format::Rpm.compare_versions(older, newer);
        // If both are equal for dpkg, the newer one for rpm comes second.
        let pair = match (deb, rpm) {
            (Ordering::Equal, Ordering::Less) => [older, newer],
            _ => [newer, older],
        };
        (deb != rpm).then(|| pair.map(|version| (*version).clone()))
    });
    differ.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(debs: &[&str], rpms: &[&str]) -> Vec<[String; 2]> {
        misordered(&versions(debs), &versions(rpms))
    }

    fn versions(texts: &[&str]) -> Versions {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn versions_of_two_orders_are_found() {
        for (one, other) in [
            ("7.12.0~dev20260202-1", "7.12.0~20260202-1"),
            ("7.12.0~rc1-1", "7.12.0~20260202-1"),
            ("7.12.a-1", "7.12.1-1"),
            ("7.1+1-1", "7.1.1-1"),
            ("2:7.1~a-1", "2:7.1~1-1"),
        ] {
            let same = found(&[one, other, "9-1"], &["9-1", other, one]);
            let bare = [one, other].map(|version| version.strip_suffix("-1").unwrap().to_owned());
            assert!(same.len() == 1 && bare.iter().all(|it| same[0].contains(it)), "{same:?}");
            // Each set has its own tags, and each format its own builds.
            let tagged = found(&[&format!("{one}~deb12"), other], &[one, &format!("{other}.el9")]);
            assert_eq!(tagged, same);
            assert!(found(&[one, other], &[one]).is_empty());
        }
        assert_eq!(found(&["1-1~a", "1-1~1"], &["1-1~a", "1-1~1"]).len(), 1);
    }

    #[test]
    fn streams_that_only_one_format_follows_are_found() {
        let of = |present: &str, added: &str| PresentAndAdded {
            present: versions(&[present]),
            added: versions(&[added]),
        };
        for (debs, rpms, expected) in [
            // TheRock's nightly build, and its pre-release after it.
            (
                of("7.15.0~20261120-1", "7.15.0~pre2-1"),
                of("7.15.0~20261120-1", "7.15.0~rc2-1"),
                Some(["7.15.0~pre2", "7.15.0~20261120"]),
            ),
            (
                of("7.15.0~pre2-1", "7.15.0~20261120-1"),
                of("7.15.0~rc2-1", "7.15.0~20261120-1"),
                Some(["7.15.0~pre2", "7.15.0~20261120"]),
            ),
            (of("7.15.0~pre1-1", "7.15.0~pre2-1"), of("7.15.0~rc1-1", "7.15.0~rc2-1"), None),
            (of("7.15.0~pre2-1", "7.15.0-1"), of("7.15.0~rc2-1", "7.15.0-1"), None),
            // A release that was published in one format only.
            (of("7.16.0-1", "7.15.0~pre2-1"), of("7.14.0-1", "7.15.0~rc2-1"), None),
            (of("7.15.0-1", "7.15.0-1"), of("7.15.0-1", "7.15.0-2"), None),
        ] {
            let expected = expected.map(|pair| pair.map(str::to_owned));
            assert_eq!(diverging(&debs, &rpms), expected);
        }
    }

    #[test]
    fn versions_of_one_order_are_not() {
        let ordered = [
            "7.1.0~20251104-1",
            "7.1.0~20251105-1",
            "7.1.0-1",
            "7.1.0-2",
            "7.1.0-10",
            "7.1.0+git5-1",
            "7.1.1~dev1-1",
            "7.1.1~rc1-1",
            "7.1.1~rc2-1",
            "7.1.1-1",
            "7.10.0-1",
            "7.12.0~20260202-1",
            "7.12.0-1",
            "7.12.0rc1-1",
            "1:0-1",
        ];
        assert!(found(&ordered, &ordered).is_empty(), "{:?}", found(&ordered, &ordered));
    }
}

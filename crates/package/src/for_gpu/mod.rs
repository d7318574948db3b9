//! The packages of a set or repository that a GPU needs.
//!
//! A package serves a target if it states the target. A generic target (or SPIR-V) serves its members only where
//! every library has code that way: a library without it would fail on the GPU, and nothing would have said so.
//! There are no near matches.
//!
//! Metapackages stand for what they depend on, and packages that others bring are not named.

mod offer;
pub mod script;

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::gfx::{BaseArch, SPIRV, generic_of};
use rockpack_hardware::hardware;

use crate::Format;
use crate::requirement::Bound;

/// A package with the facts that decide which GPUs need it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GpuPackage {
    pub name: String,
    pub version: String,
    pub archs: BTreeSet<String>,
    /// The package of the library whose device code it has (`Enhances`).
    pub library: Option<String>,
    pub needs: BTreeSet<String>,
    /// The accepted versions of those packages.
    pub bounds: Vec<Bound<'static>>,
}

/// Packages of one format, each in its newest version.
#[derive(Debug, Default)]
pub struct GpuPackages(BTreeMap<String, GpuPackage>);

impl GpuPackages {
    /// The newest of the packages; of series side by side (`rocm7.1-gfx110x`, `rocm7.2-gfx110x`) those of the newest.
    /// Packages that do not accept the newest version of another are left out, such as device code that a later
    /// release no longer has.
    pub fn new(format: Format, all: impl IntoIterator<Item = GpuPackage>) -> Self {
        let mut newest: BTreeMap<String, GpuPackage> = BTreeMap::new();
        for offer in all {
            let known = newest.entry(without_series(&offer)).or_insert_with(|| offer.clone());
            if format.compare_versions(&known.version, &offer.version).is_lt() {
                *known = offer;
            }
        }
        let named = newest.into_values().map(|offer| (offer.name.clone(), offer));
        let named: BTreeMap<String, GpuPackage> = named.collect();
        let goes = |bound: &Bound<'_>| {
            named.get(&*bound.name).is_none_or(|other| bound.admits(format, &other.version))
        };
        let current = named.iter().filter(|(_, offer)| offer.bounds.iter().all(goes));
        Self(current.map(|(name, offer)| (name.clone(), offer.clone())).collect())
    }

    pub fn all(&self) -> impl Iterator<Item = &GpuPackage> {
        self.0.values()
    }

    /// The targets that a GPU can have and that packages serve, with the names of the packages to install.
    pub fn targets_with_packages(&self) -> Vec<(BaseArch, Vec<&str>)> {
        let stated = self.all().flat_map(|offer| &offer.archs).filter_map(|arch| arch.parse().ok());
        let targets: BTreeSet<BaseArch> =
            hardware().iter().map(|row| row.name.clone()).chain(stated).collect();
        let targets = targets.into_iter().filter(|it| !it.is_generic() && !it.is_spirv());
        let served = targets.map(|target| {
            let serving = self.packages_for(&target);
            (target, serving)
        });
        served.filter(|(_, serving)| !serving.is_empty()).collect()
    }

    /// The names of the packages to install for a target; none if nothing serves it.
    pub fn packages_for(&self, target: &BaseArch) -> Vec<&str> {
        let mut rest = self.kernels_for(target);
        let user_packages = &rest & &self.user_packages();
        if !user_packages.is_empty() {
            rest = user_packages;
        }
        let mut found = Vec::new();
        for meta in self.group_metapackages() {
            let members: BTreeSet<&str> = meta.needs.iter().map(String::as_str).collect();
            if members.is_subset(&rest) {
                rest = &rest - &members;
                found.push(meta.name.as_str());
            }
        }
        let brought = rest.iter().filter_map(|name| self.0.get(*name)).flat_map(|it| &it.needs);
        let brought: BTreeSet<&str> = brought.map(String::as_str).collect();
        found.extend(&rest - &brought);
        found
    }

    /// The metapackages of groups, which depend on device code alone.
    fn group_metapackages(&self) -> impl Iterator<Item = &GpuPackage> {
        let has_code = |name: &String| self.0.get(name).is_some_and(|it| !it.archs.is_empty());
        let metas = self.all().filter(|it| it.archs.is_empty() && !it.needs.is_empty());
        metas.filter(move |it| it.needs.iter().all(has_code))
    }

    /// The device code in metapackages, which users install. Device code of tests is in no metapackage.
    fn user_packages(&self) -> BTreeSet<&str> {
        self.group_metapackages().flat_map(|it| &it.needs).map(String::as_str).collect()
    }

    /// The libraries with device code, but none for a target.
    pub fn unserved(&self, target: &BaseArch) -> BTreeSet<&str> {
        let kernels = self.kernels_for(target);
        let served = kernels.iter().filter_map(|name| self.0.get(*name)?.library.as_deref());
        let served: BTreeSet<&str> = served.collect();
        let all: BTreeSet<&str> = self.all().filter_map(|it| it.library.as_deref()).collect();
        &all - &served
    }

    /// The packages whose device code the GPUs of a target run.
    fn kernels_for(&self, target: &BaseArch) -> BTreeSet<&str> {
        let mut libraries: BTreeMap<&str, Vec<&GpuPackage>> = BTreeMap::new();
        for offer in self.all().filter(|it| !it.archs.is_empty()) {
            let library = offer.library.as_deref().unwrap_or(&offer.name);
            libraries.entry(library).or_default().push(offer);
        }
        let generics = generic_of(target).map(BaseArch::as_str).into_iter().chain([SPIRV]);
        let ways = Vec::from_iter([target.as_str()].into_iter().chain(generics));
        let by =
            |way: &str, offers: &[&'_ GpuPackage]| offers.iter().any(|it| it.archs.contains(way));
        // Tests are no libraries: code of a generic target may lack theirs.
        let user_packages = self.user_packages();
        let is_users = |own: &&Vec<&'_ GpuPackage>| {
            user_packages.is_empty()
                || own.iter().any(|it| user_packages.contains(it.name.as_str()))
        };
        let mut of_users = libraries.values().filter(is_users);
        let is_whole = of_users.all(|own| ways.iter().any(|way| by(way, own)));
        let ways = if is_whole { &ways[..] } else { &ways[..1] };
        let library_failure =
            |offers: &Vec<&'_ GpuPackage>| ways.iter().find(|way| by(way, offers)).copied();
        let chosen =
            libraries.values().filter_map(|offers| Some((library_failure(offers)?, offers)));
        let serving =
            chosen.flat_map(|(way, own)| own.iter().filter(move |it| it.archs.contains(way)));
        serving.map(|offer| offer.name.as_str()).collect()
    }
}

/// The name without the series of the version, which names of versions side by side have in them.
fn without_series(offer: &GpuPackage) -> String {
    let upstream = offer.version.split_once(':').map_or(&*offer.version, |(_, rest)| rest);
    let mut parts = upstream.split(['.', '-', '~']);
    match (parts.next(), parts.next()) {
        (Some(major), Some(minor)) => offer.name.replacen(&format!("{major}.{minor}"), "", 1),
        _ => offer.name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Comparison, RelationKind};

    pub(super) fn offer(name: &str, archs: &str, library: &str, needs: &str) -> GpuPackage {
        let archs = Vec::from_iter(archs.split_whitespace().map(str::to_owned));
        let library = library.split_whitespace().map(|it| (RelationKind::Enhances, it));
        let needs = needs.split_whitespace().map(|it| (RelationKind::Depends, it));
        GpuPackage::new(name, "7.1.0-1", &archs, library.chain(needs))
    }

    fn set() -> Vec<GpuPackage> {
        vec![
            offer("rocm-blas", "", "", "rocm-common"),
            offer("rocm-blas-gfx110x", "gfx1100 gfx1101", "rocm-blas", "rocm-blas"),
            offer("rocm-blas-tests-gfx110x", "gfx1100", "rocm-blas-tests", "rocm-blas-tests"),
            offer("rocm-blas-gfx11-generic", "gfx11-generic", "rocm-blas", "rocm-blas"),
            offer("rocm-fft-gfx110x", "gfx1100", "rocm-fft", "rocm-fft rocm-blas-gfx110x"),
            offer("rocm-gfx110x", "", "", "rocm-blas-gfx110x rocm-fft-gfx110x"),
            offer("rocm", "", "", "rocm-blas rocm-fft"),
        ]
    }

    fn packages_for(set: Vec<GpuPackage>, target: &str) -> Vec<String> {
        let offers = GpuPackages::new(Format::Deb, set);
        let found = offers.packages_for(&target.parse().unwrap());
        found.into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn a_metapackage_stands_for_its_members_where_all_serve_the_target() {
        assert_eq!(packages_for(set(), "gfx1100"), ["rocm-gfx110x"]);
        assert_eq!(packages_for(set(), "gfx1101"), ["rocm-blas-gfx110x"]);
        assert!(packages_for(set(), "gfx1102").is_empty(), "rocm-fft has no generic code");
        assert!(packages_for(set(), "gfx1030").is_empty());
        let mut without_fft = set();
        without_fft.retain(|it| !it.name.contains("fft") && it.name != "rocm-gfx110x");
        assert!(packages_for(without_fft.clone(), "gfx1102").is_empty(), "tests may be a library");
        without_fft.push(offer("rocm-gfx11-generic", "", "", "rocm-blas-gfx11-generic"));
        assert_eq!(packages_for(without_fft, "gfx1102"), ["rocm-gfx11-generic"]);
    }

    #[test]
    fn what_a_later_release_has_no_more_serves_nobody() {
        for (comparison, expected) in
            [(Comparison::Equal, &[][..]), (Comparison::GreaterEqual, &["rocm-blas-gfx90a"])]
        {
            let version = Some((comparison, "7.1.0-1".into()));
            let kernels = GpuPackage {
                bounds: vec![Bound { name: "rocm-blas".into(), version }],
                ..offer("rocm-blas-gfx90a", "gfx90a", "rocm-blas", "rocm-blas")
            };
            let library =
                GpuPackage { version: "7.1.1-1".to_owned(), ..offer("rocm-blas", "", "", "") };
            assert_eq!(packages_for(vec![library, kernels], "gfx90a"), expected);
        }
    }

    #[test]
    fn the_newest_series_is_meant() {
        let of = |name: &str, version: &str| GpuPackage {
            version: version.to_owned(),
            ..offer(name, "gfx1100", "", "")
        };
        let set =
            vec![of("rocm7.1-x", "7.1.1-1"), of("rocm7.2-x", "7.2.0-1"), of("y", "1:7.1.0-1")];
        assert_eq!(packages_for(set, "gfx1100"), ["rocm7.2-x", "y"]);
    }
}

//! Packages of sets, repositories and indexes of wheels as [`GpuPackage`]s.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_archive::python_index::WheelPackage;
use rockpack_archive::wheel::Requirement as WheelRequirement;

use super::{GpuPackage, GpuPackages};
use crate::device_wheel::EXTRA;
use crate::indexed::{IndexMetadata, PackageKind};
use crate::offered::OfferedPackage;
use crate::requirement::Bound;
use crate::{Format, RelationKind};

impl GpuPackage {
    /// The package `name` with the archs of its device code and its relations, by kind and name.
    pub fn new<'a>(
        name: &str,
        version: &str,
        archs: &[String],
        relations: impl IntoIterator<Item = (RelationKind, &'a str)>,
    ) -> Self {
        let (name, version) = (name.to_owned(), version.to_owned());
        let archs = archs.iter().cloned().collect();
        let mut offer = Self { name, version, archs, ..Self::default() };
        for (kind, name) in relations {
            match kind {
                RelationKind::Depends => offer.needs.extend([name.to_owned()]),
                RelationKind::Enhances => offer.library = Some(name.to_owned()),
                _ => {}
            }
        }
        offer
    }

    /// A package of a repository; `None` of a wheel.
    pub fn of(facts: &IndexMetadata) -> Option<Self> {
        let relations = OfferedPackage::from(facts).relations;
        let names = |kind| relations.bounds(kind).map(|bound| bound.name.to_string());
        let library = match facts {
            IndexMetadata::Deb(_) => names(RelationKind::Enhances).next(),
            IndexMetadata::Rpm(package) => {
                package.list("enhances").first().map(|it| it.name.clone())
            }
            IndexMetadata::Wheel(_) => return None,
        };
        let needs = names(RelationKind::Depends).collect();
        let bounds = relations.bounds(RelationKind::Depends).cloned();
        let bounds = bounds.map(Bound::into_owned).collect();
        let (name, version) = (facts.name().to_owned(), facts.version());
        Some(Self { name, version, archs: facts.gpu_archs(), library, needs, bounds })
    }
}

impl GpuPackages {
    /// The extras that bring device wheels, of the newest version of each project: `torch[device-gfx1100]`.
    pub fn of_wheels<'a>(wheels: impl IntoIterator<Item = &'a WheelPackage>) -> Self {
        let mut projects: BTreeMap<&str, (&str, BTreeSet<String>)> = BTreeMap::new();
        for wheel in wheels.into_iter().filter(|wheel| !wheel.is_source()) {
            let of_project = projects.entry(&wheel.project).or_default();
            let order = PackageKind::Wheel.compare_versions(&wheel.version, of_project.0);
            if order.is_gt() {
                *of_project = (wheel.version.as_str(), BTreeSet::new());
            }
            if order.is_ge() {
                let lines = wheel.requires.iter();
                let requires = lines.filter_map(|line| WheelRequirement::parse(line).ok());
                of_project.1.extend(requires.flat_map(|it| it.condition.extras().to_vec()));
            }
        }
        let extras = projects.iter().flat_map(|(project, (_, extras))| {
            extras.iter().filter_map(move |extra| Some((*project, extra.strip_prefix(EXTRA)?)))
        });
        let offer = |(project, arch): (&str, &str)| GpuPackage {
            name: format!("{project}[{EXTRA}{arch}]"),
            archs: [arch.to_owned()].into(),
            library: Some(project.to_owned()),
            ..GpuPackage::default()
        };
        // Each name is there once, so the order of versions does not matter.
        Self::new(Format::Deb, extras.map(offer))
    }
}

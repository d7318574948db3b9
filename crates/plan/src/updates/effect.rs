//! Finds the effect of a set published beside earlier ones on systems that have these installed.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::outcome::Plan;
use crate::settings::PlanSettings;
use crate::source::FileSource;
use rockpack_package::offered::Offered;
use rockpack_package::receipt::listing::{ListedPackage, Listing};
use rockpack_package::requirement::{Relations, Requirement};
use rockpack_package::updates::Effect;
use rockpack_package::{Format, Package};
use rockpack_report::Finding;

impl Plan {
    /// Notes the packages of `earlier` sets that this set would hold back from an update or that would have
    /// to be removed for it. If several sets have a package, the last one counts.
    pub fn note_effect(&mut self, setting: &PlanSettings, earlier: &[Listing]) {
        for format in &setting.formats {
            let mut before: Vec<&ListedPackage> = Vec::new();
            for listing in earlier {
                let own: Vec<_> = listing.packages.iter().filter(|p| p.format == *format).collect();
                before.retain(|known| !own.iter().any(|package| package.key() == known.key()));
                before.extend(own);
            }
            let made: Vec<Offered<'_>> =
                self.packages.iter().filter_map(|package| offered(package, *format)).collect();
            if setting.only.is_empty() {
                // Packages that the set no longer has get a finding of their own.
                let kept = self.kept.packages.iter().filter(|record| record.format == *format);
                let mut names: BTreeSet<Cow<'_, str>> =
                    kept.filter_map(|record| record.name()).map(Cow::Owned).collect();
                names.extend(made.iter().map(|package| Cow::Borrowed(package.name)));
                before.retain(|package| names.contains(package.name.as_str()));
            }
            let before: Vec<Offered<'_>> = before.into_iter().map(ListedPackage::offered).collect();
            let after: Vec<Offered<'_>> = before.iter().cloned().chain(made).collect();
            let Effect { misfits, held_back, .. } = Effect::of(*format, &before, &after);
            if !misfits.is_empty() {
                let (format, held_back) = (*format, held_back.into_iter().collect());
                self.findings.add(Finding::EarlierHeldBack { format, misfits, held_back });
            }
        }
        self.findings.sort();
    }
}

/// A planned package as it would be offered to clients.
fn offered(package: &Package<FileSource>, format: Format) -> Option<Offered<'_>> {
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
    Some(Offered { name, version, arch, relations, paths: Vec::new() })
}

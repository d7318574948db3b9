//! Selects the packages that `--only` keeps: components with all their packages, or a package with others
//! made of the same parts of the same family (its kernel packages, its metapackage).

mod left_out;

use std::collections::BTreeSet;

use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::tree::TreePath;

use crate::config::nearest;
use crate::drafts::Draft;
use crate::recombine::Recombined;
use crate::settings::PlanSettings;
use crate::source::ArchiveSet;
use rockpack_package::receipt::Standing;
use rockpack_report::Findings;

/// The kept components and packages; `None` keeps everything.
pub(crate) struct Only(Option<Kept>);

#[derive(Default)]
struct Kept {
    /// Ids of components.
    components: BTreeSet<String>,
    /// A family and the components of one of its packages.
    packages: Vec<(String, BTreeSet<String>)>,
}

/// The kept packages, and the install-relative paths of the input that no kept package has; in order.
pub(crate) struct Selection {
    pub kept: Vec<Draft>,
    pub left_out: Vec<TreePath>,
}

impl Only {
    /// Resolves the names of `only`; refuses names without a match.
    pub fn new(recombined: &Recombined, drafts: &[Draft], only: &[String]) -> Result<Self> {
        if only.is_empty() {
            return Ok(Self(None));
        }
        let mut faults = Faults::default();
        let mut kept = Kept::default();
        for wanted in only {
            if !kept.add(wanted, recombined, drafts) {
                let known: Vec<String> = recombined.components.iter().map(|c| c.id()).collect();
                let error = Error::new(Kind::Usage, format!("there is no component `{wanted}`"));
                let packages = drafts
                    .iter()
                    .flat_map(|draft| [&draft.names, &draft.stem])
                    .flat_map(|names| [names.deb.as_str(), names.rpm.as_str()]);
                let artifacts = recombined.components.iter().map(|c| c.artifact.as_str());
                let all = known.iter().map(String::as_str).chain(artifacts).chain(packages);
                let meant = nearest(wanted, all)
                    .map(|it| format!("did you mean `{it}`? "))
                    .unwrap_or_default();
                faults.add(error.hint(format!("{meant}the components are {}", known.join(", "))));
            }
        }
        faults.finish()?;
        Ok(Self(Some(kept)))
    }

    /// Divides the packages of a set. Content of packages that remain from earlier sets does not count as
    /// left out.
    pub fn select(
        &self,
        recombined: &Recombined,
        setting: &PlanSettings,
        drafts: Vec<Draft>,
        archives: &[ArchiveSet],
        standing: &Standing,
        findings: &mut Findings,
    ) -> Result<Selection> {
        let (kept, dropped): (Vec<Draft>, Vec<Draft>) =
            drafts.into_iter().partition(|draft| self.keeps(draft));
        let (stays, dropped): (Vec<&Draft>, Vec<&Draft>) = dropped.iter().partition(|draft| {
            let mut formats = setting.formats.iter();
            formats.any(|format| standing.keepable(*format, &draft.names.deb).is_some())
        });
        let stays = kept.iter().chain(stays).collect::<Vec<_>>();
        let left_out = left_out::left_out(recombined, archives, &stays, &dropped, findings)?;
        Ok(Selection { kept, left_out })
    }

    /// Whether `draft` is kept.
    fn keeps(&self, draft: &Draft) -> bool {
        let Some(kept) = &self.0 else {
            return true;
        };
        let has_component = !draft.components.is_disjoint(&kept.components);
        has_component
            || kept.packages.iter().any(|(family, components)| {
                // The common package is kept along with any part of the set.
                let serves = draft.family == *family || draft.is_common;
                serves && !draft.components.is_disjoint(components)
            })
    }
}

impl Kept {
    /// Adds the components or packages called `wanted`; returns false if there is no match.
    fn add(&mut self, wanted: &str, recombined: &Recombined, drafts: &[Draft]) -> bool {
        let components: Vec<String> = recombined
            .components
            .iter()
            .filter(|c| c.artifact == wanted || c.id() == wanted)
            .map(|component| component.id())
            .collect();
        let packages: Vec<_> = drafts
            .iter()
            .filter(|draft| !draft.components.is_empty())
            .filter(|d| d.names.has(wanted) || d.stem.has(wanted))
            .map(|draft| (draft.family.clone(), draft.components.clone()))
            .collect();
        let found = !components.is_empty() || !packages.is_empty();
        self.components.extend(components);
        self.packages.extend(packages);
        found
    }
}

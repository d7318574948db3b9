//! Packages of a list: which entry takes what of the artifacts.
//!
//! An entry claims parts of stage prefixes. It becomes one portion, whichever components it takes;
//! the rest of the plan does not tell it from one that selectors made. Refused: stage prefixes that
//! two entries claim.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_base::error::{Error, Faults, Result};
use rockpack_base::tree::TreePath;

use super::file::{Claim, PackageList, PackageListEntry};
use super::stage_prefixes::StagePrefixes;
use crate::config::PartRole;
use crate::input::artifact::ComponentKind;
use crate::plan::contents::portion::Portion;
use crate::plan::naming::parts::PackagePart;
use crate::plan::naming::{Naming, PackageNames};
use crate::recombine::Component;
use crate::report::{Finding, Findings, IgnoredClaim};

/// How names of development packages end.
const DEVEL: &str = "-devel";

/// How names of test packages end.
const TEST: &str = "-test";

/// A list of packages, and where the paths of the input came from.
#[derive(Debug, Clone)]
pub struct Import<'a> {
    /// The list.
    pub list: &'a PackageList,
    /// The stage prefix of every path.
    pub stage_prefixes: StagePrefixes,
}

/// A list, ready to say who takes what.
pub(in crate::plan) struct ClaimedList<'a> {
    import: &'a Import<'a>,
    entries: Vec<EntryPortion>,
    /// Artifact, component and stage prefix → the place in the list of who takes it.
    owners: BTreeMap<(&'a str, ComponentKind), BTreeMap<&'a str, usize>>,
}

/// What the portion of an entry is like.
struct EntryPortion {
    family: String,
    stem: PackageNames,
    part: PackagePart,
}

impl<'a> ClaimedList<'a> {
    pub fn new(import: &'a Import<'a>) -> Result<Self> {
        let entries = import.list.entries.iter().map(EntryPortion::new).collect();
        let mut listed = Self { import, entries, owners: BTreeMap::new() };
        listed.own()?;
        Ok(listed)
    }

    pub fn list(&self) -> &'a PackageList {
        self.import.list
    }

    /// The place in the list of the entry that takes `path` of `component`, whose module is known
    /// even if the path was moved.
    pub fn owner(
        &self,
        component: &Component,
        path: &TreePath,
        module: Option<&str>,
    ) -> Option<usize> {
        let (artifact, kind) = (component.artifact.as_str(), component.kind);
        match self.import.stage_prefixes.prefix(component, path) {
            Some(prefix) => self.owners.get(&(artifact, kind))?.get(prefix).copied(),
            None => self.claimants(artifact, kind, module?).next(),
        }
    }

    /// Family, stem and part of an entry's portion.
    pub fn portion(&self, index: usize) -> Option<(&str, &PackageNames, &PackagePart)> {
        let entry = self.entries.get(index)?;
        Some((&entry.family, &entry.stem, &entry.part))
    }

    /// Whether an entry is for developers: its host package is called as if it were all.
    pub fn is_devel(&self, index: usize) -> bool {
        self.list().entries.get(index).is_some_and(PackageListEntry::is_devel)
    }

    fn claimants<'b>(
        &self,
        artifact: &'b str,
        kind: ComponentKind,
        prefix: &'b str,
    ) -> impl Iterator<Item = usize> + use<'a, 'b> {
        let claims = move |entry: &PackageListEntry| {
            let mut claims = entry.claims.iter();
            claims.any(|claim| claim.takes(artifact, kind) && claim.fits(prefix))
        };
        let entries = self.import.list.entries.iter().enumerate();
        entries.filter(move |(_, entry)| claims(entry)).map(|(index, _)| index)
    }

    /// Finds who takes each stage prefix.
    fn own(&mut self) -> Result<()> {
        let mut faults = Faults::default();
        let import = self.import;
        for (artifact, kind) in import.stage_prefixes.components() {
            for prefix in import.stage_prefixes.prefixes(artifact, kind) {
                let mut claimants = self.claimants(artifact, kind, prefix);
                let Some(first) = claimants.next() else { continue };
                for other in claimants {
                    faults.add(self.shared(artifact, kind, prefix, first, other));
                }
                self.owners.entry((artifact, kind)).or_default().insert(prefix, first);
            }
        }
        faults.finish()
    }

    /// Two entries take one stage prefix.
    fn shared(
        &self,
        artifact: &str,
        kind: ComponentKind,
        prefix: &str,
        first: usize,
        other: usize,
    ) -> Error {
        let list = self.list();
        let (Some(first), Some(other)) = (list.entries.get(first), list.entries.get(other)) else {
            return Error::bug("an entry is not in its list");
        };
        let message = format!(
            "{} takes {prefix} of {artifact}_{kind}, and so does {}",
            other.name, first.name
        );
        let fits = |claim: &&Claim| claim.takes(artifact, kind) && claim.fits(prefix);
        let error = match other.claims.iter().find(fits) {
            Some(claim) => list.claim_fault(other, claim, message),
            None => list.fault(other, &[], message),
        };
        error.hint("packages that can be installed together cannot own one path")
    }

    /// Notes what entries ask for and do not get, where `portions` are made.
    pub fn note(&self, portions: &[Portion<'_>], findings: &mut Findings) {
        findings.extend(self.list().findings.clone());
        self.note_absent_modules(findings);
        self.note_without_content(portions, findings);
        note_devel(portions, findings);
    }

    /// Notes claims on modules that an artifact does not have.
    fn note_absent_modules(&self, findings: &mut Findings) {
        let stage_prefixes = &self.import.stage_prefixes;
        for entry in &self.list().entries {
            for claim in &entry.claims {
                let all = claim.kinds.iter();
                let mut prefixes =
                    all.flat_map(|kind| stage_prefixes.prefixes(&claim.artifact, *kind)).peekable();
                if prefixes.peek().is_some() && !prefixes.any(|prefix| claim.fits(prefix)) {
                    let claim = IgnoredClaim::AbsentModule {
                        module: claim.subdir.clone(),
                        artifact: claim.artifact.clone(),
                        components: claim.kinds.iter().map(ToString::to_string).collect(),
                    };
                    let entry = entry.name.clone();
                    findings.add(Finding::ListClaimIgnored { entry, claim });
                }
            }
        }
    }

    /// Notes entries that no portion was made for.
    fn note_without_content(&self, portions: &[Portion<'_>], findings: &mut Findings) {
        let made = |index| portions.iter().any(|portion| portion.entry == Some(index));
        for (index, entry) in self.list().entries.iter().enumerate() {
            if entry.is_meta || made(index) {
                continue;
            }
            let artifacts = entry.claims.iter().map(|claim| claim.artifact.clone());
            let artifacts: BTreeSet<String> = artifacts.collect();
            let artifacts = Some(artifacts.into_iter().collect());
            let entry = entry.name.clone();
            findings.add(Finding::ListedWithoutContent { entry, artifacts });
        }
    }
}

impl EntryPortion {
    /// Development and test packages are of the family that they are about, with archives of their
    /// own names.
    fn new(entry: &PackageListEntry) -> Self {
        let devel = entry.name.strip_suffix(DEVEL).map(|family| (family, "dev", "dev"));
        let test = entry.name.strip_suffix(TEST).map(|family| (family, "test", "tests"));
        let (role, of_family) = match devel.or(test) {
            Some(of_family) => (PartRole::Support, of_family),
            None => (PartRole::Host, (entry.name.as_str(), "lib", "host")),
        };
        let (family, archives, template) = of_family;
        Self {
            family: family.to_owned(),
            stem: stem(entry),
            part: PackagePart::of_entry(archives, role, template, entry),
        }
    }
}

/// Notes entries for developers with device code: they are not cut in two, but it has to be
/// somewhere, and no host package has any.
fn note_devel(portions: &[Portion<'_>], findings: &mut Findings) {
    for portion in portions.iter().filter(|portion| portion.is_devel && portion.has_device_code()) {
        let (entry, claim) = (portion.stem.rpm.clone(), IgnoredClaim::WholeDevelopment);
        findings.add(Finding::ListClaimIgnored { entry, claim });
    }
}

/// The stem of an entry's packages, metapackages among them.
pub(in crate::plan) fn stem(entry: &PackageListEntry) -> PackageNames {
    PackageNames { deb: entry.deb_name(), rpm: entry.name.clone() }
}

/// The name without the vendor, for texts.
pub(in crate::plan) fn short<'b>(entry: &'b PackageListEntry, naming: &Naming) -> &'b str {
    naming.short(&entry.name)
}

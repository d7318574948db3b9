//! Packages of a list: which entry takes what of the artifacts.
//!
//! An entry claims parts of stage prefixes. It becomes one bundle, whichever components it takes;
//! the rest of the plan does not tell it from one that selectors made. Refused: stage prefixes that
//! two entries claim.

use super::naming::{Names, Naming};
use super::parts::Part;
use super::places::Places;
use crate::artifact::ComponentKind;
use crate::config::{Claim, ListedPackage, PackageList, PartRole, PartSchema, Suffix};
use crate::error::{Faults, Result};
use crate::recombine::Component;
use crate::report::{Code, Finding, Findings};
use crate::tree::TreePath;

/// How names of test packages end.
const TEST: &str = "-test";

/// A list of packages, and where the paths of the input came from.
#[derive(Debug, Clone)]
pub struct Import {
    /// The list.
    pub list: PackageList,
    /// The stage prefix of every path.
    pub places: Places,
}

/// A list, ready to say who takes what.
pub(super) struct Listed<'a> {
    import: &'a Import,
    entries: Vec<Entry>,
}

/// What the bundle of an entry is like.
struct Entry {
    family: String,
    stem: Names,
    part: Part,
}

impl<'a> Listed<'a> {
    pub fn new(import: &'a Import) -> Result<Self> {
        let entries = import.list.entries.iter().map(Entry::new).collect();
        let listed = Self { import, entries };
        listed.refuse_shared()?;
        Ok(listed)
    }

    pub fn list(&self) -> &'a PackageList {
        &self.import.list
    }

    /// The place in the list of the entry that takes `path` of `component`, whose module is known
    /// even if the path was moved.
    pub fn owner(
        &self,
        component: &Component,
        path: &TreePath,
        module: Option<&str>,
    ) -> Option<usize> {
        let prefix = self.import.places.prefix(component, path).or(module)?;
        self.claimants(&component.artifact, component.kind, prefix).next()
    }

    /// Family, stem and part of an entry's bundle.
    pub fn bundle(&self, index: usize) -> Option<(&str, &Names, &Part)> {
        let entry = self.entries.get(index)?;
        Some((&entry.family, &entry.stem, &entry.part))
    }

    /// Whether an entry's device code stays with its host files.
    pub fn is_whole(&self, index: usize) -> bool {
        self.list().entries.get(index).is_some_and(ListedPackage::is_devel)
    }

    fn claimants(
        &self,
        artifact: &str,
        kind: ComponentKind,
        prefix: &str,
    ) -> impl Iterator<Item = usize> {
        let claims = move |entry: &ListedPackage| {
            let mut claims = entry.claims.iter();
            claims.any(|claim| claim.takes(artifact, kind) && claim.fits(prefix))
        };
        let entries = self.import.list.entries.iter().enumerate();
        entries.filter(move |(_, entry)| claims(entry)).map(|(index, _)| index)
    }

    fn refuse_shared(&self) -> Result<()> {
        let (mut faults, list) = (Faults::default(), self.list());
        let places = &self.import.places;
        for (artifact, kind) in places.components() {
            for prefix in places.prefixes(artifact, kind) {
                let mut claimants = self.claimants(artifact, kind, prefix);
                let first = claimants.next().and_then(|index| list.entries.get(index));
                for other in claimants.filter_map(|index| list.entries.get(index)) {
                    let fits = |claim: &&Claim| claim.takes(artifact, kind) && claim.fits(prefix);
                    let claim = other.claims.iter().find(fits);
                    if let (Some(first), Some(claim)) = (first, claim) {
                        let message = format!(
                            "{} takes {prefix} of {artifact}_{kind}, and so does {}",
                            other.name, first.name
                        );
                        let hint = "packages that can be installed together cannot own one path";
                        faults.add(list.claim_fault(other, claim, message).hint(hint));
                    }
                }
            }
        }
        faults.finish()
    }

    /// Notes claims on modules that an artifact does not have.
    pub fn note_absent_modules(&self, findings: &mut Findings) {
        let places = &self.import.places;
        for entry in &self.list().entries {
            for claim in &entry.claims {
                let all = claim.components.iter();
                let prefixes: Vec<&str> =
                    all.flat_map(|kind| places.prefixes(&claim.artifact, *kind)).collect();
                if !prefixes.is_empty() && !prefixes.iter().any(|prefix| claim.fits(prefix)) {
                    let kinds: Vec<&str> = claim.components.iter().map(|k| k.as_str()).collect();
                    let message = format!(
                        "takes {} of the artifact {} ({}), which does not have it",
                        claim.subdir,
                        claim.artifact,
                        kinds.join(", ")
                    );
                    findings.add(Finding::new(Code::ListClaimIgnored, &entry.name, message));
                }
            }
        }
    }

    /// Notes entries that no bundle was made for, `made` being those that have one.
    pub fn note_without_content(&self, made: impl Fn(usize) -> bool, findings: &mut Findings) {
        for (index, entry) in self.list().entries.iter().enumerate() {
            if entry.is_meta || made(index) {
                continue;
            }
            let mut names: Vec<&str> =
                entry.claims.iter().map(|claim| claim.artifact.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            let of = if names.is_empty() { "no artifact" } else { &names.join(", ") };
            let message = format!("takes nothing of the input (of {of}), so there is no package");
            findings.add(Finding::new(Code::ListedWithoutContent, &entry.name, message));
        }
    }
}

impl Entry {
    /// Development and test packages are of the family that they are about, with archives of their
    /// own names.
    fn new(entry: &ListedPackage) -> Self {
        let test = entry.name.strip_suffix(TEST);
        let devel = entry.name.strip_suffix("-devel");
        let (family, kind) = match (devel, test) {
            (Some(family), _) => (family, "dev"),
            (None, Some(family)) => (family, "test"),
            (None, None) => (entry.name.as_str(), "lib"),
        };
        Self {
            family: family.to_owned(),
            stem: Names { deb: entry.deb_name(), rpm: entry.name.clone() },
            part: Part::plain(PartSchema {
                name: kind.to_owned(),
                components: Vec::new(),
                suffix: Suffix { deb: String::new(), rpm: String::new() },
                role: if kind == "lib" { PartRole::Host } else { PartRole::Support },
                section: entry.section.clone().unwrap_or_else(|| "misc".to_owned()),
                group: entry.group.clone().unwrap_or_else(|| "Unspecified".to_owned()),
                template: match kind {
                    "dev" => "dev",
                    "test" => "tests",
                    _ => "host",
                }
                .to_owned(),
                needs_host: false,
                programs: kind != "dev",
            }),
        }
    }
}

/// The stem of an entry's packages, metapackages among them.
pub(super) fn stem(entry: &ListedPackage) -> Names {
    Names { deb: entry.deb_name(), rpm: entry.name.clone() }
}

/// The name without the vendor, for texts.
pub(super) fn short<'b>(entry: &'b ListedPackage, naming: &Naming) -> &'b str {
    naming.short(&entry.name)
}

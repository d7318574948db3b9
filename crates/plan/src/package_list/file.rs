//! TheRock's package list, `package.json`: the parts of artifacts that each package takes, its texts, and its
//! dependencies.
//!
//! Unknown keys are findings: the file belongs to another project, which may add keys. Wrong types, words,
//! names and components, and duplicate names of entries, are errors with their line and column.
//! `Disable_DWZ`, `Disable_RPM_STRIP`, `Disable_DEB_STRIP` and `Disable_Debug_Package` turn off steps that
//! rockpack never does, so they are ignored.

use std::collections::BTreeMap;
use std::path::Path;

use rockpack_core::error::{Error, Faults, Result};
use serde_json::Value;

use super::schema::{ArtifactSchema, EntrySchema};
use crate::config::{ConfigDocument, Syntax, is_address, is_lower_or_digit, read_text};
use crate::drafts::TextOverrides;
use crate::naming::PackageNames;
use rockpack_report::{Findings, IgnoredClaim, found};
use rockpack_split::input::artifact::ComponentKind;

const SCHEMA_HINT: &str = "the list has the schema of TheRock's packaging/linux/package.json";

/// Ending of the names of development packages in the list.
const DEVEL: &str = "-devel";

#[derive(Debug, Clone)]
pub struct PackageList {
    /// Entries in file order, without those that are disabled.
    pub entries: Vec<PackageListEntry>,
    pub findings: Findings,
    document: ConfigDocument,
}

#[derive(Debug, Clone)]
pub struct PackageListEntry {
    pub index: usize,
    pub name: String,
    pub is_meta: bool,
    /// Whether a metapackage has one for each target.
    pub per_target: bool,
    /// Whether it is for one processor; `None` if its content decides.
    pub native: Option<bool>,
    pub parts: Vec<ListedPart>,
    /// Relations by key, e.g. `DEBDepends`.
    pub relations: BTreeMap<&'static str, Vec<String>>,
    pub(super) text_overrides: TextOverrides,
    pub summary: Option<String>,
    pub description: Option<String>,
    pub section: Option<String>,
    pub group: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedPart {
    pub artifact: String,
    /// One or several consecutive names of a stage prefix, e.g. `rocBLAS`, in any case.
    pub subdir: String,
    pub kinds: Vec<ComponentKind>,
    /// Position in the file: the indexes of artifact and subdirectory.
    place: [usize; 2],
}

impl ListedPart {
    pub fn is_of(&self, artifact: &str, kind: ComponentKind) -> bool {
        self.artifact == artifact && self.kinds.contains(&kind)
    }

    /// Whether the names of `subdir` follow each other in the path of a stage prefix.
    pub fn fits(&self, prefix: &str) -> bool {
        let prefix = prefix.to_lowercase();
        let subdir = self.subdir.to_lowercase();
        let wanted: Vec<&str> = subdir.split('/').filter(|part| !part.is_empty()).collect();
        let parts: Vec<&str> = prefix.split('/').collect();
        parts.windows(wanted.len()).any(|window| window == wanted)
    }
}

impl PackageListEntry {
    /// The family whose development package it is; such a package is not split into host and kernels.
    pub fn devel_of(&self) -> Option<&str> {
        self.name.strip_suffix(DEVEL)
    }

    /// The stem of its packages, including metapackages.
    pub(super) fn stem(&self) -> PackageNames {
        PackageNames { deb: deb_name(&self.name), rpm: self.name.clone() }
    }

    pub fn relations(&self, key: &str) -> &[String] {
        self.relations.get(key).map_or(&[], Vec::as_slice)
    }
}

/// Debian's name for a package: `-dev` for `-devel`.
pub fn deb_name(name: &str) -> String {
    match name.strip_suffix(DEVEL) {
        Some(rest) => format!("{rest}-dev"),
        None => name.to_owned(),
    }
}

impl PackageList {
    pub fn open(path: &Path) -> Result<Self> {
        let text = read_text(path, "list of packages")?;
        Self::read(ConfigDocument::new(Some(path.to_path_buf()), text, Syntax::Json))
    }

    pub fn parse(text: &str) -> Result<Self> {
        Self::read(ConfigDocument::new(None, text.to_owned(), Syntax::Json))
    }

    fn read(document: ConfigDocument) -> Result<Self> {
        let schema: Vec<EntrySchema> = document.decode(SCHEMA_HINT)?;
        let (faults, findings) = (Faults::default(), Findings::default());
        let mut checker = Checker { document: &document, faults, findings };
        let mut entries: Vec<PackageListEntry> = Vec::new();
        let mut names = BTreeMap::new();
        for (index, entry) in schema.into_iter().enumerate() {
            if let Some(first) = names.insert(entry.package.clone(), index) {
                let message = format!("{} is also the name of entry {first}", entry.package);
                checker.fault(index, &["Package"], message);
            }
            let enabled = !entry.disable_packaging.0;
            let entry = checker.entry(index, entry);
            entries.extend(enabled.then_some(entry));
        }
        let Checker { faults, findings, .. } = checker;
        findings.explain(faults.finish())?;
        Ok(Self { entries, findings, document })
    }

    pub fn find(&self, name: &str) -> Option<(usize, &PackageListEntry)> {
        let mut entries = self.entries.iter().enumerate();
        entries.find(|(_, entry)| entry.stem().has(name))
    }

    /// Adds the position of the value at `keys` of an entry to `error`.
    pub fn located(&self, entry: &PackageListEntry, keys: &[&str], error: &Error) -> Error {
        self.document.located(&keys_of(&entry.index.to_string(), keys), error)
    }

    pub fn fault_of_part(
        &self,
        entry: &PackageListEntry,
        part: &ListedPart,
        message: impl Into<String>,
    ) -> Error {
        let [artifact, subdir] = part.place.map(|index| index.to_string());
        let index = entry.index.to_string();
        let keys = [index.as_str(), "Artifactory", &artifact, "Artifact_Subdir", &subdir, "Name"];
        self.document.fault(&keys, message)
    }
}

fn keys_of<'a>(index: &'a str, keys: &[&'a str]) -> Vec<&'a str> {
    [&[index], keys].concat()
}

const NEVER_DONE: [&str; 4] =
    ["Disable_DWZ", "Disable_RPM_STRIP", "Disable_DEB_STRIP", "Disable_Debug_Package"];

struct Checker<'a> {
    document: &'a ConfigDocument,
    faults: Faults,
    findings: Findings,
}

impl Checker<'_> {
    fn fault(&mut self, index: usize, keys: &[&str], message: String) {
        let index = index.to_string();
        self.faults.add(self.document.fault(&keys_of(&index, keys), message));
    }

    fn entry(&mut self, index: usize, entry: EntrySchema) -> PackageListEntry {
        let name = entry.package.clone();
        self.unknown(&name, "", &entry.others);
        let is_plain = name.chars().all(|c| is_lower_or_digit(c) || "-.".contains(c));
        if name.len() < 2 || !is_plain || name.starts_with(['-', '.']) {
            let message =
                format!("`{name}` is not a package name of lowercase letters, digits and `-`");
            self.fault(index, &["Package"], message);
        }
        self.single_lines(index, &entry);
        self.ignored(&name, &entry);
        let native = self.native(index, &entry);
        let parts = self.parts(index, &name, entry.artifactory.unwrap_or_default());
        if entry.metapackage.0 && !parts.is_empty() {
            self.fault(index, &["Artifactory"], "a metapackage cannot take artifacts".to_owned());
        }
        let relations = [
            ("DEBDepends", entry.deb_depends),
            ("RPMRequires", entry.rpm_requires),
            ("DEBRecommends", entry.deb_recommends),
            ("RPMRecommends", entry.rpm_recommends),
            ("DEBSuggests", entry.deb_suggests),
            ("RPMSuggests", entry.rpm_suggests),
            ("Provides", entry.provides),
            ("Replaces", entry.replaces),
            ("Conflicts", entry.conflicts),
            ("Obsoletes", entry.obsoletes),
        ];
        PackageListEntry {
            index,
            name,
            is_meta: entry.metapackage.0,
            per_target: entry.gfxarch.0,
            native,
            parts,
            relations: relations.into_iter().filter_map(|(key, l)| Some((key, l?))).collect(),
            text_overrides: TextOverrides {
                maintainer: non_empty(entry.maintainer),
                vendor: non_empty(entry.vendor),
                homepage: non_empty(entry.homepage),
                license: non_empty(entry.license),
                copyright: None,
                priority: non_empty(entry.priority),
            },
            summary: non_empty(entry.description_short),
            description: non_empty(entry.description_long),
            section: non_empty(entry.section),
            group: non_empty(entry.group),
        }
    }

    fn unknown(&mut self, name: &str, place: &str, others: &BTreeMap<String, Value>) {
        let is_never_done = |key: &str| NEVER_DONE.iter().any(|it| it.eq_ignore_ascii_case(key));
        for key in others.keys().filter(|key| !place.is_empty() || !is_never_done(key)) {
            let (entry, key) = (name.to_owned(), format!("{place}{key}"));
            self.findings.add(found::ListKeyUnknown { entry, key });
        }
    }

    /// Notes the claims of an entry that no package follows.
    fn ignored(&mut self, name: &str, entry: &EntrySchema) {
        let has_version = entry.version.as_ref().is_some_and(|version| !version.trim().is_empty());
        let is_outside = entry.artifact.is_some() || entry.kinds.is_some();
        let claims = [
            (has_version, IgnoredClaim::Version),
            (entry.postinstall.0, IgnoredClaim::Postinstall),
            (is_outside, IgnoredClaim::OutsideArtifactory),
        ];
        let is_enabled = !entry.disable_packaging.0;
        for (_, claim) in claims.into_iter().filter(|(is_made, _)| *is_made && is_enabled) {
            self.findings.add(found::ListClaimIgnored { entry: name.to_owned(), claim });
        }
    }

    fn native(&mut self, index: usize, entry: &EntrySchema) -> Option<bool> {
        let (deb, rpm) = (entry.architecture.as_deref(), entry.build_arch.as_deref());
        let deb = self.is_native(index, "Architecture", deb, ["amd64", "all"]);
        let rpm = self.is_native(index, "BuildArch", rpm, ["x86_64", "noarch"]);
        if let (Some(deb), Some(rpm)) = (deb, rpm)
            && deb != rpm
        {
            let message = "contradicts `Architecture`".to_owned();
            self.fault(index, &["BuildArch"], message);
        }
        deb.or(rpm)
    }

    /// Whether `processor` is the `native` one; `None` without any, or after noting that it is unknown.
    fn is_native(
        &mut self,
        index: usize,
        key: &str,
        processor: Option<&str>,
        [native, all]: [&str; 2],
    ) -> Option<bool> {
        match processor? {
            text if text == native => Some(true),
            text if text == all => Some(false),
            other => {
                let message = format!("`{other}` is neither {native} nor {all}");
                self.fault(index, &[key], message);
                None
            }
        }
    }

    fn single_lines(&mut self, index: usize, entry: &EntrySchema) {
        let fields = [
            ("Maintainer", &entry.maintainer),
            ("Description_Short", &entry.description_short),
            ("Section", &entry.section),
            ("Priority", &entry.priority),
            ("Group", &entry.group),
            ("License", &entry.license),
            ("Vendor", &entry.vendor),
            ("Homepage", &entry.homepage),
        ];
        for (key, value) in fields {
            if value.as_ref().is_some_and(|text| text.trim().contains(char::is_control)) {
                self.fault(index, &[key], "must be one line of text".to_owned());
            }
        }
        if let Some(maintainer) = non_empty(entry.maintainer.clone())
            && !is_address(&maintainer)
        {
            self.fault(index, &["Maintainer"], "is not a name with an e-mail address".to_owned());
        }
    }

    fn parts(&mut self, index: usize, name: &str, schema: Vec<ArtifactSchema>) -> Vec<ListedPart> {
        let mut parts = Vec::new();
        for (at, artifact) in schema.into_iter().enumerate() {
            self.unknown(name, "Artifactory.", &artifact.others);
            for (sub, subdir) in artifact.subdirs.into_iter().enumerate() {
                self.unknown(name, "Artifact_Subdir.", &subdir.others);
                let place = [at, sub];
                let (at, sub) = (at.to_string(), sub.to_string());
                let keys = ["Artifactory", &at, "Artifact_Subdir", &sub];
                if subdir.name.trim_matches('/').is_empty() {
                    let message = "is empty: name a part of a stage prefix".to_owned();
                    self.fault(index, &[keys[0], keys[1], keys[2], keys[3], "Name"], message);
                }
                let mut kinds = Vec::new();
                for (index_of, text) in subdir.kinds.iter().enumerate() {
                    let index_of = index_of.to_string();
                    let keys = [keys[0], keys[1], keys[2], keys[3], "Components", &index_of];
                    match text.parse::<ComponentKind>() {
                        Ok(kind) => kinds.push(kind),
                        Err(error) => self.fault(index, &keys, error.message().to_owned()),
                    }
                }
                let artifact = artifact.artifact.clone();
                parts.push(ListedPart { artifact, subdir: subdir.name, kinds, place });
            }
        }
        parts
    }
}

fn non_empty(text: Option<String>) -> Option<String> {
    let text = text?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}

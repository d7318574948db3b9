//! Tables of the configuration by package: the packages of earlier sets that it replaces (`replaces`) or that
//! had some of its paths (`moved`), the parts of artifacts that go into it (`selectors`), and its texts
//! (`packages.<name>`).
//!
//! The name of a package of an earlier set may have a bound, `rocblas < 7.0`, which limits it to earlier
//! versions. A plain list of names is for both formats; a map has lists of its own for `deb` and `rpm`.

use rockpack_core::error::{Error, Faults};
use rockpack_core::unique_keys::OrderedMap;
use schemars::JsonSchema;
use serde::Deserialize;

use super::check::{is_lower_or_digit, single_lines};
use super::document::ConfigDocument;
use super::keys::{PackageSchema, SUMMARY_LIMIT, SelectorSchema};
use super::values::ListOrMap;
use rockpack_split::input::artifact::ComponentKind;

/// Lists of names, one for each format.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NamesByFormat {
    /// Names of the packages as `.deb`
    deb: Vec<String>,
    /// Names of the packages as `.rpm`
    rpm: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FormerPackages {
    pub deb: Vec<FormerPackage>,
    pub rpm: Vec<FormerPackage>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormerPackage {
    pub name: String,
    /// The version that it must be older than; any version if absent.
    pub before: Option<String>,
    /// The keys of its position in the configuration, for [`super::ConfigDocument::fault`].
    pub keys: Vec<String>,
}

/// The key of packages that had paths of another one, each up to some version.
pub(super) const MOVED: &str = "moved";

pub(super) fn former(
    key: &str,
    packages: OrderedMap<ListOrMap<NamesByFormat>>,
    document: &ConfigDocument,
    faults: &mut Faults,
) -> Vec<(String, FormerPackages)> {
    let mut checked = Vec::new();
    for (package, schema) in packages.0 {
        let former = match &schema {
            ListOrMap::One(texts) => {
                let both = read_names(&[key, &package], texts, is_deb_name, document, faults);
                FormerPackages { deb: both.clone(), rpm: both }
            }
            ListOrMap::Each(each) => FormerPackages {
                deb: read_names(&[key, &package, "deb"], &each.deb, is_deb_name, document, faults),
                rpm: read_names(&[key, &package, "rpm"], &each.rpm, is_name, document, faults),
            },
        };
        checked.push((package, former));
    }
    checked
}

/// Parses the texts, `name` or `name < version`, of the list at `keys`.
fn read_names(
    keys: &[&str],
    texts: &[String],
    is_name: fn(&str) -> bool,
    document: &ConfigDocument,
    faults: &mut Faults,
) -> Vec<FormerPackage> {
    let mut found = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        let index = index.to_string();
        let keys: Vec<&str> = keys.iter().copied().chain([index.as_str()]).collect();
        let (name, before) = match text.split_once('<') {
            Some((name, version)) => (name.trim(), Some(version.trim())),
            None => (text.trim(), None),
        };
        let message = if !is_name(name) {
            format!("`{}` is not a package name", text.escape_debug())
        } else if before.is_some_and(|version| !is_version(version)) {
            format!("`{}` has no valid version after `<`", text.escape_debug())
        } else if before.is_none() && keys.first() == Some(&MOVED) {
            format!("`{name}` has no bound: give the version before which it had the paths")
        } else {
            found.push(FormerPackage {
                name: name.to_owned(),
                before: before.map(str::to_owned),
                keys: keys.iter().map(|key| (*key).to_owned()).collect(),
            });
            continue;
        };
        let hint = "write a package as in `rocblas` or `rocblas < 7.0`";
        faults.add(document.fault(&keys, message).hint(hint));
    }
    found
}

fn is_deb_name(name: &str) -> bool {
    name.len() >= 2
        && is_name(name)
        && name.chars().all(|c| is_lower_or_digit(c) || "+-.".contains(c))
}

/// Whether `name` follows RPM's rules for package names. Other distributions than Debian also use `_` and
/// capitals.
fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "+-._".contains(c))
}

fn is_version(version: &str) -> bool {
    version.starts_with(|c: char| c.is_ascii_digit())
        && version.chars().all(|c| c.is_ascii_alphanumeric() || ".+~:-^".contains(c))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector {
    pub artifact: String,
    /// The modules; all if unset.
    pub modules: Option<Vec<String>>,
    /// The component kinds; all if unset.
    pub kinds: Option<Vec<ComponentKind>>,
}

impl Selector {
    /// Skips every word that is not a component kind, after passing the error to `report`.
    pub(crate) fn checked(schema: SelectorSchema, mut report: impl FnMut(Error)) -> Self {
        let SelectorSchema { artifact, modules, kinds } = schema;
        let kinds = kinds.map(|kinds| {
            kinds.into_iter().filter_map(|text| text.parse().map_err(&mut report).ok()).collect()
        });
        Self { artifact, modules, kinds }
    }
}

pub(super) fn selectors(
    schema: OrderedMap<Vec<SelectorSchema>>,
    document: &ConfigDocument,
    faults: &mut Faults,
) -> Vec<(String, Vec<Selector>)> {
    let mut packages = Vec::new();
    for (package, schemas) in schema.0 {
        let mut selectors = Vec::new();
        for (index, schema) in schemas.into_iter().enumerate() {
            let keys = ["selectors", &package, &index.to_string(), "kinds"];
            let selector =
                Selector::checked(schema, |error| faults.add(document.located(&keys, &error)));
            selectors.push(selector);
        }
        packages.push((package, selectors));
    }
    packages
}

impl PackageSchema {
    /// Whether it has texts that can apply to one package only.
    pub fn has_package_texts(&self) -> bool {
        self.summary.is_some() || self.description.is_some() || self.section.is_some()
    }

    pub fn has_texts(&self) -> bool {
        let has_rights = self.license.is_some() || self.homepage.is_some();
        self.has_package_texts() || has_rights || self.copyright.is_some()
    }
}

/// The paragraphs of a text, which have an empty line between them.
pub(crate) fn paragraphs(text: &str) -> Vec<String> {
    let paragraphs = text.split("\n\n").map(str::trim).filter(|text| !text.is_empty());
    paragraphs.map(str::to_owned).collect()
}

pub(super) fn check_texts(
    schema: &OrderedMap<PackageSchema>,
    document: &ConfigDocument,
    faults: &mut Faults,
) {
    for (name, package) in &schema.0 {
        let lines = [
            ("summary", package.summary.as_deref()),
            ("section", package.section.as_deref()),
            ("license", package.license.as_deref()),
            ("homepage", package.homepage.as_deref()),
            ("copyright", package.copyright.as_deref()),
        ];
        single_lines(&["packages", name], lines, document, faults);
        if package.summary.as_ref().is_some_and(|text| text.chars().count() > SUMMARY_LIMIT) {
            let message = format!("has more than {SUMMARY_LIMIT} characters");
            let error = document.fault(&["packages", name, "summary"], message);
            let hint = "package managers show it in one line; put the rest into `description`";
            faults.add(error.hint(hint));
        }
        if package.section.as_ref().is_some_and(|section| !is_section(section)) {
            let error = document.fault(&["packages", name, "section"], "is not a valid section");
            faults.add(error.hint("write a section as in `libs` or `contrib/libs`"));
        }
        if package.description.as_ref().is_some_and(|text| !is_description(text)) {
            let message = "must be non-empty text whose only control characters are line breaks";
            faults.add(document.fault(&["packages", name, "description"], message));
        }
    }
}

fn is_section(text: &str) -> bool {
    text.chars().all(|c| is_lower_or_digit(c) || c == '-' || c == '/')
}

fn is_description(text: &str) -> bool {
    !text.trim().is_empty() && !text.contains(|c: char| c.is_control() && c != '\n')
}

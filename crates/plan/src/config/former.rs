//! Packages of earlier sets: those that a package replaces (`replaces`), and those that had some of its paths
//! (`moved`).
//!
//! A name may have a bound, `rocblas < 7.0`, which limits it to earlier versions. A plain list is for both
//! formats; a map has lists of its own for `deb` and `rpm`.

use rockpack_core::error::{Error, Faults, Result};
use rockpack_core::once::Ordered;
use schemars::JsonSchema;
use serde::Deserialize;

use super::characters::{is_letter_or_digit, is_small_or_digit};
use super::document::ConfigDocument;
use super::list_or::{ListOr, Lists};

/// Lists of names, one for each format.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EachSchema {
    /// Names of the packages as `.deb`
    deb: Vec<String>,
    /// Names of the packages as `.rpm`
    rpm: Vec<String>,
}

impl Lists for EachSchema {
    const FORM: &str = "a map with the lists `deb` and `rpm`";
}

/// Packages of earlier sets, per format.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FormerPackages {
    /// The packages that are `.deb`.
    pub deb: Vec<FormerPackage>,
    /// The packages that are `.rpm`.
    pub rpm: Vec<FormerPackage>,
}

/// A package of an earlier set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormerPackage {
    /// The name of the package.
    pub name: String,
    /// The version that it must be older than; any version if absent.
    pub before: Option<String>,
    /// The keys of its position in the configuration, for [`super::Config::fault`].
    pub keys: Vec<String>,
}

/// Whether a name needs a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VersionBound {
    /// The name alone means every version.
    Optional,
    /// The other package had the path only up to some version.
    Required,
}

/// Checks the packages under `key`.
pub(super) fn former(
    key: &str,
    packages: Ordered<ListOr<EachSchema>>,
    bound: VersionBound,
    document: &ConfigDocument,
    faults: &mut Faults,
) -> Vec<(String, FormerPackages)> {
    let mut checked = Vec::new();
    for (package, schema) in packages.0 {
        let (deb, rpm) = (NameRules { bound, is_name: is_deb_name }, NameRules { bound, is_name });
        let former = match &schema {
            ListOr::One(texts) => {
                let both = read_names(&[key, &package], texts, deb, document, faults);
                FormerPackages { deb: both.clone(), rpm: both }
            }
            ListOr::Each(each) => FormerPackages {
                deb: read_names(&[key, &package, "deb"], &each.deb, deb, document, faults),
                rpm: read_names(&[key, &package, "rpm"], &each.rpm, rpm, document, faults),
            },
        };
        checked.push((package, former));
    }
    checked
}

/// The rules that a name must follow.
#[derive(Clone, Copy)]
struct NameRules {
    bound: VersionBound,
    is_name: fn(&str) -> bool,
}

fn read_names(
    keys: &[&str],
    texts: &[String],
    rules: NameRules,
    document: &ConfigDocument,
    faults: &mut Faults,
) -> Vec<FormerPackage> {
    let mut found = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        let index = index.to_string();
        let keys: Vec<&str> = keys.iter().copied().chain([index.as_str()]).collect();
        found.extend(faults.keep(name(text, rules, &keys, document)));
    }
    found
}

/// Parses `name` or `name < version`.
fn name(
    text: &str,
    rules: NameRules,
    keys: &[&str],
    document: &ConfigDocument,
) -> Result<FormerPackage> {
    let (name, before) = match text.split_once('<') {
        Some((name, version)) => (name.trim(), Some(version.trim())),
        None => (text.trim(), None),
    };
    if !(rules.is_name)(name) {
        let message = format!("`{}` is no package", text.escape_debug());
        return Err(refused_name(keys, message, document));
    }
    if before.is_some_and(|version| !is_version(version)) {
        let message = format!("`{}` has no version behind `<`", text.escape_debug());
        return Err(refused_name(keys, message, document));
    }
    if before.is_none() && rules.bound == VersionBound::Required {
        let message = format!("`{name}` has no bound: say before which version it had the paths");
        return Err(refused_name(keys, message, document));
    }
    Ok(FormerPackage {
        name: name.to_owned(),
        before: before.map(str::to_owned),
        keys: keys.iter().map(|key| (*key).to_owned()).collect(),
    })
}

fn refused_name(keys: &[&str], message: String, document: &ConfigDocument) -> Error {
    document.fault(keys, message).hint("a package is written as in `rocblas` or `rocblas < 7.0`")
}

/// Whether `name` follows Debian's rules for package names.
fn is_deb_name(name: &str) -> bool {
    name.len() >= 2
        && is_name(name)
        && name.chars().all(|c| is_small_or_digit(c) || "+-.".contains(c))
}

/// Whether `name` follows RPM's rules for package names. Other distributions than Debian also use `_` and
/// capitals.
fn is_name(name: &str) -> bool {
    name.starts_with(is_letter_or_digit)
        && name.chars().all(|c| is_letter_or_digit(c) || "+-._".contains(c))
}

fn is_version(version: &str) -> bool {
    version.starts_with(|c: char| c.is_ascii_digit())
        && version.chars().all(|c| is_letter_or_digit(c) || ".+~:-^".contains(c))
}

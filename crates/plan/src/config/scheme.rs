//! Naming schemes: templates of package names and install prefixes as data, and texts for each format, which
//! configurations share.
//!
//! The shipped ones are the files of `config/schemes`; docs/reference/schemes.md explains the keys. Refused
//! are unknown keys and unknown placeholders.

use std::collections::BTreeMap;
use std::path::Path;

use derive_more::Deref;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::unique_keys::OrderedMap;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess};

use super::document::{ConfigDocument, Syntax};
use super::keys::Runpath;
use super::read_text;
use super::values::deserialize_by_visitor;
use rockpack_package::Format;

const SHIPPED: [(&str, &str); 3] = [
    ("amdrocm", include_str!("../../../../config/schemes/amdrocm.toml")),
    ("rocm", include_str!("../../../../config/schemes/rocm.toml")),
    ("rocm-versioned", include_str!("../../../../config/schemes/rocm-versioned.toml")),
];

const PLACEHOLDERS: [&str; 6] = ["name", "group", "major", "series", "version", "variant"];

/// Placeholders of templates that are the same for the whole set.
const PLACEHOLDERS_OF_SET: [&str; 4] = ["major", "series", "version", "variant"];

const SCHEMA_HINT: &str = "docs/reference/schemes.md explains the keys of a scheme";

#[derive(Debug, Clone, Deref, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scheme {
    /// The first word of package names, e.g. `rocm`.
    pub vendor: String,
    pub prefix: String,
    pub kernels_per: KernelsPer,
    /// Folders below the prefix where binaries look for kernel archives, after their own one.
    #[serde(default)]
    pub archive_search: Vec<String>,
    pub runpath: Option<Runpath>,
    #[serde(default)]
    pub series_link: bool,
    pub names: NameTemplates,
    pub metas: MetaTemplates,
    /// Part → the suffix of its names in each format, in place of the part's own.
    #[serde(default)]
    pub suffixes: BTreeMap<String, Suffix>,
    #[serde(default)]
    pub runtime_relation: RuntimeRelation,
    /// Template of a library's name → templates of the packages that have it, for libraries that the set lacks.
    #[serde(default)]
    pub libraries: OrderedMap<LibrarySchema>,
    /// Variant of the build → the word for it in names.
    #[serde(default)]
    pub variants: BTreeMap<String, String>,
    #[deref]
    #[serde(skip)]
    document: ConfigDocument,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KernelsPer {
    Group,
    Target,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NameTemplates {
    /// A package without device code.
    pub package: Template,
    /// The host package of a package with device code.
    pub host: Template,
    pub kernels: Template,
    pub kernels_common: Template,
    /// The name that each kernel package provides.
    pub kernels_any: Template,
    /// The package of system-wide files.
    pub system: Template,
}

/// Templates of metapackages; those that are left out are not made.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MetaTemplates {
    pub group: Option<Template>,
    pub component: Option<Template>,
    /// Whether `component` also applies to packages for developers and testers.
    #[serde(default)]
    pub every_component: bool,
    pub hosts: Option<Template>,
    pub all: Option<Template>,
    /// The name without version that leads to the versioned package.
    pub unversioned: Option<Template>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Template {
    Both(String),
    Each(Suffix),
}

impl Template {
    pub fn texts(&self) -> [&str; 2] {
        match self {
            Self::Both(text) => [text, text],
            Self::Each(each) => [&each.deb, &each.rpm],
        }
    }
}

impl Scheme {
    pub fn names() -> impl Iterator<Item = &'static str> {
        SHIPPED.iter().map(|(name, _)| *name)
    }

    pub fn shipped(name: &str) -> Result<Self> {
        let Some((_, text)) = SHIPPED.iter().find(|(known, _)| *known == name) else {
            let known: Vec<&str> = Self::names().collect();
            let message = format!("there is no naming scheme `{name}`");
            let hint = format!(
                "the schemes are {}; give your own as `--scheme FILE.toml`",
                known.join(", ")
            );
            return Err(Error::new(Kind::Config, message).hint(hint));
        };
        let document = ConfigDocument::new(None, (*text).to_owned(), Syntax::Toml);
        Self::read(document)
            .map_err(|e| Error::bug(format!("the scheme {name} cannot be read")).cause(e))
    }

    pub fn open(path: &Path) -> Result<Self> {
        let text = read_text(path, "naming scheme")?;
        Self::read(ConfigDocument::new(Some(path.to_path_buf()), text, Syntax::Toml))
    }

    fn read(document: ConfigDocument) -> Result<Self> {
        let scheme: Self = document.decode(SCHEMA_HINT)?;
        for (keys, template) in scheme.templates() {
            for text in template.texts() {
                check(text, &PLACEHOLDERS)
                    .map_err(|why| document.fault(&keys, why).hint(SCHEMA_HINT))?;
            }
        }
        for (keys, text) in scheme.texts_of_set() {
            check(text, &PLACEHOLDERS_OF_SET)
                .map_err(|why| document.fault(&keys, why).hint(SCHEMA_HINT))?;
        }
        Ok(Self { document, ..scheme })
    }

    fn texts_of_set(&self) -> Vec<(Vec<&str>, &String)> {
        let RuntimeRelation { deb, rpm } = &self.runtime_relation;
        let mut texts = vec![(vec!["prefix"], &self.prefix)];
        texts.extend(deb.as_ref().map(|text| (vec!["runtime_relation", "deb"], text)));
        texts.extend(rpm.as_ref().map(|text| (vec!["runtime_relation", "rpm"], text)));
        for (name, library) in &self.libraries.0 {
            texts.push((vec!["libraries", name], name));
            for format in Format::ALL {
                let keys = vec!["libraries", name, format.as_str()];
                texts.extend(library.relation(format).map(|text| (keys, text)));
            }
        }
        texts
    }

    pub fn templates(&self) -> Vec<([&'static str; 2], &Template)> {
        let (names, metas) = (&self.names, &self.metas);
        let all = [
            (["names", "package"], Some(&names.package)),
            (["names", "host"], Some(&names.host)),
            (["names", "kernels"], Some(&names.kernels)),
            (["names", "kernels_common"], Some(&names.kernels_common)),
            (["names", "kernels_any"], Some(&names.kernels_any)),
            (["names", "system"], Some(&names.system)),
            (["metas", "group"], metas.group.as_ref()),
            (["metas", "component"], metas.component.as_ref()),
            (["metas", "hosts"], metas.hosts.as_ref()),
            (["metas", "all"], metas.all.as_ref()),
            (["metas", "unversioned"], metas.unversioned.as_ref()),
        ];
        all.into_iter().filter_map(|(keys, template)| Some((keys, template?))).collect()
    }
}

/// Refuses a template with an unknown placeholder or an unbalanced brace. The error is the reason.
fn check(template: &str, known: &[&str]) -> std::result::Result<(), String> {
    let mut parts = template.split('{');
    let first = parts.next().unwrap_or_default();
    let mut closed = !first.contains('}');
    for part in parts {
        let (name, rest) = part.split_once('}').unwrap_or((part, "}"));
        if !known.contains(&name) {
            let known = known.join("}, {");
            return Err(format!("`{{{name}}}` is not a placeholder; use {{{known}}}"));
        }
        closed &= !rest.contains('}');
    }
    if closed { Ok(()) } else { Err(format!("`{template}` has an unmatched brace")) }
}

/// A text for each format.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Suffix {
    /// Text in a `.deb`
    pub deb: String,
    /// Text in an `.rpm`
    pub rpm: String,
}

/// The HIP runtime that transformed binaries need, in each format's own words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RuntimeRelation {
    /// Dependency on the HIP runtime that reads `.kpack`, for host packages with device code in a `.deb`,
    /// e.g. `libamdhip64-7 (>= 7.1)` [default: the scheme's, or none with a warning]
    pub deb: Option<String>,
    /// Dependency on it in an `.rpm`, e.g. `hip-runtime-amd >= 7.1` [default: the scheme's, or none with a
    /// warning]
    pub rpm: Option<String>,
}

/// The source of a library that neither the set nor the distribution has, in each format.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(
    rename = "LibrarySchema",
    extend("type" = ["object", "boolean"], "not" = { "const": true })
)]
pub struct OutsideLibrary {
    /// Dependency of a `.deb`, e.g. `libamdhip64-7 (>= 7.1)` or `libpython3.11 | libpython3.12` [default: no
    /// dependency (`R094`)]
    pub deb: Option<String>,
    /// Dependency of an `.rpm` in place of the library's name, e.g. `hip-runtime-amd >= 7.1` or
    /// `(python3.11-libs or python3.12-libs)` [default: the library by its name]
    pub rpm: Option<String>,
}

/// The value of an entry of `libraries`: dependencies, or `false`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LibrarySchema {
    Outside(OutsideLibrary),
    /// `false`: no dependency in either format.
    Ignored,
}

impl LibrarySchema {
    pub fn relation(&self, format: Format) -> Option<&String> {
        let Self::Outside(library) = self else { return None };
        format.select(&library.deb, &library.rpm).as_ref()
    }
}

deserialize_by_visitor! { LibrarySchema, "a table of `deb` and `rpm`, or false",
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> std::result::Result<LibrarySchema, A::Error> {
        OutsideLibrary::deserialize(MapAccessDeserializer::new(map)).map(LibrarySchema::Outside)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> std::result::Result<LibrarySchema, E> {
        if value {
            return Err(E::custom("`true` is not allowed; give `deb` and `rpm`, or false"));
        }
        Ok(LibrarySchema::Ignored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_schemes_are_whole() {
        for (name, _) in SHIPPED {
            assert_eq!(Scheme::shipped(name).unwrap().vendor, name.trim_end_matches("-versioned"));
        }
        let error = Scheme::shipped("rcom").unwrap_err();
        assert!(error.hint_text().unwrap().contains("rocm-versioned"));
    }

    #[test]
    fn placeholders_that_nothing_replaces_are_refused() {
        for good in ["", "x", "{name}", "{name}{series}-{group}"] {
            assert_eq!(check(good, &PLACEHOLDERS), Ok(()), "{good}");
        }
        for bad in ["{", "}", "{}", "{nam}", "{name", "{name}}", "x}{name}", "{name}{"] {
            assert!(check(bad, &PLACEHOLDERS).is_err(), "{bad}");
        }
    }
}

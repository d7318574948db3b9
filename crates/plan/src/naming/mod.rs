//! Package names, as the naming scheme of the set makes them.
//!
//! A package's *stem* is its family with the suffix of its part, in each format: `rocm-blas`,
//! `rocm-blas-dev`. Templates of the scheme turn it into the names of its host, kernel and metapackages.
//!
//! Names are in lower case. Both formats allow letters, digits, `-` and `.`; Debian requires two characters,
//! and a letter or digit first. `_`, `+` and `:` never appear: they separate parts of file names.

pub(super) mod parts;

use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::gfx::BaseArch;
use rockpack_core::tree::TreePath;

use crate::config::{KernelsPer, Scheme, Template, is_lower_or_digit};
use crate::recombine::Group;
use rockpack_package::{Format, Version};

const SAMPLE: &str = "gfx90a";

/// Vendor prefix of artifacts that are families of their own.
const FOREIGN_VENDOR: &str = "amdrocm";

#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PackageNames {
    pub deb: String,
    pub rpm: String,
}

impl PackageNames {
    #[cfg(test)]
    pub fn both(name: impl Into<String>) -> Self {
        let deb = name.into();
        let rpm = deb.clone();
        Self { deb, rpm }
    }

    pub fn with(&self, suffix: &str) -> Self {
        Self { deb: format!("{}{suffix}", self.deb), rpm: format!("{}{suffix}", self.rpm) }
    }

    pub fn of(&self, format: Format) -> &str {
        format.select(&self.deb, &self.rpm)
    }

    pub fn has(&self, name: &str) -> bool {
        self.deb == name || self.rpm == name
    }
}

/// Finds the package that the configuration means by `name`: an exact name of either format first, then a
/// stem. Only host and support packages have a stem, a name without the scheme's additions.
pub(super) fn index_of_package<'a>(
    mut known: impl Iterator<Item = (&'a PackageNames, Option<&'a PackageNames>)> + Clone,
    name: &str,
) -> Option<usize> {
    let by_name = known.clone().position(|(names, _)| names.has(name));
    by_name.or_else(|| known.position(|(_, stem)| stem.is_some_and(|stem| stem.has(name))))
}

/// Turns `text` into lower case; refuses it if it cannot be a package name.
pub(super) fn package_name(text: &str) -> Result<String> {
    let name = text.to_lowercase();
    let is_plain = name.chars().all(|c| is_lower_or_digit(c) || c == '-' || c == '.');
    let good_ends = name.starts_with(is_lower_or_digit) && name.ends_with(is_lower_or_digit);
    if name.len() >= 2 && good_ends && is_plain {
        return Ok(name);
    }
    let message = format!("`{text}` cannot be a package name");
    Err(Error::new(Kind::Config, message)
        .hint("use at least two characters: letters, digits, `-` and `.`"))
}

/// A scheme with the values that are the same for all names of a set.
#[derive(Debug)]
pub struct Naming {
    pub(super) scheme: Scheme,
    version: Version,
    /// `-<variant>`, or nothing.
    variant: String,
}

impl Naming {
    /// Fails if the variant is not a valid package name.
    pub fn new(scheme: Scheme, version: &Version, variant: Option<&str>) -> Result<Self> {
        let variant = match variant {
            Some(word) => {
                let word = scheme.variants.get(word).map_or(word, String::as_str);
                format!("-{}", package_name(word)?)
            }
            None => String::new(),
        };
        Ok(Self { scheme, version: version.clone(), variant })
    }

    pub fn with_version(self, version: Version) -> Self {
        Self { version, ..self }
    }

    /// Refuses templates that need the minor number of a version without one.
    pub fn check_version(&self) -> Result<()> {
        let templates = self.scheme.templates().into_iter().map(|(_, template)| template);
        let mut texts = templates.flat_map(Template::texts);
        match texts.find(|text| text.contains("{series}") || text.contains("{major}")) {
            Some(template) if self.version.series().is_none() => Err(self.no_series(template)),
            _ => Ok(()),
        }
    }

    /// Refuses templates that result in invalid package names or folders.
    pub fn check_templates(&self) -> Result<()> {
        let mut faults = Faults::default();
        let vendor = package_name(&self.scheme.vendor);
        faults.keep(vendor.map_err(|error| self.scheme.located(&["vendor"], &error)));
        let sample = PackageNames { deb: SAMPLE.to_owned(), rpm: SAMPLE.to_owned() };
        for (keys, template) in self.scheme.templates() {
            let of_group = matches!(keys, ["names", "kernels"] | ["metas", "group"]);
            let of_stem = keys[0] == "names" && keys[1] != "system"
                || matches!(keys, ["metas", "component" | "unversioned"]);
            let stem = Some(&sample).filter(|_| of_stem);
            let made = self.names(template, stem, Some(SAMPLE).filter(|_| of_group));
            faults.keep(made.map_err(|error| self.scheme.located(&keys, &error)));
        }
        for (index, folder) in self.scheme.archive_search.iter().enumerate() {
            let keys = ["archive_search", &index.to_string()];
            let path = TreePath::new(folder);
            faults.keep(path.map_err(|error| self.scheme.located(&keys, &error)));
        }
        faults.finish()
    }

    pub fn prefix(&self) -> Result<String> {
        self.set_text(&self.scheme.prefix)
    }

    /// The part of `version` (`7.1`) in the names of packages with files; `None` if versions cannot be installed side
    /// by side.
    pub(super) fn side_by_side(&self, version: &Version) -> Option<String> {
        if self.all_have("{version}") {
            return Some(version.set_upstream().to_owned());
        }
        let series = version.series()?;
        let major = series.split('.').next().unwrap_or_default().to_owned();
        if self.all_have("{series}") {
            Some(series)
        } else {
            Some(major).filter(|_| self.all_have("{major}"))
        }
    }

    fn all_have(&self, placeholder: &str) -> bool {
        let names = &self.scheme.names;
        let texts = [&names.package, &names.host].map(Template::texts);
        texts.iter().flatten().all(|text| text.contains(placeholder))
    }

    pub(super) fn set_text(&self, template: &str) -> Result<String> {
        self.render(template, None, None)
    }

    /// The groups that get kernel packages: the configuration's groups, or each of their archs.
    pub(super) fn groups(&self, groups: &[Group]) -> Vec<Group> {
        match self.scheme.kernels_per {
            KernelsPer::Group => groups.to_vec(),
            KernelsPer::Target => {
                let archs = groups.iter().flat_map(|group| &group.archs);
                let group_of = |arch: &BaseArch| {
                    let (name, archs) = (arch.to_string(), vec![arch.clone()]);
                    Group { display_name: name.clone(), name, archs }
                };
                archs.map(group_of).collect()
            }
        }
    }

    /// The family of an artifact that no selector names. A vendor in the name is not repeated.
    pub(super) fn family(&self, artifact: &str) -> Result<String> {
        let (name, vendor) = (artifact.to_lowercase(), &self.scheme.vendor);
        let own = name == *vendor
            || name.starts_with(&format!("{vendor}-"))
            || name.starts_with(FOREIGN_VENDOR);
        if own { package_name(&name) } else { package_name(&format!("{vendor}-{name}")) }
    }

    pub(super) fn is_vendor_name(&self, name: &str) -> bool {
        name.starts_with(&self.scheme.vendor) || name.starts_with(FOREIGN_VENDOR)
    }

    /// A family's name without the vendor, as archives carry it: `blas` of `rocm-blas`.
    pub(super) fn without_vendor<'b>(&self, family: &'b str) -> &'b str {
        let rest = family.strip_prefix(self.scheme.vendor.as_str());
        rest.and_then(|rest| rest.strip_prefix('-')).unwrap_or(family)
    }

    pub(super) fn package(&self, stem: &PackageNames) -> Result<PackageNames> {
        self.of_stem(&self.scheme.names.package, stem)
    }

    pub(super) fn kernels(&self, stem: &PackageNames, group: &str) -> Result<PackageNames> {
        self.names(&self.scheme.names.kernels, Some(stem), Some(group))
    }

    /// The package with the device code of `stem` that several groups share. `groups` distinguishes it from other
    /// such packages of the stem.
    pub(super) fn kernels_common(
        &self,
        stem: &PackageNames,
        groups: &[&str],
    ) -> Result<PackageNames> {
        let mut names = self.of_stem(&self.scheme.names.kernels_common, stem)?;
        for group in groups {
            names = names.with(&format!("-{}", package_name(group)?));
        }
        Ok(names)
    }

    pub(super) fn of_stem(&self, template: &Template, stem: &PackageNames) -> Result<PackageNames> {
        self.names(template, Some(stem), None)
    }

    /// The package for files that a set needs outside of the prefix.
    pub(super) fn system(&self) -> Result<PackageNames> {
        self.names(&self.scheme.names.system, None, None)
    }

    /// Digits by which the packages of [`Self::system`] of several versions sort, the newest first. `None` if all
    /// have the same name. Versions with the same name have the same digits, so an update keeps them.
    pub(super) fn system_order(&self) -> Option<String> {
        let texts = self.scheme.names.system.texts();
        let mut known = [("{version}", 3), ("{series}", 2), ("{major}", 1)].into_iter();
        let (_, parts) = known.find(|(what, _)| texts.iter().any(|text| text.contains(what)))?;
        Some(self.version.newest_first(parts))
    }

    pub(super) fn names(
        &self,
        template: &Template,
        stem: Option<&PackageNames>,
        group: Option<&str>,
    ) -> Result<PackageNames> {
        let [deb, rpm] = template.texts();
        let name = |format, text: &str| {
            package_name(&self.render(text, stem.map(|stem| stem.of(format)), group)?)
        };
        Ok(PackageNames { deb: name(Format::Deb, deb)?, rpm: name(Format::Rpm, rpm)? })
    }

    fn render(&self, template: &str, name: Option<&str>, group: Option<&str>) -> Result<String> {
        let series = if template.contains("{series}") || template.contains("{major}") {
            self.version.series().ok_or_else(|| self.no_series(template))?
        } else {
            String::new()
        };
        if template.contains("{version}") && !self.version.is_same_in_formats() {
            let message =
                format!("`{template}` contains the version, which differs between deb and rpm");
            let hint = "write `{series}` in the naming scheme, or give both formats one version";
            return Err(Error::new(Kind::Config, message).hint(hint));
        }
        let major = series.split('.').next().unwrap_or_default();
        let mut text = template
            .replace("{series}", &series)
            .replace("{major}", major)
            .replace("{version}", self.version.set_upstream())
            .replace("{variant}", &self.variant);
        for (what, value) in [("name", name), ("group", group)] {
            let placeholder = format!("{{{what}}}");
            if text.contains(&placeholder) {
                let value = value.ok_or_else(|| {
                    let message = format!("`{template}` needs a {what}, and there is none");
                    Error::new(Kind::Config, message).hint("correct the naming scheme")
                })?;
                text = text.replace(&placeholder, value);
            }
        }
        Ok(text)
    }

    fn no_series(&self, template: &str) -> Error {
        let message = format!("the version {} has no minor number", self.version.set_upstream());
        let hint =
            format!("`{template}` needs the major and minor version: give both, or set a prefix");
        Error::new(Kind::Config, message).hint(hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naming(scheme: &str, variant: Option<&str>) -> Naming {
        let version = Version::new("7.15.0", "1").unwrap();
        Naming::new(Scheme::shipped(scheme).unwrap(), &version, variant).unwrap()
    }

    #[test]
    fn the_vendor_is_not_doubled() {
        let names = naming("rocm", None);
        for (artifact, family) in [
            ("blas", "rocm-blas"),
            ("host-suite-sparse", "rocm-host-suite-sparse"),
            ("MIOpen", "rocm-miopen"),
            ("rocm-core", "rocm-core"),
            ("amdrocm-llvm", "amdrocm-llvm"),
        ] {
            assert_eq!(names.family(artifact).unwrap(), family);
        }
        assert_eq!(names.without_vendor("rocm-blas"), "blas");
        assert_eq!(naming("amdrocm", None).family("blas").unwrap(), "amdrocm-blas");
        assert_eq!(naming("amdrocm", None).without_vendor("amdrocm-blas"), "blas");
    }

    #[test]
    fn characters_with_a_meaning_are_refused() {
        for name in ["a_b", "c++", "a:b", "a/b", "", "x", "-a", "a-", "größe"] {
            assert!(package_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn each_scheme_names_and_places_packages() {
        let rocm = ["v-x-dev", "v-x-devel", "v-x-dev-gfx110x", "/opt/rocm-7.15"];
        assert_eq!(named("rocm", None), rocm);
        let versioned = ["v-x-dev7.15", "v-x-devel7.15", "v-x-dev7.15-gfx110x", "/opt/rocm-7.15"];
        assert_eq!(named("rocm-versioned", None), versioned);
        let amd =
            ["v-x-dev-host7.15", "v-x-devel7.15", "v-x-dev7.15-gfx110x", "/opt/rocm/core-7.15"];
        assert_eq!(named("amdrocm", None), amd);
        let asan = [
            "v-x-dev-host-asan7.15",
            "v-x-devel-asan7.15",
            "v-x-dev-asan7.15-gfx110x",
            "/opt/rocm/core-asan-7.15",
        ];
        assert_eq!(named("amdrocm", Some("asan")), asan);
        assert_eq!(named("amdrocm", Some("host-asan")), asan);
    }

    /// Names of a stem's packages, and the prefix.
    fn named(scheme: &str, variant: Option<&str>) -> [String; 4] {
        let stem = PackageNames { deb: "v-x-dev".to_owned(), rpm: "v-x-devel".to_owned() };
        let names = naming(scheme, variant);
        let host = names.of_stem(&names.scheme.names.host, &stem).unwrap();
        let bare = names.package(&stem).unwrap();
        let kernels = names.kernels(&stem, "gfx110X").unwrap();
        [host.deb, bare.rpm, kernels.deb, names.prefix().unwrap()]
    }

    #[test]
    fn a_version_without_a_series_has_no_versioned_names() {
        let version = Version::new("7", "1").unwrap();
        let names = Naming::new(Scheme::shipped("rocm").unwrap(), &version, None).unwrap();
        let host = &names.scheme.names.host;
        assert!(names.of_stem(host, &PackageNames::both("rocm-x")).is_ok());
        assert!(names.prefix().unwrap_err().message().contains("no minor number"));
    }
}

use std::collections::{BTreeMap, BTreeSet};

use rockpack_archive::deb::{ControlFields, compare_versions};
use rockpack_core::error::{Error, Result};

/// The architecture of packages; `all` serves it, too.
pub(crate) const ARCHITECTURE: &str = "amd64";

/// The name of ROCm's team among maintainers of Debian's packages.
const TEAM: &str = "ROCm Team";

/// Home pages of ROCm in lower case, for packages that name another team: GitHub's organizations ROCm,
/// ROCm-Developer-Tools, ROCmSoftwarePlatform and RadeonOpenCompute.
const HOMES: [&str; 2] = ["github.com/rocm", "github.com/radeonopencompute"];

/// The fields of `os-release` that a table has.
const OS_FIELDS: [&str; 4] = ["ID", "VERSION_ID", "VERSION_CODENAME", "PRETTY_NAME"];

/// A package of a source: what its fields, its libraries' files and its programs say.
#[derive(Debug, Default)]
pub(crate) struct SourcePackage {
    pub name: String,
    pub version: String,
    /// Whether every system has it by itself.
    pub is_essential: bool,
    /// The names of its dependencies without an alternative.
    pub depends: Vec<String>,
    pub is_rocm: bool,
    /// The texts of its symbols files, in the order in which dpkg-shlibdeps looks into them.
    pub symbols: Vec<String>,
    /// The texts of its shlibs files, in that order.
    pub shlibs: Vec<String>,
    /// The names of its libraries that the loader finds, if it is not installed.
    pub libraries: BTreeSet<String>,
    /// Paths of its programs with `/usr`, without leading slash.
    pub programs: Vec<String>,
    /// Paths of programs that it offers as alternatives.
    pub alternatives: Vec<String>,
}

impl SourcePackage {
    /// The package with these fields of its control file, or of dpkg's status. `None` for packages of other
    /// architectures, and for those without files, such as one that is only on hold and has no version.
    pub fn new(fields: &ControlFields) -> Result<Option<Self>> {
        let field = |name| fields.get(name).map(String::as_str).unwrap_or_default();
        if [" not-installed", " config-files"].iter().any(|end| field("Status").ends_with(end)) {
            return Ok(None);
        }
        let (name, version) = (field("Package").to_owned(), field("Version").to_owned());
        if name.is_empty() || version.is_empty() {
            return Err(Error::malformed("a package has no name or no version"));
        }
        if !["all", ARCHITECTURE].contains(&field("Architecture")) {
            return Ok(None);
        }
        let depends = ["Pre-Depends", "Depends"].map(field);
        let depends = depends.iter().flat_map(|field| field.split(','));
        let depends = depends.filter(|relation| !relation.contains('|'));
        let depends = depends.filter_map(|it| it.trim().split([' ', ':', '(', '\n']).next());
        let depends = depends.filter(|name| !name.is_empty()).map(str::to_owned);
        let teams = [field("Maintainer"), field("Original-Maintainer")];
        let home = field("Homepage").to_lowercase();
        let is_rocm = teams.iter().any(|team| team.contains(TEAM))
            || HOMES.iter().any(|known| home.contains(known));
        Ok(Some(Self {
            is_essential: field("Essential") == "yes",
            depends: depends.collect(),
            is_rocm,
            name,
            version,
            ..Self::default()
        }))
    }
}

#[derive(Debug, Default)]
pub(crate) struct Inventory {
    pub os_release: BTreeMap<String, String>,
    pub packages: Vec<SourcePackage>,
    /// Texts of an administrator's shlibs files for libraries of no package, in order.
    pub defaults: Vec<String>,
}

impl Inventory {
    pub fn set_os_release(&mut self, text: &str) {
        let fields = text.lines().filter_map(|line| line.trim().split_once('='));
        let known = fields.filter(|(key, _)| OS_FIELDS.contains(key));
        self.os_release = known
            .map(|(key, value)| (key.to_owned(), value.trim_matches(['"', '\'']).to_owned()))
            .collect();
    }

    /// `ID-VERSION`, if the source has an `os-release`.
    pub fn name(&self) -> Option<String> {
        let id = self.os_release.get("ID")?;
        let version =
            ["VERSION_ID", "VERSION_CODENAME"].iter().find_map(|key| self.os_release.get(*key));
        Some(version.map_or_else(|| id.clone(), |version| format!("{id}-{version}")))
    }

    /// The highest version of the package `name`.
    pub fn version(&self, name: &str) -> Option<&str> {
        let own = self.packages.iter().filter(|package| package.name == name);
        let versions = own.map(|package| package.version.as_str());
        versions.max_by(|one, other| compare_versions(one, other))
    }

    /// The names that every system has: of essential packages, and of what they depend on without an alternative. Names
    /// of no package, such as awk, are those of a program.
    pub fn base(&self) -> BTreeSet<&str> {
        let essential = self.packages.iter().filter(|package| package.is_essential);
        let mut pending: Vec<&str> = essential.map(|package| package.name.as_str()).collect();
        let mut base = BTreeSet::new();
        while let Some(name) = pending.pop() {
            if base.insert(name) {
                let own = self.packages.iter().filter(|package| package.name == name);
                pending.extend(own.flat_map(|package| &package.depends).map(String::as_str));
            }
        }
        base
    }

    /// The package with the whole language, which scripts need (lintian, dh_perl): perl for perl-base.
    pub fn full_language_package<'a>(&self, name: &'a str) -> &'a str {
        let language = ["perl-base", "python"].iter().any(|start| name.starts_with(start));
        let whole = name.strip_suffix("-minimal").or_else(|| name.strip_suffix("-base"));
        let whole =
            whole.filter(|whole| language && self.packages.iter().any(|it| it.name == *whole));
        whole.unwrap_or(name)
    }
}

#[cfg(test)]
mod tests {
    use rockpack_archive::deb::parse_fields;

    use super::*;

    /// A package with this name and these further fields.
    fn package(name: &str, fields: &str) -> SourcePackage {
        let text = format!("Package: {name}\nVersion: 1\nArchitecture: amd64\n{fields}");
        SourcePackage::new(&parse_fields(&text).unwrap()).unwrap().unwrap()
    }

    fn inventory(packages: Vec<SourcePackage>) -> Inventory {
        Inventory { packages, ..Inventory::default() }
    }

    #[test]
    fn every_system_has_essential_packages_and_what_they_need() {
        let inventory = inventory(vec![
            package(
                "base-files",
                "Essential: yes\nPre-Depends: awk\nDepends: libc6 (>= 2.36), dash | bash, tool:any,\n more\n",
            ),
            package("libc6", "Depends: libgcc-s1\n"),
            package("mawk", "Provides: awk\nDepends: never\n"),
            package("dash", "Essential: no\n"),
        ]);
        let expected = ["awk", "base-files", "libc6", "libgcc-s1", "more", "tool"];
        assert_eq!(inventory.base(), expected.into());
    }

    #[test]
    fn scripts_need_whole_languages() {
        let names = ["python3-minimal", "python3", "perl-base", "dbus-minimal", "dbus"];
        let mut inventory = inventory(names.map(|name| package(name, "")).into());
        for (name, whole) in [
            ("python3-minimal", "python3"),
            ("perl-base", "perl-base"),
            ("python3.11-minimal", "python3.11-minimal"),
            ("dbus-minimal", "dbus-minimal"),
        ] {
            assert_eq!(inventory.full_language_package(name), whole);
        }
        inventory.packages.push(package("perl", ""));
        assert_eq!(inventory.full_language_package("perl-base"), "perl");
    }

    #[test]
    fn os_release_may_quote_its_values() {
        for (text, expected) in [
            ("ID=debian\nVERSION_ID=\"12\"\nVERSION_CODENAME=bookworm\n", Some("debian-12")),
            ("# VERSION_ID=13\n ID='ubuntu'\nVERSION_ID='24.04'\n", Some("ubuntu-24.04")),
            ("ID=debian\nVERSION_CODENAME=forky\n", Some("debian-forky")),
            ("ID=debian\nHOME_URL=\"https://debian.org\"\n", Some("debian")),
            ("VERSION_ID=12\n", None),
            ("", None),
        ] {
            let mut inventory = Inventory::default();
            inventory.set_os_release(text);
            assert_eq!(inventory.name().as_deref(), expected, "{text}");
            assert!(!inventory.os_release.contains_key("HOME_URL"));
        }
    }

    #[test]
    fn packages_have_a_name_a_version_and_an_architecture() {
        let read = |text: &str| SourcePackage::new(&parse_fields(text).unwrap());
        let own =
            ["amd64", "all"].map(|arch| format!("Package: x\nVersion: 1\nArchitecture: {arch}\n"));
        assert!(own.iter().all(|text| read(text).unwrap().is_some()));
        let foreign =
            ["Architecture: i386\n", ""].map(|line| format!("Package: x\nVersion: 1\n{line}"));
        assert!(foreign.iter().all(|text| read(text).unwrap().is_none()));
        for text in ["Package: x\nArchitecture: amd64\n", "Version: 1\nArchitecture: amd64\n"] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains("no name or no version"), "{error}");
        }
    }

    #[test]
    fn rocm_is_known_by_its_team_and_its_home_pages() {
        let of_ubuntu =
            "Maintainer: Ubuntu\nOriginal-Maintainer: Debian ROCm Team <x@example.org>\n";
        for (name, fields, expected) in [
            ("libx", "Maintainer: Debian ROCm Team <x@example.org>\n", true),
            ("libx", of_ubuntu, true),
            ("hipcc", "Homepage: https://github.com/ROCm/HIPCC\n", true),
            ("comgr", "Homepage: https://github.com/RadeonOpenCompute/x\n", true),
            ("librocksdb7", "Source: rocksdb\nHomepage: https://rocksdb.org\n", false),
            ("zlib1g", "Maintainer: Zlib <x@example.org>\n", false),
        ] {
            assert_eq!(package(name, fields).is_rocm, expected, "{name} {fields}");
        }
    }

    #[test]
    fn the_highest_version_of_a_package_is_its_version() {
        let versions = ["1.9", "1.10", "1.10~rc1"];
        let packages = versions
            .map(|version| SourcePackage { version: version.to_owned(), ..package("dpkg", "") });
        let inventory = inventory(packages.into());
        assert_eq!(inventory.version("dpkg"), Some("1.10"));
        assert_eq!(inventory.version("dpkg-dev"), None);
    }
}

//! Dependencies of a `.deb` on the libraries of its distribution, as dpkg-shlibdeps finds them.
//!
//! Each needed library gives the dependency of its table with the smallest version that has the library. Each
//! undefined symbol that one of these libraries has gives the version that introduced the symbol. If the
//! distribution's tool does so, a version that the file refers to counts as well, even without a symbol in
//! use. The highest version of each package counts. Source: dpkg-shlibdeps(1) and deb-symbols(5).
//!
//! An intended difference: versions of `Build-Depends-Package` are ignored, as in a source package without
//! build dependencies. The plan decides between `libx (>= 1)` and a plain `libx`, as dpkg-gencontrol does,
//! because it knows the package's other dependencies.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use rockpack_archive::deb::compare_versions;
use rockpack_core::error::Result;
use rockpack_elf::Linking;

use super::distribution::{Distribution, Library, Need};

/// The placeholder of the version in templates.
const PLACE: &str = "#MINVER#";

/// The version that is equivalent to none.
const ANY_VERSION: &str = "0";

/// Dependencies gathered over the files of a package.
#[derive(Debug, Default)]
pub struct GatheredNeeds<'a> {
    /// The highest version for each template without commas.
    needs: BTreeMap<&'a str, Option<&'a str>>,
}

impl<'a> GatheredNeeds<'a> {
    /// Adds the needs of a file. `outside` are its libraries of the distribution, in the file's order.
    pub fn add(
        &mut self,
        distribution: &'a Distribution,
        linking: &Linking,
        outside: &[&str],
    ) -> Result<()> {
        let mut known: Vec<(&str, &'a Library)> = Vec::new();
        for soname in outside {
            known.extend(distribution.library(soname)?.map(|library| (*soname, library)));
        }
        for (_, library) in &known {
            self.raise(library.smallest());
        }
        for symbol in &linking.undefined {
            let version = symbol.version.as_deref();
            // If several libraries have a version, the one that it is bound to is searched first.
            let bound_to = symbol.library.as_deref();
            let (first, others): (Vec<_>, Vec<_>) =
                known.iter().partition(|(soname, _)| Some(*soname) == bound_to);
            let mut libraries = first.into_iter().chain(others);
            let need = libraries.find_map(|(_, library)| library.symbol(&symbol.name, version));
            need.into_iter().for_each(|need| self.raise(need));
        }
        if distribution.version_references {
            let versions = linking.versions.needed.iter().flat_map(|need| &need.versions);
            for version in versions.map(|version| version.name.as_str()) {
                let need =
                    known.iter().find_map(|(_, library)| library.symbol(version, Some(version)));
                need.into_iter().for_each(|need| self.raise(need));
            }
        }
        Ok(())
    }

    fn raise(&mut self, need: Need<'a>) {
        for template in need.template.split(',').map(str::trim) {
            let known = self.needs.entry(template).or_default();
            let higher = match (*known, need.version) {
                (Some(known), Some(version)) => {
                    compare_versions(version, known) == Ordering::Greater
                }
                (known, version) => known.is_none() && version.is_some(),
            };
            if higher {
                *known = need.version;
            }
        }
    }

    /// The dependencies in the form of a control file, one string each. One may imply others, if templates of
    /// several forms name one package.
    pub fn dependencies(&self) -> BTreeSet<String> {
        self.needs.iter().map(|(template, version)| fill(template, *version)).collect()
    }
}

fn fill(template: &str, version: Option<&str>) -> String {
    let version = version.filter(|version| !version.is_empty() && *version != ANY_VERSION);
    let bound = version.map(|version| format!("(>= {version})")).unwrap_or_default();
    let filled = template.replace(PLACE, &bound);
    filled.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_version_of_a_package_counts() {
        let mut gathered = GatheredNeeds::default();
        let libc = "libc6 #MINVER#";
        for version in ["2.9", "2.34", "2.4"] {
            gathered.raise(Need { template: libc, version: Some(version) });
        }
        gathered.raise(Need { template: "libx | liby", version: Some("0") });
        gathered.raise(Need { template: "libz1 (>= 1:2), libz1 (<< 2)", version: None });
        gathered.raise(Need { template: "libz1", version: None });
        gathered.raise(Need { template: "libm1 #MINVER#", version: Some("0") });
        let expected =
            ["libc6 (>= 2.34)", "libm1", "libx | liby", "libz1", "libz1 (<< 2)", "libz1 (>= 1:2)"];
        assert_eq!(gathered.dependencies(), expected.map(str::to_owned).into());
    }
}

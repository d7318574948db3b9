use std::collections::{BTreeMap, BTreeSet};

use rockpack_archive::deb::compare_versions;
use rockpack_core::error::Result;
use rockpack_elf::Linking;

use crate::table::{Distribution, Library, Need};

/// The placeholder of the version in templates.
const VERSION_PLACEHOLDER: &str = "#MINVER#";

/// Dependencies of a `.deb` on libraries of its distribution, gathered over its files as by dpkg-shlibdeps.
///
/// Each needed library gives the dependency of its table with the smallest version that has the library. Each
/// undefined symbol that one of these libraries has gives the version that introduced the symbol. If the
/// distribution's tool does so, a version that the file refers to counts as well, even without a symbol in
/// use. The highest version of each package counts. Source: dpkg-shlibdeps(1) and deb-symbols(5).
///
/// An intended difference: versions of `Build-Depends-Package` are ignored, as in a source package without
/// build dependencies. The plan decides between `libx (>= 1)` and a plain `libx`, as dpkg-gencontrol does,
/// because it knows the package's other dependencies.
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
            let Some(library) = distribution.library(soname)? else { continue };
            self.raise(library.minimum_need());
            known.push((*soname, library));
        }
        let symbols = linking.undefined.iter().map(|symbol| {
            (symbol.library.as_deref(), symbol.name.as_str(), symbol.version.as_deref())
        });
        let versions = linking.versions.needed.iter().flat_map(|need| &need.versions);
        // The file's own version of that name is a symbol that it defines.
        let references = versions.map(|version| version.name.as_str()).filter(|version| {
            distribution.version_references && !linking.versions.defines(version)
        });
        let references = references.map(|version| (None::<&str>, version, Some(version)));
        for (bound_to, name, version) in symbols.chain(references) {
            // If several libraries have a version, the one that it is bound to is searched first.
            let (first, others): (Vec<_>, Vec<_>) =
                known.iter().partition(|(soname, _)| Some(*soname) == bound_to);
            let mut libraries = first.into_iter().chain(others);
            let need = libraries.find_map(|(_, library)| library.symbol(name, version));
            need.into_iter().for_each(|need| self.raise(need));
        }
        Ok(())
    }

    fn raise(&mut self, need: Need<'a>) {
        for template in need.template.split(',').map(str::trim).filter(|text| !text.is_empty()) {
            let known = self.needs.entry(template).or_default();
            if let Some(version) = need.version
                && known.is_none_or(|known| compare_versions(version, known).is_gt())
            {
                *known = Some(version);
            }
        }
    }

    /// The dependencies in the form of a control file, one string each. One may imply others, if templates of
    /// several forms name one package.
    pub fn dependencies(&self) -> BTreeSet<String> {
        let filled = self.needs.iter().map(|(template, version)| {
            // The version 0 is equivalent to none.
            let version = version.filter(|version| !["", "0"].contains(version));
            let bound = version.map(|version| format!("(>= {version})")).unwrap_or_default();
            let filled = template.replace(VERSION_PLACEHOLDER, &bound);
            filled.split_whitespace().collect::<Vec<_>>().join(" ")
        });
        filled.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rockpack_elf::{DefinedVersion, NeededVersion, NeededVersions, Versions};

    use super::*;
    use crate::Table;

    #[test]
    fn a_version_that_the_file_defines_itself_is_not_a_reference() {
        let text = "schema = 1\nformat = \"deb\"\nname = \"sid\"\ncompression = \"zstd\"\n\
                    version_references = true\n[libraries.\"liba.so.1\"]\ndepends = [\"liba1 #MINVER#\"]\n\
                    minimum = \"1\"\n[libraries.\"liba.so.1\".nodes]\n\"A_2\" = \"2\"\n";
        let table = Table::read(text.to_owned(), Path::new("sid.toml")).unwrap();
        let Table::Deb(distribution) = table else { panic!("{table:?}") };
        let needed = NeededVersion { index: 2, name: "A_2".to_owned() };
        let needed = NeededVersions { file: "libother.so.1".to_owned(), versions: vec![needed] };
        let own = DefinedVersion { is_base: false, index: 3, names: vec!["A_2".to_owned()] };
        for (defined, expected) in [(vec![], "liba1 (>= 2)"), (vec![own], "liba1 (>= 1)")] {
            let versions = Versions { defined, needed: vec![needed.clone()] };
            let linking = Linking { versions, ..Linking::default() };
            let mut gathered = GatheredNeeds::default();
            gathered.add(&distribution, &linking, &["liba.so.1"]).unwrap();
            assert_eq!(gathered.dependencies(), [expected.to_owned()].into());
        }
    }

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

//! The facts about a distribution: its libraries, and the compressions that its package manager can read; and the
//! dependencies of a `.deb` on these libraries.
//!
//! The script beside the tables in `config/distros` makes them from the distribution's own `symbols` and
//! `shlibs` files. They give the same results as dpkg-shlibdeps.
//!
//! ```toml
//! compression = "zstd"                    # of payloads: zstd or xz
//! version_references = true               # whether needed versions count like symbols
//! [libraries."libstdc++.so.6"]            # by DT_SONAME
//! depends = ["libstdc++6 #MINVER#"]       # templates; symbols may name another than the first
//! minimum = "4.1.1"                       # smallest version of all symbols; none: from shlibs
//! [libraries."libstdc++.so.6".nodes]      # symbol version → package version
//! "GLIBCXX_3.4.30" = "12"
//! [libraries."libstdc++.so.6".symbols]    # package version → symbols that differ from their node
//! "4.6" = "_ZTIDd@CXXABI_1.3 …"           # "4.6 1": and need the second template
//! ```
//!
//! Unlisted symbols, whose version is no node either, need `minimum`.
//!
//! A table has hundreds of libraries and a run needs a few of them, so each library is parsed on demand. Its
//! text reaches from its header to that of the next library.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use rockpack_archive::deb::compare_versions;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_elf::Linking;
use serde::Deserialize;

/// The shipped tables by name.
const SHIPPED: [(&str, &str); 2] = [
    ("debian-12", include_str!("../../../../config/distros/debian-12.toml")),
    ("debian-13", include_str!("../../../../config/distros/debian-13.toml")),
];

/// The symbol version, in the tables, of symbols without one.
const NO_VERSION: &str = "Base";

/// A distribution.
#[derive(Debug)]
pub struct Distribution {
    /// The name, e.g. `debian-12`.
    pub name: String,
    /// The compression for packages, which the package manager can read.
    pub compression: PayloadCompression,
    /// Tells whether the distribution's dpkg-shlibdeps takes every version that a file refers to for a symbol
    /// of this name, as dpkg 1.22.22 does.
    pub version_references: bool,
    /// The libraries by their sonames.
    libraries: BTreeMap<&'static str, LibraryEntry>,
}

/// The part of a table that describes one library.
#[derive(Debug)]
struct LibraryEntry {
    text: &'static str,
    /// The parsed library, or the reason why it cannot be read.
    parsed: OnceLock<std::result::Result<Library, String>>,
}

/// A compression of package payloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PayloadCompression {
    /// zstd.
    Zstd,
    /// xz, for package managers that cannot read zstd.
    Xz,
}

/// A library of a distribution.
#[derive(Debug)]
pub struct Library {
    templates: Vec<String>,
    minimum: Option<String>,
    nodes: BTreeMap<String, Bound>,
    symbols: BTreeMap<String, Bound>,
}

/// The requirement of a symbol: a version of a template's package.
#[derive(Debug, Clone)]
struct Bound {
    version: String,
    template: usize,
}

impl Bound {
    fn parse(text: &str, templates: usize) -> Option<Self> {
        let (version, template) = match text.split_once(' ') {
            Some((version, template)) => (version, template.parse().ok()?),
            None => (text, 0),
        };
        (template < templates).then(|| Self { version: version.to_owned(), template })
    }
}

/// A dependency template and the version to fill in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need<'a> {
    /// The template, e.g. `libc6 #MINVER#`.
    pub template: &'a str,
    /// The version, e.g. `2.34`; `None` if the template needs none.
    pub version: Option<&'a str>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    compression: PayloadCompression,
    version_references: bool,
}

/// The entry of one library, below `libraries` and its soname.
type EntryTable = BTreeMap<String, BTreeMap<String, LibraryTable>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LibraryTable {
    depends: Vec<String>,
    minimum: Option<String>,
    #[serde(default)]
    nodes: BTreeMap<String, String>,
    #[serde(default)]
    symbols: BTreeMap<String, String>,
}

impl Distribution {
    /// The names of all known distributions.
    pub fn names() -> impl Iterator<Item = &'static str> {
        SHIPPED.iter().map(|(name, _)| *name)
    }

    /// The distribution called `name`.
    pub fn named(name: &str) -> Result<Self> {
        let Some((_, text)) = SHIPPED.iter().find(|(known, _)| *known == name) else {
            let known: Vec<&str> = Self::names().collect();
            let message = format!("there is no distribution `{name}`");
            let hint = format!("known are {}", known.join(", "));
            return Err(Error::new(Kind::Usage, message).hint(hint));
        };
        let (head, libraries) = text.split_at(text.find(LIBRARY).unwrap_or(text.len()));
        let table: Table =
            toml::from_str(head).map_err(|error| broken(name).cause_in_lines(error))?;
        Ok(Self {
            name: name.to_owned(),
            compression: table.compression,
            version_references: table.version_references,
            libraries: entries(libraries),
        })
    }

    /// Every library with the names of all packages that it may depend on.
    pub fn packages(&self) -> impl Iterator<Item = Result<(&str, BTreeSet<String>)>> {
        self.libraries.iter().map(|(soname, entry)| {
            // The dependencies are the line behind the header. Parsing every library takes longer than
            // verifying a small set.
            let line = entry.text.lines().nth(1).and_then(|line| line.strip_prefix(DEPENDENCIES));
            let line = line.ok_or_else(|| {
                broken(&self.name).cause(format!("{soname} does not begin with its dependencies"))
            })?;
            // Every second piece is between quotes.
            Ok((*soname, packages_of(line.split('"').skip(1).step_by(2))))
        })
    }

    /// Tells whether it has the library with `soname`.
    pub fn has(&self, soname: &str) -> bool {
        self.libraries.contains_key(soname)
    }

    /// The library with `soname`, if the distribution has it.
    pub fn library(&self, soname: &str) -> Result<Option<&Library>> {
        let Some((soname, entry)) = self.libraries.get_key_value(soname) else { return Ok(None) };
        let parsed = entry.parsed.get_or_init(|| library(soname, entry.text));
        parsed.as_ref().map(Some).map_err(|why| broken(&self.name).cause(why.clone()))
    }
}

/// The start of the header of a library.
const LIBRARY: &str = "[libraries.\"";

/// The start of the line behind it.
const DEPENDENCIES: &str = "depends = [";

fn broken(name: &str) -> Error {
    Error::bug(format!("config/distros/{name}.toml cannot be read"))
}

/// The libraries of a table, by soname, each with its text.
fn entries(text: &'static str) -> BTreeMap<&'static str, LibraryEntry> {
    let mut entries: BTreeMap<&str, LibraryEntry> = BTreeMap::new();
    // A text of 700 kB is searched faster for a letter than for a word.
    let brackets = text.match_indices('[').map(|(at, _)| at);
    let starts: Vec<usize> = brackets.filter(|at| text[*at..].starts_with(LIBRARY)).collect();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let mut start = 0;
    for (at, end) in starts.iter().zip(ends) {
        let header = text[at + LIBRARY.len()..end].split('"').next().unwrap_or_default();
        // The headers of its nodes and symbols follow that of the library.
        if !entries.contains_key(header) {
            start = *at;
        }
        let entry = LibraryEntry { text: &text[start..end], parsed: OnceLock::new() };
        entries.insert(header, entry);
    }
    entries
}

/// Reads one library; the error is the reason why it cannot be read.
fn library(soname: &str, text: &str) -> std::result::Result<Library, String> {
    let mut table: EntryTable = toml::from_str(text).map_err(|error| error.to_string())?;
    let entry = table.get_mut("libraries").and_then(|libraries| libraries.remove(soname));
    let entry = entry.and_then(Library::new);
    entry.ok_or_else(|| format!("{soname} has no dependency, or refers to one that it lacks"))
}

impl Library {
    fn new(table: LibraryTable) -> Option<Self> {
        let count = table.depends.len();
        let nodes = table
            .nodes
            .into_iter()
            .map(|(node, text)| Some((node, Bound::parse(&text, count)?)))
            .collect::<Option<_>>()?;
        let mut symbols = BTreeMap::new();
        for (text, names) in table.symbols {
            let bound = Bound::parse(&text, count)?;
            symbols.extend(names.split(' ').map(|name| (name.to_owned(), bound.clone())));
        }
        (count > 0).then_some(Self {
            templates: table.depends,
            minimum: table.minimum,
            nodes,
            symbols,
        })
    }

    /// The requirement of the library itself.
    pub fn smallest(&self) -> Need<'_> {
        let version = self.minimum.as_deref();
        Need { template: self.templates.first().map_or("", String::as_str), version }
    }

    /// The requirement of the symbol `name` with `version`; `None` if the library is not known to have the
    /// symbol, or if the library alone satisfies it.
    pub fn symbol(&self, name: &str, version: Option<&str>) -> Option<Need<'_>> {
        let full = format!("{name}@{}", version.unwrap_or(NO_VERSION));
        let listed = self.symbols.get(&full);
        let bound = listed.or_else(|| self.nodes.get(version?))?;
        let template = self.templates.get(bound.template)?;
        Some(Need { template, version: Some(&bound.version) })
    }

    /// Tells whether it lacks `version`. Nothing is known about libraries without symbol versions.
    pub fn lacks(&self, version: &str) -> bool {
        !self.nodes.is_empty() && !self.nodes.contains_key(version)
    }
}

/// The names of the packages in templates.
fn packages_of<'a>(templates: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    let texts = templates.flat_map(|template| template.split([',', '|']));
    let names = texts.filter_map(|text| text.split_whitespace().next());
    names.map(str::to_owned).collect()
}

/// The placeholder of the version in templates.
const PLACE: &str = "#MINVER#";

/// The version that is equivalent to none.
const ANY_VERSION: &str = "0";

/// Dependencies of a `.deb` on the libraries of its distribution, gathered over its files as dpkg-shlibdeps finds
/// them.
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
    fn all_shipped_tables_are_whole() {
        for name in Distribution::names() {
            let distribution = Distribution::named(name).unwrap();
            let packages: Vec<_> = distribution.packages().collect::<Result<_>>().unwrap();
            assert!(packages.len() > 500, "{name}");
            for (soname, packages) in packages {
                let library = distribution.library(soname).unwrap().unwrap();
                let templates = library.templates.iter().map(String::as_str);
                assert_eq!(packages_of(templates), packages, "{name}: {soname}");
            }
            assert_eq!(distribution.compression, PayloadCompression::Zstd);
            let libc = distribution.library("libc.so.6").unwrap().unwrap();
            let template = "libc6 #MINVER#";
            assert_eq!(libc.smallest(), Need { template, version: Some("2.2.5") });
            let newer = Some(Need { template, version: Some("2.34") });
            assert_eq!(libc.symbol("pthread_create", Some("GLIBC_2.34")), newer);
            let private = libc.symbol("_dl_argv", Some("GLIBC_PRIVATE")).unwrap();
            assert_ne!(private.template, template);
            assert!(libc.lacks("GLIBC_9.9") && !libc.lacks("GLIBC_2.34"));
            assert!(libc.symbol("nothing", None).is_none());
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let error = Distribution::named("debian-1").unwrap_err();
        assert!(error.hint_text().is_some_and(|hint| hint.contains("debian-12, debian-13")));
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

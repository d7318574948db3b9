//! The table of a distribution.
//!
//! ```toml
//! schema = 1
//! format = "deb"
//! name = "debian-12"
//! compression = "zstd"                    # of payloads: zstd or xz
//! version_references = true               # whether needed versions count like symbols
//! [os_release]                            # of the system, if it has one
//! ID = "debian"
//! [sources]                               # package → version, of those that the libraries are from
//! libstdc++6 = "12.2.0-14"
//! [programs]                              # package to depend on → its programs
//! "" = "/usr/bin/bash /usr/bin/sh"        # every system has these
//! "python3" = "/usr/bin/python3"
//! [packages]                              # the distribution's packages of ROCm → their versions
//! "rocm-smi" = "5.2.3-2"
//! [libraries."libstdc++.so.6"]            # by DT_SONAME
//! depends = ["libstdc++6 #MINVER#"]       # templates; symbols may name another than the first
//! minimum = "4.1.1"                       # smallest version of all symbols; none: from shlibs
//! [libraries."libstdc++.so.6".nodes]      # symbol version → package version
//! "GLIBCXX_3.4.30" = "12"
//! [libraries."libstdc++.so.6".symbols]    # package version → symbols that differ from their node
//! "4.6" = "_ZTIDd@CXXABI_1.3 …"           # "4.6 1": and need the second template
//! ```
//!
//! Unlisted symbols, whose version is no node either, need `minimum`. In all of these distributions `/bin` is a
//! link to `/usr/bin`, and the like: paths are written with `/usr`.
//!
//! The table of a family with rpm (`format = "rpm"`) has no libraries: an `.rpm` requires them by their names.
//!
//! A table has hundreds of libraries and a run needs a few of them, so each library is parsed on demand. Its
//! text reaches from its header to that of the next library.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::mem;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use flate2::read::GzDecoder;
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::package_format::Format;
use rockpack_core::tree::resolved_names;
use serde::Deserialize;

/// The shipped tables by name, compressed by gzip.
const SHIPPED: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/tables.rs"));

/// The name of the table with the programs of distributions with rpm, which hardly differ in this.
const RPM: &str = "rpm";

/// The version of this format.
pub(crate) const SCHEMA: u32 = 1;

/// The symbol version, in the tables, of symbols without one.
pub(crate) const NO_VERSION: &str = "Base";

/// Folders of the root that are links to those of the same name in `/usr`.
const MERGED: [&str; 4] = ["bin", "lib", "lib64", "sbin"];

/// The dynamic loader, which counts as a program.
const LOADER: &str = "usr/lib64/ld-linux-x86-64.so.2";

/// The folders in which `env` looks for programs.
pub(crate) const PROGRAM_FOLDERS: [&str; 2] = ["usr/bin", "usr/sbin"];

#[derive(Debug, Deserialize)]
#[serde(tag = "format", rename_all = "lowercase")]
pub enum Table {
    Deb(Box<Distribution>),
    Rpm(RpmProfile),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Distribution {
    #[serde(rename = "schema")]
    _schema: u32,
    /// The name, e.g. `debian-12`.
    pub name: String,
    /// The compression for packages, which the package manager can read.
    pub compression: PayloadCompression,
    /// Whether the distribution's dpkg-shlibdeps takes every version that a file refers to for a symbol
    /// of this name, as dpkg 1.22.22 does.
    pub version_references: bool,
    /// The fields of the system's `os-release`.
    #[serde(default)]
    pub os_release: BTreeMap<String, String>,
    #[serde(default, rename = "sources")]
    _sources: BTreeMap<String, String>,
    #[serde(default)]
    programs: BTreeMap<String, String>,
    #[serde(default)]
    packages: BTreeMap<String, String>,
    #[serde(skip)]
    pub names: KnownNames,
    #[serde(skip)]
    text: String,
    /// The file or folder that a user named; `None` for shipped tables.
    #[serde(skip)]
    path: Option<PathBuf>,
    #[serde(skip)]
    libraries: BTreeMap<String, LibraryEntry>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RpmProfile {
    /// The name, e.g. `el9`.
    pub name: String,
    /// The compression for packages, which every rpm of the family reads.
    pub compression: PayloadCompression,
    /// The suffix of releases, e.g. `.el9`.
    pub tag: Option<String>,
    #[serde(rename = "schema")]
    _schema: u32,
    #[serde(default)]
    programs: BTreeMap<String, String>,
}

/// The part of a table that describes one library.
#[derive(Debug)]
struct LibraryEntry {
    text: Range<usize>,
    /// The parsed library, or the reason why it cannot be read.
    parsed: OnceLock<std::result::Result<Library, String>>,
}

/// A compression of package payloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PayloadCompression {
    Zstd,
    /// xz, for package managers that cannot read zstd.
    Xz,
}

/// The names of a distribution's programs, and of its packages of ROCm.
#[derive(Debug, Clone, Default)]
pub struct KnownNames {
    /// The name of the distribution: `debian-12`.
    pub distribution: String,
    /// The package for each program, by path without leading slash; `None` if every system has the program.
    programs: BTreeMap<String, Option<String>>,
    packages: BTreeMap<String, String>,
}

/// A library of a distribution. Its bounds are a version, `2.34`, or `2.34 1` with the number of another template.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Library {
    #[serde(rename = "depends")]
    templates: Vec<String>,
    minimum: Option<String>,
    #[serde(default)]
    nodes: BTreeMap<String, String>,
    /// The bound for each symbol; in a table the symbols for each bound.
    #[serde(default)]
    symbols: BTreeMap<String, String>,
}

/// A dependency template and the version to fill in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need<'a> {
    /// The template, e.g. `libc6 #MINVER#`.
    pub template: &'a str,
    /// The version, e.g. `2.34`; `None` if the template needs none.
    pub version: Option<&'a str>,
}

/// The schema of a table, which is read before anything else.
#[derive(Deserialize)]
struct SchemaField {
    schema: u32,
}

impl Table {
    pub fn names() -> impl Iterator<Item = &'static str> {
        SHIPPED.iter().map(|(name, _)| *name)
    }

    pub fn shipped(name: &str) -> Result<Self> {
        let Some((_, packed)) = SHIPPED.iter().find(|(known, _)| *known == name) else {
            let known: Vec<&str> = Self::names().filter(|name| *name != RPM).collect();
            let message = format!("unknown distribution `{name}`");
            let hint = format!(
                "known ones are {}; for another one, name its table (FILE.toml), or a folder such as the root of an \
                 installed system, with a slash: `./{name}`; one for each format: `deb=debian-13,rpm=el9`; \
                 docs/guides/any-distribution.md shows how to make one",
                known.join(", ")
            );
            return Err(Error::new(Kind::Usage, message).hint(hint));
        };
        let text = io::read_to_string(GzDecoder::new(*packed));
        Self::parse(text.map_err(|error| unreadable_table(None, error))?, None)
    }

    /// Reads the `text` of a table, which is that of the file at `path` or was made of it. Every library is checked.
    pub fn read(text: String, path: &Path) -> Result<Self> {
        let table = Self::parse(text, Some(path))?;
        if let Self::Deb(distribution) = &table {
            for soname in distribution.libraries.keys() {
                distribution.library(soname)?;
            }
        }
        Ok(table)
    }

    fn parse(text: String, path: Option<&Path>) -> Result<Self> {
        let end = text.find(&format!("\n{LIBRARY}")).map_or(text.len(), |at| at + 1);
        let head = text.get(..end).unwrap_or_default();
        let schema: SchemaField =
            toml::from_str(head).map_err(|error| unreadable_table(path, error))?;
        if schema.schema != SCHEMA {
            let why = format!("has schema {}; this rockpack reads {SCHEMA}", schema.schema);
            return Err(unreadable_table(path, why));
        }
        let mut table: Self =
            toml::from_str(head).map_err(|error| unreadable_table(path, error))?;
        if let Self::Deb(distribution) = &mut table {
            let Distribution { name, programs, packages, .. } = &mut **distribution;
            distribution.names = KnownNames::new(name, programs, mem::take(packages));
            distribution.libraries = entries(&text, end);
            distribution.path = path.map(Path::to_owned);
            distribution.text = text;
        }
        Ok(table)
    }
}

impl Distribution {
    /// Every library with the names of all packages that it may depend on.
    pub fn packages(&self) -> impl Iterator<Item = Result<(&str, BTreeSet<String>)>> {
        self.libraries.iter().map(|(soname, entry)| {
            // The line after the header has them. Parsing every library takes longer than verifying a small set.
            let line = self.text_of(entry).lines().nth(1);
            let line = line.and_then(|line| line.strip_prefix(DEPENDENCIES)).ok_or_else(|| {
                let why = format!("{soname} does not begin with its dependencies");
                unreadable_table(self.path.as_deref(), why)
            })?;
            // Every second piece is between quotes.
            Ok((soname.as_str(), packages_of(line.split('"').skip(1).step_by(2))))
        })
    }

    fn text_of(&self, entry: &LibraryEntry) -> &str {
        self.text.get(entry.text.clone()).unwrap_or_default()
    }

    pub fn has(&self, soname: &str) -> bool {
        self.libraries.contains_key(soname)
    }

    pub fn library(&self, soname: &str) -> Result<Option<&Library>> {
        let Some(entry) = self.libraries.get(soname) else { return Ok(None) };
        let parsed = entry.parsed.get_or_init(|| library(soname, self.text_of(entry)));
        parsed.as_ref().map(Some).map_err(|why| unreadable_table(self.path.as_deref(), why))
    }
}

/// The start of the header of a library.
const LIBRARY: &str = "[libraries.\"";

/// The start of the line after it.
const DEPENDENCIES: &str = "depends = [";

fn unreadable_table(path: Option<&Path>, why: impl std::fmt::Display) -> Error {
    let Some(path) = path else { return Error::bug("a shipped table cannot be read").cause(why) };
    Error::malformed("is not a table of a distribution")
        .file(path)
        .cause_in_lines(why)
        .hint("make it again with `rockpack distro`")
}

/// The libraries of a table, from `start` on, by soname, each with its text.
fn entries(text: &str, start: usize) -> BTreeMap<String, LibraryEntry> {
    let mut entries: BTreeMap<String, LibraryEntry> = BTreeMap::new();
    let rest = text.get(start..).unwrap_or_default();
    // A text of 700 kB is searched faster for a letter than for a word.
    let brackets = rest.match_indices('[').map(|(at, _)| at + start);
    let is_header = |at: &usize| {
        text.get(*at..).is_some_and(|text| text.starts_with(LIBRARY))
            && text.get(..*at).is_some_and(|before| before.ends_with('\n'))
    };
    let starts: Vec<usize> = brackets.filter(is_header).collect();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let mut start = start;
    for (at, end) in starts.iter().zip(ends) {
        let header = text.get(at + LIBRARY.len()..end).unwrap_or_default();
        let header = header.split('"').next().unwrap_or_default();
        // The headers of its nodes and symbols follow that of the library.
        if !entries.contains_key(header) {
            start = *at;
        }
        let entry = LibraryEntry { text: start..end, parsed: OnceLock::new() };
        entries.insert(header.to_owned(), entry);
    }
    entries
}

/// Reads one library; the error is the reason why it cannot be read.
fn library(soname: &str, text: &str) -> std::result::Result<Library, String> {
    let mut table: BTreeMap<String, BTreeMap<String, Library>> =
        toml::from_str(text).map_err(|error| format!("{soname}: {}", error.message()))?;
    let mut libraries = table.remove("libraries").unwrap_or_default();
    let library = libraries.remove(soname).filter(Library::is_whole);
    let library = library.filter(|_| table.is_empty() && libraries.is_empty());
    let mut library = library.ok_or_else(|| {
        format!("{soname} has no dependency or refers to one that it lacks, or something else follows it")
    })?;
    for (bound, names) in mem::take(&mut library.symbols) {
        library.symbols.extend(names.split(' ').map(|name| (name.to_owned(), bound.clone())));
    }
    Ok(library)
}

impl Library {
    /// Whether it has a template, as read from a table, and those that its bounds need.
    fn is_whole(&self) -> bool {
        let mut bounds = self.nodes.values().chain(self.symbols.keys());
        !self.templates.is_empty() && bounds.all(|bound| self.need(bound).is_some())
    }

    fn need<'a>(&'a self, bound: &'a str) -> Option<Need<'a>> {
        let (version, template) = bound.split_once(' ').unwrap_or((bound, "0"));
        let template = self.templates.get(template.parse::<usize>().ok()?)?;
        Some(Need { template, version: Some(version) })
    }

    pub fn minimum_need(&self) -> Need<'_> {
        let version = self.minimum.as_deref();
        Need { template: self.templates.first().map_or("", String::as_str), version }
    }

    /// The requirement of the symbol `name` with `version`; `None` if the library is not known to have the
    /// symbol, or if the library alone satisfies it.
    pub fn symbol(&self, name: &str, version: Option<&str>) -> Option<Need<'_>> {
        let full = format!("{name}@{}", version.unwrap_or(NO_VERSION));
        let listed = self.symbols.get(&full);
        self.need(listed.or_else(|| self.nodes.get(version?))?)
    }

    /// Whether it lacks `version`. Nothing is known about libraries without symbol versions.
    pub fn lacks(&self, version: &str) -> bool {
        !self.nodes.is_empty() && !self.nodes.contains_key(version)
    }
}

/// The names of the packages in templates.
pub(crate) fn packages_of<'a>(templates: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    let texts = templates.flat_map(|template| template.split([',', '|']));
    let names = texts.filter_map(|text| text.split_whitespace().next());
    names.map(str::to_owned).collect()
}

impl RpmProfile {
    /// The programs of its distributions: its own ones, or else those of all that have rpm.
    pub fn names(&self) -> Result<KnownNames> {
        if self.programs.is_empty() && self.name != RPM {
            return Distributions::defaults()?.rpm.names();
        }
        let name = if self.name == RPM { "a distribution with rpm" } else { &self.name };
        Ok(KnownNames::new(name, &self.programs, BTreeMap::new()))
    }
}

/// The distributions that packages are for.
#[derive(Debug)]
pub struct Distributions {
    /// The one whose libraries `.deb` packages depend on.
    pub deb: Box<Distribution>,
    /// The family of distributions that `.rpm` packages are for.
    pub rpm: RpmProfile,
}

impl Distributions {
    /// Debian 12, and all distributions with rpm.
    pub fn defaults() -> Result<Self> {
        match (Table::shipped("debian-12")?, Table::shipped(RPM)?) {
            (Table::Deb(deb), Table::Rpm(rpm)) => Ok(Self { deb, rpm }),
            _ => Err(Error::bug("a shipped table is for another format")),
        }
    }

    /// Puts `table` in the place of the one for its format, which has to be `format` if one is given.
    pub fn set(&mut self, table: Table, format: Option<Format>) -> Result<()> {
        match table {
            Table::Deb(deb) if format != Some(Format::Rpm) => self.deb = deb,
            Table::Rpm(rpm) if format != Some(Format::Deb) => self.rpm = rpm,
            Table::Deb(_) | Table::Rpm(_) => {
                let message = "the distribution has the other package format";
                let hint = "name one with dpkg for deb, one with rpm for rpm, as in `deb=debian-13,rpm=el9`";
                return Err(Error::new(Kind::Usage, message).hint(hint));
            }
        }
        Ok(())
    }
}

impl KnownNames {
    fn new(
        distribution: &str,
        lists: &BTreeMap<String, String>,
        packages: BTreeMap<String, String>,
    ) -> Self {
        let mut programs = BTreeMap::new();
        for (package, paths) in lists {
            let package = Some(package).filter(|package| !package.is_empty());
            let paths = paths.split_whitespace();
            programs.extend(paths.map(|path| (merged(path), package.cloned())));
        }
        Self { distribution: distribution.to_owned(), programs, packages }
    }

    /// The package to depend on for the program at the absolute `path`, if the distribution is known to have
    /// it; the inner `None` means that every system has the program.
    pub fn program(&self, path: &str) -> Option<Option<&str>> {
        self.programs.get(&merged(path)).map(Option::as_deref)
    }

    /// The package to depend on for the program that `env` finds by `name`; see [`program`](Self::program).
    pub fn in_search_path(&self, name: &str) -> Option<Option<&str>> {
        let mut paths = PROGRAM_FOLDERS.iter().map(|folder| format!("{folder}/{name}"));
        paths.find_map(|path| self.programs.get(&path)).map(Option::as_deref)
    }

    /// The packages of these programs. For programs of every system, their own names, which many packages share.
    pub fn packages_of_programs(&self) -> impl Iterator<Item = &str> {
        self.programs.iter().map(|(path, package)| {
            package.as_deref().unwrap_or_else(|| path.rsplit('/').next().unwrap_or_default())
        })
    }

    /// The version of the distribution's ROCm package `name`, if it has one.
    pub fn package(&self, name: &str) -> Option<&str> {
        self.packages.get(name).map(String::as_str)
    }
}

/// Whether the file at `path` is a program, for which tables name the package.
pub(crate) fn is_program(path: &str) -> bool {
    let folder = path.rsplit_once('/').map(|(folder, _)| folder);
    folder.is_some_and(|folder| PROGRAM_FOLDERS.contains(&folder)) || path == LOADER
}

/// An absolute path in the form with `/usr`, without its leading slash.
pub(crate) fn merged(path: &str) -> String {
    let parts = resolved_names(path);
    let is_merged = parts.first().is_some_and(|first| MERGED.contains(first));
    let path = parts.join("/");
    if is_merged { format!("usr/{path}") } else { path }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;

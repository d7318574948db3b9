//! The indexes of an rpm repository, as dnf, zypper and yum read them.
//!
//! ```text
//! repodata/repomd.xml                    digests, sizes and names of the other files
//! repodata/<sha256>-primary.xml.gz       per package: version, place, digest, dependencies
//! repodata/<sha256>-filelists.xml.gz     per package: every path
//! repodata/<sha256>-other.xml.gz         per package: the change log
//! ```
//!
//! gzip compresses the lists, or zstd if all clients can read that (`.xml.zst`).
//!
//! Source: createrepo_c's output and its reading of headers. As there, `primary` has the paths below `/etc/`,
//! those with `bin/` in them, and `/usr/lib/sendmail`, and requirements on rpm itself and on the package's
//! own provisions are left out. Unlike there, all versions of libc's symbols stay, and `time file` is the
//! build time, so that the same packages give the same bytes. Characters that XML 1.0 cannot encode are
//! dropped from texts, and refused in names.

mod header;
mod xml;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

pub use crate::relation::index_word as sign;
pub use xml::{DataFile, LISTS, Repomd, RepositoryRpm, document, elements};

use crate::package_file::Format;
use crate::path_digests::PathDigests;
use crate::rpm::{MissingDigest, header_fault as fault};
use crate::spelling;
use rockpack_core::error::{Error, Result};

/// The values of an `.rpm`'s header that repositories remember. Absent texts are empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RpmPackage {
    pub name: String,
    /// Architecture, e.g. `x86_64` or `noarch`; `src` for source packages.
    pub arch: String,
    /// Epoch; 0 if the header has no epoch.
    pub epoch: u32,
    pub version: String,
    pub release: String,
    pub packager: String,
    pub vendor: String,
    pub lists: Vec<DependencyList>,
    /// The files and links.
    pub paths: PathDigests,
    /// Directories and ghosts, which several packages may have.
    pub shared: PathDigests,
    /// The archs that paths of kernels name; empty if the reader did not ask for them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub gpu_archs: BTreeSet<String>,
    /// Whether the package has an OpenPGP signature.
    pub signed: bool,
    /// Whether rpm 4 does not see the signature, which has the tag of format 6 alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub signed_for_rpm6: bool,
    /// The digest without which rpm 6 refuses the package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_digest: Option<MissingDigest>,
    /// The ids of the keys that the signatures name; empty if the reader did not ask for them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub signers: BTreeSet<String>,
    /// Names of the fields that indexes change: texts that are not UTF-8, or have characters that XML lacks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<String>,
}

/// The values of an `.rpm`'s header that only lists have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedValues {
    pub summary: String,
    pub description: String,
    pub url: String,
    pub license: String,
    pub group: String,
    pub build_host: String,
    pub source_rpm: String,
    /// BUILDTIME, seconds since 1970.
    pub build_time: u64,
    pub installed_size: u64,
    /// Bytes of the payload before compression.
    pub archive_size: u64,
    pub header_start: u64,
    pub header_end: u64,
    /// Installed files, in the order of the header.
    pub files: Vec<RpmFile>,
    /// The changelog, oldest entry first.
    pub changelog: Vec<Changelog>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DependencyList {
    /// The element of `primary`: `provides`, `requires`, …
    pub kind: String,
    /// The dependencies in the order of the header, each once.
    pub entries: Vec<IndexedDependency>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexedDependency {
    /// Package, capability, path, or a rich dependency in parentheses.
    pub name: String,
    /// `EQ`, `LT`, `GT`, `LE` or `GE`, and the version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<(String, Evr)>,
    /// Whether the dependency must be installed before the package.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pre: bool,
}

impl IndexedDependency {
    fn texts(&self) -> impl Iterator<Item = &String> {
        let evr = self.bound.as_ref().map(|(_, evr)| evr);
        let parts = evr.map(|evr| [&evr.epoch, &evr.version].into_iter().chain(&evr.release));
        std::iter::once(&self.name).chain(parts.into_iter().flatten())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evr {
    /// Epoch; `0` if the version has no epoch.
    pub epoch: String,
    pub version: String,
    /// Release; `None` if the version has no release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
}

/// The text `[epoch:]version[-release]` of these parts; an epoch of zero is as none.
pub fn evr(epoch: &str, version: &str, release: &str) -> String {
    let epoch = match epoch {
        "" | "0" => String::new(),
        epoch => format!("{epoch}:"),
    };
    let release = if release.is_empty() { String::new() } else { format!("-{release}") };
    format!("{epoch}{version}{release}")
}

impl Evr {
    /// The text `[epoch:]version[-release]`.
    pub fn text(&self) -> String {
        let release = self.release.as_ref().map(|release| format!("-{release}"));
        evr(&self.epoch, &self.version, "") + &release.unwrap_or_default()
    }

    /// Parses `[epoch:]version[-release]`.
    pub fn parse(text: &str) -> Self {
        let (epoch, rest) = text.split_once(':').unwrap_or(("0", text));
        let epoch = if epoch.is_empty() { "0" } else { epoch };
        let (version, release) = rest.split_once('-').map_or((rest, None), |(v, r)| (v, Some(r)));
        let release = release.map(str::to_owned);
        Self { epoch: epoch.to_owned(), version: version.to_owned(), release }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpmFile {
    pub path: String,
    pub kind: FileKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A file or link.
    Plain,
    Dir,
    /// A ghost: owned, but not in the payload.
    Ghost,
}

/// Whether `primary` lists files of that path, so that dependencies on them are found without `filelists`.
fn is_primary(path: &str) -> bool {
    path.starts_with("/etc/") || path.contains("bin/") || path == "/usr/lib/sendmail"
}

/// Whether `name` is a path that `primary` does not list: clients find it only if a package provides it.
pub fn is_unlisted_path(name: &str) -> bool {
    name.starts_with('/') && !is_primary(name)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changelog {
    /// The author, and the version of the change.
    pub author: String,
    /// Time of the change, seconds since 1970.
    pub date: u64,
    pub text: String,
}

impl RpmPackage {
    /// The full version, `[epoch:]version-release`.
    pub fn evr(&self) -> String {
        evr(&self.epoch.to_string(), &self.version, &self.release)
    }

    /// The file name, `<name>-<version>-<release>.<arch>.rpm`.
    pub fn file_name(&self) -> String {
        format!("{}-{}-{}.{}.rpm", self.name, self.version, self.release, self.arch)
    }

    pub fn list(&self, kind: &str) -> &[IndexedDependency] {
        let list = self.lists.iter().find(|list| list.kind == kind);
        list.map_or(&[], |list| list.entries.as_slice())
    }

    /// Refuses values that paths or XML cannot hold.
    fn check(&self, listed: &ListedValues) -> Result<()> {
        let mut faults = Vec::new();
        let named = [
            ("name", &self.name, spelling::is_name(Format::Rpm, &self.name)),
            ("version", &self.version, spelling::is_rpm_part(&self.version)),
            ("release", &self.release, spelling::is_rpm_part(&self.release)),
            ("arch", &self.arch, spelling::is_architecture(Format::Rpm, &self.arch)),
        ];
        for (what, text, is_legal) in named {
            if !is_legal {
                faults.push(fault(format!("{what} `{}` is not valid", text.escape_debug())));
            }
        }
        let paths = listed.files.iter().map(|file| &file.path);
        let dependencies = self.lists.iter().flat_map(|list| &list.entries);
        let texts = dependencies.flat_map(IndexedDependency::texts);
        let odd = paths.chain(texts).filter(|text| !text.chars().all(is_xml));
        faults.extend(odd.map(|text| {
            let message = format!("`{}` has characters that XML lacks", text.escape_debug());
            fault(message)
                .hint("no index can name it: build the package without control characters")
        }));
        Error::gather(faults).map_or(Ok(()), Err)
    }
}

fn is_xml(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpm::RpmFront;
    use rockpack_core::content::Content;

    /// One such package would make the whole index unreadable.
    #[test]
    fn dependencies_that_xml_cannot_write_are_refused() {
        let mut builder = ::rpm::PackageBuilder::new("odd", "1", "MIT", "noarch", "odd");
        builder.requires(::rpm::Dependency::eq("other", "1:2-3"));
        let mut bytes = Vec::new();
        builder.build().unwrap().write(&mut bytes).unwrap();
        let (package, listed) =
            RpmPackage::of_front(&RpmFront::read(&Content::of_bytes(bytes)).unwrap()).unwrap();
        for version in ["\u{1}:2-3", "1:2\u{8}-3", "1:2-\u{b}", "1:2-3\u{ffff}"] {
            let mut odd = package.clone();
            for entry in odd.lists.iter_mut().flat_map(|list| &mut list.entries) {
                entry.bound = Some(("EQ".to_owned(), Evr::parse(version)));
            }
            assert!(odd.check(&listed).is_err(), "{version:?}");
        }
        package.check(&listed).unwrap();
    }
}

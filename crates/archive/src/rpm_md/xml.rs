//! The three lists of packages, and `repomd.xml`: the one file that makes the lists valid.

use std::io;

use quick_xml::Writer;
use quick_xml::escape::escape;
use quick_xml::events::{BytesDecl, BytesText, Event};
use serde::{Deserialize, Serialize};

use super::{FileKind, IndexedDependency, ListedValues, RpmPackage, is_primary, is_xml};
use rockpack_core::error::{Error, Result};

const COMMON: &str = "http://linux.duke.edu/metadata/common";
const RPM: &str = "http://linux.duke.edu/metadata/rpm";
const FILELISTS: &str = "http://linux.duke.edu/metadata/filelists";
const OTHER: &str = "http://linux.duke.edu/metadata/other";

#[derive(Debug, Clone, Copy)]
pub struct RepositoryRpm<'a> {
    pub package: &'a RpmPackage,
    /// Those that only lists have.
    pub listed: &'a ListedValues,
    /// Path, relative to the folder that holds `repodata`.
    pub path: &'a str,
    /// Bytes of the file.
    pub size: u64,
    /// SHA-256 of the file in hex: the package's id in all lists.
    pub sha256: &'a str,
}

type Xml = Writer<Vec<u8>>;
type Written = io::Result<()>;

/// The lists of packages, in the order of `repomd.xml`.
pub const LISTS: [&str; 3] = ["primary", "filelists", "other"];

/// A list of `count` packages with the element of at most one: the lines before it, its own, and those after it.
pub fn document(list: &str, count: usize, rpm: Option<&RepositoryRpm<'_>>) -> Result<[Vec<u8>; 3]> {
    type Element = fn(&mut Xml, &RepositoryRpm<'_>) -> Written;
    let (name, spaces, element): (_, &[_], Element) = match list {
        "primary" => ("metadata", &[("xmlns", COMMON), ("xmlns:rpm", RPM)], primary),
        "filelists" => ("filelists", &[("xmlns", FILELISTS)], filelists),
        _ => ("otherdata", &[("xmlns", OTHER)], other),
    };
    let count = count.to_string();
    let attributes = spaces.iter().copied().chain([("packages", count.as_str())]);
    let mut head = root(name, attributes, |xml| rpm.map_or(Ok(()), |rpm| element(xml, rpm)))?;
    let lines = head.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::len);
    let mut lines = head.split_off(lines.take(2).sum());
    let foot = lines.split_off(lines.len() - format!("</{name}>\n").len());
    Ok([head, lines, foot])
}

/// The elements of a package in all lists, with NUL between them, which XML lacks.
pub fn elements(rpm: &RepositoryRpm<'_>) -> Result<Vec<u8>> {
    let [primary, filelists, other] = LISTS.map(|list| document(list, 1, Some(rpm)));
    Ok([primary?, filelists?, other?].map(|[_, element, _]| element).join(&0))
}

fn primary(xml: &mut Xml, rpm: &RepositoryRpm<'_>) -> Written {
    let package = xml.create_element("package").with_attribute(("type", "rpm"));
    package.write_inner_content(|xml| primary_package(xml, rpm)).map(drop)
}

fn filelists(xml: &mut Xml, rpm: &RepositoryRpm<'_>) -> Written {
    named(xml, rpm, |xml| files(xml, rpm.listed, |_| true))
}

fn other(xml: &mut Xml, rpm: &RepositoryRpm<'_>) -> Written {
    named(xml, rpm, |xml| {
        for entry in &rpm.listed.changelog {
            let date = entry.date.to_string();
            let author = clean(&entry.author);
            xml.create_element("changelog")
                .with_attribute(("author", author.as_str()))
                .with_attribute(("date", date.as_str()))
                .write_text_content(BytesText::new(&clean(&entry.text)))?;
        }
        Ok(())
    })
}

fn root<'a>(
    name: &str,
    attributes: impl Iterator<Item = (&'a str, &'a str)>,
    content: impl FnOnce(&mut Xml) -> Written,
) -> Result<Vec<u8>> {
    let mut xml = Writer::new_with_indent(Vec::new(), b' ', 1);
    let declaration = Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None));
    xml.write_event(declaration).map_err(write_fault)?;
    let element = attributes.fold(xml.create_element(name), |e, a| e.with_attribute(a));
    element.write_inner_content(content).map_err(write_fault)?;
    let mut bytes = xml.into_inner();
    bytes.push(b'\n');
    Ok(bytes)
}

fn write_fault(error: io::Error) -> Error {
    Error::bug("cannot write an index").cause(error)
}

fn primary_package(xml: &mut Xml, rpm: &RepositoryRpm<'_>) -> Written {
    let RepositoryRpm { package, listed, path, size, sha256 } = rpm;
    text(xml, "name", &package.name)?;
    text(xml, "arch", &package.arch)?;
    version(xml, package)?;
    xml.create_element("checksum")
        .with_attribute(("type", "sha256"))
        .with_attribute(("pkgid", "YES"))
        .write_text_content(BytesText::new(sha256))?;
    text(xml, "summary", &listed.summary)?;
    text(xml, "description", &listed.description)?;
    text(xml, "packager", &package.packager)?;
    text(xml, "url", &listed.url)?;
    let built = listed.build_time.to_string();
    empty(xml, "time", &[("file", &*built), ("build", &*built)])?;
    let [size, installed, archive] =
        [*size, listed.installed_size, listed.archive_size].map(|size| size.to_string());
    empty(xml, "size", &[("package", &*size), ("installed", &*installed), ("archive", &*archive)])?;
    empty(xml, "location", &[("href", *path)])?;
    xml.create_element("format").write_inner_content(|xml| format(xml, rpm)).map(drop)
}

fn format(xml: &mut Xml, rpm: &RepositoryRpm<'_>) -> Written {
    let RepositoryRpm { package, listed, .. } = rpm;
    text(xml, "rpm:license", &listed.license)?;
    text(xml, "rpm:vendor", &package.vendor)?;
    text(xml, "rpm:group", &listed.group)?;
    text(xml, "rpm:buildhost", &listed.build_host)?;
    text(xml, "rpm:sourcerpm", &listed.source_rpm)?;
    let [start, end] = [listed.header_start, listed.header_end].map(|at| at.to_string());
    empty(xml, "rpm:header-range", &[("start", &*start), ("end", &*end)])?;
    for list in &package.lists {
        let name = format!("rpm:{}", list.kind);
        xml.create_element(name.as_str())
            .write_inner_content(|xml| list.entries.iter().try_for_each(|d| dependency(xml, d)))?;
    }
    files(xml, listed, is_primary)
}

fn dependency(xml: &mut Xml, dependency: &IndexedDependency) -> Written {
    let mut attributes = vec![("name", dependency.name.as_str())];
    if let Some((sign, evr)) = &dependency.bound {
        attributes.extend([("flags", &**sign), ("epoch", &*evr.epoch), ("ver", &*evr.version)]);
        attributes.extend(evr.release.as_deref().map(|release| ("rel", release)));
    }
    attributes.extend(dependency.pre.then_some(("pre", "1")));
    empty(xml, "rpm:entry", &attributes)
}

/// The element of a package, by its id, in the lists next to `primary`.
fn named(
    xml: &mut Xml,
    rpm: &RepositoryRpm<'_>,
    content: impl FnOnce(&mut Xml) -> Written,
) -> Written {
    let package = rpm.package;
    xml.create_element("package")
        .with_attribute(("pkgid", rpm.sha256))
        .with_attribute(("name", package.name.as_str()))
        .with_attribute(("arch", package.arch.as_str()))
        .write_inner_content(|xml| {
            version(xml, package)?;
            content(xml)
        })
        .map(drop)
}

fn version(xml: &mut Xml, package: &RpmPackage) -> Written {
    let epoch = package.epoch.to_string();
    let [version, release] = [&package.version, &package.release].map(String::as_str);
    empty(xml, "version", &[("epoch", &*epoch), ("ver", version), ("rel", release)])
}

fn empty(xml: &mut Xml, name: &str, attributes: &[(&str, &str)]) -> Written {
    let element = attributes.iter().fold(xml.create_element(name), |e, a| e.with_attribute(*a));
    element.write_empty().map(drop)
}

/// The files that `is_wanted` accepts. There are more of these than of all other elements.
fn files(xml: &mut Xml, listed: &ListedValues, is_wanted: impl Fn(&str) -> bool) -> Written {
    for file in listed.files.iter().filter(|file| is_wanted(&file.path)) {
        xml.write_indent()?;
        let start = match file.kind {
            FileKind::Plain => "<file>",
            FileKind::Dir => "<file type=\"dir\">",
            FileKind::Ghost => "<file type=\"ghost\">",
        };
        for part in [start, &escape(&file.path), "</file>"] {
            xml.get_mut().extend_from_slice(part.as_bytes());
        }
    }
    Ok(())
}

fn text(xml: &mut Xml, name: &str, content: &str) -> Written {
    xml.create_element(name).write_text_content(BytesText::new(&clean(content))).map(drop)
}

fn clean(text: &str) -> String {
    text.chars().filter(|c| is_xml(*c)).collect()
}

/// A list as `repomd.xml` names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataFile {
    /// `primary`, `filelists` or `other`.
    pub kind: String,
    /// Path relative to the folder that holds `repodata`.
    pub path: String,
    /// SHA-256 of the file in hex.
    pub sha256: String,
    /// Bytes of the file.
    pub size: u64,
    /// SHA-256 of the uncompressed content, in hex.
    pub open_sha256: String,
    /// Bytes of the uncompressed content.
    pub open_size: u64,
}

/// The prefix of a key's fingerprint in a tag of the repository: a key that clients get.
const KEYRING_KEY: &str = "keyring-key:";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repomd {
    /// Time in seconds since 1970; clients prefer the newer one.
    pub revision: i64,
    /// Fingerprints of the keys that clients get; empty to name none.
    pub keys: Vec<String>,
    pub data: Vec<DataFile>,
}

impl Repomd {
    pub fn render(&self) -> Result<Vec<u8>> {
        let spaces = [
            ("xmlns", "http://linux.duke.edu/metadata/repo"),
            ("xmlns:rpm", "http://linux.duke.edu/metadata/rpm"),
        ];
        let revision = self.revision.to_string();
        root("repomd", spaces.into_iter(), |xml| {
            text(xml, "revision", &revision)?;
            if !self.keys.is_empty() {
                xml.create_element("tags").write_inner_content(|xml| {
                    let mut keys = self.keys.iter().map(|key| format!("{KEYRING_KEY}{key}"));
                    keys.try_for_each(|key| text(xml, "repo", &key))
                })?;
            }
            self.data.iter().try_for_each(|file| data(xml, file, &revision))
        })
    }
}

fn data(xml: &mut Xml, file: &DataFile, revision: &str) -> Written {
    let element = xml.create_element("data").with_attribute(("type", file.kind.as_str()));
    element.write_inner_content(|xml| properties(xml, file, revision)).map(drop)
}

fn properties(xml: &mut Xml, file: &DataFile, revision: &str) -> Written {
    for (name, digest) in [("checksum", &file.sha256), ("open-checksum", &file.open_sha256)] {
        xml.create_element(name)
            .with_attribute(("type", "sha256"))
            .write_text_content(BytesText::new(digest))?;
    }
    empty(xml, "location", &[("href", file.path.as_str())])?;
    text(xml, "timestamp", revision)?;
    text(xml, "size", &file.size.to_string())?;
    text(xml, "open-size", &file.open_size.to_string())
}

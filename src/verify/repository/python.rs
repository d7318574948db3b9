//! The index of wheels: its pages against each other and against the wheels that they list.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rayon::prelude::*;
use rockpack_base::content::{Content, is_file};
use rockpack_base::error::Result;
use rockpack_base::formats::python_index::{self, ListedWheel, WheelPackage};
use rockpack_base::formats::wheel::{Version, WheelName};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::context::{Context, NamedFiles, has_plain_parts};
use super::html::{self, HtmlPage};
use super::states;
use crate::package::indexed::Facts;
use crate::package::releases::{OpenExtra, Releases};
use crate::verify::problem::{
    IndexDifference, IndexFault, IndexedDifference, OpenDependency, Problem,
};

/// The list of projects, by which an index is known.
const LIST: &str = "simple/index.json";

/// The list of projects for people and pip.
const HTML_LIST: &str = "simple/index.html";

/// Folders of pages and wheels, which hold nothing else.
pub(super) const FOLDERS: [&str; 2] = ["simple", "wheels"];

/// The fields of pages for programs that checks compare, and the time of an upload.
const FIELDS: &str = "meta api-version projects name versions files filename url hashes sha256 \
    size requires-python core-metadata dist-info-metadata yanked upload-time";

/// How relative URLs of wheels begin on the page of a project.
const UP: &str = "../../";

#[derive(Deserialize)]
struct Projects {
    meta: Meta,
    projects: Vec<Project>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Meta {
    api_version: String,
}

#[derive(Deserialize)]
struct Project {
    name: String,
}

#[derive(Deserialize)]
struct Page {
    meta: Meta,
    name: String,
    versions: BTreeSet<String>,
    files: Vec<File>,
}

/// A wheel on the page for programs.
#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
struct File {
    filename: String,
    url: String,
    hashes: Hashes,
    size: u64,
    requires_python: Option<String>,
    core_metadata: Hashes,
    dist_info_metadata: Hashes,
    yanked: Value,
}

#[derive(Deserialize, PartialEq)]
struct Hashes {
    sha256: String,
}

/// Tells whether there is an index of wheels.
pub(super) fn is_there(files: NamedFiles<'_>) -> Result<bool> {
    is_index(files.root)
}

/// Tells whether a folder has a list of projects.
pub(in crate::verify) fn is_index(root: &Path) -> Result<bool> {
    Ok(is_file(&root.join(LIST))? || is_file(&root.join(HTML_LIST))?)
}

/// Checks the pages and the wheels that they list.
pub(super) fn check(context: &mut Context<'_>) -> Result<()> {
    let Some(Projects { meta, projects }) = page(context, LIST)? else { return Ok(()) };
    check_interface(context, LIST, &meta.api_version);
    let names: Vec<String> = projects.into_iter().map(|project| project.name).collect();
    let stated = names.iter().map(|name| Link::new(name, [("href", format!("{name}/"))]));
    compare_html(context, HTML_LIST, &stated.collect())?;
    let (mut wheels, mut listed) = (BTreeMap::new(), Vec::new());
    for name in names {
        let path = format!("simple/{name}/index.json");
        let Some(page) = page::<Page>(context, &path)? else { continue };
        check_page(context, &path, &name, &page);
        let stated: BTreeSet<Link> = page.files.iter().map(File::link).collect();
        compare_html(context, &format!("simple/{name}/index.html"), &stated)?;
        wheels.extend(check_files(context, &path, &name, &page.files));
        listed.extend(page.files.into_iter().filter_map(|file| Some((path_of(&file.url)?, file))));
    }
    let listed = listed.iter().map(|(path, file)| (path.as_str(), file)).collect();
    states::compare(context, "python", listed, |_, indexed, yanked| {
        let Facts::Wheel(package) = &indexed.facts else { return None };
        let (size, sha256) = (indexed.size, indexed.sha256.as_str());
        let folder = format!("{UP}wheels/{}/", package.project);
        let wheel = ListedWheel { package, size, sha256, yanked };
        let page = python_index::Page::new(&package.project, folder, vec![wheel]).json().ok()?;
        serde_json::from_str::<Page>(&page).ok()?.files.pop()
    });
    for OpenExtra { wheel: file, extra, requires, gap } in Releases::of(&wheels).open_extras() {
        let dependency = OpenDependency::Wheel { extra, requires, gap };
        context.problems.add(Problem::DependencyOpen { file, dependency });
    }
    Ok(())
}

/// A page for programs; a problem where it cannot be read, or has a field that may change what clients do.
fn page<T: DeserializeOwned>(context: &mut Context<'_>, path: &str) -> Result<Option<T>> {
    let Some(bytes) = context.read(path)? else { return Ok(None) };
    match serde_json::from_slice(&bytes) {
        Ok(page) => {
            let all: Value = serde_json::from_slice(&bytes).unwrap_or_default();
            if let Some(field) = unknown_field(&all) {
                context.index_differs(path, IndexDifference::Field { field });
            }
            Ok(Some(page))
        }
        Err(error) => {
            context.bad_index(path, IndexFault::Unreadable { reason: error.to_string() });
            Ok(None)
        }
    }
}

/// The first field that no check compares, but for private ones and those without an effect (PEP 691, 708, 792).
fn unknown_field(value: &Value) -> Option<String> {
    match value {
        Value::Array(all) => all.iter().find_map(unknown_field),
        Value::Object(fields) => fields.iter().find_map(|(name, value)| {
            let is_idle = match value {
                Value::Array(all) => all.is_empty(),
                Value::Null | Value::Bool(false) => true,
                other => other["status"] == "active",
            };
            if is_idle || name.starts_with('_') {
                return None;
            }
            let is_known = FIELDS.split(' ').any(|known| known == name);
            if is_known { unknown_field(value) } else { Some(name.clone()) }
        }),
        _ => None,
    }
}

/// Checks what a page for programs says besides its files.
fn check_page(context: &mut Context<'_>, path: &str, project: &str, page: &Page) {
    check_interface(context, path, &page.meta.api_version);
    let versions: BTreeSet<Option<Version>> = page
        .files
        .iter()
        .filter_map(|file| file.filename.parse::<WheelName>().ok())
        .map(|it| it.parsed_version())
        .collect();
    let listed: BTreeSet<Option<Version>> =
        page.versions.iter().map(|version| version.parse().ok()).collect();
    let are_alike = page.files.iter().all(|file| file.core_metadata == file.dist_info_metadata);
    for (part, is_right) in [
        ("name", page.name == project),
        ("list of versions", versions == listed),
        ("dist-info-metadata", are_alike),
        ("yanked", page.files.iter().all(|it| it.yanked.is_boolean() || it.yanked.is_string())),
    ] {
        if !is_right {
            context.index_differs(path, IndexDifference::Part { part });
        }
    }
}

/// Reports a version of the interface that clients do not read.
fn check_interface(context: &mut Context<'_>, path: &str, version: &str) {
    let minor = version.strip_prefix("1.").and_then(|minor| minor.parse::<u32>().ok());
    if minor.is_none() {
        let version = version.to_owned();
        context.index_differs(path, IndexDifference::Interface { version });
    }
}

/// A link: its text and its attributes.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Link {
    text: String,
    attributes: BTreeMap<String, String>,
}

impl Link {
    fn new(text: &str, attributes: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        let attributes = attributes.into_iter().map(|(name, value)| (name.to_owned(), value));
        Self { text: text.to_owned(), attributes: attributes.collect() }
    }
}

impl File {
    /// The link to it on the page for people and pip.
    fn link(&self) -> Link {
        let metadata = format!("sha256={}", self.core_metadata.sha256);
        let yanked = match &self.yanked {
            Value::Bool(true) => Some(String::new()),
            reason => reason.as_str().map(str::to_owned),
        };
        let attributes = [
            ("href", Some(format!("{}#sha256={}", self.url, self.hashes.sha256))),
            ("data-requires-python", self.requires_python.clone()),
            ("data-core-metadata", Some(metadata.clone())),
            ("data-dist-info-metadata", Some(metadata)),
            ("data-yanked", yanked),
        ];
        let set = attributes.into_iter().filter_map(|(name, value)| Some((name, value?)));
        Link::new(&self.filename, set)
    }
}

/// Compares the links of a page for people and pip with those on the page for programs.
fn compare_html(context: &mut Context<'_>, path: &str, stated: &BTreeSet<Link>) -> Result<()> {
    let Some(bytes) = context.read(path)? else { return Ok(()) };
    let Ok(text) = String::from_utf8(bytes) else {
        context.bad_index(path, IndexFault::NotUtf8);
        return Ok(());
    };
    match html::read(&text) {
        Ok(HtmlPage { interfaces, links, foreign }) => {
            interfaces.iter().for_each(|version| check_interface(context, path, version));
            if let Some(element) = foreign {
                context.index_differs(path, IndexDifference::Element { element });
            }
            let links = links.into_iter().map(|(text, attributes)| Link { text, attributes });
            if links.collect::<BTreeSet<Link>>() != *stated {
                context.index_differs(path, IndexDifference::Page);
            }
        }
        Err(reason) => context.bad_index(path, IndexFault::Unreadable { reason }),
    }
    Ok(())
}

/// Checks the wheels of a project, which `page` lists, and returns those that can be read, by path.
fn check_files(
    context: &mut Context<'_>,
    page: &str,
    project: &str,
    listed: &[File],
) -> BTreeMap<String, WheelPackage> {
    let mut placed = Vec::new();
    for file in listed {
        match path_of(&file.url) {
            Some(path) => placed.push((path, file)),
            None => context.bad_index(page, IndexFault::NamesOutside { path: file.url.clone() }),
        }
    }
    let files = context.files;
    let seen: Vec<(Vec<Problem>, Option<WheelPackage>)> =
        placed.par_iter().map(|(path, file)| look(files, path, project, file)).collect();
    context.report.indexed += placed.len();
    let mut wheels = BTreeMap::new();
    for ((path, _), (faults, package)) in placed.into_iter().zip(seen) {
        context.named.extend([beside(&path), path.clone()]);
        faults.into_iter().for_each(|fault| context.problems.add(fault));
        wheels.extend(package.map(|package| (path, package)));
    }
    wheels
}

/// The path of a relative URL, which nothing but file names have percent signs in.
fn path_of(url: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = url.strip_prefix(UP)?.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            let digits = std::str::from_utf8(&digits).ok()?.to_owned();
            bytes.push(u8::from_str_radix(&digits, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    let path = String::from_utf8(bytes).ok()?;
    has_plain_parts(&path).then_some(path)
}

fn beside(wheel: &str) -> String {
    format!("{wheel}.metadata")
}

/// The faults of a wheel, and of METADATA beside it, with the wheel if it can be read.
fn look(
    files: NamedFiles<'_>,
    path: &str,
    project: &str,
    listed: &File,
) -> (Vec<Problem>, Option<WheelPackage>) {
    let (mut faults, mut package) = (Vec::new(), None);
    let beside = beside(path);
    let compare = |wheel: &Content| compare(wheel, path, project, listed, &mut package);
    let of_wheel = files.look(path, &mut faults, compare);
    let of_metadata = files.look(&beside, &mut faults, |it| compare_metadata(it, listed));
    for (file, properties) in [(path, of_wheel), (&*beside, of_metadata)] {
        faults.extend(properties.into_iter().flatten().map(|property| {
            let difference = IndexedDifference::Property(property.to_owned());
            Problem::PackageMismatch { file: file.to_owned(), difference }
        }));
    }
    (faults, package)
}

/// The properties of a wheel in which it is not the one that is listed; `read` gets what was read.
fn compare(
    content: &Content,
    path: &str,
    project: &str,
    listed: &File,
    read: &mut Option<WheelPackage>,
) -> Result<Vec<&'static str>> {
    let package = read.insert(WheelPackage::read(content, &listed.filename)?);
    let checks = [
        ("size", content.len() == listed.size),
        ("SHA-256", content.digest()?.to_string() == listed.hashes.sha256),
        ("file name", path.rsplit('/').next() == Some(listed.filename.as_str())),
        ("project", package.project == project),
        ("Requires-Python", package.requires_python == listed.requires_python),
        ("METADATA", package.metadata.sha256 == listed.core_metadata.sha256),
    ];
    Ok(checks.into_iter().filter(|(_, is_same)| !is_same).map(|(what, _)| what).collect())
}

fn compare_metadata(content: &Content, listed: &File) -> Result<Vec<&'static str>> {
    let is_same = content.digest()?.to_string() == listed.core_metadata.sha256;
    Ok(if is_same { Vec::new() } else { vec!["SHA-256"] })
}

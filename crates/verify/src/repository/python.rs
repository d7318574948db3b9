//! Checks an index of wheels and source distributions: its pages against each other and against the listed files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use quick_xml::Reader;
use quick_xml::events::Event;
use rayon::prelude::*;
use rockpack_archive::python_index::{WheelPackage, is_upload_time};
use rockpack_core::content::{Content, is_file};
use rockpack_core::error::Result;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::context::{Context, INDEX_MAX, NamedFiles, has_plain_parts, names_outside};
use super::states;
use crate::problem::{PackagePath, Problem};
use rockpack_package::device_wheel::is_of_split;
use rockpack_package::releases::{IncompleteExtra, Releases};

/// The list of projects for programs.
const LIST: &str = "simple/index.json";

/// The list of projects for people and pip.
const HTML_LIST: &str = "simple/index.html";

/// Folders that contain only pages and wheels.
pub(super) const FOLDERS: [&str; 2] = ["simple", "wheels"];

/// The prefix of relative wheel URLs on the page of a project.
const UP: &str = "../../";

type Link = BTreeMap<String, String>;

#[derive(Deserialize)]
struct Projects {
    projects: Vec<Project>,
}

#[derive(Deserialize)]
struct Project {
    name: String,
}

#[derive(Deserialize)]
struct Page {
    files: Vec<File>,
}

/// A wheel on the page for programs.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct File {
    filename: String,
    url: String,
    hashes: Hashes,
    size: u64,
    upload_time: Option<String>,
    requires_python: Option<String>,
    core_metadata: Option<Hashes>,
    yanked: Value,
}

#[derive(Deserialize)]
struct Hashes {
    sha256: String,
}

/// Whether a folder has a list of projects.
pub(crate) fn is_index(root: &Path) -> Result<bool> {
    Ok(is_file(&root.join(LIST))? || is_file(&root.join(HTML_LIST))?)
}

/// Checks the pages and the wheels that they list.
pub(super) fn check(context: &mut Context<'_>) -> Result<()> {
    let Some(Projects { projects }) = page(context, LIST)? else { return Ok(()) };
    let stated = projects.iter().map(|it| link([("href", Some(format!("{}/", it.name)))]));
    compare_html(context, HTML_LIST, &stated.collect())?;
    let (mut wheels, mut listed) = (BTreeMap::new(), Vec::new());
    for Project { name } in projects {
        let path = format!("simple/{name}/index.json");
        let Some(Page { files }) = page(context, &path)? else { continue };
        let stated: BTreeSet<Link> = files.iter().map(File::link).collect();
        compare_html(context, &format!("simple/{name}/index.html"), &stated)?;
        wheels.extend(check_files(context, &path, &name, &files));
        let files = files.into_iter();
        listed.extend(files.filter_map(|file| Some((path_of(&file.url)?, file.hashes.sha256))));
    }
    let listed_count = listed.len();
    let listed = listed.iter().map(|(path, sha256)| (path.as_str(), sha256.as_str()));
    states::compare(context, "python", listed.collect());
    // Stale rows of RECORD are tolerated in wheels that were not split.
    for (path, package) in &wheels {
        for (member, fault) in &package.stale {
            let file = PackagePath { package: path.clone(), path: format!("/{member}") };
            let problem = Problem::WheelRecord { file, fault: fault.clone() };
            if context.trust.strict || is_of_split(package) {
                context.problems.add(problem);
            } else {
                context.report.tolerated.push(problem);
            }
        }
    }
    // Others may require a wheel that cannot be read, which is already reported.
    let extras = if wheels.len() < listed_count {
        BTreeSet::new()
    } else {
        Releases::of(&wheels).incomplete_extras()
    };
    for IncompleteExtra { wheel: file, extra, requires, gap } in extras {
        let reason = gap.describe(&extra, &requires);
        context.problems.add(Problem::DependencyOpen { file, reason });
    }
    Ok(())
}

/// A page for programs. Reports an invalid page.
fn page<T: DeserializeOwned>(context: &mut Context<'_>, path: &str) -> Result<Option<T>> {
    let Some(bytes) = context.read(path, INDEX_MAX)? else { return Ok(None) };
    let page: serde_json::Result<T> = serde_json::from_slice(&bytes);
    Ok(page.inspect_err(|error| context.bad_index(path, error.to_string())).ok())
}

fn link<const N: usize>(attributes: [(&str, Option<String>); N]) -> Link {
    let set = attributes.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    set.collect()
}

impl File {
    /// The link to it on the page for people and pip.
    fn link(&self) -> Link {
        let metadata = self.core_metadata.as_ref().map(|it| format!("sha256={}", it.sha256));
        let yanked = match &self.yanked {
            Value::Bool(true) => Some(String::new()),
            reason => reason.as_str().map(str::to_owned),
        };
        link([
            ("href", Some(format!("{}#sha256={}", self.url, self.hashes.sha256))),
            ("data-requires-python", self.requires_python.clone()),
            ("data-core-metadata", metadata.clone()),
            ("data-dist-info-metadata", metadata),
            ("data-upload-time", self.upload_time.clone()),
            ("data-yanked", yanked),
        ])
    }
}

/// Compares the links of a page for people and pip with those on the page for programs.
fn compare_html(context: &mut Context<'_>, path: &str, stated: &BTreeSet<Link>) -> Result<()> {
    let Some(bytes) = context.read(path, INDEX_MAX)? else { return Ok(()) };
    match links(&String::from_utf8_lossy(&bytes)) {
        Ok(links) if links == *stated => {}
        Ok(_) => context.index_differs(path, "differs from index.json next to it"),
        Err(reason) => context.bad_index(path, reason),
    }
    Ok(())
}

/// The links of a page; the error is a reason.
fn links(page: &str) -> Result<BTreeSet<Link>, String> {
    let mut reader = Reader::from_str(page);
    let config = reader.config_mut();
    // `meta` and `br` have no end tag.
    (config.check_end_names, config.allow_unmatched_ends) = (false, true);
    let mut links = BTreeSet::new();
    loop {
        match reader.read_event().map_err(|error| error.to_string())? {
            Event::Eof => return Ok(links),
            Event::Start(element) | Event::Empty(element)
                if element.name().as_ref().eq_ignore_ascii_case("a") =>
            {
                let mut link = Link::new();
                for attribute in element.html_attributes().with_checks(false) {
                    let attribute = attribute.map_err(|error| error.to_string())?;
                    let value = quick_xml::escape::unescape(&attribute.value)
                        .map_err(|error| error.to_string())?;
                    link.insert(attribute.key.as_ref().to_ascii_lowercase(), value.into_owned());
                }
                links.insert(link);
            }
            _ => {}
        }
    }
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
        if let Some(time) = file.upload_time.as_ref().filter(|time| !is_upload_time(time)) {
            let (name, time) = (&file.filename, time.escape_debug());
            let reason = format!("{name} has the invalid upload-time `{time}` (not UTC)");
            context.bad_index(page, reason);
        }
        match path_of(&file.url) {
            Some(path) => placed.push((path, file)),
            None => context.bad_index(page, names_outside(&file.url)),
        }
    }
    let files = context.files;
    let seen: Vec<(Vec<Problem>, Option<WheelPackage>)> =
        placed.par_iter().map(|(path, file)| check_file(files, path, project, file)).collect();
    context.report.indexed += placed.len();
    let mut wheels = BTreeMap::new();
    for ((path, file), (faults, package)) in placed.into_iter().zip(seen) {
        context.named.extend(file.core_metadata.as_ref().map(|_| metadata_path(&path)));
        context.named.insert(path.clone());
        faults.into_iter().for_each(|fault| context.problems.add(fault));
        wheels.extend(package.map(|package| (path, package)));
    }
    wheels
}

/// The path of a relative URL after percent-decoding.
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

fn metadata_path(wheel: &str) -> String {
    format!("{wheel}.metadata")
}

/// The faults of a wheel and of the METADATA next to it, with the wheel if it can be read.
fn check_file(
    files: NamedFiles<'_>,
    path: &str,
    project: &str,
    listed: &File,
) -> (Vec<Problem>, Option<WheelPackage>) {
    let mut package = None;
    let mut faults = files.faults(path, |it| compare(it, path, project, listed, &mut package));
    if let Some(stated) = &listed.core_metadata {
        faults.extend(files.faults(&metadata_path(path), |it| {
            let is_same = it.digest()?.to_string() == stated.sha256;
            Ok(if is_same { Vec::new() } else { vec!["SHA-256"] })
        }));
    }
    (faults, package)
}

/// The properties of a wheel that differ from the list; sets `read` to the wheel.
fn compare(
    content: &Content,
    path: &str,
    project: &str,
    listed: &File,
    read: &mut Option<WheelPackage>,
) -> Result<Vec<&'static str>> {
    let package = read.insert(WheelPackage::read(content, &listed.filename)?);
    let stated = listed.core_metadata.as_ref().map(|it| &it.sha256);
    let checks = [
        ("size", content.len() == listed.size),
        ("SHA-256", content.digest()?.to_string() == listed.hashes.sha256),
        ("file name", path.rsplit('/').next() == Some(listed.filename.as_str())),
        ("project", package.project == project),
        ("Requires-Python", package.requires_python == listed.requires_python),
        ("METADATA", package.metadata.as_ref().map(|it| &it.sha256) == stated),
    ];
    Ok(checks.into_iter().filter(|(_, is_same)| !is_same).map(|(what, _)| what).collect())
}

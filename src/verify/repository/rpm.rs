//! The rpm repository.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ::rpm::{DependencyFlags as Flags, IndexTag, PackageMetadata};
use rayon::prelude::*;

use super::closure::{self, Node, Rules, Sign, Wish};
use super::keys::Keys;
use super::xml::Element;
use super::{Check, Context, open, place, sha256};
use crate::content::Content;
use crate::error::{Error, Result};
use crate::formats::rpm::{self, Front};

const REPOMD: &str = "repodata/repomd.xml";

/// What the lists of packages are called; other files that `repomd.xml` names are left to their
/// digests.
const LISTS: [&str; 3] = ["primary", "filelists", "other"];

/// Of the symbols of this library that a package requires, createrepo_c keeps the newest version.
const LIBC: &str = "libc.so.6";

/// The lists by kind.
type Lists = BTreeMap<String, Element>;

/// Checks `repodata` and the packages that it names.
pub(super) fn check(context: &mut Context<'_>) -> Result<()> {
    let Some(bytes) = context.read(REPOMD)? else {
        return Ok(());
    };
    check_signature(context, &bytes)?;
    let repomd = match Element::parse(&bytes) {
        Ok(repomd) => repomd,
        Err(error) => {
            context.add(Check::BadIndex, REPOMD, error.to_string());
            return Ok(());
        }
    };
    let mut lists = Lists::new();
    for data in repomd.all("data") {
        if let Some(list) = list(context, data)? {
            lists.insert(data.attribute("type").to_owned(), list);
        }
    }
    let Some(primary) = lists.get("primary") else {
        context.add(Check::BadIndex, REPOMD, "lists no primary that can be read");
        return Ok(());
    };
    check_ids(context, primary, &lists);
    check_packages(context, primary, lists.get("filelists"));
    check_closure(context, primary);
    Ok(())
}

fn check_signature(context: &mut Context<'_>, repomd: &[u8]) -> Result<()> {
    let path = format!("{REPOMD}.asc");
    let keyed = !context.trust.keys.is_empty();
    if !context.root.join(&path).is_file() {
        if keyed {
            context.add(Check::BadSignature, &path, "is not there");
        }
        return Ok(());
    }
    let Some(signature) = context.read(&path)? else {
        return Ok(());
    };
    if keyed {
        match context.trust.keys.check_detached(&signature, repomd) {
            Ok(()) => context.report.signatures += 1,
            Err(error) => context.add(Check::BadSignature, &path, error.to_string()),
        }
    }
    Ok(())
}

/// A list of packages that `repomd.xml` names, if it is the one that it names and can be read.
fn list(context: &mut Context<'_>, data: &Element) -> Result<Option<Element>> {
    let path = data.attribute_of("location", "href").to_owned();
    if place(context.root, &path).is_none() {
        context.add(Check::BadIndex, REPOMD, format!("names `{}`", path.escape_debug()));
        return Ok(None);
    }
    let Some(bytes) = context.read(&path)? else {
        return Ok(None);
    };
    if data.attribute_of("checksum", "type") != "sha256" {
        context.add(Check::BadIndex, &path, "is listed without SHA-256");
        return Ok(None);
    }
    let same = |bytes: &[u8], size: &str, digest: &str| {
        let stated = |name: &str| data.child(name).map(|child| child.text.as_str());
        let own = data.attribute_of(digest, "type") == "sha256";
        stated(size).is_none_or(|size| size == bytes.len().to_string())
            && (!own || stated(digest).is_none_or(|digest| digest == sha256(bytes)))
    };
    if !same(&bytes, "size", "checksum") {
        context.add(Check::IndexMismatch, &path, "is not the one that repomd.xml lists");
        return Ok(None);
    }
    if !LISTS.contains(&data.attribute("type")) {
        return Ok(None);
    }
    let text = match open(&path, &bytes) {
        Ok(text) => text,
        Err(error) => {
            context.add(Check::BadIndex, &path, error.to_string());
            return Ok(None);
        }
    };
    if !same(&text, "open-size", "open-checksum") {
        context.add(Check::IndexMismatch, &path, "holds another text than repomd.xml lists");
    }
    match Element::parse(&text) {
        Ok(list) => Ok(Some(list)),
        Err(error) => {
            context.add(Check::BadIndex, &path, error.to_string());
            Ok(None)
        }
    }
}

/// All lists have the same packages, each once.
fn check_ids(context: &mut Context<'_>, primary: &Element, lists: &Lists) {
    let ids: Vec<&str> = primary.all("package").map(|p| p.text_of("checksum")).collect();
    let set: BTreeSet<&str> = ids.iter().copied().collect();
    if set.len() != ids.len() {
        context.add(Check::IndexInconsistent, REPOMD, "primary has a package twice");
    }
    for kind in LISTS.into_iter().skip(1) {
        let Some(list) = lists.get(kind) else {
            context.add(Check::IndexInconsistent, REPOMD, format!("has no {kind}"));
            continue;
        };
        let others: BTreeSet<&str> = list.all("package").map(|p| p.attribute("pkgid")).collect();
        if others != set {
            let message = format!("{kind} has other packages than primary");
            context.add(Check::IndexInconsistent, REPOMD, message);
        }
    }
}

/// A fault of a package, or that its signature is good.
enum Seen {
    Fault(Check, String),
    GoodSignature,
}

fn check_packages(context: &mut Context<'_>, primary: &Element, filelists: Option<&Element>) {
    let paths = filelists.map(|list| {
        let paths = |package: &Element| {
            package.all("file").map(|file| file.text.clone()).collect::<BTreeSet<_>>()
        };
        let by_id = list.all("package").map(|p| (p.attribute("pkgid").to_owned(), paths(p)));
        by_id.collect::<BTreeMap<_, _>>()
    });
    let packages: Vec<&Element> = primary.all("package").collect();
    let (root, keys) = (context.root, &context.trust.keys);
    let insist = insists_on_signatures(root);
    let look = |package: &&Element| {
        let id = package.text_of("checksum");
        let paths = paths.as_ref().and_then(|paths| paths.get(id));
        package_seen(root, package, paths, (keys, insist))
    };
    let seen: Vec<Vec<Seen>> = packages.par_iter().map(look).collect();
    for (package, seen) in packages.iter().zip(seen) {
        let path = package.attribute_of("location", "href");
        context.named.insert(path.to_owned());
        context.report.indexed += 1;
        for seen in seen {
            match seen {
                Seen::Fault(check, message) => context.add(check, path, message),
                Seen::GoodSignature => context.report.signatures += 1,
            }
        }
    }
}

/// Whether a `.repo` file beside the indexes tells clients to refuse packages without signature.
fn insists_on_signatures(root: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(root) else {
        return false;
    };
    let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let repos = files.filter(|path| path.extension().is_some_and(|ending| ending == "repo"));
    let texts = repos.filter_map(|path| std::fs::read_to_string(path).ok());
    texts.into_iter().any(|text| text.lines().any(|line| line.trim() == "gpgcheck=1"))
}

fn package_seen(
    root: &Path,
    package: &Element,
    paths: Option<&BTreeSet<String>>,
    (keys, insist): (&Keys, bool),
) -> Vec<Seen> {
    let file = place(root, package.attribute_of("location", "href"));
    let Some(file) = file.filter(|file| file.is_file()) else {
        return vec![Seen::Fault(Check::PackageMissing, "is in an index, but not there".into())];
    };
    match compare(&file, package, paths, (keys, insist)) {
        Ok(seen) => seen,
        Err(error) => vec![Seen::Fault(Check::PackageMismatch, error.to_string())],
    }
}

fn compare(
    file: &Path,
    package: &Element,
    paths: Option<&BTreeSet<String>>,
    (keys, insist): (&Keys, bool),
) -> Result<Vec<Seen>> {
    let content = Content::open(file)?;
    let mut differ = BTreeSet::new();
    let mut compare = |what: &'static str, stated: &str, own: &str| {
        if stated != own {
            differ.insert(what);
        }
    };
    compare("size", package.attribute_of("size", "package"), &content.len().to_string());
    compare("checksum's type", package.attribute_of("checksum", "type"), "sha256");
    compare("checksum", package.text_of("checksum"), &content.sha256_hex()?);
    let front = Front::read(&content)?;
    let metadata = &front.metadata;
    let fault = |e: ::rpm::Error| Error::malformed("has bad tags").cause(e);
    compare("name", package.text_of("name"), metadata.get_name().map_err(fault)?);
    if !metadata.is_source_package() {
        compare("arch", package.text_of("arch"), metadata.get_arch().map_err(fault)?);
    }
    let version = package.child("version");
    let version = |name: &str| version.map_or("", |version| version.attribute(name));
    let epoch = match metadata.header.entry_is_present(IndexTag::RPMTAG_EPOCH) {
        true => metadata.get_epoch().map_err(fault)?,
        false => 0,
    };
    compare("version", version("epoch"), &epoch.to_string());
    compare("version", version("ver"), metadata.get_version().map_err(fault)?);
    compare("version", version("rel"), metadata.get_release().map_err(fault)?);
    if let Some(format) = package.child("format") {
        let range = |name: &str| format.attribute_of("rpm:header-range", name);
        compare("header range", range("start"), &front.header.start.to_string());
        compare("header range", range("end"), &front.header.end.to_string());
    }
    compare_dependencies(package, metadata, &mut compare)?;
    if let Some(paths) = paths {
        let own = metadata.get_file_paths().map_err(fault)?;
        let own: BTreeSet<String> =
            own.into_iter().map(|path| path.to_string_lossy().into_owned()).collect();
        let same = own == *paths;
        compare("list of files", if same { "" } else { "other" }, "");
    }
    let faults = differ.into_iter().map(|what| {
        Seen::Fault(Check::PackageMismatch, format!("its {what} is not the one of the index"))
    });
    let mut seen: Vec<Seen> = faults.collect();
    seen.extend(signature(&content, &front, keys, insist)?);
    Ok(seen)
}

/// What it provides, and that it requires nothing that the index does not name: an index may leave
/// out what the package itself meets.
fn compare_dependencies(
    package: &Element,
    metadata: &PackageMetadata,
    compare: &mut dyn FnMut(&'static str, &str, &str),
) -> Result<()> {
    let fault = |e: ::rpm::Error| Error::malformed("has bad tags").cause(e);
    let all = [
        ("provides", "rpm:provides", metadata.get_provides()),
        ("requires", "rpm:requires", metadata.get_requires()),
        ("conflicts", "rpm:conflicts", metadata.get_conflicts()),
        ("obsoletes", "rpm:obsoletes", metadata.get_obsoletes()),
        ("recommends", "rpm:recommends", metadata.get_recommends()),
        ("supplements", "rpm:supplements", metadata.get_supplements()),
        ("suggests", "rpm:suggests", metadata.get_suggests()),
        ("enhances", "rpm:enhances", metadata.get_enhances()),
    ];
    for (what, element, own) in all {
        let own = own.map_err(fault)?;
        let own: BTreeSet<(String, String)> = own.iter().map(line).collect();
        let entries = package.child("format").and_then(|format| format.child(element));
        let entries = entries.map_or(&[][..], |list| list.children.as_slice());
        let stated: BTreeSet<(String, String)> = entries.iter().map(entry_line).collect();
        let has_libc = stated.iter().any(|(name, _)| name.starts_with(LIBC));
        let may_lack = |(name, _): &&(String, String)| {
            let less = name.starts_with(LIBC) && has_libc;
            what == "requires" && (less || name.starts_with("rpmlib(") || is_own(metadata, name))
        };
        let lost = own.difference(&stated).filter(|line| !may_lack(line)).count();
        let more = stated.difference(&own).count();
        compare(what, if lost + more == 0 { "" } else { "other" }, "");
    }
    Ok(())
}

/// Whether the package provides a name, or has a file of it, itself.
fn is_own(metadata: &PackageMetadata, name: &str) -> bool {
    let provided = metadata.get_provides().unwrap_or_default();
    provided.iter().any(|dependency| dependency.name == name)
        || metadata
            .get_file_paths()
            .unwrap_or_default()
            .iter()
            .any(|path| path.to_str() == Some(name))
}

/// A dependency as name and bound.
fn line(dependency: &::rpm::Dependency) -> (String, String) {
    let has = |flag| dependency.flags.contains(flag);
    let sign = match (has(Flags::LESS), has(Flags::GREATER), has(Flags::EQUAL)) {
        (false, false, true) => "EQ",
        (true, false, false) => "LT",
        (false, true, false) => "GT",
        (true, false, true) => "LE",
        (false, true, true) => "GE",
        _ => return (dependency.name.clone(), String::new()),
    };
    let version = &dependency.version;
    let version = version.strip_prefix("0:").unwrap_or(version);
    (dependency.name.clone(), format!("{sign} {version}"))
}

fn entry_line(entry: &Element) -> (String, String) {
    let name = entry.attribute("name").to_owned();
    match entry.attribute("flags") {
        "" => (name, String::new()),
        sign => (name, format!("{sign} {}", evr(entry))),
    }
}

/// `[epoch:]version[-release]`.
fn evr(element: &Element) -> String {
    let part = |name: &str| element.attribute(name);
    let epoch = match part("epoch") {
        "" | "0" => String::new(),
        epoch => format!("{epoch}:"),
    };
    let release = match part("rel") {
        "" => String::new(),
        release => format!("-{release}"),
    };
    format!("{epoch}{}{release}", part("ver"))
}

/// The signature over the header.
fn signature(content: &Content, front: &Front, keys: &Keys, insist: bool) -> Result<Option<Seen>> {
    let fault = |e: ::rpm::Error| Error::malformed("has a bad signature tag").cause(e);
    let signatures = front.metadata.raw_signatures().map_err(fault)?;
    if signatures.is_empty() {
        let message = "is not signed, and the .repo file says gpgcheck=1".to_owned();
        return Ok(insist.then_some(Seen::Fault(Check::BadSignature, message)));
    }
    if keys.is_empty() {
        return Ok(None);
    }
    let header = front.header.clone();
    let header = content.read_vec(header, u64::MAX, "rpm header")?;
    let good = signatures.iter().any(|one| keys.check_packets(one, &header).is_ok());
    Ok(Some(match good {
        true => Seen::GoodSignature,
        false => {
            let message = "its header is signed by none of the keys given".to_owned();
            Seen::Fault(Check::BadSignature, message)
        }
    }))
}

fn check_closure(context: &mut Context<'_>, primary: &Element) {
    let nodes: Vec<(Node, String)> = primary.all("package").map(node).collect();
    let known: BTreeSet<&str> =
        nodes.iter().flat_map(|(node, _)| &node.offers).map(|(name, _)| name.as_str()).collect();
    let archs: BTreeSet<&str> = nodes.iter().map(|(_, arch)| arch.as_str()).collect();
    let own = |arch: &&&str| !["noarch", "src"].contains(*arch);
    let machines: Vec<&str> = archs.iter().filter(own).copied().collect();
    let machines = if machines.is_empty() { vec!["noarch"] } else { machines };
    let rules = Rules { compare: compare_versions, bare_meets: true };
    for machine in machines {
        let together = nodes.iter().filter(|(_, arch)| arch == machine || arch == "noarch");
        let together: Vec<&Node> = together.map(|(node, _)| node).collect();
        let (open, elsewhere) = closure::open(&together, &known, rules);
        context.report.elsewhere += elsewhere;
        for (path, wish) in open {
            let message = format!("requires {wish}, which no package for {machine} is");
            context.add(Check::DependencyOpen, &path, message);
        }
    }
}

/// Where one of the two has no release, it is not compared.
fn compare_versions(left: &str, right: &str) -> Ordering {
    let bare = |evr: &str| evr.split('-').next().unwrap_or_default().to_owned();
    match left.contains('-') && right.contains('-') {
        true => rpm::compare_versions(left, right),
        false => rpm::compare_versions(&bare(left), &bare(right)),
    }
}

/// A package and its architecture. Files and rich dependencies are for the client's solver.
fn node(package: &Element) -> (Node, String) {
    let entries = |list: &str| {
        let format = package.child("format").and_then(|format| format.child(list));
        format.map_or(&[][..], |list| list.children.as_slice())
    };
    let bound = |entry: &Element| Sign::of(entry.attribute("flags")).map(|sign| (sign, evr(entry)));
    let offers = entries("rpm:provides").iter().map(|entry| {
        (entry.attribute("name").to_owned(), bound(entry).map(|(_, version)| version))
    });
    let plain = |entry: &&Element| !entry.attribute("name").starts_with(['/', '(']);
    let wishes = entries("rpm:requires")
        .iter()
        .filter(plain)
        .map(|entry| vec![Wish { name: entry.attribute("name").to_owned(), bound: bound(entry) }]);
    let path = package.attribute_of("location", "href").to_owned();
    let node = Node { path, offers: offers.collect(), wishes: wishes.collect() };
    (node, package.text_of("arch").to_owned())
}

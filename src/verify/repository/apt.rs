//! A suite of an apt repository.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use super::super::twice::identity;
use super::closure::{self, Node, Rules, Sign, Wish};
use super::places::{self, Place};
use super::{Check, Context, method, named_file, open, sha256, sha512};
use crate::content::{Content, is_file, is_there};
use crate::error::{Error, Result};
use crate::formats::apt_index::{self, IndexFile, Release, parse_date};
use crate::formats::deb::{FieldName, Fields, compare_versions, parse_fields, read_control};

/// Fields of an index that packages do not have.
const OF_THE_INDEX: [&str; 7] =
    ["Filename", "Size", "MD5sum", "SHA1", "SHA256", "SHA512", "Description-md5"];

/// Endings of compressed indexes. `Release` lists an index uncompressed, too, even where only
/// compressed forms of it are stored, as those of Debian's archives are.
///
/// Source: the Debian wiki's page on the format of repositories, on `MD5Sum, SHA1, SHA256`.
const COMPRESSED: [&str; 6] = ["gz", "bz2", "xz", "lzma", "lz4", "zst"];

/// Checks the suite `dists/<suite>`.
pub(super) fn check(context: &mut Context<'_>, suite: &str) -> Result<()> {
    let folder = format!("dists/{suite}");
    let Some((subject, text)) = release_text(context, &folder)? else {
        return Ok(());
    };
    let release = match Release::parse(&text) {
        Ok(release) => release,
        Err(error) => {
            context.add(Check::BadIndex, &subject, error.to_string());
            return Ok(());
        }
    };
    check_expiry(context, &subject, &release);
    let mut indexes: BTreeMap<String, String> = BTreeMap::new();
    for file in &release.files {
        check_index(context, &folder, &release, file, &mut indexes)?;
    }
    let packages = packages(context, &indexes);
    check_packages(context, &packages);
    places::check(context, packages.iter().map(Listed::place));
    check_closure(context, &packages);
    Ok(())
}

/// The text of `Release`, which `InRelease` and `Release.gpg` are held against, or of an `InRelease`
/// alone; and which file that is.
fn release_text(context: &mut Context<'_>, folder: &str) -> Result<Option<(String, String)>> {
    let [path, clear, detached] =
        ["Release", "InRelease", "Release.gpg"].map(|name| format!("{folder}/{name}"));
    let there = |path: &str| is_file(&context.root.join(path));
    let (plain, has_clear, has_detached) = (there(&path)?, there(&clear)?, there(&detached)?);
    let keyed = !context.trust.keys.is_empty();
    // apt asks for InRelease first, and is content with it.
    if keyed && !has_clear && !(plain && has_detached) {
        context.add(Check::BadSignature, &clear, "is not there");
    }
    if !plain && has_clear {
        let Some(bytes) = context.read(&clear)? else { return Ok(None) };
        return Ok(match clear_text(context, &bytes) {
            Ok(text) => {
                context.report.signatures += usize::from(keyed);
                Some((clear, text))
            }
            Err(error) => {
                context.add(Check::BadSignature, &clear, error.to_string());
                None
            }
        });
    }
    let Some(bytes) = context.read(&path)? else {
        return Ok(None);
    };
    let Ok(text) = String::from_utf8(bytes) else {
        context.add(Check::BadIndex, &path, "is no UTF-8");
        return Ok(None);
    };
    for (path, there) in [(&clear, has_clear), (&detached, has_detached)] {
        let Some(bytes) = (if there { context.read(path)? } else { None }) else {
            continue;
        };
        let checked = match path == &clear {
            true => check_clear(context, &bytes, &text),
            false if keyed => context.trust.keys.check_detached(&bytes, text.as_bytes()),
            false => Ok(()),
        };
        match checked {
            Ok(()) if keyed => context.report.signatures += 1,
            Ok(()) => {}
            Err(error) => context.add(Check::BadSignature, path, error.to_string()),
        }
    }
    Ok(Some((path, text)))
}

/// The text of a clear-signed file, which one of the keys signed if there are keys.
fn clear_text(context: &Context<'_>, bytes: &[u8]) -> Result<String> {
    let message = std::str::from_utf8(bytes).map_err(|_| Error::malformed("is no UTF-8"))?;
    let (text, signed) = context.trust.keys.clear_text(message)?;
    match signed || context.trust.keys.is_empty() {
        true => Ok(text),
        false => Err(Error::malformed("is signed by none of the keys given")),
    }
}

fn check_clear(context: &Context<'_>, bytes: &[u8], release: &str) -> Result<()> {
    match clear_text(context, bytes)?.trim_end() == release.trim_end() {
        true => Ok(()),
        false => Err(Error::malformed("has another text than Release")),
    }
}

fn check_expiry(context: &mut Context<'_>, subject: &str, release: &Release) {
    match release.field("Valid-Until").map(parse_date) {
        Some(Ok(until)) if until < context.trust.now => {
            let until = release.field("Valid-Until").unwrap_or_default();
            context.add(Check::ReleaseExpired, subject, format!("was valid until {until}"));
        }
        Some(Err(error)) => context.add(Check::BadIndex, subject, error.to_string()),
        _ => {}
    }
    if let Some(Err(error)) = release.field("Date").map(parse_date) {
        context.add(Check::BadIndex, subject, error.to_string());
    }
}

/// An index by its own name and by its digests; the text of those that list packages is kept, and
/// all forms of one must have it.
fn check_index(
    context: &mut Context<'_>,
    folder: &str,
    release: &Release,
    file: &IndexFile,
    indexes: &mut BTreeMap<String, String>,
) -> Result<()> {
    let path = format!("{folder}/{}", file.path);
    let above = path.rsplit_once('/').map_or("", |(above, _)| above);
    let digests = [("SHA256", Some(&file.sha256)), ("SHA512", file.sha512.as_ref())];
    let digests = digests.into_iter().filter_map(|(name, digest)| Some((name, digest?)));
    let hashed: Vec<String> =
        digests.map(|(name, digest)| format!("{above}/by-hash/{name}/{digest}")).collect();
    let by_hash = release.field("Acquire-By-Hash") == Some("yes");
    if by_hash {
        context.named.extend(hashed.iter().cloned());
    }
    let forms = compressed_forms(context, folder, release, file)?;
    if !forms.is_empty() && !is_there(&context.root.join(&path))? {
        return check_unstored(context, &path, file, &forms);
    }
    let Some(bytes) = context.read(&path)? else {
        return Ok(());
    };
    let same = |bytes: &[u8]| is_as_listed(bytes, file);
    if !same(&bytes) {
        context.add(Check::IndexMismatch, &path, "is not the one that Release lists");
        return Ok(());
    }
    for hashed in hashed.iter().filter(|_| by_hash) {
        if context.read(hashed)?.is_some_and(|bytes| !same(&bytes)) {
            context.add(Check::IndexMismatch, hashed, "does not have that digest");
        }
    }
    let name = path.rsplit('/').next().unwrap_or_default();
    let other_form = |other: &&IndexFile| {
        let folder = file.path.rsplit_once('/').map(|(folder, _)| folder);
        let (other_folder, other_name) = other.path.rsplit_once('/').unwrap_or(("", &other.path));
        Some(other_folder) == folder && is_list(other_name) && method(other_name).is_some()
    };
    // Forms that only some clients read, like bz2, are left to their digests.
    if is_list(name) && (method(name).is_some() || !release.files.iter().any(|f| other_form(&f))) {
        keep_text(context, (&path, above), &bytes, indexes);
    }
    Ok(())
}

/// Whether these are the bytes of an index that `Release` lists.
fn is_as_listed(bytes: &[u8], file: &IndexFile) -> bool {
    bytes.len() as u64 == file.size
        && sha256(bytes) == file.sha256
        && file.sha512.as_ref().is_none_or(|digest| sha512(bytes) == *digest)
}

/// The compressed forms of `file` that are listed and there.
fn compressed_forms(
    context: &Context<'_>,
    folder: &str,
    release: &Release,
    file: &IndexFile,
) -> Result<Vec<String>> {
    let is_form = |other: &&IndexFile| {
        let ending = other.path.strip_prefix(&file.path).and_then(|rest| rest.strip_prefix('.'));
        ending.is_some_and(|ending| COMPRESSED.contains(&ending))
    };
    let mut forms = Vec::new();
    for other in release.files.iter().filter(is_form) {
        let path = format!("{folder}/{}", other.path);
        if named_file(context.root, &path)?.is_some() {
            forms.push(path);
        }
    }
    Ok(forms)
}

/// An index that is there in other forms alone: what is in those that can be read is as listed.
fn check_unstored(
    context: &mut Context<'_>,
    path: &str,
    file: &IndexFile,
    forms: &[String],
) -> Result<()> {
    for form in forms.iter().filter(|form| method(form).is_some()) {
        // What cannot be read is named where the form itself is looked at.
        let Some(bytes) = context.read(form)? else { continue };
        if open(form, &bytes).is_ok_and(|text| !is_as_listed(&text, file)) {
            let name = path.rsplit('/').next().unwrap_or_default();
            let message = format!("does not hold the {name} that Release lists");
            context.add(Check::IndexMismatch, form, message);
        }
    }
    Ok(())
}

/// Whether a file of that name lists packages.
fn is_list(name: &str) -> bool {
    name.split('.').next() == Some("Packages")
}

/// Keeps the text of a list of packages.
fn keep_text(
    context: &mut Context<'_>,
    (path, above): (&str, &str),
    bytes: &[u8],
    indexes: &mut BTreeMap<String, String>,
) {
    let text = open(path, bytes)
        .and_then(|text| String::from_utf8(text).map_err(|_| Error::malformed("is no UTF-8")));
    match text {
        Err(error) => context.add(Check::BadIndex, path, error.to_string()),
        Ok(text) => {
            let stem = format!("{above}/Packages");
            if indexes.get(&stem).is_some_and(|other| *other != text) {
                context.add(Check::IndexMismatch, path, "differs from the other forms of it");
            }
            indexes.insert(stem, text);
        }
    }
}

/// A package of the suite.
struct Listed {
    path: String,
    fields: Fields,
    /// Architectures whose index has it.
    archs: BTreeSet<String>,
}

impl Listed {
    fn place(&self) -> Place<'_> {
        let field = |name: &str| self.fields.get(name).map(String::as_str).unwrap_or_default();
        let identity = identity(field("Package"), field("Architecture"), field("Version"));
        Place { identity, path: &self.path, digest: field("SHA256") }
    }
}

/// The packages of all indexes by path.
fn packages(context: &mut Context<'_>, indexes: &BTreeMap<String, String>) -> Vec<Listed> {
    let mut all: BTreeMap<String, Listed> = BTreeMap::new();
    for (index, text) in indexes {
        let arch = index.split("/binary-").nth(1).and_then(|rest| rest.split('/').next());
        let arch = arch.unwrap_or_default().to_owned();
        let paragraphs = match apt_index::parse(text) {
            Ok(paragraphs) => paragraphs,
            Err(error) => {
                context.add(Check::BadIndex, index, error.to_string());
                continue;
            }
        };
        for fields in paragraphs {
            let own = fields.get("Architecture").cloned().unwrap_or_default();
            let Some(path) = fields.get("Filename").cloned() else {
                context.add(Check::BadIndex, index, "has a package without Filename");
                continue;
            };
            if own != arch && own != "all" {
                let message = format!("has {path}, which is for {own}");
                context.add(Check::IndexInconsistent, index, message);
            }
            let new =
                || Listed { path: path.clone(), fields: fields.clone(), archs: BTreeSet::new() };
            let listed = all.entry(path.clone()).or_insert_with(new);
            if listed.fields != fields {
                let message = format!("describes {path} otherwise than another index");
                context.add(Check::IndexInconsistent, index, message);
            }
            if !listed.archs.insert(arch.clone()) {
                context.add(Check::IndexInconsistent, index, format!("has {path} twice"));
            }
        }
    }
    context.named.extend(all.keys().cloned());
    context.report.indexed += all.len();
    all.into_values().collect()
}

fn check_packages(context: &mut Context<'_>, packages: &[Listed]) {
    let root = context.root;
    let faults = |listed: &Listed| package_faults(root, listed);
    let found: Vec<_> = packages.par_iter().map(faults).collect();
    for (listed, faults) in packages.iter().zip(found) {
        for (check, message) in faults {
            context.add(check, &listed.path, message);
        }
    }
}

/// What is wrong with a package beside what its index says.
fn package_faults(root: &std::path::Path, listed: &Listed) -> Vec<(Check, String)> {
    let compared = match named_file(root, &listed.path) {
        Ok(Some(file)) => compare(&file, &listed.fields),
        Ok(None) => {
            return vec![(Check::PackageMissing, "is in an index, but not there".to_owned())];
        }
        Err(error) => Err(error),
    };
    match compared {
        Ok(faults) => faults.into_iter().map(|f| (Check::PackageMismatch, f)).collect(),
        Err(error) => vec![(Check::PackageMismatch, error.to_string())],
    }
}

fn compare(file: &std::path::Path, fields: &Fields) -> Result<Vec<String>> {
    let content = Content::open(file)?;
    let mut bytes = (sha2::Sha256::default(), sha2::Sha512::default());
    content.each_window(|window| {
        sha2::Digest::update(&mut bytes.0, window);
        sha2::Digest::update(&mut bytes.1, window);
    })?;
    let digest256 = crate::content::hex(&sha2::Digest::finalize(bytes.0));
    let digest512 = crate::content::hex(&sha2::Digest::finalize(bytes.1));
    let own = [("Size", content.len().to_string()), ("SHA256", digest256), ("SHA512", digest512)];
    // Not every writer of indexes states SHA-512.
    let stated = |name: &str| fields.get(name).map(String::as_str);
    let same = |name: &str, own: &str| match stated(name) {
        None => name == "SHA512",
        Some(stated) => stated == own,
    };
    let differ = own.iter().filter(|(name, value)| !same(name, value));
    let mut faults: Vec<String> =
        differ.map(|(name, _)| format!("its {name} is not the one of the index")).collect();
    if !faults.is_empty() {
        return Ok(faults);
    }
    let control = parse_fields(&read_control(&content)?)?;
    let of_the_index =
        |name: &FieldName| OF_THE_INDEX.iter().any(|own| own.eq_ignore_ascii_case(name));
    let names: BTreeSet<&FieldName> = control.names().chain(fields.names()).collect();
    for name in names.into_iter().filter(|name| !of_the_index(name)) {
        if control.get(name) != fields.get(name) {
            faults.push(format!("its field {} is not the one of the index", &**name));
        }
    }
    Ok(faults)
}

fn check_closure(context: &mut Context<'_>, packages: &[Listed]) {
    let nodes: Vec<(Node, &BTreeSet<String>)> =
        packages.iter().map(|listed| (node(listed), &listed.archs)).collect();
    let known: BTreeSet<&str> =
        nodes.iter().flat_map(|(node, _)| &node.offers).map(|(name, _)| name.as_str()).collect();
    let archs: BTreeSet<&String> = nodes.iter().flat_map(|(_, archs)| archs.iter()).collect();
    let several = archs.len() > 1;
    let rules = Rules { compare: compare_versions, bare_meets: false };
    for arch in archs.into_iter().filter(|arch| !several || *arch != "all") {
        let together = nodes.iter().filter(|(_, archs)| archs.contains(arch));
        let together: Vec<&Node> = together.map(|(node, _)| node).collect();
        let (open, elsewhere) = closure::open(&together, &known, rules);
        context.report.elsewhere += elsewhere;
        for (path, wish) in open {
            let message = format!("depends on {wish}, which no package for {arch} is");
            context.add(Check::DependencyOpen, &path, message);
        }
    }
}

fn node(listed: &Listed) -> Node {
    let field = |name: &str| listed.fields.get(name).map(String::as_str).unwrap_or_default();
    let mut offers = vec![(field("Package").to_owned(), Some(field("Version").to_owned()))];
    for wish in field("Provides").split(',').filter_map(wish) {
        offers.push((wish.name, wish.bound.map(|(_, version)| version)));
    }
    let groups = [field("Pre-Depends"), field("Depends")];
    let groups = groups.iter().flat_map(|field| field.split(','));
    let wishes = groups.map(|group| group.split('|').filter_map(wish).collect::<Vec<_>>());
    Node {
        path: listed.path.clone(),
        offers,
        wishes: wishes.filter(|group| !group.is_empty()).collect(),
    }
}

/// `name`, `name:any`, `name (>= 1)`, `name [amd64]`.
fn wish(text: &str) -> Option<Wish> {
    let text = text.split('[').next().unwrap_or_default().trim();
    let (name, bound) = text.split_once('(').unwrap_or((text, ""));
    let name = name.trim().split(':').next().unwrap_or_default();
    let bound = bound.trim_end().trim_end_matches(')').trim();
    let end = bound.find(|c: char| !"<>=".contains(c)).unwrap_or(bound.len());
    let (sign, version) = bound.split_at(end);
    let bound = Sign::of(sign).map(|sign| (sign, version.trim().to_owned()));
    (!name.is_empty()).then(|| Wish { name: name.to_owned(), bound })
}

//! Checks an rpm repository.

mod lists;
mod package;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use rockpack_archive::rpm::{MissingDigest, RpmFront};
use rockpack_core::content::{Content, is_file};
use rockpack_core::error::Result;

use rockpack_package::Format;
use rockpack_package::offered::OfferedPackage;
use rockpack_package::owners::{Owner, differing_files, each_hidden_path};
use rockpack_package::resolver::{by_machine, machines};

use crate::problem::Problem;
use crate::repository::context::{
    BATCH_SIZE, Context, HEAD_MAX, INDEX_MAX, NamedFiles, names_outside, place, sha256,
};
use crate::repository::rpm::lists::{RpmEntry, RpmFiles};
use crate::repository::rpm::package::Observation;
use crate::repository::xml::Element;
use crate::repository::{
    REPOMD, REPOMD_SIGNATURE, check_owners, check_unmet, check_versions, states,
};

/// The package lists that are read. Of other files in `repomd.xml`, only the digests are checked.
const LISTS: [&str; 3] = ["primary", "filelists", "other"];

/// Lists that `repomd.xml` may name. createrepo_c writes about ten, and each may be as large as `primary`.
const LISTS_MAX: usize = 100;

/// Architectures of a repository. Packages for all architectures are checked with those of each.
const MACHINES_MAX: usize = 64;

#[derive(Default)]
struct RpmLists {
    primary: Option<Vec<RpmEntry>>,
    /// Digest of a package and its files.
    filelists: Option<Vec<(String, RpmFiles)>>,
    /// Digests of packages.
    other: Option<Vec<String>>,
}

pub(super) fn check(context: &mut Context<'_>) -> Result<()> {
    let Some(bytes) = context.read(REPOMD, HEAD_MAX)? else { return Ok(()) };
    check_signature(context, &bytes)?;
    let Some(repomd) = context.parsed(REPOMD, Element::parse(&bytes)) else { return Ok(()) };
    // Uses the newest time of a list, because the revision is free text.
    let times = repomd.all("data").filter_map(|data| data.child("timestamp")?.text.parse().ok());
    if let Some(newest) = times.max() {
        context.check_date(REPOMD, newest);
    }
    let count = repomd.all("data").count();
    if count > LISTS_MAX {
        let reason = format!("names {count} lists, more than the {LISTS_MAX} that are read");
        context.bad_index(REPOMD, reason);
        return Ok(());
    }
    let mut lists = RpmLists::default();
    let mut kinds = BTreeSet::new();
    for data in repomd.all("data") {
        let kind = data.attribute("type");
        if !kinds.insert(kind) {
            context.bad_index(REPOMD, format!("lists {kind} twice"));
        }
        if let Some((path, text)) = list(context, data)? {
            let read = match kind {
                "primary" => lists::primary(&text).map(|list| lists.primary = Some(list)),
                "filelists" => lists::filelists(&text).map(|list| lists.filelists = Some(list)),
                _ => lists::ids(&text).map(|list| lists.other = Some(list)),
            };
            context.parsed(&path, read);
        }
    }
    let Some(primary) = &lists.primary else {
        context.bad_index(REPOMD, "lists no readable primary");
        return Ok(());
    };
    check_ids(context, primary, &lists);
    let files = lists.filelists.as_ref().map(|list| {
        list.iter().map(|(id, files)| (id.as_str(), files)).collect::<BTreeMap<_, _>>()
    });
    check_packages(context, primary, files.as_ref());
    let offered: Vec<OfferedPackage<'_>> = primary.iter().map(RpmEntry::offered).collect();
    let listed = primary.iter().map(|package| (&*package.path, &*package.checksum));
    check_versions(context, &offered, listed.clone());
    check_dependencies(context, primary, &offered);
    if let Some(files) = &files {
        check_files(context, primary, offered, files);
    }
    states::compare(context, "rpm", listed.collect());
    Ok(())
}

fn check_signature(context: &mut Context<'_>, repomd: &[u8]) -> Result<()> {
    let path = REPOMD_SIGNATURE;
    if !is_file(&context.files.root.join(path))? {
        if !context.trust.keys.is_empty() {
            context.bad_signature(path, "is missing");
        }
    } else if let Some(signature) = context.read(path, HEAD_MAX)? {
        let checked = context.trust.check_detached(&signature, repomd);
        context.signed(path, checked);
    }
    Ok(())
}

/// The path and text of a package list that `repomd.xml` names, if its digest matches and it can be unpacked.
fn list(context: &mut Context<'_>, data: &Element) -> Result<Option<(String, Vec<u8>)>> {
    let path = data.attribute_of("location", "href").to_owned();
    if place(context.files.root, &path).is_none() {
        context.bad_index(REPOMD, names_outside(&path));
        return Ok(None);
    }
    let Some(bytes) = context.read(&path, INDEX_MAX)? else { return Ok(None) };
    if data.attribute_of("checksum", "type") != "sha256" {
        context.bad_index(&path, "is listed without SHA-256");
        return Ok(None);
    }
    if !is_as_stated(&bytes, data, "size", "checksum") {
        context.index_differs(&path, "differs from its entry in repomd.xml");
        return Ok(None);
    }
    if !LISTS.contains(&data.attribute("type")) {
        return Ok(None);
    }
    let text = context.open(&path, &bytes);
    let Some(text) = context.parsed(&path, text) else { return Ok(None) };
    if !is_as_stated(&text, data, "open-size", "open-checksum") {
        let reason = "its uncompressed content differs from its entry in repomd.xml";
        context.index_differs(&path, reason);
    }
    Ok(Some((path, text)))
}

/// Whether bytes have the size and digest that the elements of these names state.
fn is_as_stated(bytes: &[u8], data: &Element, size: &str, digest: &str) -> bool {
    let own = data.attribute_of(digest, "type") == "sha256";
    data.child(size).is_none_or(|size| size.text == bytes.len().to_string())
        && (!own || data.child(digest).is_none_or(|digest| digest.text == sha256(bytes)))
}

/// Checks that all lists have the same packages, each once.
fn check_ids(context: &mut Context<'_>, primary: &[RpmEntry], lists: &RpmLists) {
    let ids: Vec<&str> = primary.iter().map(|package| package.checksum.as_str()).collect();
    let of_primary: BTreeSet<&str> = ids.iter().copied().collect();
    let filelists = lists.filelists.as_ref();
    let filelists = filelists.map(|list| list.iter().map(|(id, _)| id.as_str()).collect());
    let other = lists.other.as_ref().map(|ids| ids.iter().map(String::as_str).collect());
    for (kind, ids) in [("primary", Some(ids)), ("filelists", filelists), ("other", other)] {
        let Some(ids) = ids else {
            context.add_inconsistency(REPOMD, format!("has no {kind}"));
            continue;
        };
        let set: BTreeSet<&str> = ids.iter().copied().collect();
        if set != of_primary {
            context.add_inconsistency(REPOMD, format!("{kind} has other packages than primary"));
        }
        if set.len() != ids.len() {
            context.add_inconsistency(REPOMD, format!("{kind} has a package twice"));
        }
    }
}

fn check_dependencies(
    context: &mut Context<'_>,
    primary: &[RpmEntry],
    offered: &[OfferedPackage<'_>],
) {
    let count = machines(Format::Rpm, offered.iter().map(|package| package.arch)).len();
    if count > MACHINES_MAX {
        let reason = format!("has packages for {count} architectures, more than {MACHINES_MAX}");
        return context.bad_index(REPOMD, reason);
    }
    let machines = by_machine(Format::Rpm, offered);
    check_unmet(context, Format::Rpm, offered, &machines, |at| primary[at].path.as_str());
}

fn check_packages(
    context: &mut Context<'_>,
    primary: &[RpmEntry],
    files: Option<&BTreeMap<&str, &RpmFiles>>,
) {
    // Each file is read once, even if an index names it several times.
    let (mut packages, mut seen) = (Vec::new(), BTreeSet::new());
    for package in primary {
        let path = package.path.as_str();
        context.named.insert(path.to_owned());
        if seen.insert(path) {
            packages.push(package)
        } else {
            context.add_inconsistency(path, "is named by primary twice")
        }
    }
    let (named, trust) = (context.files, context.package_trust);
    let mut lacking: BTreeMap<MissingDigest, Vec<String>> = BTreeMap::new();
    context.report.indexed += packages.len();
    for together in packages.chunks(BATCH_SIZE) {
        let seen = together.par_iter().map(|package| {
            let files = files.and_then(|files| files.get(&*package.checksum)).copied();
            let mut seen = Vec::new();
            let compare = |it: &Content| package::compare(it, package, files, trust, &mut seen);
            let faults = named.faults(&package.path, compare);
            faults.into_iter().map(Observation::Fault).chain(seen).collect::<Vec<_>>()
        });
        let seen: Vec<Vec<Observation>> = seen.collect();
        for seen in seen.into_iter().flatten() {
            match seen {
                Observation::Fault(problem) => context.problems.add(problem),
                Observation::GoodSignature => context.report.signatures += 1,
                Observation::Unsigned(file) => context.unsigned.push(file),
                Observation::WithoutDigest(missing, package) => {
                    lacking.entry(missing).or_default().push(package);
                }
            }
        }
    }
    for (missing, packages) in lacking {
        let file = REPOMD.to_owned();
        let problem = Problem::PackagesWithoutDigest { file, packages, missing };
        if context.trust.strict {
            context.problems.add(problem);
        } else {
            context.report.tolerated.push(problem);
        }
    }
}

/// Reports every path at which two packages of `primary` conflict, and every required path that clients do not find.
/// `files` has the files of each package by its digest.
fn check_files(
    context: &mut Context<'_>,
    primary: &[RpmEntry],
    offered: Vec<OfferedPackage<'_>>,
    files: &BTreeMap<&str, &RpmFiles>,
) {
    let owners = primary.iter().zip(offered).map(|(entry, package)| {
        let files = files.get(&*entry.checksum);
        let paths = files.map(|files| Cow::Borrowed(&files.owned)).unwrap_or_default();
        let shared = files.map(|files| files.shared.clone()).unwrap_or_default();
        Owner { package, paths, shared }
    });
    let owners: Vec<Owner<'_>> = owners.collect();
    let named = context.files;
    let differ = differing_files(|at| open_package(named, primary, at));
    check_owners(context, Format::Rpm, &owners, differ, |at, is_it| {
        let front = RpmFront::read(&open_package(named, primary, at)?).ok()?;
        let paths = front.metadata.get_file_paths().ok()?;
        paths.iter().filter_map(|path| path.to_str()).find(|path| is_it(path)).map(str::to_owned)
    });
    each_hidden_path(&owners, |path, owner, requirers| {
        for at in requirers {
            let [file, owner] = [*at, owner].map(|at| primary[at].path.clone());
            let reason = format!(
                "requires {path}, which is in {owner}, but no package provides it and primary does not \
                 list it"
            );
            context.problems.add(Problem::DependencyOpen { file, reason });
        }
    });
}

fn open_package(named: NamedFiles<'_>, primary: &[RpmEntry], at: usize) -> Option<Content> {
    named.open(&primary.get(at)?.path).ok()?
}

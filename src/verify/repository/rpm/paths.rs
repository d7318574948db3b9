//! Files of packages by the list of files, and packages that stand in each other's way.

use std::collections::BTreeMap;

use super::names::evr;
use crate::content::Content;
use crate::formats::path_digests::PathDigests;
use crate::package::differing_files::DifferingFiles;
use crate::package::owners::{Bound, Owner, is_shared_by_design};
use crate::package::{Comparison, Format, RelationKind};
use crate::verify::repository::context::{Context, named_file};
use crate::verify::repository::owners;
use crate::verify::repository::xml::Element;

/// The lists of `primary` that say what packages need, exclude and provide.
const LISTS: [(&str, RelationKind); 4] = [
    ("rpm:requires", RelationKind::Depends),
    ("rpm:conflicts", RelationKind::Conflicts),
    ("rpm:obsoletes", RelationKind::Obsoletes),
    ("rpm:provides", RelationKind::Provides),
];

/// Names every path by which two packages of `primary` stand in each other's way.
pub(super) fn check(context: &mut Context<'_>, primary: &Element, filelists: &Element) {
    let lists = filelists.all("package").map(|package| (package.attribute("pkgid"), package));
    let by_id: BTreeMap<&str, &Element> = lists.collect();
    let packages: Vec<(&Element, Option<&Element>)> = primary
        .all("package")
        .map(|package| (package, by_id.get(package.text_of("checksum")).copied()))
        .collect();
    let owners: Vec<Owner> = packages.iter().map(|(package, list)| owner(package, *list)).collect();
    let root = context.root;
    let mut differing = DifferingFiles::new(|at: usize| {
        let (package, _) = packages.get(at)?;
        let file = named_file(root, package.attribute_of("location", "href")).ok()??;
        Content::open(&file).ok()
    });
    let differ = |pair: (usize, usize), path: u64| differing.differ(pair, path);
    owners::check(context, Format::Rpm, &owners, differ, |at, is_it| {
        let (_, list) = packages.get(at)?;
        files(*list).find(|path| is_it(path)).map(str::to_owned)
    });
}

fn owner(package: &Element, list: Option<&Element>) -> Owner {
    let of_list = |(list, kind): (&str, RelationKind)| {
        let entries = package.child("format").and_then(|format| format.child(list));
        let entries = entries.map_or(&[][..], |list| list.children.as_slice()).iter();
        entries.map(move |entry| {
            let comparison = Comparison::of_index(entry.attribute("flags"));
            let version = comparison.map(|comparison| (comparison, evr(entry)));
            (kind, Bound { name: entry.attribute("name").to_owned(), version })
        })
    };
    Owner {
        name: package.text_of("name").to_owned(),
        version: package.child("version").map(evr).unwrap_or_default(),
        arch: package.text_of("arch").to_owned(),
        relations: LISTS.into_iter().flat_map(of_list).collect(),
        paths: PathDigests::of(files(list)).as_slice().to_vec(),
    }
}

/// The files and links of a package, without those that debug files may share.
fn files(list: Option<&Element>) -> impl Iterator<Item = &str> {
    let files = list.into_iter().flat_map(|list| list.all("file"));
    let plain = files.filter(|file| file.attribute("type").is_empty());
    plain.map(|file| file.text.as_str()).filter(|path| !is_shared_by_design(Format::Rpm, path))
}

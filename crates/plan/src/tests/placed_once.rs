//! Checks, for all components and any number of shards, that every host path, every database file and every
//! code object of the input is in exactly one package of each format, and nothing else is in any kernel
//! archive.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use rockpack_core::gfx::BaseArch;

use super::*;
use crate::recombine::{Kernel, Recombined};

const COMPONENTS: [&str; 6] =
    ["x_lib_all", "x_run_all", "x_dev_all", "y_lib_all", "y_test_all", "z_doc_all"];

/// Shard → its targets. The first shard is the primary; two build for gfx1100, and one has a compiler's
/// fallback target, which no group takes.
const SHARDS: [(&str, &[&str]); 3] = [
    ("one", &["gfx1100", "gfx1101", UNGROUPED]),
    ("three", &["gfx1200", "gfx1100"]),
    ("two", &["gfx90a:xnack+", "gfx90a:xnack-", "gfx90a"]),
];

const UNGROUPED: &str = "gfx906";

/// Archs of database files: of one group, of two, and of one that no group takes.
const ARCHS: [&str; 4] = ["gfx1101", "gfx1100,gfx1101", "gfx1100,gfx1200", "gfx906,gfx90a"];

/// One wrapper: for each shard, the targets with code, as bits.
type Unit = [usize; 3];

/// The file at a path, and its shards, as bits: a binary is in all.
#[derive(Debug, Clone)]
enum File {
    Plain(usize),
    Link(usize),
    Fat(Vec<Unit>),
    Database(usize, usize),
}

type PlacedFiles = BTreeMap<String, (usize, File)>;

/// A code object of a binary: install-relative path, number of the wrapper, target, text.
type Code = (String, u32, String, String);

fn file() -> impl Strategy<Value = File> {
    let shards = 1..8_usize;
    // Every wrapper has code of a grouped arch in each shard, by which shards are matched.
    let unit = [1..8_usize, 1..4, 1..8]
        .prop_map(|[one, three, two]| [if one == 4 { 5 } else { one }, three, two]);
    prop_oneof![
        shards.clone().prop_map(File::Plain),
        shards.clone().prop_map(File::Link),
        vec(unit, 1..5).prop_map(File::Fat),
        (0..ARCHS.len(), shards).prop_map(|(archs, shards)| File::Database(archs, shards)),
    ]
}

fn bits<'a>(names: &'a [&'a str], bits: usize) -> impl Iterator<Item = &'a str> {
    names.iter().enumerate().filter(move |(bit, _)| bits >> bit & 1 == 1).map(|(_, name)| *name)
}

/// The code objects of a wrapper in a shard.
fn code(at: &str, number: u32, unit: Unit, shard: usize) -> Vec<(&'static str, String)> {
    let targets = bits(SHARDS[shard].1, unit[shard]);
    targets.map(|target| (target, format!("{at}:{number}|{target}"))).collect()
}

/// The wrappers of a binary as in a shard: each links its units in another order.
fn wrappers(at: &str, units: &[Unit], shard: usize) -> Vec<WrapperCode> {
    let mut wrappers: Vec<_> = (0..)
        .zip(units)
        .map(|(number, unit)| {
            let code = code(at, number, *unit, shard);
            wrapper(&code.iter().map(|(target, text)| (*target, text.as_str())).collect::<Vec<_>>())
        })
        .collect();
    wrappers.rotate_left(shard % units.len());
    wrappers
}

fn add(part: ArtifactBuilder, at: &str, file: &File, shard: usize) -> ArtifactBuilder {
    match file {
        File::Plain(shards) if has_shard(*shards, shard) => part.plain(at, at),
        File::Link(shards) if has_shard(*shards, shard) => part.link(at, "elsewhere"),
        File::Fat(units) => part.fat(at, wrappers(at, units, shard)),
        File::Database(archs, shards) if has_shard(*shards, shard) => {
            part.database(at, ARCHS[*archs], at)
        }
        _ => part,
    }
}

fn has_shard(shards: usize, shard: usize) -> bool {
    shards >> shard & 1 == 1
}

/// The first `count` shards with their files.
fn parts(files: &PlacedFiles, count: usize) -> Vec<ArtifactBuilder> {
    let shards =
        (0..count).flat_map(|shard| COMPONENTS.iter().enumerate().map(move |c| (shard, c)));
    let parts = shards.map(|(shard, (owner, name))| {
        let own = files.iter().filter(|(_, (of, _))| *of == owner);
        let empty = ArtifactBuilder::new(SHARDS[shard].0, name);
        own.fold(empty, |part, (at, (_, file))| add(part, at, file, shard))
    });
    parts.collect()
}

/// The paths that some shard has.
fn given(files: &PlacedFiles, count: usize) -> BTreeSet<TreePath> {
    let own = files.iter().filter(|(_, (_, file))| match file {
        File::Plain(shards) | File::Link(shards) | File::Database(_, shards) => {
            shards & ((1 << count) - 1) != 0
        }
        File::Fat(_) => true,
    });
    own.map(|(at, _)| path(at)).collect()
}

/// All code objects of grouped archs; if two shards have one, the copy that is packed.
fn given_code(files: &PlacedFiles, count: usize) -> Vec<Code> {
    let mut all = BTreeSet::new();
    for (at, (_, file)) in files {
        let File::Fat(units) = file else {
            continue;
        };
        for (number, unit) in (0..).zip(units) {
            let code = (0..count).flat_map(|shard| code(at, number, *unit, shard));
            for (target, text) in code.filter(|(target, _)| *target != UNGROUPED) {
                all.insert((at.clone(), number, target.to_owned(), text));
            }
        }
    }
    all.into_iter().collect()
}

/// The kernels of an archive, as packing picks them.
fn of_archive<'a>(
    recombined: &'a Recombined,
    set: &ArchiveSet,
    arch: &BaseArch,
) -> Vec<&'a Kernel> {
    let mut found = Vec::new();
    for component in recombined.components.iter().filter(|_| set.archs.contains(arch)) {
        let in_set = component.kernels.iter().filter(|kernel| {
            set.binaries.contains(&(component.id.to_string(), kernel.binary.clone()))
        });
        found.extend(in_set.filter(|kernel| kernel.target.base() == arch));
    }
    found
}

/// The code objects of all archives that are files of packages of `format`, sorted.
fn packed_code(recombined: &Recombined, plan: &Plan, format: Format) -> Vec<Code> {
    let mut code = Vec::new();
    for entry in entries(plan, format) {
        if let Node::File { data: FileSource::Archive { archives, arch }, .. } = &entry.node {
            let mut sets = plan.archives.iter().filter(|set| set.name == *archives);
            let (set, other) = (sets.next().unwrap(), sets.next());
            assert!(other.is_none(), "{archives} is there twice");
            code.extend(of_archive(recombined, set, arch).into_iter().map(|kernel| {
                let text = kernel.content.read_vec(0..kernel.content.len(), 1 << 10, "x").unwrap();
                let text = String::from_utf8(text).unwrap();
                (kernel.binary.to_string(), kernel.co_index, kernel.target.to_string(), text)
            }));
        }
    }
    code.sort();
    code
}

fn entries(
    plan: &Plan,
    format: Format,
) -> impl Iterator<Item = &rockpack_package::PackageEntry<FileSource>> {
    let entries = plan.packages.iter().flat_map(|package| &package.entries);
    entries.filter(move |entry| entry.formats.has(format))
}

/// The files and links of the input that packages of `format` hold: both source and installed paths.
fn packed(plan: &Plan, format: Format) -> Vec<TreePath> {
    let prefix = format!("{}/", plan.prefix.absolute().trim_start_matches('/'));
    let mut placed: Vec<_> = entries(plan, format)
        .filter_map(|entry| {
            let installed = entry.path.as_str().strip_prefix(&prefix).map(path);
            match &entry.node {
                Node::Link { .. } => installed,
                Node::File { data: FileSource::Host { path, .. }, .. }
                | Node::File { data: FileSource::Fat { path, .. }, .. }
                | Node::File { data: FileSource::Database { path, .. }, .. } => {
                    assert_eq!(Some(path), installed.as_ref());
                    installed
                }
                _ => None,
            }
        })
        .collect();
    placed.sort();
    placed
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_path_and_code_object_is_in_exactly_one_package(
        files in btree_map("(bin|lib|share)/[a-c]{1,2}/[d-f]{1,3}", (0..6_usize, file()), 1..20),
        count in 1..4_usize,
    ) {
        let toml = format!("{GROUPS}[architecture_groups.gfx90X]\narchitectures = ['gfx90a']\n");
        let recombined = join(parts(&files, count), &toml).unwrap();
        let plan = plan(&recombined, &options().setting(config(&toml)).unwrap(), None, &[]).unwrap();
        let (paths, code) = (given(&files, count), given_code(&files, count));
        for format in Format::ALL {
            prop_assert_eq!(packed(&plan, format), paths.iter().cloned().collect::<Vec<_>>());
            prop_assert_eq!(packed_code(&recombined, &plan, format), code.clone());
        }
        for package in &plan.packages {
            for format in Format::ALL {
                let mut seen = BTreeSet::new();
                for entry in package.entries.iter().filter(|entry| entry.formats.has(format)) {
                    let above = entry.path.parent();
                    // An rpm package leaves other packages' folders to them.
                    let follows = above.is_none_or(|above| seen.contains(&above));
                    prop_assert!(follows || format == Format::Rpm, "{}", entry.path);
                    prop_assert!(seen.insert(entry.path.clone()), "{} twice", entry.path);
                }
            }
        }
    }
}

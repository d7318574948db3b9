//! The arrows between modules: who may use whom. A `use crate::…` (or a path `crate::…`) outside
//! of this table fails.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use support::program::{repository, rust_files};

/// Room → what it may use besides itself, `error` and `report` (findings and progress): rooms above
/// it in this list alone, so that there is no way round.
pub(crate) const MAY_USE: &[(&str, &[&str])] = &[
    // Below the rooms, in a crate of its own.
    ("error", &[]),
    ("gfx", &[]),
    ("once", &[]),
    ("run", &[]),
    ("tree", &[]),
    // Who reads asks whether to go on, and whether there is room.
    ("content", &["run"]),
    ("formats", &["content", "gfx"]),
    // Values of findings: archs, targets, paths.
    ("report", &["gfx", "tree"]),
    // Names, locks and renames; outlets give it bytes.
    ("files", &["content"]),
    // What a package is, whoever decides or reads it; what an index says of it, from its file.
    ("package", &["content", "formats", "tree"]),
    // Sets as they were written. The texts of an earlier version become values.
    ("receipt", &["content", "formats", "gfx", "once", "package", "run", "tree"]),
    // Packed artifacts are compressed tar archives.
    ("input", &["content", "formats", "gfx", "once", "run", "tree"]),
    ("config", &["content", "gfx", "input", "once", "package"]),
    ("split", &["content", "formats", "gfx", "input", "tree"]),
    // What several shards have of a kernel database is brought together by its formats.
    ("recombine", &["config", "content", "formats", "gfx", "input", "split", "tree"]),
    // Files in, relations out: what libraries a file links to is read by the formats.
    ("dependencies", &["content", "formats", "tree"]),
    // An update knows the set before it. Dependencies of host files on libraries are part of what a
    // package says.
    (
        "plan",
        &[
            "config",
            "content",
            "dependencies",
            "formats",
            "gfx",
            "input",
            "once",
            "package",
            "receipt",
            "recombine",
            "split",
            "tree",
        ],
    ),
    // Search paths are written anew in the final file. A plan is shown, and divided, without being
    // packed: sizes are asked of the sources that packing reads.
    (
        "pack",
        &[
            "content",
            "dependencies",
            "files",
            "formats",
            "gfx",
            "package",
            "plan",
            "receipt",
            "recombine",
            "run",
            "split",
            "tree",
        ],
    ),
    // Signatures of rpm headers are made for `formats::rpm` to put in place.
    ("signing", &["content", "formats"]),
    // What the index of a repository says of a package is taken up while its digests are. Folders of
    // artifacts are written of what was split and recombined.
    (
        "emit",
        &[
            "config",
            "content",
            "files",
            "formats",
            "gfx",
            "input",
            "pack",
            "package",
            "plan",
            "receipt",
            "recombine",
            "run",
            "signing",
            "split",
            "tree",
        ],
    ),
    // Files for clients say where the key package, which is named after the repository, puts the key.
    ("repo", &["content", "files", "formats", "once", "package", "run", "signing", "tree"]),
    // Of the input, the rules of databases: which files they have, not what became of them. Of the
    // dependencies, the tables of distributions: who has a library, not who needs it.
    (
        "verify",
        &[
            "content",
            "dependencies",
            "formats",
            "gfx",
            "input",
            "package",
            "receipt",
            "run",
            "tree",
        ],
    ),
    (
        "inspect",
        &[
            "config", "content", "files", "formats", "gfx", "input", "package", "run", "split",
            "tree",
        ],
    ),
    // What each stage is told is made and checked here, before any of them runs; none of them knows
    // where a value came from.
    (
        "settings",
        &[
            "config",
            "dependencies",
            "formats",
            "input",
            "pack",
            "package",
            "plan",
            "receipt",
            "repo",
            "run",
            "signing",
        ],
    ),
    // The parts of the pipeline that `lib.rs` leaves out.
    (
        "write",
        &[
            "config",
            "content",
            "emit",
            "pack",
            "package",
            "plan",
            "recombine",
            "run",
            "settings",
            "signing",
        ],
    ),
];

/// Modules that everything may use: errors, findings, progress.
const SHARED: [&str; 2] = ["error", "report"];

/// Files that only tests are compiled from.
fn is_test(path: &Path) -> bool {
    let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    let within = path.components().any(|part| part.as_os_str() == "tests");
    within || name == "fixture" || name == "tests" || name.ends_with("_tests")
}

/// Modules named behind `crate::` in `text`, tests and comments left out.
fn named_modules(text: &str) -> Vec<String> {
    names_behind(text, "crate::")
}

/// Modules named behind `prefix` in `text`, tests and comments left out.
fn names_behind(text: &str, prefix: &str) -> Vec<String> {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let named = lines.flat_map(|line| line.split(prefix).skip(1));
    let mut modules = Vec::new();
    for rest in named {
        let list = match rest.strip_prefix('{') {
            Some(list) => list.split('}').next().unwrap_or_default(),
            None => rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or(rest),
        };
        for name in list.split(',') {
            let name = name.trim().split(|c: char| !c.is_alphanumeric() && c != '_').next();
            modules.extend(
                name.filter(|n| n.starts_with(|c: char| c.is_lowercase())).map(str::to_owned),
            );
        }
    }
    modules
}

/// The files of the program by the room that they are in, without tests, and without `cli` and
/// `lib`, which may use everything.
fn rooms() -> BTreeMap<String, Vec<PathBuf>> {
    let mut rooms: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for root in ["src", "crates/base/src"].map(repository) {
        for file in rust_files(&root) {
            let relative = file.strip_prefix(&root).unwrap();
            let first = relative.components().next().unwrap().as_os_str().to_str().unwrap();
            let room = first.trim_end_matches(".rs");
            if !is_test(relative) && !["cli", "lib", "main"].contains(&room) {
                rooms.entry(room.to_owned()).or_default().push(file);
            }
        }
    }
    rooms
}

/// The rooms that the files of `room` use, by a file that does.
fn used_by(room: &str, files: &[PathBuf]) -> BTreeMap<String, PathBuf> {
    let mut used = BTreeMap::new();
    for file in files {
        let named = named_modules(&fs::read_to_string(file).unwrap());
        let others = named.into_iter().filter(|name| name != room);
        used.extend(others.map(|name| (name, file.clone())));
    }
    used.retain(|name, _| !SHARED.contains(&name.as_str()));
    used
}

#[test]
fn no_room_uses_what_lies_above_it() {
    let table: BTreeMap<_, _> = MAY_USE.iter().copied().collect();
    let rooms = rooms();
    assert_eq!(Vec::from_iter(rooms.keys()), Vec::from_iter(table.keys()));
    for (room, files) in &rooms {
        let (used, allowed) = (used_by(room, files), table[room.as_str()]);
        for (other, file) in &used {
            let file = file.display();
            assert!(
                allowed.contains(&other.as_str()),
                "{file} uses {other}, which {room} must not"
            );
        }
        let unused = allowed.iter().find(|other| !used.contains_key(**other));
        assert_eq!(unused, None, "nothing of {room} uses it: take it out of the table");
    }
}

/// What verify reads packages and artifacts with may share: finished formats, which other programs
/// judge. Of device code in host binaries, bundles and databases it has an opinion of its own.
const SHARED_WITH_WRITERS: [&str; 9] =
    ["code_object", "deb", "hold", "kpack", "kpm", "marker", "package_file", "payload", "rpm"];

#[test]
fn verify_reads_with_eyes_of_its_own() {
    let files = rust_files(&repository("src/verify/own"));
    let mut formats = BTreeSet::new();
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        formats.extend(names_behind(&text, "crate::formats::"));
    }
    assert_eq!(formats, SHARED_WITH_WRITERS.map(str::to_owned).into());
    let used = used_by("verify", &files);
    let expected = ["content", "formats", "gfx", "input", "package", "run", "tree"];
    assert_eq!(Vec::from_iter(used.keys()), expected, "{used:?}");
}

#[test]
fn there_is_no_way_round() {
    for (index, (room, allowed)) in MAY_USE.iter().enumerate() {
        let before: Vec<_> = MAY_USE[..index].iter().map(|(room, _)| room).collect();
        let later = allowed.iter().find(|other| !before.contains(other));
        assert_eq!(later, None, "{room} uses it, and it stands further down");
    }
}

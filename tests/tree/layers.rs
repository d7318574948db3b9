//! The arrows between modules: who may use whom. A `use crate::…` or `use rockpack_base::…` (or such a
//! path) outside of this table fails.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use support::program::{repository, rust_files, source_folders};

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
    // Values of findings: digests, archs, targets, paths, formats of packages.
    ("report", &["content", "formats", "gfx", "tree"]),
    // Names, locks and renames; outlets give it bytes.
    ("files", &["content", "run"]),
    // What a package is, whoever decides or reads it; what an index says of it, from its file.
    ("package", &["content", "formats", "tree"]),
    // Sets as they were written.
    ("receipt", &["content", "formats", "once", "package", "run", "tree"]),
    // Packed artifacts are compressed tar archives.
    ("input", &["content", "formats", "gfx", "once", "run", "tree"]),
    // Globs of the configuration are held against paths below the prefix.
    ("config", &["content", "gfx", "input", "once", "package", "tree"]),
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
    // packed: sizes are asked of the sources that packing reads. Wheels keep members of their input.
    (
        "pack",
        &[
            "content",
            "dependencies",
            "files",
            "formats",
            "gfx",
            "input",
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
    // dependencies, the tables of distributions (who has a library or program, not who needs it), and
    // which folders are no place for a library to be found by its name. Of signing, which keys and
    // signatures clients take.
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
            "signing",
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
            "content",
            "dependencies",
            "emit",
            "files",
            "formats",
            "gfx",
            "input",
            "pack",
            "package",
            "plan",
            "receipt",
            "repo",
            "run",
            "signing",
            "verify",
        ],
    ),
    // The line of stages.
    (
        "pipeline",
        &[
            "config",
            "content",
            "emit",
            "input",
            "inspect",
            "pack",
            "package",
            "plan",
            "receipt",
            "recombine",
            "repo",
            "run",
            "settings",
            "signing",
            "split",
        ],
    ),
];

/// Modules that everything may use: errors, findings, progress.
const SHARED: [&str; 2] = ["error", "report"];

/// What modules are named behind: those of the same crate, and those of the crate below.
const DOORS: [&str; 2] = ["crate::", "rockpack_base::"];

/// Files that only tests are compiled from.
fn is_test(path: &Path) -> bool {
    let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    let within = path.components().any(|part| part.as_os_str() == "tests");
    within || name == "fixture" || name == "tests" || name.ends_with("_tests")
}

/// `text` without comments and without items that only tests are compiled from.
fn code(text: &str) -> String {
    let mut code = String::new();
    let mut lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    while let Some(line) = lines.next() {
        if line.trim() == "#[cfg(test)]" {
            let indent = line.len() - line.trim_start().len();
            let end = format!("{}}}", " ".repeat(indent));
            let first = lines.next().unwrap_or_default();
            if !first.ends_with(';') && !first.ends_with('}') {
                lines.by_ref().find(|line| *line == end);
            }
        } else {
            code += line;
            code.push('\n');
        }
    }
    code
}

/// Modules named behind `prefix` in `code`: the first name, or each first name of a list in braces.
fn names_behind(code: &str, prefix: &str) -> Vec<String> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut names = Vec::new();
    for rest in code.split(prefix).skip(1) {
        let (mut depth, mut begins) = (0, true);
        for (at, c) in rest.char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ if begins && is_name(c) => {
                    names.extend(rest[at..].split(|c| !is_name(c)).next().map(str::to_owned));
                }
                _ => {}
            }
            if depth == 0 {
                break;
            }
            begins = depth == 1 && (c == '{' || c == ',' || begins && c.is_whitespace());
        }
    }
    names.retain(|name| name.starts_with(char::is_lowercase));
    names
}

#[test]
fn names_are_found_however_they_are_imported() {
    let text = "use crate::a::B;\n#[cfg(test)]\nmod tests;\nuse crate::{\n    b::{self, C}, D,\n    \
                e,\n};\n// crate::comment\nfn f() { crate::f::g() }\n#[cfg(test)]\nmod more {\n    \
                use crate::not;\n}\nuse crate::h;\n";
    assert_eq!(names_behind(&code(text), "crate::"), ["a", "b", "e", "f", "h"]);
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
        let code = code(&fs::read_to_string(file).unwrap());
        let named = DOORS.into_iter().flat_map(|door| names_behind(&code, door));
        let others = named.filter(|name| name != room);
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

/// The finished formats that verify reads packages and artifacts with as the writers do; other
/// programs judge them. Of host binaries and bundles it has an opinion of its own.
const SHARED_WITH_WRITERS: [&str; 11] = [
    "code_object",
    "deb",
    "hold",
    "kpack",
    "kpm",
    "marker",
    "package_file",
    "payload",
    "rpm",
    "wheel",
    "zip",
];

/// Formats that its checks read besides: indexes of repositories, numbers of paths and SPDX documents.
const OF_CHECKS: [&str; 6] =
    ["apt_index", "armor", "compression", "path_digests", "python_index", "spdx"];

/// The modules of `room`, behind `door`, that files below `folder` name.
fn modules_of(door: &str, room: &str, folder: &str) -> BTreeSet<String> {
    let files = rust_files(&repository(folder)).into_iter();
    let names = files.flat_map(|file| {
        let code = code(&fs::read_to_string(file).unwrap());
        names_behind(&code, &format!("{door}{room}::"))
    });
    names.collect()
}

#[test]
fn verify_reads_with_eyes_of_its_own() {
    let own = "src/verify/own";
    assert_eq!(
        modules_of("rockpack_base::", "formats", own),
        SHARED_WITH_WRITERS.map(str::to_owned).into()
    );
    assert_eq!(modules_of("crate::", "input", own), ["database".to_owned()].into());
    let siblings = modules_of("crate::", "verify", own);
    assert!(
        siblings.iter().all(|name| ["own", "problem"].contains(&name.as_str())),
        "{siblings:?}"
    );
    let used = used_by("verify", &rust_files(&repository(own)));
    // Of receipts, the words that they have for relations.
    let expected = ["content", "formats", "gfx", "input", "package", "receipt", "run", "tree"];
    assert_eq!(Vec::from_iter(used.keys()), expected, "{used:?}");
    let all = modules_of("rockpack_base::", "formats", "src/verify");
    let expected = SHARED_WITH_WRITERS.into_iter().chain(OF_CHECKS).map(str::to_owned);
    assert_eq!(all, expected.collect());
}

#[test]
fn the_crate_of_kernel_archives_is_used_through_base() {
    for file in rust_files(&repository("src")) {
        let code = code(&fs::read_to_string(&file).unwrap());
        assert!(!code.contains("rockpack_kpack"), "{}", file.display());
    }
}

/// A room is reached by its name alone: no other one hands on what it has.
#[test]
fn the_library_lists_rooms_and_holds_nothing() {
    let code = code(&fs::read_to_string(repository("src/lib.rs")).unwrap());
    let other = code.lines().find(|line| !line.is_empty() && !line.starts_with("pub mod "));
    assert_eq!(other, None);
}

#[test]
fn there_is_no_way_round() {
    for (index, (room, allowed)) in MAY_USE.iter().enumerate() {
        let before: Vec<_> = MAY_USE[..index].iter().map(|(room, _)| room).collect();
        let later = allowed.iter().find(|other| !before.contains(other));
        assert_eq!(later, None, "{room} uses it, and it stands further down");
    }
}

/// Without limits are the bytes that a run has in memory, what was written already, and files of a few
/// bytes that are read before there is a budget.
const WITHOUT_BUDGET: [&str; 3] = ["copy.rs", "mod.rs", "open.rs"];

#[test]
fn all_else_is_read_within_the_budget_of_its_run() {
    let files = source_folders().into_iter().flat_map(|folder| rust_files(&folder));
    let without = files.filter(|file| {
        let text = code(&fs::read_to_string(file).unwrap());
        !is_test(file)
            && ["Budget::unlimited(", "Limits::default("].iter().any(|it| text.contains(it))
    });
    let content = repository("crates/base/src/content");
    assert_eq!(without.collect::<Vec<_>>(), WITHOUT_BUDGET.map(|file| content.join(file)));
}

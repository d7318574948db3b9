//! The dependencies between modules. A `use crate::…` or `use rockpack_base::…` (or such a path) outside of
//! this table fails.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use support::program::{repository, rust_files, source_folders};

/// The rooms that a room may use besides itself, `error` and `report` (findings and progress). Only rooms
/// above it in this list are allowed, so there are no cycles.
pub(crate) const MAY_USE: &[(&str, &[&str])] = &[
    // These are below the rooms, in a crate of their own.
    ("error", &[]),
    ("gfx", &[]),
    ("named", &[]),
    ("once", &[]),
    ("run", &[]),
    ("tree", &["named"]),
    // Readers check whether to continue, and whether there is memory.
    ("content", &["run"]),
    // Members of wheels are paths.
    ("formats", &["content", "gfx", "named", "tree"]),
    // Values in findings: digests, archs, targets, paths, package formats.
    ("report", &["content", "formats", "gfx", "named", "tree"]),
    // Names, locks and renames; outlets provide the bytes.
    ("files", &["content", "run"]),
    // Compressed data and descriptions of content, under its digest.
    ("cache", &["content", "files"]),
    // A package, for rooms that decide on it or read it; and an index's description of it, from its file.
    ("package", &["content", "formats", "named", "tree"]),
    // Sets as they were written.
    ("receipt", &["content", "formats", "once", "package", "run", "tree"]),
    // Packed artifacts are compressed tar archives.
    ("input", &["content", "formats", "gfx", "once", "run", "tree"]),
    // The configuration's globs match paths below the prefix.
    ("config", &["content", "gfx", "input", "once", "package", "tree"]),
    ("split", &["cache", "content", "formats", "gfx", "input", "tree"]),
    // The parts of a kernel database from several shards are joined by its formats.
    ("recombine", &["config", "content", "formats", "gfx", "input", "split", "tree"]),
    // Files in, relations out: the formats read the libraries that a file links to.
    ("dependencies", &["content", "formats", "tree"]),
    // An update knows the earlier set. Dependencies of host files on libraries belong to a package.
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
    // The final file gets new search paths. A plan can be shown and divided without being packed: sizes come
    // from the sources that packing reads. Wheels keep members of their input.
    (
        "pack",
        &[
            "cache",
            "content",
            "dependencies",
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
    // `formats::rpm` puts signatures of rpm headers in place.
    ("signing", &["content", "formats", "receipt"]),
    // The writer collects a repository index's data on a package along with its digests. Artifact folders are
    // written from split and recombined artifacts.
    (
        "emit",
        &[
            "cache",
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
    // Files for clients name the path of the key, from the key package, which is named after the repository.
    // Packages that are given are compared with the receipts next to them.
    (
        "repo",
        &["content", "files", "formats", "once", "package", "receipt", "run", "signing", "tree"],
    ),
    // From the input, the rules of databases: the files they have, not their destination. From the
    // dependencies, the tables of distributions (the owners of libraries and programs, not their users), and
    // the folders in which no loader finds a library by name. From signing, the keys and signatures that
    // clients accept.
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
    // The options of each stage are made and checked here, before any stage runs; no stage knows the origin
    // of a value.
    (
        "settings",
        &[
            "cache",
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
            "cache",
            "config",
            "content",
            "emit",
            "formats",
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

/// Modules that all others may use: errors, findings, progress.
const SHARED: [&str; 2] = ["error", "report"];

/// Prefixes of module paths: for the same crate, and for the crate below.
const DOORS: [&str; 2] = ["crate::", "rockpack_base::"];

/// Tells whether a file is only compiled for tests.
fn is_test(path: &Path) -> bool {
    let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    let within = path.components().any(|part| part.as_os_str() == "tests");
    within || name == "fixture" || name == "tests" || name.ends_with("_tests")
}

/// Removes comments, and items only compiled for tests, from `text`.
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

/// Modules after `prefix` in `code`: the first name, or the first name of each path in a list in braces.
fn names_behind(code: &str, prefix: &str) -> Vec<String> {
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

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[test]
fn names_are_found_however_they_are_imported() {
    let text = "use crate::a::B;\n#[cfg(test)]\nmod tests;\nuse crate::{\n    b::{self, C}, D,\n    \
                e,\n};\n// crate::comment\nfn f() { crate::f::g() }\n#[cfg(test)]\nmod more {\n    \
                use crate::not;\n}\nuse crate::h;\n";
    assert_eq!(names_behind(&code(text), "crate::"), ["a", "b", "e", "f", "h"]);
}

/// The program's files by room, without tests, and without `cli` and `lib`, which may use everything.
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

/// The rooms that files of `room` use, each with such a file.
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

/// Readers of finished formats that verify shares with the writers, since other programs judge those. It
/// reads host binaries and bundles with code of its own.
const SHARED_WITH_WRITERS: [&str; 13] = [
    "aks2",
    "code_object",
    "deb",
    "hold",
    "kpack",
    "kpm",
    "marker",
    "offload_binary",
    "package_file",
    "payload",
    "rpm",
    "wheel",
    "zip",
];

/// Further formats that its checks read: repository indexes and states, and numbered paths.
const OF_CHECKS: [&str; 6] =
    ["apt_index", "checked_json", "compression", "path_digests", "python_index", "rpm_md"];

/// The modules of `room`, after `door`, that files below `folder` name.
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
    let expected = ["content", "formats", "gfx", "input", "package", "run", "tree"];
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

/// Code reaches a room only by the room's own name: no other room re-exports it.
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

/// Files in which reading without a budget is allowed: for bytes in memory, for files already written, and
/// for small files read before there is a budget.
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

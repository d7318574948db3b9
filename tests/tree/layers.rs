//! The arrows between modules: who may use whom. A `use crate::…` (or a path `crate::…`) outside
//! of this table fails.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use support::program::repository;

/// Module → what it may use besides itself, `error` and `report` (findings and progress).
const MAY_USE: &[(&str, &[&str])] = &[
    // Packed artifacts are compressed tar archives.
    ("artifact", &["content", "formats", "run", "tree"]),
    // The parts of the pipeline that `lib.rs` leaves out.
    (
        "write",
        &[
            "cache",
            "config",
            "content",
            "dependencies",
            "emit",
            "formats",
            "indexed",
            "pack",
            "package",
            "plan",
            "recombine",
            "run",
            "settings",
            "signing",
        ],
    ),
    ("cache", &["content", "files"]),
    ("config", &["artifact", "content", "database", "gfx", "once", "package"]),
    // Who reads asks whether to go on, and whether there is room.
    ("content", &["run"]),
    ("database", &["content", "formats", "gfx", "once", "tree"]),
    // Files in, relations out: what libraries a file links to is read by the formats.
    ("dependencies", &["content", "formats", "tree"]),
    ("difference", &["listing", "package", "receipt"]),
    (
        "directories",
        &[
            "artifact",
            "config",
            "content",
            "database",
            "files",
            "gfx",
            "pack",
            "recombine",
            "run",
            "split",
            "tree",
        ],
    ),
    ("discover", &["artifact", "config", "gfx", "split", "tree"]),
    // What the index of a repository says of a package is taken up while its digests are.
    (
        "emit",
        &[
            "cache", "content", "files", "formats", "indexed", "package", "receipt", "run",
            "signing", "tree",
        ],
    ),
    ("error", &[]),
    ("extract", &["content", "files", "formats", "gfx", "host_binary", "run"]),
    // Names, locks and renames; outlets give it bytes.
    ("files", &["content"]),
    ("formats", &["content", "gfx"]),
    ("gfx", &[]),
    ("host_binary", &["content", "formats"]),
    ("indexed", &["content", "formats", "package"]),
    (
        "inspect",
        &[
            "artifact",
            "content",
            "database",
            "formats",
            "gfx",
            "host_binary",
            "package",
            "run",
            "split",
            "tree",
        ],
    ),
    // Sets as they were written: receipts, plans, packages.
    ("listing", &["content", "formats", "package", "receipt", "run"]),
    ("keyring", &["content", "package", "tree"]),
    (
        "pack",
        &[
            "cache",
            "content",
            // Search paths are written anew in the final file.
            "dependencies",
            "formats",
            "gfx",
            "host_binary",
            "package",
            "plan",
            "recombine",
            "receipt",
            "run",
            "split",
            "tree",
        ],
    ),
    // What a package is, whoever decides or reads it.
    ("package", &["formats", "tree"]),
    // The whole set is decided on every machine; sizes are asked of the sources that packing reads.
    ("partition", &["content", "pack", "package", "plan", "receipt", "recombine", "tree"]),
    // An update knows the set before it. Dependencies of host files on libraries are part of what a
    // package says.
    (
        "plan",
        &[
            "artifact",
            "config",
            "content",
            "dependencies",
            "formats",
            "gfx",
            "listing",
            "once",
            "package",
            "recombine",
            "split",
            "tree",
        ],
    ),
    // A plan is shown without being packed: sizes are asked of the sources that packing reads.
    (
        "planned",
        &[
            "content",
            "formats",
            "listing",
            "pack",
            "package",
            "plan",
            "receipt",
            "recombine",
            "tree",
        ],
    ),
    // What others wrote has each key once.
    ("once", &[]),
    // The texts of an earlier version become values.
    ("receipt", &["gfx", "once", "package", "tree"]),
    // What several shards have of a kernel database is brought together by its formats.
    (
        "recombine",
        &["artifact", "config", "content", "database", "formats", "gfx", "split", "tree"],
    ),
    (
        "render",
        &[
            "difference",
            "directories",
            "discover",
            "extract",
            "files",
            "formats",
            "inspect",
            "listing",
            "package",
            "planned",
            "receipt",
            "repo",
            "settings",
            "verify",
        ],
    ),
    // Files for clients say where the key package, which is named after the repository, puts the key.
    (
        "repo",
        &["content", "files", "formats", "indexed", "keyring", "once", "package", "run", "signing"],
    ),
    // Values of findings: archs, targets, paths.
    ("report", &["gfx", "tree"]),
    // What a run may take is handed down as a value: whoever needs some of it draws from that.
    ("run", &[]),
    // Of every file of every package, where its bytes come from.
    (
        "sbom",
        &[
            "artifact",
            "content",
            "emit",
            "formats",
            "pack",
            "package",
            "plan",
            "receipt",
            "recombine",
            "tree",
        ],
    ),
    // What each stage is told is made and checked here, before any of them runs; none of them knows
    // where a value came from.
    (
        "settings",
        &[
            "artifact",
            "config",
            "dependencies",
            "formats",
            "pack",
            "package",
            "plan",
            "receipt",
            "repo",
            "run",
            "signing",
        ],
    ),
    // Fingerprints are shown in hex.
    // Signatures of rpm headers are made for `formats::rpm` to put in place.
    ("signing", &["content", "formats"]),
    ("split", &["artifact", "content", "database", "formats", "gfx", "host_binary", "tree"]),
    ("tree", &[]),
    // Of the databases, the rules: which files they have, not what became of them. Of the
    // dependencies, the tables of distributions: who has a library, not who needs it.
    (
        "verify",
        &[
            "artifact",
            "content",
            "database",
            "dependencies",
            "formats",
            "gfx",
            "package",
            "receipt",
            "run",
            "tree",
        ],
    ),
];

/// Modules that everything may use: errors, findings, progress.
const SHARED: [&str; 2] = ["error", "report"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Files that only tests are compiled from.
fn is_test(path: &Path) -> bool {
    let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    let within = path.components().any(|part| part.as_os_str() == "tests");
    within || name == "fixture" || name == "tests" || name.ends_with("_tests")
}

/// Modules named behind `crate::` in `text`, tests and comments left out.
fn named_modules(text: &str) -> Vec<String> {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let named = lines.flat_map(|line| line.split("crate::").skip(1));
    let mut modules = Vec::new();
    for rest in named {
        let list = rest.strip_prefix('{').unwrap_or(rest);
        let until = if rest.starts_with('{') { '}' } else { ':' };
        for name in list.split(until).next().unwrap_or_default().split(',') {
            let name = name.trim().split(|c: char| !c.is_alphanumeric() && c != '_').next();
            modules.extend(
                name.filter(|n| n.starts_with(|c: char| c.is_lowercase())).map(str::to_owned),
            );
        }
    }
    modules
}

#[test]
fn no_module_uses_what_lies_above_it() {
    let table: BTreeMap<_, _> = MAY_USE.iter().copied().collect();
    let root = repository("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let mut checked = 0;
    for file in files {
        let relative = file.strip_prefix(&root).unwrap();
        if is_test(relative) {
            continue;
        }
        let first = relative.components().next().unwrap().as_os_str().to_str().unwrap();
        let module = first.trim_end_matches(".rs");
        if ["cli", "lib", "main"].contains(&module) {
            continue;
        }
        let allowed = table.get(module).unwrap_or_else(|| panic!("{module} is not in the table"));
        for used in named_modules(&fs::read_to_string(&file).unwrap()) {
            checked += 1;
            let fine = used == module
                || SHARED.contains(&used.as_str())
                || allowed.contains(&used.as_str());
            assert!(fine, "{} uses {used}, which {module} must not", relative.display());
        }
    }
    assert!(checked > 50, "only {checked} uses found: is the pattern still right?");
}

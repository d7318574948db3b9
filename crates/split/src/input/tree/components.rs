//! The artifact and the component kind of a file of an install tree, by its path.
//!
//! [`artifact_of`] takes the first component of the path after the standard folders of a
//! prefix, and looks it up in `config/install-tree.toml`. The head of that file says how names match. The
//! folders of a project that no row knows keep their content, even if names in them match.
//!
//! [`kind_of`] follows the patterns of TheRock's `artifact_builder.py` and the `test` patterns of its
//! `artifact-*.toml`, with these differences:
//!
//! - Programs are `lib`: the package of a library has the kinds `lib` and `run` anyway.
//! - Licences are `lib`: they must be installed with the library, and documentation is optional.
//! - Fortran modules of the compiler are `lib`, like its own headers: without them it compiles no program.
//! - Sources of samples in `share` are `dev`: TheRock treats each project differently.
//! - Libraries for Fortran are `lib`: TheRock has some of them in `test`, but other programs may link them.

use std::collections::BTreeMap;
use std::iter;
use std::sync::LazyLock;

use rockpack_core::tree::{ComponentKind, TreePath};

const TEXT: &str = include_str!("../../../../../config/install-tree.toml");

// The file is compiled in, and a test parses it, so it is never broken at run time.
static TABLE: LazyLock<BTreeMap<String, Vec<String>>> =
    LazyLock::new(|| toml::from_str(TEXT).unwrap_or_default());

/// Folders of a prefix that no single project owns; [`is_standard`] has further ones. `amd` holds Python
/// packages.
const STANDARD_FOLDERS: [&str; 23] = [
    ".kpack",
    "amd",
    "asan",
    "bin",
    "cmake",
    "debug",
    "doc",
    "doc-base",
    "etc",
    "html",
    "include",
    "info",
    "lib",
    "lib64",
    "libexec",
    "licenses",
    "lintian",
    "man",
    "modulefiles",
    "overrides",
    "pkgconfig",
    "sbin",
    "share",
];

/// Beginnings of the names of licences. Pages of a manual are called `license.html`.
const LICENCES: [&str; 6] = ["COPYING", "COPYRIGHT", "LICENCE", "LICENSE", "NOTICE", "copyright"];

/// Words in the names of tests, benchmarks and built samples, and of their folders.
const TEST_WORDS: [&str; 10] = [
    "bench", "gentest", "gtest", "kfdtest", "ocltst", "rocrtst", "rtest", "samples", "test",
    "tests",
];

/// Words in the names of tests and of their data in `bin`. Elsewhere, other files have such names.
const CLIENT_WORDS: [&str; 5] = ["benchmark", "example", "perf", "unittests", "yaml"];

/// The name of the artifact that a file belongs to; `None` if the table does not know it.
pub(super) fn artifact_of(path: &TreePath) -> Option<&'static str> {
    let path = path.as_str();
    let archive = path.split_once(".kpack/").and_then(|(_, name)| name.split('_').next());
    if let Some((artifact, _)) = archive.and_then(|artifact| TABLE.get_key_value(artifact)) {
        return Some(artifact.as_str());
    }
    // Debian has the tests of all libraries in one folder `rocm`.
    let path = path.strip_prefix("libexec/rocm/").unwrap_or(path);
    let name = path.split('/').find(|part| !is_standard(part))?;
    let name = ["lib", "test_", "benchmark_"]
        .into_iter()
        .fold(name, |name, start| name.strip_prefix(start).unwrap_or(name));
    let rows =
        TABLE.iter().flat_map(|(artifact, words)| words.iter().map(move |it| (artifact, it)));
    let known = rows.filter(|(_, word)| begins_with_word(name, word));
    known.max_by_key(|(_, word)| word.len()).map(|(artifact, _)| artifact.as_str())
}

fn is_standard(folder: &str) -> bool {
    let manual_section = folder.strip_prefix("man").unwrap_or_default();
    STANDARD_FOLDERS.contains(&folder)
        || folder.ends_with("-linux-gnu")
        || folder.ends_with("-packages")
        || folder.starts_with("python3")
        || manual_section.starts_with(|first: char| first.is_ascii_digit())
}

fn begins_with_word(name: &str, word: &str) -> bool {
    name.split_at_checked(word.len()).is_some_and(|(start, rest)| {
        start.eq_ignore_ascii_case(word) && !rest.starts_with(char::is_alphabetic)
    })
}

/// The component kind of a file: `lib`, `dev`, `doc`, `test` or `dbg`.
pub(super) fn kind_of(path: &TreePath) -> ComponentKind {
    let path = path.as_str();
    let archive = path.split_once(".kpack/").and_then(|(_, name)| name.split(['_', '.']).nth(1));
    if let Some(kind) = archive.and_then(|kind| kind.parse().ok()) {
        return kind;
    }
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    // Whether a folder of the path, together with its parent, meets the condition.
    let lies_in = |is_like: fn((&str, &str)) -> bool| {
        iter::once("").chain(folder.split('/')).zip(folder.split('/')).any(is_like)
    };
    let is_document =
        lies_in(|it| matches!(it, ("share", "doc" | "doc-base" | "html" | "info" | "man")));
    let is_sample = lies_in(|(_, folder)| matches!(folder, "examples" | "samples"));
    if is_document && !has_licence_name(name) {
        ComponentKind::Doc
    } else if is_document || lies_in(|it| it == ("share", "licenses")) {
        ComponentKind::Lib
    } else if ending == Some("debug") || lies_in(|it| it == ("lib", "debug")) {
        ComponentKind::Dbg
    } else if lies_in(|it| matches!(it, ("lib", "clang") | ("include", "c++" | "flang"))) {
        ComponentKind::Lib
    } else if is_sample && path.starts_with("share/") {
        ComponentKind::Dev
    } else if is_test(path) {
        ComponentKind::Test
    } else if matches!(ending, Some("a" | "cmake" | "la" | "pc"))
        || lies_in(|(_, folder)| matches!(folder, "cmake" | "include" | "pkgconfig"))
        || lies_in(|(_, folder)| matches!(folder, "modulefiles" | "rocmmod"))
    {
        ComponentKind::Dev
    } else {
        ComponentKind::Lib
    }
}

pub(super) fn is_licence(path: &TreePath) -> bool {
    let path = path.as_str();
    path.starts_with("share/licenses/")
        || path.starts_with("share/doc/")
            && has_licence_name(path.rsplit('/').next().unwrap_or(path))
}

fn has_licence_name(name: &str) -> bool {
    LICENCES.iter().any(|start| name.starts_with(start))
}

/// Whether a file is a test, a benchmark, a built sample, or belongs to one. The programs of the compiler are
/// not in `bin` itself, and its test tools stay with it.
fn is_test(path: &str) -> bool {
    let (top, rest) = path.split_once('/').unwrap_or(("", path));
    let mut parts = rest.split('/');
    match top {
        "tests" => true,
        // A tool with the name of a test.
        "bin" if TABLE.contains_key(rest) => false,
        "bin" => {
            parts.any(|part| {
                let is_sample = part.starts_with("sample_") || part.starts_with("simple_");
                is_sample || has_word(part, &TEST_WORDS) || has_word(part, &CLIENT_WORDS)
            }) || rest.ends_with(".cmake")
        }
        "libexec" | "share" => parts.any(|part| has_word(part, &TEST_WORDS)),
        "lib" | "lib64" => rest.starts_with("test_") || rest.starts_with("libtest_"),
        _ => false,
    }
}

fn has_word(name: &str, words: &[&str]) -> bool {
    name.split(['-', '_', '.', '+']).any(|own| {
        let own = own.trim_end_matches(|last: char| last.is_ascii_digit());
        words.iter().any(|word| own.eq_ignore_ascii_case(word))
    })
}

#[cfg(test)]
#[path = "components_tests.rs"]
mod tests;

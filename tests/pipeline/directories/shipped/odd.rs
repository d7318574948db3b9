//! Archives of components that are empty, odd or damaged.

use std::fs;
use std::path::{Path, PathBuf};

use support::example::{GROUPS, build_of, configuration, deb_name, rockpack};
use support::kpack::{self, code_object, mach, shipped_with};
use support::tools;

use crate::directories::shipped::{Added, ENGINES, archive, installed, shards_with, verifies};
use crate::directories::{Work, assert_same_packages, ends_with};

/// One additional file for the first shard.
fn with(path: &str, bytes: Vec<u8>) -> Added {
    let mut added = Added::default();
    added[0].insert(path.to_owned(), bytes);
    added
}

/// Builds with the example configuration, changed by `edit`; returns the messages and the packages.
fn built_with(
    work: &Work,
    shards: &Path,
    edit: impl FnOnce(&mut serde_json::Value),
) -> (String, PathBuf) {
    let mut config: serde_json::Value =
        serde_json::from_slice(&fs::read(configuration()).unwrap()).unwrap();
    edit(&mut config);
    let (file, out) = (work.path("config.json"), work.path("out"));
    fs::write(&file, config.to_string()).unwrap();
    let mut build = rockpack();
    build.args(["build", "-v", "--version", "7.1.0", "--artifacts"]).arg(shards);
    let (_, said) = ends_with(build.arg("--config").arg(&file).arg("--out").arg(&out), 0);
    (said, out)
}

const OWN: &str = "lib/foo/kernels.kpack";

#[test]
fn the_table_of_contents_decides_and_a_name_that_says_something_else_is_reported() {
    kpack::need_python();
    let work = Work::new();
    let path = format!("{ENGINES}/gfx1100/kpack/provider_gfx1100.kpack");
    let mut added = with(&path, archive(&[("gfx1151", mach::GFX1151)]));
    added[0].insert("lib/foo/x_gfx1100.kpack".to_owned(), archive(&[("gfx1101", mach::GFX1101)]));
    let shards = shards_with(&work, &added);
    let out = work.path("out");
    let (_, said) = ends_with(&mut build_of(&shards, &out), 0);
    let mismatches: Vec<&str> = said.lines().filter(|line| line.contains("R020")).collect();
    assert_eq!(mismatches.len(), 2, "{said}");
    let installed = installed(&work, &out);
    assert_eq!(installed[&path].0, "rocm-blas-gfx115x");
    assert_eq!(installed["lib/foo/x_gfx1100.kpack"].0, "rocm-blas-gfx110x");
    verifies(&out, Some(&shards));
}

#[test]
fn an_archive_without_rows_goes_where_its_path_says_or_stays_with_the_host_files() {
    kpack::need_python();
    let work = Work::new();
    let path = format!("{ENGINES}/gfx1100/kpack/provider_gfx1100.kpack");
    let mut added = with(&path, shipped_with(&["gfx1100"], &[], "none"));
    added[0].insert(OWN.to_owned(), shipped_with(&[], &[], "none"));
    let shards = shards_with(&work, &added);
    let out = work.build(&shards, "out");
    let installed = installed(&work, &out);
    assert_eq!(installed[&path].0, "rocm-blas-gfx110x");
    assert_eq!(installed[OWN].0, "rocm-blas");
    verifies(&out, None);
    verifies(&out, Some(&shards));
    let split = work.split(&shards, "split");
    assert_same_packages(&out, &work.build(&split, "from-split"), |_| true);
}

#[test]
fn code_for_a_generic_target_may_have_rows_of_single_archs() {
    kpack::need_python();
    let work = Work::new();
    let code = code_object(mach::GFX11_GENERIC, "generic");
    let rows = [("k", "gfx1100", code.clone()), ("k", "gfx1101", code)];
    let added = with(OWN, shipped_with(&["gfx1100", "gfx1101", "gfx1102"], &rows, "none"));
    let shards = shards_with(&work, &added);
    let out = work.build(&shards, "out");
    assert_eq!(installed(&work, &out)[OWN].0, "rocm-blas-gfx110x");
    verifies(&out, Some(&shards));
}

#[test]
fn keys_of_two_components_are_their_own_affair() {
    kpack::need_python();
    let work = Work::new();
    let mut added = with(OWN, vector_add_archive("one"));
    added[0].insert("lib/bar/kernels.kpack".to_owned(), vector_add_archive("other"));
    let shards = shards_with(&work, &added);
    let out = work.build(&shards, "out");
    verifies(&out, None);
    verifies(&out, Some(&shards));
    // Removes both from the only package that has them.
    let package = out.join(deb_name("rocm-blas-gfx110x"));
    let code = work.path("code");
    let mut extract = rockpack();
    tools::run(extract.arg("extract").arg(package).arg("--out").arg(&code));
    for (text, found) in [("other", "vector_add"), ("one", "%3Avector_add")] {
        let files = fs::read_dir(&code).unwrap().map(|file| file.unwrap().path());
        let named =
            |path: &PathBuf| path.to_str().unwrap().ends_with(&format!("{found}-gfx1100.hsaco"));
        let bytes: Vec<_> = files.filter(named).map(|path| fs::read(path).unwrap()).collect();
        let wanted = code_object(mach::GFX1100, text);
        assert!(bytes.contains(&wanted), "{text}");
    }
}

/// An archive with one kernel for gfx1100.
fn vector_add_archive(text: &str) -> Vec<u8> {
    let row = ("vector_add", "gfx1100", code_object(mach::GFX1100, text));
    shipped_with(&["gfx1100"], &[row], "none")
}

#[test]
fn archs_of_no_group_are_left_out_and_accounted_for() {
    kpack::need_python();
    let work = Work::new();
    let (one, none) = (("gfx1100", mach::GFX1100), ("gfx906", mach::GFX906));
    let mut added = with(OWN, archive(&[none]));
    added[0].insert("lib/foo/both.kpack".to_owned(), archive(&[one, none]));
    let shards = shards_with(&work, &added);
    let out = work.path("out");
    let (_, said) = ends_with(&mut build_of(&shards, &out), 0);
    assert!(said.lines().any(|line| line.contains("R012") && line.contains("gfx906")), "{said}");
    let installed = installed(&work, &out);
    assert!(!installed.contains_key(OWN));
    assert_eq!(installed["lib/foo/both.kpack"].0, "rocm-blas-gfx110x");
    verifies(&out, None);
    verifies(&out, Some(&shards));
}

#[test]
fn the_directory_of_a_family_serves_its_members() {
    kpack::need_python();
    let work = Work::new();
    let path = format!("{ENGINES}/gfx110x/kpack/provider.kpack");
    let code = code_object(mach::GFX11_GENERIC, "generic");
    let rows = [("k", "gfx11-generic", code)];
    let mut added = with(&path, shipped_with(&["gfx11-generic"], &rows, "none"));
    let lone = "lib/aotriton/kernels/gfx110x/one.hsaco";
    added[0].insert(lone.to_owned(), code_object(mach::GFX11_GENERIC, "lone"));
    let shards = shards_with(&work, &added);
    let out = work.build(&shards, "out");
    let installed = installed(&work, &out);
    for path in [path.as_str(), lone] {
        assert_eq!(installed[path].0, "rocm-blas-gfx110x", "{path}");
    }
    verifies(&out, None);
    verifies(&out, Some(&shards));
}

#[test]
fn targets_may_be_spelled_in_any_of_the_ways_in_use() {
    kpack::need_python();
    let work = Work::new();
    let mut code = code_object(mach::GFX90A, "with xnack");
    // The header states xnack on, and nothing about sramecc.
    code[49] = 0x07;
    let rows = [("k", "gfx90a-xnack+", code)];
    let added = with(OWN, shipped_with(&["gfx90a-xnack+"], &rows, "none"));
    let shards = shards_with(&work, &added);
    let (_, out) = built_with(&work, &shards, |config| {
        let group = serde_json::json!({"display_name": "Data center", "architectures": ["gfx90a"]});
        config["architecture_groups"]["gfx90a"] = group;
    });
    let receipt = fs::read_to_string(out.join("packages.json")).unwrap();
    assert!(receipt.contains("\"rocm-blas-gfx90a\"") && receipt.contains("gfx90a-xnack+"));
    verifies(&out, None);
    verifies(&out, Some(&shards));
}

#[test]
fn a_rule_may_say_that_an_archive_serves_all_archs() {
    kpack::need_python();
    let work = Work::new();
    let added = with(OWN, archive(&[("gfx1100", mach::GFX1100), ("gfx1151", mach::GFX1151)]));
    let shards = shards_with(&work, &added);
    let (said, out) = built_with(&work, &shards, |config| {
        config["databases"] = serde_json::json!([
            {"name": "foo", "directories": ["**/foo"], "shared": ["*.kpack"]}
        ]);
    });
    assert!(said.lines().any(|line| line.contains("R021") && line.contains(OWN)), "{said}");
    assert_eq!(installed(&work, &out)[OWN].0, "rocm-blas");
    verifies(&out, None);
    verifies(&out, Some(&shards));
}

#[test]
fn rows_that_cannot_be_served_are_refused() {
    kpack::need_python();
    let work = Work::new();
    let shards = shards_with(&work, &with(OWN, Vec::new()));
    let [foreign, unlisted] = ["gfx1100", "gfx1101"].map(|target| {
        let row = ("k", target, code_object(mach::GFX1101, "code"));
        shipped_with(&["gfx1100"], &[row], "none")
    });
    archive_is_refused(&work, &shards, &foreign, "the row of gfx1100 holds code for gfx1101");
    let expected = "has a row of gfx1101, which is not one of its targets";
    archive_is_refused(&work, &shards, &unlisted, expected);
    let text = [("k", "gfx1100", b"no code".to_vec())];
    let text = shipped_with(&["gfx1100"], &text, "none");
    archive_is_refused(&work, &shards, &text, "is not an AMDGPU code object");
    let whole = archive(&[("gfx1101", mach::GFX1101)]);
    archive_is_refused(&work, &shards, &whole[..whole.len() - 1], "blas_lib_gfx110X-dgpu");
    archive_is_refused(&work, &shards, b"", "blas_lib_gfx110X-dgpu");
}

fn archive_is_refused(work: &Work, shards: &Path, bytes: &[u8], expected: &str) {
    fs::write(GROUPS[0].original(shards, OWN), bytes).unwrap();
    let (_, said) = ends_with(&mut build_of(shards, &work.path("out")), 2);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let all = [expected, "kernels.kpack", "help"];
    assert!(all.iter().all(|part| said.contains(part)), "{said}");
}

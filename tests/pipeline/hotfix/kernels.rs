//! Kernel packages whose code stays while their host changes (`kernel_relations = "code"`).

use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use support::example::{GROUPS, configuration, rockpack};
use support::kpack::{archive_sizes, listed_sizes};
use support::queries::{deb_field, installed};
use support::tools;

use super::{BLAS, Case, DATABASE, set};

/// The example with the key, built with release 1.
fn tied_by_code() -> Case {
    let case = Case(tempfile::tempdir().unwrap());
    support::example::copy_shards(&case.path("shards"));
    let text = fs::read_to_string(configuration()).unwrap();
    let mut keys: Value = serde_json::from_str(&text).unwrap();
    keys["kernel_relations"] = Value::from("code");
    fs::write(case.path("code.json"), keys.to_string()).unwrap();
    tools::run(&mut build(&case, "1", &[]));
    case
}

fn build(case: &Case, release: &str, since: &[&str]) -> Command {
    let mut command = rockpack();
    command.arg("build").arg("--artifacts").arg(case.path("shards"));
    command.arg("--config").arg(case.path("code.json"));
    command.args(["--version", "7.1.0", "--release", release]);
    since.iter().for_each(|earlier| {
        command.arg("--since").arg(case.receipt(earlier));
    });
    command.arg("--out").arg(case.path(release));
    command
}

fn breaks(case: &Case, release: &str) -> String {
    let file = case.path(release).join(format!("rocm-blas_7.1.0-{release}_amd64.deb"));
    deb_field(&file, "Breaks")
}

/// Changes a code object in a library of the last group.
fn change_code(case: &Case) {
    let file = GROUPS[2].original(&case.path("shards"), "lib/libexblas.so.1.2");
    let mut library = fs::read(&file).unwrap();
    let tag = GROUPS[2].tag("axpy", "gfx1201");
    let at = library.windows(tag.len()).position(|bytes| bytes == tag.as_bytes()).unwrap();
    library[at] ^= 1;
    fs::write(&file, library).unwrap();
}

#[test]
fn a_fix_of_host_code_ships_no_kernels() {
    let case = tied_by_code();
    let range = "rocm-blas (<< 7.1.1~), rocm-blas (>= 7.1.0-1)";
    assert_eq!(case.depends("1", "rocm-blas-gfx110x"), range);
    case.change_blas();
    tools::run(&mut build(&case, "2", &["1"]));
    assert_eq!(case.made("2"), set(&["rocm-blas"]));
    let all =
        ["gfx110x", "gfx115x", "gfx120x"].map(|group| format!("rocm-blas-{group} (<< 7.1.0-1)"));
    assert_eq!(breaks(&case, "2"), all.join(", "));

    let file = GROUPS[0].original(&case.path("shards"), DATABASE);
    let mut code = fs::read(&file).unwrap();
    let at = code.len() - 1;
    code[at] ^= 1;
    fs::write(&file, code).unwrap();
    tools::run(&mut build(&case, "3", &["2"]));
    // The file belongs to one group: its package changes, and the host, which excludes older kernels.
    assert_eq!(case.made("3"), set(&BLAS[..2]));
    let range = "rocm-blas (<< 7.1.1~), rocm-blas (>= 7.1.0-3)";
    assert_eq!(case.depends("3", "rocm-blas-gfx110x"), range);
    assert!(breaks(&case, "3").contains("rocm-blas-gfx110x (<< 7.1.0-3)"));
    assert!(breaks(&case, "3").contains("rocm-blas-gfx115x (<< 7.1.0-1)"));

    // The code object belongs to one group's wrapper: the other groups' archives stay.
    change_code(&case);
    tools::run(&mut build(&case, "4", &["3"]));
    assert_eq!(case.made("4"), set(&["rocm-blas", "rocm-blas-gfx120x"]));

    let mut verify = rockpack();
    verify.arg("verify").args(["1", "2", "3", "4"].map(|folder| case.path(folder)));
    let said = tools::said(verify.arg("--against").arg(case.path("shards")));
    assert!(said.contains("24 packages, ") && said.contains("\nall checks passed"), "{said}");
}

/// Kernel packages built without the key are tied to a release, so the first hotfix rebuilds them.
#[test]
fn kernels_that_belong_to_a_release_are_made_anew() {
    let case = Case::new(&[]);
    let tied = tied_by_code();
    case.change_blas();
    let mut command = rockpack();
    command.arg("build").arg("--artifacts").arg(case.path("shards"));
    command.arg("--config").arg(tied.path("code.json")).args(["--version", "7.1.0"]);
    command.args(["--release", "2", "--since"]).arg(case.receipt("1"));
    tools::run(command.arg("--out").arg(case.path("2")));
    assert_eq!(case.made("2"), set(&BLAS));
}

/// Packages are compared with those of the earlier set by the compressed bytes.
#[test]
fn packages_with_compressed_code_files_are_kept() {
    let case = Case(tempfile::tempdir().unwrap());
    support::example::copy_shards(&case.path("shards"));
    let compressed = case.with_keys(&[("code_files", Value::from("compressed"))]);
    tools::run(&mut case.configured(&compressed, "1"));
    tools::run(case.configured(&compressed, "2").arg("--since").arg(case.receipt("1")));
    assert_eq!(case.made("2"), set(&[]));
    tools::run(&mut case.hotfix("3", &["2"]));
    assert_eq!(case.made("3"), set(&BLAS));
}

/// A manifest lists kept archives and new ones with their sizes in its own format.
#[test]
fn archives_have_their_size_in_each_format() {
    tools::need(&["dpkg-deb", "rpm2cpio", "cpio"]);
    let case = Case(tempfile::tempdir().unwrap());
    support::example::copy_shards(&case.path("shards"));
    let config = case.with_keys(&[
        ("kernel_relations", Value::from("code")),
        ("archive_level", json!({ "deb": "none" })),
    ]);
    tools::run(&mut case.configured(&config, "1"));
    let first = ["deb", "rpm"].map(|format| archive_sizes(&installed(&case.path("1"), format)));
    assert!(first[0].iter().all(|(name, stored)| *stored > 2 * first[1][name]), "{first:?}");
    let update = |release: &str, options: &[&str], made: &[&str]| {
        let mut command = case.configured(&config, release);
        tools::run(command.arg("--since").arg(case.receipt("1")).args(options));
        assert_eq!(case.made(release), set(made));
        for (format, first) in ["deb", "rpm"].into_iter().zip(&first) {
            let files = installed(&case.path(release), format);
            let mut expected = first.clone();
            expected.extend(archive_sizes(&files));
            assert_eq!(listed_sizes(&files), expected, "{format} of {release}");
        }
        let mut verify = rockpack();
        verify.arg("verify").args(["1", release].map(|folder| case.path(folder)));
        tools::run(verify.arg("--against").arg(case.path("shards")));
    };
    case.change_blas();
    update("2", &[], &["rocm-blas"]);
    // The earlier set's archives stay as they are, whatever the level is now.
    update("3", &["--archive-level", "9"], &["rocm-blas"]);
    change_code(&case);
    update("4", &[], &["rocm-blas", "rocm-blas-gfx120x"]);
    update("5", &["--archive-level", "rpm=none"], &["rocm-blas", "rocm-blas-gfx120x"]);
}

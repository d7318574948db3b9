//! `--since`: the difference from the set that users have until now.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::{Value, json};
use support::example::{GROUPS, build_of, copy_shards};
use support::program::scratch;
use support::tools;

use super::{json, length_of, report};
use crate::schemas::judges;

/// A folder with two sets of the example. `later` also has the GPUs of one more shard and another dangling
/// link, and a file in another package.
fn sets() -> &'static Path {
    static SETS: OnceLock<PathBuf> = OnceLock::new();
    SETS.get_or_init(|| {
        let folder = scratch("report-since");
        let (shards, absent) = (folder.join("shards"), folder.join("gfx1151-build"));
        copy_shards(&shards);
        let shares = GROUPS.iter().map(|group| {
            let own = group.folder(&shards);
            let sparse = own.join("host-suite-sparse_lib_generic/third-party/SuiteSparse/stage");
            let blas = format!("blas_lib_{}/math-libs/BLAS/hipBLAS/stage", group.family);
            [sparse, own.join(blas)].map(|stage| stage.join("share"))
        });
        let shares: Vec<_> = shares.collect();
        for share in shares.iter().flatten() {
            fs::create_dir_all(share).unwrap();
        }
        for [sparse, _] in &shares {
            fs::write(sparse.join("moved"), "text\n").unwrap();
            symlink("nowhere", sparse.join("old")).unwrap();
        }
        let build = |release: &str, out: &str| {
            let mut build = build_of(&shards, &folder.join(out));
            tools::run(build.args(["--release", release]));
        };
        fs::rename(shards.join("gfx1151-build"), &absent).unwrap();
        build("1", "earlier");
        fs::rename(&absent, shards.join("gfx1151-build")).unwrap();
        for [sparse, blas] in &shares {
            fs::rename(sparse.join("moved"), blas.join("moved")).unwrap();
            symlink("nowhere", sparse.join("new")).unwrap();
        }
        build("2", "later");
        folder
    })
}

/// The report about one of the sets, and the Markdown of it.
fn compared(set: &str, since: &str) -> (Value, String) {
    let command = || {
        let mut command = report(&sets().join(set));
        command.arg("--since").arg(sets().join(since));
        command
    };
    (json(&mut command()), tools::succeed(&mut command()))
}

/// The findings with a code.
fn of_code<'a>(found: &'a Value, code: &str) -> Option<&'a Value> {
    found["findings"].as_array().unwrap().iter().find(|own| own["code"] == code)
}

/// The names of the packages of a list of changes.
fn names(changes: &Value, list: &str) -> Vec<(String, String)> {
    let packages = changes[list].as_array().unwrap().iter();
    packages.map(|it| (crate::text(&it["format"]), crate::text(&it["name"]))).collect()
}

#[test]
fn sizes_are_compared_with_those_of_the_same_gpu() {
    let (found, shown) = compared("later", "earlier");
    assert_eq!((&found["version"], &found["since"]), (&json!("7.1.0-2"), &json!("7.1.0-1")));
    for group in &GROUPS {
        let rows = found["formats"][0]["gpus"].as_array().unwrap();
        let row = rows.iter().find(|row| row["targets"] == json!(group.archs)).unwrap();
        let start = format!("| {} (", group.archs.join(" "));
        let line = shown.lines().find(|line| line.starts_with(&start)).unwrap().trim_end();
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [.., download, installed] = *cells.as_slice() else { panic!("{line}") };
        if group.name == "gfx115X" {
            assert_eq!((&row["earlier"], download, installed), (&Value::Null, "new", "new"));
            continue;
        }
        let kernels = format!("rocm-blas-{}", group.suffix);
        let meta = format!("rocm-{}", group.suffix);
        let files = |set: &str, release: &str| {
            let names = ["rocm-blas", &kernels, &meta].map(|name| (name, "amd64"));
            let names = names.into_iter().chain([("rocm-common", "all")]);
            let file = |(name, arch)| format!("{name}_7.1.0-{release}_{arch}.deb");
            length_of(&names.map(|it| sets().join(set).join(file(it))).collect::<Vec<_>>())
        };
        let (before, now) = (files("earlier", "1"), files("later", "2"));
        assert_eq!(
            (&row["earlier"]["download"], &row["sizes"]["download"]),
            (&json!(before), &json!(now))
        );
        assert!(now > before && now - before < 1000, "{before}, {now}");
        assert_eq!(download, format!("+{} B", now - before));
    }
}

#[test]
fn new_and_gone_packages_and_moved_paths_are_listed() {
    let own = ["deb", "rpm"].into_iter().flat_map(|format| {
        ["rocm-blas-gfx115x", "rocm-gfx115x"].map(|name| (format.to_owned(), name.to_owned()))
    });
    let own: Vec<_> = own.collect();
    let (sparse, blas) = ("rocm-host-suite-sparse", "rocm-blas");
    for (set, since, only, other, word, [from, to]) in [
        ("later", "earlier", "added", "removed", "new", [sparse, blas]),
        ("earlier", "later", "removed", "added", "removed", [blas, sparse]),
    ] {
        let (found, shown) = compared(set, since);
        judges("report.schema.json", std::slice::from_ref(&found), &[]);
        let changes = &found["changes"];
        assert_eq!((names(changes, only), names(changes, other)), (own.clone(), Vec::new()));
        let moved = ["deb", "rpm"].map(|format| {
            json!({ "format": format, "path": "/opt/rocm-7.1/share/moved", "from": from, "to": to })
        });
        assert_eq!(changes["moved"], json!(moved));
        assert!(shown.contains("\n- moved to another package: 2 paths\n"), "{shown}");
        for (format, name) in &own {
            let line = format!("\n- {word}: .{format} {name} 7.1.0-2, ");
            assert_eq!(shown.matches(&line).count(), 1, "{shown}");
        }
        let changed = names(changes, "changed");
        for package in [sparse, blas] {
            assert!(changed.contains(&("deb".to_owned(), package.to_owned())), "{changed:?}");
        }
    }
}

#[test]
fn findings_that_the_earlier_set_lacks_are_new() {
    let (found, shown) = compared("later", "earlier");
    let links = of_code(&found, "R006").unwrap();
    assert_eq!((&links["new"], links["texts"].as_array().unwrap().len()), (&json!(1), 2));
    assert!(shown.contains("**warning R006 link-dangling**: 2, 1 of them new\n"), "{shown}");
    assert_eq!(of_code(&found, "R070").unwrap()["new"], 0);
    let (found, _) = compared("earlier", "later");
    assert_eq!(of_code(&found, "R006").unwrap()["new"], 0);
    // The earlier set lacks the GPUs of a group.
    let missing = of_code(&found, "R013").unwrap();
    assert_eq!(missing["new"], missing["texts"].as_array().unwrap().len());
}

#[test]
fn a_set_has_no_difference_from_itself() {
    let (found, shown) = compared("later", "later");
    for format in found["formats"].as_array().unwrap() {
        for gpu in format["gpus"].as_array().unwrap() {
            assert_eq!(gpu["earlier"], gpu["sizes"]);
        }
    }
    for own in found["findings"].as_array().unwrap() {
        assert_eq!(own["new"], 0, "{own}");
    }
    assert!(shown.contains("\n## Changes since 7.1.0-2\n\nNone.\n"), "{shown}");
    assert_eq!(shown.matches(" same | same |").count(), 6, "{shown}");
}

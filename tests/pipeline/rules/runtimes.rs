//! HIP runtimes that cannot read kernel archives, and libraries that need one.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::example::{deb_name, names, rockpack};
use support::fat_wheels::{linked, needed, shim};
use support::program::rockpack_path;
use support::queries::deb_field;
use support::tools;

use crate::rules::{Case, find, patch};

const LIBRARY: &str = "lib/libexblas.so.1.2";
const RUNTIME: &str = "libamdhip64.so.7";

const ACCEPT: &str = "[[accept]]\ncode = 'R143'\nsubject = '*libamdhip64.so*'\n\
                      reason = 'another runtime takes its place'\n";

/// Puts a HIP runtime with this code into the shard of the first group.
fn with_runtime(code: &str) -> Case {
    let case = Case::new();
    let runtime = linked(case.folder.path(), RUNTIME, code, &[]);
    fs::rename(runtime, case.file(0, &format!("lib/{RUNTIME}"))).unwrap();
    case
}

/// The functions that a runtime takes from others or defines decide, not its texts.
#[test]
fn a_runtime_of_the_set_has_to_read_archives() {
    let case = with_runtime("const char *text = \"librocm_kpack.so.0\";\n");
    let expected =
        ["R143", "blas_lib/lib/libamdhip64.so.7", "does not read", "ROCM_KPACK_ENABLED", "accept"];
    case.is_refused("", &expected);
    let output = case.run(ACCEPT, &["-v"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("accepted: R143"), "{said}");
    let calls =
        "int kpack_load_code_object(void);\nint f(void) { return kpack_load_code_object(); }\n";
    let case = with_runtime(calls);
    // Programs do not load separate debug information.
    let [runtime, debug] = ["", ".debug"].map(|end| case.file(0, &format!("lib/{RUNTIME}{end}")));
    let rest = case.folder.path().join("rest");
    tools::need(&["eu-strip"]);
    tools::run(Command::new("eu-strip").arg("-f").arg(debug).arg("-o").arg(rest).arg(runtime));
    let output = case.run("", &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("R143"), "{said}");
}

#[test]
fn libraries_for_runtimes_before_rocm_7_are_named() {
    let case = Case::new();
    for group in 0..3 {
        patch(&case.file(group, LIBRARY), |bytes| {
            let at = find(bytes, b"libamdhip64.so.7\0");
            bytes[at + 15] = b'6';
        });
    }
    let case = case.built("");
    let noticed = case.findings("R142");
    assert_eq!(noticed.len(), 3, "{noticed:?}");
    for finding in noticed {
        assert!(finding["message"].as_str().unwrap().contains("libamdhip64.so.6"), "{finding}");
    }
    assert!(!case.code_objects(LIBRARY).is_empty());
}

/// A program of the example is for a fixed address, so it keeps its device code.
const KEEP: &str = "validation.untransformable = 'keep-fat'\n";

/// The keys for every runtime, with the library in `file`.
fn any_runtime(file: &Path) -> String {
    format!("hip_runtime = 'any'\nhip_shim = '{}'\n{KEEP}", file.display())
}

#[test]
fn packages_for_every_runtime_need_the_package_of_the_shim() {
    tools::need(&["dpkg-deb", "readelf"]);
    let case = Case::new();
    let library = shim(case.folder.path(), "");
    let of_set = "license = 'Apache-2.0'\ncopyright = '2020 A Company'\n";
    let case = case.built(&format!("{of_set}{}", any_runtime(&library)));
    let expected = ["lib/librocm_kpack_shim.so.0", "share/doc/kpack-shim/LICENSE"];
    assert_eq!(case.members("rocm-kpack-shim"), BTreeSet::from(expected.map(str::to_owned)));
    let deb = case.out().join(deb_name("rocm-kpack-shim"));
    assert!(deb_field(&deb, "Description").starts_with("Device code of ROCm packages"));
    let depends = case.depends("rocm-blas");
    assert!(depends.contains("rocm-kpack-shim (>= 7.1.0-1)"), "{depends}");
    assert!(!case.depends("rocm-kpack-shim").contains("rocm-blas"));
    assert!(case.findings("R050").is_empty());
    let root = case.folder.path().join("root");
    for package in ["rocm-blas", "rocm-kpack-shim"] {
        tools::unpack(&case.out().join(deb_name(package)), &root);
    }
    let rights = root.join("usr/share/doc/rocm-kpack-shim/copyright");
    let rights = fs::read_to_string(rights).unwrap();
    let notice = "Redistributions in binary form must reproduce the above copyright notice";
    for text in ["The rockpack authors, Meta", "License: MIT AND BSD-3-Clause\n", notice] {
        assert!(rights.contains(text), "no `{text}` in\n{rights}");
    }
    assert!(!rights.contains("A Company"), "{rights}");
    let prefix = root.join("opt/rocm-7.1");
    let copy = fs::read(prefix.join("lib/librocm_kpack_shim.so.0")).unwrap();
    assert!(copy == fs::read(&library).unwrap());
    let needs = needed(&prefix.join(LIBRARY));
    let count = |name: &str| needs.iter().filter(|needed| *needed == name).count();
    assert_eq!((count("librocm_kpack_shim.so.0"), count(RUNTIME)), (1, 1), "{needs:?}");
}

/// The packages that `--only` leaves could not be installed without it.
#[test]
fn the_package_of_the_shim_comes_along_with_those_that_need_it() {
    for (only, comes) in
        [("blas_lib", true), ("rocm-blas-gfx115x", true), ("host-suite-sparse", false)]
    {
        let case = Case::new();
        let config = any_runtime(&shim(case.folder.path(), ""));
        tools::run(case.build(&config).args(["--only", only]));
        let made = names(&case.out());
        assert_eq!(made.contains(&deb_name("rocm-kpack-shim")), comes, "{only}: {made:?}");
        let receipt = fs::read_to_string(case.out().join("packages.json")).unwrap();
        let receipt: Value = serde_json::from_str(&receipt).unwrap();
        let left_out = receipt["left_out"].to_string();
        assert_eq!(left_out.contains("librocm_kpack_shim.so.0"), !comes, "{only}: {left_out}");
    }
}

#[test]
fn a_runtime_of_the_set_may_be_any() {
    let case = with_runtime("");
    let library = shim(case.folder.path(), "");
    let output = case.run(&any_runtime(&library), &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("R143"), "{said}");
}

#[test]
fn another_file_than_the_shim_is_refused() {
    let case = Case::new();
    let other = linked(case.folder.path(), "libother.so", "", &[]);
    let half = case.folder.path().join("half");
    fs::create_dir(&half).unwrap();
    let code = "void rocm_kpack_register_fat_binary(void) {}\n";
    let half = linked(&half, "librocm_kpack_shim.so.0", code, &[]);
    let absent = case.folder.path().join("absent");
    let text = case.folder.path().join("source.c");
    for (file, why) in [
        (&other, "librocm_kpack_shim.so.0 that defines rocm_kpack_register_fat_binary"),
        (&half, "rocm_kpack_register_fat_binary and rocm_kpack_unregister_fat_binary"),
        (&text, "is not an x86-64 library"),
        (&absent, "No such file"),
    ] {
        let name = file.file_name().unwrap().to_str().unwrap();
        case.is_no_configuration(&any_runtime(file), &[why, name]);
        // It is checked where it is not used, too.
        let unused = format!("hip_shim = '{}'\n", file.display());
        case.is_no_configuration(&unused, &[why, name]);
    }
    case.is_no_configuration("hip_shim = ''\n", &["hip_shim: is empty"]);
}

#[test]
fn an_artifact_with_the_shim_is_told_that_rockpack_adds_it() {
    let case = Case::new();
    let library = shim(case.folder.path(), "");
    fs::copy(&library, case.file(0, "lib/librocm_kpack_shim.so.0")).unwrap();
    let expected = ["lib/librocm_kpack_shim.so.0 would be in both", "remove it from the artifact"];
    case.is_refused(&any_runtime(&library), &expected);
}

#[test]
fn the_shim_is_beside_the_program_or_where_packages_of_rockpack_have_it() {
    let case = Case::new();
    let library = shim(case.folder.path(), "");
    let [bin, packaged] = ["bin", "lib/rockpack"].map(|name| case.folder.path().join(name));
    fs::create_dir(&bin).unwrap();
    fs::create_dir_all(&packaged).unwrap();
    // Another process copies it: a program that some process has open for writing cannot be run.
    tools::run(Command::new("cp").arg(rockpack_path()).arg(&bin));
    let config = case.folder.path().join("any.toml");
    fs::write(&config, "hip_runtime = 'any'\n").unwrap();
    let says = |expected: Option<&str>| {
        let mut show = Command::new(bin.join("rockpack"));
        let output = show.args(["config", "show", "--config"]).arg(&config).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), expected.is_none(), "{said}");
        assert!(said.contains(expected.unwrap_or_default()), "{said}");
    };
    says(Some("is neither next to the running program nor in ../lib/rockpack"));
    fs::copy(&library, packaged.join("librocm_kpack_shim.so.0")).unwrap();
    says(None);
    fs::write(bin.join("librocm_kpack_shim.so"), "text").unwrap();
    says(Some("is not an x86-64 library"));
    fs::rename(&library, bin.join("librocm_kpack_shim.so.0")).unwrap();
    says(None);
}

/// Artifacts that were joined for every runtime are like fat ones; others are not.
#[test]
fn binaries_that_were_split_before_are_named() {
    for (made_for, is_named) in [("archives", true), ("any", false)] {
        let case = Case::new();
        case.build(&format!("hip_runtime = '{made_for}'\n{KEEP}"));
        let [config, joined] = ["packaging.toml", "joined"].map(|it| case.folder.path().join(it));
        let mut recombine = rockpack();
        recombine.arg("recombine").arg("--artifacts").arg(case.shards());
        tools::run(recombine.arg("--config").arg(config).arg("--output-dir").arg(&joined));
        fs::remove_dir_all(case.shards()).unwrap();
        fs::create_dir(case.shards()).unwrap();
        fs::rename(joined, case.shards().join("joined")).unwrap();
        // Without the key, nothing adds the library that they need.
        let output = case.run(KEEP, &[]);
        let said = String::from_utf8_lossy(&output.stderr);
        let hint = "`hip_runtime = \"any\"` adds it to the set";
        assert_eq!(said.contains(hint), !is_named, "{said}");
        let any = any_runtime(&shim(case.folder.path(), ""));
        let output = case.run(&format!("runtime_relation.deb = 'with-archives'\n{any}"), &[]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let named = said.lines().filter(|it| it.contains("R154") && it.contains(LIBRARY));
        assert_eq!(named.count() > 0, is_named, "{said}");
        let depends = case.depends("rocm-blas");
        assert_eq!(depends.contains("with-archives"), is_named, "{depends}");
        assert_eq!(depends.contains("rocm-kpack-shim"), !is_named, "{depends}");
        let made = names(&case.out());
        assert_eq!(made.contains(&deb_name("rocm-kpack-shim")), !is_named, "{made:?}");
    }
}

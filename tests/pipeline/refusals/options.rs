//! Options, the output folder, and `--strict`.

use std::collections::BTreeMap;
use std::fs;

use support::example::{build_of, contents, names, rockpack, shards};
use support::tools;

use crate::refusals::{Bad, FAILED, USAGE, refused};

#[test]
fn strict_turns_a_stray_arch_into_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let expected = ["R012 arch-not-grouped: gfx906: 3 code objects", "--strict turns warnings"];
    refused(build_of(&shards(), &out).arg("--strict"), FAILED, &expected);
    assert!(!out.exists());
}

#[test]
fn illegal_versions_and_prefixes() {
    let cases: [(&[&str], &str); 14] = [
        (&["--version", "7.1.0-1"], "--version: `7.1.0-1` is no version"),
        (&["--version", "7.1.0-1"], "give --version 7.1.0 --release 1 (in a configuration"),
        (&["--version", "7.1.0-rc1-2.el9"], "give --version 7.1.0-rc1 --release 2.el9 (in"),
        (&["--version", "1:7.1.0"], "give --version 7.1.0, and the key `epoch = 1` (in"),
        (&["--version", "7.1.0-one"], "pre-releases are written as in 7.1.0-rc1"),
        (&["--version", "7.1 0"], "--version: `7.1 0` is no version"),
        (&["--version", "7.1_0"], "--version: `7.1_0` is no version"),
        (&["--version", "v7.1.0"], "--version: `v7.1.0` is no version"),
        (&["--version", ""], "--version: `` is no version"),
        (&["--version", "7"], "--version: the version 7 has no minor number"),
        (&["--release", "1-2"], "--release: `1-2` is no release"),
        (
            &["--prefix", "/opt/rocm"],
            "--prefix: `/opt/rocm` cannot be the prefix: it is often a symbolic link",
        ),
        (
            &["--prefix", "/usr"],
            "--prefix: `/usr` cannot be the prefix: it belongs to the distribution",
        ),
        (&["--prefix", "/opt/../usr"], "--prefix: `/opt/../usr` cannot be the prefix"),
    ];
    for (options, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let mut command = rockpack();
        command.arg("build").arg("--artifacts").arg(shards()).arg("--out").arg(&out);
        command.arg("--config").arg(support::example::configuration());
        if options[0] != "--version" {
            command.args(["--version", "7.1.0"]);
        }
        refused(command.args(options), USAGE, &[expected]);
        assert!(!out.exists());
    }
}

#[test]
fn unknown_options_and_values() {
    let cases: [(&[&str], &str); 6] = [
        (&["--format", "apk"], "invalid value 'apk' for '--format <FORMAT>'"),
        (&["--compression", "gzip"], "invalid value 'gzip' for '--compression"),
        (&["--jobs", "0"], "invalid value '0' for '--jobs <JOBS>'"),
        (&["--only", "blsa"], "there is no component `blsa`"),
        (&["--strickt"], "unexpected argument '--strickt' found"),
        (&["leftover"], "unexpected argument 'leftover' found"),
    ];
    for (options, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("out");
        let output = build_of(&shards(), &out).args(options).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(USAGE), "{said}");
        assert!(said.contains(expected) && said.contains("help"), "{said}");
        assert!(output.stdout.is_empty() && !out.exists());
    }
}

/// `/proc` takes no folders, not even from root.
#[test]
fn an_output_folder_that_cannot_be_made() {
    let out = std::path::Path::new("/proc/packages");
    let mut command = build_of(&shards(), out);
    refused(&mut command, FAILED, &["/proc/packages: cannot create: ", "the output folder has to"]);
}

#[test]
fn an_output_folder_that_is_a_file() {
    let bad = Bad::new();
    fs::write(bad.out(), "precious").unwrap();
    refused(&mut bad.build(), USAGE, &["out: is a file, and packages are written into a folder"]);
    assert_eq!(fs::read(bad.out()).unwrap(), b"precious");
}

#[test]
fn a_foreign_receipt_is_not_replaced() {
    for text in [
        "hello",
        "{\"name\": \"somebody's\"}",
        "[]",
        "[[]]",
        "{\"packages\": [[\"x.deb\"]]}",
        "{\"packages\": [{\"file_name\": \"x.deb\"}]}",
        "",
        "{\"packages\": [{\"file_name\": \"x.deb\", \"sha256\": \"0\"}], \"packages\": []}",
        "{\"packages\": [{\"file_name\": \"../x.deb\", \"sha256\": \"0\"}]}",
    ] {
        let bad = Bad::new();
        fs::create_dir(bad.out()).unwrap();
        fs::write(bad.out().join("packages.json"), text).unwrap();
        let expected = ["out/packages.json: is no receipt of rockpack", "move that file away"];
        refused(&mut bad.build(), FAILED, &expected);
        let left = BTreeMap::from([("packages.json".to_owned(), text.as_bytes().to_vec())]);
        assert_eq!(contents(&bad.out()), left);
    }
}

#[test]
fn a_failed_run_leaves_the_earlier_set() {
    let bad = Bad::new();
    tools::run(&mut bad.build());
    let earlier = contents(&bad.out());
    fs::remove_file(bad.artifact().join("artifact_manifest.txt")).unwrap();
    refused(&mut bad.build(), FAILED, &["the artifact has no manifest"]);
    refused(build_of(&shards(), &bad.out()).arg("--strict"), FAILED, &["R012"]);
    assert!(contents(&bad.out()) == earlier, "{:?}", names(&bad.out()));
}

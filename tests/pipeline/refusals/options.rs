//! Options, the output folder, and `--strict`.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use support::example::{build_of, contents, names, rockpack, shards};
use support::tools;

use crate::refusals::{Bad, FAILED, USAGE, refused};

#[test]
fn strict_turns_a_stray_arch_into_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let expected =
        ["warning: R012 arch-not-grouped: gfx906: 3 code objects", "3 warnings with --strict"];
    refused(build_of(&shards(), &out).arg("--strict"), FAILED, &expected);
    assert!(!out.exists());
}

#[test]
fn illegal_versions_and_prefixes_are_refused() {
    let cases: [(&[&str], &str); 14] = [
        (&["--version", "7.1.0-1"], "--version: `7.1.0-1` is not a valid version"),
        (&["--version", "7.1.0-1"], "give --version 7.1.0 --release 1 (in a configuration"),
        (&["--version", "7.1.0-rc1-2.el9"], "give --version 7.1.0-rc1 --release 2.el9 (in"),
        (&["--version", "1:7.1.0"], "give --version 7.1.0, and the key `epoch = 1` (in"),
        (&["--version", "7.1.0-one"], "pre-releases are written as in 7.1.0-rc1"),
        (&["--version", "7.1 0"], "--version: `7.1 0` is not a valid version"),
        (&["--version", "7.1_0"], "--version: `7.1_0` is not a valid version"),
        (&["--version", "v7.1.0"], "--version: `v7.1.0` is not a valid version"),
        (&["--version", ""], "--version: `` is not a valid version"),
        (&["--version", "7"], "--version: the version 7 has no minor number"),
        (&["--release", "1-2"], "--release: `1-2` is not a valid release"),
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
fn unknown_options_and_values_are_refused() {
    let cases: [(&[&str], &str); 6] = [
        (&["--format", "apk"], "invalid value 'apk' for '--format <FORMAT>'"),
        (&["--compression", "gzip"], "invalid value 'gzip' for '--compression"),
        (&["--jobs", "0"], "invalid value '0' for '--jobs <JOBS>'"),
        (&["--only", "blsa"], "there is no component `blsa`"),
        (&["--strickt"], "unexpected argument '--strickt' found"),
        (&["leftover"], "looking for artifacts: leftover: cannot list"),
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

#[test]
fn words_of_other_tools_get_the_tip_that_helps() {
    let cases: [(&[&str], &str); 7] = [
        (&["publish", "packages"], "`rockpack repo` publishes packages"),
        (&["doctor"], "`rockpack verify --installed PREFIX` checks an installation"),
        (&["build", "shards", "--out", "o", "--dry-run"], "`rockpack plan` shows what build"),
        (&["build", "shards", "--out", "o", "--arch", "gfx1100"], "the key `architecture_groups`"),
        (&["build", "shards", "--out", "o", "--gpu=gfx1100"], "the key `architecture_groups`"),
        (&["plan", "shards", "--gfx", "gfx1100"], "`rockpack discover PATH --propose FILE`"),
        (&["verifi"], "a similar subcommand exists: 'verify'"),
    ];
    for (arguments, tip) in cases {
        let output = rockpack().args(arguments).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(USAGE), "{said}");
        assert!(said.matches("tip: ").count() == 1 && said.contains(tip), "{said}");
    }
}

/// `/proc` takes no folders, not even from root.
#[test]
fn an_output_folder_that_cannot_be_made() {
    let out = std::path::Path::new("/proc/packages");
    let mut command = build_of(&shards(), out);
    refused(
        &mut command,
        FAILED,
        &["/proc/packages: cannot create: ", "name a folder that can be created"],
    );
}

#[test]
fn an_output_folder_that_is_a_file() {
    let bad = Bad::new();
    fs::write(bad.out(), "precious").unwrap();
    refused(&mut bad.build(), USAGE, &["out: is a file, but packages are written into a folder"]);
    assert_eq!(fs::read(bad.out()).unwrap(), b"precious");
}

#[test]
fn a_foreign_receipt_is_not_replaced() {
    let bad = Bad::new();
    fs::create_dir(bad.out()).unwrap();
    for text in [
        "hello",
        "{\"name\": \"somebody's\"}",
        "[]",
        "[[]]",
        "{\"packages\": [[\"x.deb\"]]}",
        "{\"packages\": [[\"x.deb\", \"0\"]]}",
        "[[{\"file_name\": \"x.deb\", \"sha256\": \"0\"}]]",
        "{\"packages\": [], \"kept\": [[{\"file_name\": \"x.deb\", \"sha256\": \"0\"}]]}",
        "{\"packages\": [], \"kept\": {\"packages\": [[\"x.deb\", \"0\"]]}}",
        "{\"packages\": [{\"file_name\": \"x.deb\"}]}",
        "",
        "{\"packages\": [{\"file_name\": \"x.deb\", \"sha256\": \"0\"}], \"packages\": []}",
        "{\"packages\": [{\"file_name\": \"../x.deb\", \"sha256\": \"0\"}]}",
    ] {
        fs::write(bad.out().join("packages.json"), text).unwrap();
        let expected = ["out/packages.json: is not a receipt of rockpack", "move that file away"];
        refused(&mut bad.build(), USAGE, &expected);
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

/// Archs in options must be known, or have the form of one that may come.
#[test]
fn archs_of_options_that_cannot_be_any() {
    let bad = Bad::new();
    let expected = ["--gpu-targets: `gfx10300x` is not a GPU arch", "did you mean `gfx1030`?"];
    refused(&mut split_for(&bad, "gfx10300x"), USAGE, &expected);
    let family = ["name the archs of this family one by one: `gfx1100`"];
    refused(&mut split_for(&bad, "gfx110X"), USAGE, &family);
    let archs = "gfx1151 gfx1100 gfx1101 gfx1102 gfx1200 gfx1201 gfx1203";
    let output = split_for(&bad, archs).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("R044 target-absent: gfx1203: ") && said.contains("mean gfx1200?"),
        "{said}"
    );
    let mut extract = rockpack();
    extract.args(["extract", "--target", "gfx11510x", "--out"]).arg(bad.out());
    let output = extract.arg(bad.file("bin/exblas-bench")).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(USAGE), "{said}");
    assert!(said.contains("did you mean `gfx1151`?"), "{said}");
}

fn split_for(bad: &Bad, arch: &str) -> Command {
    let mut command = rockpack();
    command.args(["split", "--gpu-targets", arch, "--output-dir"]).arg(bad.out());
    command.arg("--artifacts").arg(bad.shards());
    command
}

#[test]
fn a_name_of_only_is_nearly_one() {
    let bad = Bad::new();
    for (wanted, meant) in [("rocm-bals", "rocm-blas"), ("blas_lbi", "blas_lib"), ("blsa", "blas")]
    {
        let hint = format!("did you mean `{meant}`?");
        refused(bad.build().args(["--only", wanted]), USAGE, &["no component", &hint]);
    }
}

/// The error names each file by its role.
#[test]
fn files_that_cannot_be_read() {
    let shards = shards();
    let shards = shards.to_str().unwrap();
    let build = ["build", "--version", "7.1.0", "--out", "out", "--artifacts", shards];
    let sign = ["repo", "packages", "--out", "out", "--sign-command", "sign {mode}"];
    let cases: [(&[&str], &[&str], &str); 18] = [
        (&build, &["--config", "no.toml"], "reading the configuration: no.toml: cannot open"),
        (
            &build,
            &["--config", "folder.toml"],
            "reading the configuration: folder.toml: is not a regular file",
        ),
        (&build, &["--packages", "no.json"], "reading the list of packages: no.json: cannot open"),
        (&build, &["--scheme", "no.toml"], "reading the naming scheme: no.toml: cannot open"),
        (&build, &["--since", "no.json"], "reading an earlier set: no.json: cannot open"),
        (&build, &["--sign-key", "no.asc"], "reading the signing key: no.asc: cannot open"),
        (
            &build,
            &["--sign-key", "no.asc", "--sign-passphrase-file", "no"],
            "reading the passphrase: no: cannot open",
        ),
        (
            &sign,
            &["--public-key", "no"],
            "reading the public key of --sign-command: no: cannot open",
        ),
        (&["repo", "no", "--out", "out"], &[], "looking for packages: no: cannot inspect"),
        (&["verify", "no"], &[], "looking for the paths to verify: no: cannot inspect"),
        (&["verify", shards, "--against", "no"], &[], "the artifacts of --against: no: cannot"),
        (
            &["verify", shards, "--key", "no"],
            &[],
            "reading the public key of --key: no: cannot open",
        ),
        (&["plan", "--artifacts", "no"], &[], "looking for artifacts: no: cannot list"),
        (
            &["split", "--output-dir", "out", "--batch-artifact-parent-dir", "no"],
            &[],
            "looking for artifacts: no: cannot list",
        ),
        (
            &["split", "--output-dir", "out", "--artifact-dir", "no"],
            &[],
            "looking for the artifact to split: no: cannot resolve",
        ),
        (
            &["recombine", "--output-dir", "out", "--artifacts", shards, "--config", "no.json"],
            &[],
            "reading the configuration: no.json: cannot open",
        ),
        (&["inspect", "no"], &[], "looking for the files to inspect: no: cannot open"),
        (
            &["extract", "no", "--out", "out"],
            &[],
            "opening a file to extract from: no: cannot open",
        ),
    ];
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("folder.toml")).unwrap();
    for (words, more, expected) in cases {
        let mut command = rockpack();
        command.args(words).args(more).current_dir(folder.path());
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains(expected), "{expected}:\n{said}");
        assert_eq!(said.matches("  × ").count(), 1, "{said}");
    }
}

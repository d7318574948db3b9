//! Everything that can be refused without input is refused before any is opened, all faults together.

use std::fs;
use std::path::Path;
use std::process::Command;

use support::example::{rockpack, shards};
use support::strace::Trace;
use support::tools::{have, need, run};

use super::{Room, stderr};

/// The exit codes of wrong usage, and of a run that failed.
pub const USAGE: i32 = 64;

/// System calls that look at a path without opening it.
const LOOKING: [&str; 8] =
    ["access", "faccessat", "faccessat2", "lstat", "newfstatat", "readlink", "stat", "statx"];

/// A command whose input is the example shards.
fn command(room: &Room, words: &[&str]) -> Command {
    let mut command = rockpack();
    command.args(words).arg("--artifacts").arg(shards());
    if words[0] == "build" {
        command.arg("--out").arg(room.path("out"));
    }
    command
}

/// Those of a command's system calls that open its input, or look at anything in it. It may look at the
/// folder itself, to make sure that it is not the output folder.
fn calls_on(input: &Path, mut calls: Vec<String>) -> Vec<String> {
    let folder = input.to_str().unwrap().to_owned();
    let below = format!("{folder}/");
    let opens = |call: &str| call.starts_with("open") && call.contains(&folder);
    calls.retain(|call| opens(call) || call.contains(&below));
    calls
}

/// Fails unless the command ends with this exit code, reports each of `expected` in this order, and opens no
/// shard.
#[track_caller]
fn refused(command: &mut Command, code: i32, expected: &[&str]) {
    refused_ahead(command, &shards(), code, expected);
}

/// Fails like [`refused`], for a command with another input.
#[track_caller]
pub fn refused_ahead(command: &mut Command, input: &Path, code: i32, expected: &[&str]) {
    let (output, calls) = if have(&["strace"]) {
        let Trace { output, calls, .. } = Trace::of(command, &LOOKING);
        (output, calls)
    } else {
        (command.output().unwrap(), Vec::new())
    };
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    let mut rest = said.as_str();
    for part in expected {
        let at =
            rest.find(part).unwrap_or_else(|| panic!("{part} is not in its place in:\n{said}"));
        rest = &rest[at + part.len()..];
    }
    assert!(output.stdout.is_empty());
    assert_eq!(calls_on(input, calls), Vec::<String>::new());
}

/// This proves that [`refused`] can fail.
#[test]
fn what_is_not_refused_opens_its_input() {
    need(&["strace"]);
    let plan = command(&Room::new(), &["plan", "--version", "7.1"]);
    let calls = calls_on(&shards(), Trace::of(&plan, &LOOKING).calls);
    let opened = |call: &String| call.starts_with("open") && call.contains("libexblas.so.1.2");
    assert!(calls.iter().any(opened), "{calls:?}");
}

#[test]
fn everything_wrong_on_the_command_line_is_refused_at_once() {
    let room = Room::new();
    let words = [
        "--version",
        "7_1",
        "--release",
        "1-2",
        "--distro",
        "debian-99",
        "--variant",
        "a_b",
        "--scheme",
        "rcom",
        "--prefix",
        "/usr",
        "--only",
        "a/b",
        "--archive-level",
        "23",
    ];
    let expected = [
        "--archive-level: `23` is not a valid level",
        "levels are 1 to 22, and `none`",
        "--only `a/b` is not a valid name",
        "--distro: unknown distribution `debian-99`",
        "known ones are azurelinux3, debian-12, debian-13",
        "--version: `7_1` is not a valid version",
        "--release: `1-2` is not a valid release",
        "--scheme: there is no naming scheme `rcom`",
        "the schemes are amdrocm, rocm, rocm-versioned",
        "--variant: `a_b` cannot be a package name",
        "--prefix: `/usr` cannot be the prefix",
    ];
    refused(command(&room, &["plan"]).args(words), USAGE, &expected);
    let of_build =
        ["--sign-key", "no-such-key", "--repo", "r", "--repo-set=suite=a b", "--repo-set=url=x"];
    let more = ["the suite `a b` is not one word", "`x` is not a URL", "no-such-key"];
    let mut build = command(&room, &["build"]);
    refused(build.args(words).args(of_build), USAGE, &[&expected[..], &more[..]].concat());
    refused(
        command(&room, &["build"]).args(["--memory", "100M"]),
        USAGE,
        &["--memory 100M is too small"],
    );
    let late = ("SOURCE_DATE_EPOCH", "5000000000");
    let expected = ["SOURCE_DATE_EPOCH: 5000000000 seconds", "outside of 1970 to 2106"];
    refused(command(&room, &["plan"]).env(late.0, late.1), USAGE, &expected);
    assert!(!room.path("out").exists());
}

#[test]
fn versions_of_the_formats_that_do_not_fit_are_refused() {
    let room = Room::new();
    for (words, expected) in [
        (
            ["--version", "deb=7.1.0,rpm=7.2.0", "--release", "1"],
            "--version: the version of deb is 7.1.0, and that of rpm is 7.2.0",
        ),
        (
            ["--version", "deb=7.1.0,rpm=7_1", "--release", "1"],
            "--version: `7_1` is not a valid version",
        ),
        (
            ["--version", "deb=7.1.0,deb=7.1.0", "--release", "1"],
            "--version: `deb=7.1.0,deb=7.1.0` is not a valid version",
        ),
        (["--version", "deb=7.1.0", "--release", "1"], "--version: has no value for rpm"),
        (["--version", "7.1.0", "--release", "rpm=2"], "--release: has no value for deb"),
        (
            ["--version", "7.1.0", "--release-type", "weekly"],
            "--release-type: `weekly` is not a valid release type",
        ),
        (
            ["--version", "7.1.0-rc1", "--release-type", "prerelease:1"],
            "--release-type: the version 7.1.0~rc1 already is a pre-release",
        ),
    ] {
        refused(command(&room, &["plan"]).args(words), USAGE, &[expected]);
    }
    let file = room.write("v.toml", "version = { deb = '7.1.0', rpm = '7.2.0' }\n");
    let expected = [
        "v.toml: line 1, column 11: version: the version of deb is 7.1.0, and that of rpm is 7.2.0",
    ];
    let file = file.to_str().unwrap();
    refused(&mut command(&room, &["plan", "--config", file]), USAGE, &expected);
}

const WRONG: &str = "\
version = '7_1'
scheme = 'rcom'
distro = 'debian-99'
prefix = '/opt/rocm'
libdir = '/lib'
distribution_tag.deb = '-1'

[runtime_relation]
deb = 'a b'

[libraries.'libx.so.1']
deb = 'x,y'

[relations.rocm-blas]
deb.depends = ['fine', 'not fine']
rpm.requires = ['a >=']

[selectors]
ROCm = [{ artifact = 'blas' }]
rocm-x = [{ artifact = 'blas' }]

[[parts]]
name = 'tools'
kinds = ['bin']
role = 'host'
suffix = { deb = '-utils', rpm = '-tools' }

[architecture_groups.one]
architectures = ['gfx11OO']
";

#[test]
fn everything_wrong_in_a_configuration_is_refused_at_once() {
    let room = Room::new();
    let file = room.write("c.toml", WRONG);
    let expected = [
        "c.toml: line 29, column 18: architecture_groups.one.architectures.0: ",
        "c.toml: line 5, column 10: libdir: `/lib` cannot be a folder",
        "c.toml: line 3, column 10: distro: unknown distribution",
        "c.toml: line 1, column 11: version: `7_1` is not a valid version",
        "c.toml: line 6, column 24: distribution_tag",
        "c.toml: line 2, column 10: scheme: there is no naming scheme",
        "c.toml: line 4, column 10: prefix: `/opt/rocm` cannot be the prefix",
        "c.toml: line 19, column 8: selectors.ROCm: `ROCm` cannot be a package name",
        "c.toml: line 20, column 11: selectors.rocm-x.0: matches nothing: an earlier selector",
        "c.toml: line 24, column 10: parts.0.kinds.0: ",
        "c.toml: line 12, column 7: libraries.libx.so.1.deb: `x,y` is not a valid relation",
        "c.toml: line 9, column 7: runtime_relation.deb: `a b` is not a valid relation",
        "c.toml: line 15, column 24: relations.rocm-blas.deb.depends.1: `not fine` is not a valid relation",
        "c.toml: line 16, column 17: relations.rocm-blas.rpm.requires.0: `a >=` is not a valid relation",
    ];
    let file = file.to_str().unwrap();
    refused(&mut command(&room, &["plan", "--config", file]), USAGE, &expected);
    // The command line's fault decides the exit code.
    let usage = ["--release: `1-2`", "c.toml: line 1, column 11"];
    refused(&mut command(&room, &["build", "--config", file, "--release", "1-2"]), USAGE, &usage);
    let output = command(&room, &["config", "show", "--config", file]).output().unwrap();
    assert_eq!(output.status.code(), Some(USAGE));
    assert!(expected.iter().all(|part| stderr(&output).contains(part)), "{}", stderr(&output));
}

#[test]
fn templates_of_a_scheme_are_tried_before_any_package_is_named() {
    let room = Room::new();
    let own =
        fs::read_to_string(support::program::repository("config/schemes/rocm-versioned.toml"))
            .unwrap();
    let wrong = own.replace("kernels = \"{name}", "kernels = \"{name}_{name}");
    let wrong =
        wrong.replace("package = \"{name}{variant}{series}\"", "package = \"{name}-{group}\"");
    assert_eq!(wrong.lines().zip(own.lines()).filter(|(one, other)| one != other).count(), 2);
    let scheme = room.write("own.toml", &wrong);
    let expected = [
        "own.toml: line 9, column 11: names.package: `{name}-{group}` needs a group",
        "own.toml: line 11, column 11: names.kernels: ",
        "cannot be a package name",
    ];
    let scheme = scheme.to_str().unwrap();
    refused(
        &mut command(&room, &["plan", "--scheme", scheme, "--version", "7.1"]),
        USAGE,
        &expected,
    );
    let short = ["plan", "--scheme", "rocm-versioned", "--version", "7", "--prefix", "/opt/x"];
    refused(&mut command(&room, &short), USAGE, &["--version: the version 7 has no minor number"]);
}

#[test]
fn options_of_a_repository_without_one_are_named() {
    let room = Room::new();
    let mut build = command(&room, &["build", "--repo-set", "generations=3"]);
    refused(&mut build, USAGE, &["--repo <REPO>"]);
}

/// Folders that cannot be written to are refused together with other faults, and `config show` refuses the
/// same as `build`.
#[test]
fn folders_that_cannot_be_written_to_are_refused_ahead() {
    let room = Room::new();
    let file = room.write("README.md", "text");
    let file = file.to_str().unwrap();
    let below = format!("{file}/cache");
    let foreign = room.path("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("packages.json"), "{}").unwrap();
    let foreign = foreign.to_str().unwrap();
    let cases: [(&[&str], &[&str]); 4] = [
        (&["--out", file, "--version", "7_1"], &["README.md: is a file", "--version"]),
        (
            &["--out", "o", "--cache", file, "--version", "7_1"],
            &["README.md: is a file", "--version"],
        ),
        (&["--out", "o", "--cache", &below], &["README.md", "name a folder that can be created"]),
        (&["--out", foreign], &["packages.json"]),
    ];
    for (options, expected) in cases {
        for words in [&["build"][..], &["config", "show"]] {
            let mut command = rockpack();
            command.current_dir(room.path("")).args(words).arg("--artifacts").arg(shards());
            refused(command.args(options), USAGE, expected);
        }
    }
}

/// Only commands that publish open a repository, and lock it.
#[test]
fn showing_settings_leaves_a_repository_as_it_is() {
    let room = Room::new();
    fs::create_dir(room.path("repo")).unwrap();
    let mut show = rockpack();
    show.args(["config", "show", "--repo"]);
    run(show.arg(room.path("repo")));
    let mut build = command(&room, &["build", "--version", "7_1"]);
    let build = build.arg("--repo").arg(room.path("repo"));
    assert_eq!(build.output().unwrap().status.code(), Some(USAGE));
    assert_eq!(fs::read_dir(room.path("repo")).unwrap().count(), 0);
}

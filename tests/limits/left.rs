//! Files that other users put where rockpack looks for its own, and into artifacts and receipts, count as
//! input.

use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use support::example::{names, rockpack};
use support::tools::{self, need};

use crate::{Input, text};

/// Input with a file, and another user's folder that nothing may touch.
fn begin() -> (Input, PathBuf) {
    let input = Input::folder();
    fs::write(input.stage().join("lib/file"), "text").unwrap();
    let victim = input.folder.path().join("victim");
    fs::create_dir(&victim).unwrap();
    fs::write(victim.join("precious"), "precious words").unwrap();
    (input, victim)
}

fn is_whole(victim: &Path) {
    assert_eq!(fs::read_to_string(victim.join("precious")).unwrap(), "precious words");
}

/// Runs a command that must fail within its time limit, and returns its messages.
fn fails(command: &Command) -> String {
    let mut limited = Command::new("timeout");
    limited.arg("20").arg(command.get_program()).args(command.get_args());
    let output = limited.output().unwrap();
    let said = text(&output);
    assert!(matches!(output.status.code(), Some(2 | 64)), "{command:?}: {said}");
    said.replace('\n', " ")
}

/// Makes a folder as an interrupted run leaves it, with a staged file.
fn cut_off(out: &Path, prefix: &str) -> PathBuf {
    let _ = fs::remove_dir_all(out);
    let left = out.join(format!("{prefix}1"));
    fs::create_dir_all(&left).unwrap();
    let name = if prefix.contains("staging") { "x.deb" } else { "x_lib_generic" };
    fs::write(left.join(name), "").unwrap();
    fs::write(left.join("committing"), name).unwrap();
    left
}

#[test]
fn leftovers_that_lead_elsewhere_are_not_followed() {
    need(&["mkfifo"]);
    let (input, victim) = begin();
    let (out, folder) = (input.out(), input.folder.path().join("split"));
    // Each shard has its own output folder.
    let split_out = folder.join("shard");
    let mut split = rockpack();
    split.args(["split", "--artifacts"]).arg(input.shard()).arg("--output-dir").arg(&folder);
    let ways: [(Command, &Path, &str); 2] =
        [(input.build(), &out, ".rockpack-staging-"), (split, &split_out, ".rockpack-artifacts-")];
    for (command, out, prefix) in &ways {
        let left = cut_off(out, prefix);
        symlink(&victim, left.join("replaced")).unwrap();
        assert!(fails(command).contains("symbolic link"));
        is_whole(&victim);
        assert!(!out.join("precious").exists());
        for name in
            ["committing", "replaced", "notes.txt", ".git", &format!("{prefix}2"), "../victim"]
        {
            let left = cut_off(out, prefix);
            fs::write(left.join("committing"), name).unwrap();
            assert!(fails(command).contains("is not a valid file name for a commit"), "{name}");
        }
        let left = cut_off(out, prefix);
        fs::remove_file(left.join("committing")).unwrap();
        tools::run(Command::new("mkfifo").arg(left.join("committing")));
        assert!(fails(command).contains("is not a regular file"));
        fs::remove_file(left.join("committing")).unwrap();
        symlink(victim.join("precious"), left.join("committing")).unwrap();
        let said = fails(command);
        assert!(said.contains("symbolic link") && !said.contains("precious words"), "{said}");
        // Only root can change a folder's owner.
        let left = cut_off(out, prefix);
        if chown(&left, Some(12345), None).is_ok() {
            let said = fails(command);
            assert!(said.contains("was left by another user (uid 12345)"), "{said}");
        }
        for link in [true, false] {
            let left = cut_off(out, prefix);
            fs::create_dir(left.join("replaced")).unwrap();
            let odd = left.join("replaced/odd");
            if link {
                symlink(victim.join("precious"), &odd).unwrap();
            } else {
                tools::run(Command::new("mkfifo").arg(&odd));
            }
            let said = fails(command);
            assert!(said.contains("replaced/odd") && said.contains("is not put back"), "{said}");
            assert!(fs::symlink_metadata(out.join("odd")).is_err());
        }
        // An interrupted run of this user is cleaned up.
        cut_off(out, prefix);
        tools::run(Command::new(command.get_program()).args(command.get_args()));
        assert!(!names(out).iter().any(|name| name.starts_with(prefix)));
    }
    is_whole(&victim);
}

#[test]
fn links_in_a_cache_lead_nowhere() {
    let (input, victim) = begin();
    let cache = input.folder.path().join("cache");
    let build = || {
        let mut build = input.build();
        build.arg("--cache").arg(&cache);
        build
    };
    for (name, target) in [("lock", victim.join("precious")), ("new", victim.clone())] {
        fs::create_dir(&cache).unwrap();
        symlink(&target, cache.join(name)).unwrap();
        let said = fails(&build());
        assert!(said.contains("symbolic link"), "{name}: {said}");
        is_whole(&victim);
        fs::remove_dir_all(&cache).unwrap();
    }
    fs::create_dir(&cache).unwrap();
    fs::hard_link(victim.join("precious"), cache.join("lock")).unwrap();
    assert!(fails(&build()).contains("hard link to a file"));
    fs::remove_file(cache.join("lock")).unwrap();
    // Only root can change a folder's owner.
    tools::run(Command::new("chmod").arg("777").arg(&cache));
    if chown(&cache, Some(12345), None).is_ok() {
        let said = fails(&build());
        assert!(said.contains("belongs to another user (uid 12345)"), "{said}");
        tools::run(Command::new("chmod").arg("775").arg(&cache));
    }
    tools::run(&mut build());
    is_whole(&victim);
}

#[test]
fn a_manifest_that_is_a_link_is_not_read() {
    let (input, victim) = begin();
    let artifact = input.shard().join("a_lib_generic");
    let manifest = artifact.join("artifact_manifest.txt");
    fs::rename(&manifest, victim.join("manifest")).unwrap();
    let out = input.folder.path().join("written");
    let commands = [
        input.build(),
        at(&["plan", "--version", "1.0", "--artifacts"], &input.shard()),
        at(&["discover"], &input.shard()),
        at(&["inspect"], &artifact),
        at(&["split", "--output-dir", out.to_str().unwrap(), "--artifacts"], &input.shard()),
    ];
    for target in ["precious", "manifest"] {
        symlink(victim.join(target), &manifest).unwrap();
        for command in &commands {
            let said = fails(command);
            assert!(said.contains("symbolic link"), "{command:?}: {said}");
            assert!(!said.contains("precious words"), "{command:?}: {said}");
        }
        fs::remove_file(&manifest).unwrap();
    }
    fs::copy(victim.join("manifest"), &manifest).unwrap();
    tools::run(&mut input.build());
}

fn at(arguments: &[&str], path: &Path) -> Command {
    let mut command = rockpack();
    command.args(arguments).arg(path);
    command
}

/// Texts from an earlier set's receipt enter the packages that update the set.
#[test]
fn names_of_a_forged_receipt_go_into_no_package() {
    let (input, _) = begin();
    tools::run(&mut input.build());
    let receipt = fs::read_to_string(input.out().join("packages.json")).unwrap();
    let earlier = input.folder.path().join("earlier.json");
    let mut plan = at(&["plan", "--version", "2.0", "--artifacts"], &input.shard());
    plan.arg("--since").arg(&earlier);
    let forged = [
        (
            "\"rocm-a_1.0-1_all.deb\"",
            "\"libc6, bash (<< 99)_1.0-1_all.deb\"",
            "is not a valid name",
        ),
        ("\"rocm-a-1.0-1.noarch.rpm\"", "\"bash = 1-1.0-1.noarch.rpm\"", "is not a valid name"),
        ("\"rocm-a_1.0-1_all.deb\"", "\"rocm-a_1.0-1_a\\nb.deb\"", "is not a valid name"),
        ("\"version\":\"1.0-1\"", "\"version\":\"1.0), bash (<< 99\"", "is not a valid version"),
        ("/lib/\"", "/lib/../../../\"", "is not a valid path of a ."),
        ("\"rocm-a_1.0-1_all.deb\"", "\"libc6_1.0-1_all.deb\"", "is a package of a distribution"),
        (
            "\"rocm-a-1.0-1.noarch.rpm\"",
            "\"bash-1.0-1.noarch.rpm\"",
            "is a package of a distribution",
        ),
        ("\"prefix\":\"/opt/rocm-1.0\"", "\"prefix\":\"/opt/../etc\"", "is not a valid prefix"),
        ("\"prefix\":\"/opt/rocm-1.0\"", "\"prefix\":\"\"", "is not a valid prefix"),
        ("\"version\":\"1.0\"", "\"version\":\"1.0; x\"", "is not a valid version"),
        ("\"release\":\"1\"", "\"release\":\"\\u001b[2J\"", "is not a valid version"),
    ];
    for (from, to, reason) in forged {
        let text = receipt.replace(from, to);
        assert_ne!(text, receipt, "{from}");
        fs::write(&earlier, text).unwrap();
        let said = fails(&plan);
        assert!(said.contains(reason) && said.contains("earlier.json"), "{to}: {said}");
    }
    fs::write(&earlier, receipt).unwrap();
    tools::run(&mut plan);
}

/// Lines that CI systems read as commands, and names that are displayed as something else.
#[test]
fn no_name_is_a_command_for_a_ci_system() {
    let room = tempfile::tempdir().unwrap();
    let input = Input::folder();
    let shard = room.path().join("::error file=x::y");
    fs::rename(input.shard(), &shard).unwrap();
    let artifact = shard.join("::warning::a_lib_generic");
    fs::rename(shard.join("a_lib_generic"), &artifact).unwrap();
    let stage = artifact.join(crate::STAGE);
    for name in ["::stop-commands::x", "##vso[task.setvariable]x", "##[add-path]x", "a\u{202e}b"] {
        fs::write(stage.join("lib").join(name), "").unwrap();
        // A file outside of all prefixes is a finding.
        fs::write(artifact.join(name), "").unwrap();
    }
    let mut build = rockpack();
    build.args(["build", "--version", "1.0", "--out"]).arg(input.out());
    let out = input.folder.path().join("written");
    let commands = [
        build,
        at(&["discover"], room.path()),
        at(&["discover"], &shard),
        at(&["inspect"], &artifact),
        at(&["inspect", "--json"], &artifact),
        at(&["split", "--output-dir", out.to_str().unwrap()], Path::new("--verbose")),
    ];
    for mut command in commands {
        let subcommand = command.get_args().next().unwrap().to_owned();
        if subcommand == "build" || subcommand == "split" {
            command.arg("--artifacts").arg(&shard);
        }
        for json in [false, true] {
            if json {
                command.args(["--log-format", "json"]);
            }
            let said = text(&command.output().unwrap());
            let starts = said.lines().any(|line| line.trim_start().starts_with("::"));
            assert!(!starts, "{command:?}: {said}");
            for odd in ["##vso[", "##[", "\u{202e}"] {
                assert!(!said.contains(odd), "{command:?}: {odd}: {said}");
            }
            let is_told = subcommand != "build" || said.contains("R116");
            assert!(is_told, "{command:?}: {said}");
            assert!(said.contains("vso[") || said.contains("error file"), "{command:?}: {said}");
        }
    }
}

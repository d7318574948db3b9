//! A wheel gives the same bytes, independent of user and place.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use support::example::contents;
use support::fat_wheels::{Made, WheelSpec, library, of_shard, wheel_command};
use support::tools::run;

use super::made;

/// The files from a run with these options; `NAME=value` in front of them sets a variable.
fn split(out: &Path, wheel: &Path, options: &[&str]) -> BTreeMap<String, Vec<u8>> {
    let mut command = wheel_command(&[wheel], out);
    for option in options {
        match option.split_once('=') {
            Some((name, value)) => command.env(name, value),
            None => command.arg(option),
        };
    }
    run(&mut command);
    contents(out)
}

#[test]
fn wheels_are_the_same_wherever_they_are_made() {
    support::kpack::need_python();
    let made = made();
    let expected = contents(&made.out());
    let room = tempfile::tempdir().unwrap();
    let folder = room.path();
    for jobs in ["1", "7"] {
        let out = folder.join(format!("jobs-{jobs}"));
        assert_same(jobs, split(&out, &made.fat, &["--jobs", jobs]), &expected);
    }
    let little = ["--memory", "640M", "--jobs", "2"];
    assert_same("memory", split(&folder.join("memory"), &made.fat, &little), &expected);
    // A new copy elsewhere, with another date, through a link, with a cache, from another folder and umask.
    let copy = folder.join("copy").join(made.fat.file_name().unwrap());
    fs::create_dir(folder.join("copy")).unwrap();
    fs::copy(&made.fat, &copy).unwrap();
    run(Command::new("touch").args(["-d", "2001-02-03"]).arg(&copy));
    symlink(folder.join("copy"), folder.join("link")).unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", "umask 077 && exec \"$0\" \"$@\""]).arg(support::program::rockpack_path());
    shell.args(["wheel", "link", "--out", "out", "--cache", "cache"]).current_dir(room.path());
    shell.env("TZ", "Pacific/Chatham").env("LC_ALL", "C").env_remove("SOURCE_DATE_EPOCH");
    run(&mut shell);
    assert_same("copy", contents(&folder.join("out")), &expected);
    run(&mut shell);
    assert_same("cache", contents(&folder.join("out")), &expected);
}

fn assert_same(name: &str, found: BTreeMap<String, Vec<u8>>, expected: &BTreeMap<String, Vec<u8>>) {
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{name}");
    for (file, bytes) in found {
        assert!(bytes == expected[&file], "{name}: {file} is another");
    }
}

#[test]
fn the_time_of_members_is_that_of_source_date_epoch() {
    support::kpack::need_python();
    let wheel = WheelSpec::new("x", "1.0").file("x/_C.so", &library());
    let made = Made::of(&wheel, &[]);
    let times = [
        ("0", [1980, 1, 1, 0, 0, 0]),
        ("315532799", [1980, 1, 1, 0, 0, 0]),
        ("1700000001", [2023, 11, 14, 22, 13, 20]),
        ("99999999999", [2107, 12, 31, 23, 59, 58]),
    ];
    for (epoch, time) in times {
        let out = made.room.path().join(epoch);
        split(&out, &made.fat, &[&format!("SOURCE_DATE_EPOCH={epoch}")]);
        let wheels = contents(&out).into_keys().filter(|name| name.ends_with(".whl"));
        let wheels =
            support::fat_wheels::read(&wheels.map(|name| out.join(name)).collect::<Vec<_>>());
        for (file, wheel) in wheels {
            for member in &wheel.members {
                assert_eq!(member["time"], serde_json::json!(time), "{epoch}: {file} {member}");
            }
        }
    }
}

/// Archives with different code have different names, archives with the same code the same.
#[test]
fn archives_are_named_after_their_code() {
    support::kpack::need_python();
    let first = archive_names(&Made::of(&plain(), &[]));
    assert_eq!(first.len(), 4);
    let tokens: std::collections::BTreeSet<String> = first.iter().map(|name| token(name)).collect();
    assert_eq!(tokens.len(), 1, "one token for all archives: {first:?}");
    assert_eq!(tokens.first().unwrap().len(), 16, "{first:?}");
    // Host files, the version and the Python tag do not matter.
    let other = WheelSpec::tagged("x", "2.0", "cp312-cp312-manylinux_2_28_x86_64")
        .file("x/_C.so", &library())
        .text("x/more.py", "more = 1\n");
    assert_eq!(archive_names(&Made::of(&other, &[])), first);
    // Another library beside it matters, and so does a library's path.
    let more = plain().file("x/_D.so", &support::fixtures::folder().join("binaries/rdc"));
    let moved = WheelSpec::new("x", "1.0").file("x/sub/_C.so", &library());
    // Code that differs in one kernel: another build for the same archs.
    let code =
        WheelSpec::new("x", "1.0").file("x/_C.so", &of_shard(0, "libexec/exblas/exblas-tune"));
    for (name, wheel) in [("more", more), ("moved", moved), ("code", code)] {
        for archive in archive_names(&Made::of(&wheel, &[])) {
            assert!(!tokens.contains(&token(&archive)), "{name}: {archive}");
        }
    }
}

fn plain() -> WheelSpec {
    WheelSpec::new("x", "1.0").file("x/_C.so", &library())
}

fn archive_names(made: &Made) -> Vec<String> {
    let wheels = made.wheels();
    let mut names: Vec<String> = wheels
        .values()
        .flat_map(support::fat_wheels::ReadWheel::names)
        .filter(|name| name.ends_with(".kpack"))
        .map(str::to_owned)
        .collect();
    names.sort();
    names
}

fn token(name: &str) -> String {
    name.split(['-', '_']).nth(1).unwrap().to_owned()
}

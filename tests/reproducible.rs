//! The same input gives the same bytes: wherever it lies, whoever builds it, whenever and however.
#![allow(clippy::unwrap_used)] // a test that panics has failed

#[path = "support/example.rs"]
mod example;
#[path = "support/tools.rs"]
mod tools;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use example::{Entry, VERSION, build_of, contents, deb_name, plant, rockpack, shards, tree};

/// One way to run the build.
struct Way {
    /// Where the artifacts lie, below the test's folder.
    place: &'static str,
    reversed: bool,
    umask: &'static str,
    /// Age of the input files in seconds.
    age: u64,
    environment: &'static [(&'static str, &'static str)],
    jobs: &'static str,
}

const WAYS: [Way; 4] = [
    Way { place: "a", reversed: false, umask: "022", age: 0, environment: &[], jobs: "1" },
    Way {
        place: "another/place with spaces/and-a-much-longer-name-than-the-first/ä",
        reversed: true,
        umask: "077",
        age: 1_000_000_000,
        environment: &[("TZ", "Pacific/Kiritimati"), ("LC_ALL", "tr_TR.UTF-8"), ("LANG", "C")],
        jobs: "2",
    },
    Way {
        place: "c",
        reversed: true,
        umask: "002",
        age: 86_400,
        environment: &[("TZ", "America/Los_Angeles"), ("LANG", "de_DE.UTF-8"), ("USER", "nobody")],
        jobs: "3",
    },
    Way {
        place: "d/d",
        reversed: false,
        umask: "000",
        age: 3,
        environment: &[("HOME", "/nowhere"), ("HOSTNAME", "elsewhere"), ("COLUMNS", "7")],
        jobs: "7",
    },
];

/// The examples as a checkout makes them, with what lies beside the shards, and their permissions
/// as the umask leaves them.
fn lay_out(way: &Way, root: &Path) -> PathBuf {
    let artifacts = root.join(way.place).join("shards");
    let umask = u32::from_str_radix(way.umask, 8).unwrap();
    let mut entries = tree(&shards());
    for entry in entries.values_mut() {
        if let Entry::File { mode, .. } = entry {
            *mode = if *mode & 0o100 == 0 { 0o666 } else { 0o777 } & !umask;
        }
    }
    fs::create_dir_all(&artifacts).unwrap();
    plant(&entries, &artifacts, way.reversed);
    let time = SystemTime::now() - Duration::from_secs(way.age);
    for (path, _) in entries.iter().filter(|(_, entry)| matches!(entry, Entry::File { .. })) {
        fs::File::open(artifacts.join(path)).unwrap().set_modified(time).unwrap();
    }
    artifacts
}

/// `command` run by a shell with another umask.
fn with_umask(umask: &str, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "umask $0 && exec \"$@\"", umask]);
    shell.arg(command.get_program()).args(command.get_args());
    shell.env_remove("SOURCE_DATE_EPOCH");
    shell
}

fn build_in(way: &Way, root: &Path) -> BTreeMap<String, Vec<u8>> {
    let out = root.join(way.place).join("out");
    let mut command = build_of(&lay_out(way, root), &out);
    command.args(["--jobs", way.jobs]);
    let mut command = with_umask(way.umask, &command);
    tools::run(command.envs(way.environment.iter().copied()));
    contents(&out)
}

/// Fails with the names of the files that differ.
fn same(one: &BTreeMap<String, Vec<u8>>, other: &BTreeMap<String, Vec<u8>>, what: &str) {
    assert!(one.keys().eq(other.keys()), "{what}");
    let differing: Vec<_> = one.iter().filter(|(name, bytes)| other[*name] != **bytes).collect();
    let names: Vec<_> = differing.iter().map(|(name, _)| name).collect();
    assert!(names.is_empty(), "{what}: {names:?}");
}

#[test]
fn neither_place_nor_time_nor_environment_nor_jobs_change_a_byte() {
    let root = tempfile::tempdir().unwrap();
    let first = build_in(&WAYS[0], root.path());
    assert_eq!(first.len(), 25);
    for way in &WAYS[1..] {
        same(&first, &build_in(way, root.path()), way.place);
    }
}

#[test]
fn the_receipt_names_no_place_of_this_machine() {
    let root = tempfile::tempdir().unwrap();
    let receipt = build_in(&WAYS[1], root.path()).remove("packages.json").unwrap();
    let receipt = String::from_utf8(receipt).unwrap();
    let root = root.path().to_str().unwrap();
    for text in [root, "much-longer-name", env!("CARGO_MANIFEST_DIR"), "/home/", "/tmp/"] {
        assert!(!receipt.contains(text), "{text}");
    }
}

#[test]
fn shards_may_be_given_one_by_one_in_any_order() {
    let folder = tempfile::tempdir().unwrap();
    let build = |order: [&str; 3], out: &str| {
        let out = folder.path().join(out);
        let mut command = rockpack();
        command.arg("build").args(["--version", VERSION]).arg("--out").arg(&out);
        command.arg("--config").arg(example::configuration());
        for shard in order {
            command.arg("--artifacts").arg(shards().join(shard));
        }
        tools::run(&mut command);
        contents(&out)
    };
    let one = build(["gfx110X-build", "gfx1151-build", "gfx120X-build"], "one");
    let other = build(["gfx120X-build", "gfx1151-build", "gfx110X-build"], "other");
    same(&one, &other, "order of --artifacts");
    let together = folder.path().join("together");
    tools::run(&mut build_of(&shards(), &together));
    let mut together = contents(&together);
    // The receipt of the folder also has findings about what lies beside the shards.
    let (mut one, receipt) = (one, "packages.json");
    assert!(one.remove(receipt).is_some() && together.remove(receipt).is_some());
    same(&one, &together, "shards one by one");
}

/// The example set as of a time.
fn stamped(folder: &Path, epoch: &str) -> PathBuf {
    let out = folder.join(epoch);
    tools::run(build_of(&shards(), &out).env("SOURCE_DATE_EPOCH", epoch));
    out
}

#[test]
fn the_epoch_stamps_headers_and_changelogs_alone() {
    if !tools::have(&["dpkg-deb", "rpm", "rpm2cpio"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (stamped(folder.path(), "1700000000"), stamped(folder.path(), "1750000000"));
    for name in contents(&one).keys() {
        let files = [one.join(name), other.join(name)];
        if name.ends_with(".rpm") {
            rpm_differs_in_its_header(&files);
        } else if name.ends_with(".deb") {
            let listing = |file| tools::succeed(Command::new("dpkg-deb").arg("-c").arg(file));
            let [one, other] = files.each_ref().map(listing);
            let (one, other) = (without_sizes(&one), without_sizes(&other));
            assert_eq!(one, other, "{name}: times in the payload");
        }
    }
    the_changelog_alone_differs(&one, &other);
}

/// A changelog's size may differ with its date, compressed as it is.
fn without_sizes(listing: &str) -> Vec<String> {
    let line = |line: &str| {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        words.remove(2);
        words.join(" ")
    };
    listing.lines().map(line).collect()
}

fn rpm_differs_in_its_header(files: &[PathBuf; 2]) {
    let query = |format: &str| {
        files
            .each_ref()
            .map(|file| tools::succeed(Command::new("rpm").args(["-qp", "--qf", format]).arg(file)))
    };
    assert_eq!(query("%{BUILDTIME}"), ["1700000000", "1750000000"]);
    let [one, other] = query("%{BUILDHOST} [%{FILENAMES} %{FILEMTIMES} %{FILEDIGESTS}\n]");
    assert_eq!(one, other, "{files:?}");
    let payload = |file| tools::run(Command::new("rpm2cpio").arg(file)).stdout;
    let [one, other] = files.each_ref().map(payload);
    assert!(one == other, "{files:?}: the payload differs");
}

fn the_changelog_alone_differs(one: &Path, other: &Path) {
    let host = deb_name("rocm-blas");
    let unpacked = [one, other].map(|out| {
        let root = out.join("root");
        tools::run(Command::new("dpkg-deb").arg("-x").arg(out.join(&host)).arg(&root));
        example::files(&root)
    });
    let [one, other] = &unpacked;
    let differing: Vec<_> = one.iter().filter(|(path, bytes)| other[*path] != **bytes).collect();
    let paths: Vec<_> = differing.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["usr/share/doc/rocm-blas/changelog.Debian.gz"]);
    let text = |files: &BTreeMap<String, Vec<u8>>| {
        let mut text = String::new();
        let packed = files[paths[0]].as_slice();
        std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(packed), &mut text)
            .unwrap();
        text
    };
    assert!(text(one).contains("Tue, 14 Nov 2023 22:13:20 +0000"), "{}", text(one));
    assert!(text(other).contains("Sun, 15 Jun 2025 15:06:40 +0000"), "{}", text(other));
}

#[test]
fn a_wrong_epoch_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for epoch in ["", "-1", "yesterday", "99999999999999999999", "9223372036854775807"] {
        let out = folder.path().join("out");
        let output = build_of(&shards(), &out).env("SOURCE_DATE_EPOCH", epoch).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(64), "{epoch}: {text}");
        assert!(!out.exists() && !text.contains("bug"), "{epoch}: {text}");
    }
}

/// A repository serves what a build wrote, whoever ran it.
#[test]
fn everybody_can_read_the_packages() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let build = build_of(&shards(), &out);
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "umask 077 && exec \"$@\"", "sh"]);
    tools::run(shell.arg(build.get_program()).args(build.get_args()));
    for entry in std::fs::read_dir(&out).unwrap() {
        let entry = entry.unwrap();
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o644, "{}", entry.path().display());
    }
}

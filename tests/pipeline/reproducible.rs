//! Equal input gives the same bytes, independent of place, user, time and other circumstances.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use support::example::{
    self, Entry, Set, VERSION, build_of, contents, deb_name, plant, rockpack, shards, tree,
};
use support::program::repository;
use support::queries::rpm_tags;
use support::tools;

/// One way to run the build.
struct Way {
    /// The folder of the artifacts, below the test's folder.
    place: &'static str,
    reversed: bool,
    umask: &'static str,
    /// Age of the input files in seconds.
    age: u64,
    environment: &'static [(&'static str, &'static str)],
    jobs: &'static str,
    /// Whether the zeros of the input are holes.
    holes: bool,
    named: Named,
    /// The cache, below the test's folder: the first way that names it finds it empty, later ones filled.
    cache: Option<&'static str>,
}

/// How the command line names artifacts and output.
enum Named {
    Absolutely,
    /// Relative to a working directory beside them.
    Relatively,
    /// The folder is reached through a symbolic link.
    Linked,
}

const PLAIN: Way = Way {
    place: "a",
    reversed: false,
    umask: "022",
    age: 0,
    environment: &[],
    jobs: "1",
    holes: false,
    named: Named::Absolutely,
    cache: None,
};

const WAYS: [Way; 4] = [
    Way {
        place: "another/place with spaces/and-a-much-longer-name-than-the-first/ä",
        reversed: true,
        umask: "077",
        age: 1_000_000_000,
        environment: &[("TZ", "Pacific/Kiritimati"), ("LC_ALL", "tr_TR.UTF-8"), ("LANG", "C")],
        jobs: "2",
        named: Named::Relatively,
        ..PLAIN
    },
    Way {
        place: "c",
        reversed: true,
        umask: "002",
        age: 86_400,
        environment: &[("TZ", "America/Los_Angeles"), ("LANG", "de_DE.UTF-8"), ("USER", "nobody")],
        jobs: "3",
        named: Named::Linked,
        cache: Some("cache"),
        ..PLAIN
    },
    Way {
        place: "d/d",
        umask: "000",
        age: 3,
        environment: &[("HOME", "/nowhere"), ("HOSTNAME", "elsewhere"), ("COLUMNS", "7")],
        jobs: "7",
        holes: true,
        cache: Some("cache"),
        ..PLAIN
    },
    Way { place: "e", reversed: true, holes: true, jobs: "4", ..PLAIN },
];

/// A file of the artifacts that is almost entirely zeros.
const ZEROS: &str = "gfx110X-build/host-suite-sparse_lib_generic/third-party/SuiteSparse/stage/\
                     lib/zeros";

/// Lays out the examples as a checkout does, with the files beside the shards and the permissions that the
/// umask leaves.
fn lay_out(way: &Way, root: &Path) -> PathBuf {
    let artifacts = root.join(way.place).join("shards");
    let umask = u32::from_str_radix(way.umask, 8).unwrap();
    let mut entries = tree(&shards());
    let zeros = [b"begin".as_slice(), &[0; 1 << 20], b"end"].concat();
    entries.insert(ZEROS.to_owned(), Entry::File { mode: 0o644, bytes: zeros });
    for entry in entries.values_mut() {
        if let Entry::File { mode, .. } = entry {
            *mode = if *mode & 0o100 == 0 { 0o666 } else { 0o777 } & !umask;
        }
    }
    fs::create_dir_all(&artifacts).unwrap();
    plant(&entries, &artifacts, way.reversed);
    if way.holes {
        punch(&artifacts.join(ZEROS));
    }
    let time = SystemTime::now() - Duration::from_secs(way.age);
    for (path, _) in entries.iter().filter(|(_, entry)| matches!(entry, Entry::File { .. })) {
        fs::File::open(artifacts.join(path)).unwrap().set_modified(time).unwrap();
    }
    artifacts
}

/// Rewrites a file with holes in place of its zero blocks.
fn punch(path: &Path) {
    const BLOCK: usize = 4096;
    let bytes = fs::read(path).unwrap();
    let file = fs::OpenOptions::new().write(true).truncate(true).open(path).unwrap();
    file.set_len(bytes.len().try_into().unwrap()).unwrap();
    for (number, block) in bytes.chunks(BLOCK).enumerate() {
        if block.iter().any(|byte| *byte != 0) {
            file.write_all_at(block, (number * BLOCK).try_into().unwrap()).unwrap();
        }
    }
    file.sync_all().unwrap();
    let metadata = file.metadata().unwrap();
    assert!(metadata.blocks() * 512 < metadata.len() / 2, "{}: has no holes", path.display());
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
    let artifacts = lay_out(way, root);
    let place = artifacts.parent().unwrap();
    let from = match way.named {
        Named::Absolutely => place.to_owned(),
        Named::Relatively => PathBuf::from(".."),
        Named::Linked => place.join("link"),
    };
    symlink(place, place.join("link")).unwrap();
    let mut command = build_of(&from.join("shards"), &from.join("out"));
    command.args(["--jobs", way.jobs]);
    let cache = way.cache.map(|name| root.join(name));
    if let Some(cache) = &cache {
        command.arg("--cache").arg(cache);
    }
    let before = cache.as_deref().map(entries_of);
    let mut command = with_umask(way.umask, &command);
    tools::run(command.current_dir(&artifacts).envs(way.environment.iter().copied()));
    if let (Some(cache), Some(before)) = (&cache, before) {
        // A filled cache already has all entries, and an empty one gets them.
        let after = entries_of(cache);
        assert!(after.len() > 20 && (before.is_empty() || before == after), "{}", way.place);
    }
    contents(&place.join("out"))
}

/// The files of a cache; empty if the cache does not exist.
fn entries_of(cache: &Path) -> BTreeSet<String> {
    if cache.exists() { example::files(cache).into_keys().collect() } else { BTreeSet::new() }
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
    let first = build_in(&PLAIN, root.path());
    assert_eq!(first.len(), 25);
    for way in &WAYS {
        same(&first, &build_in(way, root.path()), way.place);
    }
}

/// faketime changes the clock of this program only, and the time that a publication states.
#[test]
fn another_clock_changes_no_byte_of_a_package() {
    tools::need(&["faketime"]);
    let folder = tempfile::tempdir().unwrap();
    let now = contents(&Set::build().out());
    for year in ["1999", "2031"] {
        let [then, repository] =
            ["out", "repository"].map(|name| folder.path().join(year).join(name));
        let mut build = build_of(&shards(), &then);
        build.arg("--repo").arg(&repository);
        let mut faketime = Command::new("faketime");
        faketime.args(["-f", &format!("@{year}-03-04 05:06:07")]);
        faketime.arg(build.get_program()).args(build.get_args());
        // The kernel's own monotonic clock measures waits.
        faketime.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env_remove("SOURCE_DATE_EPOCH");
        tools::run(&mut faketime);
        let release = fs::read_to_string(repository.join("dists/stable/Release")).unwrap();
        assert!(release.contains(&format!(" Mar {year} ")), "{release}");
        same(&now, &contents(&then), year);
    }
}

#[test]
fn the_receipt_names_no_place_of_this_machine() {
    let root = tempfile::tempdir().unwrap();
    // Relative names do not reveal the folder that they start from.
    let way = Way { named: Named::Absolutely, ..WAYS[0] };
    let receipt = build_in(&way, root.path()).remove("packages.json").unwrap();
    let receipt = String::from_utf8(receipt).unwrap();
    let root = root.path().to_str().unwrap();
    let repository = repository("");
    let own = repository.to_str().unwrap();
    for text in [root, "much-longer-name", own, "/home/", "/tmp/"] {
        assert!(!receipt.contains(text), "{text}");
    }
}

#[test]
fn shards_may_be_given_one_by_one_in_any_order() {
    let folder = tempfile::tempdir().unwrap();
    let orders = [
        ("one", ["gfx110X-build", "gfx1151-build", "gfx120X-build"]),
        ("other", ["gfx120X-build", "gfx1151-build", "gfx110X-build"]),
    ];
    let [one, other] = orders.map(|(out, order)| {
        let out = folder.path().join(out);
        let mut command = rockpack();
        command.arg("build").args(["--version", VERSION]).arg("--out").arg(&out);
        command.arg("--config").arg(example::configuration());
        for shard in order {
            command.arg("--artifacts").arg(shards().join(shard));
        }
        tools::run(&mut command);
        contents(&out)
    });
    same(&one, &other, "order of --artifacts");
    let mut together = contents(&Set::build().out());
    // The folder's receipt has further findings, about the files beside the shards.
    let (mut one, receipt) = (one, "packages.json");
    assert!(one.remove(receipt).is_some() && together.remove(receipt).is_some());
    same(&one, &together, "shards one by one");
}

/// Builds the example set with a timestamp.
fn stamped(folder: &Path, epoch: &str) -> PathBuf {
    let out = folder.join(epoch);
    tools::run(build_of(&shards(), &out).env("SOURCE_DATE_EPOCH", epoch));
    out
}

#[test]
fn the_epoch_stamps_headers_and_changelogs_alone() {
    tools::need(&["dpkg-deb", "rpm", "rpm2cpio"]);
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

/// The compressed changelog depends on the date, so its size may differ.
fn without_sizes(listing: &str) -> Vec<String> {
    let line = |line: &str| {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        words.remove(2);
        words.join(" ")
    };
    listing.lines().map(line).collect()
}

fn rpm_differs_in_its_header(files: &[PathBuf; 2]) {
    assert_eq!(tags_of_each(files, "%{BUILDTIME}"), ["1700000000", "1750000000"]);
    let format = "%{BUILDHOST} [%{FILENAMES} %{FILEMTIMES} %{FILEDIGESTS}\n]";
    let [one, other] = tags_of_each(files, format);
    assert_eq!(one, other, "{files:?}");
    let payload = |file| tools::run(Command::new("rpm2cpio").arg(file)).stdout;
    let [one, other] = files.each_ref().map(payload);
    assert!(one == other, "{files:?}: the payload differs");
}

fn tags_of_each(files: &[PathBuf; 2], format: &str) -> [String; 2] {
    files.each_ref().map(|file| rpm_tags(file, format))
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

/// A repository serves the files that a build wrote, so every user must be able to read them.
#[test]
fn everybody_can_read_the_packages() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("new/out");
    let build = build_of(&shards(), &out);
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "umask 077 && exec \"$@\"", "sh"]);
    tools::run(shell.arg(build.get_program()).args(build.get_args()));
    for made in [&folder.path().join("new"), &out] {
        assert_eq!(permissions(made), 0o755, "{}", made.display());
    }
    for entry in std::fs::read_dir(&out).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(permissions(&path), 0o644, "{}", path.display());
    }
}

fn permissions(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

//! `rockpack build --cache`: the packages are the same, and nothing is compressed twice.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use support::example::{
    Entry, GROUPS, build_of, configuration, contents, copy_set, copy_shards, files, kernels, names,
    plant, shards, tree,
};
use support::tools;
use support::waiting::{Process, until};
use tempfile::TempDir;

/// Builds of the example shards with a cache.
struct Case {
    folder: TempDir,
}

impl Case {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// With a cache that the example set has filled, once in a run.
    fn filled() -> Self {
        static CACHE: OnceLock<BTreeMap<String, Entry>> = OnceLock::new();
        let fill = || {
            let case = Self::new();
            case.build("first", &[]);
            tree(&case.cache())
        };
        let case = Self::new();
        plant(CACHE.get_or_init(fill), &case.cache(), false);
        case
    }

    fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    fn out(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, artifacts: &Path, out: &str) -> Command {
        let mut command = build_of(artifacts, &self.out(out));
        command.arg("-v").arg("--cache").arg(self.cache());
        command
    }

    /// Builds with the cache, and returns the stderr.
    fn build(&self, out: &str, options: &[&str]) -> String {
        let output = tools::run(self.command(&shards(), out).args(options));
        String::from_utf8(output.stderr).unwrap()
    }

    /// The entries of the cache, by path below it.
    fn entries(&self) -> BTreeMap<String, Vec<u8>> {
        let mut entries = files(&self.cache());
        entries.retain(|path, _| path.len() == 65);
        entries
    }

    /// The size of the whole cache in bytes.
    fn taken(&self) -> usize {
        self.entries().values().map(Vec::len).sum()
    }
}

/// The example set without a cache, and with further options.
fn plain(options: &[&str]) -> BTreeMap<String, Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    if options.is_empty() {
        copy_set(&out);
    } else {
        tools::run(build_of(&shards(), &out).args(options));
    }
    contents(&out)
}

/// A build of another version with the same prefix and `options`, and its packages without a cache.
fn respun(case: &Case, out: &str, options: &[&str]) -> (Command, BTreeMap<String, Vec<u8>>) {
    let text = fs::read_to_string(configuration()).unwrap();
    let changed = text.trim_end().strip_suffix('}').unwrap().to_owned()
        + r#", "vendor": "Somebody",
        "relations": { "rocm-blas": { "deb": { "depends": ["libc6 (>= 2.36)"] } } },
        "packages": { "rocm-blas": { "description": "Another text." } } }"#;
    let config = case.out("changed.json");
    fs::write(&config, changed).unwrap();
    let command = |out: &Path| {
        let mut command = support::example::rockpack();
        command.arg("build").arg("--artifacts").arg(shards()).arg("--config").arg(&config);
        command.args(["--version", "7.1.1", "--release", "3"]).arg("--out").arg(out);
        command.args(options).env("SOURCE_DATE_EPOCH", "1790000000");
        command
    };
    let expected = case.out("expected");
    tools::run(&mut command(&expected));
    let mut cached = command(&case.out(out));
    cached.arg("--cache").arg(case.cache());
    (cached, contents(&expected))
}

#[test]
fn packages_are_the_same_with_an_empty_a_full_and_no_cache() {
    for compression in ["zstd", "xz"] {
        let options = ["--compression", compression];
        let expected = plain(&options);
        let case = Case::new();
        for round in ["empty", "full"] {
            case.build(round, &options);
            assert!(contents(&case.out(round)) == expected, "{compression}, {round}");
        }
        // cmp gives the final judgement.
        let (full, package) = (case.out("full"), "rocm-blas-gfx110x_7.1.0-1_amd64.deb");
        tools::run(
            Command::new("cmp").arg(full.join(package)).arg(case.out("empty").join(package)),
        );
    }
}

#[test]
fn sets_of_other_formats_and_with_lists_of_files_share_payloads() {
    let case = Case::new();
    let mut sizes = Vec::new();
    for options in [&["--format", "rpm"][..], &[], &["--sbom"]] {
        let before = case.entries();
        let out = sizes.len().to_string();
        case.build(&out, options);
        assert!(contents(&case.out(&out)) == plain(options), "{options:?}");
        let after = case.entries();
        assert!(before.iter().all(|(path, bytes)| after.get(path) == Some(bytes)), "{options:?}");
        sizes.push(after.len() - before.len());
    }
    let debs = plain(&[]).keys().filter(|name| name.ends_with(".deb")).count();
    assert_eq!(sizes[1..], [debs, 0], "only the payloads of the .deb packages are new, then none");
}

#[test]
fn another_version_compresses_the_host_packages_of_debian_only() {
    tools::need(&["dpkg-deb"]);
    another_version_compresses(&[]);
    // The documents have SHA-1 of files that are read for only one of the formats.
    another_version_compresses(&["--sbom"]);
}

fn another_version_compresses(options: &[&str]) {
    let case = Case::new();
    case.build("first", options);
    let before = case.entries();
    let (mut command, expected) = respun(&case, "second", options);
    tools::run(&mut command);
    assert!(contents(&case.out("second")) == expected);
    // Only packages with a changelog, whose text differs.
    let has_changelog = |name: &&String| {
        let file = case.out("second").join(name);
        let list = || tools::succeed(Command::new("dpkg-deb").arg("-c").arg(&file));
        name.ends_with(".deb") && list().contains("/changelog.Debian.gz")
    };
    let with_changelog: Vec<&String> = expected.keys().filter(has_changelog).collect();
    for group in &GROUPS {
        assert!(!with_changelog.iter().any(|name| name.starts_with(&kernels(group))));
    }
    let after = case.entries();
    let new = after.keys().filter(|path| !before.contains_key(*path));
    assert_eq!(new.count(), with_changelog.len());
    assert!(before.iter().all(|(path, bytes)| after.get(path) == Some(bytes)));
    // A third build adds nothing to the cache.
    let (mut command, _) = respun(&case, "third", options);
    tools::run(&mut command);
    assert!(case.entries() == after);
}

#[test]
fn the_digests_of_a_long_file_are_kept() {
    let case = Case::new();
    let root = case.out("shards");
    copy_shards(&root);
    for group in &GROUPS {
        let table = (0..400_000_u32).flat_map(|number| (number / 3).to_le_bytes());
        let path = group.stage(&root, "lib").join("lib/table.bin");
        fs::write(path, table.collect::<Vec<_>>()).unwrap();
    }
    let command = |version: &str, out: &str| {
        let mut command = support::example::rockpack();
        command.arg("build").arg("--artifacts").arg(&root).arg("--config").arg(configuration());
        command.args(["--version", version]).arg("--out").arg(case.out(out));
        command
    };
    let cached = |version: &str| {
        tools::run(&mut command(version, "expected"));
        let said = tools::run(command(version, version).arg("--cache").arg(case.cache())).stderr;
        assert!(contents(&case.out(version)) == contents(&case.out("expected")), "{version}");
        String::from_utf8(said).unwrap()
    };
    cached("7.1.0");
    // They have a SHA-256, an MD5 and a trailer.
    let kept = || {
        let entries = case.entries().into_iter();
        entries.filter(|(_, bytes)| bytes.len() == 32 + 16 + 120).collect::<Vec<_>>()
    };
    let first = kept();
    assert!(!first.is_empty());
    assert!(!cached("7.1.1").contains("R096"));
    for (path, bytes) in &first {
        fs::write(case.cache().join(path), &bytes[1..]).unwrap();
    }
    assert!(cached("7.1.2").contains("R096"), "the package of another version looks for them");
    assert!(kept() == first);
}

#[test]
fn one_changed_artifact_compresses_its_packages_only() {
    let case = Case::new();
    let root = case.out("shards");
    copy_shards(&root);
    tools::run(&mut case.command(&root, "first"));
    let before = case.entries();
    // A database of one group changes: no code object, one package.
    let library = GROUPS[1].stage(&root, "lib").join("lib");
    let changed = files(&library).into_keys().find(|path| path.ends_with("gfx1151.dat")).unwrap();
    let mut bytes = fs::read(library.join(&changed)).unwrap();
    let end = bytes.len() - 1;
    bytes[end] ^= 1;
    fs::write(library.join(&changed), bytes).unwrap();
    tools::run(&mut case.command(&root, "second"));
    tools::run(&mut build_of(&root, &case.out("expected")));
    assert!(contents(&case.out("second")) == contents(&case.out("expected")));
    let new = case.entries().into_keys().filter(|path| !before.contains_key(path)).count();
    assert_eq!(new, 2, "the .deb and the .rpm of rocm-blas-gfx115x");
}

#[test]
fn the_description_of_a_long_index_is_kept() {
    let case = Case::new();
    let root = case.out("shards");
    copy_shards(&root);
    tools::run(&mut case.command(&root, "first"));
    let before = case.entries();
    let path = GROUPS[1].stage(&root, "lib").join("lib/rocblas/library/TensileLibrary_gfx1151.dat");
    let mut index = rmpv::decode::read_value(&mut &fs::read(&path).unwrap()[..]).unwrap();
    let rmpv::Value::Map(keys) = &mut index else { panic!("{index}") };
    keys.push(("padding".into(), "no name ".repeat(50_000).into()));
    let mut bytes = Vec::new();
    rmpv::encode::write_value(&mut bytes, &index).unwrap();
    fs::write(&path, bytes).unwrap();
    tools::run(&mut build_of(&root, &case.out("expected")));
    let expected = contents(&case.out("expected"));
    for round in ["kept", "taken", "healed"] {
        let said = tools::run(&mut case.command(&root, round)).stderr;
        assert!(contents(&case.out(round)) == expected, "{round}");
        let entries = case.entries();
        let new: Vec<_> = entries.iter().filter(|(path, _)| !before.contains_key(*path)).collect();
        assert_eq!(new.len(), 3, "a .deb, an .rpm, and the description");
        let damaged = String::from_utf8(said).unwrap().matches("R096").count();
        assert_eq!(damaged, if round == "healed" { 3 } else { 0 }, "{round}");
        for (path, bytes) in new.into_iter().filter(|_| round == "taken") {
            fs::write(case.cache().join(path), &bytes[..bytes.len() - 1]).unwrap();
        }
    }
}

#[test]
fn damage_is_found_healed_and_reported() {
    let expected = plain(&[]);
    let case = Case::filled();
    let whole = case.entries();
    for (index, (path, bytes)) in whole.iter().enumerate() {
        let mut bytes = bytes.clone();
        match index % 4 {
            0 => bytes[0] ^= 0x40,
            1 => bytes.truncate(bytes.len() / 2),
            2 => *bytes.last_mut().unwrap() ^= 1,
            // Zeros in the middle, as a file system leaves them after a power cut.
            _ => {
                let middle = bytes.len() / 2;
                bytes[middle..].fill(0);
            }
        }
        fs::write(case.cache().join(path), bytes).unwrap();
    }
    let said = case.build("second", &[]);
    assert!(contents(&case.out("second")) == expected);
    assert_eq!(said.matches("R096 cache-entry-damaged").count(), whole.len(), "{said}");
    assert!(case.entries() == whole, "what was damaged is whole again");
    assert!(!case.build("third", &[]).contains("R096"));
    // One entry in place of another.
    let mut paths = whole.keys();
    let (one, other) = (paths.next().unwrap(), paths.next().unwrap());
    fs::write(case.cache().join(one), &whole[other]).unwrap();
    assert!(case.build("fourth", &[]).contains("R096"));
    assert!(contents(&case.out("fourth")) == expected);
}

#[test]
fn the_cache_keeps_to_its_size() {
    let expected = plain(&[]);
    let case = Case::filled();
    let all = case.taken();
    for part in [2, 5, all] {
        let limit = all / part;
        case.build("limited", &["--cache-size", &limit.to_string()]);
        assert!(contents(&case.out("limited")) == expected);
        assert!(case.taken() <= limit, "{} of {limit} bytes", case.taken());
    }
    case.build("first", &["--cache-size", "1G"]);
    assert_eq!(case.taken(), all);
}

#[test]
fn several_builds_share_a_cache() {
    let expected = plain(&[]);
    let case = Case::new();
    let limit = (1 << 20).to_string();
    for round in 0..2 {
        let outs: Vec<String> = (0..4).map(|index| format!("{round}-{index}")).collect();
        let started: Vec<_> = outs
            .iter()
            .map(|out| {
                let mut command = case.command(&shards(), out);
                command.args(["--cache-size", &limit]);
                Process::start(command.stdout(Stdio::null()).stderr(Stdio::piped()))
            })
            .collect();
        for build in started {
            let output = build.output();
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(output.status.success(), "{said}");
            assert!(!said.contains("R09"), "{said}");
        }
        for out in outs {
            assert!(contents(&case.out(&out)) == expected, "{out}");
        }
    }
    assert!(case.taken() <= 1 << 20);
    assert_eq!(names(&case.cache().join("new")).len(), 0);
}

/// The number of builds to kill, spread over a run by the entries in the cache; `ROCKPACK_KILLS` sets more.
const KILLS: usize = 10;

#[test]
fn a_killed_build_leaves_a_cache_that_can_be_used() {
    let expected = plain(&[]);
    let entries = Case::filled().entries();
    let kills = std::env::var("ROCKPACK_KILLS").map_or(KILLS, |text| text.parse().unwrap());
    let mut killed = 0;
    for kill in 0..kills {
        let case = Case::new();
        if kill_at(&case, entries.len() * kill / kills, kill) {
            killed += 1;
        }
        // The set is either complete or absent, and so is every cache entry.
        let visible: BTreeMap<String, Vec<u8>> = contents_but_hidden(&case.out("out"));
        assert!(visible.is_empty() || visible == expected, "{:?}", visible.keys());
        for (path, bytes) in case.entries() {
            assert!(entries.get(&path) == Some(&bytes), "{path} after kill {kill}");
        }
        let said = case.build("out", &[]);
        assert!(!said.contains("R09"), "{said}");
        assert!(contents(&case.out("out")) == expected, "after kill {kill}");
        assert!(case.entries() == entries, "after kill {kill}");
        assert_eq!(names(&case.cache().join("new")).len(), 0);
    }
    note!("{killed} of {kills} builds were still running when they were killed");
    assert!(killed * 2 > kills);
}

/// Starts a build and kills it shortly after the cache has this many entries. Returns whether it was still
/// running.
fn kill_at(case: &Case, entries: usize, moment: usize) -> bool {
    let mut command = case.command(&shards(), "out");
    let mut build = Process::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
    let mut come = || case_count(case) >= entries || build.has_ended().is_some();
    until("the cache has its entries", || come().then_some(()));
    std::thread::sleep(Duration::from_micros(700 * (moment as u64 % 7)));
    build.kill()
}

/// The files of a folder without hidden ones.
fn contents_but_hidden(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let visible = names(folder).into_iter().filter(|name| !name.starts_with('.'));
    visible.map(|name| (name.clone(), fs::read(folder.join(name)).unwrap())).collect()
}

/// The number of entries in the cache of a running build.
fn case_count(case: &Case) -> usize {
    names(&case.cache())
        .into_iter()
        .filter(|name| name.len() == 2)
        .map(|name| names(&case.cache().join(name)).len())
        .sum()
}

#[test]
fn what_cannot_be_a_cache_is_refused() {
    let case = Case::new();
    fs::write(case.cache(), "a file").unwrap();
    let said = tools::told(&mut case.command(&shards(), "out"));
    assert!(said.contains("--cache") && said.contains("exit status: 64"), "{said}");
    let said = tools::told(build_of(&shards(), &case.out("out")).args(["--cache-size", "1G"]));
    assert!(said.contains("--cache") && said.contains("exit status: 64"), "{said}");
    let said = tools::told(case.command(&shards(), "out").args(["--cache-size", "many"]));
    assert!(said.contains("such as 20G") && said.contains("exit status: 64"), "{said}");
    let mut inside = build_of(&case.out("shards"), &case.out("out"));
    copy_shards(&case.out("shards"));
    let said = tools::told(inside.arg("--cache").arg(case.out("shards/gfx1151-build/cache")));
    assert!(
        said.contains("the cache lies inside of") && said.contains("exit status: 64"),
        "{said}"
    );
}

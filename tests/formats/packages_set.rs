//! A set of packages appears whole or not at all, with the same bytes however it is made.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rockpack_archive::package_file::PackageReader;
use rockpack_core::compression::LongMatches;
use rockpack_core::content::Content;
use rockpack_core::error::Kind;
use rockpack_emit::{Compression, Staging, emit_package};
use rockpack_package::receipt::{SetPart, file_name};
use rockpack_package::{Package, Treatment};
use support::packages::{self, Tree, emit_set, options, package, receipt};
use support::queries::rpm_tags;
use support::tools::{need, succeed};

fn small(name: &str, text: &str) -> Package<Content> {
    let tree = Tree::default().deb_directory("opt").directory("opt/x").text("opt/x/file", text);
    package(name, tree.entries())
}

/// The entries of `directory`: name → content, which is empty for a directory.
fn listing(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(Result::unwrap);
    entries
        .map(|entry| {
            let content = fs::read(entry.path()).unwrap_or_default();
            (entry.file_name().into_string().unwrap(), content)
        })
        .collect()
}

fn names(directory: &Path) -> Vec<String> {
    listing(directory).into_keys().collect()
}

#[test]
fn a_set_replaces_the_earlier_set_and_nothing_else() {
    let out = tempfile::tempdir().unwrap();
    let out = out.path();
    fs::write(out.join("foreign_1_all.deb"), "somebody's").unwrap();
    emit_set(out, &[small("a", "1"), small("b", "1")], &options(1, Compression::default()));
    let first = listing(out);
    emit_set(out, &[small("b", "2"), small("c", "2")], &options(1, Compression::default()));
    assert_eq!(
        names(out),
        [
            "b-7.1.0-1.x86_64.rpm",
            "b_7.1.0-1_amd64.deb",
            "c-7.1.0-1.x86_64.rpm",
            "c_7.1.0-1_amd64.deb",
            "foreign_1_all.deb",
            "packages.json"
        ]
    );
    let second = listing(out);
    assert_ne!(first["b_7.1.0-1_amd64.deb"], second["b_7.1.0-1_amd64.deb"]);
    assert_ne!(first["packages.json"], second["packages.json"]);
}

#[test]
fn an_abandoned_run_leaves_nothing() {
    let outer = tempfile::tempdir().unwrap();
    let out = outer.path().join("made/by/the/run");
    let staging = Staging::begin(&out).unwrap();
    emit_package(&small("a", "1"), &staging, &options(1, Compression::default())).unwrap();
    assert_eq!(names(&out), [".rockpack-staging-1"]);
    drop(staging);
    assert!(!out.exists());
}

#[test]
fn a_failed_commit_puts_the_earlier_set_back() {
    let out = tempfile::tempdir().unwrap();
    let out = out.path();
    emit_set(out, &[small("a", "1"), small("b", "1")], &options(1, Compression::default()));
    let before = listing(out);
    let staging = Staging::begin(out).unwrap();
    let mut emitted = Vec::new();
    for package in [small("b", "2"), small("c", "2")] {
        let options = options(1, Compression::default());
        emitted.extend(emit_package(&package, &staging, &options).unwrap());
    }
    // A directory in the way of the last package stops the commit half-way.
    fs::create_dir(out.join("c_7.1.0-1_amd64.deb")).unwrap();
    let error = staging
        .commit(&std::collections::BTreeSet::new(), |sink| sink.write_all(&receipt(&emitted)))
        .unwrap_err();
    assert_eq!(error.kind(), Kind::Conflict);
    fs::remove_dir(out.join("c_7.1.0-1_amd64.deb")).unwrap();
    assert_eq!(listing(out), before);
}

#[test]
fn a_receipt_names_exactly_the_staged_packages() {
    let out = tempfile::tempdir().unwrap();
    let staging = Staging::begin(out.path()).unwrap();
    emit_package(&small("a", "1"), &staging, &options(1, Compression::default())).unwrap();
    let error = staging
        .commit(&std::collections::BTreeSet::new(), |sink| sink.write_all(&receipt(&[])))
        .unwrap_err();
    assert_eq!(error.kind(), Kind::Bug);
    assert_eq!(names(out.path()), Vec::<String>::new());
}

#[test]
fn a_file_that_is_no_receipt_is_refused_before_the_work() {
    for text in ["{}", "hello", r#"{"packages":[{"file_name":"../x.deb","sha256":"0"}]}"#] {
        let out = tempfile::tempdir().unwrap();
        fs::write(out.path().join("packages.json"), text).unwrap();
        let error = Staging::begin(out.path()).unwrap_err();
        assert_eq!(error.kind(), Kind::Conflict, "{text}");
        assert_eq!(names(out.path()), ["packages.json"]);
    }
}

#[test]
fn what_dead_runs_left_is_removed_and_live_runs_are_not_disturbed() {
    let out = tempfile::tempdir().unwrap();
    let out = out.path();
    let dead = out.join(".rockpack-staging-7");
    fs::create_dir(&dead).unwrap();
    fs::write(dead.join("half.deb"), "half").unwrap();
    let live = Staging::begin(out).unwrap();
    assert!(!dead.exists());
    let options = options(1, Compression::default());
    let emitted = emit_package(&small("a", "1"), &live, &options).unwrap();
    emit_set(out, &[small("b", "1")], &options);
    live.commit(&std::collections::BTreeSet::new(), |sink| sink.write_all(&receipt(&emitted)))
        .unwrap();
    assert_eq!(names(out), ["a-7.1.0-1.x86_64.rpm", "a_7.1.0-1_amd64.deb", "packages.json"]);
}

/// Parts in one folder are rebuilt with a division that moves a package to another part.
#[test]
fn a_package_that_changes_its_part_stays_once() {
    let out = tempfile::tempdir().unwrap();
    let out = out.path();
    assert!(build_part(out, 1, &["a", "b"]).is_empty() && build_part(out, 2, &["c"]).is_empty());
    assert_eq!(deb_packages(out), ["a", "b", "c"]);
    // First the part that gains the package is built before the part that loses it, then after it.
    assert!(build_part(out, 2, &["b", "c"]).is_empty());
    assert!(build_part(out, 1, &["a"]).is_empty());
    assert_eq!(deb_packages(out), ["a", "b", "c"]);
    assert!(build_part(out, 2, &["c"]).iter().any(|name| name.starts_with("b_")));
    assert!(build_part(out, 1, &["a", "b"]).is_empty());
    assert_eq!(deb_packages(out), ["a", "b", "c"]);
}

/// Builds a part of two, and returns the names of the files that were removed.
fn build_part(out: &Path, index: u32, packages: &[&str]) -> BTreeSet<String> {
    let receipt_name = file_name(Some(SetPart { index, of: 2 }));
    let staging = Staging::begin_with(out, &receipt_name, false).unwrap();
    let options = options(1, Compression::default());
    let emit = |name: &&str| emit_package(&small(name, "1"), &staging, &options).unwrap();
    let emitted: Vec<_> = packages.iter().flat_map(emit).collect();
    staging.commit(&BTreeSet::new(), |sink| sink.write_all(&receipt(&emitted))).unwrap()
}

fn deb_packages(out: &Path) -> Vec<String> {
    let mut names = names(out);
    names.retain(|name| name.ends_with(".deb"));
    names.into_iter().map(|name| name.split('_').next().unwrap().to_owned()).collect()
}

/// Recreates the folder as a killed commit leaves it after each of its steps, with the lock free.
#[test]
fn a_commit_that_was_killed_is_undone_by_the_next_run() {
    let new_receipt =
        r#"{"packages":[{"file_name":"b.deb","sha256":"0"},{"file_name":"c.deb","sha256":"0"}]}"#;
    let old_receipt =
        r#"{"packages":[{"file_name":"a.deb","sha256":"0"},{"file_name":"b.deb","sha256":"0"}]}"#;
    let signature = "-----BEGIN PGP SIGNATURE-----\n";
    let steps: [(&str, &str); 7] = [
        ("packages.json", "S/replaced/packages.json"),
        ("packages.json.asc", "S/replaced/packages.json.asc"),
        ("a.deb", "S/replaced/a.deb"),
        ("b.deb", "S/replaced/b.deb"),
        ("S/b.deb", "b.deb"),
        ("S/c.deb", "c.deb"),
        ("S/packages.json.asc", "packages.json.asc"),
    ];
    let parts = [None, Some(SetPart { index: 1, of: 2 })];
    let moments = (0..=steps.len()).flat_map(|step| parts.map(|part| (step, part)));
    for (killed_after, part) in moments {
        let out = tempfile::tempdir().unwrap();
        fs::create_dir_all(path_at(out.path(), part, "S/replaced")).unwrap();
        let files = [
            ("packages.json", old_receipt),
            ("packages.json.asc", signature),
            ("a.deb", "old a"),
            ("b.deb", "old b"),
            ("S/packages.json", new_receipt),
            ("S/packages.json.asc", "new signature"),
            ("S/b.deb", "new b"),
            ("S/c.deb", "new c"),
        ];
        for (name, text) in files {
            fs::write(path_at(out.path(), part, name), text).unwrap();
        }
        let name = file_name(part);
        let (signed, owner) = (format!("{name}.asc"), fs::metadata(out.path()).unwrap().uid());
        let replaced = [&*name, &*signed, "a.deb", "b.deb"];
        let replaced = replaced.map(|name| format!("f{owner} {name}")).join("\n");
        let committing = format!("b.deb\nc.deb\n{signed}\n{name}\nreplaces/\n{replaced}");
        fs::write(path_at(out.path(), part, "S/committing"), committing).unwrap();
        for (from, to) in &steps[..killed_after] {
            fs::rename(path_at(out.path(), part, from), path_at(out.path(), part, to)).unwrap();
        }
        drop(Staging::begin_with(out.path(), &file_name(part), false).unwrap());
        let found = listing(out.path());
        let wanted = files[..4].iter().map(|(name, text)| {
            (name.replace("packages.json", &file_name(part)), text.as_bytes().to_vec())
        });
        assert_eq!(found, wanted.collect(), "killed after step {killed_after}");
    }
}

/// The path of a file, in which `S` is the staging folder and `packages.json` the receipt of the part.
fn path_at(out: &Path, part: Option<SetPart>, name: &str) -> PathBuf {
    let name = name.replacen("S/", ".rockpack-staging-1/", 1);
    out.join(name.replace("packages.json", &file_name(part)))
}

#[test]
fn a_failing_input_is_named_and_leaves_nothing() {
    let out = tempfile::tempdir().unwrap();
    let input = tempfile::NamedTempFile::new().unwrap();
    fs::write(input.path(), vec![1; 5 << 20]).unwrap();
    let content = support::fixtures::content(input.path());
    fs::write(input.path(), "shorter").unwrap();
    let tree =
        Tree::default().deb_directory("opt").file("opt/file", content, 0o644, Treatment::Plain);
    let staging = Staging::begin(out.path()).unwrap();
    let options = options(1, Compression::default());
    let error = emit_package(&package("a", tree.entries()), &staging, &options).unwrap_err();
    assert_eq!(error.kind(), Kind::Changed);
    assert_eq!(error.place().file.as_deref(), Some(input.path()));
    drop(staging);
    assert_eq!(names(out.path()), Vec::<String>::new());
}

#[test]
fn a_full_disk_is_an_error_that_says_so() {
    use rockpack_archive::deb::{Control, ControlField, DebSpecification, DebWriter};
    use rockpack_archive::payload::PayloadWriter;
    use rockpack_core::compression::Workers;
    let specification = DebSpecification {
        control: Control { fields: vec![ControlField::new("Package", "a")], ..Control::default() },
        entries: Vec::new(),
        mtime: 0,
        stamp: 0,
        compression: Compression::default(),
        workers: Workers::new(1),
    };
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let written =
        DebWriter::create(full, specification).and_then(|writer| Box::new(writer).finish());
    let error = written.unwrap_err();
    assert_eq!(error.kind(), Kind::Io);
    assert!(error.cause_text().unwrap().contains("No space left"), "{error}");
}

#[test]
fn bytes_do_not_depend_on_jobs() {
    let mut tree = Tree::default().deb_directory("opt").directory("opt/x");
    // zstd cuts this level into pieces of 2 MiB, of which there are more than threads.
    for index in 0..18u32 {
        let mut state = u64::from(index);
        let mut bytes = vec![0; 2 << 20];
        for byte in &mut bytes {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *byte = (state >> 61) as u8;
        }
        let content = Content::of_bytes(bytes);
        tree = tree.file(&format!("opt/x/{index}"), content, 0o644, Treatment::Plain);
    }
    let package = package("a", tree.entries());
    let quick = Compression::Zstd { level: 1, window_log: 27, long: LongMatches::On };
    let made: Vec<_> = [1, 2, 3, 16]
        .map(|jobs| {
            let out = tempfile::tempdir().unwrap();
            emit_set(out.path(), std::slice::from_ref(&package), &options(jobs, quick))
        })
        .to_vec();
    for other in &made[1..] {
        assert_eq!(other, &made[0]);
    }
}

/// Pinned digests of two packages: if they change, a rebuild from the same input gives users other
/// packages. Change them together with the reason, and raise `PAYLOADS` in `emit::reuse`: otherwise
/// caches keep giving the old bytes.
#[test]
fn bytes_are_those_of_every_other_machine() {
    let out = tempfile::tempdir().unwrap();
    let emitted = emit_set(out.path(), &[small("a", "1")], &options(1, Compression::default()));
    let digests: Vec<String> =
        emitted.iter().map(|e| rockpack_core::content::hex(&e.sha256)).collect();
    assert_eq!(digests, PINNED);
}

const PINNED: [&str; 2] = [
    "bad1ada67ef7cf74e5726079328ea9aeb9902bca4119c902293629ade775dbfd",
    "9b612da5e6dc47227db6a1a596af041155a330bb8c64084e186c9f43344d6311",
];

#[test]
fn ten_thousand_files_go_in_and_come_out() {
    let mut tree = Tree::default().deb_directory("opt").directory("opt/x");
    for index in 0..10_000 {
        tree = tree.text(&format!("opt/x/{index:05}"), &index.to_string());
    }
    let out = tempfile::tempdir().unwrap();
    let (deb, rpm) = packages::emit_one(out.path(), &package("a", tree.entries()));
    for path in [&deb, &rpm] {
        let mut files = 0;
        let reader = PackageReader::open(support::fixtures::content(path)).unwrap();
        let visited = reader.visit(&mut |read, content| {
            let mut text = String::new();
            content.read_to_string(&mut text).unwrap();
            if read.entry.is_file() {
                assert_eq!(format!("opt/x/{:0>5}", text), *read.entry.path);
                files += 1;
            }
            Ok(())
        });
        visited.unwrap();
        assert_eq!(files, 10_000);
    }
    need(&["rpm"]);
    let check = succeed(std::process::Command::new("rpm").args(["-K", "--nosignature"]).arg(&rpm));
    assert!(check.contains("digests OK"), "{check}");
}

#[test]
#[ignore = "more than 4 GiB: .ci/nightly"]
fn files_and_packages_above_4_gib_are_read_back() {
    let size = (4 << 30) + 12_345;
    let tree = Tree::default()
        .deb_directory("opt")
        .directory("opt/x")
        .file("opt/x/large", Content::zeros(size), 0o644, Treatment::Plain)
        .link("opt/x/link", "large")
        .text("opt/x/small", "small");
    let quick = Compression::Zstd { level: 1, window_log: 27, long: LongMatches::On };
    let out = tempfile::tempdir().unwrap();
    let emitted = emit_set(out.path(), &[package("a", tree.entries())], &options(2, quick));
    for emitted in &emitted {
        let content = support::fixtures::content(out.path().join(&emitted.file_name));
        let reader = PackageReader::open(content).unwrap();
        let mut seen = Vec::new();
        let visited = reader.visit(&mut |read, content| {
            let len = std::io::copy(content, &mut std::io::sink()).unwrap();
            seen.push((read.entry.path.to_string(), len));
            Ok(())
        });
        visited.unwrap();
        assert!(seen.contains(&("opt/x/large".to_owned(), size)), "{seen:?}");
        assert!(seen.contains(&("opt/x/small".to_owned(), 5)), "{seen:?}");
    }
    need(&["rpm", "dpkg-deb"]);
    judge_large(out.path(), &emitted, size);
}

fn judge_large(out: &Path, emitted: &[rockpack_emit::EmittedPackage], size: u64) {
    use std::process::Command;
    let [deb, rpm] = [0, 1].map(|index| out.join(&emitted[index].file_name));
    let list = succeed(Command::new("dpkg-deb").arg("-c").arg(deb));
    assert!(list.contains(&format!(" {size} ")), "{list}");
    let check = succeed(Command::new("rpm").args(["-Kv", "--nosignature"]).arg(&rpm));
    assert!(check.contains("Payload SHA256 digest: OK"), "{check}");
    let tags = "%{LONGSIZE} %{LONGARCHIVESIZE} [%{LONGFILESIZES},]";
    let query = rpm_tags(&rpm, tags);
    let total = size + 5 + 5;
    assert!(query.starts_with(&format!("{total} ")), "{query}");
    need(&["rpm2archive", "tar"]);
    let script = format!("rpm2archive -n - < '{}' | tar -tv", rpm.display());
    let archive = succeed(Command::new("sh").arg("-c").arg(script));
    assert!(archive.contains(&format!(" {size} ")), "{archive}");
    assert_eq!(archive.lines().count(), 4, "{archive}");
}

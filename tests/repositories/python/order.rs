//! Runs that end at every point: at any moment each wheel that a page lists finds the wheels that it pins on
//! theirs, and the next run finishes or takes back.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rockpack_core::compression::Method;
use rockpack_repo::{
    ChannelSettings, ConfirmedChanges, PackageChanges, RepoOptions, WhenLocked, publish_to,
};
use rockpack_report::Silent;
use rockpack_signing::Trust;
use serde_json::Value;
use support::repo_fixture::{EPOCH, contents, publish, repo, repo_at};
use support::scratch;
use support::tools::{need, run};

use super::wheels::{Wheel, family_of};
use crate::broken_off::Failing;

/// A run in this process that fails after `steps` files; tells whether it ended well.
fn ends_after(steps: usize, packages: &Path, out: &Path, after: i64) -> bool {
    let options = RepoOptions {
        packages: vec![packages.to_owned()],
        out: out.to_owned(),
        kinds: Vec::new(),
        suite: "stable".into(),
        component: "main".into(),
        settings: ChannelSettings::default(),
        changes: PackageChanges { keep: Some(1), ..PackageChanges::default() },
        strict: false,
        check: false,
        dry_run: false,
        upload_plan: None,
        receipts: Trust::default(),
        index_page: true,
        when_locked: WhenLocked::Fail,
        generations: 1,
        date: EPOCH + after,
        confirmed: ConfirmedChanges::default(),
        list_method: Method::Gzip,
        signer: None,
        package_signer: None,
        built: BTreeMap::new(),
        key_package: None,
    };
    publish_to(&Failing::open(out, steps), &options, &Silent).is_ok()
}

/// The wheels that the pages list, those for people and those for programs, as `name-version`.
fn listed(out: &Path) -> [BTreeSet<String>; 2] {
    let mut listed = [BTreeSet::new(), BTreeSet::new()];
    let Ok(projects) = fs::read_dir(out.join("simple")) else { return listed };
    for folder in projects.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
        let wheels = out.join("wheels").join(folder.file_name().unwrap());
        let html = fs::read_to_string(folder.join("index.html")).unwrap_or_default();
        for line in html.lines().filter(|line| line.starts_with("<a ")) {
            let name = line.split(['>', '<']).nth(2).unwrap();
            let digests: Vec<&str> =
                line.split("sha256=").map(|it| &it[..it.len().min(64)]).collect();
            listed[0].insert(checked_wheel(&wheels, name, [digests[1], digests[2]]));
        }
        let Ok(json) = fs::read(folder.join("index.json")) else { continue };
        let json: Value = serde_json::from_slice(&json).unwrap();
        for file in json["files"].as_array().unwrap() {
            let name = file["filename"].as_str().unwrap();
            let digests =
                [&file["hashes"], &file["core-metadata"]].map(|it| it["sha256"].as_str().unwrap());
            listed[1].insert(checked_wheel(&wheels, name, digests));
        }
    }
    listed
}

/// A wheel as `name-version`, after its file and the metadata beside it were found to have their digests.
fn checked_wheel(wheels: &Path, name: &str, [sha256, metadata]: [&str; 2]) -> String {
    let path = wheels.join(name);
    for (path, digest) in [(path.clone(), sha256), (metadata_path(&path), metadata)] {
        support::published::is(&path, digest);
    }
    let words: Vec<&str> = name.split('-').collect();
    format!("{}-{}", words[0], words[1])
}

fn metadata_path(wheel: &Path) -> PathBuf {
    PathBuf::from(format!("{}.metadata", wheel.display()))
}

/// Every listed host finds its device wheels, by the METADATA that lies beside it; the versions of hosts.
pub fn whole(out: &Path) -> Vec<String> {
    let all = listed(out);
    let mut versions = BTreeSet::new();
    for listed in &all {
        for wheel in listed {
            let (name, version) = wheel.split_once('-').unwrap();
            let project = name.replace('_', "-");
            let file = format!("wheels/{project}/{wheel}-py3-none-any.whl.metadata");
            let metadata = fs::read_to_string(out.join(file)).unwrap();
            let required = metadata.lines().filter_map(|line| line.strip_prefix("Requires-Dist: "));
            for required in required.filter(|line| line.contains("extra")) {
                let (name, version) =
                    required.split(';').next().unwrap().split_once(" == ").unwrap();
                let pinned = format!("{}-{}", name.replace('-', "_"), version.trim());
                assert!(listed.contains(&pinned), "{wheel} is listed without {pinned}");
            }
            if name == "demo" {
                versions.insert(version.to_owned());
            }
        }
    }
    versions.into_iter().collect()
}

#[test]
fn pages_fit_together_wherever_a_run_ends() {
    need(&["python3"]);
    let room = scratch::in_memory();
    let [first, second, third] = ["first", "second", "third"].map(|name| room.path().join(name));
    let [base, out, finished] = ["base", "out", "finished"].map(|name| room.path().join(name));
    // Names on both sides of their host's; a GPU that goes, one that comes.
    family_of(&first, "0.9", &["gfx942"]);
    family_of(&second, "1.0", &["gfx906", "gfx942"]);
    family_of(&third, "1.1", &["gfx942", "gfx1100"]);
    let extra = "Provides-Extra: d\nRequires-Dist: amd-zoo-device == 1.1; extra == \"d\"\n";
    Wheel::of("zoo", "1.1", extra).write(&third);
    Wheel::of("amd-zoo-device", "1.1", "Requires-Dist: zoo == 1.1\n").write(&third);
    publish(repo(&[&first], &base).args(["--keep", "1", "--set", "generations=1"]));
    publish(repo_at(&[&second], &base, 10).args(["--keep", "1", "--set", "generations=1"]));
    assert_eq!(whole(&base), ["1.0"]);
    run(Command::new("cp").arg("-a").arg(&base).arg(&finished));
    assert!(ends_after(usize::MAX, &third, &finished, 5000));
    let expected = contents(&finished);
    assert!(!expected.keys().any(|name| name.contains("-0.9-")), "it went out of use long ago");
    let mut seen: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    for steps in 0.. {
        run(Command::new("cp").arg("-a").arg(&base).arg(&out));
        let done = ends_after(steps, &third, &out, 5000);
        *seen.entry(whole(&out)).or_default() += 1;
        // The run that brings order may end early itself.
        ends_after(steps % 4, &third, &out, 5000);
        whole(&out);
        publish(repo_at(&[&third], &out, 5000).args(["--keep", "1", "--set", "generations=1"]));
        assert_eq!(whole(&out), ["1.1"]);
        let settled = contents(&out);
        for (name, bytes) in &expected {
            assert_eq!(settled.get(name), Some(bytes), "{name} after {steps} steps");
        }
        fs::remove_dir_all(&out).unwrap();
        if done {
            break;
        }
    }
    let versions =
        |of: &[&str]| seen.get(&of.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>());
    for of in [&["1.0"][..], &["1.0", "1.1"], &["1.1"]] {
        assert!(versions(of).is_some(), "{of:?}: {seen:?}");
    }
}

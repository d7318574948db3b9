//! `--keep`: hosts and their device wheels stay and go together.

use std::collections::BTreeSet;
use std::path::Path;

use support::repo_fixture::{contents, failed_checks, publish, refused, repo, repo_at, verify};
use support::tools::need;

use crate::pool::state_text;

use super::wheels::{Wheel, device, family, family_of};

/// Names of the wheels that pages list.
pub fn listed(out: &Path) -> BTreeSet<String> {
    let pages: String = contents(out)
        .into_iter()
        .filter(|(name, _)| name.ends_with("index.html"))
        .map(|(_, page)| String::from_utf8(page).unwrap())
        .collect();
    let links = pages.lines().filter(|line| line.contains(".whl#"));
    links.map(|line| line.split(['>', '<']).nth(2).unwrap().to_owned()).collect()
}

/// File names of wheels for every Python.
pub fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| format!("{name}-py3-none-any.whl")).collect()
}

#[test]
fn device_wheels_stay_as_long_as_their_host() {
    need(&["python3"]);
    let room = tempfile::tempdir().unwrap();
    let [wheels, one, two] = ["wheels", "one", "two"].map(|name| room.path().join(name));
    // One GPU went, one came, and one has a release of its own that no host names.
    family_of(&wheels, "1.9", &["gfx906", "gfx942"]);
    family_of(&wheels, "1.10", &["gfx942", "gfx1100"]);
    device(&wheels, "demo-device-gfx1100", "1.8", "");
    let newest = ["demo-1.10", "demo_device_gfx1100-1.10", "demo_device_gfx942-1.10"];
    let before = ["demo-1.9", "demo_device_gfx906-1.9", "demo_device_gfx942-1.9"];
    // A wheel that no host names counts by itself: its host may come later.
    let alone = ["demo_device_gfx1100-1.8"];
    assert_eq!(kept(&wheels, "1", &one), names(&[&newest[..], &alone].concat()));
    assert_eq!(kept(&wheels, "2", &two), names(&[&newest[..], &before, &alone].concat()));
}

/// The wheels that pages list after a run that is given none and keeps this many versions.
fn kept(wheels: &Path, versions: &str, out: &Path) -> BTreeSet<String> {
    publish(repo(&[wheels], out).arg("--allow=unmet"));
    publish(repo_at(&[], out, 1).args(["--keep", versions, "--allow=unmet"]));
    listed(out)
}

/// A run for an older version keeps that and the newest, with what they require, and not the others.
#[test]
fn what_was_given_stays() {
    need(&["python3"]);
    let room = tempfile::tempdir().unwrap();
    let [wheels, given, out] = ["wheels", "given", "repo"].map(|name| room.path().join(name));
    for (folder, version) in [(&wheels, "1.0"), (&wheels, "1.9"), (&given, "1.7"), (&given, "1.8")]
    {
        family_of(folder, version, &["gfx942"]);
    }
    publish(&mut repo(&[&wheels], &out));
    publish(repo_at(&[&given], &out, 1).args(["--keep", "1"]));
    let hosts = ["demo-1.7", "demo-1.8", "demo-1.9"];
    let devices = hosts.map(|name| name.replace("demo", "demo_device_gfx942"));
    let all = hosts.into_iter().chain(devices.iter().map(String::as_str));
    assert_eq!(listed(&out), names(&all.collect::<Vec<_>>()));
}

#[test]
fn what_a_kept_wheel_requires_stays() {
    need(&["python3"]);
    let room = tempfile::tempdir().unwrap();
    let (wheels, out) = (room.path().join("wheels"), room.path().join("repo"));
    for version in ["1.0", "2.0", "3.0"] {
        Wheel::of("core", version, "").write(&wheels);
        Wheel::of("free", version, "").write(&wheels);
    }
    // The newest demo pins an old core; a device wheel needs the one of its family, as AMD's do.
    let extra = "Requires-Dist: core == 1.0\nProvides-Extra: device-gfx1201\n\
                 Requires-Dist: demo-device-gfx1201 == 1.0; extra == 'device-gfx1201'\n";
    Wheel::of("demo", "1.0", extra).write(&wheels);
    device(&wheels, "demo-device-gfx1201", "1.0", "Requires-Dist: demo-device-gfx12 == 1.0\n");
    device(&wheels, "demo-device-gfx12", "1.0", "");
    device(&wheels, "demo-device-gfx12", "1.5", "");
    let there = kept(&wheels, "1", &out);
    let expected = ["core-1.0", "core-3.0", "free-3.0", "demo-1.0", "demo_device_gfx1201-1.0"];
    let family = ["demo_device_gfx12-1.0", "demo_device_gfx12-1.5"];
    assert_eq!(there, names(&[&expected[..], &family].concat()));
}

#[test]
fn files_of_wheels_stay_for_the_generations() {
    need(&["python3"]);
    let room = tempfile::tempdir().unwrap();
    let out = room.path().join("repo");
    publish_version(room.path(), "1.0", 0);
    publish_version(room.path(), "1.1", 10);
    let counted = (listed(&out).len(), wheel_files(&out));
    assert_eq!(counted, (3, 12), "clients may have read the page before");
    publish_version(room.path(), "1.2", 20);
    publish_version(room.path(), "1.3", 30);
    assert_eq!(wheel_files(&out), 24, "not an hour yet");
    publish_version(room.path(), "1.4", 3700);
    assert_eq!((listed(&out).len(), wheel_files(&out)), (3, 18));
    let state = state_text(&out.join(".rockpack/python.json.zst"));
    let state: serde_json::Value = serde_json::from_str(&state).unwrap();
    assert!(!has_wheel(&state, "retired", "1.0") && has_wheel(&state, "retired", "1.2"));
    // Their digests stay: no other wheel may have the name.
    assert!(has_wheel(&state, "used", "1.0") && has_wheel(&state, "used", "1.2"));
    assert!(!has_wheel(&state, "used", "1.4"));
}

/// Publishes a family of a version, which goes to a folder of its own.
fn publish_version(room: &Path, version: &str, after: i64) {
    let wheels = room.join(version);
    family(&wheels, version);
    let mut command = repo_at(&[&wheels], &room.join("repo"), after);
    publish(command.args(["--keep", "1", "--set", "generations=2"]));
}

fn wheel_files(out: &Path) -> usize {
    contents(out).into_keys().filter(|name| name.starts_with("wheels")).count()
}

fn has_wheel(state: &serde_json::Value, part: &str, version: &str) -> bool {
    let path = format!("wheels/demo/demo-{version}-py3-none-any.whl");
    state[part].as_object().unwrap().contains_key(&path)
}

#[test]
fn extras_whose_wheels_are_not_there_are_named() {
    need(&["python3"]);
    let room = tempfile::tempdir().unwrap();
    let (wheels, out) = (room.path().join("wheels"), room.path().join("repo"));
    let pinned = "Provides-Extra: device-far\nRequires-Dist: far == 2.0; extra == 'device-far'\n\
                  Requires-Dist: numpy; extra == 'device-far'\n\
                  Requires-Dist: demo == 0.1; extra == 'min'\n";
    Wheel::of("free", "1.0", pinned).write(&wheels);
    family(&wheels, "1.0");
    let good = publish(repo(&[&wheels], &out).arg("--strict"));
    assert!(!good.contains("R130"), "what other indexes may have: {good}");
    let told = publish(repo_at(&[], &out, 1).args(["--remove", "demo-device-gfx942=1.0"]));
    let text =
        "demo 1.0: its extra device-gfx942 requires demo-device-gfx942 ==1.0, which the index does";
    assert!(told.contains("R130") && told.contains(text), "{told}");
    assert_eq!(failed_checks(&verify(&out)), ["V077"]);
    // A device wheel without its host.
    let without = room.path().join("without");
    publish(repo(&[&wheels], &without).args(["--wheel", "--strict"]));
    let text = "demo-device-gfx942 1.0: requires demo ==1.0, which the index does not have";
    let (told, _) = refused(repo_at(&[], &without, 1).args(["--remove", "demo=1.0"]));
    assert!(told.contains("requires demo ==1.0"), "{told}");
    let all = ["--remove", "demo=1.0", "--allow=unmet"];
    let told = publish(repo_at(&[], &without, 1).args(all));
    assert!(told.contains("R130") && told.contains(text), "{told}");
    assert_eq!(failed_checks(&verify(&without)), ["V077"]);
    // Of a project that is there in another version.
    Wheel::of("far", "1.0", "").write(&wheels);
    let before = contents(&out);
    let (told, _) = refused(repo_at(&[&wheels], &out, 2).arg("--strict"));
    assert!(told.contains("free 1.0: its extra device-far requires far ==2.0"), "{told}");
    assert!(!told.contains("demo 1.0"), "it came back: {told}");
    assert_eq!(contents(&out), before);
}

#[test]
fn extras_without_code_of_required_wheels_are_named() {
    need(&["python3"]);
    let room = tempfile::tempdir().unwrap();
    let [wheels, out, other] = ["wheels", "repo", "other"].map(|name| room.path().join(name));
    family(&wheels, "1.0");
    let device = "Requires-Dist: more == 1.0\nRequires-Dist: demo[device-gfx942] == 1.0\n";
    Wheel::of("more-device-gfx942", "1.0", device).write(&wheels);
    let own = "Requires-Dist: demo == 1.0\nProvides-Extra: device-gfx942\n\
               Requires-Dist: more-device-gfx942 == 1.0; extra == 'device-gfx942'\n\
               Requires-Dist: demo[device-gfx942]; extra == 'device-gfx942'\n\
               Provides-Extra: device-gfx1100\n\
               Requires-Dist: more-device-gfx942 == 1.0; extra == 'device-gfx1100'\n";
    Wheel::of("more", "1.0", own).write(&wheels);
    let told = publish(&mut repo(&[&wheels], &out));
    let text = "its extra device-gfx1100 does not install demo[device-gfx1100]";
    assert!(told.contains("R130") && told.contains(text), "{told}");
    assert!(!told.contains("demo[device-gfx942]"), "{told}");
    assert_eq!(failed_checks(&verify(&out)), ["V077"]);
    let own = format!("{own}Requires-Dist: demo[device-gfx1100]; extra == 'device-gfx1100'\n");
    Wheel::of("more", "1.0", &own).write(&wheels);
    // A later version without a GPU takes nothing from the wheels of the earlier one.
    family_of(&wheels, "2.0", &["gfx942"]);
    publish(repo(&[&wheels], &other).arg("--strict"));
    assert_eq!(failed_checks(&verify(&other)), [""; 0]);
}

#[test]
fn device_wheels_of_other_tags_and_builds_are_named() {
    need(&["python3"]);
    let room = tempfile::tempdir().unwrap();
    let (wheels, out) = (room.path().join("wheels"), room.path().join("repo"));
    let extra = "Provides-Extra: device-gfx942\n\
                 Requires-Dist: demo-device-gfx942 == 1.0; extra == 'device-gfx942'\n";
    for python in ["cp311", "cp312"] {
        Wheel { tags: &manylinux_tags(python), ..Wheel::of("demo", "1.0", extra) }.write(&wheels);
    }
    let device = Wheel::of("demo-device-gfx942", "1.0", "Requires-Dist: demo == 1.0\n");
    Wheel { tags: &manylinux_tags("cp312"), ..device }.write(&wheels);
    let told = publish(&mut repo(&[&wheels], &out));
    assert!(told.contains("R130") && told.contains("demo-1.0-cp311-cp311-"), "{told}");
    assert!(!told.contains("demo-1.0-cp312-cp312-manylinux_2_28_x86_64.whl: its extra"), "{told}");
    assert_eq!(failed_checks(&verify(&out)), ["V077"]);
    // Nothing is missing for a wheel of every Python that brings those of one.
    let meta = "Requires-Dist: demo-device-gfx942 == 1.0; extra == 'device-gfx942'\n";
    Wheel::of("rocm", "1.0", meta).write(&room.path().join("meta"));
    let told = publish(repo_at(&[&room.path().join("meta")], &out, 1).arg("--wheel"));
    assert!(!told.contains("rocm-1.0-py3-none-any.whl: its"), "{told}");
    // One for every Python will do.
    let device = Wheel::of("demo-device-gfx942", "1.0", "Requires-Dist: demo == 1.0\n");
    device.write(&wheels);
    let told = publish(repo_at(&[&wheels], &out, 2).arg("--strict"));
    assert!(!told.contains("R130") && !told.contains("R131"), "{told}");
    assert_eq!(failed_checks(&verify(&out)), [""; 0]);
    let built_again = "1-cp312-cp312-manylinux_2_28_x86_64";
    let device = Wheel::of("demo-device-gfx942", "1.0", "Requires-Dist: demo == 1.0\n");
    Wheel { tags: built_again, files: &[("demo/k.kpack", "other")], ..device }.write(&wheels);
    let (told, _) = refused(repo_at(&[&wheels], &out, 2).arg("--strict"));
    assert!(
        told.contains("R131") && told.contains("demo-device-gfx942 1.0: has several"),
        "{told}"
    );
    // Of what nothing is tied to, a build may follow another.
    let free = room.path().join("free");
    for tags in ["py3-none-any", "1-py3-none-any"] {
        Wheel { tags, files: &[("free.py", tags)], ..Wheel::of("free", "1.0", "") }.write(&free);
    }
    publish(repo(&[&free], &room.path().join("other")).arg("--strict"));
}

fn manylinux_tags(python: &str) -> String {
    format!("{python}-{python}-manylinux_2_28_x86_64")
}

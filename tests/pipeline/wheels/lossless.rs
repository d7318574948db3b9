//! Each member of a fat wheel is in exactly one wheel, byte for byte as it was stored.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::{fs, iter};

use serde_json::Value;
use support::fat_wheels::{self, ReadWheel, fat_binaries};
use support::kpack::judged;
use support::tools::{need, told};
use support::{example, fixtures, python};

use super::made;

/// The members of a wheel outside of its dist-info folder.
fn own_members(wheel: &ReadWheel) -> Vec<&Value> {
    wheel
        .members
        .iter()
        .filter(|member| !member["name"].as_str().unwrap().contains(".dist-info/"))
        .collect()
}

#[test]
fn every_member_is_in_one_wheel_as_it_was_stored() {
    support::kpack::need_python();
    let made = made();
    let fat = fat_wheels::read_one(&made.fat);
    let outputs = made.wheels();
    let mut found: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for member in outputs.values().flat_map(own_members) {
        found.entry(member["name"].as_str().unwrap()).or_default().push(member);
    }
    let binaries = fat_binaries();
    for member in own_members(&fat) {
        let name = member["name"].as_str().unwrap();
        let Some(own) = found.remove(name) else { panic!("{name} is lost") };
        assert_eq!(own.len(), 1, "{name} is in several wheels");
        if binaries.contains_key(name) {
            assert_ne!(own[0]["sha256"], member["sha256"], "{name}");
            continue;
        }
        for field in ["sha256", "stored", "method", "crc", "size", "mode"] {
            assert_eq!(own[0][field], member[field], "{name}: {field}");
        }
    }
    // Only archives are left, all in device wheels.
    assert!(found.values().all(|members| members.len() == 1), "{found:?}");
    for (name, members) in &found {
        assert!(name.starts_with("x/.kpack/x-") && name.ends_with(".kpack"), "{name}");
        assert_eq!(members[0]["method"], 0, "{name}");
    }
    let host = made.wheel("x");
    assert!(host.names().iter().all(|name| !name.contains(".kpack/")));
    // Files of dist-info that are not rewritten are unchanged.
    for name in ["licenses/LICENSE.txt", "licenses/third_party/NOTICE", "entry_points.txt", "WHEEL"]
    {
        let path = format!("x-1.0.dist-info/{name}");
        assert_eq!(host.member(&path)["stored"], fat.member(&path)["stored"], "{name}");
    }
}

#[test]
fn no_path_is_in_two_wheels() {
    support::kpack::need_python();
    let mut all = BTreeSet::new();
    for (file, wheel) in made().wheels() {
        for name in wheel.names() {
            assert!(all.insert(name.to_owned()), "{name} of {file} is in another one, too");
        }
    }
}

/// The SHA-256 of each code object in the fat wheel by (`kernel`, `target`), from clang's own tool.
pub fn expected() -> &'static BTreeMap<(String, String), String> {
    static EXPECTED: OnceLock<BTreeMap<(String, String), String>> = OnceLock::new();
    let all = || fat_binaries().iter().flat_map(|(name, file)| code_of(name, file)).collect();
    EXPECTED.get_or_init(all)
}

fn code_of(key: &str, file: &Path) -> BTreeMap<(String, String), String> {
    let bytes = fs::read(file).unwrap();
    let bundles = example::bundles(&bytes);
    let each = bundles.iter().enumerate().flat_map(|(index, bundle)| {
        let objects = example::unbundle(bundle).into_iter();
        objects
            .map(move |(target, code)| ((format!("{key}#{index}"), target), support::sha256(&code)))
    });
    each.collect()
}

/// A row's target in clang's spelling for the fat binary.
pub fn spelled(target: &str) -> String {
    target.replace(":sramecc+", "").replace(":sramecc-", "")
}

/// Unpacks wheels into one folder, as installers do for site-packages.
pub fn unpack(wheels: &[PathBuf], folder: &Path) {
    let script = "import sys, zipfile\nfor wheel in sys.argv[2:]:\n    \
                  zipfile.ZipFile(wheel).extractall(sys.argv[1])\n";
    let wheels = wheels.iter().map(|wheel| wheel.to_str().unwrap());
    let arguments: Vec<&str> = iter::once(folder.to_str().unwrap()).chain(wheels).collect();
    python::run(script, &arguments, "").unwrap();
}

#[test]
fn every_code_object_is_in_the_archive_of_its_arch() {
    need(&["clang-offload-bundler-19"]);
    support::kpack::need_python();
    let made = made();
    let room = tempfile::tempdir().unwrap();
    let expected = expected();
    assert_eq!(expected.len(), 7 + 5 + 3 + 3 + 6 + 3, "{expected:#?}");
    let mut found = BTreeMap::new();
    for name in made.wheels().keys().filter(|name| name.starts_with("x_device_")) {
        let folder = room.path().join(name);
        unpack(&[made.out().join(name)], &folder);
        let archives = example::names(&folder.join("x/.kpack"));
        for archive in archives {
            let toc = judged(&fixtures::content(folder.join("x/.kpack").join(&archive)));
            for (key, targets) in toc["rows"].as_object().unwrap() {
                for (target, row) in targets.as_object().unwrap() {
                    let base = target.split(':').next().unwrap();
                    assert!(archive.ends_with(&format!("_{base}.kpack")), "{archive}: {target}");
                    assert!(name.starts_with(&format!("x_device_{base}-")), "{name}: {target}");
                    // Loaders ask for all features of a GPU, also for code that leaves some open.
                    let target = &spelled(target);
                    let digest = row["sha256"].as_str().unwrap().to_owned();
                    let twice = found.insert((key.clone(), target.clone()), digest.clone());
                    assert!(twice.is_none_or(|twice| twice == digest), "{key} {target}");
                }
            }
        }
    }
    assert_eq!(&found, expected);
    // The token in the names is derived only from this.
    let mut lines: Vec<String> = expected
        .iter()
        .map(|((key, target), sha256)| format!("{key} {target} {sha256}\n"))
        .collect();
    lines.sort();
    let token = &support::sha256(lines.concat().as_bytes())[..16];
    let device = made.wheel("x-device-gfx906");
    assert!(device.names().contains(&format!("x/.kpack/x-{token}_gfx906.kpack").as_str()));
    // The receipt has the same digests.
    let receipt = made.receipt();
    let codes = receipt["code_objects"].as_array().unwrap();
    let listed: BTreeSet<&str> =
        codes.iter().map(|code| code["sha256"].as_str().unwrap()).collect();
    for digest in expected.values() {
        assert!(listed.contains(digest.as_str()), "{digest}");
    }
}

/// verify, with its independent reader of wheels, comes to the same result.
#[test]
fn verify_misses_nothing_of_the_fat_wheel() {
    support::kpack::need_python();
    let made = made();
    let mut verify = example::rockpack();
    let said = told(verify.arg("verify").arg(made.out()).arg("--against").arg(&made.fat));
    assert!(said.ends_with("exit status: 0\n"), "{said}");
}

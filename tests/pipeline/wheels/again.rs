//! Wheels without device code, and wheels that were split already.

use std::fs;
use std::path::{Path, PathBuf};

use support::example::{contents, files, names};
use support::fat_wheels::{Made, WheelSpec, metadata, wheel_command};
use support::kpack::{code_object, mach};
use support::tools::said;

use super::{made, native, verifies};

/// Splits wheels, which must come out unchanged; what the run says.
fn copies(wheels: &[PathBuf], out: &Path) -> String {
    let paths: Vec<&Path> = wheels.iter().map(PathBuf::as_path).collect();
    let text = said(&mut wheel_command(&paths, out));
    assert_eq!(text.matches("R123").count(), wheels.len(), "{text}");
    let mut expected = names(out);
    assert!(expected.remove("wheels.json"));
    for wheel in wheels {
        let name = wheel.file_name().unwrap().to_str().unwrap();
        assert!(expected.remove(name), "{name}");
        assert!(fs::read(wheel).unwrap() == fs::read(out.join(name)).unwrap(), "{name}");
    }
    assert!(expected.is_empty(), "{expected:?}");
    let receipt: serde_json::Value =
        serde_json::from_slice(&fs::read(out.join("wheels.json")).unwrap()).unwrap();
    for wheel in receipt["wheels"].as_array().unwrap() {
        assert_eq!(wheel["role"], "copy", "{wheel}");
    }
    verifies(out, wheels);
    text
}

#[test]
fn splitting_what_is_split_changes_nothing() {
    support::kpack::need_python();
    let made = made();
    let room = tempfile::tempdir().unwrap();
    let all: Vec<PathBuf> = names(&made.out())
        .iter()
        .filter(|name| name.ends_with(".whl"))
        .map(|name| made.out().join(name))
        .collect();
    let text = copies(&all, &room.path().join("all"));
    assert!(!lacks_a_half(&text), "{text}");
    for (start, is_told) in [("x-1.0-", true), ("x_device_gfx1100-", false), ("x_", false)] {
        let name = |path: &&PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(start);
        let alone: Vec<PathBuf> = all.iter().filter(name).cloned().collect();
        let text = copies(&alone, &room.path().join(start));
        assert_eq!(lacks_a_half(&text), is_told, "{text}");
    }
    let is_other = |path: &&PathBuf| !path.to_str().unwrap().contains("x_device_gfx906-");
    let some: Vec<PathBuf> = all.iter().filter(is_other).cloned().collect();
    assert_eq!(some.len() + 1, all.len());
    let text = copies(&some, &room.path().join("some"));
    assert!(!lacks_a_half(&text), "{text}");
    // Splits a folder of wheels with the receipt beside them.
    let out = room.path().join("folder");
    said(&mut wheel_command(&[&made.out()], &out));
    let (mut before, mut after) = (contents(&made.out()), contents(&out));
    before.remove("wheels.json");
    after.remove("wheels.json");
    assert!(before == after);
}

/// Whether a run says of a wheel that others have what belongs to it.
fn lacks_a_half(text: &str) -> bool {
    ["R022", "R027", "R031", "R040"].iter().any(|code| text.contains(code))
}

#[test]
fn wheels_without_device_code_are_copied() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let pure = WheelSpec::tagged("pure", "1.0", "py3-none-any").text("pure/__init__.py", "");
    let empty = WheelSpec::tagged("empty", "1.0", "py3-none-any");
    let native = WheelSpec::new("native", "1.0").file("native/_C.so", &native());
    let wheels = [pure, empty, native].map(|wheel| wheel.write(&room.path().join("in")));
    let text = copies(&wheels, &room.path().join("out"));
    assert!(!text.contains("warning"), "{text}");
}

/// A fat wheel that requires another wheel in its own version is not taken for that one's device wheel.
#[test]
fn fat_wheels_of_databases_are_split() {
    support::kpack::need_python();
    let code = |mach: u8| code_object(mach, "k");
    let room = tempfile::tempdir().unwrap();
    let mut wheel = WheelSpec::new("rocm-db", "1.0")
        .info("METADATA", &metadata("rocm-db", "1.0", "Requires-Dist: rocm == 1.0\n"))
        .text("rocm_db/__init__.py", "");
    for (name, mach) in [("gfx1100", mach::GFX1100), ("gfx906", mach::GFX906)] {
        let path = room.path().join(name);
        fs::write(&path, code(mach)).unwrap();
        wheel =
            wheel.file(&format!("rocm_db/lib/rocblas/library/Kernels.so-000-{name}.hsaco"), &path);
    }
    let made = Made::of(&wheel, &[]);
    assert_eq!(made.wheels().len(), 3, "{}", made.said);
}

/// A wheel whose binaries refer to archives in it is split like the fat wheel.
#[test]
fn archives_in_a_wheel_are_split() {
    support::kpack::need_python();
    let made = made();
    let room = tempfile::tempdir().unwrap();
    let site = room.path().join("site");
    let wheels: Vec<PathBuf> = made.wheels().keys().map(|name| made.out().join(name)).collect();
    super::lossless::unpack(&wheels, &site);
    let mut whole = WheelSpec::new("x", "1.0");
    for path in files(&site).into_keys().filter(|path| !path.contains(".dist-info/")) {
        whole = whole.file(&path, &site.join(&path));
    }
    let again = Made::of(&whole, &[]);
    assert_eq!(again.wheels().keys().collect::<Vec<_>>(), made.wheels().keys().collect::<Vec<_>>());
    assert_eq!(own_members(&again), own_members(made));
}

fn own_members(made: &Made) -> std::collections::BTreeMap<String, String> {
    let wheels = made.wheels().into_values();
    let members = wheels.flat_map(|wheel| wheel.members).map(|member| {
        let [name, sha256] = ["name", "sha256"].map(|key| member[key].as_str().unwrap().to_owned());
        (name, sha256)
    });
    members.filter(|(name, _)| !name.contains(".dist-info/")).collect()
}

//! Device wheels of one release for several Pythons.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use support::example::{names, rockpack};
use support::fat_wheels::{WheelSpec, library, metadata, wheel_command};
use support::fixtures;
use support::tools::{need, run, said};

use super::verifies;

const PLATFORM: &str = "manylinux_2_17_x86_64";

/// A wheel for one Python.
fn fat(python: &str) -> WheelSpec {
    WheelSpec::tagged("x", "1.0", &format!("{python}-{python}-{PLATFORM}"))
        .text("x/__init__.py", &format!("# {python}\n"))
        .file("x/_C.so", &library())
        .file("x/_D.so", &fixtures::folder().join("binaries/bfd_shared"))
        .info("METADATA", &metadata("x", "1.0", "License-File: LICENSE\n"))
        .info("LICENSE", "MIT\n")
}

/// A folder with wheels of the input, and one for those that are made.
struct Room(tempfile::TempDir);

impl Room {
    fn of(wheels: &[&WheelSpec]) -> Self {
        support::kpack::need_python();
        let room = Self(tempfile::tempdir().unwrap());
        wheels.iter().for_each(|wheel| drop(wheel.write(&room.at("in"))));
        room
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Splits the input into the folder `name`, and returns the receipt.
    fn split(&self, name: &str, options: &[&str]) -> Value {
        run(wheel_command(&[&self.at("in")], &self.at(name)).args(options));
        serde_json::from_slice(&fs::read(self.at(name).join("wheels.json")).unwrap()).unwrap()
    }

    fn inputs(&self) -> Vec<PathBuf> {
        names(&self.at("in")).into_iter().map(|name| self.at("in").join(name)).collect()
    }
}

/// The tags of the device wheels of a receipt, without the platform.
fn tags(receipt: &Value) -> BTreeSet<String> {
    let wheels = receipt["wheels"].as_array().unwrap().iter();
    let devices = wheels.filter(|wheel| wheel["role"] == "device");
    let names = devices.map(|wheel| wheel["file_name"].as_str().unwrap());
    let tags = names.map(|name| name.strip_suffix(&format!("-{PLATFORM}.whl")).unwrap());
    tags.map(|name| name.splitn(3, '-').nth(2).unwrap().to_owned()).collect()
}

fn difference(receipt: &Value) -> Option<Value> {
    let findings = receipt["findings"].as_array().unwrap().iter();
    let mut own = findings.filter(|finding| finding["code"] == "R153");
    own.next().cloned()
}

fn folder(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Licences may lie elsewhere: tools differ between Pythons. Each Python gets the shared wheel from pip.
#[test]
fn equal_ones_are_for_all_pythons() {
    need(&["pip"]);
    let other = fat("cp313").without("x-1.0.dist-info/LICENSE").info("licenses/LICENSE", "MIT\n");
    let room = Room::of(&[&fat("cp312"), &other]);
    let receipt = room.split("out", &[]);
    assert_eq!((tags(&receipt), difference(&receipt)), (["py3-none".to_owned()].into(), None));
    let wheels = receipt["wheels"].as_array().unwrap();
    let device = wheels.iter().find(|wheel| wheel["role"] == "device").unwrap();
    let input = |python: &str| format!("x-1.0-{python}-{python}-{PLATFORM}.whl");
    assert_eq!(device["made_of"], input("cp312"));
    assert_eq!(device["also_made_of"], json!([input("cp313")]));
    let packages = receipt["code_objects"].as_array().unwrap().iter();
    assert!(packages.map(|code| &code["package"]).any(|package| *package == device["file_name"]));
    verifies(&room.at("out"), &room.inputs());
    let (out, got) = (room.at("out"), room.at("got"));
    for python in ["312", "313"] {
        let mut pip = Command::new("pip");
        pip.args(["download", "-q", "--no-index", "--only-binary=:all:", "--platform", PLATFORM]);
        pip.args(["--python-version", python, "--find-links", folder(&out), "-d", folder(&got)]);
        run(pip.arg("x[device-gfx1100]==1.0"));
    }
    let tagged = |python: &str| format!("x_device_gfx1100-1.0-{python}-{PLATFORM}.whl");
    let got = names(&got);
    assert_eq!(got.len(), 3, "{got:?}");
    assert!(got.contains(&tagged("py3-none")), "{got:?}");
}

/// clang puts a digest of paths and options into the code, which have the version of Python in them.
#[test]
fn others_are_for_one_python() {
    let mut bytes = fs::read(fixtures::folder().join("binaries/bfd_shared")).unwrap();
    let symbol = b"__hip_cuid_";
    // The sections of device code.
    let places: Vec<usize> =
        (0x3000..0xc000).filter(|at| bytes[*at..].starts_with(symbol)).collect();
    places.iter().for_each(|at| bytes[at + symbol.len()] = b'0');
    let room = Room::of(&[&fat("cp312")]);
    fs::write(room.at("other.so"), bytes).unwrap();
    let cuid = fat("cp313").set("x/_D.so", "file", folder(&room.at("other.so")));
    let absent = fat("cp313").without("x/_D.so");
    let licence = fat("cp313").info("LICENSE", "Other\n");
    let pure = fat("cp313").info(
        "WHEEL",
        &format!("Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: cp313-cp313-{PLATFORM}\n"),
    );
    for (other, expected) in [
        (pure, ("x_device_gfx1100-1.0.dist-info/WHEEL", "file")),
        (cuid, ("x/_D.so", "unit")),
        (absent, ("x/_D.so", "absent")),
        (licence, ("x_device_gfx1100-1.0.dist-info/licenses/LICENSE", "file")),
    ] {
        other.write(&room.at("in"));
        let receipt = room.split("out", &[]);
        assert_eq!(tags(&receipt), ["cp312-cp312", "cp313-cp313"].map(str::to_owned).into());
        let found = difference(&receipt).unwrap();
        assert_eq!((&found["file"], &found["reason"]), (&json!(expected.0), &json!(expected.1)));
        verifies(&room.at("out"), &room.inputs());
    }
}

/// A GPU that one wheel alone has code for.
#[test]
fn each_distribution_is_compared() {
    let image = "x/lib/aotriton.images/amd-gfx942/flash/a.aks2";
    let room = Room::of(&[&fat("cp312").text(image, "for gfx942\n"), &fat("cp313")]);
    let receipt = room.split("out", &[]);
    assert_eq!(tags(&receipt), ["cp312-cp312", "py3-none"].map(str::to_owned).into());
    let file = format!("x_device_gfx942-1.0-cp312-cp312-{PLATFORM}.whl");
    assert_eq!(difference(&receipt).unwrap()["file"], file);
    verifies(&room.at("out"), &room.inputs());
    fat("cp313").text(image, "for gfx942\n").write(&room.at("in"));
    fat("cp311").write(&room.at("in"));
    assert_eq!(tags(&room.split("out", &[])), ["py3-none".to_owned()].into());
}

/// With one host wheel, those of an index count: another run split them.
#[test]
fn an_index_has_wheels_of_other_pythons() {
    let room = Room::of(&[&fat("cp312")]);
    let own = |python: &str| BTreeSet::from([format!("{python}-{python}")]);
    assert_eq!(tags(&room.split("first", &[])), own("cp312"));
    let repository = room.at("repository");
    let publish = |set: &str| {
        run(rockpack().arg("repo").arg(room.at(set)).arg("--out").arg(&repository));
    };
    publish("first");
    let index = ["--index", folder(&repository)];
    // Its own wheels are no others.
    assert_eq!(tags(&room.split("again", &index)), own("cp312"));
    fs::remove_dir_all(room.at("in")).unwrap();
    fat("cp313").write(&room.at("in"));
    let receipt = room.split("second", &index);
    assert_eq!((tags(&receipt), difference(&receipt)), (["py3-none".to_owned()].into(), None));
    publish("second");
    // A third run makes the shared wheels that are there, although its time is another.
    let third = room.at("third-in");
    fat("cp314").write(&third);
    let mut later = wheel_command(&[&third], &room.at("third"));
    run(later.args(index).env("SOURCE_DATE_EPOCH", "1900000000"));
    publish("third");
    said(rockpack().arg("verify").arg(&repository));
    fat("cp313").without("x/_D.so").write(&room.at("in"));
    let receipt = room.split("fourth", &index);
    assert_eq!(tags(&receipt), own("cp313"));
    assert!(difference(&receipt).is_some());
    let absent = folder(&room.at("absent")).to_owned();
    let refused =
        wheel_command(&[&room.at("in")], &room.at("x")).args(["--index", &absent]).output();
    assert_eq!(refused.unwrap().status.code(), Some(64));
}

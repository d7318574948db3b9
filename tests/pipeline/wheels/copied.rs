//! Wheels that are copied, and what is told of them: `verify` excuses that, and finds nothing else.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use support::example::names;
use support::fat_wheels::{Made, WheelSpec, library, wheel_command};
use support::kpack::{code_object, mach};
use support::tampered::verify;
use support::tools::{run, said, told};
use support::wheels::LooseWheel;

use super::{made, native, verifies};

fn plain() -> WheelSpec {
    WheelSpec::new("plain", "1.0").text("plain/__init__.py", "")
}

/// A run that copies wheels.
struct Copied(tempfile::TempDir);

impl Copied {
    /// Copies `inputs`.
    fn of(inputs: &[PathBuf]) -> Self {
        let room = tempfile::tempdir().unwrap();
        let paths: Vec<&Path> = inputs.iter().map(PathBuf::as_path).collect();
        let text = said(&mut wheel_command(&paths, &room.path().join("out")));
        let copied = Self(room);
        assert_eq!(text.matches("R123").count(), inputs.len(), "{text}");
        assert!(!text.contains("no device code"), "{text}");
        for input in inputs {
            let copy = copied.out().join(input.file_name().unwrap());
            assert!(fs::read(input).unwrap() == fs::read(copy).unwrap(), "{}", input.display());
        }
        verifies(&copied.out(), inputs);
        copied
    }

    fn out(&self) -> PathBuf {
        self.0.path().join("out")
    }

    fn receipt(&self) -> Value {
        serde_json::from_slice(&fs::read(self.out().join("wheels.json")).unwrap()).unwrap()
    }

    /// The codes of its findings, without the one that names the copy.
    fn codes(&self) -> Vec<String> {
        let receipt = self.receipt();
        let findings = receipt["findings"].as_array().unwrap().iter();
        let codes = findings.map(|finding| finding["code"].as_str().unwrap().to_owned());
        codes.filter(|code| code != "R123").collect()
    }

    /// Asserts which checks fail if the receipt has no findings, and if there is no receipt.
    #[track_caller]
    fn fails_untold(&self, without_findings: &[&str], without_receipt: &[&str]) {
        let (path, mut receipt) = (self.out().join("wheels.json"), self.receipt());
        receipt["findings"] = json!([]);
        fs::write(&path, receipt.to_string()).unwrap();
        verify(&[self.out().to_str().unwrap()], &[]).fired(without_findings);
        fs::remove_file(path).unwrap();
        verify(&[self.out().to_str().unwrap()], &[]).fired(without_receipt);
    }
}

/// Asserts that `--strict` refuses `input`, unless the configuration accepts the only warning `code`.
#[track_caller]
fn is_refused_by_strict(input: &Path, code: &str) {
    let room = tempfile::tempdir().unwrap();
    let mut strict = wheel_command(&[input], &room.path().join("out"));
    let text = told(strict.arg("--strict"));
    assert!(text.contains(code) && text.ends_with("exit status: 2\n"), "{text}");
    let config = room.path().join("config.toml");
    let accept = format!("[[accept]]\ncode = \"{code}\"\nsubject = \"*\"\nreason = \"known\"\n");
    fs::write(&config, accept).unwrap();
    let text = told(strict.arg("--config").arg(&config));
    assert!(text.ends_with("exit status: 0\n"), "{text}");
    verify(&[room.path().join("out").to_str().unwrap()], &[]).fired(&[]);
}

#[test]
fn device_code_that_stays_in_a_copy_is_told() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let mut code = code_object(mach::GFX1100, "embedded");
    // The version of the format, and the size of the header.
    (code[20], code[52]) = (1, 64);
    let library = room.path().join("library");
    fs::write(&library, [fs::read(native()).unwrap(), code.clone()].concat()).unwrap();
    for place in [
        "plain/_C.so",
        "plain.libs/libx-1a2b3c4d.so.1",
        "plain-1.0.data/platlib/plain/_C.so",
        "plain-1.0.data/purelib/plain/_C.so",
        "plain-1.0.data/scripts/tool",
        "plain-1.0.data/data/lib/libx.so",
    ] {
        let input = plain().file(place, &library).write(&room.path().join("in"));
        let copied = Copied::of(std::slice::from_ref(&input));
        assert_eq!(copied.codes(), ["R035"], "{place}");
        copied.fails_untold(&["V020"], &["V020"]);
        is_refused_by_strict(&input, "R035");
    }
    // `verify` looks into neither bitcode nor data.
    let [bitcode, data] = ["bitcode", "data"].map(|name| room.path().join(name));
    fs::write(&bitcode, b"BC\xc0\xde0123456789").unwrap();
    fs::write(&data, [b"DATA\0", code.as_slice()].concat()).unwrap();
    for place in [
        "plain/x",
        "plain-1.0.data/purelib/plain/x",
        "plain-1.0.data/data/share/x",
        "plain-1.0.dist-info/x",
    ] {
        for (file, expected) in [(&bitcode, "R030"), (&data, "R141")] {
            let input = plain().file(place, file).write(&room.path().join("in"));
            assert_eq!(Copied::of(&[input]).codes(), [expected], "{place}");
        }
    }
    let input = plain().file("plain-1.0.data/headers/x", &data).write(room.path());
    is_refused_by_strict(&input, "R141");
}

/// A host wheel of which nobody has the device wheels, as a tool that does not know archives repairs it.
#[test]
fn binaries_whose_archives_are_lost_are_told() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let host = made().out().join(made().fat.file_name().unwrap());
    let mut wheel = LooseWheel::read(&host);
    let metadata = wheel.text(&wheel.info("METADATA"));
    let lines = metadata.split_inclusive('\n').filter(|line| !line.contains("device-"));
    wheel.add(&wheel.info("METADATA"), lines.collect::<String>());
    for input in [wheel.write(room.path()), host] {
        let copied = Copied::of(std::slice::from_ref(&input));
        let codes = copied.codes();
        assert_eq!(codes.iter().filter(|code| *code == "R031").count(), 6, "{codes:?}");
        let mut strict = wheel_command(&[&input], &room.path().join("strict"));
        let text = told(strict.arg("--strict"));
        assert!(text.contains("R031") && text.ends_with("exit status: 2\n"), "{text}");
    }
}

/// A library without its archives is named by each split, however many device wheels there are.
#[test]
fn lost_archives_are_told_again() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let host = LooseWheel::read(&made().out().join(made().fat.file_name().unwrap()));
    let lost = room.path().join("lost");
    fs::write(&lost, &host.files["x/_C.so"].bytes).unwrap();
    for place in ["z/lost.so", "z-1.0.data/data/lib/lost.so", "z-1.0.dist-info/lost.so"] {
        let wheel = WheelSpec::new("z", "1.0").file("z/_C.so", &library()).file(place, &lost);
        let fat = Made::of(&wheel, &[]);
        assert_eq!(fat.said.matches("R031").count(), 1, "{place}: {}", fat.said);
        verifies(&fat.out(), std::slice::from_ref(&fat.fat));
        let copied = Copied::of(&wheels_in(&fat, ""));
        let findings = copied.receipt()["findings"].to_string();
        assert_eq!(copied.codes(), ["R031"], "{findings}");
        assert!(findings.contains("lost.so"), "{findings}");
        // A wheel without device wheels.
        let alone = plain().file(&place.replace("z-1.0", "plain-1.0"), &lost);
        let copied = Copied::of(&[alone.write(&room.path().join("in"))]);
        assert_eq!(copied.codes(), ["R031"], "{place}");
    }
    // Debug information has the headers of the sections, and no code.
    let debug = room.path().join("debug");
    support::tools::need(&["eu-strip"]);
    let mut strip = Command::new("eu-strip");
    run(strip.arg("-f").arg(&debug).arg("-o").arg(room.path().join("rest")).arg(library()));
    for place in ["plain/_C.debug", "plain-1.0.data/data/lib/debug/_C.debug"] {
        let input = plain().file(place, &debug).write(&room.path().join("in"));
        assert_eq!(Copied::of(&[input]).codes(), [""; 0], "{place}");
    }
}

/// A run has the host wheel of one release, and the device wheels of another one, or of another Python.
#[test]
fn halves_of_two_releases_are_no_set() {
    support::kpack::need_python();
    let split = |version: &str, python: &str| {
        let tags = format!("{python}-{python}-manylinux_2_17_x86_64");
        Made::of(&WheelSpec::tagged("z", version, &tags).file("z/_C.so", &library()), &[])
    };
    let first = split("1.0", "cp311");
    let host = wheels_in(&first, "z-");
    for (version, python, codes) in [("2.0", "cp311", &["R031"][..]), ("1.0", "cp312", &[][..])] {
        let other = split(version, python);
        let copied = Copied::of(&[host.clone(), wheels_in(&other, "z_device_")].concat());
        assert_eq!(copied.codes(), codes, "{version} {python}");
    }
}

/// The wheels of a split whose names begin with `start`.
fn wheels_in(made: &Made, start: &str) -> Vec<PathBuf> {
    let files = names(&made.out()).into_iter();
    let wheels = files.filter(|name| name.starts_with(start) && name.ends_with(".whl"));
    wheels.map(|name| made.out().join(name)).collect()
}

#[test]
fn archives_without_a_binary_stay_where_they_are() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let wheels = made().wheels();
    let name = wheels.keys().find(|name| name.starts_with("x_device_gfx1100-")).unwrap();
    let files = LooseWheel::read(&made().out().join(name)).files;
    let archive = files.into_iter().find(|(path, _)| path.ends_with(".kpack")).unwrap().1;
    for (name, fields, codes) in [
        ("plain-1.0-py3-none-any.whl", "", &["R040"][..]),
        ("plain_device_gfx1100-1.0-py3-none-any.whl", "Requires-Dist: plain == 1.0\n", &[][..]),
        ("kernels-1.0-py3-none-any.whl", "Requires-Dist: plain == 1.0\n", &[][..]),
    ] {
        let mut wheel = LooseWheel::new(name, fields);
        if !codes.is_empty() {
            wheel.add("plain/__init__.py", "");
        }
        wheel.files.insert("plain/.kpack/x_gfx1100.kpack".to_owned(), archive.clone());
        let copied = Copied::of(&[wheel.write(room.path())]);
        assert_eq!(copied.codes(), codes, "{name}");
    }
}

#[test]
fn texts_of_a_copy_stay_as_they_are() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let wheel = plain().called("plain-1.0-1-py3-none-any.whl").file("plain/_C.so", &native());
    let copied = Copied::of(&[wheel.write(room.path())]);
    assert_eq!(copied.codes(), ["R121"]);
    copied.fails_untold(&[], &[]);
    let wheel = plain().edit("plain/__init__.py,", "plain/other.py,");
    let copied = Copied::of(&[wheel.write(room.path())]);
    assert_eq!(copied.codes(), ["R120"]);
    copied.fails_untold(&[], &["V093"]);
    let copied = Copied::of(&[plain().stale().write(room.path())]);
    assert_eq!(copied.codes(), ["R149"]);
    copied.fails_untold(&[], &[]);
}

/// Builds of one library for several releases of ROCm are in one folder, and nobody installs both.
#[test]
fn copies_of_two_projects_may_share_a_path() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let input = |name: &str| {
        let wheel = WheelSpec::new(name, "1.0").text("shared/__init__.py", name);
        wheel.write(room.path())
    };
    Copied::of(&["one", "two"].map(input)).fails_untold(&[], &["V040"]);
}

//! Wheels judged by other tools: `unzip`, `wheel`, `installer`, `twine`, `check-wheel-contents`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::example::{files, names, rockpack};
use support::fat_wheels::{Made, ReadWheel, WheelSpec, library, read, read_one, wheel_command};
use support::tools::{need, run, said, told};

use super::{both, judges_python};

#[test]
fn unzip_finds_no_error() {
    need(&["unzip"]);
    support::kpack::need_python();
    for wheel in both().of("1.0") {
        let text = said(Command::new("unzip").arg("-t").arg(&wheel));
        assert!(text.contains("No errors detected"), "{text}");
    }
}

/// `wheel unpack` compares every digest in RECORD, and `wheel pack` makes the same wheel again.
#[test]
fn wheel_unpacks_and_packs_them() {
    need(&["wheel"]);
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let packed = room.path().join("packed");
    for name in ["x-1.0-", "x_device_gfx1100-1.0-", "x_device_gfx11-1.0-"] {
        let wheels = both().of("1.0");
        let own = |path: &&PathBuf| names_of(path).starts_with(name);
        let wheel = wheels.iter().find(own).unwrap();
        let place = room.path().join(name);
        fs::create_dir_all(&packed).unwrap();
        run(Command::new("wheel").arg("unpack").arg(wheel).arg("-d").arg(&place));
        let unpacked = place.join(names(&place).first().unwrap());
        run(Command::new("wheel").arg("pack").arg(&unpacked).arg("-d").arg(&packed));
        let again = read_one(&packed.join(names_of(wheel)));
        let ours = read_one(wheel);
        assert_eq!(digests(&again), digests(&ours), "{name}");
    }
}

/// The advice of `R149`, and why it is not `wheel unpack`.
#[test]
fn stale_records_are_made_anew() {
    need(&["wheel", "unzip"]);
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let spec = WheelSpec::new("x", "1.0").text("x/__init__.py", "").stale();
    let stale = spec.write(&room.path().join("in"));
    let [unpacked, out] = ["unpacked", "out"].map(|name| room.path().join(name));
    let text = told(Command::new("wheel").arg("unpack").arg(&stale).arg("-d").arg(room.path()));
    assert!(text.contains("Hash mismatch"), "{text}");
    run(Command::new("unzip").arg("-q").arg(&stale).arg("-d").arg(&unpacked));
    run(Command::new("wheel").arg("pack").arg(&unpacked).arg("-d").arg(room.path()));
    let packed = room.path().join(names_of(&stale));
    for (wheel, is_told) in [(&stale, true), (&packed, false)] {
        let text = said(&mut wheel_command(&[wheel], &out));
        assert_eq!(text.contains("R149"), is_told, "{text}");
    }
}

fn digests(wheel: &ReadWheel) -> BTreeMap<String, String> {
    let all = wheel
        .members
        .iter()
        .map(|member| (member["name"].to_string(), member["sha256"].to_string()));
    all.filter(|(name, _)| !name.contains("RECORD")).collect()
}

fn names_of(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

/// `installer`, the reference implementation, validates RECORD and installs the same files as pip.
#[test]
fn installer_validates_their_records() {
    need(&["check-wheel-contents"]);
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let script = "import sys\nfrom installer.sources import WheelFile\n\
                  for path in sys.argv[1:]:\n    with WheelFile.open(path) as wheel:\n        \
                  wheel.validate_record(validate_contents=True)\n        \
                  count = sum(1 for _ in wheel.get_contents())\n        print(count)\n";
    let wheels = both().of("1.0");
    let mut python = Command::new(judges_python());
    let counts = said(python.args(["-I", "-c", script]).args(&wheels));
    let members = read(&wheels);
    let mut counts = counts.lines();
    for (name, wheel) in &members {
        let count = counts.next().unwrap();
        assert_eq!(count, wheel.members.len().to_string(), "{name}");
    }
    let host = wheels.iter().find(|path| names_of(path).starts_with("x-")).unwrap();
    let mut installer = Command::new(judges_python());
    installer
        .args(["-I", "-m", "installer", "--no-compile-bytecode", "--destdir"])
        .arg(room.path())
        .arg(host);
    run(&mut installer);
    let installed = files(room.path());
    assert!(installed.keys().any(|path| path.ends_with("bin/x-other")), "{:?}", installed.keys());
    assert!(installed.keys().any(|path| path.ends_with("site-packages/x/pure.py")));
}

/// `packaging` validates METADATA, also of device wheels whose input has what it refuses, and the licence files are
/// where METADATA 2.4 has them.
#[test]
fn packaging_takes_their_metadata() {
    need(&["check-wheel-contents"]);
    support::kpack::need_python();
    let made = |version: &str, fields: &str| {
        let text = format!("Metadata-Version: {version}\nName: x\nVersion: 1.0\n{fields}\n");
        let wheel = WheelSpec::new("x", "1.0").file("x/_C.so", &library());
        Made::of(&wheel.info("METADATA", &text).info("LICENSE", "MIT\n"), &[])
    };
    // As setuptools wrote it before METADATA 2.4.
    let old = made("2.1", "License: MIT\nLicense-File: LICENSE\nRequires-Python: >=3.8\n");
    let odd = made(
        "2.9",
        "License-Expression: Whatever\nLicense-File: ../LICENSE\nLicense-File: absent\nAuthor: a\nAuthor: b\n\
         Project-URL: a, b\nProject-URL: a, c\nRequires-Python: >=3.*\nMaintainer: m\n",
    );
    let lax = made(
        "2.4",
        "License-Expression: LicenseRef-Own OR mit OR (GPL-2.0+)\nLicense-File: LICENSE\n",
    );
    let mut wheels = both().of("1.0");
    for (made, form, licence, maintainer) in [
        (&old, "2.1", &["LICENSE"][..], &[] as &[&str]),
        (&odd, "2.9", &[], &["m"]),
        (&lax, "2.4", &["LICENSE"], &[]),
    ] {
        assert_eq!(made.wheel("x").fields("Metadata-Version"), [form]);
        let device = made.wheel("x-device-gfx906");
        let (new, place) = match licence {
            [] => ("2.1", "LICENSE"),
            _ => ("2.4", "licenses/LICENSE"),
        };
        assert_eq!(device.fields("Metadata-Version"), [new]);
        assert_eq!(device.fields("License-File"), licence);
        assert_eq!(device.fields("Maintainer"), maintainer);
        assert_eq!(device.texts[place], "MIT\n");
        let device = names(&made.out()).into_iter().find(|name| name.contains("gfx906")).unwrap();
        wheels.push(made.out().join(device));
        said(rockpack().arg("verify").arg(made.out()).arg("--against").arg(&made.fat));
    }
    assert_eq!(lax.wheel("x-device-gfx906").fields("License-Expression").len(), 1);
    let script = "import sys, zipfile\nfrom packaging.metadata import Metadata\n\
                  for path in sys.argv[1:]:\n    wheel = zipfile.ZipFile(path)\n    names = wheel.namelist()\n    \
                  own = next(name for name in names if name.endswith('.dist-info/METADATA'))\n    \
                  read = Metadata.from_email(wheel.read(own), validate=True)\n    \
                  for file in read.license_files or []:\n        \
                  assert own.replace('METADATA', 'licenses/' + file) in names, own\n";
    run(Command::new(judges_python()).args(["-I", "-c", script]).args(&wheels));
}

#[test]
fn twine_would_upload_them() {
    need(&["twine"]);
    support::kpack::need_python();
    let text = said(
        Command::new("twine")
            .args(["check", "--strict"])
            .args(both().of("1.0"))
            .env("NO_COLOR", "1"),
    );
    assert_eq!(text.matches("PASSED").count(), both().of("1.0").len(), "{text}");
}

/// Device wheels have no module to import (W010; W004 and W009 are also about modules). All other warnings
/// also appear for the fat wheel.
#[test]
fn check_wheel_contents_finds_what_is_normal() {
    need(&["check-wheel-contents"]);
    support::kpack::need_python();
    let wheels = [vec![both().made.fat.clone()], both().of("1.0")].concat();
    let codes = codes(&wheels);
    for (wheel, own) in wheels.iter().zip(&codes).skip(1) {
        let name = names_of(wheel);
        let is_device = name.starts_with("x_device_");
        let allowed = |code: &String| codes[0].contains(code) || is_device && code == "W010";
        assert!(own.iter().all(allowed), "{name}: {own:?}, and of the fat wheel {:?}", codes[0]);
    }
}

/// The codes of the warnings for each of these wheels.
fn codes(wheels: &[PathBuf]) -> Vec<Vec<String>> {
    let text = told(Command::new("check-wheel-contents").arg("--no-config").args(wheels));
    let of = |wheel: &PathBuf| {
        // `PATH: OK`, or `PATH: W002: Wheel contains duplicate files`.
        let start = format!("{}: ", wheel.display());
        let own: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix(&start)).collect();
        assert!(!own.is_empty(), "{start}{text}");
        let codes = own.into_iter().map(|line| line.split(':').next().unwrap());
        codes.filter(|code| *code != "OK").map(str::to_owned).collect()
    };
    wheels.iter().map(of).collect()
}

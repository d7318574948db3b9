//! METADATA, WHEEL, and the names of split wheels.

use std::collections::BTreeSet;
use std::fs;

use support::example::rockpack;
use support::fat_wheels::{self, Made, WheelSpec, fat, fields, library, metadata, wheel_command};
use support::tools::said;

use super::made;

/// The archs of the fat wheel.
const ARCHS: [&str; 8] =
    ["gfx1100", "gfx1101", "gfx1102", "gfx1151", "gfx1200", "gfx1201", "gfx906", "gfx90a"];

#[test]
fn a_host_wheel_has_the_metadata_of_its_input_and_extras() {
    support::kpack::need_python();
    let made = made();
    let fat = fat_wheels::read_one(&made.fat);
    let host = made.wheel("x");
    let (head, body) = host.metadata().split_once("\n\n").unwrap();
    let (old_head, old_body) = fat.metadata().split_once("\n\n").unwrap();
    assert_eq!(body, old_body);
    let added = head.strip_prefix(old_head).unwrap();
    let mut extras: Vec<String> = ARCHS.iter().map(|arch| format!("device-{arch}")).collect();
    extras.push("device-all".to_owned());
    assert_eq!(fields(added, "Provides-Extra"), extras);
    let all: BTreeSet<String> =
        ARCHS.iter().map(|arch| format!("x-device-{arch} == 1.0")).collect();
    for arch in ARCHS {
        let mut required = BTreeSet::from([format!("x-device-{arch} == 1.0")]);
        // AOTriton's images for all of gfx11 are in a wheel that each of its archs requires.
        if arch.starts_with("gfx11") {
            required.insert(family_wheel());
        }
        let found: BTreeSet<String> =
            host.requires(&format!("device-{arch}")).into_iter().map(str::to_owned).collect();
        assert_eq!(found, required, "{arch}");
    }
    let found = host.requires("device-all").into_iter().map(str::to_owned);
    let expected: BTreeSet<String> = all.into_iter().chain([family_wheel()]).collect();
    assert_eq!(found.collect::<BTreeSet<_>>(), expected);
    assert_eq!(host.requires(""), BTreeSet::new());
    assert_eq!(host.texts["WHEEL"], fat.texts["WHEEL"]);
}

fn family_wheel() -> String {
    "x-device-gfx11 == 1.0".to_owned()
}

#[test]
fn device_wheels_carry_what_holds_for_them() {
    support::kpack::need_python();
    let mut count = 0;
    for (file, wheel) in made().wheels().iter().filter(|(name, _)| name.starts_with("x_device_")) {
        count += 1;
        let stem = file.split("-1.0-").next().unwrap();
        let family = family_wheel();
        let has_family = stem.starts_with("x_device_gfx11") && stem != "x_device_gfx11";
        let required = ["x == 1.0", family.as_str()];
        let required = &required[..if has_family { 2 } else { 1 }];
        assert!(file.ends_with(&format!("-1.0-{}.whl", fat_wheels::TAGS)), "{file}");
        let carried = [
            ("Metadata-Version", &["2.4"][..]),
            ("Version", &["1.0"]),
            ("Author", &["Somebody"]),
            ("License-Expression", &["MIT"]),
            ("License-File", &["LICENSE.txt", "third_party/NOTICE"]),
            ("Project-URL", &["Home, https://example.org"]),
            ("Requires-Python", &[">=3.8"]),
            ("Requires-Dist", required),
            ("Provides-Extra", &[]),
        ];
        for (name, values) in carried {
            assert_eq!(wheel.fields(name), values, "{file}: {name}");
        }
        let [name] = wheel.fields("Name")[..] else { panic!("{file}") };
        assert_eq!(name.replace('-', "_"), stem, "{file}");
        assert!(wheel.fields("Summary")[0].starts_with("GPU code of x for gfx"), "{file}");
        for licence in ["licenses/LICENSE.txt", "licenses/third_party/NOTICE"] {
            assert!(wheel.texts.contains_key(licence), "{file}: {licence}");
        }
        let tag = fat_wheels::TAGS;
        let generator = fields(&wheel.texts["WHEEL"], "Generator").concat();
        assert_eq!(generator, format!("rockpack {}", env!("CARGO_PKG_VERSION")));
        let expected = format!(
            "Wheel-Version: 1.0\nGenerator: {generator}\nRoot-Is-Purelib: false\nTag: {tag}\n"
        );
        assert_eq!(wheel.texts["WHEEL"], expected, "{file}");
        // The entry points are the host wheel's.
        assert!(!wheel.texts.contains_key("entry_points.txt"), "{file}");
    }
    assert_eq!(count, ARCHS.len() + 1);
}

/// A separate reader finds each member once in RECORD with its digest; RECORD itself is last, without one.
#[test]
fn records_list_what_is_there() {
    support::kpack::need_python();
    for (file, wheel) in made().wheels() {
        let names = wheel.names();
        let info = names.last().unwrap().strip_suffix("/RECORD").unwrap();
        assert!(info.ends_with(".dist-info"), "{file}");
        let first = names.iter().position(|name| name.starts_with(info)).unwrap();
        assert!(
            names[first..].iter().all(|name| name.starts_with(info)),
            "{file}: dist-info is last"
        );
        let record = &wheel.texts["RECORD"];
        let rows: Vec<&str> = record.lines().collect();
        assert_eq!(rows.len(), names.len(), "{file}");
        assert_eq!(*rows.last().unwrap(), format!("{info}/RECORD,,"));
        for (row, member) in rows.iter().zip(&wheel.members) {
            let (rest, size) = row.rsplit_once(',').unwrap();
            let (_, digest) = rest.rsplit_once(',').unwrap();
            if *row != rows[rows.len() - 1] {
                assert_eq!(size, member["size"].to_string(), "{file}: {row}");
                let digest = digest.strip_prefix("sha256=").unwrap();
                assert!(digest.len() == 43 && !digest.contains(['=', '+', '/']), "{row}");
            }
        }
        let quoted = "\"x/data, with \"\"all\"\"/ü.txt\",sha256=";
        assert_eq!(record.contains(quoted), file.starts_with("x-"), "{file}");
    }
}

/// A wheel's name in each spelling, and the names of its split wheels.
#[test]
fn names_and_tags_are_those_of_the_file() {
    support::kpack::need_python();
    // WHEEL has another tag and no build number: the file name counts.
    let wheel = WheelSpec::tagged("Two.Pkg", "1.0", "1-py2.py3-none-manylinux_2_17_x86_64");
    let old =
        "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-linux_x86_64\n";
    let wheel = wheel.info("WHEEL", old).file("two/_C.so", &library());
    let made = Made::of(&wheel, &[]);
    assert!(made.said.contains("R121"), "{}", made.said);
    let wheels = made.wheels();
    let tags = "1.0-1-py2.py3-none-manylinux_2_17_x86_64.whl";
    let archs = ["gfx1100", "gfx1101", "gfx1102", "gfx906"];
    let mut expected = vec![format!("Two_Pkg-{tags}")];
    expected.extend(archs.map(|arch| format!("two_pkg_device_{arch}-{tags}")));
    assert_eq!(wheels.keys().cloned().collect::<Vec<_>>(), expected);
    for (file, wheel) in &wheels {
        let text = &wheel.texts["WHEEL"];
        let tags = ["py2-none-manylinux_2_17_x86_64", "py3-none-manylinux_2_17_x86_64"];
        assert_eq!(fields(text, "Tag"), tags, "{file}");
        assert_eq!(fields(text, "Build"), ["1"], "{file}");
        assert_eq!(fields(text, "Root-Is-Purelib"), ["true"], "{file}");
    }
    let host = made.wheel("Two.Pkg");
    assert_eq!(host.fields("Name"), ["Two.Pkg"]);
    assert_eq!(host.requires("device-gfx906"), ["Two.Pkg-device-gfx906 == 1.0"].into());
    let device = made.wheel("two.pkg-device-gfx906");
    assert_eq!(device.fields("Name"), ["Two.Pkg-device-gfx906"]);
    assert_eq!(device.requires(""), ["Two.Pkg == 1.0"].into());
    // The archives are in the only package.
    assert!(device.names()[0].starts_with("two/.kpack/two_pkg-"), "{:?}", device.names());
}

#[test]
fn local_versions_are_pinned_as_they_are() {
    support::kpack::need_python();
    let wheel = WheelSpec::new("x", "1.0+rocm7.1").file("x/_C.so", &library());
    let made = Made::of(&wheel, &["--device-name", "amd-{name}-device-{group}"]);
    let host = made.wheel("x");
    let required = host.requires("device-gfx1100");
    assert_eq!(required, ["amd-x-device-gfx1100 == 1.0+rocm7.1"].into());
    let device = made.wheel("amd-x-device-gfx1100");
    assert_eq!(device.requires(""), ["x == 1.0+rocm7.1"].into());
    assert!(made.said.contains("R126"), "{}", made.said);
    let name = "amd_x_device_gfx1100-1.0+rocm7.1-py3-none-manylinux_2_17_x86_64.whl";
    assert!(made.out().join(name).is_file(), "{:?}", made.wheels().keys());
}

/// Old METADATA without extras, body and blank line.
#[test]
fn old_metadata_are_raised_to_what_has_extras() {
    support::kpack::need_python();
    let text = "Metadata-Version: 2.0\nName: x\nVersion: 1.0\nLicense: BSD\n   three clauses";
    let wheel = WheelSpec::new("x", "1.0").file("x/_C.so", &library()).info("METADATA", text);
    let made = Made::of(&wheel.info("LICENSE", "BSD\n"), &[]);
    let host = made.wheel("x");
    let lines: Vec<&str> = host.metadata().lines().collect();
    assert_eq!(lines[..3], ["Metadata-Version: 2.1", "Name: x", "Version: 1.0"]);
    assert_eq!(lines[3..5], ["License: BSD", "   three clauses"]);
    assert!(lines.contains(&"Provides-Extra: device-all"), "{lines:?}");
    let device = made.wheel("x-device-gfx906");
    assert_eq!(device.fields("Metadata-Version"), ["2.1"]);
    assert!(device.metadata().contains("License: BSD\n   three clauses\n"));
    // No field names the licence file: its own name shows what it is.
    assert_eq!(device.texts["LICENSE"], "BSD\n");
}

#[test]
fn configured_requirements_are_added() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let config = room.path().join("config.toml");
    let text = "[wheels]\ndevice_name = \"{name}-gpu-{group}\"\n\
                device_requires = [\"rocm-sdk-device-{group} == 7.1\"]\n\
                host_requires = [\"rocm-bootstrap\"]\n";
    fs::write(&config, text).unwrap();
    let wheel = WheelSpec::new("x", "1.0")
        .file("x/_C.so", &library())
        .text("x/lib/aotriton.images/amd-gfx11xx/flash/a.aks2", "a");
    let made = Made::of(&wheel, &["--config", config.to_str().unwrap()]);
    assert_eq!(made.wheel("x").requires(""), ["rocm-bootstrap"].into());
    // A family is no group: the wheels of its groups require what is theirs.
    let family = made.wheel("x-gpu-gfx11");
    assert_eq!(family.requires(""), ["x == 1.0"].into());
    assert!(!family.metadata().contains("pip install"), "{}", family.metadata());
    let device = made.wheel("x-gpu-gfx1101");
    let expected = ["rocm-sdk-device-gfx1101 == 7.1", "x == 1.0", "x-gpu-gfx11 == 1.0"];
    assert_eq!(device.requires(""), expected.into());
    // The option overrides the key.
    let option =
        Made::of(&wheel, &["--config", config.to_str().unwrap(), "--device-name", "g-{group}"]);
    assert_eq!(option.wheel("g-gfx1101").fields("Name"), ["g-gfx1101"]);
}

/// Names with an owner's prefix: extras, requirements, `verify`, a second split and the index know them.
#[test]
fn device_wheels_have_an_owners_prefix() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let config = room.path().join("config.toml");
    fs::write(&config, "[wheels]\ndevice_requires = [\"sdk-{group} == 7.1\"]\n").unwrap();
    let config = config.to_str().unwrap();
    let pattern = "acme-{name}-device-{group}";
    let made = Made::of(&fat(), &["--device-name", pattern, "--config", config]);
    assert!(!made.said.contains("R145"), "{}", made.said);
    let host = made.wheel("x");
    let [own, family] = ["acme-x-device-gfx1100 == 1.0", "acme-x-device-gfx11 == 1.0"];
    assert_eq!(host.requires("device-gfx1100"), [own, family].into());
    assert_eq!(host.requires("device-all").len(), ARCHS.len() + 1);
    let device = made.wheel("acme-x-device-gfx1100");
    assert!(device.requires("").is_superset(&["sdk-gfx1100 == 7.1", "x == 1.0"].into()));
    // Beside the fat wheel, only a signed receipt explains requirements of the configuration.
    said(rockpack().arg("verify").arg(made.out()));
    let again = said(&mut wheel_command(&[&made.out()], &room.path().join("again")));
    assert_eq!(again.matches("R123").count(), ARCHS.len() + 2, "{again}");
    let index = room.path().join("index");
    let published =
        said(rockpack().arg("repo").arg(made.out()).arg("--wheel").arg("--out").arg(&index));
    assert!(!published.contains("R130"), "{published}");
    assert!(index.join("simple/acme-x-device-gfx11/index.html").is_file());
    // The prefix alone does the same.
    let wheel = WheelSpec::new("x", "1.0").file("x/_C.so", &library());
    let made = Made::of(&wheel, &["--device-name", "acme"]);
    assert_eq!(made.wheel("x").requires("device-gfx1100"), [own].into());
}

/// A field in the body, or in a continuation line, is no field of METADATA.
#[test]
fn the_body_is_not_metadata() {
    support::kpack::need_python();
    let lines = "Description-Content-Type: text/plain\n";
    let text = metadata("x", "1.0", lines) + "\nProvides-Extra: device-gfx906\n";
    let wheel = fat().info("METADATA", &text);
    let made = Made::of(&wheel, &[]);
    assert!(made.wheel("x").metadata().ends_with("\nProvides-Extra: device-gfx906\n"));
}

//! The device code in each device wheel, and the extras that require it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use support::device::{aks2, link, offload_binary};
use support::example::rockpack;
use support::fat_wheels::{DATABASE, Made, WheelSpec, fat, library, wheel_command};
use support::kpack::{code_object, mach};
use support::tools::said;
use support::wheels::{PLAIN, WheelFile, archive};

use crate::odd_code::{self, GFX1100, HOST};

#[test]
fn generic_code_is_required_where_nothing_else_is_there() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    // Every wrapper has its own code for gfx1100; for gfx1101, one has only generic code.
    let both: &[&str] = &["gfx1100", "gfx1101", "gfx11-generic", "gfx942"];
    let library = link(
        room.path(),
        "library.so",
        &[("one", both), ("two", &["gfx1100", "gfx11-generic"])],
        &[],
    );
    let made = Made::of(&WheelSpec::new("x", "1.0").file("x/_C.so", &library), &[]);
    let host = made.wheel("x");
    assert_eq!(host.requires("device-gfx1100"), ["x-device-gfx1100 == 1.0"].into());
    let generic = "x-device-gfx11-generic == 1.0";
    assert_eq!(host.requires("device-gfx1101"), ["x-device-gfx1101 == 1.0", generic].into());
    assert_eq!(host.requires("device-gfx942"), ["x-device-gfx942 == 1.0"].into());
    assert_eq!(host.requires("device-gfx11-generic"), [generic].into());
    assert_eq!(host.requires("device-all").len(), 4);
    // The device wheel is as complete by its name; the generic one requires its host alone.
    let device = made.wheel("x-device-gfx1101");
    assert_eq!(device.requires(""), ["x == 1.0", generic].into());
    assert_eq!(made.wheel("x-device-gfx1100").requires(""), ["x == 1.0"].into());
    assert_eq!(made.wheel("x-device-gfx11-generic").requires(""), ["x == 1.0"].into());
}

/// SPIR-V runs everywhere. It is required only if a wrapper has nothing else for an arch.
#[test]
fn spirv_is_required_where_nothing_else_is_there() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let spirv =
        ("hip-spirv64-amd-amdhsa--amdgcnspirv", [3, 2, 0x23, 7, 0, 0, 1, 0, 0, 0, 0, 0].to_vec());
    let gfx906 = "hipv4-amdgcn-amd-amdhsa--gfx906";
    let all = [
        (HOST, Vec::new()),
        (GFX1100, odd_code::code_object(mach::GFX1100.into(), "1")),
        (gfx906, odd_code::code_object(mach::GFX906.into(), "2")),
        spirv.clone(),
    ];
    let some =
        [(HOST, Vec::new()), (GFX1100, odd_code::code_object(mach::GFX1100.into(), "3")), spirv];
    let library = room.path().join("library.so");
    odd_code::link(room.path(), &library, &[odd_code::bundle(&all), odd_code::bundle(&some)], "");
    let made = Made::of(&WheelSpec::new("x", "1.0").file("x/_C.so", &library), &[]);
    let wheel = made.wheel("x");
    let spirv = "x-device-amdgcnspirv == 1.0";
    assert_eq!(wheel.requires("device-gfx1100"), ["x-device-gfx1100 == 1.0"].into());
    assert_eq!(wheel.requires("device-gfx906"), ["x-device-gfx906 == 1.0", spirv].into());
    assert_eq!(wheel.requires("device-amdgcnspirv"), [spirv].into());
}

/// Files of AOTriton have code for some members of an arch family. The extras of these bring its wheel, and each of
/// them is there.
#[test]
fn extras_bring_the_wheel_of_a_family_where_it_has_code() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let library = link(room.path(), "library.so", &[("one", &["gfx1100", "gfx1150"])], &[]);
    let some = aks2(&["gfx1100", "gfx1101"]);
    // AOTriton 0.13 keeps these files in an archive.
    let [one, other] =
        ["gfx1100", "gfx1101"].map(|arch| WheelFile { bytes: aks2(&[arch]), mode: PLAIN });
    let archived = archive([("Q='*fp16:16'", &one), ("Q='*bf16:16'", &other)].into_iter());
    let signature = "x/lib/aotriton.images/amd-gfx11xx/__signature__";
    let alone = WheelSpec::new("x", "1.0").text("x/__init__.py", "").text(signature, "0.11");
    let with_library = WheelSpec::new("x", "1.0").file("x/_C.so", &library);
    assert_brought(alone, &some, &["gfx1100", "gfx1101"], &[]);
    for images in [some, archived] {
        assert_brought(with_library.clone(), &images, &["gfx1100", "gfx1101"], &["gfx1150"]);
    }
    // The folder decides where the file does not.
    assert_brought(with_library, b"AKS2, and no stream", &["gfx1100", "gfx1150"], &[]);
}

/// Splits the wheel with a file of AOTriton for gfx11: the wheel of that family is required by the extras of
/// `bringing`, and the only further extras are those of `others`.
fn assert_brought(wheel: WheelSpec, images: &[u8], bringing: &[&str], others: &[&str]) {
    let room = tempfile::tempdir().unwrap();
    let file = room.path().join("images");
    fs::write(&file, images).unwrap();
    let path = "x/lib/aotriton.images/amd-gfx11xx/flash/attn_fwd/a.aks2";
    let made = Made::of(&wheel.file(path, &file), &[]);
    assert_eq!(made.said.contains("R147"), images.starts_with(b"AKS2, and"), "{}", made.said);
    let wheels = made.wheels();
    let family = wheels.values().find(|wheel| wheel.names().contains(&path)).unwrap();
    let family = format!("{} == 1.0", family.fields("Name")[0]);
    let host = made.wheel("x");
    let extras = host.fields("Provides-Extra").into_iter().filter(|extra| *extra != "device-all");
    let (found, rest): (BTreeSet<&str>, BTreeSet<&str>) =
        extras.partition(|extra| host.requires(extra).contains(&*family));
    let named = |archs: &[&str]| archs.iter().map(|arch| format!("device-{arch}")).collect();
    let [expected, expected_rest]: [BTreeSet<String>; 2] = [named(bringing), named(others)];
    assert!(found.iter().eq(&expected), "{found:?}");
    assert!(rest.iter().eq(&expected_rest), "{rest:?}");
    said(rockpack().arg("verify").arg(made.out()).arg("--against").arg(&made.fat));
}

/// A group with the name of a family has only some of its members: it does not need what is for the others.
#[test]
fn a_group_does_not_bring_code_for_other_members_of_its_family() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let (config, images) = (room.path().join("config.json"), room.path().join("images"));
    let groups = serde_json::json!({"architecture_groups": {
        "gfx110X": {"architectures": ["gfx1100"]},
        "other": {"architectures": ["gfx1101", "gfx1102", "gfx1151", "gfx906"]},
    }});
    fs::write(&config, groups.to_string()).unwrap();
    fs::write(&images, aks2(&["gfx1101", "gfx1151"])).unwrap();
    let wheel = WheelSpec::new("x", "1.0").file("x/_C.so", &library());
    let wheel = wheel.file("x/lib/aotriton.images/amd-gfx11xx/flash/a.aks2", &images);
    let made = Made::of(&wheel, &["--config", config.to_str().unwrap()]);
    let host = made.wheel("x");
    let [own, other, shared] =
        ["gfx110x", "other", "gfx11"].map(|label| format!("x-device-{label} == 1.0"));
    for name in ["gfx110x", "gfx1100"] {
        assert_eq!(host.requires(&format!("device-{name}")), [&*own].into(), "{name}");
    }
    assert_eq!(host.requires("device-gfx1101"), [&*other, &*shared].into());
    said(rockpack().arg("verify").arg(made.out()));
}

#[test]
fn groups_of_the_configuration_are_wheels() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let config = room.path().join("config.json");
    let groups = serde_json::json!({"architecture_groups": {
        "gfx110X": {"architectures": ["gfx1100", "gfx1101", "gfx1102"], "display_name": "RDNA 3"},
        "rest": {"architectures": ["gfx1151", "gfx1200", "gfx1201", "gfx906", "gfx90a"], "display_name": "Others"},
    }});
    fs::write(&config, groups.to_string()).unwrap();
    let made = Made::of(&fat(), &["--config", config.to_str().unwrap()]);
    let host = made.wheel("x");
    let groups = [
        ("gfx110x", &["gfx1100", "gfx1101", "gfx1102"][..]),
        ("rest", &["gfx1151", "gfx1200", "gfx1201", "gfx906", "gfx90a"]),
    ];
    let mut extras = vec!["more".to_owned()];
    extras.extend(groups.map(|(group, _)| format!("device-{group}")));
    // Both read AOTriton's images for all of gfx11. Each arch has the extra of its group under its own name.
    let shared = "x-device-gfx11 == 1.0";
    for (group, archs) in groups {
        let own = format!("x-device-{group} == 1.0");
        for name in [&group].into_iter().chain(archs) {
            let required = host.requires(&format!("device-{name}"));
            assert_eq!(required, [own.as_str(), shared].into(), "{name}");
        }
        extras.extend(archs.iter().map(|arch| format!("device-{arch}")));
    }
    extras.push("device-all".to_owned());
    assert_eq!(host.fields("Provides-Extra"), extras);
    let wheel = made.wheel("x-device-gfx110x");
    assert_eq!(wheel.requires(""), ["x == 1.0", shared].into());
    let archives = wheel.names().into_iter().filter(|name| name.ends_with(".kpack"));
    assert_eq!(archives.count(), 3);
    let named: Vec<&str> =
        wheel.names().into_iter().filter(|name| name.starts_with(DATABASE)).collect();
    assert!(named.iter().all(|name| name.contains("gfx110")), "{named:?}");
    let receipt = made.receipt();
    let wheels = receipt["wheels"].as_array().unwrap();
    let archs = |name: &str| {
        let wheel = wheels.iter().find(|wheel| wheel["distribution"] == name).unwrap();
        wheel["archs"].clone()
    };
    assert_eq!(archs("x-device-gfx110x"), serde_json::json!(["gfx1100", "gfx1101", "gfx1102"]));
}

/// A family shares the wheel of the group with its name, or with that of its folder. The extras of all its archs bring
/// the wheel. An arch without code has no extra.
#[test]
fn a_group_and_a_family_of_one_name_are_one_wheel() {
    support::kpack::need_python();
    assert_is_one_wheel("gfx12.0", "gfx12-0");
    assert_is_one_wheel("gfx120X", "gfx120x");
}

/// Splits a wheel with files of two families, if a group `name` is the second, and has a wheel with this label.
fn assert_is_one_wheel(name: &str, label: &str) {
    let room = tempfile::tempdir().unwrap();
    let config = room.path().join("config.json");
    let groups = serde_json::json!({"architecture_groups": {
        "GFX110X": {"architectures": ["gfx1100", "gfx1101"]},
        name: {"architectures": ["gfx1200"]},
        "other": {"architectures": ["gfx1102", "gfx1151", "gfx906", "gfx908"]},
    }});
    fs::write(&config, groups.to_string()).unwrap();
    let images = "x/lib/aotriton.images/amd-gfx110x/flash/a.bin";
    let more = "x/lib/aotriton.images/amd-gfx120X/flash/a.bin";
    let wheel = WheelSpec::new("x", "1.0").file("x/_C.so", &library());
    let wheel = wheel.text(images, "of gfx110x").text(more, "of gfx120x");
    let made = Made::of(&wheel, &["--config", config.to_str().unwrap()]);
    let host = made.wheel("x");
    let named = format!("gfx110x {label} other gfx1100 gfx1101 gfx1102 gfx1200 gfx906 all");
    let extras: Vec<String> = named.split(' ').map(|name| format!("device-{name}")).collect();
    assert_eq!(host.fields("Provides-Extra"), extras);
    let [family, other] = ["x-device-gfx110x == 1.0", "x-device-other == 1.0"];
    for name in ["gfx110x", "gfx1100", "gfx1101"] {
        assert_eq!(host.requires(&format!("device-{name}")), [family].into(), "{name}");
    }
    for name in ["other", "gfx1102", "gfx906"] {
        assert_eq!(host.requires(&format!("device-{name}")), [family, other].into(), "{name}");
    }
    let second = format!("x-device-{label}");
    assert_eq!(host.requires("device-gfx1200"), [&*format!("{second} == 1.0")].into());
    made.wheel("x-device-gfx110x").member(images);
    made.wheel(&second).member(more);
    said(rockpack().arg("verify").arg(made.out()).arg("--against").arg(&made.fat));
}

/// `device-all` is the extra for all device wheels, `device-gfx1100` that for gfx1100, and `device-gfx12` that for a
/// family, so no other group can have these names.
#[test]
fn a_group_is_not_called_all_or_like_other_archs() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let config = room.path().join("config.json");
    let wheel =
        WheelSpec::new("x", "1.0").file("x/_C.so", &library()).write(&room.path().join("in"));
    for (name, extra) in [
        ("all", "device-all"),
        ("gfx-906", ""),
        ("Gfx906", "device-gfx906"),
        ("gfx1102", "device-gfx1102"),
        ("gfx12", "device-gfx12"),
        ("gfx11xx", ""),
    ] {
        let groups = serde_json::json!({"architecture_groups": {
            name: {"architectures": ["gfx1100", "gfx1101", "gfx1102"], "display_name": "All"},
            "old": {"architectures": ["gfx906"], "display_name": "Old"},
        }});
        fs::write(&config, groups.to_string()).unwrap();
        let mut command = wheel_command(&[&wheel], &room.path().join("out"));
        let output = command.arg("--config").arg(&config).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let status = if extra.is_empty() { 0 } else { 2 };
        assert_eq!(output.status.code(), Some(status), "{said}");
        assert!(said.contains(extra), "{said}");
    }
}

/// A group may have the variant of an arch and not the arch, whose GPUs run both.
#[test]
fn a_variant_in_another_group_comes_with_its_arch() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let config = room.path().join("config.json");
    let (mut wheel, mut groups) = (WheelSpec::new("x", "1.0"), serde_json::Map::new());
    for arch in ["gfx1250", "gfx1250-strict"] {
        let file = code_file(room.path(), 0x49, arch);
        wheel = wheel.file(&database_path(&format!("Kernels.so-000-{arch}.hsaco")), &file);
        groups.insert(arch.to_owned(), serde_json::json!({"architectures": [arch]}));
    }
    fs::write(&config, serde_json::json!({"architecture_groups": groups}).to_string()).unwrap();
    let made = Made::of(&wheel, &["--config", config.to_str().unwrap()]);
    let host = made.wheel("x");
    let [own, strict] = ["x-device-gfx1250 == 1.0", "x-device-gfx1250-strict == 1.0"];
    assert_eq!(host.requires("device-gfx1250"), [own, strict].into());
    assert_eq!(host.requires("device-gfx1250-strict"), [strict].into());
    assert_eq!(made.wheel("x-device-gfx1250").requires(""), ["x == 1.0", strict].into());
    said(rockpack().arg("verify").arg(made.out()));
}

/// The wheel has two files with one name and different code, and files for several archs.
#[test]
fn files_go_with_their_archs() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let gfx1100 = code_file(room.path(), mach::GFX1100, "one");
    let gfx906 = code_file(room.path(), mach::GFX906, "two");
    let binary = room.path().join("kernel.out");
    let code = fs::read(&gfx906).unwrap();
    fs::write(&binary, offload_binary(2, &[[b"amdgcn-amd-amdhsa", b"gfx906", &code]])).unwrap();
    let wheel = WheelSpec::new("x", "1.0")
        .text("x/__init__.py", "")
        .file("x/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco", &gfx1100)
        .file("x/lib/rocblas/library/Kernels.so-000-gfx906.hsaco", &gfx906)
        .text("x/lib/rocblas/library/TensileLibrary_lazy_gfx1100.dat", "\u{80}")
        .file("x/kernel.out", &binary);
    let made = Made::of(&wheel, &[]);
    let names = |name: &str| -> BTreeSet<String> {
        let wheel = made.wheel(name);
        let names = wheel.names().into_iter().filter(|name| !name.contains(".dist-info/"));
        names.map(str::to_owned).collect()
    };
    assert_eq!(names("x"), ["x/__init__.py".to_owned()].into());
    let own = [database_path("Kernels.so-000-gfx906.hsaco"), "x/kernel.out".to_owned()];
    assert_eq!(names("x-device-gfx906"), own.into());
    let own = ["Kernels.so-000-gfx1100.hsaco", "TensileLibrary_lazy_gfx1100.dat"];
    assert_eq!(names("x-device-gfx1100"), own.map(database_path).into());
}

fn code_file(folder: &Path, mach: u8, text: &str) -> PathBuf {
    let path = folder.join(text);
    fs::write(&path, code_object(mach, text)).unwrap();
    path
}

fn database_path(name: &str) -> String {
    format!("x/lib/rocblas/library/{name}")
}

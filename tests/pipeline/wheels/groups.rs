//! The device code in each device wheel, and the extras that require it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use support::device::{aks2, link, offload_binary};
use support::example::rockpack;
use support::fat_wheels::{DATABASE, Made, WheelSpec, fat, library, wheel_command};
use support::kpack::{code_object, mach};
use support::tools;

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
    let signature = "x/lib/aotriton.images/amd-gfx11xx/__signature__";
    let alone = WheelSpec::new("x", "1.0").text("x/__init__.py", "").text(signature, "0.11");
    let with_library = WheelSpec::new("x", "1.0").file("x/_C.so", &library);
    assert_brought(alone, &some, &["gfx1100", "gfx1101"], &[]);
    assert_brought(with_library.clone(), &some, &["gfx1100", "gfx1101"], &["gfx1150"]);
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
    tools::said(rockpack().arg("verify").arg(made.out()));
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
    assert_eq!(
        host.fields("Provides-Extra"),
        ["more", "device-gfx110x", "device-rest", "device-all"]
    );
    // Both read AOTriton's images for all of gfx11.
    let shared = "x-device-gfx11xx == 1.0";
    assert_eq!(host.requires("device-gfx110x"), ["x-device-gfx110x == 1.0", shared].into());
    assert_eq!(host.requires("device-rest"), ["x-device-rest == 1.0", shared].into());
    let wheel = made.wheel("x-device-gfx110x");
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

/// `device-all` is the extra for all device wheels, so no group can be called `all`.
#[test]
fn a_group_is_not_called_all() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let config = room.path().join("config.json");
    let groups = serde_json::json!({"architecture_groups": {
        "all": {"architectures": ["gfx1100", "gfx1101", "gfx1102"], "display_name": "All"},
        "old": {"architectures": ["gfx906"], "display_name": "Old"},
    }});
    fs::write(&config, groups.to_string()).unwrap();
    let wheel =
        WheelSpec::new("x", "1.0").file("x/_C.so", &library()).write(&room.path().join("in"));
    let mut command = wheel_command(&[&wheel], &room.path().join("out"));
    let output = command.arg("--config").arg(&config).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("device-all"), "{said}");
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

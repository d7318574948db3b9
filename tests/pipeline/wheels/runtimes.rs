//! Wheels for every HIP runtime: the library by which binaries register, and the binaries that need it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::json;
use support::example::sha256;
use support::fat_wheels::{
    Made, WheelSpec, library, library_needing, linked, needed, of_shard, shim, wheel_command,
};
use support::program::repository;
use support::tools::told;

use super::lossless::unpack;

const SHIM: &str = "x/.kpack/librocm_kpack_shim.so.0";
const LICENCE: &str = "x/.kpack/librocm_kpack_shim.LICENSE";

/// A wheel with a binary for ROCm 6, and a HIP runtime that reads no archives.
fn spec(folder: &Path) -> WheelSpec {
    let other = of_shard(1, "lib/libexblas.so.1.2");
    WheelSpec::new("x", "1.0")
        .text("x/__init__.py", "")
        .file("x/_C.so", &library())
        .file("x/sub/_old.so", &library_needing(folder, "libamdhip64.so.6"))
        .file("x.libs/libexblas-1a2b3c4d.so.1.2", &other)
        .file("_E.so", &other)
        .file("x/lib/libamdhip64.so.6", &linked(folder, "libamdhip64.so.6", "", &[]))
}

/// The codes of the findings of a run.
fn codes(made: &Made) -> BTreeSet<String> {
    let receipt = made.receipt();
    let findings = receipt["findings"].as_array().unwrap().iter();
    findings.map(|finding| finding["code"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn binaries_for_every_runtime_register_with_a_member_of_the_host_wheel() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let file = shim(room.path(), "");
    let options = ["--hip-runtime", "any", "--hip-shim", file.to_str().unwrap()];
    let made = Made::of(&spec(room.path()), &options);
    for code in ["R124", "R125", "R142", "R154"] {
        assert!(!codes(&made).contains(code), "{code}: {}", made.said);
    }
    let having = made.wheels().into_iter().filter(|(_, wheel)| wheel.names().contains(&SHIM));
    assert_eq!(having.count(), 1);
    let host = made.wheel("x");
    assert_eq!(host.member(SHIM)["sha256"], sha256(&file));
    assert!(host.texts["RECORD"].contains(SHIM));
    assert_eq!(host.member(LICENCE)["sha256"], sha256(&repository("runtime/shim/LICENSE")));
    let site = room.path().join("site");
    unpack(&[made.out().join(made.fat.file_name().unwrap())], &site);
    for (binary, folder) in [
        ("x/_C.so", "$ORIGIN/.kpack"),
        ("x/sub/_old.so", "$ORIGIN/../.kpack"),
        ("x.libs/libexblas-1a2b3c4d.so.1.2", "$ORIGIN/../x/.kpack"),
        ("_E.so", "$ORIGIN/x/.kpack"),
    ] {
        let needs = needed(&site.join(binary));
        let expected = format!("{folder}/librocm_kpack_shim.so.0");
        assert_eq!(needs.iter().filter(|it| **it == expected).count(), 1, "{binary}: {needs:?}");
    }
}

/// The command line decides before the configuration.
#[test]
fn the_configuration_names_the_runtime_and_the_shim() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let file = shim(room.path(), "");
    let config = room.path().join("config.json");
    fs::write(&config, json!({"hip_runtime": "any", "hip_shim": file}).to_string()).unwrap();
    let options = ["--config", config.to_str().unwrap()];
    let wheel = WheelSpec::new("x", "1.0").text("x/__init__.py", "").file("x/_C.so", &library());
    assert!(Made::of(&wheel, &options).wheel("x").names().contains(&SHIM));
    let made = Made::of(&wheel, &[options[0], options[1], "--hip-runtime", "own"]);
    assert!(!made.wheel("x").names().contains(&SHIM) && codes(&made).contains("R124"));
}

#[test]
fn a_shim_for_newer_systems_than_the_wheel_is_refused() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let newer = "#include <pthread.h>\nvoid *use(void) { return (void *)pthread_create; }\n";
    let file = shim(room.path(), newer);
    let out = room.path().join("out");
    for (platform, is_refused) in [
        ("manylinux_2_17_x86_64", true),
        ("manylinux_2_99_x86_64.manylinux2014_x86_64", true),
        ("manylinux_2_99_x86_64", false),
        ("linux_x86_64", false),
    ] {
        let wheel = WheelSpec::tagged("x", "1.0", &format!("py3-none-{platform}"));
        let wheel = wheel.text("x/__init__.py", "").file("x/_C.so", &library());
        let wheel = wheel.write(&room.path().join(platform));
        let mut command = wheel_command(&[&wheel], &out);
        let said = told(command.args(["--hip-runtime", "any", "--hip-shim"]).arg(&file));
        let code = if is_refused { 2 } else { 0 };
        assert!(said.ends_with(&format!("exit status: {code}\n")), "{said}");
        for part in ["is for glibc 2.17", "needs 2.34", "-p rocm-kpack-shim", "gnu.2.17"] {
            assert_eq!(said.contains(part), is_refused, "{part}: {said}");
        }
        assert!(!is_refused || said.matches(wheel.to_str().unwrap()).count() == 1, "{said}");
    }
}

#[test]
fn a_wheel_for_musl_is_refused() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let file = shim(room.path(), "");
    let tags = "py3-none-manylinux_2_28_x86_64.musllinux_1_2_x86_64";
    let wheel = WheelSpec::tagged("x", "1.0", tags).text("x/__init__.py", "");
    let wheel = wheel.file("x/_C.so", &library()).write(&room.path().join("in"));
    let mut command = wheel_command(&[&wheel], &room.path().join("out"));
    let said = told(command.args(["--hip-runtime", "any", "--hip-shim"]).arg(file));
    assert!(said.ends_with("exit status: 2\n"), "{said}");
    assert!(said.contains("the wheel is for musl") && said.contains("--hip-runtime own"), "{said}");
}

#[test]
fn another_file_than_the_shim_is_refused() {
    support::kpack::need_python();
    let room = tempfile::tempdir().unwrap();
    let other = linked(room.path(), "libother.so", "", &[]);
    let wheel = spec(room.path()).write(&room.path().join("in"));
    // It is checked where it is not used, too.
    for runtime in ["any", "own"] {
        let mut command = wheel_command(&[&wheel], &room.path().join("out"));
        let said = told(command.args(["--hip-runtime", runtime, "--hip-shim"]).arg(&other));
        assert!(said.ends_with("exit status: 64\n"), "{said}");
        assert!(said.contains("libother.so") && said.contains("--hip-shim"), "{said}");
    }
}

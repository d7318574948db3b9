//! Lines on the standard error, and texts of errors.

use std::fs;

use crate::archives::marker;
use crate::program::{both, steps};
use crate::world::{World, loaded};

/// The HIP runtime asks for a device under several names, and once for each binary.
#[test]
fn a_missing_device_is_told_once_whatever_it_is_called() {
    let world = World::new(&["x_@GFXARCH@.kpack", "../none.kpack", "../none.kpack"]);
    fs::create_dir(world.path().join("lib")).unwrap();
    let long = "amdgcn-amd-amdhsa--gfx1103";
    let loads = [
        load_step("gfx1103"),
        load_step(long),
        load_step("gfx1103 gfx1103"),
        format!("load @/y.so 0 {long}"),
        "cache".to_owned(),
        load_step("gfx1103 gfx11-generic gfx11-generic"),
        load_step("- -"),
    ];
    let (out, errors) = world.both(&loads.each_ref().map(String::as_str));
    assert!(out.len() == 6 && out.iter().all(|line| line.starts_with("13 ")), "{out:?}");
    let lines: Vec<&str> = errors.lines().collect();
    assert!(lines.len() == 2 && lines[0].contains(" has gfx1103 for lib/x.so;"), "{errors}");
    assert!(lines[1].contains(" has gfx11-generic for lib/x.so;"), "{errors}");
    assert_eq!(lines[0].matches("none.kpack").count(), 1, "{errors}");
    // No line is written for an empty list of devices.
    marker(world.path(), &["x_@GFXARCH@.kpack"]);
    let (out, errors) = world.both(&["load @/x.so 0 - -"]);
    assert!(out[0].starts_with("13 ") && out[0].ends_with("no device is named"), "{out:?}");
    world.archive("x", 1);
    marker(world.path(), &["x"]);
    let (more, others) = world.both(&["load @/x.so 0 -"]);
    assert!(more[0].starts_with("14 ") && more[0].contains("no device is named"), "{more:?}");
    assert_eq!([errors, others], ["", ""]);
}

fn load_step(devices: &str) -> String {
    format!("load @/lib/x.so 0 {devices}")
}

#[test]
fn a_long_line_keeps_its_hint_and_its_end() {
    let names: Vec<String> =
        (0..40).map(|number| format!("{}é{number}_@GFXARCH@", "d".repeat(60 + number))).collect();
    let world = World::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let load = "load @/x.so 0 gfx90a:sramecc+:xnack-";
    let (_, errors) = world.both(&[load]);
    assert!(errors.ends_with("… (ROCM_KPACK_QUIET=1 silences this)\n"), "{errors}");
    assert!(errors.lines().count() == 1 && errors.len() < 2048, "{errors}");
    // The text of an error is cut as well.
    let names: Vec<String> = (0..40).map(|number| format!("{}{number}", "d".repeat(90))).collect();
    for (index, name) in names.iter().enumerate() {
        world.archive(name, index as u32);
    }
    marker(world.path(), &names.iter().map(String::as_str).collect::<Vec<_>>());
    let (out, _) = world.both(&["load @/x.so 0 gfx1103"]);
    assert!(out[0].starts_with("14 ") && out[0].ends_with("…; install the kernels for it"));
}

/// The line for users and debug lines are lost, and the process continues.
#[test]
fn a_standard_error_that_nobody_reads_ends_no_process() {
    let world = World::new(&["x.kpack"]);
    world.archive("x.kpack", 1);
    let folder = world.path().to_str().unwrap();
    let full = format!("full {folder}/errors");
    let (marker, load) = (format!("marker {folder}/marker"), "load /nowhere/x.so 0 gfx1103");
    let hit = format!("load {folder}/x.so 0 gfx1100");
    for start in ["pipe", &full] {
        for debug in ["0", "1"] {
            let mut command = steps(&[&marker, start, "cache", load, "pending", &hit, "pending"]);
            let (out, _) = both(command.env("ROCM_KPACK_DEBUG", debug));
            let lines: Vec<&str> = out.lines().collect();
            assert!(lines.len() == 4 && lines[0].starts_with("13 "), "{start}: {out}");
            assert_eq!(lines[1..], ["0 0", &loaded(1), "0 0"], "{start}: {out}");
        }
    }
}

//! The code objects that the GPUs of a machine can use, by a KFD made of files.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use crate::archives::Draft;
use crate::fixtures::{
    ONE_WRAPPER, World, assert_one_line, bundle, bundle_of, bundles, contents, told,
};

const OPEN: &str = "open - @/lib/x.so";

/// The standard output and error of a library that is loaded on a machine; `None` where it cannot be made.
fn on(world: &World, versions: &[u32], variables: &[(&str, &str)]) -> Option<(String, String)> {
    let mut command = world.steps(&[OPEN]);
    command.envs(variables.iter().copied());
    Some(told(&mut world.machine(&command, versions)?))
}

/// A folder with archives and a library of one wrapper.
fn world(targets: &[&str]) -> World {
    let world = World::new(targets);
    world.library("x.so", &[ONE_WRAPPER]);
    world
}

#[test]
fn only_code_for_the_gpus_of_the_machine_is_in_the_bundle() {
    let installed = ["gfx1030", "gfx1100", "gfx1101", "gfx90a", "gfx942"];
    let cases: [(&[u32], &[&str]); 6] = [
        (&[0, 110_000], &["gfx1100"]),
        (&[0, 110_000, 100_300], &["gfx1030", "gfx1100"]),
        (&[0, 110_001, 110_001], &["gfx1101"]),
        (&[0, 90_010], &["gfx90a"]),
        (&[0, 0, 90_402, 90_402], &["gfx942"]),
        // No file says what GPUs there are.
        (&[], &installed),
    ];
    for (versions, targets) in cases {
        let world = world(&installed);
        fs::create_dir_all(world.path().join("sys")).unwrap();
        let Some((out, errors)) = on(&world, versions, &[]) else { return };
        assert_eq!(bundles(&out), [bundle(targets, 0)], "{versions:?}");
        assert_eq!(errors, "", "{versions:?}");
    }
}

/// The driver does not say which features a GPU has: the HIP runtime chooses.
#[test]
fn code_for_each_feature_of_a_gpu_stays() {
    let targets = ["gfx90a:xnack+", "gfx90a:xnack-", "gfx90a"];
    let world = world(&["gfx90a:xnack+", "gfx90a:xnack-", "gfx90a", "gfx908:xnack+"]);
    let Some((out, errors)) = on(&world, &[0, 90_010], &[]) else { return };
    assert_eq!((bundles(&out), errors.as_str()), (vec![bundle(&targets, 0).as_str()], ""));
}

/// Both rows are in one archive.
#[test]
fn a_row_for_another_gpu_does_not_reach_the_bundle() {
    let world = world(&[]);
    let targets = ["gfx90a:xnack+", "gfx90a:xnack-", "gfx1100"];
    Draft::zstd(&targets, &contents("one")).write(world.archive("gfx90a"));
    let content = contents("one").remove(0);
    let Some((out, _)) = on(&world, &[0, 90_010], &[]) else { return };
    let expected = bundle_of(&[("gfx90a:xnack+", &content), ("gfx90a:xnack-", &content)]);
    assert_eq!(bundles(&out), [expected]);
}

#[test]
fn generic_code_stays_for_its_generation() {
    let installed = ["gfx11-generic", "gfx1100", "gfx1030", "gfx10-3-generic"];
    for (version, targets) in [
        (110_000, &["gfx11-generic", "gfx1100"][..]),
        (110_003, &["gfx11-generic"]),
        (100_300, &["gfx1030", "gfx10-3-generic"]),
    ] {
        let world = world(&installed);
        let Some((out, errors)) = on(&world, &[0, version], &[]) else { return };
        assert_eq!(bundles(&out), [bundle(targets, 0)], "{version}");
        assert_eq!(errors, "", "{version}");
    }
}

#[test]
fn a_gpu_that_the_user_declares_counts() {
    let world = world(&["gfx1100", "gfx1103", "gfx1030"]);
    let declared = [("HSA_OVERRIDE_GFX_VERSION", "11.0.0")];
    let Some((out, errors)) = on(&world, &[0, 110_003], &declared) else { return };
    assert_eq!((bundles(&out), errors.as_str()), (vec![bundle(&["gfx1100"], 0).as_str()], ""));
    let declared = [("HSA_OVERRIDE_GFX_VERSION", "10.3.0")];
    let Some((out, _)) = on(&world, &[0, 110_003], &declared) else { return };
    assert_eq!(bundles(&out), [bundle(&["gfx1030"], 0)]);
}

#[test]
fn a_gpu_without_its_archive_is_named_in_one_line() {
    let installed = world(&["gfx1100"]);
    let Some((out, errors)) = on(&installed, &[0, 110_000, 100_300], &[]) else { return };
    assert_eq!(bundles(&out), [bundle(&["gfx1100"], 0)]);
    assert_one_line(&errors, &["gfx1030"]);
    assert!(!errors.contains("gfx1100"), "{errors}");
    let quiet = on(&installed, &[0, 110_000, 100_300], &[("ROCM_KPACK_QUIET", "1")]);
    assert_eq!(quiet, Some((out, String::new())));
    // Two GPUs of a kind are named once.
    let other = world(&["gfx1100"]);
    let Some((out, errors)) = on(&other, &[0, 100_300, 100_300], &[]) else { return };
    assert_eq!(bundles(&out), [bundle(&[], 0)]);
    assert_one_line(&errors, &["gfx1030"]);
}

/// Nothing is missing on a machine without a GPU.
#[test]
fn a_machine_with_a_processor_alone_gets_no_line() {
    let world = world(&[]);
    let Some((out, errors)) = on(&world, &[0], &[]) else { return };
    assert_eq!((bundles(&out), errors.as_str()), (vec![bundle(&[], 0).as_str()], ""));
}

/// The file of a node, whose folder is made.
fn properties(world: &World, number: u32) -> PathBuf {
    let node = world.path().join(format!("sys/class/kfd/kfd/topology/nodes/{number}"));
    fs::create_dir_all(&node).unwrap();
    node.join("properties")
}

#[test]
fn a_node_that_cannot_be_read_leaves_all_code() {
    let installed = ["gfx1030", "gfx1100"];
    for kind in ["folder", "loop", "nothing"] {
        let world = world(&installed);
        let path = properties(&world, 2);
        match kind {
            "folder" => fs::create_dir(path).unwrap(),
            "loop" => symlink("properties", path).unwrap(),
            _ => {}
        }
        let Some((out, errors)) = on(&world, &[0, 110_000], &[]) else { return };
        // The list of nodes ends where there is no file.
        let targets: &[&str] = if kind == "nothing" { &installed[1..] } else { &installed };
        assert_eq!(bundles(&out), [bundle(targets, 0)], "{kind}");
        assert_eq!(errors, "", "{kind}");
    }
}

/// Kernels before 5.17 do not say it.
#[test]
fn a_gpu_of_an_unknown_version_leaves_all_code_unless_the_user_declares_one() {
    let installed = ["gfx1030", "gfx1100"];
    let world = world(&installed);
    let text = "cpu_cores_count 0\nsimd_count 96\nfw_version 60\n";
    fs::write(properties(&world, 1), text).unwrap();
    let Some((out, errors)) = on(&world, &[0], &[]) else { return };
    assert_eq!((bundles(&out), errors.as_str()), (vec![bundle(&installed, 0).as_str()], ""));
    let declared = [("HSA_OVERRIDE_GFX_VERSION", "10.3.0")];
    let Some((out, errors)) = on(&world, &[0], &declared) else { return };
    assert_eq!((bundles(&out), errors.as_str()), (vec![bundle(&["gfx1030"], 0).as_str()], ""));
}

/// The runtime may number GPUs in another way than the kernel.
#[test]
fn a_version_that_the_user_declares_for_one_node_is_added() {
    let world = world(&["gfx1030", "gfx1100", "gfx1103"]);
    for (number, for_all, targets) in [
        (1, None, &["gfx1030", "gfx1103"][..]),
        (0, None, &["gfx1030", "gfx1103"]),
        (1, Some("11.0.0"), &["gfx1030", "gfx1100"]),
        // There is no such node.
        (7, None, &["gfx1103"]),
    ] {
        let name = format!("HSA_OVERRIDE_GFX_VERSION_{number}");
        let mut declared = vec![(name.as_str(), "10.3.0")];
        declared.extend(for_all.map(|version| ("HSA_OVERRIDE_GFX_VERSION", version)));
        let Some((out, errors)) = on(&world, &[0, 110_003], &declared) else { return };
        assert_eq!(bundles(&out), [bundle(targets, 0)], "{declared:?}");
        assert_eq!(errors, "", "{declared:?}");
    }
}

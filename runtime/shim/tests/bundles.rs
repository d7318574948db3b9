//! The bundles that the HIP runtime gets, where the GPUs of the machine are unknown.

use std::collections::BTreeSet;
use std::fs;

use crate::archives::{Draft, code};
use crate::fixtures::{
    ONE_WRAPPER, RUNTIME, World, assert_one_line, assert_sound, bundle, bundle_of, bundles,
    contents, runtime, told, wrappers,
};

const OPEN: &str = "open - @/lib/x.so";

#[test]
fn a_bundle_has_the_code_objects_of_all_installed_archives() {
    let targets = ["gfx1030", "gfx1100", "gfx90a:xnack+", "gfx90a:xnack-", "gfx11-generic"];
    for make in [Draft::zstd, Draft::stored] {
        let world = World::new(&[]);
        for target in targets {
            make(&[target], &contents(target)).write(world.archive(target));
        }
        world.library("x.so", &[]);
        let (out, errors) = world.told(&[OPEN]);
        let (first, second) = (bundle(&targets, 0), bundle(&targets, 1));
        let expected = format!(
            "A register 0 bundle {first}\nA function 0\nA register 1 bundle {second}\n\
             A function 1\nA unregister 0\nA unregister 1\nA exit 2 bundles\n"
        );
        assert_eq!((out, errors), (expected, String::new()));
    }
}

/// An archive has all targets of its file name's processor.
#[test]
fn one_archive_has_targets_with_and_without_features() {
    let world = World::new(&[]);
    let targets = ["gfx90a:xnack+", "gfx90a:xnack-"];
    Draft::zstd(&targets, &contents("one")).write(world.archive("gfx90a"));
    world.library("x.so", &[ONE_WRAPPER]);
    let content = contents("one").remove(0);
    let expected = bundle_of(&targets.map(|target| (target, content.as_slice())));
    assert_eq!(bundles(&world.told(&[OPEN]).0), [expected]);
}

#[test]
fn the_index_is_the_low_half_of_its_field() {
    let world = World::new(&["gfx1100"]);
    world.library("x.so", &["-DWRAPPERS={HIPK, 1, marker, 1 | 7ull << 32}"]);
    assert_eq!(bundles(&world.told(&[OPEN]).0), [bundle(&["gfx1100"], 1)]);
}

/// Files that the pattern of the marker does not mean, in the same folder.
#[test]
fn other_files_are_no_archives_of_the_binary() {
    let world = World::new(&["gfx1100"]);
    let others = ["blas_gfx1030_x.kpack", "blas_gfx1030.kpack.old", "xblas_gfx1030.kpack"];
    for name in others.into_iter().chain(["blas_.kpack", "blas_readme.kpack", "fft_gfx1030.kpack"])
    {
        let path = world.path().join(".kpack").join(name);
        Draft::zstd(&["gfx1030"], &contents("gfx1030")).write(path);
    }
    fs::create_dir(world.archive("gfx1031")).unwrap();
    world.library("x.so", &[ONE_WRAPPER]);
    assert_eq!(bundles(&world.told(&[OPEN]).0), [bundle(&["gfx1100"], 0)]);
}

/// Some wrappers of a binary have no code for some targets.
#[test]
fn a_bundle_has_no_entry_for_a_row_that_is_missing() {
    let world = World::new(&["gfx1030"]);
    Draft::zstd(&["gfx1100"], &contents("gfx1100")[..1]).write(world.archive("gfx1100"));
    world.library("x.so", &[]);
    let expected = [bundle(&["gfx1030", "gfx1100"], 0), bundle(&["gfx1030"], 1)];
    assert_eq!(bundles(&world.told(&[OPEN]).0), expected);
}

#[test]
fn without_archives_the_bundle_is_empty_and_one_line_says_so() {
    let world = World::new(&[]);
    world.library("x.so", &[]);
    let (out, errors) = world.told(&[OPEN]);
    assert_eq!(bundles(&out), [bundle(&[], 0), bundle(&[], 1)]);
    assert!(out.ends_with("A unregister 1\nA exit 2 bundles\n"), "{out}");
    assert_one_line(&errors, &["x.so", ".kpack/blas_"]);
    let quiet = told(world.steps(&[OPEN]).env("ROCM_KPACK_QUIET", "1"));
    assert_eq!(quiet, (out, String::new()));
    // The folder is there, and has the archives of another library.
    let other = world.path().join(".kpack/fft_gfx1100.kpack");
    Draft::zstd(&["gfx1100"], &contents("gfx1100")).write(other);
    let (out, errors) = world.told(&[OPEN]);
    assert_eq!(bundles(&out), [bundle(&[], 0), bundle(&[], 1)]);
    assert_one_line(&errors, &[".kpack/blas_"]);
}

#[test]
fn environment_variables_decide_where_archives_are_sought() {
    let world = World::new(&["gfx1100", "gfx1030"]);
    let path = world.path().join("other.kpack");
    Draft::stored(&["gfx1100"], &contents("other")).write(&path);
    world.library("x.so", &[ONE_WRAPPER]);
    let (of_other, of_1030) = (contents("other").remove(0), contents("gfx1030").remove(0));
    let other = bundle_of(&[("gfx1100", &of_other)]);
    let before = bundle_of(&[("gfx1100", &of_other), ("gfx1030", &of_1030)]);
    let marked = bundle(&["gfx1100", "gfx1030"], 0);
    let path = path.to_str().unwrap();
    let list = format!(":/nowhere::{path}:");
    for (variables, expected) in [
        (&[("ROCM_KPACK_PATH", list.as_str())][..], &other),
        (&[("ROCM_KPACK_PATH", path), ("ROCM_KPACK_PATH_PREFIX", "/nowhere")], &other),
        (&[("ROCM_KPACK_PATH_PREFIX", list.as_str())], &before),
        (&[("ROCM_KPACK_PATH", "::"), ("ROCM_KPACK_PATH_PREFIX", path)], &before),
        (&[("ROCM_KPACK_PATH_PREFIX", "/nowhere")], &marked),
        (&[("ROCM_KPACK_DISABLE", "0")], &marked),
        (&[("ROCM_KPACK_DISABLE", "")], &marked),
        (&[("ROCM_KPACK_PATH", "/nowhere")], &bundle(&[], 0)),
        (&[("ROCM_KPACK_DISABLE", "1")], &bundle(&[], 0)),
    ] {
        let (out, _) = told(world.steps(&[OPEN]).envs(variables.iter().copied()));
        assert_eq!(bundles(&out), [expected.as_str()], "{variables:?}");
    }
}

/// Two paths of a marker lead to a target.
#[test]
fn the_first_archive_of_a_target_counts() {
    let world = World::new(&["gfx1100"]);
    let paths = ["../.kpack/new_@GFXARCH@.kpack", "../.kpack/blas_@GFXARCH@.kpack"];
    crate::archives::marker(world.path(), &paths);
    let new = world.path().join(".kpack/new_gfx1100.kpack");
    Draft::zstd(&["gfx1100"], &contents("new")).write(&new);
    world.library("x.so", &[ONE_WRAPPER]);
    let of_new = contents("new").remove(0);
    assert_eq!(bundles(&world.told(&[OPEN]).0), [bundle_of(&[("gfx1100", &of_new)])]);
    fs::remove_file(new).unwrap();
    let (out, errors) = world.told(&[OPEN]);
    assert_eq!((bundles(&out), errors.as_str()), (vec![bundle(&["gfx1100"], 0).as_str()], ""));
}

/// A library is found by its own folder, whatever path and working directory the program has.
#[test]
fn archives_are_sought_from_the_folder_of_the_file() {
    let world = World::new(&["gfx1100"]);
    world.library("x.so", &[ONE_WRAPPER]);
    for path in ["./x.so", "../lib/x.so"] {
        let step = format!("open - {path}");
        let mut command = world.steps(&[&step]);
        let (out, errors) = told(command.current_dir(world.path().join("lib")));
        assert_eq!(bundles(&out), [bundle(&["gfx1100"], 0)], "{path}: {errors}");
    }
}

/// HIP runtimes look for the table in the first 4096 bytes of a bundle.
#[test]
fn a_table_has_no_more_targets_than_runtimes_look_for() {
    let targets: Vec<String> = (0..100).map(|it| format!("gfx1100:feature{it:03}+")).collect();
    let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
    // Behind the head and the entry of the host.
    let room = 4096 - 32 - 24 - "host-x86_64-unknown-linux--".len();
    let most = room / (24 + "hipv4-amdgcn-amd-amdhsa--".len() + targets[0].len());
    let content = contents("one").remove(0);
    let all: Vec<_> = targets.iter().map(|target| (*target, content.as_slice())).collect();
    let all = bundle_of(&all);
    let all: BTreeSet<&str> = all.split(' ').collect();
    for make in [Draft::zstd, Draft::stored] {
        let world = World::new(&[]);
        make(&targets, &contents("one")[..1]).write(world.archive("gfx1100"));
        world.library("x.so", &[ONE_WRAPPER]);
        let (out, errors) = world.told(&[OPEN]);
        assert_sound(&out);
        let [bundle] = bundles(&out)[..] else { panic!("{out}") };
        let entries: BTreeSet<&str> = bundle.split(' ').collect();
        assert_eq!(entries.len(), 1 + most, "{bundle}");
        assert!(entries.is_subset(&all), "{bundle}");
        assert_one_line(&errors, &[]);
    }
}

#[test]
fn targets_of_one_code_object_share_its_place() {
    for make in [Draft::zstd, Draft::stored] {
        let world = World::new(&[]);
        let places = runtime(world.path(), "C", RUNTIME, &["-DPLACES"]);
        world.library_for("x.so", Some(&places), &[ONE_WRAPPER]);
        let both = contents("one");
        let mut draft = make(&["gfx1100", "gfx1101", "gfx1102"], &both);
        // The last target has the other code object.
        draft.rows.truncate(3);
        draft.rows[2].2 = 1.into();
        draft.rows[2].3 = both[1].len().into();
        draft.write(world.archive("gfx1100"));
        let (out, errors) = world.told(&[OPEN]);
        let [shared, other] = [both[0].as_slice(), both[1].as_slice()];
        let expected = bundle_of(&[("gfx1100", shared), ("gfx1101", shared), ("gfx1102", other)]);
        assert_eq!(bundles(&out), [format!("{expected} in 2 places")]);
        assert_eq!(errors, "");
        assert_sound(&out);
    }
}

/// HIP runtimes read headers in their place.
#[test]
fn stored_code_objects_that_are_not_aligned_are_copied() {
    let lengths = [30_016, 30_001, 29_999, 64];
    let contents: Vec<Vec<u8>> =
        lengths.into_iter().enumerate().map(|(seed, len)| code(seed as u32, len)).collect();
    let targets = ["gfx1100", "gfx1101"];
    let world = World::new(&[]);
    Draft::stored(&targets, &contents).write(world.archive("gfx1100"));
    world.library("x.so", &[&wrappers(contents.len())]);
    let (out, errors) = world.told(&[OPEN]);
    let expected =
        contents.iter().map(|content| bundle_of(&targets.map(|target| (target, &content[..]))));
    assert_eq!(bundles(&out), expected.collect::<Vec<String>>());
    assert_eq!(errors, "");
    assert_sound(&out);
}

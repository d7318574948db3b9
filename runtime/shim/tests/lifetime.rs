//! Libraries and programs that come and go: bundles, handles and memory.

use std::fs;
use std::path::Path;

use crate::archives::{Draft, marker};
use crate::fixtures::{
    ONE_WRAPPER, RUNTIME, SHIM, World, assert_sound, bundle, bundle_of, bundles, common, contents,
    plain, told,
};

/// Most KiB by which a process may grow while it loads and unloads a library of 120 KB of code 180 times.
const GROWTH: i64 = 4096;

#[test]
fn a_library_that_is_loaded_again_and_again_takes_no_more_memory() {
    let targets = ["gfx1030", "gfx1100"];
    let world = World::new(&targets);
    world.library("x.so", &[]);
    world.library("y.so", &[]);
    let repeat = "repeat 200 @/lib/x.so";
    // With the library and the runtime unloaded each time, and without.
    for steps in [&[repeat][..], &["open - @/lib/y.so", repeat]] {
        let (out, errors) = world.told(steps);
        let bundles = bundles(&out);
        assert_eq!(bundles.len(), 400 + 2 * (steps.len() - 1), "{errors}");
        let expected = [bundle(&targets, 0), bundle(&targets, 1)];
        assert!(bundles.chunks(2).all(|pair| pair == expected), "{out}");
        assert_eq!(out.matches("A unregister ").count(), bundles.len());
        let grew = out.lines().find_map(|line| line.strip_prefix("grew ")).unwrap();
        assert!(grew.parse::<i64>().unwrap() < GROWTH, "{grew} KiB");
        assert_sound(&out);
    }
}

#[test]
fn an_archive_that_is_replaced_changes_no_bundle() {
    for make in [Draft::zstd, Draft::stored] {
        let world = World::new(&[]);
        make(&["gfx1100"], &contents("gfx1100")).write(world.archive("gfx1100"));
        make(&["gfx1100"], &contents("new")).write(world.path().join("new"));
        world.library("x.so", &[ONE_WRAPPER]);
        world.library("y.so", &[ONE_WRAPPER]);
        let (open, replace) = ("open - @/lib/x.so", "run mv @/new @/.kpack/blas_gfx1100.kpack");
        let (out, errors) = world.told(&[open, "close 0", replace, open, "open - @/lib/y.so"]);
        let content = contents("new").remove(0);
        let (old, new) = (bundle(&["gfx1100"], 0), bundle_of(&[("gfx1100", &content)]));
        let [first, second, of_other] = bundles(&out)[..] else { panic!("{out}") };
        assert_eq!([first, of_other], [old.as_str(), new.as_str()]);
        assert!((second == old || second == new) && errors.is_empty(), "{out}{errors}");
        assert_sound(&out);
    }
}

/// A folder with `x.so` and `y.so`, each with archives of its own. If `is_needed`, `y.so` needs the other one.
fn two_libraries(is_needed: bool) -> World {
    let world = World::new(&["gfx1100"]);
    let needed = world.library("x.so", &[ONE_WRAPPER]);
    marker(world.path(), &["../.kpack/fft_@GFXARCH@.kpack"]);
    let archive = world.path().join(".kpack/fft_gfx1100.kpack");
    Draft::zstd(&["gfx1100"], &contents("fft")).write(archive);
    let needs = [needed.to_str().unwrap(), "-Wl,-rpath,$ORIGIN"];
    let options = if is_needed { &needs[..] } else { &[] };
    world.library("y.so", &[&[ONE_WRAPPER][..], options].concat());
    world
}

/// The bundles of both libraries.
fn of_both() -> [String; 2] {
    let content = contents("fft").remove(0);
    [bundle(&["gfx1100"], 0), bundle_of(&[("gfx1100", &content)])]
}

#[test]
fn libraries_are_loaded_and_unloaded_in_any_order() {
    let world = two_libraries(false);
    let [x, y] = of_both();
    let (first, second) = ("open - @/lib/x.so", "open - @/lib/y.so");
    let (out, errors) = world.told(&[first, second, "close 0", first, "close 1", second]);
    let expected = format!(
        "A register 0 bundle {x}\nA function 0\nA register 1 bundle {y}\nA function 1\n\
         A unregister 0\nA register 2 bundle {x}\nA function 2\n\
         A unregister 1\nA register 3 bundle {y}\nA function 3\n\
         A unregister 3\nA unregister 2\nA exit 4 bundles\n"
    );
    assert_eq!((out, errors), (expected, String::new()));
}

/// The loader initialises what a library needs first.
#[test]
fn a_library_registers_after_those_that_it_needs() {
    let world = two_libraries(true);
    let [x, y] = of_both();
    let (out, errors) = world.told(&["open - @/lib/y.so", "close 0"]);
    let calls: Vec<&str> = out.lines().collect();
    let of_x = format!("A register 0 bundle {x}");
    let of_y = format!("A register 1 bundle {y}");
    assert_eq!(calls[..4], [of_x.as_str(), "A function 0", of_y.as_str(), "A function 1"]);
    assert!(calls[4..6] == ["A unregister 1", "A unregister 0"] && errors.is_empty(), "{out}");
    assert_sound(&out);
}

#[test]
fn a_program_registers_beside_its_libraries() {
    let world = two_libraries(false);
    let [x, y] = of_both();
    fs::create_dir_all(world.path().join("bin")).unwrap();
    let library = world.path().join("lib/x.so");
    let rpath = format!("-Wl,-rpath,{}", library.parent().unwrap().display());
    let options = [ONE_WRAPPER, "-DPROGRAM", library.to_str().unwrap(), rpath.as_str()];
    let runtime = common().join(RUNTIME);
    let program = world.link("bin/program", &common().join(SHIM), Some(&runtime), &options);
    let expected = format!(
        "A register 0 bundle {x}\nA function 0\nA register 1 bundle {y}\nA function 1\n\
         A unregister 1\nA unregister 0\nA exit 2 bundles\n"
    );
    assert_eq!(told(&mut plain(&program)), (expected.clone(), String::new()));
    // The program's name is not its path.
    let path = format!("{}:{}", world.path().join("bin").display(), std::env::var("PATH").unwrap());
    let mut command = plain(Path::new("program"));
    let by_name = told(command.env("PATH", path).current_dir("/"));
    assert_eq!(by_name, (expected, String::new()));
}

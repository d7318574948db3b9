//! Threads, children, and the memory of processes.

use std::fs;
use std::process::Command;

use crate::archives::{Draft, code, marker};
use crate::fixtures::{
    ONE_WRAPPER, World, assert_sound, bundle, bundle_of, bundles, cc, contents, grew, succeed,
    told, wrappers,
};

/// Threads load libraries while others register wrappers, with the loader's lock and without.
#[test]
fn threads_load_libraries_and_register_at_once() {
    let world = World::new(&["gfx1100"]);
    let library = world.library("x.so", &[ONE_WRAPPER]);
    let mut step = "threads 48".to_owned();
    for number in 0..6 {
        let name = format!("x{number}.so");
        fs::copy(&library, world.path().join("lib").join(&name)).unwrap();
        step = format!("{step} @/lib/{name}");
    }
    let (out, errors) = world.told(&[&step]);
    assert!(out.lines().any(|line| line == "0 faults") && errors.is_empty(), "{out}{errors}");
    let (bundles, expected) = (bundles(&out), bundle(&["gfx1100"], 0));
    // Each thread loads its library once, and again every 8 rounds.
    assert_eq!(bundles.len(), 6 * (48 + 1 + 6));
    assert!(bundles.iter().all(|bundle| *bundle == expected), "{out}");
    assert_sound(&out);
}

#[test]
fn a_child_loads_libraries_while_its_parent_registers() {
    let world = World::new(&["gfx1100"]);
    world.library("x.so", &[ONE_WRAPPER]);
    marker(world.path(), &["../.kpack/fft_@GFXARCH@.kpack"]);
    let archive = world.path().join(".kpack/fft_gfx1100.kpack");
    Draft::zstd(&["gfx1100"], &contents("fft")).write(archive);
    world.library("y.so", &[ONE_WRAPPER]);
    let (out, errors) = world.told(&["forks 40 @/lib/x.so @/lib/y.so"]);
    assert!(out.lines().any(|line| line == "0 bad children") && errors.is_empty(), "{errors}");
    let content = contents("fft").remove(0);
    let (of_parent, of_child) = (bundle(&["gfx1100"], 0), bundle_of(&[("gfx1100", &content)]));
    let bundles = bundles(&out);
    // One at the start and one more of each child.
    assert_eq!(bundles.iter().filter(|bundle| **bundle == of_child).count(), 80);
    assert!(bundles.iter().all(|bundle| *bundle == of_child || *bundle == of_parent));
    assert_sound(&out);
}

/// Rows that are stored as they are take memory of the page cache alone.
#[test]
fn code_that_is_not_compressed_takes_no_private_memory() {
    let world = World::new(&[]);
    let content = code(1, 1 << 20).repeat(64);
    Draft::stored(&["gfx1100"], &[content]).write(world.archive("gfx1100"));
    world.library("x.so", &[ONE_WRAPPER]);
    let (out, errors) = world.told(&["private", "open - @/lib/x.so", "private"]);
    assert!(out.contains(" gfx1100=67108864:") && errors.is_empty(), "{out}{errors}");
    assert!(grew(&out, "private") < 512, "{out}");
    assert_sound(&out);
}

/// Each process has a limit of mappings, 65530 by default.
#[test]
fn many_wrappers_take_few_mappings() {
    const COUNT: usize = 2000;
    let world = World::new(&[]);
    let contents: Vec<Vec<u8>> = (0..COUNT as u32).map(|seed| code(seed, 64)).collect();
    for target in ["gfx1030", "gfx1100"] {
        Draft::stored(&[target], &contents).write(world.archive(target));
    }
    world.library("x.so", &[&wrappers(COUNT)]);
    let (out, errors) = world.told(&["maps", "open - @/lib/x.so", "maps"]);
    assert_eq!((bundles(&out).len(), errors.as_str()), (COUNT, ""));
    let more = grew(&out, "maps");
    assert!(more < 100, "{more}");
    assert_sound(&out);
}

/// As a daemon that closes all descriptors that it does not know.
#[test]
fn a_program_that_closes_all_descriptors_keeps_its_own() {
    let targets = ["gfx1030", "gfx1100"];
    for make in [Draft::zstd, Draft::stored] {
        let world = World::new(&[]);
        for target in targets {
            make(&[target], &contents(target)).write(world.archive(target));
        }
        world.library("x.so", &[ONE_WRAPPER]);
        world.library("y.so", &[ONE_WRAPPER]);
        for count in [0, 1, 16] {
            let (close, open) = (format!("daemon {count}"), "open - @/lib/x.so");
            let other = "open - @/lib/y.so";
            let steps = [open, close.as_str(), other, "files", "close 0", open, "files"];
            let (out, errors) = world.told(&steps);
            let expected = bundle(&targets, 0);
            assert_eq!(bundles(&out), [expected.as_str(); 3], "{count}: {errors}");
            let own = format!("{count} own files");
            assert_eq!(out.lines().filter(|line| *line == own).count(), 2, "{out}");
            assert_eq!(errors, "", "{count}");
            assert_sound(&out);
        }
    }
}

#[test]
fn an_allocator_that_asks_for_loaded_objects_does_not_block() {
    let world = World::new(&["gfx1100"]);
    let allocator = world.path().join("allocator.so");
    succeed(cc("allocator", &allocator).args(["-shared", "-fPIC", "-lpthread"]));
    let library = world.library("x.so", &[ONE_WRAPPER]);
    let mut step = "threads 200".to_owned();
    for number in 0..4 {
        let name = format!("x{number}.so");
        fs::copy(&library, world.path().join("lib").join(&name)).unwrap();
        step = format!("{step} @/lib/{name}");
    }
    let mut command = world.steps(&["alarm 10", &step]);
    let (out, errors) = told(command.env("LD_PRELOAD", &allocator));
    assert!(out.lines().any(|line| line == "0 faults") && errors.is_empty(), "{out}{errors}");
    assert_sound(&out);
}

#[test]
fn a_thread_with_a_small_stack_loads_a_library() {
    for make in [Draft::zstd, Draft::stored] {
        let world = World::new(&[]);
        make(&["gfx1100"], &contents("gfx1100")).write(world.archive("gfx1100"));
        world.library("x.so", &[ONE_WRAPPER]);
        let (out, errors) = world.told(&["stack 96 @/lib/x.so"]);
        assert_eq!(bundles(&out), [bundle(&["gfx1100"], 0)], "{errors}");
        assert_sound(&out);
    }
}

/// Reads of uninitialised or freed memory.
#[test]
fn valgrind_finds_nothing() {
    let world = World::new(&["gfx1030", "gfx1100"]);
    fs::write(world.archive("gfx90a"), b"no archive at all").unwrap();
    world.library("x.so", &[]);
    let open = "open - @/lib/x.so";
    let inner = world.steps(&[open, "close 0", open]);
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["-q", "--error-exitcode=9", "--tool=memcheck"]);
    valgrind.arg(inner.get_program()).args(inner.get_args());
    let output = match valgrind.output() {
        Ok(output) => output,
        Err(error) => {
            assert!(std::env::var_os("ROCKPACK_INTEROP").is_none(), "valgrind: {error}");
            eprintln!("skipped: needs valgrind");
            return;
        }
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

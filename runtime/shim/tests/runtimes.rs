//! Which HIP runtime gets the wrappers: the one that would get them without the shim.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::fixtures::{
    ONE_WRAPPER, RUNTIME, SHIM, World, assert_one_line, assert_sound, bundle, bundles, common,
    plain, runtime, shim, succeed, told, versions,
};

/// The runtimes and their calls, without those at the end of the process.
fn calls(out: &str) -> Vec<String> {
    let lines = out.lines().filter(|line| !line.contains(" exit "));
    lines.map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect()
}

/// Calls for libraries of one wrapper with these runtimes, which are unloaded in the reverse order.
fn all_calls(runtimes: &[&str]) -> Vec<String> {
    let start =
        runtimes.iter().flat_map(|name| [format!("{name} register"), format!("{name} function")]);
    let end = runtimes.iter().rev().map(|name| format!("{name} unregister"));
    start.chain(end).collect()
}

/// A folder with an archive, a library `x.so` for the runtime `A`, and a runtime `B` of another soname.
fn two_runtimes() -> (World, PathBuf) {
    let world = World::new(&["gfx1100"]);
    world.library("x.so", &[ONE_WRAPPER]);
    let other = runtime(world.path(), "B", "libamdhip64.so.6", &[&versions()]);
    (world, other)
}

/// ROCm 4.1 and older have no symbol versions.
#[test]
fn runtimes_with_and_without_symbol_versions_are_found() {
    let with = versions();
    for (linked, used) in [(true, true), (true, false), (false, true), (false, false)] {
        let world = World::new(&["gfx1100"]);
        let make = |has_versions: bool| {
            let options = if has_versions { vec![with.as_str()] } else { Vec::new() };
            runtime(world.path(), "C", RUNTIME, &options)
        };
        let path = make(linked);
        world.library_for("x.so", Some(&path), &[ONE_WRAPPER]);
        world.library_for("y.so", Some(&path), &[ONE_WRAPPER, "-DONLY_WRAPPERS"]);
        make(used);
        for (library, expected) in [("x", all_calls(&["C"])), ("y", vec![])] {
            let (out, _) = world.told(&[&format!("open - @/lib/{library}.so")]);
            assert_eq!(bundles(&out), [bundle(&["gfx1100"], 0)], "{linked} {used}: {out}");
            assert!(expected.is_empty() || calls(&out) == expected, "{linked} {used}: {out}");
            assert_sound(&out);
        }
    }
}

#[test]
fn each_library_registers_with_its_own_runtime() {
    let (world, other) = two_runtimes();
    for option in ["-O1", "-fno-plt", "-DONLY_WRAPPERS"] {
        world.library_for("y.so", Some(&other), &[ONE_WRAPPER, option]);
        let (out, errors) = world.told(&["open - @/lib/x.so", "open - @/lib/y.so"]);
        let mut expected = all_calls(&["A", "B"]);
        expected.retain(|call| option != "-DONLY_WRAPPERS" || call != "B function");
        assert_eq!((calls(&out), errors.as_str()), (expected, ""), "{option}");
        assert_sound(&out);
    }
}

/// The loader binds imports to a runtime of the global scope first.
#[test]
fn a_runtime_of_the_global_scope_comes_first() {
    let (world, other) = two_runtimes();
    for option in ["-O1", "-DONLY_WRAPPERS"] {
        world.library_for("y.so", Some(&other), &[ONE_WRAPPER, option]);
        let (out, _) = world.told(&["open g @/lib/x.so", "open - @/lib/y.so"]);
        let mut expected = all_calls(&["A", "A"]);
        if option == "-DONLY_WRAPPERS" {
            expected.remove(3);
        }
        assert_eq!(calls(&out), expected, "{option}");
        assert_sound(&out);
    }
}

#[test]
fn a_library_that_is_bound_to_its_own_runtime_registers_there() {
    let (world, other) = two_runtimes();
    world.library_for("y.so", Some(&other), &[ONE_WRAPPER]);
    let (out, _) = world.told(&["open g @/lib/x.so", "open d @/lib/y.so"]);
    assert_eq!(calls(&out), all_calls(&["A", "B"]));
    assert_sound(&out);
}

#[test]
fn imports_that_are_not_bound_yet_do_not_matter() {
    let (world, other) = two_runtimes();
    world.library_for("y.so", Some(&other), &[ONE_WRAPPER]);
    let (out, _) = world.told(&["open l @/lib/x.so", "open l @/lib/y.so"]);
    assert_eq!(calls(&out), all_calls(&["A", "B"]));
    assert_sound(&out);
}

#[test]
fn a_library_that_needs_no_runtime_registers_with_that_of_the_process() {
    let world = World::new(&["gfx1100"]);
    let a = format!("open g {}", common().join(RUNTIME).display());
    for option in ["-O1", "-DONLY_WRAPPERS"] {
        world.library_for("x.so", None, &[ONE_WRAPPER, option]);
        let (out, _) = world.told(&[&a, "open - @/lib/x.so"]);
        assert_eq!(bundles(&out), [bundle(&["gfx1100"], 0)], "{option}: {out}");
        assert_sound(&out);
    }
}

/// As a library of ROCm that needs another one, which needs the runtime.
#[test]
fn a_runtime_that_only_a_dependency_needs_is_found() {
    let world = World::new(&["gfx1100"]);
    let needed = world.library("x.so", &[ONE_WRAPPER]);
    let rpath = format!("-Wl,-rpath,{}", needed.parent().unwrap().display());
    let options = [ONE_WRAPPER, "-DONLY_WRAPPERS", needed.to_str().unwrap(), rpath.as_str()];
    world.library_for("y.so", None, &options);
    let (out, _) = world.told(&["open - @/lib/y.so"]);
    let expected = ["A register", "A function", "A register", "A unregister", "A unregister"];
    assert_eq!(calls(&out), expected);
    assert_sound(&out);
}

#[test]
fn a_process_without_a_runtime_is_told_so() {
    let world = World::new(&["gfx1100"]);
    world.library_for("x.so", None, &[ONE_WRAPPER, "-DONLY_WRAPPERS"]);
    let (out, errors) = world.told(&["open - @/lib/x.so", "close 0"]);
    assert_eq!(out, "");
    assert_one_line(&errors, &[]);
}

/// A program whose tools are loaded in front of its libraries.
#[test]
fn a_preloaded_library_sees_what_the_runtime_gets() {
    let world = World::new(&["gfx1100"]);
    let mut options = vec!["-DFORWARD".to_owned()];
    for _ in 0..2 {
        let borrowed: Vec<&str> = options.iter().map(String::as_str).collect();
        let recorder = runtime(world.path(), "P", "recorder.so", &borrowed);
        for binding in ["-Wl,-z,lazy", "-Wl,-z,now"] {
            let program = program(&world, &[ONE_WRAPPER, binding]);
            let (out, _) = told(plain(&program).env("LD_PRELOAD", &recorder));
            let pairs = ["register", "function", "unregister"]
                .map(|call| [format!("P {call}"), format!("A {call}")]);
            assert_eq!(calls(&out), pairs.concat(), "{options:?} {binding}");
            assert_eq!(bundles(&out), [bundle(&["gfx1100"], 0), bundle(&["gfx1100"], 0)]);
            assert_sound(&out);
        }
        options.push(versions());
    }
}

/// A program with wrappers, in a folder beside that of the archives.
fn program(world: &World, options: &[&str]) -> PathBuf {
    fs::create_dir_all(world.path().join("bin")).unwrap();
    let runtime = common().join(RUNTIME);
    let options = [&["-DPROGRAM"][..], options].concat();
    world.link("bin/program", &common().join(SHIM), Some(&runtime), &options)
}

/// Wheels bring their own copies, which the names of needed libraries lead to.
#[test]
fn two_copies_of_the_library_do_not_disturb_each_other() {
    let world = World::new(&["gfx1100"]);
    for (copy, library) in [("one", "lib/x.so"), ("two", "lib/y.so")] {
        let folder = world.path().join(copy);
        fs::create_dir(&folder).unwrap();
        fs::copy(shim(), folder.join(SHIM)).unwrap();
        let stub = stub(&world, &format!("$ORIGIN/../{copy}/{SHIM}"));
        let runtime = common().join(RUNTIME);
        world.link(library, &stub, Some(&runtime), &[ONE_WRAPPER, "-shared", "-fPIC"]);
    }
    let open = ["open - @/lib/x.so", "open - @/lib/y.so", "close 0", "open - @/lib/x.so"];
    let (out, errors) = world.told(&open);
    let calls = calls(&out);
    assert_eq!(calls.iter().filter(|call| *call == "A register").count(), 3, "{out}");
    assert_eq!(calls.iter().filter(|call| *call == "A unregister").count(), 3, "{out}");
    let expected = bundle(&["gfx1100"], 0);
    assert!(bundles(&out).iter().all(|got| *got == expected) && errors.is_empty(), "{out}{errors}");
    assert_sound(&out);
}

/// A library to link with, in place of the shim of this name.
fn stub(world: &World, soname: &str) -> PathBuf {
    let functions = "void rocm_kpack_register_fat_binary(void) {}\n\
                     void rocm_kpack_unregister_fat_binary(void) {}\n";
    compiled(world, "stub.so", functions, &[&format!("-Wl,-soname,{soname}")])
}

/// A library of a C text.
fn compiled(world: &World, name: &str, text: &str, options: &[&str]) -> PathBuf {
    let (source, path) = (world.path().join(format!("{name}.c")), world.path().join(name));
    fs::write(&source, text).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-Wl,--no-as-needed", "-o"]).arg(&path).arg(&source);
    succeed(cc.args(options));
    path
}

/// The loader searches what was loaded together, in the order in which libraries need each other.
#[test]
fn a_runtime_that_another_library_brings_along_is_found_by_what_is_bound() {
    let (world, other) = two_runtimes();
    let library = world.library_for("y.so", Some(&other), &[ONE_WRAPPER, "-Wl,-z,now"]);
    let a = common().join(RUNTIME);
    let folders = [&a, &library].map(|path| path.parent().unwrap().display().to_string());
    let rpath = format!("-Wl,-rpath,{}", folders.join(":"));
    let needed = [a.to_str().unwrap(), library.to_str().unwrap(), rpath.as_str()];
    compiled(&world, "r.so", "", &needed);
    let (out, errors) = world.told(&["open - @/r.so"]);
    assert_eq!((calls(&out), errors.as_str()), (all_calls(&["A"]), ""));
    assert_sound(&out);
    // Without the other library it registers with its own.
    let (out, _) = world.told(&["open - @/lib/y.so"]);
    assert_eq!(calls(&out), all_calls(&["B"]));
}

/// A tool that sees registrations, and passes them on to the runtime that it finds.
const REGISTERS_ALONE: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
void **__hipRegisterFatBinary(const void *wrapper) {
  void *runtime = dlopen("libamdhip64.so.7", RTLD_NOLOAD | RTLD_LAZY);
  if (!runtime || write(1, "P register\n", 11) != 11) return 0;
  return ((void **(*)(const void *))dlsym(runtime, "__hipRegisterFatBinary"))(wrapper);
}
"#;

#[test]
fn each_function_comes_from_the_first_library_that_has_it() {
    let world = World::new(&["gfx1100"]);
    let tool = compiled(&world, "tool.so", REGISTERS_ALONE, &["-ldl"]);
    for option in ["-Wl,-z,lazy", "-Wl,-z,now", "-DONLY_WRAPPERS"] {
        world.library("x.so", &[ONE_WRAPPER, option]);
        let mut command = world.steps(&["open - @/lib/x.so", "close 0"]);
        let (out, errors) = told(command.env("LD_PRELOAD", &tool));
        let mut expected = all_calls(&["A"]);
        expected.insert(0, "P register".to_owned());
        expected.retain(|call| option != "-DONLY_WRAPPERS" || call != "A function");
        assert_eq!((calls(&out), errors.as_str()), (expected, ""), "{option}");
        assert_sound(&out);
    }
}

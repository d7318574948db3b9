//! The library file as linkers and loaders see it.

use std::process::Command;

use crate::fixtures::{SHIM, shim, succeed};

#[test]
fn the_library_exports_two_functions_and_nothing_else() {
    let symbols = succeed(Command::new("nm").args(["-D", "--defined-only"]).arg(shim()));
    let names: Vec<&str> = symbols.lines().map(|line| line.rsplit(' ').next().unwrap()).collect();
    assert_eq!(names, ["rocm_kpack_register_fat_binary", "rocm_kpack_unregister_fat_binary"]);
}

/// It needs no HIP runtime: the one of the process is found.
#[test]
fn it_has_the_soname_and_needs_the_c_library_alone() {
    let dynamic = succeed(Command::new("readelf").args(["-Wd"]).arg(shim()));
    assert!(dynamic.contains(&format!("Library soname: [{SHIM}]")), "{dynamic}");
    for line in dynamic.lines().filter(|line| line.contains("(NEEDED)")) {
        let allowed = ["libc.so.6", "libdl.so.2", "libgcc_s.so.1", "ld-linux"];
        assert!(allowed.iter().any(|name| line.contains(name)), "{line}");
    }
    assert!(!dynamic.contains("RPATH") && !dynamic.contains("RUNPATH"));
}

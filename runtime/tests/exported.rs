//! The library file as linkers and loaders see it.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::program::{by_tool, library, source, succeed};

/// The exported functions: all functions of the header, and no others.
const EXPORTED: [&str; 15] = [
    "kpack_cache_create",
    "kpack_cache_destroy",
    "kpack_close",
    "kpack_discover_binary_path",
    "kpack_enumerate_architectures",
    "kpack_free_code_object",
    "kpack_free_kernel",
    "kpack_get_architecture",
    "kpack_get_architecture_count",
    "kpack_get_binary",
    "kpack_get_binary_count",
    "kpack_get_kernel",
    "kpack_last_error",
    "kpack_load_code_object",
    "kpack_open",
];

#[test]
fn the_library_exports_the_functions_of_its_header_and_nothing_else() {
    let symbols = succeed(Command::new("nm").args(["-D", "--defined-only"]).arg(library()));
    let there: Vec<&str> = symbols.lines().map(|line| line.rsplit(' ').next().unwrap()).collect();
    assert_eq!(there, EXPORTED);
    let header = std::fs::read_to_string(source("include/rocm_kpack/kpack.h")).unwrap();
    let declared = header.split("KPACK_API ").skip(1).map(|text| {
        let name = text.split('(').next().unwrap();
        name.rsplit([' ', '*']).next().unwrap()
    });
    assert_eq!(declared.collect::<BTreeSet<_>>(), EXPORTED.into());
}

#[test]
fn it_has_the_soname_and_needs_the_c_library_alone() {
    let dynamic = succeed(Command::new("readelf").args(["-Wd"]).arg(library()));
    assert!(dynamic.contains("Library soname: [librocm_kpack.so.0]"), "{dynamic}");
    let needed = dynamic.lines().filter(|line| line.contains("(NEEDED)"));
    for line in needed {
        let allowed = ["libc.so.6", "libgcc_s.so.1", "ld-linux"];
        assert!(allowed.iter().any(|name| line.contains(name)), "{line}");
    }
    assert!(!dynamic.contains("RPATH") && !dynamic.contains("RUNPATH"));
}

/// Functions of glibc 2.28 that newer versions of glibc give a newer symbol version. Linked against 2.28, as
/// `docs/runtime.md` says, the library loads there. `gettid` is weak and optional.
const IN_GLIBC_2_28: [&str; 8] = [
    "dlsym",
    "fstat64",
    "gettid",
    "pthread_key_create",
    "pthread_key_delete",
    "pthread_setspecific",
    "pthread_sigmask",
    "stat64",
];

#[test]
fn it_needs_no_function_that_glibc_2_28_lacks() {
    let symbols = succeed(Command::new("nm").args(["-D", "--undefined-only"]).arg(library()));
    let mut versions = 0;
    for line in symbols.lines() {
        let name = line.rsplit(' ').next().unwrap();
        let Some((name, version)) = name.split_once("@GLIBC_2.") else { continue };
        let version: u32 = version.split('.').next().unwrap().parse().unwrap();
        assert!(version <= 28 || IN_GLIBC_2_28.contains(&name), "{name} is of glibc 2.{version}");
        versions += 1;
    }
    assert!(versions > 20, "{symbols}");
}

#[test]
fn it_is_small_once_it_is_stripped() {
    let folder = tempfile::tempdir().unwrap();
    let stripped = folder.path().join("x.so");
    succeed(Command::new("strip").arg("-o").arg(&stripped).arg(library()));
    let size = std::fs::metadata(&stripped).unwrap().len();
    // The size of an unoptimised build, as in tests. A release has half of that.
    assert!(size <= 5 << 18, "{size} bytes");
}

#[test]
fn c11_and_cxx_compile_the_header_without_warnings() {
    let folder = tempfile::tempdir().unwrap();
    for (compiler, standard, name) in [("cc", "c11", "x.c"), ("c++", "c++11", "x.cc")] {
        let file = folder.path().join(name);
        let text = "#include <rocm_kpack/kpack.h>\nkpack_cache_t cache;\n\
                    kpack_error_t call(void) { return kpack_cache_create(&cache); }\n";
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new(compiler);
        command.arg(format!("-std={standard}")).args(["-pedantic", "-Wall", "-Wextra", "-Werror"]);
        succeed(command.args(["-fsyntax-only", "-I"]).arg(source("include")).arg(&file));
    }
}

/// CMake finds the files of `install`.
#[test]
fn cmake_finds_an_installed_library() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("rocm");
    succeed(Command::new(source("install")).arg(library()).arg(&prefix));
    let text = "cmake_minimum_required(VERSION 3.10)\nproject(x NONE)\n\
                find_package(rocm-kpack 0.1 REQUIRED)\n\
                get_target_property(file rocm::rocm_kpack IMPORTED_LOCATION)\n\
                if(NOT EXISTS ${file})\nmessage(FATAL_ERROR ${file})\nendif()\n\
                find_package(rocm-kpack 1.0 QUIET)\n\
                if(rocm-kpack_FOUND)\nmessage(FATAL_ERROR \"1.0\")\nendif()\n";
    std::fs::write(folder.path().join("CMakeLists.txt"), text).unwrap();
    let mut cmake = Command::new("cmake");
    cmake.arg("-S").arg(folder.path()).arg("-B").arg(folder.path().join("build"));
    cmake.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display()));
    let Some(output) = by_tool(&mut cmake) else { return };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A program linked by pkg-config runs with the files of `install`.
#[test]
fn an_installed_library_is_found_by_pkg_config_and_linked_by_its_soname() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("rocm");
    succeed(Command::new(source("install")).arg(library()).arg(&prefix));
    let (file, program) = (folder.path().join("x.c"), folder.path().join("x"));
    let text = "#include <rocm_kpack/kpack.h>\nint main(void) { kpack_cache_t cache;\n\
                return kpack_cache_create(&cache) + kpack_open(\"/nowhere\", 0); }\n";
    std::fs::write(&file, text).unwrap();
    let flags = [pkg_config(&prefix, "--cflags"), pkg_config(&prefix, "--libs")].join(" ");
    let mut cc = Command::new("cc");
    cc.arg(&file).args(flags.split_whitespace()).arg("-o").arg(&program);
    succeed(&mut cc);
    let needed = succeed(Command::new("readelf").arg("-d").arg(&program));
    assert!(needed.contains("[librocm_kpack.so.0]"), "{needed}");
    let mut run = Command::new(&program);
    let status = run.env("LD_LIBRARY_PATH", prefix.join("lib")).status().unwrap();
    assert_eq!(status.code(), Some(1));
}

fn pkg_config(prefix: &Path, option: &str) -> String {
    let mut command = Command::new("pkg-config");
    command.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    succeed(command.args([option, "rocm-kpack"])).trim().to_owned()
}

//! Packages of a CMake project, `examples/cmake`, made by the module in rockpack's own package.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use support::example::{contents, names};
use support::program::{repository, rockpack, scratch};
use support::{queries, tools};

use crate::install::own;
use crate::install::system::System;

/// The files of the set.
const SET: [&str; 15] = [
    "acme-common-1.2.0-1.noarch.rpm",
    "acme-common_1.2.0-1_all.deb",
    "acme-exsaxpy-1.2.0-1.x86_64.rpm",
    "acme-exsaxpy-all-1.2.0-1.x86_64.rpm",
    "acme-exsaxpy-all_1.2.0-1_amd64.deb",
    "acme-exsaxpy-dev_1.2.0-1_all.deb",
    "acme-exsaxpy-devel-1.2.0-1.noarch.rpm",
    "acme-exsaxpy-gfx110x-1.2.0-1.x86_64.rpm",
    "acme-exsaxpy-gfx110x_1.2.0-1_amd64.deb",
    "acme-exsaxpy-gfx94x-1.2.0-1.x86_64.rpm",
    "acme-exsaxpy-gfx94x_1.2.0-1_amd64.deb",
    "acme-exsaxpy-tests-1.2.0-1.x86_64.rpm",
    "acme-exsaxpy-tests_1.2.0-1_amd64.deb",
    "acme-exsaxpy_1.2.0-1_amd64.deb",
    "packages.json",
];

/// Paths of packages in the install prefix.
const MEMBERS: [(&str, &str); 8] = [
    ("acme-exsaxpy-dev_1.2.0-1_all.deb", "include/exsaxpy/saxpy.h"),
    ("acme-exsaxpy-devel-1.2.0-1.noarch.rpm", "include/exsaxpy/saxpy.h"),
    ("acme-exsaxpy-dev_1.2.0-1_all.deb", "lib/libexsaxpy.so"),
    ("acme-exsaxpy-devel-1.2.0-1.noarch.rpm", "lib/cmake/exsaxpy/exsaxpyConfig.cmake"),
    ("acme-exsaxpy_1.2.0-1_amd64.deb", "lib/libexsaxpy.so.1"),
    ("acme-exsaxpy-tests-1.2.0-1.x86_64.rpm", "bin/exsaxpy-test"),
    ("acme-exsaxpy-gfx94x_1.2.0-1_amd64.deb", "lib/.kpack/exsaxpy_lib_gfx942.kpack"),
    ("acme-exsaxpy-gfx110x-1.2.0-1.x86_64.rpm", "lib/.kpack/exsaxpy_lib_gfx1100.kpack"),
];

fn need_tools() {
    tools::need(&["cmake", "cpack", "make", "git", "rpmbuild", "strip", "dpkg-deb"]);
    tools::need(&["clang++-19", "ld.lld-19", "clang-offload-bundler-19"]);
}

/// The prefix of rockpack's own package, unpacked.
fn prefix() -> &'static Path {
    static UNPACKED: OnceLock<PathBuf> = OnceLock::new();
    UNPACKED.get_or_init(|| {
        let folder = scratch("own-package");
        for deb in queries::packages(own::packages(), "deb") {
            tools::unpack(&deb, &folder);
        }
        folder.join("usr")
    })
}

/// The command that configures a project.
fn configure(source: &Path, build: &Path) -> Command {
    let mut cmake = Command::new("cmake");
    cmake.arg("-S").arg(source).arg("-B").arg(build);
    cmake.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix().display()));
    cmake.arg("-DCMAKE_CXX_COMPILER=clang++-19");
    cmake
}

/// The command that builds a target. The caller's `DESTDIR` is for other installations.
fn target(build: &Path, name: &str) -> Command {
    let mut cmake = Command::new("cmake");
    cmake.arg("--build").arg(build).args(["--target", name]);
    cmake.env("DESTDIR", build.join("elsewhere"));
    cmake
}

/// Builds the example and its packages, and returns its build folder.
fn build_example() -> PathBuf {
    let build = scratch("a build");
    tools::run(&mut configure(&repository("examples/cmake"), &build));
    tools::run(&mut target(&build, "packages"));
    build
}

/// The packages of the example, made once in a run.
fn example_set() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(build_example).join("packages")
}

/// A library's kernels for one group, its headers and its tests are installed with the library.
pub fn the_packages_of_a_cmake_project_are_installed(system: &dyn System) {
    need_tools();
    system.offer(&[&example_set()]);
    let dev = if system.format() == "deb" { "acme-exsaxpy-dev" } else { "acme-exsaxpy-devel" };
    let chosen = ["acme-exsaxpy-gfx110x", "acme-exsaxpy-tests", dev];
    tools::run(&mut system.install(&chosen));
    let all = ["acme-common", "acme-exsaxpy"].into_iter().chain(chosen).map(str::to_owned);
    assert_eq!(system.names(), all.collect::<BTreeSet<_>>());
    system.assert_whole();
    for path in ["lib/.kpack/exsaxpy_lib_gfx1100.kpack", "include/exsaxpy/saxpy.h"] {
        assert!(system.root().join("opt/acme-1.2").join(path).exists(), "{path}");
    }
    system.purge_all();
}

/// A target and CPack make the same set, which is that of another build folder, and of a second run.
#[test]
fn target_and_cpack_make_the_same_packages() {
    need_tools();
    tools::need(&["rpm2cpio", "cpio"]);
    let build = build_example();
    let out = build.join("packages");
    assert_eq!(names(&out), BTreeSet::from(SET.map(str::to_owned)));
    assert!(!build.join("elsewhere").exists());
    tools::run(rockpack().arg("verify").arg(&out));
    for (package, path) in MEMBERS {
        let root = build.join("unpacked").join(package);
        tools::unpack(&out.join(package), &root);
        assert!(fs::symlink_metadata(root.join("opt/acme-1.2").join(path)).is_ok(), "{package}");
    }

    let set = contents(&out);
    assert!(contents(&example_set()) == set, "the build folder changes the packages");
    fs::write(build.join("packages.stage/exsaxpy/exsaxpy/stage/lib/libstale.so.1"), "").unwrap();
    tools::run(&mut target(&build, "packages"));
    assert!(contents(&out) == set, "a second run changes the packages");

    let by_cpack = |out: &str, options: &[&str]| {
        let mut cpack = Command::new("cpack");
        tools::run(cpack.args(["-G", "External", "-B", out]).args(options).current_dir(&build));
        build.join(out)
    };
    let out = by_cpack("by cpack", &[]);
    for (name, bytes) in &set {
        assert!(fs::read(out.join(name)).unwrap() == *bytes, "{name} differs");
    }
    let out = by_cpack("monolithic", &["-D", "CPACK_MONOLITHIC_INSTALL=ON"]);
    assert!(SET.iter().all(|name| out.join(name).exists()), "{:?}", names(&out));
}

/// A project in `folder` with these arguments of `project` and `rockpack_add_packages`, and further lines.
fn write_project(folder: &Path, project: &str, packages: &str, lines: &str) {
    fs::create_dir_all(folder).unwrap();
    let text = format!(
        "cmake_minimum_required(VERSION 3.20)\nproject({project} LANGUAGES NONE)\n\
         find_package(rockpack REQUIRED)\nrockpack_add_packages({packages})\n{lines}\n"
    );
    fs::write(folder.join("CMakeLists.txt"), text).unwrap();
}

/// The output of a command in one line: CMake breaks messages.
fn told(command: &mut Command) -> String {
    tools::told(command).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn faults_of_a_cmake_project_are_named() {
    need_tools();
    let folder = scratch("faults");
    // A shell writes the file, so that no other test's child holds it open for writing.
    let old = folder.join("old");
    let script = "printf '#!/bin/sh\\necho rockpack 0.0.1\\n' >\"$0\" && chmod 755 \"$0\"";
    tools::run(Command::new("sh").args(["-c", script]).arg(&old));
    let too_old = format!("-DROCKPACK_EXECUTABLE={}", old.display());
    let missing = "-DROCKPACK_EXECUTABLE=/no/rockpack";
    let cases = [
        ("x", "p", "-Wno-dev", "rockpack_add_packages(p): no version"),
        ("x VERSION 1.0", "p COMPONENTS a", "-Wno-dev", "no component a is installed"),
        ("x VERSION 1.0", "p VERSION", "-Wno-dev", "without a value: VERSION"),
        ("x VERSION 1.0", "p NONSENSE", "-Wno-dev", "NONSENSE"),
        (
            "x VERSION 1.0",
            "p",
            too_old.as_str(),
            "old (rockpack 0.0.1). Install the package rockpack",
        ),
        ("x VERSION 1.0", "p", missing, "/no/rockpack (). Install the package rockpack"),
    ];
    for (number, (project, packages, option, fault)) in cases.into_iter().enumerate() {
        let source = folder.join(number.to_string());
        write_project(&source, project, packages, "");
        let said = told(configure(&source, &source.join("build")).arg(option));
        assert!(said.contains(fault) && !said.ends_with("status: 0"), "{fault}: {said}");
    }
}

#[test]
fn files_outside_of_the_prefix_are_named() {
    need_tools();
    let source = scratch("outside");
    let build = source.join("build");
    write_project(&source, "x VERSION 1.0", "p", "");
    tools::run(&mut configure(&source, &build));
    let said = told(&mut target(&build, "p"));
    assert!(said.contains("installs nothing below") && !said.ends_with("status: 0"), "{said}");

    let outside = "install(FILES CMakeLists.txt DESTINATION ${CMAKE_BINARY_DIR}/outside)";
    let inside = "install(FILES CMakeLists.txt DESTINATION share/x)";
    write_project(&source, "x VERSION 1.0", "p", &format!("{outside}\n{inside}"));
    let said = told(&mut target(&build, "p"));
    assert!(said.contains("are in no package;") && said.ends_with("status: 0"), "{said}");
    assert!(said.contains("build/outside/CMakeLists.txt") && !build.join("outside").exists());
    assert!(build.join("p/packages.json").exists());
}

/// The prefix is known, so nothing in it is taken for one.
#[test]
fn what_a_project_installs_stays_where_it_is() {
    need_tools();
    let source = scratch("places");
    let build = source.join("build");
    let places = ["hipx/lib", "usr/lib", "etc", "opt/rocm-x/lib"];
    let lines = places.map(|place| {
        format!("install(FILES CMakeLists.txt DESTINATION {place} COMPONENT {})\n", &place[..3])
    });
    let empty = "install(CODE \"\" COMPONENT none)";
    write_project(&source, "x VERSION 1.0", "p", &format!("{}{empty}", lines.concat()));
    tools::run(&mut configure(&source, &build));
    tools::run(&mut target(&build, "p"));
    let root = source.join("root");
    for deb in queries::packages(&build.join("p"), "deb") {
        tools::unpack(&deb, &root);
    }
    for place in places {
        let path = root.join("opt/rocm-1.0").join(place).join("CMakeLists.txt");
        assert!(path.is_file(), "{}", path.display());
    }
}

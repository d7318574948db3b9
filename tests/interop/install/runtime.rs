//! The runtime library with installed packages, called by stand-ins for the HIP runtime.

use std::fs;
use std::path::Path;
use std::process::Command;

use support::example::{GROUPS, PREFIX, kernels};
use support::program::{repository, scratch};
use support::runtime::{INSIDE, Line, Runtime, TOOLS, answers, found, missing, within};
use support::tools;

use crate::install::sets::Recipe;
use crate::install::system::System;

const LIBRARY: &str = "lib/libexblas.so.1";
const PROGRAMS: [&str; 2] = ["bin/exblas-bench", "libexec/exblas/exblas-tune"];

/// The number of wrappers requested: three loads of the library, which has two, and each program with one.
const WRAPPERS: usize = 3 * 2 + 2;

/// A device of the installed group.
const DEVICE: &str = "gfx1100";

/// Registers the wrappers of the installed library and programs, for each of `devices`.
fn use_all(runtime: &Runtime, devices: &str) -> Vec<Line> {
    let prefix = Path::new("/").join(PREFIX);
    let mut lines = runtime.load(&[prefix.join(LIBRARY)], devices);
    for program in PROGRAMS {
        lines.extend(runtime.run(&prefix.join(program), devices));
    }
    lines
}

/// A program that only knows the header, with the installed library's marker.
struct Caller<'a>(&'a Path);

impl<'a> Caller<'a> {
    fn of(root: &'a Path) -> Self {
        let place = root.join(INSIDE.trim_start_matches('/'));
        let mut cc = Command::new("gcc");
        cc.args(["-std=gnu11", "-O1", "-rdynamic", "-I"]).arg(repository("runtime/include"));
        cc.arg(repository("runtime/tests/program.c")).arg("-o").arg(place.join("program"));
        tools::run(cc.args(["-ldl", "-lpthread"]));
        let mut objcopy = Command::new("objcopy");
        objcopy.args(["-O", "binary", "--only-section=.rocm_kpack_ref"]);
        tools::run(objcopy.arg(root.join(PREFIX).join(LIBRARY)).arg(place.join("marker")));
        Self(root)
    }

    /// A job's report on the library's wrappers, from both streams.
    fn told(&self, job: &str, third: &str, devices: &[&str], variables: &[(&str, &str)]) -> String {
        let mut command = within(self.0, &Path::new(INSIDE).join("program"));
        command.arg(format!("{INSIDE}/librocm_kpack.so")).arg(job);
        command.arg(format!("{INSIDE}/marker")).arg(format!("/{PREFIX}/{LIBRARY}"));
        command.arg(third).args(devices).envs(variables.iter().copied());
        tools::told(&mut command)
    }

    /// The first line of the report when a device is loaded.
    fn first(&self, device: &str, variables: &[(&str, &str)]) -> String {
        let said = self.told("load", "1", &[device], variables);
        said.lines().next().unwrap().to_owned()
    }
}

/// Tries each variable, and a device without kernels.
fn variables_are_heeded(caller: &Caller<'_>, archive: &str, right: &str) {
    let later = format!("/nowhere:{archive}");
    assert_eq!(caller.first(DEVICE, &[("ROCM_KPACK_PATH", archive)]), right);
    assert_eq!(caller.first(DEVICE, &[("ROCM_KPACK_PATH_PREFIX", &later)]), right);
    assert!(caller.first(DEVICE, &[("ROCM_KPACK_PATH", "/nowhere")]).starts_with("13 "));
    assert!(!caller.first(DEVICE, &[("ROCM_KPACK_DISABLE", "1")]).starts_with("0 "));
    let said = caller.told("load", "1", &[DEVICE], &[("ROCM_KPACK_DEBUG", "1")]);
    assert!(said.contains(archive) && said.starts_with(right), "{said}");
    for (variables, is_told) in [(&[][..], true), (&[("ROCM_KPACK_QUIET", "1")], false)] {
        let told = caller.told("load", "1", &["gfx906"], variables);
        assert_eq!(told.contains("rocm-kpack: no archive has gfx906"), is_told, "{variables:?}");
    }
}

/// Every installed wrapper gets its code object for the group's GPUs; another GPU is skipped. The same holds
/// with threads, in child processes, and whatever happens to the archive.
pub fn the_runtime_library_loads_what_is_installed(system: &dyn System) {
    loads_what_is_installed(system, &Recipe::new("7.1.0"));
}

/// The same with archives whose code objects are not compressed.
pub fn the_runtime_library_loads_what_is_stored(system: &dyn System) {
    let keys = serde_json::json!({ "archive_level": "none" });
    loads_what_is_installed(system, &Recipe::new("7.1.0").keys(keys));
}

fn loads_what_is_installed(system: &dyn System, recipe: &Recipe) {
    tools::need(TOOLS);
    tools::need(&["objcopy"]);
    let set = recipe.build();
    system.offer(&[&set.out()]);
    tools::run(&mut system.install(&[&kernels(&GROUPS[0])]));
    let (root, prefix) = (system.root(), system.root().join(PREFIX));
    let binaries: Vec<_> =
        PROGRAMS.iter().chain([&LIBRARY]).map(|path| prefix.join(path)).collect();
    let runtime = Runtime::build(&scratch("stand-in"), &binaries).with_kpack_library().inside(root);
    for device in GROUPS[0].archs {
        let lines = use_all(&runtime, device);
        assert!(missing(&lines).is_empty(), "{device}: {lines:?}");
        assert_eq!((found(&lines).len(), answers(&lines, 0)), (WRAPPERS, WRAPPERS), "{lines:?}");
    }
    let both = use_all(&runtime, &format!("{DEVICE},gfx906"));
    assert_eq!((answers(&both, 0), answers(&both, 13)), (WRAPPERS, WRAPPERS), "{both:?}");

    let caller = Caller::of(root);
    let archive = format!("/{PREFIX}/lib/.kpack/blas_lib_{DEVICE}.kpack");
    let right = caller.first(DEVICE, &[]);
    assert!(right.starts_with("0 "), "{right}");
    assert!(caller.told("threads", "2", &[DEVICE], &[]).starts_with("0 faults\n"));
    let forks = caller.told("forks", "2", &[DEVICE], &[]);
    assert!(forks.starts_with("0 bad children, 0 faults\n"), "{forks}");
    variables_are_heeded(&caller, &archive, &right);

    // While it is open, the archive is replaced as by a package manager, then cut, then removed.
    let script = root.join(INSIDE.trim_start_matches('/')).join("change");
    let installed = root.join(archive.trim_start_matches('/'));
    fs::copy(&installed, installed.with_extension("kpack.new")).unwrap();
    for (change, second) in [("mv $1.new $1", "0 "), (": >$1", "13 ")] {
        fs::write(&script, format!("#!/bin/sh\nset -- {archive}\n{change}\n")).unwrap();
        let said = caller.told("changes", &format!("/bin/sh {INSIDE}/change"), &[DEVICE], &[]);
        let lines: Vec<&str> = said.lines().collect();
        assert!(lines[0].starts_with("0 ") && lines[1].starts_with(second), "{change}: {said}");
        assert!(second != "0 " || lines[0] == lines[1], "{change}: {said}");
    }
    assert!(caller.first(DEVICE, &[]).starts_with("13 "));
    fs::remove_file(installed).unwrap();
    assert!(caller.first(DEVICE, &[]).starts_with("13 "));
}

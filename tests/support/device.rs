//! Compiles device code with LLVM's tools.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tools;

/// The tools for device code: clang, its linker lld, and its tool for bundles.
const TOOLS: [&str; 3] = ["clang++-19", "ld.lld-19", "clang-offload-bundler-19"];

/// Runs a command line in `dir`, which must succeed.
pub fn run(dir: &Path, command: &[&str]) {
    if command.contains(&"-fuse-ld=lld") {
        tools::need(&["ld.lld-19"]);
    }
    tools::run(Command::new(command[0]).args(&command[1..]).current_dir(dir));
}

/// Compiles `dir/<name>.o` with one kernel named `name`, for `archs` and with further `flags`.
pub fn compile(dir: &Path, name: &str, archs: &[&str], flags: &[&str]) {
    tools::need(&TOOLS);
    let source = format!(
        "#include \"hip.h\"\nextern \"C\" __global__ void {name}(int *p) {{ *p = {}; }}\n\
         extern \"C\" void run_{name}(int *p) {{ {name}<<<1, 1>>>(p); }}\n",
        name.len()
    );
    let file = format!("{name}.hip");
    std::fs::write(dir.join(&file), source).unwrap();
    let object = format!("{name}.o");
    let archs: Vec<String> = archs.iter().map(|a| format!("--offload-arch={a}")).collect();
    let include = format!("-I{}", tools::repository("examples/shards/source").display());
    let mut command = vec!["clang++-19", "-x", "hip", "-nogpuinc", "-nogpulib", "-O2", "-fPIC"];
    command.push(&include);
    command.extend(archs.iter().map(String::as_str));
    command.extend(flags);
    command.extend(["-c", &file, "-o", &object]);
    run(dir, &command);
}

/// Links `dir/<name>` with one wrapper for each name, whose code is for its archs; the library needs `libraries`.
pub fn link(dir: &Path, name: &str, wrappers: &[(&str, &[&str])], libraries: &[&Path]) -> PathBuf {
    let library = dir.join(name);
    let mut command = Command::new("clang++-19");
    let soname = format!("-Wl,-soname,{name}");
    command.args(["-shared", "-nostdlib", "-fuse-ld=lld", &soname, "-o"]).arg(&library);
    command.arg("-Wl,--no-as-needed").args(libraries);
    for (wrapper, archs) in wrappers {
        compile(dir, wrapper, archs, &["-mcode-object-version=6"]);
        command.arg(dir.join(format!("{wrapper}.o")));
    }
    tools::run(&mut command);
    library
}

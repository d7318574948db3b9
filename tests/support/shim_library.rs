//! A stand-in for the library that binaries for every HIP runtime register their wrappers with.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::tools;

/// The name by which binaries need it.
pub const SHIM: &str = "librocm_kpack_shim.so.0";

/// Two functions that a HIP runtime has under other names.
const SOURCE: &str = "\
void **rocm_kpack_register_fat_binary(const void *wrapper) { return (void **)wrapper; }
void rocm_kpack_unregister_fat_binary(void **handle) { (void)handle; }
";

/// Compiles it in `folder`.
pub fn compile(folder: &Path) -> PathBuf {
    tools::need(&["gcc"]);
    let (source, library) = (folder.join("shim.c"), folder.join("shim.so"));
    fs::write(&source, SOURCE).unwrap();
    let mut gcc = Command::new("gcc");
    gcc.args(["-shared", "-fPIC", "-nostdlib", "-Wl,-soname"]).arg(format!("-Wl,{SHIM}"));
    tools::run(gcc.arg("-o").args([&library, &source]));
    library
}

/// The configuration `json`, for binaries that register with the stand-in in `folder`.
pub fn configuration(json: &str, folder: &Path) -> String {
    let mut configuration: Value = serde_json::from_str(json).unwrap();
    configuration["hip_runtime"] = "any".into();
    // A program of the example is for a fixed address.
    configuration["validation"]["untransformable"] = "keep-fat".into();
    configuration["hip_shim"] = compile(folder).to_str().unwrap().into();
    configuration.to_string()
}

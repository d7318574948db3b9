//! Sets the soname. The library stays loaded until the process ends, as its bundles do.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for option in ["-soname,librocm_kpack_shim.so.0", "-z,nodelete"] {
        println!("cargo:rustc-cdylib-link-arg=-Wl,{option}");
    }
}

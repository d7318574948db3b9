//! Sets the soname that programs are linked against.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,librocm_kpack.so.0");
}

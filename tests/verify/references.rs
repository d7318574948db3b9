//! How packages find each other, and whose is what: each check fires for a set that was tampered
//! with. Packages are taken apart and put together by dpkg-deb and rpmbuild; the receipt is made to
//! agree, so that only the wanted checks can tell.

use std::fs;

use support::tampered::{self, Archive, Set, patch, wrapper_section};
use support::tools;

use crate::receipt::SHARDS;

const LIBRARY: &str = "opt/rocm-7.1/lib/libexblas.so.1.2";
const ARCHIVES: &str = "opt/rocm-7.1/lib/.kpack";

#[test]
fn v030_a_marker_leads_nowhere() {
    for set in Set::of_each_format() {
        set.edit(&set.host(), |root| {
            tampered::replace(&root.join(LIBRARY), b".kpack/blas_lib_", b".kpack/blas_bil_")
        });
        set.fires(&[], &["V030"]);
    }
}

#[test]
fn v031_a_wrapper_without_any_row() {
    for set in Set::of_each_format() {
        for (package, archs) in [
            (&set.kernels("gfx110x"), &["gfx1100", "gfx1101", "gfx1102"][..]),
            (&set.kernels("gfx115x"), &["gfx1151"]),
            (&set.kernels("gfx120x"), &["gfx1200", "gfx1201"]),
        ] {
            set.edit(package, |root| {
                for arch in archs {
                    let archive = root.join(ARCHIVES).join(format!("blas_lib_{arch}.kpack"));
                    Archive::edit(&archive, |a| a.drop_row("lib/libexblas.so.1.2#1", arch));
                }
            });
        }
        set.remove_receipt();
        set.edit_manifest(&["gfx1100", "gfx1101", "gfx1102", "gfx1151", "gfx1200", "gfx1201"]);
        set.fires(&[], &["V031"]);
    }
}

#[test]
fn v031_a_listed_target_hides_the_code_of_another_wrapper() {
    for set in Set::of_each_format() {
        set.edit(&set.kernels("gfx110x"), |root| {
            let archive = root.join(ARCHIVES).join("blas_lib_gfx1100.kpack");
            Archive::edit(&archive, |a| {
                a.copy_row("lib/libexblas.so.1.2#0", "gfx1100", "gfx1100:xnack+")
            });
        });
        set.remove_receipt();
        set.edit_manifest(&["gfx1100"]);
        set.fires(&[], &["V031"]);
    }
}

#[test]
fn v032_a_wrapper_with_another_index() {
    for set in Set::of_each_format() {
        set.edit(&set.host(), |root| {
            let library = root.join(LIBRARY);
            let at = wrapper_section(&library);
            patch(&library, at + 24 + 16, &[0]);
        });
        set.fires(&[], &["V032"]);
    }
}

#[test]
fn v032_a_wrapper_that_is_not_transformed() {
    for set in Set::of_each_format() {
        set.edit(&set.host(), |root| {
            let library = root.join(LIBRARY);
            let at = wrapper_section(&library);
            patch(&library, at, b"FPIH");
        });
        set.fires(&[], &["V032"]);
    }
}

#[test]
fn v032_a_wrapper_that_points_beside_the_marker() {
    for set in Set::of_each_format() {
        // The pointer of this position-dependent program is a plain value in the file.
        set.edit(&set.host(), |root| {
            let program = root.join("opt/rocm-7.1/libexec/exblas/exblas-tune");
            let at = wrapper_section(&program);
            patch(&program, at + 8, &[0x11]);
        });
        set.fires(&[], &["V032"]);
    }
}

#[test]
fn v032_a_marker_that_cannot_be_read() {
    for set in Set::of_each_format() {
        set.edit(&set.host(), |root| {
            let library = root.join(LIBRARY);
            let bytes = fs::read(&library).unwrap();
            let (offset, _) = tampered::section(&bytes, ".rocm_kpack_ref");
            patch(&library, offset, &[0xc1]);
        });
        set.fires(&[], &["V032"]);
    }
}

#[test]
fn v033_an_archive_is_missing() {
    for set in Set::of_each_format() {
        let archive = format!("{ARCHIVES}/blas_lib_gfx1102.kpack");
        set.edit(&set.kernels("gfx110x"), |root| fs::remove_file(root.join(&archive)).unwrap());
        let removed = format!("/{archive}");
        set.edit_receipt(|receipt| receipt.code_objects.retain(|r| r.place.path() != removed));
        set.fires(&[], &["V033"]);
        set.fires(SHARDS, &["V010", "V033"]);
    }
}

#[test]
fn v033_a_manifest_that_is_damaged_or_gone() {
    for set in Set::of_each_format() {
        let manifest = format!("{ARCHIVES}/blas_lib.kpm");
        set.edit(&set.host(), |root| fs::write(root.join(&manifest), [0x85, 1]).unwrap());
        set.fires(&[], &["V033"]);
        set.edit(&set.host(), |root| fs::remove_file(root.join(&manifest)).unwrap());
        set.fires(&[], &["V033"]);
    }
}

#[test]
fn v040_a_path_of_two_packages() {
    for set in Set::of_each_format() {
        let (sparse, link) = (set.named("rocm-host-suite-sparse"), "opt/rocm-7.1/lib/libexblas.so");
        set.edit(&sparse, |root| {
            std::os::unix::fs::symlink("libexblas.so.1", root.join(link)).unwrap();
        });
        set.fires(&[], &["V040"]);
        set.edit(&sparse, |root| {
            fs::remove_file(root.join(link)).unwrap();
            fs::create_dir(root.join(link)).unwrap();
            fs::write(root.join(link).join("below"), "").unwrap();
        });
        set.fires(&[], &["V040"]);
    }
}

#[test]
fn v050_a_kernel_package_without_its_host() {
    for set in Set::of_each_format() {
        for on in [("rocm-blas", ">= 7.1.0-1"), ("rocm-blas", "= 7.0.0-1"), ("libc6", "")] {
            set.depend(&set.kernels("gfx110x"), &[on]);
            set.fires(&[], &["V050"]);
        }
        set.remove_receipt();
        set.fires(&[], &["V050"]);
    }
}

#[test]
fn v061_a_package_that_excludes_another_of_its_set() {
    tools::need(&["dpkg-deb"]);
    let set = Set::of_debs();
    let sparse = "rocm-host-suite-sparse_7.1.0-1_amd64.deb";
    set.edit_control(sparse, "Breaks", "rocm-blas (<< 7.1.1-1)");
    set.fires(&[], &["V061"]);
    set.edit_control(sparse, "Breaks", "rocm-blas (<< 7.1.0-1), rocm-host-suite-sparse");
    set.fires(&[], &[]);
    // A name that another package provides.
    set.edit_control(sparse, "Conflicts", "rocm-blas-kernels");
    set.fires(&[], &["V061"]);
    set.remove_receipt();
    set.fires(&[], &["V061"]);
}

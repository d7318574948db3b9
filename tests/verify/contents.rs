//! What may be in packages, and how they find each other: each check fires for a set that was
//! tampered with. Packages are taken apart and put together by dpkg-deb; the receipt is made to
//! agree, so that only the wanted checks can tell.

use std::fs;
use std::path::Path;

use rockpack::content::Content;
use rockpack::receipt::{CodeObjectRecord, FindingRecord, Place};
use rockpack::split::loose_code;

use crate::receipt::SHARDS;
use crate::tampered::{self, Archive, Set, patch, shard, wrapper_section};
use crate::tools;

const LIBRARY: &str = "opt/rocm-7.1/lib/libexblas.so.1.2";
const HOST: &str = "rocm-blas_7.1.0-1_amd64.deb";
const KERNELS: &str = "rocm-blas-gfx110x_7.1.0-1_amd64.deb";
const OTHER_KERNELS: &str = "rocm-blas-gfx115x_7.1.0-1_amd64.deb";
const ARCHIVES: &str = "opt/rocm-7.1/lib/.kpack";
const DATABASE: &str = "opt/rocm-7.1/lib/rocblas/library";

/// A copy of the set of `.deb` packages, or `None` without dpkg-deb.
fn set() -> Option<Set> {
    tools::have(&["dpkg-deb"]).then(Set::new)
}

#[test]
fn v020_the_fat_original_is_packaged() {
    let Some(set) = set() else { return };
    let original = shard("gfx110X").join("math-libs/BLAS/rocBLAS/stage/lib/libexblas.so.1.2");
    set.edit(HOST, |root| copy(&original, &root.join(LIBRARY)));
    set.fires(&[], &["V020"]);
}

#[test]
fn v020_device_code_hides_in_a_binary_without_sections() {
    let Some(set) = set() else { return };
    let original = shard("gfx110X").join("math-libs/BLAS/rocBLAS/stage/lib/libexblas.so.1.2");
    set.edit(HOST, |root| {
        let mut bytes = fs::read(&original).unwrap();
        // No section table: its offset, count and the index of its names.
        bytes[40..48].fill(0);
        bytes[60..64].fill(0);
        fs::write(root.join("opt/rocm-7.1/lib/libexcblas.so.1.0"), bytes).unwrap();
    });
    set.fires(&[], &["V020"]);
}

#[test]
fn v020_files_of_one_arch_in_the_host_package() {
    for name in ["Kernels.so-000-gfx1100.hsaco", "TensileLibrary_gfx1100.dat"] {
        let Some(set) = set() else { return };
        let file = fs::read(database("gfx110X").join(name)).unwrap();
        set.edit(KERNELS, |root| fs::remove_file(root.join(DATABASE).join(name)).unwrap());
        set.edit(HOST, |root| fs::write(root.join(DATABASE).join(name), file).unwrap());
        set.record_in(name, "rocm-blas");
        set.fires(&[], &["V020"]);
        set.remove_receipt();
        set.fires(&[], &["V020"]);
    }
}

#[test]
fn v020_an_offload_bundle_in_the_host_package() {
    let Some(set) = set() else { return };
    let fat = fs::read(
        shard("gfx110X").join("math-libs/BLAS/rocBLAS/stage").join("lib/libexblas.so.1.2"),
    );
    let fat = fat.unwrap();
    let (offset, size) = tampered::section(&fat, ".hip_fatbin");
    let bundles = fat[offset..offset + size].to_vec();
    set.edit(HOST, |root| fs::write(root.join(DATABASE).join("shared.co"), &bundles).unwrap());
    set.fires(&[], &["V011", "V020", "V024"]);
    // A finding of the build may keep it there.
    let inside = loose_code(&Content::of_bytes(bundles), None).unwrap();
    set.edit_receipt(|receipt| {
        let finding = FindingRecord {
            code: "R021".to_owned(),
            name: "database-shared".to_owned(),
            severity: "note".to_owned(),
            subject: "gfx110X-build/blas_lib_gfx110X-dgpu/lib/rocblas/library/shared.co".to_owned(),
            message: "serves several archs".to_owned(),
            code_objects: inside.iter().map(|code| code.sha256.clone().unwrap()).collect(),
        };
        receipt.findings.push(finding);
        receipt.code_objects.extend(inside.into_iter().map(|code| CodeObjectRecord {
            sha256: code.sha256.unwrap(),
            size: code.size,
            target: code.target,
            shard: None,
            package: "rocm-blas".to_owned(),
            place: Place::File { file: format!("/{DATABASE}/shared.co"), entry: code.entry },
        }));
    });
    set.fires(&[], &[]);
}

#[test]
fn v021_host_code_in_a_kernel_package() {
    let Some(set) = set() else { return };
    let library = shard("gfx110X").join("math-libs/BLAS/hipBLAS/stage/lib/libexcblas.so.1.0");
    set.edit(KERNELS, |root| {
        copy(&library, &root.join(ARCHIVES).join("helper.so"));
    });
    set.fires(&[], &["V021"]);
}

#[test]
fn v022_another_groups_files() {
    for name in ["Kernels.so-000-gfx1151.hsaco", "TensileLibrary_lazy_gfx1151.dat"] {
        let Some(set) = set() else { return };
        let file = database("gfx1151").join(name);
        set.edit(OTHER_KERNELS, |root| {
            fs::remove_file(root.join(DATABASE).join(name)).unwrap();
        });
        set.edit(KERNELS, |root| copy(&file, &root.join(DATABASE).join(name)));
        set.record_in(name, "rocm-blas-gfx110x");
        set.fires(&[], &["V022"]);
    }
}

#[test]
fn v022_another_groups_archive() {
    let Some(set) = set() else { return };
    let archive = format!("{ARCHIVES}/blas_lib_gfx1151.kpack");
    let bytes = set.file_of(OTHER_KERNELS, &archive);
    set.edit(OTHER_KERNELS, |root| fs::remove_file(root.join(&archive)).unwrap());
    set.edit(KERNELS, |root| fs::write(root.join(&archive), bytes).unwrap());
    set.record_in(&archive, "rocm-blas-gfx110x");
    set.fires(&[], &["V022"]);
}

#[test]
fn v023_a_frame_that_cannot_be_decoded() {
    let Some(set) = set() else { return };
    set.edit(KERNELS, |root| {
        // The first frame begins behind the header, the count and its own size.
        patch(&root.join(ARCHIVES).join("blas_lib_gfx1100.kpack"), 64 + 8 + 40, &[0xff; 24]);
    });
    set.fires(&[], &["V010", "V023"]);
}

#[test]
fn v023_a_damaged_table() {
    let Some(set) = set() else { return };
    set.edit(KERNELS, |root| {
        patch(&root.join(ARCHIVES).join("blas_lib_gfx1100.kpack"), 8, &[0xff; 8]);
    });
    assert!(set.verify(&[]).codes().contains(&"V023".to_owned()));
}

#[test]
fn v023_two_archives_change_places() {
    let Some(set) = set() else { return };
    let archives = ["gfx1100", "gfx1101"].map(|arch| format!("{ARCHIVES}/blas_lib_{arch}.kpack"));
    set.edit(KERNELS, |root| {
        let [one, other] = archives.clone().map(|archive| root.join(archive));
        let kept = fs::read(&one).unwrap();
        fs::rename(&other, &one).unwrap();
        fs::write(&other, kept).unwrap();
    });
    set.edit_receipt(|receipt| {
        for record in &mut receipt.code_objects {
            let Place::Archive { archive, .. } = &mut record.place else { continue };
            *archive = match record.target.as_str() {
                "gfx1100" => format!("/{}", archives[1]),
                "gfx1101" => format!("/{}", archives[0]),
                _ => continue,
            };
        }
    });
    set.fires(&[], &["V023", "V033"]);
}

#[test]
fn v030_a_marker_leads_nowhere() {
    let Some(set) = set() else { return };
    set.edit(HOST, |root| {
        tampered::replace(&root.join(LIBRARY), b".kpack/blas_lib_", b".kpack/blas_bil_")
    });
    set.fires(&[], &["V030"]);
}

#[test]
fn v031_a_wrapper_without_any_row() {
    let Some(set) = set() else { return };
    for (package, archs) in [
        (KERNELS, &["gfx1100", "gfx1101", "gfx1102"][..]),
        (OTHER_KERNELS, &["gfx1151"]),
        ("rocm-blas-gfx120x_7.1.0-1_amd64.deb", &["gfx1200", "gfx1201"]),
    ] {
        set.edit(package, |root| {
            for arch in archs {
                let archive = root.join(ARCHIVES).join(format!("blas_lib_{arch}.kpack"));
                Archive::edit(&archive, |a| a.drop_row("lib/libexblas.so.1.2#1", arch));
            }
        });
    }
    set.remove_receipt();
    for arch in ["gfx1100", "gfx1101", "gfx1102", "gfx1151", "gfx1200", "gfx1201"] {
        set.edit_manifest(arch);
    }
    set.fires(&[], &["V031"]);
}

#[test]
fn v031_a_listed_target_hides_the_code_of_another_wrapper() {
    let Some(set) = set() else { return };
    set.edit(KERNELS, |root| {
        let archive = root.join(ARCHIVES).join("blas_lib_gfx1100.kpack");
        Archive::edit(&archive, |a| {
            a.copy_row("lib/libexblas.so.1.2#0", "gfx1100", "gfx1100:xnack+")
        });
    });
    set.remove_receipt();
    set.edit_manifest("gfx1100");
    set.fires(&[], &["V031"]);
}

#[test]
fn v032_a_wrapper_with_another_index() {
    let Some(set) = set() else { return };
    set.edit(HOST, |root| {
        let library = root.join(LIBRARY);
        let at = wrapper_section(&library);
        patch(&library, at + 24 + 16, &[0]);
    });
    set.fires(&[], &["V032"]);
}

#[test]
fn v032_a_wrapper_that_is_not_transformed() {
    let Some(set) = set() else { return };
    set.edit(HOST, |root| {
        let library = root.join(LIBRARY);
        let at = wrapper_section(&library);
        patch(&library, at, b"FPIH");
    });
    set.fires(&[], &["V032"]);
}

#[test]
fn v032_a_wrapper_that_points_beside_the_marker() {
    let Some(set) = set() else { return };
    // The pointer of this position-dependent program is a plain value in the file.
    set.edit(HOST, |root| {
        let program = root.join("opt/rocm-7.1/libexec/exblas/exblas-tune");
        let at = wrapper_section(&program);
        patch(&program, at + 8, &[0x11]);
    });
    set.fires(&[], &["V032"]);
}

#[test]
fn v032_a_marker_that_cannot_be_read() {
    let Some(set) = set() else { return };
    set.edit(HOST, |root| {
        let library = root.join(LIBRARY);
        let bytes = fs::read(&library).unwrap();
        let (offset, _) = tampered::section(&bytes, ".rocm_kpack_ref");
        patch(&library, offset, &[0xc1]);
    });
    set.fires(&[], &["V032"]);
}

#[test]
fn v033_an_archive_is_missing() {
    let Some(set) = set() else { return };
    let archive = format!("{ARCHIVES}/blas_lib_gfx1102.kpack");
    set.edit(KERNELS, |root| fs::remove_file(root.join(&archive)).unwrap());
    let removed = format!("/{archive}");
    set.edit_receipt(|receipt| receipt.code_objects.retain(|r| r.place.path() != removed));
    set.fires(&[], &["V033"]);
    set.fires(SHARDS, &["V010", "V033"]);
}

#[test]
fn v033_a_manifest_that_is_damaged_or_gone() {
    let Some(set) = set() else { return };
    let manifest = format!("{ARCHIVES}/blas_lib.kpm");
    set.edit(HOST, |root| fs::write(root.join(&manifest), [0x85, 1]).unwrap());
    set.fires(&[], &["V033"]);
    set.edit(HOST, |root| fs::remove_file(root.join(&manifest)).unwrap());
    set.fires(&[], &["V033"]);
}

#[test]
fn v040_a_path_of_two_packages() {
    let Some(set) = set() else { return };
    let link = "opt/rocm-7.1/lib/libexblas.so";
    set.edit("rocm-host-suite-sparse_7.1.0-1_amd64.deb", |root| {
        std::os::unix::fs::symlink("libexblas.so.1", root.join(link)).unwrap();
    });
    set.fires(&[], &["V040"]);
    set.edit("rocm-host-suite-sparse_7.1.0-1_amd64.deb", |root| {
        fs::remove_file(root.join(link)).unwrap();
        fs::create_dir(root.join(link)).unwrap();
        fs::write(root.join(link).join("below"), "").unwrap();
    });
    set.fires(&[], &["V040"]);
}

#[test]
fn v050_a_kernel_package_without_its_host() {
    let Some(set) = set() else { return };
    for depends in ["rocm-blas (>= 7.1.0-1)", "rocm-blas (= 7.0.0-1)", "libc6"] {
        set.edit_control(KERNELS, "Depends", depends);
        set.fires(&[], &["V050"]);
    }
    set.remove_receipt();
    set.fires(&[], &["V050"]);
}

#[test]
fn v051_a_kernel_package_that_brings_another_group() {
    let Some(set) = set() else { return };
    let depends = "rocm-blas (= 7.1.0-1), rocm-blas-gfx115x (= 7.1.0-1)";
    set.edit_control(KERNELS, "Depends", depends);
    set.fires(&[], &["V051"]);
}

#[test]
fn v061_a_package_that_excludes_another_of_its_set() {
    let Some(set) = set() else { return };
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

/// The database files of a shard.
fn database(name: &str) -> std::path::PathBuf {
    shard(name).join(Path::new("math-libs/BLAS/rocBLAS/stage/lib/rocblas/library"))
}

fn copy(from: &Path, to: &Path) {
    fs::copy(from, to).unwrap();
}

//! The allowed content of packages: each check fires for a set that was tampered with. Packages are taken
//! apart and put together by dpkg-deb and rpmbuild; the receipt is made to agree, so that only the
//! wanted checks can tell.

use std::fs;
use std::path::Path;

use rockpack_core::content::Content;
use rockpack_core::tree::TreePath;
use rockpack_package::receipt::{CodeObjectPlace, CodeObjectRecord};
use rockpack_report::{InputArtifact, found};
use rockpack_split::standalone_code;
use support::device::offload_binary;
use support::tampered::{self, Set, patch, shard};

const LIBRARY: &str = "opt/rocm-7.1/lib/libexblas.so.1.2";
const ARCHIVES: &str = "opt/rocm-7.1/lib/.kpack";
const DATABASE: &str = "opt/rocm-7.1/lib/rocblas/library";

#[test]
fn v020_the_fat_original_is_packaged() {
    for set in Set::of_each_format() {
        let original = shard("gfx110X").join("math-libs/BLAS/rocBLAS/stage/lib/libexblas.so.1.2");
        set.edit(&set.host(), |root| copy(&original, &root.join(LIBRARY)));
        set.fires(&[], &["V020"]);
    }
}

#[test]
fn v020_device_code_hides_in_a_binary_without_sections() {
    for set in Set::of_each_format() {
        let original = shard("gfx110X").join("math-libs/BLAS/rocBLAS/stage/lib/libexblas.so.1.2");
        set.edit(&set.host(), |root| {
            let mut bytes = fs::read(&original).unwrap();
            // No section table: its offset, count and the index of its names.
            bytes[40..48].fill(0);
            bytes[60..64].fill(0);
            fs::write(root.join("opt/rocm-7.1/lib/libexcblas.so.1.0"), bytes).unwrap();
        });
        set.fires(&[], &["V020"]);
    }
}

#[test]
fn v020_files_of_one_arch_in_the_host_package() {
    for name in ["Kernels.so-000-gfx1100.hsaco", "TensileLibrary_gfx1100.dat"] {
        for set in Set::of_each_format() {
            let file = fs::read(database("gfx110X").join(name)).unwrap();
            set.edit(&set.kernels("gfx110x"), |root| {
                fs::remove_file(root.join(DATABASE).join(name)).unwrap()
            });
            set.edit(&set.host(), |root| fs::write(root.join(DATABASE).join(name), file).unwrap());
            set.fires(&[], &["V020"]);
            set.remove_receipt();
            set.fires(&[], &["V020"]);
        }
    }
}

#[test]
fn v020_an_offload_bundle_in_the_host_package() {
    for set in Set::of_each_format() {
        let fat = fs::read(
            shard("gfx110X").join("math-libs/BLAS/rocBLAS/stage").join("lib/libexblas.so.1.2"),
        )
        .unwrap();
        let (offset, size) = tampered::section(&fat, ".hip_fatbin");
        let bundles = fat[offset..offset + size].to_vec();
        set.edit(&set.host(), |root| {
            fs::write(root.join(DATABASE).join("shared.co"), &bundles).unwrap()
        });
        set.fires(&[], &["V011", "V020", "V024"]);
        // A finding of the build may keep it there.
        let inside = standalone_code(&Content::of_bytes(bundles), None).unwrap();
        set.edit_receipt(|receipt| {
            let path = TreePath::new("lib/rocblas/library/shared.co").unwrap();
            let finding = found::DatabaseShared {
                file: InputArtifact::new(
                    "gfx110X-build",
                    &"blas_lib_gfx110X-dgpu".parse().unwrap(),
                )
                .file(&path),
                rule: "rocblas".to_owned(),
                is_cache: false,
                code_objects: inside.iter().map(|code| code.sha256.unwrap()).collect(),
            };
            receipt.findings.add(finding);
            receipt.code_objects.extend(inside.into_iter().map(|code| CodeObjectRecord {
                sha256: code.sha256.unwrap().to_string(),
                size: code.size,
                stored_size: None,
                target: code.target,
                shard: None,
                package: "rocm-blas".to_owned(),
                place: CodeObjectPlace::File {
                    file: format!("/{DATABASE}/shared.co"),
                    entry: code.entry,
                },
            }));
        });
        set.fires(&[], &[]);
    }
}

#[test]
fn v020_or_v022_an_offload_binary_in_another_package() {
    let image: [&[u8]; 3] = [b"amdgcn-amd-amdhsa", b"gfx1151", b"code"];
    for version in [1, 2] {
        let binary = offload_binary(version, &[image]);
        for set in Set::of_each_format() {
            let add = |root: &Path, folder: &str| {
                fs::write(root.join(folder).join("kernel.out"), &binary).unwrap();
            };
            set.edit(&set.host(), |root| add(root, DATABASE));
            set.fires(&[], &["V011", "V020"]);
            set.edit(&set.kernels("gfx110x"), |root| add(root, ARCHIVES));
            set.fires(&[], &["V011", "V020", "V022"]);
        }
    }
}

#[test]
fn v021_host_code_in_a_kernel_package() {
    for set in Set::of_each_format() {
        let library = shard("gfx110X").join("math-libs/BLAS/hipBLAS/stage/lib/libexcblas.so.1.0");
        set.edit(&set.kernels("gfx110x"), |root| {
            copy(&library, &root.join(ARCHIVES).join("helper.so"));
        });
        set.fires(&[], &["V021"]);
        // Without a receipt, its archives say what it is.
        set.remove_receipt();
        set.fires(&[], &["V021"]);
    }
}

#[test]
fn v022_another_groups_files() {
    for name in ["Kernels.so-000-gfx1151.hsaco", "TensileLibrary_lazy_gfx1151.dat"] {
        for set in Set::of_each_format() {
            let file = database("gfx1151").join(name);
            set.edit(&set.kernels("gfx115x"), |root| {
                fs::remove_file(root.join(DATABASE).join(name)).unwrap();
            });
            set.edit(&set.kernels("gfx110x"), |root| copy(&file, &root.join(DATABASE).join(name)));
            set.fires(&[], &["V022"]);
            // Which archs an `.rpm` is for, the receipt alone says.
            let without: &[&str] = if set.host().ends_with(".rpm") { &[] } else { &["V022"] };
            set.remove_receipt();
            set.fires(&[], without);
        }
    }
}

#[test]
fn v022_another_groups_archive() {
    for set in Set::of_each_format() {
        let archive = format!("{ARCHIVES}/blas_lib_gfx1151.kpack");
        let bytes = set.file_of(&set.kernels("gfx115x"), &archive);
        set.edit(&set.kernels("gfx115x"), |root| fs::remove_file(root.join(&archive)).unwrap());
        set.edit(&set.kernels("gfx110x"), |root| fs::write(root.join(&archive), bytes).unwrap());
        set.fires(&[], &["V022"]);
    }
}

#[test]
fn v023_a_frame_that_cannot_be_decoded() {
    for set in Set::of_each_format() {
        set.edit(&set.kernels("gfx110x"), |root| {
            // The first frame begins behind the header, the count and its own size.
            patch(&root.join(ARCHIVES).join("blas_lib_gfx1100.kpack"), 64 + 8 + 40, &[0xff; 24]);
        });
        set.fires(&[], &["V010", "V023"]);
    }
}

#[test]
fn v023_a_damaged_table() {
    for set in Set::of_each_format() {
        set.edit(&set.kernels("gfx110x"), |root| {
            patch(&root.join(ARCHIVES).join("blas_lib_gfx1100.kpack"), 8, &[0xff; 8]);
        });
        assert!(set.verify(&[]).codes().contains(&"V023".to_owned()));
    }
}

#[test]
fn v023_two_archives_change_places() {
    for set in Set::of_each_format() {
        let archives =
            ["gfx1100", "gfx1101"].map(|arch| format!("{ARCHIVES}/blas_lib_{arch}.kpack"));
        set.edit(&set.kernels("gfx110x"), |root| {
            let [one, other] = archives.clone().map(|archive| root.join(archive));
            let kept = fs::read(&one).unwrap();
            fs::rename(&other, &one).unwrap();
            fs::write(&other, kept).unwrap();
        });
        set.edit_receipt(|receipt| {
            for record in &mut receipt.code_objects {
                let CodeObjectPlace::Archive { archive, .. } = &mut record.place else { continue };
                *archive = match record.target.as_str() {
                    "gfx1100" => format!("/{}", archives[1]),
                    "gfx1101" => format!("/{}", archives[0]),
                    _ => continue,
                };
            }
        });
        set.fires(&[], &["V023", "V033"]);
    }
}

#[test]
fn v024_or_v025_an_index_that_is_gone_or_damaged() {
    for set in Set::of_each_format() {
        let index = format!("{DATABASE}/TensileLibrary_gfx1100.dat");
        set.edit(&set.kernels("gfx110x"), |root| fs::write(root.join(&index), "hello").unwrap());
        set.fires(&[], &["V025"]);
        set.edit(&set.kernels("gfx110x"), |root| fs::remove_file(root.join(&index)).unwrap());
        set.fires(&[], &["V024"]);
    }
}

/// The database files of a shard.
fn database(name: &str) -> std::path::PathBuf {
    shard(name).join(Path::new("math-libs/BLAS/rocBLAS/stage/lib/rocblas/library"))
}

fn copy(from: &Path, to: &Path) {
    fs::copy(from, to).unwrap();
}

//! The example set passes, and each check fires for a set that was tampered with. Packages are
//! taken apart and put together by dpkg-deb; the receipt is made to agree, so that only the wanted
//! checks can tell.

use std::fs;
use std::path::Path;

use rockpack::content::Content;
use rockpack::receipt::{CodeObjectRecord, FindingRecord, Place};
use rockpack::split::loose_code;

use crate::tampered::{self, Archive, Set, patch, shard, wrapper_section};
use crate::tools;

const LIBRARY: &str = "opt/rocm-7.1/lib/libexblas.so.1.2";
const HOST: &str = "rocm-blas_7.1.0-1_amd64.deb";
const KERNELS: &str = "rocm-blas-gfx110x_7.1.0-1_amd64.deb";
const OTHER_KERNELS: &str = "rocm-blas-gfx115x_7.1.0-1_amd64.deb";
const ARCHIVES: &str = "opt/rocm-7.1/lib/.kpack";
const DATABASE: &str = "opt/rocm-7.1/lib/rocblas/library";
const SHARDS: &[&str] = &["--against", "examples/shards"];

/// A copy of the set of `.deb` packages, or `None` without dpkg-deb.
fn set() -> Option<Set> {
    tools::have(&["dpkg-deb"]).then(Set::new)
}

#[test]
fn the_example_set_passes() {
    let set = Set::of_both_formats();
    for arguments in [&[][..], SHARDS] {
        let run = set.verify(arguments);
        assert_eq!(run.codes(), [""; 0], "{}", run.text);
        assert_eq!(run.status, 0);
    }
    fs::remove_file(set.path("packages.json")).unwrap();
    let run = set.verify(&[]);
    assert_eq!((run.status, run.codes()), (0, vec![]), "{}", run.text);
    // Without the receipt nothing says why the code for gfx906 is in no package.
    let run = set.verify(SHARDS);
    assert_eq!((run.status, run.codes()), (1, vec!["V010".to_owned()]), "{}", run.text);
    assert_eq!(run.problems().len(), 3, "one for each shard: {}", run.text);
}

#[test]
fn packages_can_be_named_one_by_one() {
    let set = Set::of_both_formats();
    let packages: Vec<String> = set.packages();
    let run = set.verify_paths(&packages.iter().map(String::as_str).collect::<Vec<_>>(), &[]);
    assert_eq!((run.status, run.codes()), (0, vec![]), "{}", run.text);
}

#[test]
fn nothing_to_verify_is_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    let run = tampered::verify(&[folder.path().to_str().unwrap()], &[]);
    assert_eq!(run.status, 64, "{}", run.text);
    let run = tampered::verify(&["/nonexistent/folder"], &[]);
    assert_eq!(run.status, 2, "{}", run.text);
}

#[test]
fn json_has_a_stable_shape() {
    let set = Set::of_debs();
    fs::remove_file(set.path("rocm_7.1.0-1_amd64.deb")).unwrap();
    let run = set.verify(&["--against", "examples/shards"]);
    let mut json: serde_json::Value = serde_json::from_str(&run.text).unwrap();
    assert!(json["files"].as_u64().unwrap() > 50);
    json["files"] = 0.into();
    let expected = serde_json::json!({
        "packages": 10,
        "files": 0,
        "archive_rows": 24,
        "code_objects": 24,
        "input_code_objects": 45,
        "problems": [{
            "code": "V003",
            "name": "receipt-incomplete",
            "subject": "rocm_7.1.0-1_amd64.deb",
            "message": "the receipt names it, and it is not there",
        }],
    });
    assert_eq!(json, expected);
}

#[test]
fn text_says_what_failed_and_what_was_read() {
    let set = Set::of_debs();
    fs::remove_file(set.path("rocm_7.1.0-1_amd64.deb")).unwrap();
    let text = set.verify_text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "failed: V003 receipt-incomplete: rocm_7.1.0-1_amd64.deb: the receipt names it, and it is \
         not there"
    );
    assert!(lines[1].starts_with("10 packages, "), "{text}");
    assert!(
        lines[1].ends_with(" files, kernel archives with 24 code objects and 24 rows"),
        "{text}"
    );
    assert_eq!(lines[2..], ["1 check failed"]);
}

#[test]
fn v001_a_truncated_package() {
    let set = Set::of_both_formats();
    for name in [KERNELS, "rocm-blas-gfx110x-7.1.0-1.x86_64.rpm"] {
        let bytes = fs::read(set.path(name)).unwrap();
        for len in [0, 7, 100, bytes.len() / 2, bytes.len() - 1] {
            fs::write(set.path(name), &bytes[..len]).unwrap();
            let run = set.verify(&[]);
            assert_eq!(run.status, 1, "{}", run.text);
            assert!(run.codes().contains(&"V001".to_owned()), "{len}: {}", run.text);
        }
        fs::write(set.path(name), bytes).unwrap();
    }
}

#[test]
fn v001_or_v002_a_flipped_byte() {
    let set = Set::of_both_formats();
    for name in [KERNELS, "rocm-blas-gfx110x-7.1.0-1.x86_64.rpm"] {
        let bytes = fs::read(set.path(name)).unwrap();
        for at in (0..bytes.len()).step_by(bytes.len() / 23) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x20;
            fs::write(set.path(name), flipped).unwrap();
            let run = set.verify(&[]);
            let noticed = ["V001", "V002"].iter().any(|code| run.codes().contains(&(*code).into()));
            assert!(noticed && run.status == 1, "{at}: {}", run.text);
        }
        fs::write(set.path(name), bytes).unwrap();
    }
}

#[test]
fn v002_a_receipt_that_lies() {
    let set = Set::of_debs();
    let lies: [fn(&mut rockpack::receipt::PackageRecord); 6] = [
        |record| record.sha256 = "0".repeat(64),
        |record| record.size += 1,
        |record| record.code_objects += 1,
        |record| record.members[3].mode ^= 1,
        |record| drop(record.members.pop()),
        |record| record.archs = vec!["gfx1100".to_owned()],
    ];
    for lie in lies {
        set.fresh_receipt();
        set.edit_receipt(|receipt| {
            lie(receipt.packages.iter_mut().find(|r| r.file_name == KERNELS).unwrap());
        });
        set.fires(&[], &["V002"]);
    }
}

#[test]
fn v003_a_package_too_few_or_too_many() {
    let set = Set::of_debs();
    let name = "rocm-gfx110x_7.1.0-1_amd64.deb";
    let bytes = fs::read(set.path(name)).unwrap();
    fs::remove_file(set.path(name)).unwrap();
    set.fires(&[], &["V003"]);
    fs::write(set.path(name), bytes).unwrap();
    set.edit_receipt(|receipt| receipt.packages.retain(|record| record.file_name != name));
    set.fires(&[], &["V003"]);
}

#[test]
fn v004_content_that_its_own_package_disowns() {
    let Some(set) = set() else { return };
    set.edit_without_sums(HOST, |root| {
        fs::write(root.join("usr/share/doc/rocm-blas/copyright"), "other").unwrap();
    });
    set.fires(&[], &["V004"]);
    set.edit(HOST, |root| {
        let sums = root.join("DEBIAN/md5sums");
        let line = format!("{}  opt/missing\n", "0".repeat(32));
        fs::write(&sums, fs::read_to_string(&sums).unwrap() + &line).unwrap();
    });
    set.fires(&[], &["V004"]);
}

#[test]
fn v010_a_row_is_dropped() {
    let Some(set) = set() else { return };
    set.edit(KERNELS, |root| {
        Archive::edit(&root.join(ARCHIVES).join("blas_lib_gfx1101.kpack"), |archive| {
            archive.drop_row("lib/libexblas.so.1.2#1", "gfx1101");
        });
    });
    // The manifest states size and count of the archive.
    set.fires(&[], &["V010", "V033"]);
    set.remove_receipt();
    set.edit_manifest("gfx1101");
    set.fires(SHARDS, &["V010"]);
}

#[test]
fn v010_the_receipt_names_another_package() {
    let set = Set::of_debs();
    set.edit_receipt(|receipt| receipt.code_objects[0].package = "rocm-blas-gfx120x".to_owned());
    set.fires(&[], &["V010"]);
    set.fresh_receipt();
    set.edit_receipt(|receipt| {
        let Place::Archive { archive, .. } = &mut receipt.code_objects[0].place else {
            panic!("no archive comes first")
        };
        archive.push('x');
    });
    set.fires(&[], &["V010"]);
    set.fresh_receipt();
    set.edit_receipt(|receipt| receipt.findings.retain(|finding| finding.code != "R012"));
    set.fires(&[], &[]);
    set.fires(SHARDS, &["V010"]);
}

#[test]
fn v011_code_that_nobody_knows() {
    let set = Set::of_debs();
    set.edit_receipt(|receipt| drop(receipt.code_objects.remove(0)));
    set.fires(&[], &["V011"]);
    set.fresh_receipt();
    // The database files of the other shards are no artifact's either.
    set.fires(&["--against", "examples/shards/gfx110X-build"], &["V011"]);
}

#[test]
fn v012_two_wrappers_exchange_their_code() {
    for (package, arch) in [(KERNELS, "gfx1100"), (OTHER_KERNELS, "gfx1151")] {
        let Some(set) = set() else { return };
        let keys = ["lib/libexblas.so.1.2#0", "lib/libexblas.so.1.2#1"];
        set.edit(package, |root| {
            let archive = root.join(ARCHIVES).join(format!("blas_lib_{arch}.kpack"));
            Archive::edit(&archive, |archive| archive.exchange(keys, arch));
        });
        set.edit_receipt(|receipt| {
            for record in receipt.code_objects.iter_mut().filter(|r| r.target == arch) {
                let Place::Archive { key, .. } = &mut record.place else { continue };
                if let Some(at) = keys.iter().position(|known| known == key) {
                    *key = keys[1 - at].to_owned();
                }
            }
        });
        set.fires(&[], &[]);
        set.fires(SHARDS, &["V012"]);
    }
}

#[test]
fn v013_a_file_is_lost() {
    let Some(set) = set() else { return };
    let library = "opt/rocm-7.1/lib/libexcblas.so.1.0";
    set.edit(HOST, |root| fs::remove_file(root.join(library)).unwrap());
    set.fires(&[], &[]);
    set.fires(SHARDS, &["V013"]);
    set.edit(HOST, |root| fs::write(root.join(library), "other").unwrap());
    set.fires(SHARDS, &["V013"]);
}

#[test]
fn v013_a_link_leads_elsewhere() {
    let Some(set) = set() else { return };
    set.edit(HOST, |root| {
        let link = root.join("opt/rocm-7.1/lib/libexblas.so");
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink("libexcblas.so.1", link).unwrap();
    });
    set.fires(SHARDS, &["V013"]);
}

#[test]
fn v013_a_binary_with_other_machine_code() {
    let Some(set) = set() else { return };
    set.edit(HOST, |root| {
        let library = root.join(LIBRARY);
        let bytes = fs::read(&library).unwrap();
        let text = tampered::section(&bytes, ".text");
        patch(&library, text.0, &[0xcc]);
    });
    set.fires(&[], &[]);
    // Without a build of the same code, none can have the numbers of the installed wrappers.
    set.fires(SHARDS, &["V012", "V013"]);
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
            code_objects: inside.iter().map(|code| code.sha256.clone()).collect(),
        };
        receipt.findings.push(finding);
        receipt.code_objects.extend(inside.into_iter().map(|code| CodeObjectRecord {
            sha256: code.sha256,
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

/// The database files of a shard.
fn database(name: &str) -> std::path::PathBuf {
    shard(name).join(Path::new("math-libs/BLAS/rocBLAS/stage/lib/rocblas/library"))
}

fn copy(from: &Path, to: &Path) {
    fs::copy(from, to).unwrap();
}

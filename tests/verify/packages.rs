//! The example set passes, and what the receipt and the artifacts are held against: each check
//! fires for a set that was tampered with. Packages are taken apart and put together by dpkg-deb and
//! rpmbuild; the receipt is made to agree, so that only the wanted checks can tell.

use std::fs;
use std::process::Command;

use rockpack_package::receipt::{CodeObjectPlace, PackageRecord};
use rockpack_report::Code;
use support::program::rockpack;
use support::tampered::{self, Archive, Set, patch};
use support::tools;

const LIBRARY: &str = "opt/rocm-7.1/lib/libexblas.so.1.2";
const ARCHIVES: &str = "opt/rocm-7.1/lib/.kpack";
const SHARDS: &[&str] = &["--against", "examples/shards"];

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
fn packages_that_are_put_together_again_pass() {
    for set in Set::of_each_format() {
        for name in [set.host(), set.kernels("gfx110x")] {
            let before = fs::read(set.path(&name)).unwrap();
            set.edit(&name, |_| ());
            assert!(fs::read(set.path(&name)).unwrap() != before, "{name}");
        }
        set.fires(SHARDS, &[]);
        set.remove_receipt();
        set.fires(&[], &[]);
    }
}

#[test]
fn nothing_to_verify_is_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    let run = tampered::verify(&[folder.path().to_str().unwrap()], &[]);
    assert_eq!(run.status, 64, "{}", run.text);
    let run = tampered::verify(&["/nonexistent/folder"], &[]);
    assert_eq!(run.status, 64, "{}", run.text);
}

#[test]
fn json_has_a_stable_shape() {
    let set = Set::of_debs();
    fs::remove_file(set.path("rocm_7.1.0-1_amd64.deb")).unwrap();
    let run = set.verify(&["--against", "examples/shards"]);
    let mut json: serde_json::Value = serde_json::from_str(&run.text).unwrap();
    assert!(json["files"].as_u64().unwrap() > 50);
    json["files"] = 0.into();
    // The build's warnings are findings as the receipt has them.
    let warnings = json.as_object_mut().unwrap().remove("warnings").unwrap();
    let codes =
        warnings.as_array().unwrap().iter().map(|warning| warning["code"].as_str().unwrap());
    assert_eq!(codes.collect::<Vec<_>>(), ["R012", "R050", "R070"]);
    let expected = serde_json::json!({
        "packages": 11,
        "files": 0,
        "archive_rows": 24,
        "code_objects": 24,
        "input_code_objects": 45,
        "unproved": ["origin", "scripts", "relations"],
        "problems": [{
            "code": "V003",
            "name": "receipt-incomplete",
            "subject": "rocm_7.1.0-1_amd64.deb",
            "message": "the receipt names it, but it is missing",
            "package": "rocm_7.1.0-1_amd64.deb",
            "missing": "package",
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
        "failed: V003 receipt-incomplete: rocm_7.1.0-1_amd64.deb: the receipt names it, but it is \
         missing"
    );
    assert!(lines[1].starts_with("11 packages, "), "{text}");
    assert!(
        lines[1].ends_with(" files, kernel archives with 24 code objects and 24 rows"),
        "{text}"
    );
    let warned = "3 build warnings (they do not fail the verification)";
    let unproved = "not proved: the origin, scripts and relations (no good signature, or no --key to \
                    check it)";
    let explain = "`rockpack explain CODE` says what a code means and what solves it";
    assert_eq!(lines[2..], [warned, unproved, explain, "1 check failed"]);
    let noted = rockpack().arg("verify").arg(set.path("")).output().unwrap().stderr;
    let noted = String::from_utf8(noted).unwrap();
    let codes: Vec<&str> = noted.lines().map(|line| &line[..13]).collect();
    assert_eq!(codes, ["warning: R012", "warning: R050", "warning: R070"], "{noted}");
}

#[test]
fn v001_a_truncated_package() {
    let set = Set::of_both_formats();
    for name in [&set.kernels("gfx110x"), "rocm-blas-gfx110x-7.1.0-1.x86_64.rpm"] {
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

/// Names that dpkg and rpm cannot unpack, and the longest that they can.
#[test]
fn v041_a_name_that_is_too_long() {
    for (index, set) in Set::of_each_format().into_iter().enumerate() {
        let folders = if set.host().ends_with(".rpm") { 255 } else { 246 };
        for (is_folder, limit) in [(false, 246), (true, folders)] {
            for length in [limit, limit + 1].into_iter().filter(|length| *length <= 255) {
                let set = Set::of_each_format().remove(index);
                set.edit(&set.host(), |root| {
                    let place = root.join("opt/rocm-7.1/lib").join("n".repeat(length));
                    match is_folder {
                        true => fs::create_dir(place).unwrap(),
                        false => fs::write(place, "text").unwrap(),
                    }
                });
                let codes: &[&str] = if length > limit { &["V041"] } else { &[] };
                set.fires(&[], codes);
            }
        }
    }
}

#[test]
fn v002_a_receipt_that_lies() {
    let lies: [fn(&mut PackageRecord); 2] =
        [|record| record.sha256 = "0".repeat(64), |record| record.size += 1];
    for set in [Set::of_debs(), Set::of_rpms()] {
        for lie in lies {
            lie_of_kernels(&set, lie);
            set.fires(&[], &["V002"]);
        }
    }
}

/// Only the receipt says which archs an `.rpm` is for.
#[test]
fn v022_a_receipt_that_lies_about_archs() {
    let set = Set::of_rpms();
    lie_of_kernels(&set, |record| record.archs = vec!["gfx1100".to_owned()]);
    set.fires(&[], &["V022"]);
}

fn lie_of_kernels(set: &Set, lie: fn(&mut PackageRecord)) {
    let name = set.kernels("gfx110x");
    set.fresh_receipt();
    set.edit_receipt(|receipt| {
        lie(receipt.packages.iter_mut().find(|record| record.file_name == name).unwrap());
    });
}

#[test]
fn v003_a_package_too_few_or_too_many() {
    for set in [Set::of_debs(), Set::of_rpms()] {
        let name = set.named("rocm-gfx110x");
        let bytes = fs::read(set.path(&name)).unwrap();
        fs::remove_file(set.path(&name)).unwrap();
        set.fires(&[], &["V003"]);
        fs::write(set.path(&name), bytes).unwrap();
        set.edit_receipt(|receipt| receipt.packages.retain(|record| record.file_name != name));
        set.fires(&[], &["V003"]);
    }
}

#[test]
fn v004_content_that_its_own_deb_disowns() {
    tools::need(&["dpkg-deb"]);
    let set = Set::of_debs();
    set.edit_without_sums(&set.host(), |root| {
        fs::write(root.join("usr/share/doc/rocm-blas/copyright"), "other").unwrap();
    });
    set.fires(&[], &["V004"]);
    set.edit(&set.host(), |root| {
        let sums = root.join("DEBIAN/md5sums");
        let line = format!("{}  opt/missing\n", "0".repeat(32));
        fs::write(&sums, fs::read_to_string(&sums).unwrap() + &line).unwrap();
    });
    set.fires(&[], &["V004"]);
}

/// rpm finds no fault in such a package before it unpacks it.
#[test]
fn v004_content_that_its_own_rpm_disowns() {
    tools::need(&["rpm", "rpm2cpio", "cpio"]);
    let set = Set::of_rpms();
    set.misstate(&set.host(), LIBRARY);
    let mut check = Command::new("rpm");
    check.args(["-K", "--nosignature"]).arg(set.path(&set.host()));
    let told = tools::succeed(&mut check);
    assert!(told.contains("digests OK"), "{told}");
    set.fires(&[], &["V004"]);
    set.remove_receipt();
    set.fires(&[], &["V004"]);
}

#[test]
fn v010_a_row_is_dropped() {
    for set in Set::of_each_format() {
        set.edit(&set.kernels("gfx110x"), |root| {
            Archive::edit(&root.join(ARCHIVES).join("blas_lib_gfx1101.kpack"), |archive| {
                archive.drop_row("lib/libexblas.so.1.2#1", "gfx1101");
            });
        });
        // The manifest states size and count of the archive.
        set.fires(&[], &["V010", "V033"]);
        set.remove_receipt();
        set.edit_manifest(&["gfx1101"]);
        set.fires(SHARDS, &["V010"]);
    }
}

#[test]
fn v010_the_receipt_names_another_archive() {
    for set in [Set::of_debs(), Set::of_rpms()] {
        set.edit_receipt(|receipt| {
            let CodeObjectPlace::Archive { archive, .. } = &mut receipt.code_objects[0].place
            else {
                panic!("no archive comes first")
            };
            archive.push('x');
        });
        set.fires(&[], &["V010"]);
        set.fresh_receipt();
        set.edit_receipt(|receipt| {
            receipt.findings.retain(|finding| finding.code() != Code::of_id("R012"))
        });
        set.fires(&[], &[]);
        set.fires(SHARDS, &["V010"]);
    }
}

#[test]
fn v011_code_that_nobody_knows() {
    for set in [Set::of_debs(), Set::of_rpms()] {
        set.edit_receipt(|receipt| drop(receipt.code_objects.remove(0)));
        set.fires(&[], &["V011"]);
        set.fresh_receipt();
        // The files of the other shards are no artifact's either.
        set.fires(&["--against", "examples/shards/gfx110X-build"], &["V011", "V101"]);
    }
}

#[test]
fn v011_a_file_of_code_that_no_artifact_has() {
    for set in Set::of_each_format() {
        let name = "opt/rocm-7.1/lib/rocblas/library/Kernels.so-000-gfx1100.hsaco";
        set.edit(&set.kernels("gfx110x"), |root| {
            let mut code = fs::read(root.join(name)).unwrap();
            *code.last_mut().unwrap() ^= 1;
            fs::write(root.join(name.replace("000", "001")), code).unwrap();
        });
        // Without a receipt, only the artifacts say what there is.
        set.remove_receipt();
        let problems = set.verify(SHARDS).problems();
        let foreign = problems.iter().filter(|problem| problem["code"] == "V011");
        assert_eq!(foreign.count(), 1, "{problems:#?}");
    }
}

#[test]
fn v012_two_wrappers_exchange_their_code() {
    for (group, arch) in [("gfx110x", "gfx1100"), ("gfx115x", "gfx1151")] {
        for set in Set::of_each_format() {
            let keys = ["lib/libexblas.so.1.2#0", "lib/libexblas.so.1.2#1"];
            set.edit(&set.kernels(group), |root| {
                let archive = root.join(ARCHIVES).join(format!("blas_lib_{arch}.kpack"));
                Archive::edit(&archive, |archive| archive.exchange(keys, arch));
            });
            set.edit_receipt(|receipt| {
                for record in receipt.code_objects.iter_mut().filter(|r| r.target == arch) {
                    let CodeObjectPlace::Archive { key, .. } = &mut record.place else { continue };
                    if let Some(at) = keys.iter().position(|known| known == key) {
                        *key = keys[1 - at].to_owned();
                    }
                }
            });
            set.fires(&[], &[]);
            set.fires(SHARDS, &["V012"]);
        }
    }
}

#[test]
fn v013_a_file_is_lost() {
    for set in Set::of_each_format() {
        let library = "opt/rocm-7.1/lib/libexcblas.so.1.0";
        set.edit(&set.host(), |root| fs::remove_file(root.join(library)).unwrap());
        set.fires(&[], &[]);
        set.fires(SHARDS, &["V013"]);
        set.edit(&set.host(), |root| fs::write(root.join(library), "other").unwrap());
        set.fires(SHARDS, &["V013"]);
    }
}

#[test]
fn v013_a_link_leads_elsewhere() {
    for set in Set::of_each_format() {
        set.edit(&set.host(), |root| {
            let link = root.join("opt/rocm-7.1/lib/libexblas.so");
            fs::remove_file(&link).unwrap();
            std::os::unix::fs::symlink("libexcblas.so.1", link).unwrap();
        });
        set.fires(SHARDS, &["V013"]);
    }
}

#[test]
fn v013_a_binary_with_other_machine_code() {
    for set in Set::of_each_format() {
        set.edit(&set.host(), |root| {
            let library = root.join(LIBRARY);
            let bytes = fs::read(&library).unwrap();
            let text = tampered::section(&bytes, ".text");
            patch(&library, text.0, &[0xcc]);
        });
        set.fires(&[], &[]);
        // Without a build of the same code, none can have the numbers of the installed wrappers.
        set.fires(SHARDS, &["V012", "V013"]);
    }
}

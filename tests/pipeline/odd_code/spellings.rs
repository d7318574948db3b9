//! Entry IDs in every spelling that compilers use.

use std::fs;

use super::{Case, FLAGS, GFX1100, HOST, UNKNOWN_FLAGS, bundle, code_object, of_device_code};

/// The first bytes of a SPIR-V module.
const SPIRV: [u8; 12] = [3, 2, 0x23, 7, 0, 0, 1, 0, 0, 0, 0, 0];

/// The flags of gfx950, without those of XNACK.
const GFX950: u32 = 0x4f;

/// The flags cannot tell gfx1250-strict from gfx1250.
const GFX1250: u32 = 0x49;

#[test]
fn every_spelling_of_an_entry_is_packed_and_found_again() {
    let usual = || (GFX1100, code_object(FLAGS, "usual"));
    for (id, code, noted) in [
        ("hip-spirv64-amd-amdhsa--amdgcnspirv", SPIRV.to_vec(), &["R011"][..]),
        ("hip-spirv64-amd-amdhsa-unknown-amdgcnspirv", SPIRV.to_vec(), &["R011"]),
        ("hipv4-spirv64-amd-amdhsa-amdgcnspirv", SPIRV.to_vec(), &["R011"]),
        ("hip-spirv64-amd-amdhsa--amdgcnspirv-", SPIRV.to_vec(), &["R011"]),
        ("hipv4-amdgcn-amd-amdhsa--gfx950-", code_object(GFX950, "unknown to LLVM 19"), &[]),
        ("hipv4-amdgcn-amd-amdhsa-unknown-gfx1101", code_object(UNKNOWN_FLAGS, "new"), &["R019"]),
        ("hip-amdgcn-amd-amdhsa-gfx1101", code_object(UNKNOWN_FLAGS, "new"), &["R019"]),
        ("hip-amdgcn-amd-amdhsa-unknown-gfx1250-strict", code_object(GFX1250, "strict"), &[]),
        ("hipv4-amdgcn-amd-amdhsa-unknown-gfx1250", code_object(GFX1250, "usual"), &[]),
    ] {
        let case = Case::new();
        case.library(&[bundle(&[(HOST, Vec::new()), usual(), (id, code)])], "");
        let findings = case.built();
        assert_eq!(of_device_code(&findings), noted.iter().copied().collect(), "{id}");
        let receipt = fs::read_to_string(case.receipt()).unwrap();
        assert_eq!(receipt.matches("\"archive\"").count(), 2, "{id}: {receipt}");
    }
}

/// LLVM 17 to 19 leave the features of targets that they do not know out of the id.
#[test]
fn code_objects_tell_entries_of_one_name_apart() {
    let id = "hipv4-amdgcn-amd-amdhsa--gfx950-";
    let [on, off] = [("on", 0x300), ("off", 0x200)]
        .map(|(text, xnack)| (id, code_object(GFX950 | xnack, text)));
    let case = Case::new();
    case.library(&[bundle(&[(HOST, Vec::new()), on, off])], "");
    let findings = case.built();
    assert_eq!(of_device_code(&findings), [""; 0].into(), "{findings:?}");
    let receipt = fs::read_to_string(case.receipt()).unwrap();
    for target in ["\"gfx950:xnack+\"", "\"gfx950:xnack-\""] {
        assert!(receipt.contains(target), "{receipt}");
    }
}

/// Such a file is packed unchanged, and the receipt names its entries by their targets.
#[test]
fn every_spelling_is_found_again_in_a_file_of_bundles() {
    for id in [
        "hip-spirv64-amd-amdhsa--amdgcnspirv",
        "hip-spirv64-amd-amdhsa-unknown-amdgcnspirv",
        "hipv4-spirv64-amd-amdhsa-amdgcnspirv",
    ] {
        let case = Case::new();
        let code = [(HOST, Vec::new()), (GFX1100, code_object(FLAGS, "")), (id, SPIRV.to_vec())];
        let folder = case.file("lib/rocblas/library");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("Kernels.so-000-gfx1100.hsaco"), bundle(&code)).unwrap();
        case.library(&[super::usual("library")], "");
        case.built();
        let receipt = fs::read_to_string(case.receipt()).unwrap();
        assert!(receipt.contains("\"amdgcnspirv\""), "{receipt}");
    }
}

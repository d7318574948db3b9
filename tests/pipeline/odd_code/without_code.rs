//! Wrappers without device code.

use std::fs;

use super::{
    Case, FLAGS, GFX1100, GFX1101, GFX1101_FLAGS, HOST, bundle, code_object, messages,
    of_device_code, usual,
};

fn empty() -> Vec<u8> {
    bundle(&[])
}

fn host_only() -> Vec<u8> {
    bundle(&[(HOST, Vec::new())])
}

#[test]
fn r034_names_a_wrapper_without_device_code_among_others() {
    for nothing in [empty(), host_only()] {
        let case = Case::new();
        case.library(&[usual("first"), nothing, usual("last")], "");
        let findings = case.built();
        assert_eq!(of_device_code(&findings), ["R034"].into());
        assert_eq!(
            messages(&findings, "R034"),
            ["wrapper 1 of 3 has no device code, so kernels of its source do not run on any \
                 GPU; compile it for the GPUs of the packages (`--offload-arch`), or as host code only"]
        );
        case.forget("R034");
        case.verify().fired(&["V031"]);
    }
}

#[test]
fn r034_names_a_binary_without_any_device_code() {
    for nothing in [empty(), host_only()] {
        let case = Case::new();
        case.library(&[nothing.clone(), nothing], "");
        let findings = case.built();
        assert_eq!(of_device_code(&findings), ["R034"].into());
        let [message] = messages(&findings, "R034").try_into().unwrap();
        assert!(message.starts_with("wrappers 0, 1 of 2 have no device code"), "{message}");
        case.forget("R034");
        case.verify().fired(&["V030"]);
    }
}

/// R033 is about the empty entry, R034 about the wrapper without code.
#[test]
fn r034_a_wrapper_whose_entries_are_empty() {
    let nothing = bundle(&[(HOST, Vec::new()), (GFX1100, Vec::new())]);
    for bundles in [vec![usual("first"), nothing.clone()], vec![nothing]] {
        let case = Case::new();
        case.library(&bundles, "");
        let findings = case.built();
        assert_eq!(of_device_code(&findings), ["R033", "R034"].into());
        assert_eq!(messages(&findings, "R034").len(), 1);
    }
}

/// Artifacts that were split before have the same wrappers.
#[test]
fn r034_names_a_split_binary() {
    let case = Case::new();
    case.library(&[usual("first"), empty()], "");
    let split = case.folder.path().join("split");
    let mut command = support::example::rockpack();
    command.arg("split").arg("--artifacts").arg(case.shards());
    command.arg("--output-dir").arg(&split);
    let said = support::tools::said(&mut command);
    assert!(
        said.contains("R034 wrapper-without-code: one/odd_lib_gfx1100/lib/libodd.so"),
        "{said}"
    );
    fs::remove_dir_all(case.shards()).unwrap();
    fs::rename(split, case.shards()).unwrap();
    let findings = case.built();
    assert_eq!(of_device_code(&findings), ["R034"].into());
}

#[test]
fn wrappers_with_device_code_are_not_named() {
    let case = Case::new();
    case.library(&[usual("first"), usual("last")], "");
    assert!(of_device_code(&case.built()).is_empty());
}

/// A file of bundles is only for the GPUs that it has code for, and its empty entries are no code objects.
#[test]
fn an_empty_entry_of_a_file_is_no_code_object() {
    let case = Case::new();
    let code = (GFX1100, code_object(FLAGS, "code"));
    let (own, other) = (case.file("lib/x.hsaco"), case.shards().join("two/odd_lib_gfx1101"));
    fs::write(&own, bundle(&[code.clone(), (GFX1101, Vec::new())])).unwrap();
    fs::create_dir_all(other.join("odd/stage/lib")).unwrap();
    fs::write(other.join("artifact_manifest.txt"), "odd/stage\n").unwrap();
    fs::write(other.join("odd/stage/lib/y.hsaco"), code_object(GFX1101_FLAGS, "code")).unwrap();
    // The package for gfx1101 may lack the file.
    assert_eq!(of_device_code(&case.built()), ["R033"].into());
    // Without that entry the artifact's bytes differ, but its code does not.
    fs::write(&own, bundle(&[code])).unwrap();
    case.verify().fired(&["V013"]);
}

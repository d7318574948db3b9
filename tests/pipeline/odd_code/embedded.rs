//! Device code in host binaries outside of `.hip_fatbin`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use rockpack_report::EmbeddedForm;
use serde_json::{Value, json};
use support::ccob::ccob;
use support::example::section;
use support::tampered::Run;
use support::tools;

use super::frames;
use super::{
    Case, FLAGS, GFX1100, HOST, bundle, code_object, messages, of_device_code, path_of, usual,
    with_code,
};

/// Assembly that puts `bytes` into a section, after `skip` bytes.
fn placed(case: &Case, section: &str, skip: usize, bytes: &[u8]) -> String {
    let file = case.folder.path().join("placed");
    fs::write(&file, bytes).unwrap();
    format!("{section}\n.skip {skip}, 0x5f\n.incbin \"{}\"\n.skip 16, 0x43\n", file.display())
}

/// Device code in every embedded form.
pub(super) fn forms() -> [(EmbeddedForm, Vec<u8>); 5] {
    let plain = usual("embedded");
    [
        (EmbeddedForm::CodeObject, code_object(FLAGS, "embedded")),
        (EmbeddedForm::CompressedBundle, ccob(2, 1, &plain, &frames::frames(&plain))),
        (EmbeddedForm::CompressedBundle, ccob(3, 1, &plain, &frames::skippable_first(&plain))),
        (EmbeddedForm::CompressedBundle, ccob(2, 0, &plain, b"\x78\x9c??????????")),
        (EmbeddedForm::Bundle, plain),
    ]
}

#[test]
fn r035_names_device_code_in_a_section_of_its_own() {
    let sections = [
        (".rodata", ".section .rodata,\"a\",@progbits", 3),
        (".data", ".data", 4096),
        (".device", ".section .device,\"\",@progbits", 1),
    ];
    for bundles in [&[][..], &[usual("wrapped")]] {
        let (case, mut expected) = (Case::new(), BTreeSet::new());
        for (section_name, line, skip) in sections {
            for (form, bytes) in forms() {
                let name = format!("lib{:02}.so", expected.len());
                let placed = placed(&case, line, skip, &bytes);
                let library = case.library_called(&name, bundles, &placed);
                let offset = section(&fs::read(&library).unwrap(), section_name).0 + skip;
                let message = format!(
                    "contains {form} at offset {offset:#x} (section {section_name}) outside \
                     .hip_fatbin; it stays in the host package for every GPU: compile the \
                     code as HIP, so that it goes into kernel packages, or ship it as a file of \
                     its own"
                );
                expected.insert((format!("lib/{name}"), message));
            }
        }
        let findings = case.built();
        assert_eq!(of_device_code(&findings), ["R035"].into(), "{findings:?}");
        let named = with_code(&findings, "R035")
            .map(|finding| (path_of(finding), finding.message().to_owned()));
        assert_eq!(named.collect::<BTreeSet<_>>(), expected);
        case.forget("R035");
        fires_for_each(&case.verify(), &expected);
        fs::remove_file(case.receipt()).unwrap();
        fires_for_each(&case.verify_packages(), &expected);
    }
}

/// Fails unless only V020 is found, about each file: path and finding.
fn fires_for_each(run: &Run, files: &BTreeSet<(String, String)>) {
    run.fired(&["V020"]);
    let problems = run.problems();
    for (path, _) in files {
        let mut subjects = problems.iter().map(|problem| problem["subject"].as_str().unwrap());
        assert!(subjects.any(|subject| subject.contains(path)), "{path}: {}", run.text);
    }
}

#[test]
fn r035_names_several_in_one_file() {
    let case = Case::new();
    let all: Vec<u8> =
        forms().into_iter().flat_map(|(_, bytes)| [bytes, vec![0; 7]].concat()).collect();
    case.library(&[], &placed(&case, ".data", 0, &all));
    let findings = case.built();
    let [finding] = with_code(&findings, "R035").collect::<Vec<_>>()[..] else {
        panic!("{findings:?}")
    };
    let found: Vec<Value> = finding.field("places").unwrap();
    let found: Vec<_> = found.iter().map(|place| place["form"].clone()).collect();
    assert_eq!(found, forms().map(|(form, _)| json!(form)));
}

#[test]
fn r035_counts_all_and_refuses_too_many() {
    let message = messages(&with_objects(40).built(), "R035").remove(0);
    assert!(message.contains(" and 37 more outside .hip_fatbin; they stay"), "{message}");
    let expected = "the file has more than 4096 pieces of device code outside of .hip_fatbin";
    let refusal = with_objects(4097).refusal();
    assert!(refusal.contains(expected) && refusal.contains("together as one archive"), "{refusal}");
}

fn with_objects(count: usize) -> Case {
    let case = Case::new();
    let objects = code_object(FLAGS, "one").repeat(count);
    case.library(&[], &placed(&case, ".data", 0, &objects));
    case
}

/// Bytes after the file's end, or in a file without a section table, belong to no section.
#[test]
fn r035_names_device_code_in_no_section() {
    let case = Case::new();
    let library = case.library(&[usual("wrapped")], "");
    let mut bytes = fs::read(&library).unwrap();
    let offset = bytes.len();
    bytes.extend(code_object(FLAGS, "behind"));
    fs::write(&library, bytes).unwrap();
    let expected = format!("contains a code object at offset {offset:#x} (outside all sections)");
    let message = messages(&case.built(), "R035").remove(0);
    assert!(message.starts_with(&expected), "{message}");

    let case = Case::new();
    let library = case.library(&[usual("stripped")], "");
    let mut bytes = fs::read(&library).unwrap();
    let (offset, _) = section(&bytes, ".hip_fatbin");
    bytes[40..48].fill(0);
    bytes[60..64].fill(0);
    fs::write(&library, bytes).unwrap();
    let refusal = case.refusal();
    assert!(
        refusal.contains(&format!("at offset {offset:#x}: has no section table, and an offload"))
    );
    assert!(refusal.contains("untransformable"), "{refusal}");
    let config = case.folder.path().join("config.toml");
    fs::write(&config, "validation.untransformable = 'keep-fat'\n").unwrap();
    let findings = case.built_with(&["--config", config.to_str().unwrap()]);
    assert_eq!(of_device_code(&findings), ["R032", "R035"].into());
    let expected =
        format!("contains an offload bundle at offset {offset:#x} (outside all sections)");
    assert!(messages(&findings, "R035")[0].starts_with(&expected));
    fs::remove_file(case.receipt()).unwrap();
    case.verify_packages().fired(&["V020"]);
}

/// The finding does not excuse code in `.hip_fatbin`.
#[test]
fn r035_does_not_excuse_a_fat_binary() {
    let case = Case::new();
    let code = placed(&case, ".data", 0, &code_object(FLAGS, "embedded"));
    let library = case.library(&[usual("wrapped")], &code);
    case.built();
    let fat = fs::read(library).unwrap();
    repack(&case, |root| fs::write(root.join("opt/rocm-7.1/lib/libodd.so"), &fat).unwrap());
    let codes = case.verify().codes();
    assert!(codes.contains(&"V020".to_owned()), "{codes:?}");
}

/// Repacks the host package with its files changed.
fn repack(case: &Case, change: impl Fn(&Path)) {
    tools::need(&["dpkg-deb"]);
    let package = case.out().join("rocm-odd_7.1.0-1_amd64.deb");
    let root = case.folder.path().join("root");
    tools::run(Command::new("dpkg-deb").arg("-R").arg(&package).arg(&root));
    change(&root);
    tools::run(Command::new("dpkg-deb").args(["--root-owner-group", "-b"]).arg(root).arg(package));
}

/// Compilers, bundlers and runtimes contain the magics as constants, and other tools contain ELF headers.
#[test]
fn words_that_compilers_have_are_no_device_code() {
    let mut beyond = usual("beyond");
    let size = 32 + 24 + HOST.len() + 8;
    beyond[size..size + 8].copy_from_slice(&(1_u64 << 40).to_le_bytes());
    beyond.truncate(4096);
    let x86 = fs::read("/proc/self/exe").unwrap()[..4096].to_vec();
    let other_class = {
        let mut file = code_object(FLAGS, "");
        file[4] = 1;
        file
    };
    let far = {
        let mut file = code_object(FLAGS, "");
        file[40..48].copy_from_slice(&u64::MAX.to_le_bytes());
        file
    };
    let all = [
        b"__CLANG_OFFLOAD_BUNDLE__\0CCOB\0host-\0hipv4-amdgcn-amd-amdhsa--gfx1100\0".to_vec(),
        b"CCOB\x02\0\x01\0 and no stream behind the header, whatever follows".to_vec(),
        b"CCOBCCOB__CLANG_OFFLOAD_BUNDLE____CLANG_OFFLOAD_BUNDLE__\x7fELF\x7fELF".to_vec(),
        bundle(&[]),
        bundle(&[(HOST, Vec::new())]),
        bundle(&[(HOST, b"host code".to_vec())]),
        bundle(&[(HOST, Vec::new()), (GFX1100, Vec::new())]),
        beyond,
        x86,
        other_class,
        far,
        code_object(FLAGS, "")[..40].to_vec(),
    ];
    for bundles in [&[][..], &[usual("wrapped")]] {
        let case = Case::new();
        for (number, words) in all.iter().enumerate() {
            let placed = placed(&case, ".data", 1, words);
            case.library_called(&format!("lib{number:02}.so"), bundles, &placed);
        }
        let findings = case.built();
        assert!(of_device_code(&findings).is_empty(), "{findings:?}");
    }
}

/// The tools that write bundles, and their libraries.
#[test]
fn compilers_have_no_device_code() {
    tools::need(&["clang-offload-bundler-19", "clang-19"]);
    let case = Case::new();
    for tool in ["clang-offload-bundler-19", "clang-19", "ld.lld-19"] {
        let Some(path) = tools::find(tool) else { continue };
        fs::create_dir_all(case.file("bin")).unwrap();
        fs::copy(path, case.file("bin").join(tool)).unwrap();
    }
    assert!(of_device_code(&case.built()).is_empty());
}

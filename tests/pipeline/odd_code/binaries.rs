//! LLVM offload binaries: files of their own that hold device code. Build, `verify`, `inspect` and `extract`
//! agree on them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use rockpack_package::receipt::Receipt;
use serde_json::Value;
use support::device::{self, offload_binary};
use support::example::rockpack;
use support::tools::{self, need};

use super::{
    Case, FLAGS, GFX1100, HOST, bundle, code_object, messages, of_device_code, path_of, with_code,
};

const PACKAGER: &str = "clang-offload-packager-19";

const AMD: &[u8] = b"amdgcn-amd-amdhsa";

/// `e_flags` of gfx942.
const GFX942_FLAGS: u32 = 0x4c;

/// A case with a file `lib/kernel.out`, beside a code object of its own.
fn with(bytes: &[u8]) -> Case {
    let case = Case::new();
    fs::write(case.file("lib/kernel.out"), bytes).unwrap();
    fs::write(case.file("lib/usual.hsaco"), code_object(FLAGS, "usual")).unwrap();
    case
}

/// The package and target of each code object of the file, by the receipt.
fn places(case: &Case) -> BTreeSet<(String, String)> {
    let receipt = Receipt::parse(&fs::read(case.receipt()).unwrap()).unwrap();
    let all = receipt.code_objects.into_iter();
    let own = all.filter(|code| code.place.path().ends_with("lib/kernel.out"));
    own.map(|code| (code.package, code.target)).collect()
}

fn placed(all: &[(&str, &str)]) -> BTreeSet<(String, String)> {
    all.iter().map(|(package, target)| ((*package).to_owned(), (*target).to_owned())).collect()
}

/// The bytes of all code objects that `rockpack extract` takes out.
fn extracted(case: &Case) -> Vec<Vec<u8>> {
    let out = case.folder.path().join("extracted");
    tools::run(rockpack().arg("extract").arg(case.file("lib/kernel.out")).arg("--out").arg(&out));
    let mut files: Vec<Vec<u8>> =
        fs::read_dir(&out).unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap()).collect();
    files.sort();
    files
}

fn ids(file: &Path) -> Vec<String> {
    let shown = tools::run(rockpack().args(["inspect", "--json"]).arg(file)).stdout;
    let shown: Value = serde_json::from_slice(&shown).unwrap();
    assert_eq!(shown[0]["type"], "offload-bundles");
    let bundles = shown[0]["bundles"].as_array().unwrap().iter();
    let entries = bundles.flat_map(|bundle| bundle["entries"].as_array().unwrap());
    entries.map(|entry| crate::text(&entry["id"])).collect()
}

#[test]
fn an_offload_binary_is_in_the_kernel_package_of_its_code() {
    let code = code_object(FLAGS, "kernel");
    for version in [1, 2] {
        let case = with(&offload_binary(version, &[[AMD, b"gfx1100", &code]]));
        let findings = case.built();
        assert_eq!(of_device_code(&findings), [""; 0].into(), "{findings:?}");
        assert_eq!(places(&case), placed(&[("rocm-odd-gfx110x", "gfx1100")]), "{version}");
        assert_eq!(ids(&case.file("lib/kernel.out")), ["hip-amdgcn-amd-amdhsa--gfx1100"]);
        assert_eq!(extracted(&case), std::slice::from_ref(&code));
    }
}

/// The images are in one binary, or in several behind each other, with or without zeros between them.
#[test]
fn images_of_several_groups_are_in_their_common_package() {
    let codes = [code_object(FLAGS, "one"), code_object(GFX942_FLAGS, "two")];
    let images: [[&[u8]; 3]; 2] = [[AMD, b"gfx1100", &codes[0]], [AMD, b"gfx942", &codes[1]]];
    let [first, second] = [1, 2].map(|version| {
        let at = version as usize - 1;
        offload_binary(version, &images[at..=at])
    });
    for bytes in [
        offload_binary(1, &images),
        offload_binary(2, &images),
        [&first[..], &second].concat(),
        [&first[..], &[0; 4096], &second, &[0; 24]].concat(),
    ] {
        let case = with(&bytes);
        let findings = case.built();
        let [said] = &messages(&findings, "R060")[..] else { panic!("{findings:?}") };
        assert!(said.contains("gfx942") && said.contains("gfx1100"), "{said}");
        let common = "rocm-odd-kernels-common";
        assert_eq!(places(&case), placed(&[(common, "gfx1100"), (common, "gfx942")]));
        assert_eq!(extracted(&case).len(), 2);
    }
}

#[test]
fn several_images_may_be_for_one_target() {
    let codes = [code_object(FLAGS, "one"), code_object(FLAGS, "two")];
    let images = codes.each_ref().map(|code| [AMD, &b"gfx1100"[..], &code[..]]);
    for version in [1, 2] {
        let case = with(&offload_binary(version, &images));
        assert_eq!(of_device_code(&case.built()), [""; 0].into());
        assert_eq!(places(&case), placed(&[("rocm-odd-gfx110x", "gfx1100")]));
        assert_eq!(extracted(&case), codes);
    }
}

#[test]
fn the_code_object_decides_and_not_its_label() {
    let code = code_object(FLAGS, "kernel");
    let label = |arch: &'static [u8], codes: &'static [&str]| (arch, codes);
    for (arch, codes) in [
        label(b"gfx1101", &["R010"]),
        label(b"generic", &["R010"]),
        label(b"no target", &["R010"]),
        label(b"", &["R010"]),
    ] {
        let case = with(&offload_binary(2, &[[AMD, arch, &code]]));
        let findings = case.built();
        assert_eq!(of_device_code(&findings), codes.iter().copied().collect(), "{arch:?}");
        assert_eq!(places(&case), placed(&[("rocm-odd-gfx110x", "gfx1100")]));
    }
}

/// Files for later links, and for programs that are not AMD's, stay as they are with the host files.
#[test]
fn other_images_keep_the_file_with_the_host() {
    let (code, mut object) = (code_object(FLAGS, "kernel"), code_object(FLAGS, "object"));
    object[16] = 1;
    let gfx1100: [&[u8]; 3] = [AMD, b"gfx1100", &code];
    let bitcode = [b"BC\xc0\xde", &b"bitcode"[..]].concat();
    let others: [[&[u8]; 3]; 5] = [
        [b"nvptx64-nvidia-cuda", b"sm_70", b"ptx"],
        [b"spirv64-intel", b"", b"\x03\x02\x23\x07words"],
        [b"x86_64-pc-linux-gnu", b"", b"host"],
        [AMD, b"gfx1100", &bitcode],
        [AMD, b"gfx1100", &object],
    ];
    let mut files: Vec<Vec<u8>> = others
        .iter()
        .flat_map(|other| [offload_binary(2, &[gfx1100, *other]), offload_binary(2, &[*other])])
        .collect();
    files.push(bundle(&[(HOST, b"host".to_vec()), (GFX1100, code.clone())]));
    let case = Case::new();
    fs::write(case.file("lib/usual.hsaco"), code_object(FLAGS, "usual")).unwrap();
    let mut expected = BTreeSet::new();
    for (number, bytes) in files.iter().enumerate() {
        let path = format!("lib/{number:02}/kernel.out");
        fs::create_dir_all(case.file(&path).parent().unwrap()).unwrap();
        fs::write(case.file(&path), bytes).unwrap();
        expected.insert(path);
    }
    let findings = case.built();
    assert_eq!(of_device_code(&findings), ["R030"].into(), "{findings:?}");
    let named = with_code(&findings, "R030").map(path_of);
    assert_eq!(named.collect::<BTreeSet<_>>(), expected);
    let receipt = Receipt::parse(&fs::read(case.receipt()).unwrap()).unwrap();
    let mut own = receipt.code_objects.iter().filter(|it| it.place.path().ends_with("kernel.out"));
    assert!(own.all(|code| code.package == "rocm-odd"));
    case.verify_packages().fired(&[]);
}

#[test]
fn what_cannot_be_read_is_refused_with_its_place() {
    let code = code_object(FLAGS, "kernel");
    let whole = offload_binary(2, &[[AMD, b"gfx1100", &code]]);
    let mut newer = whole.clone();
    newer[4] = 3;
    let said = with(&newer).refusal();
    assert!(said.contains("version 3 is not known") && said.contains("kernel.out"), "{said}");
    let said = with(&whole[..whole.len() - 1]).refusal();
    assert!(said.contains("offload binary") && said.contains("kernel.out"), "{said}");
    let said = with(&[&whole[..], b"more"].concat()).refusal();
    assert!(said.contains("neither zero padding"), "{said}");
}

#[test]
fn binaries_of_the_packager_are_read_as_it_reads_them() {
    need(&[PACKAGER]);
    let case = with(b"");
    let folder = case.folder.path();
    fs::write(folder.join("one"), code_object(FLAGS, "one")).unwrap();
    fs::write(folder.join("two"), code_object(GFX942_FLAGS, "two")).unwrap();
    let image = |file: &str, arch: &str| {
        format!("--image=file={file},triple=amdgcn-amd-amdhsa,arch={arch},kind=hip")
    };
    let [one, two] = [image("one", "gfx1100"), image("two", "gfx942")];
    device::run(folder, &[PACKAGER, "-o", "kernel.out", &one, &two]);
    fs::copy(folder.join("kernel.out"), case.file("lib/kernel.out")).unwrap();
    assert_eq!(messages(&case.built(), "R060").len(), 1);
    let [one, two] = [image("a", "gfx1100"), image("b", "gfx942")];
    device::run(folder, &[PACKAGER, "kernel.out", &one, &two]);
    let mut theirs = ["a", "b"].map(|name| fs::read(folder.join(name)).unwrap()).to_vec();
    theirs.sort();
    assert_eq!(extracted(&case), theirs);
}

//! Libraries and programs: what stays of their bundles, and all else that must not change.

use std::fs;
use std::process::Command;
use std::slice;

use object::{Object, ObjectSection, ObjectSymbol};
use rockpack_elf::ccob::CcobMethod;
use support::ccob::VERSIONS;
use support::device::offload_binary;
use support::example::section;
use support::fixtures::{self, content};
use support::kpack;
use support::transform::analyse;

use super::{
    PAGE, ReadBundle, Room, bundle_of, bundles_in, bundles_of_file, changed_paths, code,
    compressed, entry_id, joined, snapshot, wrappers,
};
use crate::odd_code::{GFX1100, HOST, bundle, code_object};

#[test]
fn every_bundle_keeps_the_code_of_the_target_and_moves_to_the_front() {
    let room = Room::new();
    let bundles = [
        bundle_of(&["gfx1100", "gfx90a", "gfx942"], 1),
        bundle_of(&["gfx90a", "gfx1100"], 11),
        bundle_of(&["gfx1100"], 21),
    ];
    let before = room.library("tree/lib/libx.so", &bundles);
    room.thin("tree --target gfx1100 --out out").done();
    let after = room.path("out/tree/lib/libx.so");
    let expected = joined(&[1, 12, 21].map(|seed| bundle_of(&["gfx1100"], seed)));
    let found = kpack::bytes(&analyse(&after).fatbin());
    assert!(found == expected, "{} bytes, expected {}", found.len(), expected.len());
    assert_eq!(wrappers(&after), [0, 0x6000, 0xc000]);
    let [before, after] = [before, after].map(|path| fs::read(path).unwrap());
    let (_, size) = section(&before, ".hip_fatbin");
    let removed = size - expected.len().next_multiple_of(PAGE);
    assert_eq!(before.len() - after.len(), removed);
}

#[test]
fn several_targets_stay() {
    let room = Room::new();
    let library =
        room.library("tree/libx.so", &[bundle_of(&["gfx1100", "gfx90a", "gfx942", "gfx1201"], 1)]);
    let before = bundles_in(&library);
    for targets in ["gfx90a,gfx1201", "gfx1201 --target gfx90a"] {
        let _ = fs::remove_dir_all(room.path("out"));
        room.thin(&format!("tree --target {targets} --out out")).done();
        let after = bundles_in(&room.path("out/tree/libx.so"));
        assert_eq!(after[0].entries, before[0].only(&["gfx90a", "gfx1201"]));
    }
}

/// The name, address and bytes of each section.
fn sections(bytes: &[u8]) -> Vec<(String, u64, Vec<u8>)> {
    let file = object::File::parse(bytes).unwrap();
    let mut found = Vec::new();
    for section in file.sections() {
        let (name, data) = (section.name().unwrap(), section.data().unwrap());
        found.push((name.to_owned(), section.address(), data.to_vec()));
    }
    found
}

/// The device code, and the sections with its addresses or those of sections that make room for a program header.
const LEADING: [&str; 4] = [".dynamic", ".hipFatBinSegment", ".hip_fatbin", ".rela.dyn"];

#[test]
fn everything_outside_of_the_device_code_and_its_pointers_stays() {
    let room = Room::new();
    for binary in fixtures::committed() {
        let name = fixtures::name(&binary);
        room.write(&format!("tree/{name}"), fs::read(&binary).unwrap());
    }
    let report = room.thin("tree --target gfx1100 --out out --json").json();
    let names = changed_paths(&report);
    assert_eq!(names, ["bfd_pie", "bfd_shared", "lld_nopie", "lld_relr", "rdc"]);
    for name in names {
        let paths = ["tree", "out/tree"].map(|folder| room.path(&format!("{folder}/{name}")));
        let [before, after] = paths.each_ref().map(|path| bundles_in(path));
        assert_eq!(before.len(), after.len());
        for (before, after) in before.iter().zip(&after) {
            assert_eq!(after.entries, before.only(&["gfx1100"]), "{name}");
            assert_eq!(after.entries.len() + 1, before.entries.len(), "{name}");
        }
        let [old, new] = paths.each_ref().map(|path| wrappers(path));
        let number = |offset: &u64, of: &[ReadBundle]| {
            of.iter().position(|bundle| bundle.offset == *offset).unwrap()
        };
        let old: Vec<usize> = old.iter().map(|offset| number(offset, &before)).collect();
        let new: Vec<usize> = new.iter().map(|offset| number(offset, &after)).collect();
        assert_eq!(old, new, "{name}");
        let [before, after] = paths.map(|path| sections(&fs::read(path).unwrap()));
        assert_eq!(before.len(), after.len(), "{name}");
        let code = before.iter().find(|(name, ..)| name == ".hip_fatbin").unwrap().1;
        for ((section, address, bytes), now) in before.into_iter().zip(after) {
            assert_eq!(section, now.0, "{name}");
            assert!(address < code || address == now.1, "{name}: {section} moved");
            let stays = bytes == now.2 || LEADING.contains(&section.as_str());
            assert!(stays, "{name}: {section} changed");
        }
    }
}

#[test]
fn wrappers_and_symbols_follow_their_bundles() {
    let room = Room::new();
    let bundles = [bundle_of(&["gfx90a", "gfx1100"], 1), bundle_of(&["gfx942", "gfx1100"], 5)];
    // The first wrapper shares the bundle of the third one.
    let first = ".section .hipFatBinSegment,\"aw\",@progbits\n.p2align 3\n\
                 .long 0x48495046, 1\n.quad bundle1, 0\n";
    room.library_with("tree/libx.so", &bundles, first);
    room.thin("tree --target gfx1100 --out out").done();
    let after = room.path("out/tree/libx.so");
    assert_eq!(wrappers(&after), [0x6000, 0, 0x6000]);
    let bytes = fs::read(&after).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let start = file.section_by_name(".hip_fatbin").unwrap().address();
    for (name, offset) in [("bundle0", 0), ("bundle1", 0x6000)] {
        let symbol = file.symbols().find(|symbol| symbol.name() == Ok(name)).unwrap();
        assert_eq!(symbol.address(), start + offset, "{name}");
    }
}

#[test]
fn compressed_bundles_keep_their_version_and_method() {
    let room = Room::new();
    let plain = bundle_of(&["gfx1100", "gfx90a"], 1);
    let mut all = vec![plain.clone()];
    for version in VERSIONS {
        let methods = [CcobMethod::Zlib, CcobMethod::Zstd];
        all.extend(methods.map(|method| compressed(version, method, &plain)));
    }
    let library = room.library("tree/libx.so", &all);
    let before = bundles_in(&library);
    room.thin("tree --target gfx90a --in-place").done();
    let after = bundles_in(&library);
    assert_eq!(after.len(), 7);
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(after.compression, before.compression);
        assert_eq!(after.entries, before.only(&["gfx90a"]));
        assert!(after.offset.is_multiple_of(4096), "{after:?}");
    }
    let offsets: Vec<u64> = after.iter().map(|bundle| bundle.offset).collect();
    assert_eq!(wrappers(&library), offsets);
}

#[test]
fn thinning_twice_changes_nothing() {
    let room = Room::new();
    let plain = bundle_of(&["gfx1100", "gfx90a"], 1);
    let bundles = [compressed(2, CcobMethod::Zstd, &plain), plain];
    room.library("tree/lib/libx.so", &bundles);
    room.write("tree/lib/both.hsaco", bundle_of(&["gfx1100", "gfx90a"], 5));
    let first = room.thin("tree --target gfx1100 --in-place --json").json();
    assert_eq!(changed_paths(&first), ["lib/both.hsaco", "lib/libx.so"]);
    let before = snapshot(&room.path("tree"));
    let second = room.thin("tree --target gfx1100 --in-place --json").json();
    assert_eq!(changed_paths(&second), [""; 0]);
    assert_eq!(second["inputs"][0]["bytes_before"], first["inputs"][0]["bytes_after"]);
    assert_eq!(second["inputs"][0]["bytes_after"], first["inputs"][0]["bytes_after"]);
    assert_eq!(snapshot(&room.path("tree")), before);
}

#[test]
fn all_targets_change_nothing() {
    let room = Room::new();
    let plain = bundle_of(&["gfx1100", "gfx90a"], 1);
    let bundles = [compressed(3, CcobMethod::Zstd, &plain), plain];
    room.library("tree/lib/libx.so", &bundles);
    room.write("tree/lib/kernel.hsaco", code("gfx942", 7));
    let before = snapshot(&room.path("tree"));
    let targets = "tree --target gfx1100,gfx90a,gfx942";
    room.thin(&format!("{targets} --in-place")).done();
    assert_eq!(snapshot(&room.path("tree")), before);
    room.thin(&format!("{targets} --out out")).done();
    assert_eq!(snapshot(&room.path("out/tree")), before);
}

/// The file could not become shorter by a whole page.
#[test]
fn a_library_that_would_not_be_shorter_stays() {
    let room = Room::new();
    let gfx90a = entry_id("gfx90a");
    let entries = [
        (HOST, Vec::new()),
        (GFX1100, code_object(0x41, &"one ".repeat(200))),
        (gfx90a.as_str(), code_object(0x3f, &"two ".repeat(200))),
    ];
    let small = compressed(2, CcobMethod::Zstd, &bundle(&entries));
    room.library("tree/libx.so", &[small]);
    let before = snapshot(&room.path("tree"));
    let report = room.thin("tree --target gfx1100 --in-place --json").json();
    assert_eq!(changed_paths(&report), [""; 0]);
    assert_eq!(snapshot(&room.path("tree")), before);
}

#[test]
fn a_library_that_cannot_be_rewritten_keeps_its_code_with_a_finding() {
    let room = Room::new();
    let bundles = [bundle_of(&["gfx1100", "gfx90a"], 1)];
    let stray = ".data\n.p2align 3\n.quad bundle0 + 64\n";
    room.library_with("tree/lib/libstray.so", &bundles, stray);
    room.library("tree/lib/libx.so", &bundles);
    let before = fs::read(room.path("tree/lib/libstray.so")).unwrap();
    let run = room.thin("tree --target gfx1100 --in-place --json -v");
    assert!(run.stderr.contains("R037 kept-fat: tree/lib/libstray.so: "), "{}", run.stderr);
    let report = run.json();
    assert_eq!(changed_paths(&report), ["lib/libx.so"]);
    assert!(fs::read(room.path("tree/lib/libstray.so")).unwrap() == before);
    let [finding] = &report["findings"].as_array().unwrap()[..] else { panic!("{report}") };
    assert_eq!([&finding["code"], &finding["name"]].map(crate::text), ["R037", "kept-fat"]);
    assert_eq!(finding["targets"], serde_json::json!(["gfx1100", "gfx90a"]));
}

#[test]
fn code_outside_of_bundles_stays_with_a_finding() {
    let room = Room::new();
    let code_file = room.write("code", code("gfx90a", 3));
    let data = format!(
        ".section .rodata,\"a\",@progbits\n.byte 1, 2, 3\n.incbin \"{}\"\n",
        code_file.display()
    );
    let bundles = [bundle_of(&["gfx1100", "gfx90a"], 1)];
    room.library_with("tree/libx.so", &bundles, &data);
    let text = [&b"data\0"[..], &code("gfx90a", 4)].concat();
    room.write("tree/data.bin", &text);
    let report = room.thin("tree --target gfx1100 --in-place --json").json();
    assert_eq!(changed_paths(&report), ["libx.so"]);
    assert!(fs::read(room.path("tree/data.bin")).unwrap() == text);
    let library = fs::read(room.path("tree/libx.so")).unwrap();
    let (offset, size) = section(&library, ".rodata");
    assert!(library[offset..offset + size].ends_with(&code("gfx90a", 3)));
    let findings = report["findings"].as_array().unwrap().iter();
    let found: Vec<_> =
        findings.map(|finding| [&finding["code"], &finding["subject"]].map(crate::text)).collect();
    assert_eq!(found, [["R035", "tree/libx.so"], ["R141", "tree/data.bin"]]);
}

/// A library whose wrappers have no code fails when it starts a kernel, and so is refused unless that is allowed.
#[test]
fn a_wrapper_may_be_left_without_code_if_that_is_allowed() {
    for (name, lost) in [
        ("plain", bundle_of(&["gfx90a"], 5)),
        ("compressed", compressed(2, CcobMethod::Zstd, &bundle_of(&["gfx90a", "gfx942"], 5))),
    ] {
        note!("{name}");
        let room = Room::new();
        let library = room.library("tree/lib/liblost.so", slice::from_ref(&lost));
        room.library("tree/lib/libpart.so", &[lost, bundle_of(&["gfx1100", "gfx90a"], 9)]);
        let before = snapshot(&room.path("tree"));
        let run = room.thin("tree --target gfx1100 --in-place");
        run.failed(64, &["lib/liblost.so", "lib/libpart.so", "1 of 2 wrappers", "--allow-empty"]);
        assert_eq!(snapshot(&room.path("tree")), before);
        room.thin("tree --target gfx1100 --in-place --allow-empty").done();
        assert_eq!(wrappers(&library), [0]);
        assert_eq!(bundles_in(&library)[0].only(&["gfx90a", "gfx942"]).len(), 1, "{name}");
        let part = bundles_in(&room.path("tree/lib/libpart.so"));
        let ids: Vec<Vec<&str>> = part
            .iter()
            .map(|bundle| bundle.entries.iter().map(|(id, _)| id.as_str()).collect())
            .collect();
        assert_eq!(ids, [vec![HOST], vec![HOST, GFX1100]], "{name}");
    }
}

/// The code of this library is less than a page, and what is left of it has a few bytes.
#[test]
fn a_small_library_may_be_left_without_code_if_that_is_allowed() {
    let room = Room::new();
    let small = fixtures::folder().join("binaries/sub_page");
    room.write("tree/small", fs::read(&small).unwrap());
    room.usual("tree/libx.so");
    let run = room.thin("tree --target gfx90a --in-place");
    run.failed(64, &["tree/small", "--allow-empty"]);
    room.thin("tree --target gfx90a --in-place --allow-empty").done();
    assert_eq!(wrappers(&room.path("tree/small")), wrappers(&small));
}

#[test]
fn bundles_of_a_file_keep_their_alignment() {
    let room = Room::new();
    let [one, other] = [bundle_of(&["gfx1100", "gfx90a"], 1), bundle_of(&["gfx1100"], 11)];
    let file = room.write("tree/kernel.out", [&one[..], &other].concat());
    room.thin("tree --target gfx1100 --in-place").done();
    let thin = bundle_of(&["gfx1100"], 1);
    // Both lengths are odd multiples of 32.
    assert_eq!((one.len() % 64, thin.len() % 64), (32, 32));
    assert!(fs::read(&file).unwrap() == [thin, other].concat());
}

/// The HIP runtime reads entries where they are: an entry on a page stays on one, another need not be there.
#[test]
fn entries_of_a_bundle_keep_their_alignment() {
    let room = Room::new();
    let plain = bundle_of(&["gfx1100", "gfx90a"], 1);
    // The same bundle with its entries at multiples of 256.
    let (first, second) = (plain[PAGE..PAGE + 20_064].to_vec(), code("gfx90a", 2));
    let mut packed = plain[..PAGE].to_vec();
    let places = [(0x100_usize, &first), (0x5000, &second)];
    for (entry, (offset, _)) in [56 + HOST.len(), 80 + HOST.len() + 32].into_iter().zip(places) {
        packed[entry..entry + 8].copy_from_slice(&(offset as u64).to_le_bytes());
    }
    for (offset, code) in places {
        packed.resize(packed.len().max(offset + code.len()), 0);
        packed[offset..offset + code.len()].copy_from_slice(code);
    }
    let file = room.write("tree/kernel.out", &packed);
    let before = bundles_of_file(&file);
    room.thin("tree --target gfx90a --in-place").done();
    let thin = fs::read(&file).unwrap();
    assert_eq!(bundles_of_file(&file)[0].entries, before[0].only(&["gfx90a"]));
    assert_eq!(thin.len(), 0x100 + second.len());
    assert!(thin.ends_with(&second));
}

/// LLVM's tools find images in offload binaries by their own tables: they are no clang bundles.
#[test]
fn offload_binaries_stay_offload_binaries() {
    let codes = [code("gfx1100", 1), code("gfx90a", 2)];
    let triple = b"amdgcn-amd-amdhsa";
    let images: [[&[u8]; 3]; 2] = [[triple, b"gfx1100", &codes[0]], [triple, b"gfx90a", &codes[1]]];
    for version in [1, 2] {
        let room = Room::new();
        let file = room.write("tree/kernel.out", offload_binary(version, &images));
        room.thin("tree --target gfx1100 --in-place").done();
        let bundles = rockpack_elf::fatbin::parse(&content(&file)).unwrap();
        assert!(bundles.iter().all(|bundle| bundle.bundle.is_binary), "version {version}");
        let mut entries = bundles.iter().flat_map(|bundle| &bundle.bundle.entries);
        assert!(entries.any(|entry| kpack::bytes(&entry.content) == codes[0]));
    }
}

/// A symbol inside of a bundle would lead elsewhere in one that is written anew.
#[test]
fn a_library_that_cannot_be_rewritten_keeps_its_code_and_others_are_thinned() {
    let room = Room::new();
    room.usual("tree/libx.so");
    room.usual("tree/liby.so");
    let mut objcopy = Command::new("objcopy");
    objcopy.arg("--add-symbol").arg("inside=.hip_fatbin:0x1100,local");
    support::tools::need(&["objcopy"]);
    support::tools::run(objcopy.arg(room.path("tree/liby.so")));
    let before = fs::read(room.path("tree/liby.so")).unwrap();
    let report = room.thin("tree --target gfx1100 --in-place --json").json();
    assert_eq!(report["findings"][0]["code"], "R037");
    assert_eq!(report["findings"][0]["subject"], "tree/liby.so");
    let rows = super::changed(&report);
    assert_eq!(rows.iter().map(|row| row.0.as_str()).collect::<Vec<_>>(), ["libx.so"]);
    assert!(fs::read(room.path("tree/liby.so")).unwrap() == before);
}

//! Every code object is in its place, byte for byte, and nowhere else.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::example::{
    Entry, GROUPS, Group, PREFIX, Set, TAG, UNITS, bundles, entries, files, kernels, names,
    rockpack, sha256, shards, tags, tree, unbundle,
};
use support::{kpack, tools};

/// The SHA-256, by (key, arch), of the code that a group's packages must hold, and of the stray gfx906 code.
/// A bundle's position in its file differs between shards, so its tag identifies it.
fn originals(group: &Group) -> (BTreeMap<(String, String), String>, BTreeSet<String>) {
    let (mut grouped, mut stray) = (BTreeMap::new(), BTreeSet::new());
    let binaries: BTreeSet<&str> =
        UNITS.iter().map(|(key, _)| key.split('#').next().unwrap()).collect();
    for binary in binaries {
        let bytes = fs::read(group.original(&shards(), binary)).unwrap();
        for (arch, code) in bundles(&bytes).into_iter().flat_map(unbundle) {
            let found = tags(&code);
            if arch == "gfx906" {
                assert_eq!(found, [group.tag("axpy", &arch)]);
                stray.insert(support::sha256(&code));
                continue;
            }
            let of_binary = UNITS.iter().filter(|(key, _)| key.starts_with(binary));
            let mut keys = of_binary.filter(|(_, unit)| found == [group.tag(unit, &arch)]);
            let (key, _) = keys.next().unwrap_or_else(|| panic!("{binary}: {found:?}"));
            let other = grouped.insert(((*key).to_owned(), arch), support::sha256(&code));
            assert_eq!(other, None);
        }
    }
    (grouped, stray)
}

fn need_judges() {
    tools::need(&["dpkg-deb", "clang-offload-bundler-19"]);
    kpack::need_python();
}

/// Key, arch and digest of every row of the archives of a kernel package.
fn rows(root: &Path, group: &Group) -> BTreeMap<(String, String), String> {
    let mut rows = BTreeMap::new();
    for arch in group.archs {
        let file = root.join(format!("{PREFIX}/lib/.kpack/blas_lib_{arch}.kpack"));
        let archive = kpack::python("kpack_reader.py", &[file.to_str().unwrap()]).unwrap();
        assert_eq!(archive["gfx_arches"], serde_json::json!([arch]));
        assert_eq!(archive["gfx_arch_family"], **arch);
        assert_eq!(archive["group_name"], "blas_lib");
        for (key, targets) in archive["rows"].as_object().unwrap() {
            for (target, row) in targets.as_object().unwrap() {
                let digest = row["sha256"].as_str().unwrap().to_owned();
                let other = rows.insert((key.clone(), target.clone()), digest);
                assert_eq!(other, None, "{key} {target} is in two archives");
            }
        }
    }
    rows
}

#[test]
fn archives_hold_every_code_object_of_their_group_and_no_other() {
    need_judges();
    let set = Set::build();
    let mut packed = 0;
    for group in &GROUPS {
        let root = set.scratch(group.name);
        set.unpack_debs(&[&kernels(group)], &root);
        let (expected, _) = originals(group);
        assert_eq!(expected.len(), UNITS.len() * group.archs.len());
        assert_eq!(rows(&root, group), expected, "{}", group.name);
        packed += expected.len();
    }
    assert_eq!(in_archives(&set.receipt()).len(), packed);
}

/// The receipt's records of code objects in archives, without those in database files.
fn in_archives(receipt: &Value) -> Vec<&Value> {
    let records = receipt["code_objects"].as_array().unwrap();
    records.iter().filter(|record| record.get("archive").is_some()).collect()
}

#[test]
fn the_receipt_says_where_each_code_object_went() {
    need_judges();
    let set = Set::build();
    let mut expected = BTreeSet::new();
    for group in &GROUPS {
        for ((key, arch), digest) in originals(group).0 {
            let archive = format!("/{PREFIX}/lib/.kpack/blas_lib_{arch}.kpack");
            let shard = format!("{}-build", group.shard);
            expected.insert([digest, arch, shard, kernels(group), archive, key]);
        }
    }
    let receipt = set.receipt();
    let records = in_archives(&receipt);
    let found: BTreeSet<_> = records
        .iter()
        .map(|record| {
            ["sha256", "target", "shard", "package", "archive", "key"]
                .map(|name| record[name].as_str().unwrap().to_owned())
        })
        .collect();
    assert_eq!(found, expected);
    assert_eq!(records.len(), expected.len());
}

#[test]
fn the_stray_arch_is_in_no_package_and_in_one_finding() {
    need_judges();
    let set = Set::build();
    let strays: BTreeSet<String> = GROUPS.iter().flat_map(|group| originals(group).1).collect();
    assert_eq!(strays.len(), 3, "one code object of each shard, all different");
    let receipt = set.receipt();
    let findings = receipt["findings"].as_array().unwrap();
    let named: Vec<_> = findings.iter().filter(|finding| finding["code"] == "R012").collect();
    assert_eq!(named.len(), 1);
    let finding = named[0];
    assert_eq!(finding["subject"], "gfx906");
    assert_eq!(finding["severity"], "warning");
    let digests: BTreeSet<_> = finding["code_objects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|digest| digest.as_str().unwrap().to_owned())
        .collect();
    assert_eq!(digests, strays);
    let message = finding["message"].as_str().unwrap();
    assert!(message.contains('3') && message.contains("lib/libexblas.so.1.2"), "{message}");

    let root = set.scratch("all");
    let packages: Vec<String> =
        GROUPS.iter().map(kernels).chain(["rocm-blas".to_owned()]).collect();
    for package in &packages {
        set.unpack_debs(&[package], &root);
    }
    for (path, bytes) in files(&root) {
        assert!(!bytes.windows(6).any(|window| window == b"gfx906"), "{path} names gfx906");
    }
}

#[test]
fn database_files_are_their_shards_own() {
    tools::need(&["dpkg-deb"]);
    let set = Set::build();
    for group in &GROUPS {
        let root = set.scratch(group.name);
        set.unpack_debs(&[&kernels(group)], &root);
        let mut tagged = 0;
        for (path, bytes) in files(&root) {
            let path = path.strip_prefix(&format!("{PREFIX}/")).unwrap();
            if path.ends_with(".kpack") {
                continue;
            }
            assert_eq!(bytes, fs::read(group.original(&shards(), path)).unwrap(), "{path}");
            for tag in tags(&bytes) {
                let unit = match path {
                    _ if path.contains("Kernels.so") => "kernels",
                    _ if path.contains("fallback") => "fallback",
                    _ => "tensile",
                };
                let arch = group.archs.iter().find(|arch| path.contains(**arch)).unwrap();
                assert_eq!(tag, group.tag(unit, arch), "{path}");
                tagged += 1;
            }
        }
        assert_eq!(tagged, 3 * group.archs.len(), "{}", group.name);
    }
}

/// Tells whether the bytes are a code object: an ELF file for machine 224.
fn is_code_object(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF") && bytes.get(18..20) == Some(&[224, 0])
}

#[test]
fn host_packages_hold_no_device_code() {
    tools::need(&["dpkg-deb"]);
    let set = Set::build();
    let root = set.scratch("hosts");
    set.unpack_debs(&["rocm-blas", "rocm-host-suite-sparse"], &root);
    let original = fs::read(GROUPS[0].original(&shards(), "lib/libexblas.so.1.2")).unwrap();
    for sign in [TAG.as_bytes(), b"CCOB", b"__CLANG_OFFLOAD_BUNDLE__", b"\xe0\0\x01\0\0\0"] {
        assert!(holds(&original, sign), "the original has {sign:?}");
        for (path, bytes) in files(&root) {
            assert!(!holds(&bytes, sign), "{path}: {}", String::from_utf8_lossy(sign));
            assert!(!is_code_object(&bytes), "{path}");
        }
    }
    // Host files unrelated to device code are packed unchanged.
    let stage = "blas_lib_gfx110X-dgpu/math-libs/BLAS/hipBLAS/stage/lib/libexcblas.so.1.0";
    let original = fs::read(shards().join("gfx110X-build").join(stage)).unwrap();
    assert_eq!(files(&root)[&format!("{PREFIX}/lib/libexcblas.so.1.0")], original);
}

fn holds(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|part| part == text)
}

#[test]
fn verify_agrees_and_notices_what_is_missing() {
    let set = Set::build();
    tools::run(&mut verify_set(&set));
    let (one, other) = (set.deb(&kernels(&GROUPS[0])), set.deb(&kernels(&GROUPS[1])));
    fs::copy(other, one).unwrap();
    let output = verify_set(&set).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("rocm-blas-gfx110x_7.1.0-1_amd64.deb"), "{text}");
}

fn verify_set(set: &Set) -> Command {
    let mut command = rockpack();
    command.arg("verify").arg(set.out()).arg("--against").arg(shards());
    command
}

/// The members of a package, one of the `packages` of a receipt, by path.
fn members(
    packages: &Value,
    record: &Value,
) -> BTreeMap<String, (String, Option<u64>, Option<String>)> {
    let member = |(path, entry): (String, Value)| {
        let path = path.trim_start_matches('/').to_owned();
        let kind = entry["kind"].as_str().unwrap_or("file");
        let mode = entry["mode"].as_u64().or(Some(0o644));
        match kind {
            "link" => (path, (kind.to_owned(), None, text(&entry["target"]))),
            "file" => (path, (kind.to_owned(), mode, text(&entry["sha256"]))),
            _ => (path, (kind.to_owned(), mode, None)),
        }
    };
    entries(packages, record).into_iter().map(member).collect()
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

#[test]
fn the_receipt_agrees_with_the_files() {
    tools::need(&["sha256sum", "dpkg-deb", "rpm2cpio", "cpio"]);
    let set = Set::build();
    let receipt = set.receipt();
    assert_eq!(receipt["version"], "7.1.0");
    assert_eq!(receipt["prefix"], "/opt/rocm-7.1");
    let records = receipt["packages"].as_array().unwrap();
    let named: BTreeSet<_> =
        records.iter().map(|record| record["file_name"].as_str().unwrap().to_owned()).collect();
    let mut files = names(&set.out());
    files.remove("packages.json");
    assert_eq!(named, files);
    assert_eq!(records.len(), files.len());
    let mut digests = BTreeMap::new();
    for record in records {
        let name = record["file_name"].as_str().unwrap();
        let file = set.file(name);
        assert_eq!(record["sha256"], sha256(&file), "{name}");
        assert_eq!(record["size"], file.metadata().unwrap().len(), "{name}");
        let root = set.scratch(name);
        fs::create_dir(&root).unwrap();
        tools::unpack(&set.file(name), &root);
        let mut found: BTreeMap<_, _> =
            tree(&root).into_iter().map(|(path, entry)| (path, described(entry))).collect();
        if name.ends_with(".rpm") {
            // cpio creates the folders that no package owns.
            for folder in ["opt", "etc", "etc/ld.so.conf.d", "usr", "usr/share"] {
                found.remove(folder);
            }
            found.remove("usr/share/licenses");
        }
        assert_eq!(members(&receipt["packages"], record), found, "{name}");
        for (path, mut entry) in found.into_iter().filter(|(path, _)| path.starts_with(PREFIX)) {
            // A library has the mode that tools of its format expect.
            if path.contains("/lib/lib") && entry.0 == "file" {
                let mode = if name.ends_with(".rpm") { 0o755 } else { 0o644 };
                assert_eq!(entry.1.replace(0), Some(mode), "{path} of {name}");
            }
            let same = digests.entry(path.clone()).or_insert_with(|| entry.clone()) == &entry;
            assert!(same, "{path} is not the same in .deb and .rpm");
        }
    }
}

fn described(entry: Entry) -> (String, Option<u64>, Option<String>) {
    match entry {
        Entry::Folder { mode } => ("directory".to_owned(), Some(u64::from(mode)), None),
        Entry::Link { target } => ("link".to_owned(), None, Some(target)),
        Entry::File { mode, bytes } => {
            let digest = support::sha256(&bytes);
            ("file".to_owned(), Some(u64::from(mode)), Some(digest))
        }
    }
}

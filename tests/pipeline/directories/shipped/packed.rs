//! Components' archives in packages: unchanged, at their paths, in the package of their archs.

use std::fs;
use std::path::Path;

use support::example::{build_of, tree};
use support::{kpack, tools};

use crate::directories::shipped::{
    added, archive, expected, installed, shards_with, verifies, write,
};
use crate::directories::{Work, assert_same_packages};

#[test]
fn they_keep_their_bytes_and_paths_in_the_package_of_their_archs() {
    kpack::need_python();
    let work = Work::new();
    let (added, out) = (added(), work.path("out"));
    let shards = shards_with(&work, &added);
    let output = tools::run(build_of(&shards, &out).arg("-v"));
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(!said.contains("R040"), "{said}");
    for (name, archs) in [("group", "gfx1100, gfx1101"), ("apart", "gfx1100, gfx1151")] {
        let finding = format!("lib/foo/{name}.kpack: is a kernel archive for {archs}, which");
        assert!(said.contains("R060") && said.contains(&finding), "{said}");
    }
    let installed = installed(&work, &out);
    for (path, bytes) in added.iter().flatten() {
        let (package, found) = &installed[path];
        assert_eq!(*package, expected()[path], "{path}");
        assert!(found == bytes, "{path}");
    }
    // An independent reader finds the keys there.
    let (_, bytes) = &installed["lib/foo/apart.kpack"];
    let file = work.path("apart.kpack");
    fs::write(&file, bytes).unwrap();
    let judged = kpack::python("kpack_reader.py", &[file.to_str().unwrap()]).unwrap();
    assert_eq!(judged["keys"], serde_json::json!(["0f3c", "conv/fwd.co"]));
    for arch in ["gfx1100", "gfx1151"] {
        let code = kpack::code_object(if arch == "gfx1100" { 0x41 } else { 0x4a }, "");
        let code = [code, format!("conv/fwd.co {arch}").into_bytes()].concat();
        assert_eq!(judged["rows"]["conv/fwd.co"][arch]["sha256"], kpack::sha256(&code));
    }
    verifies(&out, None);
    verifies(&out, Some(&shards));
}

#[test]
fn the_receipt_lists_their_code_objects_by_key() {
    kpack::need_python();
    let work = Work::new();
    let out = work.build(&shards_with(&work, &added()), "out");
    let receipt: serde_json::Value =
        serde_json::from_slice(&fs::read(out.join("packages.json")).unwrap()).unwrap();
    let records = receipt["code_objects"].as_array().unwrap();
    let expected: Vec<_> = ["0f3c", "conv/fwd.co"]
        .into_iter()
        .flat_map(|key| ["gfx1100", "gfx1151"].map(|arch| (key, arch)))
        .map(|(key, arch)| [key, arch, "rocm-blas-kernels-common", "gfx110X-build"])
        .collect();
    assert_eq!(records_of(records, "lib/foo/apart.kpack"), expected);
    assert_eq!(records_of(records, "lib/foo/one.kpack").len(), 2);
}

/// The entries, targets, packages and shards of a file's code objects.
fn records_of(records: &[serde_json::Value], file: &str) -> Vec<[String; 4]> {
    let own = records.iter().filter(|it| it["file"] == format!("/opt/rocm-7.1/{file}"));
    let keys = ["entry", "target", "package", "shard"];
    own.map(|it| keys.map(|name| it[name].as_str().unwrap().to_owned())).collect()
}

#[test]
fn packages_are_the_same_whether_or_not_their_artifacts_were_split() {
    kpack::need_python();
    let work = Work::new();
    let shards = shards_with(&work, &added());
    let direct = work.build(&shards, "direct");
    let split = work.split(&shards, "split");
    assert_same_packages(&direct, &work.build(&split, "from-split"), |_| true);
    assert!(tree(&split) == tree(&work.split(&split, "twice")));
    let recombined = work.recombine(&split, "recombined");
    assert_same_packages(&direct, &work.build(&recombined, "from-recombined"), |_| true);
    assert!(tree(&recombined) == tree(&work.recombine(&shards, "recombined-at-once")));
    for folder in [&split, &recombined] {
        verifies(folder, None);
        verifies(&direct, Some(folder));
    }
    // An artifact can be installed alone, so each arch has its own copy of a shared file.
    let shard = split.join("gfx110X-build");
    let stage = "math-libs/BLAS/rocBLAS/stage";
    for (arch, name, exists) in [
        ("gfx1100", "lib/foo/apart.kpack", true),
        ("gfx1100", "lib/foo/one.kpack", false),
        ("gfx1101", "lib/foo/one.kpack", true),
        ("gfx1101", "lib/foo/group.kpack", true),
        ("gfx1151", "lib/foo/apart.kpack", true),
        ("generic", "lib/foo", false),
    ] {
        let path = shard.join(format!("blas_lib_{arch}/{stage}/{name}"));
        assert_eq!(path.exists(), exists, "{}", path.display());
    }
}

#[test]
fn verify_names_what_is_gone_or_changed() {
    kpack::need_python();
    let work = Work::new();
    let added = added();
    let shards = shards_with(&work, &added);
    let path = "lib/foo/one.kpack";
    let original = support::example::GROUPS[0].original(&shards, path);
    fs::remove_file(&original).unwrap();
    work.build(&shards, "without");
    let code = kpack::code_object(kpack::mach::GFX1101, "other code");
    fs::write(&original, kpack::shipped(&[("0f3c", "gfx1101", code)])).unwrap();
    work.build(&shards, "other");
    // The same code, stored differently: the library may check the archive's digest.
    let rows = ["0f3c", "conv/fwd.co"].map(|key| {
        (key, "gfx1101", kpack::code_object(kpack::mach::GFX1101, &format!("{key} gfx1101")))
    });
    fs::write(&original, kpack::shipped_with(&["gfx1101"], &rows, "none")).unwrap();
    work.build(&shards, "stored");
    fs::write(&original, &added[0][path]).unwrap();
    verify_fails(&work.path("without"), &shards, path, &["V013"]);
    verify_fails(&work.path("other"), &shards, path, &["V011", "V013"]);
    verify_fails(&work.path("stored"), &shards, path, &["V013"]);
}

fn verify_fails(out: &Path, shards: &Path, path: &str, codes: &[&str]) {
    let mut command = support::example::rockpack();
    command.arg("verify").arg(out).arg("--against").arg(shards);
    let (said, _) = crate::directories::ends_with(&mut command, 1);
    for code in codes {
        let named = |line: &str| line.contains(code) && line.contains(path);
        assert!(said.lines().any(named), "{code} {said}");
    }
}

/// A component of only archives: after the split, each is in the artifact of its arch.
#[test]
fn verify_knows_the_arch_of_a_split_artifact_without_binaries() {
    kpack::need_python();
    let work = Work::new();
    let shard = work.path("shards/one");
    let fat = shard.join("dnn_lib_gfx110X-dgpu");
    write(&fat.join("artifact_manifest.txt"), b"libs/dnn/stage\n");
    write(&fat.join("libs/dnn/stage/share/dnn/a.json"), b"{}");
    for (name, arch) in
        [("a", ("gfx1100", kpack::mach::GFX1100)), ("b", ("gfx1101", kpack::mach::GFX1101))]
    {
        write(&fat.join(format!("libs/dnn/stage/lib/dnn/{name}.kpack")), &archive(&[arch]));
    }
    let split = work.split(&work.path("shards"), "split");
    verifies(&split, None);
    let [right, wrong] = ["gfx1101", "gfx1100"]
        .map(|arch| split.join(format!("one/dnn_lib_{arch}/libs/dnn/stage/lib/dnn/b.kpack")));
    assert!(right.is_file(), "{:?}", tree(&split).keys());
    fs::rename(right, wrong).unwrap();
    let mut command = support::example::rockpack();
    let (said, _) = crate::directories::ends_with(command.arg("verify").arg(&split), 1);
    assert!(said.contains("V022") && said.contains("dnn_lib_gfx1100"), "{said}");
}

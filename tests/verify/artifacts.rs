//! `verify` and `inspect` on bundles of several archs, packed artifacts, bad links and
//! folders of other kinds.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::program;
use support::tampered::{Run, shard, verify};
use support::tools;
use tempfile::TempDir;

const STAGE: &str = "math-libs/BLAS/rocBLAS/stage";
const DATABASE: &str = "lib/rocblas/library";
const BUNDLE: &str = "Kernels.so-001.hsaco";

/// A shard of the libraries of an example shard.
struct Shard(TempDir);

impl Shard {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("shard")).unwrap();
        let mut copy = Command::new("cp");
        tools::run(copy.arg("-r").arg(shard("gfx110X")).arg(folder.path().join("shard")));
        Self(folder)
    }

    fn root(&self) -> PathBuf {
        self.0.path().join("shard")
    }

    fn artifact(&self) -> PathBuf {
        self.root().join("blas_lib_gfx110X-dgpu")
    }

    fn stage(&self) -> PathBuf {
        self.artifact().join(STAGE)
    }

    fn split(&self) -> PathBuf {
        let out = self.0.path().join("split");
        let mut split = rockpack("split");
        tools::run(split.arg("--artifacts").arg(self.root()).arg("--output-dir").arg(&out));
        out
    }

    fn pack(&self) -> PathBuf {
        let packed = self.0.path().join("packed/shard/blas_lib_gfx110X-dgpu.tar.xz");
        fs::create_dir_all(packed.parent().unwrap()).unwrap();
        let mut tar = Command::new("tar");
        tar.arg("-cJf").arg(&packed).arg("-C").arg(self.artifact());
        let entries = fs::read_dir(self.artifact()).unwrap().map(|entry| entry.unwrap());
        let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
        names.sort();
        tools::run(tar.args(names));
        packed
    }
}

fn rockpack(command: &str) -> Command {
    let mut rockpack = program::rockpack();
    rockpack.arg(command);
    rockpack
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// An offload bundle of the code objects of two archs.
fn bundle(archs: [&str; 2]) -> Vec<u8> {
    let code = archs.map(|arch| {
        let name = format!("{DATABASE}/TensileLibrary_{arch}.co");
        fs::read(shard("gfx110X").join(STAGE).join(name)).unwrap()
    });
    let ids = archs.map(|arch| format!("hipv4-amdgcn-amd-amdhsa--{arch}"));
    let entries = [
        ("host-x86_64-unknown-linux-gnu-", &[][..]),
        (ids[0].as_str(), code[0].as_slice()),
        (ids[1].as_str(), code[1].as_slice()),
    ];
    let mut offset = 0x1000;
    let mut table = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    table.extend((entries.len() as u64).to_le_bytes());
    let mut blob = Vec::new();
    for (id, bytes) in entries {
        for number in [offset, bytes.len(), id.len()] {
            table.extend((number as u64).to_le_bytes());
        }
        table.extend(id.as_bytes());
        blob.extend(bytes);
        let padded = blob.len().next_multiple_of(0x1000);
        blob.resize(padded, 0);
        offset = 0x1000 + blob.len();
    }
    table.resize(0x1000, 0);
    table.extend(blob);
    table
}

#[test]
fn a_bundle_of_several_archs_lies_in_the_artifact_of_each() {
    let shard = Shard::new();
    let archs = ["gfx1100", "gfx1101"];
    fs::write(shard.stage().join(DATABASE).join(BUNDLE), bundle(archs)).unwrap();
    verify(&[text(&shard.root())], &[]).fired(&[]);
    let split = shard.split();
    let root = split.join("shard");
    let [first, second, third] = [archs[0], archs[1], "gfx1102"].map(|arch| bundle_of(&root, arch));
    assert!(first.exists() && second.exists() && !third.exists());
    verify(&[text(&root)], &[]).fired(&[]);
    verify(&[text(&root.join("blas_lib_gfx1100"))], &[]).fired(&[]);
    fs::rename(&second, &third).unwrap();
    let run = verify(&[text(&root)], &[]);
    run.fired(&["V022"]);
    assert!(run.text.contains("blas_lib_gfx1101 does not have the same file"), "{}", run.text);
    assert!(
        run.text.contains("holds code for gfx1100; the package is for gfx1102"),
        "{}",
        run.text
    );
    fs::remove_file(third).unwrap();
    fs::write(second, bundle(["gfx1101", "gfx1100"])).unwrap();
    verify(&[text(&root)], &[]).fired(&["V022", "V040"]);
}

fn bundle_of(root: &Path, arch: &str) -> PathBuf {
    root.join(format!("blas_lib_{arch}")).join(STAGE).join(DATABASE).join(BUNDLE)
}

#[test]
fn one_bad_link_does_not_keep_the_rest_from_being_checked() {
    let shard = Shard::new();
    let link = shard.stage().join("lib/libbad.so");
    symlink("/nowhere/libbad.so", &link).unwrap();
    let run = verify(&[text(&shard.root())], &[]);
    run.fired(&["V060"]);
    let json: serde_json::Value = serde_json::from_str(&run.text).unwrap();
    assert_eq!(json["artifacts"], 1);
    assert!(json["files"].as_u64().unwrap() > 10, "{}", run.text);
    let problem = &json["problems"][0];
    assert_eq!(problem["subject"], text(&link));
    let message = problem["message"].as_str().unwrap();
    assert!(message.contains("/nowhere") && !message.contains(text(&link)), "{message}");
    let code = shard.stage().join(DATABASE).join("TensileLibrary_gfx1100.co");
    fs::write(code, "").unwrap();
    verify(&[text(&shard.root())], &[]).fired(&["V025", "V060"]);
}

#[test]
fn a_packed_artifact_is_verified_and_inspected_by_its_name() {
    let shard = Shard::new();
    let packed = shard.pack();
    let run = verify(&[text(&packed)], &[]);
    run.fired(&[]);
    let json: serde_json::Value = serde_json::from_str(&run.text).unwrap();
    assert_eq!(json["artifacts"], 1);
    assert_eq!(inspected(&packed), inspected(&shard.artifact()));
    let bytes = fs::read(&packed).unwrap();
    fs::write(&packed, &bytes[..bytes.len() / 2]).unwrap();
    verify(&[text(&packed)], &[]).fired(&["V060"]);
    let shard = Shard::new();
    fs::write(shard.stage().join(DATABASE).join("TensileLibrary_gfx1100.co"), "").unwrap();
    verify(&[text(&shard.pack())], &[]).fired(&["V025"]);
}

/// The report of `inspect` about an artifact, without its path.
fn inspected(path: &Path) -> serde_json::Value {
    let output: Output = rockpack("inspect").arg("--json").arg(path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    json[0]["file"] = "".into();
    json
}

#[test]
fn the_folder_above_a_prefix_is_told_how_to_name_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("rocm-7.1/share")).unwrap();
    fs::create_dir_all(folder.path().join("rocm-7.1/lib/.kpack")).unwrap();
    let run = verify(&[text(folder.path())], &[]);
    assert_eq!(run.status, 64, "{}", run.text);
    assert!(run.text.contains("--installed"), "{}", run.text);
}

#[test]
fn an_empty_archive_is_told_with_its_path() {
    let shard = Shard::new();
    let root = shard.split().join("shard");
    let archive =
        root.join("blas_lib_gfx1100").join(STAGE).join("lib/.kpack/blas_lib_gfx1100.kpack");
    fs::write(&archive, "").unwrap();
    let mut split = rockpack("split");
    split.arg("--artifacts").arg(&root).arg("--output-dir").arg(shard.0.path().join("again"));
    let output = split.output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains(text(&archive)), "{message}");
    verify(&[text(&root)], &[]).fired(&["V023"]);
}

#[test]
fn v033_a_prefix_whose_archives_of_an_arch_are_gone() {
    let shard = Shard::new();
    let root = shard.split().join("shard");
    let prefix = shard.0.path().join("prefix");
    fs::create_dir(&prefix).unwrap();
    for artifact in ["generic", "gfx1100", "gfx1101"] {
        let stage = root.join(format!("blas_lib_{artifact}")).join(STAGE);
        tools::run(Command::new("cp").arg("-r").arg(stage.join(".")).arg(&prefix));
    }
    verify(&[text(&prefix)], &[]).fired(&[]);
    fs::remove_file(prefix.join("lib/.kpack/blas_lib_gfx1100.kpack")).unwrap();
    verify(&[text(&prefix)], &[]).fired(&["V033"]);
}

/// An artifact with two stage prefixes, `p` and `q`.
struct Two(TempDir);

impl Two {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let two = Self(folder);
        for prefix in ["p", "q"] {
            fs::create_dir_all(two.at(prefix, "lib")).unwrap();
        }
        fs::write(two.root().join("artifact_manifest.txt"), "p/stage\nq/stage\n").unwrap();
        two
    }

    fn root(&self) -> PathBuf {
        self.0.path().join("a_lib_generic")
    }

    fn at(&self, prefix: &str, path: &str) -> PathBuf {
        self.root().join(prefix).join("stage").join(path)
    }

    fn verify(&self) -> Run {
        verify(&[self.root().to_str().unwrap()], &[])
    }
}

#[test]
fn v040_two_stage_prefixes_that_differ_at_one_path() {
    let fat = shard("gfx110X").join(STAGE).join("lib/libexblas.so.1.2");
    let two = Two::new();
    let [one, other] = ["p", "q"].map(|prefix| two.at(prefix, "lib/x.txt"));
    fs::write(&one, "text").unwrap();
    fs::write(&other, "text").unwrap();
    two.verify().fired(&[]);
    fs::write(&other, fs::read(&fat).unwrap()).unwrap();
    let run = two.verify();
    run.fired(&["V040"]);
    assert!(run.text.contains("differs between the prefixes p/stage and q/stage"), "{}", run.text);
    fs::copy(&one, &other).unwrap();
    fs::set_permissions(&other, fs::Permissions::from_mode(0o755)).unwrap();
    two.verify().fired(&["V040"]);
    fs::remove_file(&other).unwrap();
    symlink("y.txt", &other).unwrap();
    fs::write(two.at("q", "lib/y.txt"), "text").unwrap();
    two.verify().fired(&["V040"]);
    // A folder that has to hold what lies in the other prefix.
    fs::remove_file(&other).unwrap();
    fs::create_dir(&other).unwrap();
    two.verify().fired(&["V040"]);
}

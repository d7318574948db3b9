//! Device code in rare shapes: unusual entry spellings, wrappers without code, code outside of `.hip_fatbin`,
//! offload binaries, and compressed bundles of several frames. Build, `verify`, `inspect` and `extract` agree on them.

mod binaries;
mod data_files;
mod embedded;
mod frames;
mod spellings;
mod without_code;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rockpack_core::content::Content;
use rockpack_elf::offload_bundle;
use rockpack_package::receipt::Receipt;
use rockpack_report::{Code, Finding};
use serde_json::Value;
use support::example::rockpack;
use support::program::build_here;
use support::tampered::{self, Run};
use support::tools;
use tempfile::TempDir;

pub const HOST: &str = "host-x86_64-unknown-linux-gnu-";
pub const GFX1100: &str = "hipv4-amdgcn-amd-amdhsa--gfx1100";
const GFX1101: &str = "hipv4-amdgcn-amd-amdhsa--gfx1101";

/// `e_flags` of gfx1100, of gfx1101, and of an unknown processor.
const FLAGS: u32 = 0x41;
const GFX1101_FLAGS: u32 = 0x46;
const UNKNOWN_FLAGS: u32 = 0xfe;

/// A code object without program headers and sections, of version 4.
pub fn code_object(flags: u32, text: &str) -> Vec<u8> {
    let mut file = vec![0_u8; 64];
    file[..9].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1, 64, 2]);
    (file[16], file[18], file[20]) = (3, 224, 1);
    file[48..52].copy_from_slice(&flags.to_le_bytes());
    for (at, size) in [(52, 64_u16), (54, 56), (58, 64)] {
        file[at..at + 2].copy_from_slice(&size.to_le_bytes());
    }
    file.extend(text.as_bytes());
    file
}

pub fn bundle(entries: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let entry =
        |(id, bytes): &(&str, Vec<u8>)| ((*id).to_owned(), Content::of_bytes(bytes.clone()));
    let entries: Vec<_> = entries.iter().map(entry).collect();
    let bundle = offload_bundle::write(&entries).unwrap();
    bundle.read_vec(0..bundle.len(), 1 << 24, "bundle").unwrap()
}

/// A bundle of one code object for gfx1100.
fn usual(text: &str) -> Vec<u8> {
    bundle(&[(HOST, Vec::new()), (GFX1100, code_object(FLAGS, text))])
}

/// A shard with files, and the packages built from it.
struct Case {
    folder: TempDir,
}

impl Case {
    fn new() -> Self {
        let case = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir_all(case.file("lib")).unwrap();
        fs::write(case.artifact().join("artifact_manifest.txt"), "odd/stage\n").unwrap();
        case
    }

    fn shards(&self) -> PathBuf {
        self.folder.path().join("shards")
    }

    fn artifact(&self) -> PathBuf {
        self.shards().join("one/odd_lib_gfx1100")
    }

    /// The path of a file by install path.
    fn file(&self, path: &str) -> PathBuf {
        self.artifact().join("odd/stage").join(path)
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    /// Links `lib/libodd.so` with a wrapper for each of `bundles`, and `more` assembly.
    fn library(&self, bundles: &[Vec<u8>], more: &str) -> PathBuf {
        self.library_called("libodd.so", bundles, more)
    }

    /// Links another library than [`Case::library`] in the same way.
    fn library_called(&self, name: &str, bundles: &[Vec<u8>], more: &str) -> PathBuf {
        let library = self.file(&format!("lib/{name}"));
        link(self.folder.path(), &library, bundles, more);
        library
    }

    fn build(&self, options: &[&str]) -> Command {
        let mut command = rockpack();
        command.args(["build", "--version", "7.1.0", "--format", "deb,rpm", "--artifacts"]);
        command.arg(self.shards()).arg("--out").arg(self.out()).args(options);
        command
    }

    /// Builds packages, and verifies them against the artifacts; returns the findings.
    fn built(&self) -> Vec<Finding> {
        self.built_with(&[])
    }

    /// Does the same as `built`, with further options.
    fn built_with(&self, options: &[&str]) -> Vec<Finding> {
        build_here(&self.build(options));
        self.verify().fired(&[]);
        let receipt = Receipt::parse(&fs::read(self.receipt()).unwrap()).unwrap();
        receipt.findings.into_iter().collect()
    }

    fn verify(&self) -> Run {
        let (out, shards) = (self.out(), self.shards());
        let against = ["--against", shards.to_str().unwrap()];
        tampered::verify(&[out.to_str().unwrap()], &against)
    }

    /// Verifies the packages without the artifacts.
    fn verify_packages(&self) -> Run {
        tampered::verify(&[self.out().to_str().unwrap()], &[])
    }

    fn receipt(&self) -> PathBuf {
        self.out().join("packages.json")
    }

    /// Removes the findings with a code from the receipt.
    fn forget(&self, code: &str) {
        let mut receipt = Receipt::parse(&fs::read(self.receipt()).unwrap()).unwrap();
        receipt.findings.retain(|finding| finding.code() != Code::of_id(code));
        fs::write(self.receipt(), receipt.to_bytes().unwrap()).unwrap();
    }

    /// The error of a build that fails.
    fn refusal(&self) -> String {
        let output = self.build(&[]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    }
}

/// Links the library `out` with a wrapper for each of `bundles`, and `more` assembly.
pub fn link(folder: &Path, out: &Path, bundles: &[Vec<u8>], more: &str) {
    tools::need(&["gcc"]);
    let mut source = more.to_owned() + "\n";
    for (index, bundle) in bundles.iter().enumerate() {
        let file = folder.join(format!("bundle{index}"));
        fs::write(&file, bundle).unwrap();
        source += &format!(
            ".section .hip_fatbin,\"a\",@progbits\n.p2align 12\nbundle{index}: .incbin \"{}\"\n\
             .p2align 12\n.section .hipFatBinSegment,\"aw\",@progbits\n.p2align 3\n\
             .long 0x48495046, 1\n.quad bundle{index}, 0\n",
            file.display()
        );
    }
    let file = folder.join("odd.s");
    fs::write(&file, source).unwrap();
    let mut gcc = Command::new("gcc");
    gcc.args(["-shared", "-nostdlib", "-o"]).arg(out);
    gcc.arg(format!("-Wl,-soname,{}", out.file_name().unwrap().display()));
    tools::run(gcc.arg("-Wl,-z,noexecstack").arg(file));
}

/// The findings with a code.
fn with_code<'a>(findings: &'a [Finding], code: &str) -> impl Iterator<Item = &'a Finding> {
    let code = Code::of_id(code);
    findings.iter().filter(move |finding| finding.code() == code)
}

/// The path of the file that a finding is about.
fn path_of(finding: &Finding) -> String {
    finding.field::<Value>("file").unwrap()["path"].as_str().unwrap().to_owned()
}

/// The messages of the findings with a code.
fn messages(findings: &[Finding], code: &str) -> Vec<String> {
    with_code(findings, code).map(|finding| finding.message().to_owned()).collect()
}

/// The codes of the findings about device code.
fn of_device_code(findings: &[Finding]) -> BTreeSet<&'static str> {
    let codes = findings.iter().map(|finding| finding.code().unwrap().id);
    codes.filter(|code| ("R010".."R050").contains(code)).collect()
}

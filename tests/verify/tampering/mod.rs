//! Packages in which a byte was changed, with every digest brought up to date: `verify --against` has to
//! find each, and none where nothing was changed.

pub mod loose;
mod random;
mod shim;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use rockpack_core::run::Budget;
use rockpack_report::Silent;
use rockpack_signing::Trust;
use rockpack_split::input::artifact::Scan;
use rockpack_verify::{self as verify, Extent, Options, Report};
use support::program::{repository, rockpack};
use support::sweep;
use support::tampered::{self, Run, Set, section};
use support::{fixtures, tools};
use tempfile::TempDir;

use loose::LooseDeb;

const LIBRARY: &str = "opt/rocm-7.1/lib/libx.so.1";
const SMALL: &str = "opt/rocm-7.1/lib/libsmall.so.1";
const TOOL: &str = "opt/rocm-7.1/bin/tool";
const LINK: &str = "opt/rocm-7.1/lib/libsmall.so";
const TEXT: &str = "opt/rocm-7.1/share/x/text.txt";

/// Groups of the archs that the fixtures have code for.
const CONFIGURATION: &str = r#"{ "architecture_groups": { "gfxX": { "display_name": "X",
    "architectures": ["gfx90a", "gfx1030", "gfx1100"] } }, "runpath": "origin" }"#;

/// An artifact of a component, and folders to build into.
struct Shard(TempDir);

impl Shard {
    fn new() -> Self {
        let shard = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(shard.stage("lib")).unwrap();
        let manifest = shard.artifact().join("artifact_manifest.txt");
        fs::write(manifest, "math-libs/stage\n").unwrap();
        fs::write(shard.path("configuration.json"), CONFIGURATION).unwrap();
        shard
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn artifact(&self) -> PathBuf {
        self.path("shards/one/blas_lib_gfx90a")
    }

    fn stage(&self, path: &str) -> PathBuf {
        self.artifact().join("math-libs/stage").join(path)
    }

    /// Adds a file.
    fn add(&self, path: &str, bytes: &[u8], mode: u32) {
        let place = self.stage(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(&place, bytes).unwrap();
        fs::set_permissions(place, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Builds the `.deb` packages of `artifacts`.
    fn build(&self, artifacts: &str, out: &str) {
        self.build_into(artifacts, &self.path(out));
    }

    fn build_into(&self, artifacts: &str, out: &Path) {
        let mut build = rockpack();
        build.arg("build").arg("--artifacts").arg(self.path(artifacts));
        build.args(["--version", "7.1.0", "--format", "deb", "--config"]);
        tools::run(build.arg(self.path("configuration.json")).arg("--out").arg(out));
    }

    fn verify(&self, packages: &[&str], artifacts: &str) -> Run {
        let paths: Vec<_> = packages.iter().map(|name| self.path(name)).collect();
        let paths: Vec<_> = paths.iter().map(|path| path.to_str().unwrap()).collect();
        tampered::verify(&paths, &["--against", self.path(artifacts).to_str().unwrap()])
    }
}

/// A small, complete set, and its host package taken apart.
struct SmallSet {
    shard: Shard,
    host: LooseDeb,
    scan: Scan,
}

const HOST: &str = "out/rocm-blas_7.1.0-1_amd64.deb";
const KERNELS: &str = "out/rocm-blas-gfxx_7.1.0-1_amd64.deb";

/// A set of one binary, from which pages are cut out and in which tables make room.
fn set_of_a_library() -> &'static SmallSet {
    static MADE: OnceLock<SmallSet> = OnceLock::new();
    MADE.get_or_init(|| {
        let shard = Shard::new();
        shard.add("lib/libx.so.1", &fixture("bfd_shared"), 0o755);
        SmallSet::build(shard)
    })
}

/// A set of files of every kind, with a binary that keeps its code.
fn set_of_every_kind() -> &'static SmallSet {
    static MADE: OnceLock<SmallSet> = OnceLock::new();
    MADE.get_or_init(|| {
        let shard = Shard::new();
        shard.add("lib/libsmall.so.1", &fixture("sub_page"), 0o755);
        shard.add("bin/tool", b"#!/bin/sh\nexit 0\n", 0o755);
        shard.add("share/x/text.txt", b"some text\n", 0o644);
        symlink("libsmall.so.1", shard.stage("lib/libsmall.so")).unwrap();
        SmallSet::build(shard)
    })
}

fn fixture(name: &str) -> Vec<u8> {
    fs::read(repository("tests/fixtures/binaries").join(name)).unwrap()
}

impl SmallSet {
    fn build(shard: Shard) -> Self {
        tools::need(&["dpkg-deb"]);
        shard.build("shards", "out");
        let host = LooseDeb::read(&shard.path(HOST));
        let scan = fixtures::scan(&[shard.path("shards")]).unwrap();
        Self { shard, host, scan }
    }

    /// Verifies the kernel package and this host package, without a receipt.
    fn judge(&self, name: &str, host: &LooseDeb) -> Run {
        host.write(&self.shard.path(name));
        let report = self.report(&self.shard.path(name));
        let text = serde_json::to_string_pretty(&report).unwrap();
        Run { status: i32::from(!report.problems.is_empty()), text }
    }

    /// The checks that fail.
    fn failing(&self, package: &Path) -> BTreeSet<&'static str> {
        self.report(package).problems.iter().map(|problem| problem.code().id()).collect()
    }

    /// Verifies a host package with the kernel package in this process.
    fn report(&self, package: &Path) -> Report {
        let trust = Trust::default();
        let options = Options {
            installed: false,
            against: Some(&self.scan),
            binaries: Vec::new(),
            wheels: Vec::new(),
            extent: Extent::Whole,
            trust,
            budget: Budget::unlimited(),
            sysfs: PathBuf::new(),
        };
        let paths = [package.to_owned(), self.shard.path(KERNELS)];
        verify::verify(&paths, &options, &Silent).unwrap()
    }
}

/// A change of the bytes of a file.
type Change = fn(&mut Vec<u8>);

/// A change that makes an ELF file an odd one.
type OddShape<'a> = dyn Fn(&mut Vec<u8>) + 'a;

/// The library with a change of its bytes.
fn changed(change: impl FnOnce(&mut Vec<u8>)) -> LooseDeb {
    let host = &set_of_a_library().host;
    let mut bytes = host.content(LIBRARY).to_vec();
    change(&mut bytes);
    host.with(LIBRARY, &bytes)
}

#[test]
fn v013_one_byte_of_any_part_of_a_library() {
    let set = set_of_a_library();
    set.judge("same.deb", &set.host).fired(&[]);
    let sections = [
        ".note.gnu.build-id",
        ".gnu.hash",
        ".dynsym",
        ".dynstr",
        ".gnu.version",
        ".gnu.version_r",
        ".rela.dyn",
        ".rela.plt",
        ".rodata",
        ".eh_frame",
        ".tdata",
        ".init_array",
        ".data.rel.ro",
        ".dynamic",
        ".got.plt",
        ".data",
        ".comment",
    ];
    for name in sections {
        let run = set.judge(
            "section.deb",
            &changed(|bytes| {
                let (offset, size) = section(bytes, name);
                bytes[offset + size / 2] ^= 1;
            }),
        );
        assert!(run.codes().contains(&"V013".to_owned()), "{name}: {}", run.text);
        assert!(run.text.contains(name), "{name}: {}", run.text);
    }
}

/// What an attacker does to a library whose bytes of code and data stay as they are.
#[test]
fn v013_attacks_on_the_headers_of_a_library() {
    let attacks: [(&str, &str, Change); 15] = [
        ("entry", "the ELF header", |bytes| bytes[24] ^= 0x10),
        ("flags", "the ELF header", |bytes| bytes[48] ^= 1),
        ("a writable segment", "the load segments", |bytes| flip(bytes, LOAD, 4, 2)),
        ("an executable segment", "the load segments", |bytes| flip(bytes, LOAD, 4, 1)),
        ("more memory than bytes", "the load segments", |bytes| flip(bytes, LOAD, 40, 8)),
        ("code that is not executable", ".init", |bytes| flip(bytes, LOAD, 56 + 4, 1)),
        ("other bytes at the address", ".gnu.hash", |bytes| flip(bytes, LOAD, 9, 16)),
        ("a note that is loaded", "the program headers", |bytes| flip(bytes, NOTE, 0, NOTE ^ LOAD)),
        ("an executable stack", "the program headers", |bytes| flip(bytes, STACK, 4, 1)),
        ("a further library", ".dynamic", |bytes| add_tag(bytes, 1, 1)),
        ("a further search path", ".dynamic", |bytes| add_tag(bytes, 29, 1)),
        ("other symbols", ".dynamic", |bytes| {
            let at = tag(bytes, 6);
            bytes[at + 8] ^= 24;
        }),
        ("a section's flags", ".init", |bytes| {
            let table = usize::from_le_bytes(bytes[40..48].try_into().unwrap());
            bytes[table + 9 * 64 + 8] ^= 1;
        }),
        ("bytes at the end", "bytes of no section", |bytes| bytes.extend([7; 64])),
        ("a gap", "bytes of no section", |bytes| {
            let (offset, size) = section(bytes, ".rela.plt");
            bytes[offset + size + 8] = 1;
        }),
    ];
    for (name, part, change) in attacks {
        let run = set_of_a_library().judge("header.deb", &changed(change));
        assert!(run.codes().contains(&"V013".to_owned()), "{name}: {}", run.text);
        assert!(run.text.contains(part), "{name}: {}", run.text);
    }
}

/// Types of program headers.
const LOAD: u8 = 1;
const NOTE: u8 = 4;
const STACK: u8 = 0x51;

/// Changes a byte behind the start of the first program header with this lowest byte of its type.
fn flip(bytes: &mut [u8], kind: u8, field: usize, bits: u8) {
    let at = (64..).step_by(56).find(|at| bytes[*at] == kind).unwrap();
    bytes[at + field] ^= bits;
}

/// The offset of the first entry of the dynamic section with a tag.
fn tag(bytes: &[u8], tag: u8) -> usize {
    let (offset, _) = section(bytes, ".dynamic");
    (offset..).step_by(16).find(|at| bytes[*at] == tag && bytes[at + 1..at + 8] == [0; 7]).unwrap()
}

/// Adds an entry to the dynamic section in place of its end, which has zeros behind it.
fn add_tag(bytes: &mut [u8], kind: u8, value: u8) {
    let at = tag(bytes, 0);
    (bytes[at], bytes[at + 8]) = (kind, value);
}

#[test]
fn v013_or_v090_other_files_their_modes_owners_and_links() {
    let set = set_of_every_kind();
    set.judge("same.deb", &set.host).fired(&[]);
    let cases = [
        ("V013", set.host.with(TEXT, b"other text\n")),
        ("V013", set.host.with(TOOL, b"#!/bin/sh\nexit 1\n")),
        ("V013", set.host.with_field(LINK, 157, b"libother.so.1")),
        ("V013", set.host.with_field(TOOL, 100, b"0000644\0")),
        ("V013", set.host.with_field(TEXT, 100, b"0000666\0")),
        ("V013", set.host.with_field(SMALL, 100, b"0000777\0")),
        ("V013", set.host.with_field("opt/rocm-7.1/share/x", 100, b"0000777\0")),
        ("V090", set.host.with_field(TOOL, 108, b"0001750\0")),
        ("V090", set.host.with_field(TEXT, 265, b"games\0")),
        ("V090", set.host.with_field(LINK, 297, b"games\0")),
    ];
    for (code, host) in cases {
        set.judge("other.deb", &host).fired(&[code]);
    }
    let host = set.host.with_field(TOOL, 100, b"0004755\0");
    set.judge("other.deb", &host).fired(&["V013", "V100"]);
    // A named pipe in place of a link.
    let host = set.host.with_field(LINK, 156, b"6");
    set.judge("other.deb", &host).fired(&["V013", "V101"]);
}

/// Adds fixtures as compilers made them and after tools that packagers use, as the shard's libraries.
fn add_binaries(shard: &Shard) {
    let treatments = [
        ("as-built", "true"),
        ("strip", "strip $1"),
        ("objcopy", "objcopy $1"),
        ("run-path", "patchelf --set-rpath /build/x/stage/lib:/opt/rocm-7.1/lib/a/long/way $1"),
        ("appended", "echo an archive behind the sections >> $1"),
    ];
    tools::need(&["gcc", "strip", "objcopy", "patchelf", "sh"]);
    let mut originals = fixtures::committed();
    if sweep::all() {
        originals.extend_from_slice(fixtures::matrix());
    }
    // Linkers keep relocations there that no loader reads.
    let kept = fixtures::assembled("emit-relocs", &["-Wl,--emit-relocs"]);
    shard.add("lib/emit-relocs.so", &fs::read(kept).unwrap(), 0o755);
    for (name, command) in treatments {
        for original in &originals {
            let path = format!("lib/{name}-{}", fixtures::name(original));
            shard.add(&path, &fs::read(original).unwrap(), 0o755);
            let mut treat = Command::new("sh");
            tools::run(treat.args(["-ec", command, "sh"]).arg(shard.stage(&path)));
        }
    }
}

/// Fat artifacts, and the same split before.
#[test]
fn binaries_of_many_shapes_have_the_form_of_their_builds() {
    let shard = Shard::new();
    add_binaries(&shard);
    shard.build("shards", "of-fat");
    shard.verify(&["of-fat"], "shards").fired(&[]);
    let mut split = rockpack();
    split.arg("split").arg("--artifacts").arg(shard.path("shards"));
    tools::run(split.arg("--output-dir").arg(shard.path("split")));
    shard.build("split", "of-split");
    shard.verify(&["of-split"], "split").fired(&[]);
    shard.verify(&["of-split"], "shards").fired(&[]);
}

/// A library with `DT_RPATH` in place of `DT_RUNPATH` differs in one byte, and the receipt has to say so.
#[test]
fn v013_an_rpath_that_no_receipt_names() {
    tools::need(&["dpkg-deb"]);
    let shard = Shard::new();
    shard.add("lib/libx.so.1", &fixture("bfd_shared"), 0o755);
    let built = ["keep", "rpath"].map(|runpath| {
        let config = CONFIGURATION.replace("origin", runpath);
        fs::write(shard.path("configuration.json"), config).unwrap();
        shard.build("shards", runpath);
        let host = shard.path(&HOST.replace("out", runpath));
        LooseDeb::read(&host).content(LIBRARY).to_vec()
    });
    let [kept, changed] = &built;
    assert_eq!(kept.len(), changed.len());
    let pairs = kept.iter().zip(changed).filter(|(one, other)| one != other);
    assert_eq!(pairs.collect::<Vec<_>>(), [(&29, &15)]);
    shard.verify(&["rpath"], "shards").fired(&[]);
    let alone = [HOST, KERNELS].map(|name| name.replace("out", "rpath"));
    let run = shard.verify(&alone.each_ref().map(String::as_str), "shards");
    assert!(run.codes().contains(&"V013".to_owned()), "{}", run.text);
}

/// A file that build packs unchanged, since it is no binary with device code, is a plain file for `verify`.
#[test]
fn odd_elf_files_are_files_like_others() {
    tools::need(&["gcc"]);
    let shard = Shard::new();
    shard.add("lib/libx.so.1", &fixture("sub_page"), 0o755);
    let source = shard.path("source.c");
    fs::write(&source, "int f(void) { return 1; }").unwrap();
    let plain = shard.path("plain.so");
    tools::run(Command::new("gcc").args(["-shared", "-fPIC", "-o"]).args([&plain, &source]));
    let plain = fs::read(plain).unwrap();
    let table = usize::from_le_bytes(plain[40..48].try_into().unwrap());
    let count = usize::from(u16::from_le_bytes([plain[60], plain[61]]));
    let rows: Vec<usize> = (1..count).map(|index| table + index * 64).collect();
    let dynamic = *rows.iter().find(|row| plain[**row + 4] == 6).unwrap();
    let shapes: [(&str, &OddShape<'_>); 5] = [
        ("version", &|bytes| bytes[6] = 7),
        ("dynamic-elsewhere", &|bytes| bytes[dynamic + 24 + 5] = 1),
        ("dynamic-of-no-strings", &|bytes| bytes[dynamic + 40] = 0xff),
        ("many-dynamic", &|bytes| rows.iter().take(7).for_each(|row| bytes[row + 4] = 6)),
        ("all-executable", &|bytes| {
            for row in &rows {
                bytes[row + 4..row + 8].copy_from_slice(&[1, 0, 0, 0]);
                bytes[row + 8] = 6;
                bytes[row + 24..row + 32].fill(0);
                bytes[row + 32..row + 40].copy_from_slice(&(plain.len() as u64 - 64).to_le_bytes());
            }
        }),
    ];
    for (name, change) in shapes {
        let mut bytes = plain.clone();
        change(&mut bytes);
        shard.add(&format!("lib/lib{name}.so"), &bytes, 0o755);
    }
    shard.build("shards", "out");
    shard.verify(&["out"], "shards").fired(&[]);
    let host = LooseDeb::read(&shard.path(HOST));
    for (name, _) in shapes {
        let path = format!("opt/rocm-7.1/lib/lib{name}.so");
        let mut bytes = host.content(&path).to_vec();
        *bytes.last_mut().unwrap() ^= 1;
        host.with(&path, &bytes).write(&shard.path("odd.deb"));
        let run = shard.verify(&["odd.deb", KERNELS], "shards");
        assert!(run.codes().contains(&"V013".to_owned()), "{name}: {}", run.text);
    }
}

/// A library of the host whose search path leads to the prefix, which becomes one relative to the file.
#[test]
fn v013_a_byte_of_a_library_whose_search_path_was_written_anew() {
    tools::need(&["gcc", "dpkg-deb"]);
    let shard = Shard::new();
    let source = shard.path("source.c");
    fs::write(&source, "int data = 5; int f(void) { return data; }").unwrap();
    let library = shard.path("plain.so");
    let mut gcc = Command::new("gcc");
    gcc.args(["-shared", "-fPIC", "-Wl,-rpath,/opt/rocm-7.1/lib/private", "-o"]);
    tools::run(gcc.args([&library, &source]));
    shard.add("lib/libplain.so", &fs::read(library).unwrap(), 0o755);
    shard.add("lib/libx.so.1", &fixture("sub_page"), 0o755);
    let set = Set::empty();
    shard.build_into("shards", &set.path(""));
    let set = set.reopen();
    let artifacts = shard.path("shards");
    let against = ["--against", artifacts.to_str().unwrap()];
    set.fires(&against, &[]);
    let path = "opt/rocm-7.1/lib/libplain.so";
    let built = set.file_of(&set.host(), path);
    let search = built.windows(15).position(|bytes| bytes == b"$ORIGIN/private").unwrap();
    for at in [search, search + 16, section(&built, ".data").0, section(&built, ".dynamic").0 + 8] {
        let mut bytes = built.clone();
        bytes[at] ^= 1;
        set.edit(&set.host(), |root| fs::write(root.join(path), bytes).unwrap());
        let run = set.verify(&against);
        assert!(run.codes().contains(&"V013".to_owned()), "{at}: {}", run.text);
    }
}

/// The loader finds where a program lies by this header.
#[test]
fn v013_a_program_without_the_header_of_its_program_headers() {
    let shard = Shard::new();
    shard.add("bin/program", &fixture("bfd_pie"), 0o755);
    let set = SmallSet::build(shard);
    set.judge("same.deb", &set.host).fired(&[]);
    let path = "opt/rocm-7.1/bin/program";
    let mut bytes = set.host.content(path).to_vec();
    let end = 64 + usize::from(bytes[56]) * 56;
    assert_eq!(bytes[64], 6, "the first header is that of the program headers");
    bytes.copy_within(64 + 56..end, 64);
    bytes[end - 56..end].fill(0);
    bytes[56] -= 1;
    let run = set.judge("header.deb", &set.host.with(path, &bytes));
    run.fired(&["V013"]);
    assert!(run.text.contains("the program headers"), "{}", run.text);
}

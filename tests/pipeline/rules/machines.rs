//! ELF files for machines other than x86-64: an error, or data listed in `other_machines`.

use std::fs;
use std::process::Command;

use support::example::{GROUPS, rockpack};
use support::tools;

use crate::rules::{Case, TOML, library, patch, write};

/// A machine's usual name, `EI_CLASS`, `EI_DATA` and the bytes of `e_machine`.
type Machine = (&'static str, u8, u8, [u8; 2]);

const AARCH64: Machine = ("AArch64", 2, 1, [183, 0]);
const X86: Machine = ("32-bit x86", 1, 1, [3, 0]);
const X32: Machine = ("32-bit x86-64", 1, 1, [62, 0]);
const POWERPC: Machine = ("big-endian PowerPC", 2, 2, [0, 21]);
const BPF: Machine = ("BPF", 2, 1, [247, 0]);

const FAT: &str = "lib/libexblas.so.1.2";
const ALLOWED: &str = "other_machines = ['share/emulator/**', 'lib/*.a', 'lib/bpf/*.o']\n";

/// An ELF file of `kind` (`e_type`) that consists of only its header.
fn elf((_, class, data, machine): Machine, kind: u8) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, data, 1]);
    bytes[if data == 1 { 16 } else { 17 }] = kind;
    bytes[18..20].copy_from_slice(&machine);
    bytes
}

/// A case with an emulator's samples, a library with a member for another machine in either form of names,
/// and a BPF object. All of them are data for programs that read them.
fn with_data() -> Case {
    let case = Case::new();
    write(&case.file(0, "share/emulator/one/sample.elf"), &elf(AARCH64, 2));
    write(&case.file(0, "share/emulator/sample.so"), &elf(X86, 3));
    let long = [b"long_name.o\0".to_vec(), elf(POWERPC, 1)].concat();
    let members = [("/", b"none".to_vec()), ("x.o/", elf(AARCH64, 1)), ("#1/12", long)];
    write(&case.file(0, "lib/libsample.a"), &library(&members));
    write(&case.file(0, "lib/bpf/trace.o"), &elf(BPF, 1));
    case
}

#[test]
fn all_of_them_are_refused_together_by_file_and_machine() {
    let case = with_data();
    patch(&case.file(0, FAT), |bytes| bytes[18..20].copy_from_slice(&AARCH64.3));
    write(&case.file(1, "lib/libx32.so.1"), &elf(X32, 3));
    let expected = [
        "splitting gfx110X-build/blas_lib_gfx110X-dgpu: reading lib/bpf/trace.o: ",
        "reading lib/libexblas.so.1.2: ",
        "libexblas.so.1.2: at offset 0x0: is an ELF file for AArch64, but packages are for x86-64",
        "sample.elf: at offset 0x0: is an ELF file for AArch64,",
        "sample.so: at offset 0x0: is an ELF file for 32-bit x86,",
        "libsample.a: at offset 0x0: is a static archive with members for big-endian PowerPC, AArch64,",
        "trace.o: at offset 0x0: is an ELF file for BPF,",
        "splitting gfx1151-build/blas_lib_gfx1151: reading lib/libx32.so.1: ",
        "libx32.so.1: at offset 0x0: is an ELF file for 32-bit x86-64,",
        "help: build the artifact for x86-64, or leave the file out of it",
        "`other_machines` in the configuration",
    ];
    case.is_refused("", &expected);
    let mut commands = ["plan", "recombine", "split"].map(|command| {
        let mut run = rockpack();
        run.arg(command).arg("--artifacts").arg(case.shards());
        run
    });
    commands[1].arg("--output-dir").arg(case.folder.path().join("recombined"));
    commands[2].arg("--output-dir").arg(case.folder.path().join("split"));
    for command in &mut commands {
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        for text in &expected {
            assert!(said.contains(text), "no `{text}` in\n{said}");
        }
    }
    assert!(!case.folder.path().join("recombined/blas_lib_generic").exists());
    assert!(!case.folder.path().join("split/gfx110X-build/blas_lib_generic").exists());
}

#[test]
fn data_is_packed_with_a_finding() {
    let case = with_data().built(ALLOWED);
    let said: Vec<String> = case
        .findings("R039")
        .iter()
        .map(|finding| finding["message"].as_str().unwrap().to_owned())
        .collect();
    let words = "packed as data because `other_machines` allows it";
    let expected = [
        format!("1 file for 32-bit x86, not x86-64, is {words} (share/emulator/sample.so)"),
        format!("1 file for BPF, not x86-64, is {words} (lib/bpf/trace.o)"),
        format!("1 file for big-endian PowerPC, not x86-64, is {words} (lib/libsample.a)"),
        format!(
            "2 files for AArch64, not x86-64, are {words} (lib/libsample.a, \
             share/emulator/one/sample.elf)"
        ),
    ];
    assert_eq!(said, expected);
}

/// Files that are allowed stay unchanged.
#[test]
fn split_and_recombine_leave_allowed_files_as_they_are() {
    let case = with_data();
    let (split, joined) = (case.folder.path().join("split"), case.folder.path().join("joined"));
    let mut command = rockpack();
    command.arg("split").arg("--artifacts").arg(case.shards()).arg("--output-dir").arg(&split);
    command.args(["--other-machines", "share/emulator/**", "lib/*.a", "lib/bpf/*.o"]);
    let said = tools::said(command.arg("--verbose"));
    assert!(said.contains("R039 other-machine-allowed: gfx110X-build/blas_lib_"), "{said}");
    let refused = recombine(&case, "").output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("trace.o: at offset 0x0: is an ELF file for BPF"), "{said}");
    tools::succeed(&mut recombine(&case, ALLOWED));
    let stage = "math-libs/BLAS/rocBLAS/stage/lib/libsample.a";
    let file = joined.join("blas_lib_generic").join(stage);
    assert_eq!(fs::read(file).unwrap(), fs::read(case.file(0, "lib/libsample.a")).unwrap());
}

fn recombine(case: &Case, keys: &str) -> Command {
    let [config, split, joined] =
        ["allowed.toml", "split", "joined"].map(|name| case.folder.path().join(name));
    fs::write(&config, format!("{keys}{TOML}")).unwrap();
    let mut command = rockpack();
    command.arg("recombine").arg("--artifacts").arg(split).arg("--output-dir").arg(joined);
    command.arg("--config").arg(config);
    command
}

#[test]
fn what_is_for_x86_64_and_what_is_no_elf_file_is_no_other_machine() {
    let case = Case::new();
    const NATIVE: Machine = ("x86-64", 2, 1, [62, 0]);
    let members = [("x.o/", elf(NATIVE, 1)), ("notes/", b"\x7fELF".to_vec())];
    write(&case.file(0, "lib/libnative.a"), &library(&members));
    write(&case.file(0, "lib/native.o"), &elf(NATIVE, 1));
    write(&case.file(0, "share/fuzz/class"), &elf(("", 7, 1, [183, 0]), 3));
    write(&case.file(0, "share/fuzz/order"), &elf(("", 2, 0, [183, 0]), 3));
    write(&case.file(0, "share/fuzz/short"), &elf(AARCH64, 3)[..19]);
    assert!(case.built("").findings("R039").is_empty());
}

#[test]
fn globs_that_no_file_matches_are_refused() {
    let case = Case::new();
    let config = "other_machines = ['share/**', '/opt/rocm/x', '']\n";
    let expected = [
        "other_machines.1: `/opt/rocm/x` cannot match a path below the prefix",
        "other_machines.2: `` cannot match a path below the prefix",
        "help: write it as in `share/emulator/**/*.elf`",
    ];
    // Top-level keys come before the configuration's tables.
    let file = case.folder.path().join("packaging.toml");
    fs::write(&file, config).unwrap();
    let mut plan = rockpack();
    plan.arg("plan").arg("--artifacts").arg(case.shards()).arg("--config").arg(file);
    let mut split = rockpack();
    split.arg("split").arg("--artifacts").arg(GROUPS[0].folder(&case.shards()));
    split.arg("--output-dir").arg(case.out()).args(["--other-machines", "/opt/rocm/x"]);
    for (mut command, code, expected) in [
        (plan, 64, &expected[..]),
        (split, 64, &["--other-machines: `/opt/rocm/x` cannot match a path"]),
    ] {
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{said}");
        for text in expected {
            assert!(said.contains(text), "no `{text}` in\n{said}");
        }
    }
}

//! Loading as the HIP runtime does: by marker, path of the binary and target IDs.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::archives::{Draft, code, digest, marker};
use crate::program::{both, by_tool, command, run};

const PATTERN: &str = "../.kpack/blas_@GFXARCH@.kpack";

/// An installed library with archives for some targets, each with other code objects.
struct Installed {
    folder: TempDir,
}

fn contents(target: &str) -> Vec<Vec<u8>> {
    let seed: u32 = target.bytes().map(u32::from).sum();
    (0..3).map(|index| code(seed * 10 + index, 30_000 + index as usize)).collect()
}

impl Installed {
    fn new(targets: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("lib")).unwrap();
        let installed = Self { folder };
        for target in targets {
            Draft::zstd(&[target], &contents(target)).write(installed.archive(target));
        }
        marker(installed.path(), &[PATTERN]);
        installed
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn archive(&self, name: &str) -> std::path::PathBuf {
        self.path().join(format!(".kpack/blas_{name}.kpack"))
    }

    fn words(&self, name: &str, count: &str, devices: &[&str]) -> Vec<String> {
        let fixed = [name.to_owned(), self.file("marker"), self.file("lib/x.so"), count.to_owned()];
        fixed.into_iter().chain(devices.iter().map(|device| (*device).to_owned())).collect()
    }

    fn file(&self, name: &str) -> String {
        self.path().join(name).to_str().unwrap().to_owned()
    }

    fn command(&self, name: &str, count: &str, devices: &[&str]) -> std::process::Command {
        let words = self.words(name, count, devices);
        command(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// The lines of a first and a second load of wrapper 0, and the errors.
    fn load(&self, devices: &[&str], variables: &[(&str, &str)]) -> (String, String) {
        let mut command = self.command("load", "1", devices);
        both(command.envs(variables.iter().copied()))
    }
}

fn loaded(target: &str) -> String {
    let content = &contents(target)[0];
    format!("0 {} {}\n", content.len(), digest(content)).repeat(2)
}

#[test]
fn the_most_specific_target_of_the_first_device_is_loaded() {
    let installed = Installed::new(&["gfx90a", "gfx90a:xnack-", "gfx11-generic", "gfx1100"]);
    let triple = "amdgcn-amd-amdhsa--";
    for (devices, wanted) in [
        (&["gfx90a:sramecc+:xnack-"][..], "gfx90a:xnack-"),
        (&["gfx90a:sramecc+:xnack+"], "gfx90a"),
        (&["gfx1100", "gfx11-generic"], "gfx1100"),
        (&["gfx1103", "gfx11-generic"], "gfx11-generic"),
    ] {
        let names: Vec<String> = devices.iter().map(|name| format!("{triple}{name}")).collect();
        let with_triple: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(installed.load(devices, &[]), (loaded(wanted), String::new()));
        assert_eq!(installed.load(&with_triple, &[]), (loaded(wanted), String::new()));
    }
}

/// The HIP runtime silently skips a device on 13 and 14, so the library reports it once.
#[test]
fn a_device_without_kernels_is_skipped_and_told_once() {
    let installed = Installed::new(&["gfx1100"]);
    let (out, errors) = installed.load(&["gfx1103"], &[]);
    assert!(out.lines().count() == 2 && out.lines().all(|line| line.starts_with("13 ")), "{out}");
    assert!(errors.starts_with("rocm-kpack: no archive has gfx1103 for lib/x.so; looked in "));
    assert!(errors.contains("blas_gfx1103.kpack") && errors.lines().count() == 1, "{errors}");
    let silent = installed.load(&["gfx1103"], &[("ROCM_KPACK_QUIET", "1")]);
    assert_eq!(silent, (out, String::new()));
    // An archive that exists and does not list the target.
    marker(installed.path(), &["../.kpack/blas_gfx1100.kpack"]);
    let (out, errors) = installed.load(&["gfx1103"], &[]);
    assert!(
        out.lines().all(|line| line.starts_with("14 ") && line.contains("blas_gfx1100")),
        "{out}"
    );
    assert_eq!(errors.lines().count(), 1);
    // A target that is listed without a row fails all devices, without a line about a missing target.
    let mut draft = Draft::zstd(&["gfx1103"], &contents("gfx1103"));
    draft.rows.clear();
    draft.write(installed.archive("gfx1100"));
    let (out, errors) = installed.load(&["gfx1103"], &[]);
    assert!(out.lines().all(|line| line.starts_with("5 ")) && errors.is_empty(), "{out}{errors}");
}

#[test]
fn a_damaged_archive_is_passed_over_for_one_that_is_whole() {
    let installed = Installed::new(&["gfx1100"]);
    let paths =
        ["../.kpack/missing", "../.kpack/bad", "../.kpack/late", "../.kpack/blas_@GFXARCH@.kpack"];
    marker(installed.path(), &paths);
    fs::write(installed.path().join(".kpack/bad"), b"no archive at all").unwrap();
    let mut late = Draft::zstd(&["gfx1100"], &contents("gfx1100"));
    late.rows[0].3 = 1.into();
    late.write(installed.path().join(".kpack/late"));
    assert_eq!(installed.load(&["gfx1100"], &[]), (loaded("gfx1100"), String::new()));
    fs::remove_file(installed.archive("gfx1100")).unwrap();
    let (out, _) = installed.load(&["gfx1100"], &[]);
    assert!(out.lines().all(|line| line.starts_with("6 ") && line.contains("/late: ")), "{out}");
    fs::remove_file(installed.path().join(".kpack/late")).unwrap();
    let (out, _) = installed.load(&["gfx1100"], &[]);
    assert!(
        out.lines().all(|line| line.starts_with("13 ") && line.contains("/bad: not a kernel")),
        "{out}"
    );
}

#[test]
fn environment_variables_decide_where_archives_are_sought() {
    let installed = Installed::new(&["gfx1100"]);
    let path = installed.path().join("other.kpack");
    Draft::stored(&["gfx1100"], &contents("other")).write(&path);
    let other = path.to_str().unwrap();
    let devices = &["gfx1100"][..];
    let lists = format!(":/nowhere::{other}:");
    for (variables, wanted) in [
        (&[("ROCM_KPACK_PATH", lists.as_str())][..], "other"),
        (&[("ROCM_KPACK_PATH_PREFIX", lists.as_str())], "other"),
        (&[("ROCM_KPACK_PATH_PREFIX", "/nowhere")], "gfx1100"),
        (&[("ROCM_KPACK_PATH", "::"), ("ROCM_KPACK_PATH_PREFIX", other)], "other"),
        (&[("ROCM_KPACK_DISABLE", "0")], "gfx1100"),
        (&[("ROCM_KPACK_DISABLE", "")], "gfx1100"),
        (&[("ROCM_KPACK_DEBUG", "0")], "gfx1100"),
    ] {
        let got = installed.load(devices, variables);
        assert_eq!(got, (loaded(wanted), String::new()), "{variables:?}");
    }
    let (out, _) = installed.load(devices, &[("ROCM_KPACK_PATH", "/nowhere")]);
    assert!(out.starts_with("13 "), "{out}");
    let (out, errors) = installed.load(devices, &[("ROCM_KPACK_DISABLE", "yes")]);
    assert!(out.starts_with("8 ") && errors.is_empty(), "{out}{errors}");
    let (out, errors) = installed.load(devices, &[("ROCM_KPACK_DEBUG", "1")]);
    assert_eq!(out, loaded("gfx1100"));
    let expanded =
        ["kpack: marker: lib/x.so#0", "kpack: expanded pattern: ", "kpack: archive opened: "];
    assert!(expanded.iter().all(|line| errors.contains(line)), "{errors}");
    assert!(errors.lines().all(|line| line.starts_with("kpack: ")), "{errors}");
}

#[test]
fn markers_that_are_none_are_refused_and_odd_ones_are_read() {
    let installed = Installed::new(&["gfx1100"]);
    let file = installed.path().join("marker");
    let whole = fs::read(&file).unwrap();
    let bad: [&[u8]; 8] = [
        b"\x80",
        b"\x93abc",
        b"\xc1",
        b"\x81\xabkernel_name\xa1x",
        b"\x82\xabkernel_name\x01\xb2kpack_search_paths\x91\xa1x",
        b"\x82\xabkernel_name\xa1x\xb2kpack_search_paths\x90",
        b"\x82\xabkernel_name\xa1x\xb2kpack_search_paths\xa1x",
        b"\x82\xabkernel_name\xa1x\xb2kpack_search_paths\x91\x07",
    ];
    for marker in bad {
        fs::write(&file, marker).unwrap();
        let (out, errors) = installed.load(&["gfx1100"], &[]);
        assert!(out.starts_with("12 ") && errors.is_empty(), "{marker:?}: {out}");
    }
    // An unknown key, and bytes behind the value.
    let odd = [b"\x83\xa1?\x93\x01\x80\xc0", &whole[1..], b"\xc1\xc1"].concat();
    fs::write(&file, odd).unwrap();
    assert_eq!(installed.load(&["gfx1100"], &[]), (loaded("gfx1100"), String::new()));
}

/// Changes to an archive between two loads from one cache.
#[test]
fn an_archive_that_changes_while_it_is_open_gives_no_wrong_bytes() {
    let cases = [
        // A package manager replaces it: the open file stays whole.
        ("cp new moved && mv moved archive", first_loaded("gfx1100")),
        ("rm archive", first_loaded("gfx1100")),
        // Truncated or overwritten in place: the archive is looked up again and read with its new content.
        ("truncate -s 100 archive", "13 0 0".to_owned()),
        ("cat new > archive", first_loaded("other")),
        ("touch -d 2020-01-01 archive", first_loaded("gfx1100")),
    ];
    for (change, second) in cases {
        let installed = Installed::new(&["gfx1100"]);
        Draft::zstd(&["gfx1100"], &contents("other")).write(installed.path().join("new"));
        let archive = installed.archive("gfx1100");
        let change = change.replace("archive", archive.to_str().unwrap());
        let change = format!("cd {} && {change}", installed.path().display());
        let mut words = installed.words("changes", &change, &["gfx1100"]);
        words.push("gfx1100".to_owned());
        let out = run(&words.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(out, format!("{}\n{second}\n", first_loaded("gfx1100")), "{change}");
    }
}

/// The line about the first code object for `name`.
fn first_loaded(name: &str) -> String {
    format!("0 30000 {}", digest(&contents(name)[0]))
}

#[test]
fn threads_and_children_of_a_fork_get_the_right_bytes() {
    let installed = Installed::new(&["gfx1100"]);
    let out = both(&mut installed.command("threads", "3", &["gfx1100"])).0;
    assert_eq!(out, "0 faults\n");
    let out = both(&mut installed.command("forks", "3", &["gfx1100"])).0;
    assert_eq!(out, "0 bad children, 0 faults\n");
    // Stored archives are read at offsets, too.
    Draft::stored(&["gfx1100"], &contents("gfx1100")).write(installed.archive("gfx1100"));
    let out = both(&mut installed.command("forks", "3", &["gfx1100"])).0;
    assert_eq!(out, "0 bad children, 0 faults\n");
}

#[test]
fn an_allocation_that_is_denied_is_out_of_memory_and_never_a_crash() {
    let installed = Installed::new(&["gfx1100"]);
    let out = both(&mut installed.command("denials", "1", &["gfx90a", "gfx1100"])).0;
    let denials: usize = out.split(' ').next().unwrap().parse().unwrap();
    assert!(denials > 20 && out.ends_with(" denials, 0 other codes, some 7\n"), "{out}");
}

/// A cached load opens no file, looks up no path, and reads each frame once.
#[test]
fn a_cached_load_reads_one_frame_and_asks_for_no_path() {
    let installed = Installed::new(&["gfx1100"]);
    let trace = installed.path().join("trace");
    let mut strace = std::process::Command::new("strace");
    let inner = installed.command("load", "3", &["gfx1100", "gfx1101"]);
    strace.arg("-o").arg(&trace).arg(inner.get_program()).args(inner.get_args());
    let Some(output) = by_tool(&mut strace) else { return };
    assert!(output.status.success(), "{output:?}");
    let text = fs::read_to_string(&trace).unwrap();
    let first = text.rfind("blas_gfx1101.kpack").unwrap();
    // Six loads follow the last candidate: each ends with its line on the standard output.
    let loads: Vec<&str> = text[first..].split("write(1, \"0 ").collect();
    assert_eq!(loads.len(), 7, "{text}");
    for load in &loads[1..6] {
        assert_eq!(count_calls(load, "pread64("), 1, "{load}");
        let lookups = ["open", "stat(", "newfstatat(AT", "readlink", "access(", "lseek("];
        assert!(lookups.iter().all(|name| count_calls(load, name) == 0), "{load}");
    }
}

fn count_calls(trace: &str, name: &str) -> usize {
    trace.lines().filter(|line| line.starts_with(name)).count()
}

/// Any bytes give a code with a text.
#[test]
fn damaged_archives_and_markers_give_codes_and_texts() {
    let installed = Installed::new(&[]);
    let contents = [code(2, 4000), code(1, 900), Vec::new()];
    let is_sweep = std::env::var("ROCKPACK_SWEEPS").is_ok_and(|sweeps| sweeps == "all");
    let rounds = if is_sweep { "300000" } else { "1500" };
    for draft in [Draft::zstd(&["gfx1100"], &contents), Draft::stored(&["gfx1100"], &contents)] {
        let archive = draft.write(installed.archive("gfx1100"));
        let marker = installed.path().join("marker");
        let words = ["fuzz", archive.to_str().unwrap(), marker.to_str().unwrap(), rounds, "7"];
        let out = run(&words);
        assert!(
            out.starts_with("0 bad 0:") && out.contains(" 10:") && out.contains(" 12:"),
            "{out}"
        );
    }
}

/// Reads of uninitialised or freed memory. Helgrind does not know atomic operations, and would report every
/// list that threads share.
#[test]
fn valgrind_finds_nothing() {
    let installed = Installed::new(&["gfx1100"]);
    let archive = installed.archive("gfx1100");
    let first = ["get", archive.to_str().unwrap(), "lib/x.so#1", "gfx1100"];
    for inner in [command(&first), installed.command("load", "3", &["gfx1103", "gfx1100"])] {
        let mut valgrind = std::process::Command::new("valgrind");
        valgrind.args(["-q", "--error-exitcode=9", "--tool=memcheck"]);
        valgrind.arg(inner.get_program()).args(inner.get_args());
        let Some(output) = by_tool(&mut valgrind) else { return };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

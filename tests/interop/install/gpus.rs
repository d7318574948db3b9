//! The packages for the GPUs of a machine: the printed commands bring its kernels and no others, zypper brings
//! them by itself where packages name their GPUs, and apt ends with a line where they are missing.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use serde_json::json;
use support::example::rockpack;
use support::program::scratch;
use support::repo_fixture::{publish, repo};
use support::tools;

use crate::install::sets::{Built, Recipe};
use crate::install::system::System;
use crate::install::{debian, rpm};

/// The libraries with kernel packages.
const LIBRARIES: [&str; 3] = ["rocm-blas", "rocm-fft", "rocm-solver"];

/// Machines, and the groups that they need of the set.
const MACHINES: [(&str, &[&str]); 12] = [
    ("rdna-3-rx-7900-xtx", &["gfx110x"]),
    ("apu-strix-halo", &["gfx115x"]),
    ("apu-beside-card", &["gfx110x"]),
    ("apu-beside-card-no-driver", &["gfx120x"]),
    ("two-cards-different", &["gfx110x"]),
    ("two-cards-one-product-range", &["gfx110x"]),
    ("container-first-of-two", &["gfx110x"]),
    ("hostile-names", &["gfx110x"]),
    ("mi300x-eight", &[]),
    ("unknown-id", &[]),
    ("wsl2", &[]),
    ("empty", &[]),
];

/// The `modalias` files of machines, and the groups whose packages name their cards.
const ALIASES: [(&str, &[&str]); 4] = [
    // A Radeon RX 7900 XTX beside the GPU of a processor, whose packages name none.
    (
        "pci:v00001002d0000744Csv00001DA2sd0000E471bc03sc00i00\n\
         pci:v00001002d00001586sv00001F4Csd0000B016bc03sc80i00\n",
        &["gfx110x"],
    ),
    // A Radeon RX 7600 and a Radeon RX 9070 XT.
    (
        "pci:v00001002d00007480sv00001DA2sd0000E478bc03sc00i00\n\
         pci:v00001002d00007550sv00001DA2sd0000E490bc03sc00i00\n",
        &["gfx110x", "gfx120x"],
    ),
    ("pci:v00001002d00009999sv00001DA2sd0000E471bc03sc00i00\n", &[]),
    ("", &[]),
];

#[test]
fn zypper_installs_what_is_printed() {
    rpm::with_zypper(what_is_printed_brings_the_kernels_of_the_machine);
}

#[test]
fn zypper_brings_the_kernels_of_cards_by_itself() {
    rpm::with_zypper(cards_bring_their_kernels);
}

#[test]
fn apt_ends_with_a_line_about_missing_kernels() {
    debian::with_root("trixie", missing_kernels_are_told);
}

/// A set whose packages of both formats name their cards.
fn set() -> Arc<Built> {
    let hints = json!({ "hardware_hints": { "rpm": "discrete" } });
    Recipe::new("7.1.0").revisions(&[]).keys(hints).build()
}

/// A repository of the set, published once.
fn published() -> &'static Path {
    static PUBLISHED: OnceLock<PathBuf> = OnceLock::new();
    PUBLISHED.get_or_init(|| {
        let out = scratch("published").join("repo");
        let mut command = repo(&[&set().out()], &out);
        publish(command.args(["--set", "name=set", "--url", "https://packages.example.org/set"]));
        out
    })
}

fn machine(name: &str) -> PathBuf {
    tools::repository("tests/machines").join(name)
}

/// The installed kernel packages of libraries.
fn kernels(system: &dyn System) -> BTreeSet<String> {
    let is_of = |name: &String| LIBRARIES.iter().any(|it| name.starts_with(&format!("{it}-gfx")));
    system.names().into_iter().filter(is_of).collect()
}

/// The kernel packages of `libraries` for these groups.
fn of_groups(libraries: &[&str], groups: &[&str]) -> BTreeSet<String> {
    let of_group = |group| libraries.iter().map(move |library| format!("{library}-{group}"));
    groups.iter().flat_map(of_group).collect()
}

/// The standard output of a command, of an exit code that fits.
fn printed(command: &mut Command) -> String {
    let output = command.env_remove("HSA_OVERRIDE_GFX_VERSION").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(i32::from(text.is_empty())), "{command:?}: {text}");
    text
}

/// The published script, the one of the common package in `root`, and rockpack print the same.
pub fn what_is_printed_brings_the_kernels_of_the_machine(system: &dyn System) {
    tools::need(&["sh", "dd"]);
    let (managers, script) = match system.format() {
        "deb" => (&["apt"][..], "set-stable-gpu.sh"),
        _ => (&["dnf", "zypper"][..], "set-gpu.sh"),
    };
    let installed = system.root().join("usr/share/rocm-common/gpu.sh");
    system.offer(&[&set().out()]);
    let mut tried = BTreeSet::new();
    for (name, groups) in MACHINES {
        for &manager in managers {
            let options = |command: &mut Command| {
                command.args(["--for", manager, "--sysfs"]).arg(machine(name));
                printed(command)
            };
            let mut gpu = rockpack();
            let said = options(gpu.arg("gpu").arg("--from").arg(published()));
            let of_script = options(Command::new("sh").arg(published().join(script)));
            assert_eq!(of_script, said, "{name}");
            if said.is_empty() {
                assert!(groups.is_empty(), "{name}: nothing");
                continue;
            }
            let packages = said.strip_prefix(&format!("{manager} install ")).unwrap().to_owned();
            if tried.insert((packages.clone(), groups)) {
                let packages = Vec::from_iter(packages.split_whitespace());
                tools::run(&mut system.install(&packages));
                assert_eq!(kernels(system), of_groups(&LIBRARIES, groups), "{name}: {said}");
                assert_eq!(options(Command::new("sh").arg(&installed)), said, "{name}");
                system.purge_all();
            }
        }
    }
}

fn cards_bring_their_kernels(system: &dyn System) {
    system.offer(&[&set().out()]);
    let file = system.root().join("srv/aliases");
    for (aliases, groups) in ALIASES {
        fs::write(&file, aliases).unwrap();
        tools::run(system.install(&["rocm-blas"]).env("ZYPP_MODALIAS_SYSFS", &file));
        assert_eq!(kernels(system), of_groups(&["rocm-blas"], groups), "{aliases}");
        system.purge_all();
    }
}

/// Runs a command where `/sys` of a root is a made-up machine; returns what the common package says.
fn told_on(name: &str, system: &dyn System, command: &Command) -> String {
    let mut unshare = Command::new("unshare");
    let script = r#"mount --bind "$0" "$1" && shift && exec "$@""#;
    unshare.args(["-m", "sh", "-c", script]).arg(machine(name)).arg(system.root().join("sys"));
    unshare.arg(command.get_program()).args(command.get_args()).env_clear();
    unshare.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let told = tools::told(&mut unshare);
    assert!(told.ends_with("exit status: 0\n"), "{told}");
    let lines = told.lines().filter(|line| line.starts_with("rocm-common: "));
    lines.map(|line| format!("{line}\n")).collect()
}

fn missing_kernels_are_told(system: &dyn System) {
    tools::need(&["unshare", "mount"]);
    if !Command::new("unshare").args(["-m", "true"]).output().unwrap().status.success() {
        tools::skip("needs to mount file systems");
    }
    system.offer(&[&set().out()]);
    let missing = |libraries: &str, package: &str| {
        format!(
            "rocm-common: no GPU code for this machine's Radeon RX 7900 XTX (gfx1100) is \
             installed for {libraries}: apt install {package}\n"
        )
    };
    let (two, both) = ("2 libraries (rocm-blas, rocm-fft)", "rocm-blas-gfx110x rocm-fft-gfx110x");
    for (name, packages, expected) in [
        ("empty", &["rocm-fft"][..], String::new()),
        ("apu-beside-card", &["rocm-blas"], missing(two, both)),
        ("apu-beside-card", &["rocm-blas-gfx110x"], missing("rocm-fft", "rocm-fft-gfx110x")),
        ("apu-beside-card", &["rocm-gfx110x"], String::new()),
    ] {
        assert_eq!(told_on(name, system, &system.install(packages)), expected, "{packages:?}");
    }
    system.purge_all();
    let with_kernels = system.install(&["rocm-blas", "rocm-blas-gfx110x"]);
    assert_eq!(told_on("rdna-3-rx-7900-xtx", system, &with_kernels), "");
    system.purge_all();
    let alone = told_on("rdna-3-rx-7900-xtx", system, &system.install(&["rocm-blas"]));
    assert_eq!(alone, missing("rocm-blas", "rocm-blas-gfx110x"));
    // A library whose code is in databases alone.
    let later = told_on("rdna-3-rx-7900-xtx", system, &system.install(&["rocm-fft"]));
    assert_eq!(later, missing(two, both));
}

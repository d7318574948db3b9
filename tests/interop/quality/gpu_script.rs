//! The script that names the packages for the GPUs of a machine: the same answers in all shells, and those of
//! `rockpack gpu`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rockpack_package::for_gpu::{GpuPackage, GpuPackages, script};
use rockpack_package::{Format, RelationKind};
use serde_json::Value;
use support::example::rockpack;
use support::tools;
use tempfile::TempDir;

const SHELLS: [&[&str]; 3] = [&["dash"], &["busybox", "sh"], &["bash"]];

/// The script of a set with two libraries for two groups, and a folder to start it in. One library has no code for
/// gfx1102.
struct Script(TempDir);

impl Script {
    fn new(format: Format) -> Self {
        tools::need(&["dash", "busybox", "bash"]);
        let mut all = Vec::new();
        for (group, archs, of_fft) in
            [("gfx110x", ["gfx1100", "gfx1102"], 1), ("gfx103x", ["gfx1030", "gfx1036"], 2)]
        {
            let archs = archs.map(str::to_owned);
            let kernels = ["rocm-blas", "rocm-fft"].map(|library| format!("{library}-{group}"));
            for (name, library, count) in
                [(&kernels[0], "rocm-blas", 2), (&kernels[1], "rocm-fft", of_fft)]
            {
                let enhanced = [(RelationKind::Enhances, library)];
                all.push(GpuPackage::new(name, "1", &archs[..count], enhanced));
            }
            let needs = kernels.iter().map(|name| (RelationKind::Depends, name.as_str()));
            all.push(GpuPackage::new(&format!("rocm-{group}"), "1", &[], needs));
        }
        let own = Self(tempfile::tempdir().unwrap());
        let text = script::text(&GpuPackages::new(format, all), format, None);
        fs::write(own.file(), text.unwrap()).unwrap();
        fs::create_dir(own.folder()).unwrap();
        own
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("gpu.sh")
    }

    fn folder(&self) -> PathBuf {
        self.0.path().join("folder")
    }

    /// Runs it in a shell on a machine.
    fn run(
        &self,
        shell: &[&str],
        tree: &Path,
        word: &str,
        environment: &[(String, String)],
    ) -> Output {
        let mut command = Command::new(shell[0]);
        command.args(&shell[1..]).arg(self.file()).arg(word).arg("--sysfs").arg(tree);
        let variables = environment.iter().map(|(name, value)| (name, value));
        command.envs(variables).current_dir(self.folder()).output().unwrap()
    }
}

fn machine(name: &str) -> PathBuf {
    tools::repository("tests/machines").join(name)
}

/// The environment of a machine.
fn variables(tree: &Path) -> Vec<(String, String)> {
    let text = fs::read_to_string(tree.join("environment")).unwrap_or_default();
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[test]
fn all_shells_give_the_answers_of_rockpack() {
    let script = Script::new(Format::Deb);
    let mut machines = 0;
    for entry in fs::read_dir(machine("")).unwrap() {
        let tree = entry.unwrap().path();
        let Ok(expected) = fs::read_to_string(tree.join("expected")) else { continue };
        let variables = variables(&tree);
        let given = variables.iter().map(|(name, value)| (name, value));
        let output = rockpack().args(["gpu", "--json", "--sysfs"]).arg(&tree).envs(given).output();
        let json: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
        assert_eq!(targets(&json), Vec::from_iter(expected.lines()), "{}", tree.display());
        for shell in SHELLS {
            let output = script.run(shell, &tree, "--targets", &variables);
            let at = format!("{shell:?} on {}", tree.display());
            assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{at}");
            assert_eq!(output.status.code(), Some(i32::from(expected.is_empty())), "{at}");
            let is_plain = |byte: &u8| matches!(byte, b'\n' | b' '..=b'~');
            assert!(output.stderr.iter().all(is_plain), "{at}");
        }
        machines += 1;
    }
    assert!(machines >= 40, "{machines}");
    assert!(fs::read_dir(script.folder()).unwrap().next().is_none(), "a text of sysfs was run");
}

/// The targets of `rockpack gpu --json`, each once.
fn targets(json: &Value) -> Vec<&str> {
    let mut found = Vec::new();
    for gpu in json["gpus"].as_array().unwrap() {
        for target in [&gpu["target"], &gpu["overridden_by"]].into_iter().filter_map(Value::as_str)
        {
            if !found.contains(&target) {
                found.push(target);
            }
        }
    }
    found
}

#[test]
fn the_script_is_clean_and_prints_commands() {
    tools::need(&["shellcheck"]);
    for (format, words, command) in [
        (Format::Deb, "apt", "apt install rocm-gfx110x rocm-gfx103x\n"),
        (Format::Rpm, "dnf", "dnf install rocm-gfx110x rocm-gfx103x\n"),
        (Format::Rpm, "zypper", "zypper install rocm-gfx110x rocm-gfx103x\n"),
    ] {
        let script = Script::new(format);
        let told = tools::told(Command::new("shellcheck").args(["-s", "sh"]).arg(script.file()));
        assert_eq!(told, "exit status: 0\n");
        for shell in SHELLS {
            let mut run = Command::new(shell[0]);
            run.args(&shell[1..]).arg(script.file()).args(["--for", words, "--sysfs"]);
            assert_eq!(tools::succeed(run.arg(machine("apu-beside-card"))), command);
            let mut run = Command::new(shell[0]);
            run.args(&shell[1..]).arg(script.file()).args(["--for", "pip"]);
            assert!(tools::told(&mut run).ends_with("exit status: 64\n"));
        }
    }
}

/// A program in place of dpkg-query and rpm, to which `$PRESENT` packages are installed.
const QUERY: &str = r#"#!/bin/sh
shift 3
for name; do
  case " $PRESENT " in
    *" $name "*) echo "$name installed" ;;
    *) echo "package $name is not installed" ;;
  esac
done
exit 1
"#;

#[test]
fn check_names_what_the_installed_libraries_lack() {
    let card = "this machine's Radeon RX 7900 XTX (gfx1100) is installed for";
    let cases = [
        ("apu-beside-card", "", String::new()),
        ("apu-beside-card", "rocm-blas rocm-blas-gfx110x", String::new()),
        ("empty", "rocm-blas", String::new()),
        (
            "apu-beside-card",
            "rocm-blas rocm-fft rocm-blas-gfx110x",
            format!("no GPU code for {card} rocm-fft: MANAGER install rocm-fft-gfx110x\n"),
        ),
        (
            "two-cards-same",
            "rocm-blas rocm-fft",
            format!(
                "no GPU code for {card} 2 libraries (rocm-blas, rocm-fft): \
                 MANAGER install rocm-gfx110x\n"
            ),
        ),
        (
            "mi300x-eight",
            "rocm-fft",
            "no package has GPU code of rocm-fft for this machine's Instinct MI300X (gfx942)\n"
                .into(),
        ),
        (
            "rdna-3-rx-7600",
            "rocm-blas rocm-fft",
            "no GPU code for this machine's Radeon RX 7600 (gfx1102) is installed for rocm-blas, \
             and no package has any for rocm-fft: MANAGER install rocm-blas-gfx110x\n"
                .into(),
        ),
        (
            "rdna-3-rx-7600",
            "rocm-blas rocm-blas-gfx110x rocm-fft rocm-fft-gfx110x",
            "no package has GPU code of rocm-fft for this machine's Radeon RX 7600 (gfx1102)\n"
                .into(),
        ),
        (
            "override",
            "rocm-fft",
            "no GPU code for this machine's Radeon 680M (gfx1035, taken for gfx1030) is installed \
             for rocm-fft: MANAGER install rocm-fft-gfx103x\n"
                .into(),
        ),
    ];
    for (format, manager) in [(Format::Deb, "apt"), (Format::Rpm, "dnf")] {
        let script = Script::new(format);
        let programs = script.0.path().join("programs");
        fs::create_dir(&programs).unwrap();
        let source = script.0.path().join("query");
        fs::write(&source, QUERY).unwrap();
        for name in ["dpkg-query", "rpm"] {
            // Written by another process: a program that a child still holds open cannot be started.
            let mut install = Command::new("install");
            tools::run(install.args(["-m", "755"]).arg(&source).arg(programs.join(name)));
        }
        let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
        for (name, present, expected) in &cases {
            let expected = match expected.replace("MANAGER", manager) {
                text if text.is_empty() => "exit status: 0\n".to_owned(),
                text => format!("gpu.sh: {text}exit status: 1\n"),
            };
            for shell in SHELLS {
                let mut run = Command::new(shell[0]);
                run.args(&shell[1..]).arg(script.file()).args(["--check", "--for", manager]);
                run.arg("--sysfs").arg(machine(name)).envs(variables(&machine(name)));
                run.env("PATH", &path).env("PRESENT", present);
                assert_eq!(tools::told(&mut run), expected, "{shell:?}: {name}, {present}");
            }
        }
    }
}

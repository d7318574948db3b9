//! Programs as alternatives: set, kept on upgrade, removed; and scripts that behave alike in all shells.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::bases::RPM_TOOLS;
use support::example::{COMMON, GROUPS, configuration, copy_shards, names, rockpack};
use support::queries::rpm_tags;
use support::roots::{Dpkg, Manager, Rpm, need_root};
use support::tools;
use tempfile::TempDir;

const PROGRAM: &str = "exblas-bench";

/// Sets with programs as alternatives: a first version, and a second with another program.
struct Sets(TempDir);

impl Sets {
    fn build() -> Self {
        let sets = Self(tempfile::tempdir().unwrap());
        let mut config: Value =
            serde_json::from_slice(&fs::read(configuration()).unwrap()).unwrap();
        config["alternatives"] = "programs".into();
        fs::write(sets.path("config.json"), config.to_string()).unwrap();
        let artifacts = sets.path("shards");
        copy_shards(&artifacts);
        for group in &GROUPS {
            let odd = group.stage(&artifacts, "run").join("bin/odd program");
            fs::write(&odd, "#!/bin/sh\n").unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            fs::set_permissions(&odd, mode).unwrap();
        }
        sets.build_one("7.1.0", &artifacts);
        for group in &GROUPS {
            let folder = group.stage(&artifacts, "run").join("bin");
            fs::rename(folder.join(PROGRAM), folder.join("exblas-meter")).unwrap();
        }
        sets.build_one("7.1.1", &artifacts);
        sets
    }

    fn build_one(&self, version: &str, artifacts: &Path) {
        let mut build = rockpack();
        build.arg("build").arg("--artifacts").arg(artifacts);
        build.arg("--config").arg(self.path("config.json"));
        let told =
            tools::told(build.args(["--version", version]).arg("--out").arg(self.path(version)));
        let finding = "R082 program-without-alternative: odd program of rocm-blas";
        assert!(told.contains(finding) && told.ends_with("exit status: 0\n"), "{told}");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn debs(&self, version: &str) -> [PathBuf; 2] {
        let folder = self.path(version);
        [format!("{COMMON}_{version}-1_all.deb"), format!("rocm-blas_{version}-1_amd64.deb")]
            .map(|name| folder.join(name))
    }

    fn rpms(&self, version: &str) -> [PathBuf; 2] {
        let folder = self.path(version);
        [format!("{COMMON}-{version}-1.noarch.rpm"), format!("rocm-blas-{version}-1.x86_64.rpm")]
            .map(|name| folder.join(name))
    }
}

/// Runs update-alternatives of this machine on `root`.
fn alternatives(root: &Path) -> Command {
    let mut command = Command::new("update-alternatives");
    command.arg("--root").arg(root).args(["--log", "/dev/null"]);
    command
}

/// Makes the folders that update-alternatives expects.
fn prepare(root: &Path) {
    for folder in ["etc/alternatives", "var/lib/dpkg/alternatives", "var/log", "usr/bin", "other"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    fs::write(root.join("other/bench"), "").unwrap();
}

/// The target of `program`'s link, through the alternatives.
fn leads_to(root: &Path, program: &str) -> Option<String> {
    let link = fs::read_link(root.join("usr/bin").join(program)).ok()?;
    assert_eq!(link, Path::new("/etc/alternatives").join(program));
    let chosen = fs::read_link(root.join("etc/alternatives").join(program)).unwrap();
    Some(chosen.to_str().unwrap().to_owned())
}

fn value(root: &Path, program: &str, field: &str) -> String {
    let text = tools::succeed(alternatives(root).args(["--query", program]));
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{field}: ")));
    line.unwrap_or_else(|| panic!("no {field} in {text}")).to_owned()
}

/// Runs `install` and `upgrade`, which bring the first and the second set, `again`, which brings the second
/// once more, and `remove`, with checks after each.
fn are_kept_and_removed(root: &Path, [install, upgrade, again, remove]: [&dyn Fn(); 4]) {
    prepare(root);
    install();
    assert_eq!(leads_to(root, PROGRAM).unwrap(), "/opt/rocm-7.1/bin/exblas-bench");
    assert_eq!(value(root, PROGRAM, "Priority"), "70100");
    // The administrator chooses another program for the name.
    let other = ["--install", "/usr/bin/exblas-bench", PROGRAM, "/other/bench", "1"];
    tools::run(alternatives(root).args(other));
    assert_eq!(leads_to(root, PROGRAM).unwrap(), "/opt/rocm-7.1/bin/exblas-bench");
    tools::run(alternatives(root).args(["--set", PROGRAM, "/other/bench"]));

    upgrade();
    assert_eq!(leads_to(root, PROGRAM).unwrap(), "/other/bench");
    assert_eq!(leads_to(root, "exblas-meter").unwrap(), "/opt/rocm-7.1/bin/exblas-meter");
    assert_eq!(value(root, "exblas-meter", "Priority"), "70101");
    tools::run(alternatives(root).args([
        "--set",
        "exblas-meter",
        "/opt/rocm-7.1/bin/exblas-meter",
    ]));
    again();
    assert_eq!(value(root, "exblas-meter", "Status"), "manual");

    remove();
    assert_eq!(leads_to(root, "exblas-meter"), None);
    assert_eq!(leads_to(root, PROGRAM).unwrap(), "/other/bench", "another's stays");
    let known = names(&root.join("var/lib/dpkg/alternatives"));
    assert_eq!(known.into_iter().collect::<Vec<_>>(), [PROGRAM]);
    let listed = tools::succeed(alternatives(root).args(["--list", PROGRAM]));
    assert!(!root.join("opt/rocm-7.1").exists());
    assert_eq!(listed, "/other/bench\n");
}

#[test]
fn dpkg_keeps_and_removes_alternatives() {
    tools::need(&["dpkg", "update-alternatives"]);
    need_root();
    let sets = Sets::build();
    let manager = Dpkg::new(sets.path("root"));
    are_kept_and_removed(
        manager.root(),
        [
            &|| run(manager.command(), &["-i"], sets.debs("7.1.0")),
            &|| run(manager.command(), &["-i"], sets.debs("7.1.1")),
            &|| run(manager.command(), &["-i"], sets.debs("7.1.1")),
            &|| drop(tools::run(manager.command().args(["-P", "rocm-blas", COMMON]))),
        ],
    );
}

#[test]
fn rpm_keeps_and_removes_alternatives() {
    tools::need(&RPM_TOOLS);
    need_root();
    let sets = Sets::build();
    let manager = Rpm::new(sets.path("root"));
    let root = manager.root();
    are_kept_and_removed(
        root,
        [
            &|| run(manager.command(), &["-i"], sets.rpms("7.1.0")),
            &|| run(manager.command(), &["-U"], sets.rpms("7.1.1")),
            &|| run(manager.command(), &["-U", "--replacepkgs"], sets.rpms("7.1.1")),
            &|| drop(tools::run(manager.command().args(["-e", "rocm-blas", COMMON]))),
        ],
    );
}

fn run(mut manager: Command, how: &[&str], packages: [PathBuf; 2]) {
    tools::run(manager.args(how).args(packages));
}

/// The maintainer scripts of a set in shell by package and name, as dpkg and rpm give them.
fn scripts(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let control = tempfile::tempdir().unwrap();
    for name in names(folder) {
        let file = folder.join(&name);
        if name.ends_with(".deb") {
            let place = control.path().join(&name);
            tools::run(Command::new("dpkg-deb").arg("-e").arg(&file).arg(&place));
            for script in ["preinst", "postinst", "prerm", "postrm"] {
                if let Ok(text) = fs::read_to_string(place.join(script)) {
                    found.push((format!("{name} {script}"), text));
                }
            }
        } else if name.ends_with(".rpm") {
            for script in ["PREIN", "POSTIN", "PREUN", "POSTUN"] {
                let format = format!("%|{script}?{{%{{{script}PROG}}\\n%{{{script}}}}}|");
                let text = rpm_tags(&file, &format);
                if let Some(text) = text.strip_prefix("/bin/sh\n") {
                    found.push((format!("{name} {script}"), format!("#!/bin/sh\n{text}\n")));
                }
            }
        }
    }
    found
}

#[test]
fn maintainer_scripts_are_clean_posix_shell() {
    tools::need(&["dpkg-deb", "rpm", "shellcheck", "dash"]);
    let sets = Sets::build();
    let scripts = scripts(&sets.path("7.1.0"));
    for part in ["rocm-blas_7.1.0-1_amd64.deb postinst", "rocm-blas-7.1.0-1.x86_64.rpm POSTUN"] {
        assert!(scripts.iter().any(|(name, _)| name == part), "{part}");
    }
    are_clean(&sets.path("7.1.0"));
}

/// Fails unless a set's scripts are POSIX shell, and shellcheck accepts them.
pub fn are_clean(folder: &Path) {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("script");
    for (name, text) in scripts(folder) {
        fs::write(&file, &text).unwrap();
        let told = tools::told(Command::new("dash").arg("-n").arg(&file));
        assert_eq!(told, "exit status: 0\n", "{name}");
        let told = tools::told(Command::new("shellcheck").args(["-s", "sh"]).arg(&file));
        assert_eq!(told, "exit status: 0\n", "{name}:\n{text}");
    }
}

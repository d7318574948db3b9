//! Automatic Provides and Requires of an `.rpm` compared with rpmbuild's for the same files: names, flags and
//! versions. `differences.txt` lists the differences with their reasons.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::program::rockpack;
use support::queries::rpm_tags;
use support::tools;

/// rpm's flags for relations found by its generators: `RPMSENSE_FIND_REQUIRES`, `RPMSENSE_FIND_PROVIDES`.
const FOUND: u64 = (1 << 14) | (1 << 15);

const DIFFERENCES: &str = include_str!("differences.txt");

const SPEC: &str = "\
Name: rocm-sample
Version: 7.1.0
Release: 1
Summary: Sample
License: MIT
%description
Sample.
%install
mkdir -p %{buildroot}
cp -a %{tree}/. %{buildroot}
%files
/opt/rocm-7.1
/usr/share/licenses
";

/// The stage prefix of an artifact, to be filled.
struct Stage(PathBuf);

impl Stage {
    fn write(&self, path: &str, mode: u32, bytes: &[u8]) {
        let file = self.0.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, bytes).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn copy(&self, path: &str, mode: u32, from: &str) {
        self.write(path, mode, &fs::read(from).unwrap());
    }

    /// Compiles `source` with the words of `options`; `{stage}` in them is this folder.
    fn compile(&self, path: &str, source: &str, options: &str) {
        let file = self.0.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let stage = self.0.display().to_string();
        let options = options.replace("{stage}", &stage);
        let text = self.0.parent().unwrap().join("x.c");
        fs::write(&text, source).unwrap();
        let mut command = Command::new("cc");
        command.arg("-w").arg("-o").arg(file).arg(text).args(options.split_whitespace());
        tools::run(&mut command);
    }

    fn version_script(&self, text: &str) -> String {
        let file = self.0.parent().unwrap().join("versions");
        fs::write(&file, text).unwrap();
        format!("-Wl,--version-script={}", file.display())
    }
}

/// Adds libraries with and without versions, hash tables and sonames; programs of all kinds; and scripts.
fn fill(stage: &Stage) {
    let versions = "ONE_1.0 { global: one; local: *; }; ONE_1.1 { global: other; } ONE_1.0;";
    let script = stage.version_script(versions);
    let source = "int one(void) { return 1; } int other(void) { return 2; } int v = 3;";
    stage.compile(
        "lib/libone.so.1",
        source,
        &format!("-shared -fPIC -Wl,-soname,libone.so.1 {script}"),
    );
    stage.compile("lib/libhash.so", source, "-shared -fPIC -Wl,--hash-style=both");
    stage.compile("lib/odd-name.so", source, "-shared -fPIC -Wl,-soname,odd-name.so");
    stage.compile("lib/tools/libplugin.so", source, "-shared -fPIC");
    let script = stage.version_script("PRIVATE_1 { global: one; other; local: *; };");
    let options = format!("-shared -fPIC -Wl,-soname,libprivate.so.1 {script}");
    stage.compile("lib/sysdeps/lib/libprivate.so.1", source, &options);
    let user = "int one(void); int other(void); int main(void) { return one() + other(); }";
    stage.compile(
        "bin/user",
        user,
        "-L{stage}/lib -l:libone.so.1 -lm -Wl,--no-as-needed -l:libhash.so",
    );
    let runpath =
        "-L{stage}/lib/sysdeps/lib -l:libprivate.so.1 -Wl,-rpath,$ORIGIN/../lib/sysdeps/lib";
    stage.compile("bin/private-user", user, runpath);
    stage.compile("bin/fixed", "int main(void) { return 0; }", "-no-pie");
    stage.compile("bin/static", "int main(void) { return 0; }", "-static");
    stage.compile("share/data-program", "int main(void) { return 0; }", "");
    let program = stage.0.join("share/data-program");
    fs::set_permissions(program, fs::Permissions::from_mode(0o644)).unwrap();
    for (name, text) in [
        ("bin/shell", "#!/bin/sh\ntrue\n"),
        ("bin/bash", "#! /bin/bash -e\ntrue\n"),
        ("bin/python", "#!/usr/bin/env python3\nprint()\n"),
        ("bin/python-own", "#!/usr/bin/python3\nimport os\nprint()\n"),
        ("bin/env-path", "#!/usr/bin/env /opt/other/bin/x\n"),
        ("bin/perl", "#!/usr/bin/perl\nuse strict;\nprint 1;\n"),
        ("bin/awk", "#!/usr/bin/awk -f\n{ print }\n"),
        ("bin/env-options", "#!/usr/bin/env -S python3.11 -u\nprint()\n"),
        ("bin/tclsh", "#!\t/usr/bin/tclsh8.6 -x\nputs 1\n"),
        ("bin/relative", "#!python\nprint()\n"),
        ("bin/return", "#!/usr/bin/ruby\r\nputs 1\r\n"),
        ("bin/long", &format!("#!/usr/bin/gawk -f {}\n", "x".repeat(256))),
        ("bin/text", "no script\n"),
    ] {
        stage.write(name, 0o755, text.as_bytes());
    }
    stage.write("share/library.sh", 0o644, b"#!/bin/zsh\ntrue\n");
    // Files of this machine: with many versions, and with those of a whole program.
    for (path, mode, from) in [
        ("lib/libz.so.1", 0o644, "/usr/lib/x86_64-linux-gnu/libz.so.1"),
        ("lib/libstdc++.so.6", 0o755, "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"),
        ("lib/libc.so.6", 0o755, "/usr/lib/x86_64-linux-gnu/libc.so.6"),
        ("bin/rpm", 0o755, "/usr/bin/rpm"),
        ("bin/gcc", 0o755, "/usr/bin/cc"),
    ] {
        if Path::new(from).is_file() {
            stage.copy(path, mode, from);
        }
    }
}

fn build(work: &Path) -> PathBuf {
    let artifact = work.join("shard/sample_lib_generic");
    let stage = Stage(artifact.join("math/sample/stage"));
    fs::create_dir_all(&stage.0).unwrap();
    fill(&stage);
    fs::write(artifact.join("artifact_manifest.txt"), "math/sample/stage\n").unwrap();
    let out = work.join("out");
    tools::run(
        rockpack()
            .args(["build", "--version", "7.1.0", "--format", "rpm"])
            .arg("--artifacts")
            .arg(work.join("shard"))
            .arg("--out")
            .arg(&out),
    );
    out.join("rocm-sample-7.1.0-1.x86_64.rpm")
}

fn rpmbuild(work: &Path, ours: &Path) -> PathBuf {
    let tree = work.join("tree");
    tools::unpack(ours, &tree);
    fs::write(work.join("sample.spec"), SPEC).unwrap();
    let mut command = Command::new("rpmbuild");
    command.args(["-bb", "--quiet"]);
    for define in [
        format!("_topdir {}", work.join("top").display()),
        format!("tree {}", tree.display()),
        "_build_id_links none".to_owned(),
        "debug_package %{nil}".to_owned(),
        "__os_install_post %{nil}".to_owned(),
    ] {
        command.args(["--define", &define]);
    }
    tools::run(command.arg(work.join("sample.spec")));
    work.join("top/RPMS/x86_64/rocm-sample-7.1.0-1.x86_64.rpm")
}

/// The automatic relations of a package as `list name flags version`.
fn found(package: &Path) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for list in ["REQUIRE", "PROVIDE"] {
        let format = format!("[%{{{list}NAME}}\\t%{{{list}FLAGS}}\\t%{{{list}VERSION}}\\n]");
        for line in rpm_tags(package, &format).lines() {
            let [name, flags, version] = line.split('\t').collect::<Vec<_>>()[..] else {
                panic!("{line}");
            };
            if flags.parse::<u64>().unwrap() & FOUND != 0 {
                let list = format!("{}s", list.to_lowercase());
                all.insert(format!("{list} {name} {flags} {version}"));
            }
        }
    }
    all
}

/// The lines of the list as `ours requires name`.
fn listed() -> BTreeSet<String> {
    let lines = DIFFERENCES.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split_once('#').unwrap().0.trim().to_owned()).collect()
}

#[test]
fn relations_equal_those_of_rpmbuild_but_for_the_list() {
    tools::need(&["rpmbuild", "rpm2cpio", "cpio", "cc"]);
    let work = tempfile::tempdir().unwrap();
    let ours = build(work.path());
    let theirs = rpmbuild(work.path(), &ours);
    let (ours, theirs) = (found(&ours), found(&theirs));
    assert!(ours.len() > 100, "{ours:?}");
    let only_ours = ours.difference(&theirs).map(|line| difference("ours", line));
    let only_theirs = theirs.difference(&ours).map(|line| difference("theirs", line));
    let differences: BTreeSet<String> = only_ours.chain(only_theirs).collect();
    assert_eq!(differences, listed());
}

/// The line of the list for a relation that only one of the two packages has.
fn difference(whose: &str, line: &str) -> String {
    let words: Vec<&str> = line.splitn(3, ' ').collect();
    format!("{whose} {} {}", words[0], words[1])
}

//! Interpreters for the scripts and programs of a set.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use support::program::rockpack;
use support::queries::rpm_list;
use support::tools;

use crate::dependencies::Case;

const TOOLS: [&str; 2] = ["dpkg-deb", "rpm"];

/// The interpreter of a build machine.
const OWN: &str = "/opt/buildpython/cp312/bin/python3.12";

fn write(file: &Path, mode: u32, text: &str) {
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
}

/// A case with the artifact `tool`, whose package is for one architecture.
fn tool() -> Case {
    let case = Case::new();
    write(&case.stage("tool").join("lib/libtool.a"), 0o644, "!<arch>\n");
    case
}

/// The artifact `tool` with scripts that have these first lines.
fn scripts(lines: &[(&str, &str)]) -> Case {
    let case = tool();
    for (name, line) in lines {
        let file = case.stage("tool").join("bin").join(name);
        write(&file, 0o755, &format!("{line}\nprint()\n"));
    }
    case
}

/// Builds with `config`, and returns the findings about interpreters.
fn told(case: &Case, config: &str, options: &[&str]) -> Vec<String> {
    let told = case.built(config, options);
    let of_interpreters = |line: &&str| line.contains("R066") || line.contains("R068");
    told.lines().filter(of_interpreters).map(|line| line.trim().to_owned()).collect()
}

fn verify(case: &Case) -> String {
    let mut command = rockpack();
    command.arg("verify").arg(case.path("out")).arg("--against").arg(case.path("shard"));
    tools::told(&mut command)
}

fn rpm_needs(case: &Case, path: &str) -> bool {
    case.rpm("rocm-tool", "--requires").lines().any(|line| line == path)
}

#[test]
fn an_interpreter_of_the_build_machine_is_named_and_settled() {
    tools::need(&TOOLS);
    let line = format!("#!{OWN} -u");
    let case = scripts(&[("one", &line), ("two", &line)]);
    let expected = format!(
        "R066 interpreter-unresolved: rocm-tool: needs {OWN}, which neither the set nor debian-12 \
         provides (bin/one, bin/two); name another one, or none, under `interpreters`"
    );
    case.refused("", &["--strict"], &[&expected]);
    let found = told(&case, "", &[]);
    assert!(found.len() == 1 && found[0].ends_with(&expected), "{found:?}");
    // rpmbuild does the same.
    assert!(rpm_needs(&case, OWN));
    assert!(verify(&case).contains("exit status: 0"));
    let found = told(&case, "", &["--format", "rpm"]);
    assert!(found[0].contains("nor a distribution with rpm provides"), "{found:?}");

    let config = "[interpreters]\n'/opt/buildpython/*/bin/python3*' = '/usr/bin/python3'\n";
    let found = told(&case, config, &["--strict"]);
    let settled = format!("the interpreter {OWN} becomes /usr/bin/python3 (bin/one, bin/two)");
    assert!(found.len() == 1 && found[0].ends_with(&settled), "{found:?}");
    assert!(rpm_needs(&case, "/usr/bin/python3") && !rpm_needs(&case, OWN));
    assert!(case.depends("rocm-tool").split(", ").any(|name| name == "python3"));
    let script = fs::read_to_string(case.unpacked("rocm-tool").join("bin/one")).unwrap();
    assert_eq!(script, "#!/usr/bin/python3 -u\nprint()\n");
    let found = verify(&case);
    assert!(found.contains("exit status: 0"), "{found}");
    // The finding excuses another first line, but no other script.
    write(&case.stage("tool").join("bin/one"), 0o755, &format!("{line}\nother()\n"));
    let found = verify(&case);
    assert!(found.contains("bin/one") && found.contains("exit status: 1"), "{found}");
}

#[test]
fn an_interpreter_may_be_left_to_others() {
    tools::need(&TOOLS);
    let case = scripts(&[("one", &format!("#!{OWN}"))]);
    let found = told(&case, "[interpreters]\n'/opt/buildpython/**' = false\n", &["--strict"]);
    let settled = format!("the interpreter {OWN} stays without a dependency (bin/one)");
    assert!(found.len() == 1 && found[0].ends_with(&settled), "{found:?}");
    assert!(!rpm_needs(&case, OWN));
    let script = fs::read_to_string(case.unpacked("rocm-tool").join("bin/one")).unwrap();
    assert!(script.starts_with(&format!("#!{OWN}\n")));
    assert!(verify(&case).contains("exit status: 0"));
    // An interpreter mapped to itself is needed, and is expected on the system.
    let found = told(&case, &format!("[interpreters]\n'{OWN}' = '{OWN}'\n"), &["--strict"]);
    let settled = format!("the interpreter {OWN} is assumed to be installed (bin/one)");
    assert!(found.len() == 1 && found[0].ends_with(&settled), "{found:?}");
    assert!(rpm_needs(&case, OWN) && verify(&case).contains("exit status: 0"));
}

/// An interpreter named in the configuration must exist as well, unless the configuration says that it does.
#[test]
fn another_interpreter_that_nobody_has_is_named() {
    tools::need(&TOOLS);
    let case = scripts(&[("one", &format!("#!{OWN}"))]);
    let rule = format!("'{OWN}' = '/usr/bin/pyhton3'\n");
    let expected = "needs /usr/bin/pyhton3, which neither the set nor debian-12 provides (bin/one)";
    case.refused(&format!("[interpreters]\n{rule}"), &["--strict"], &[expected]);
    for (settled, is_needed) in [("'/usr/bin/pyhton3'", true), ("false", false)] {
        let settled = format!("[interpreters]\n{rule}'/usr/bin/pyhton3' = {settled}\n");
        let found = told(&case, &settled, &["--strict"]);
        assert!(found.len() == 1 && found[0].contains("becomes /usr/bin/pyhton3"), "{found:?}");
        assert_eq!(rpm_needs(&case, "/usr/bin/pyhton3"), is_needed);
        assert!(verify(&case).contains("exit status: 0"));
    }
}

/// A first line that is left alone must be the artifact's own.
#[test]
fn an_interpreter_that_is_left_alone_excuses_no_other_line() {
    tools::need(&TOOLS);
    let case = scripts(&[("one", &format!("#!{OWN}"))]);
    told(&case, "[interpreters]\n'/opt/buildpython/**' = false\n", &["--strict"]);
    write(&case.stage("tool").join("bin/one"), 0o755, "#!/bin/other -x\nprint()\n");
    let found = verify(&case);
    assert!(found.contains("V013") && found.contains("exit status: 1"), "{found}");
}

/// Quotes and variables are special to `env` only after its option -S; arguments need not be UTF-8.
#[test]
fn lines_with_odd_characters_are_judged_as_linux_does() {
    tools::need(&TOOLS);
    for (line, starts) in [
        ("#!/usr/bin/env $PYTHON", false),
        ("#!/usr/bin/env \"python3\"", false),
        ("#!/usr/bin/perl # é", true),
    ] {
        let case = scripts(&[("one", line)]);
        let file = case.stage("tool").join("bin/one");
        let bytes: Vec<u8> = line.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
        fs::write(&file, [&bytes[..], b"\nprint()\n"].concat()).unwrap();
        let found = told(&case, "", &[]);
        assert_eq!(found.is_empty(), starts, "{line}: {found:?}");
    }
}

/// Matching takes at most the length of the pattern times that of the path, with any number of `**`.
#[test]
fn patterns_of_many_folders_are_matched_at_once() {
    tools::need(&TOOLS);
    let case = scripts(&[("one", &format!("#!{}/sh", "/a".repeat(100)))]);
    for (last, code) in [("b", "R066"), ("a", "R068")] {
        let rule = format!("[interpreters]\n'{}/{last}/sh' = false\n", "/**/a".repeat(20));
        assert!(told(&case, &rule, &[])[0].contains(code));
    }
}

/// pip writes such scripts if its interpreter's path is too long for a first line.
#[test]
fn a_shell_that_hands_over_to_the_build_machine_is_seen_through() {
    tools::need(&TOOLS);
    let line = format!("#!/bin/sh\n'''exec' \"{OWN}\" \"$0\" \"$@\"\n' '''");
    let case = scripts(&[("one", &line)]);
    let expected = format!(
        "R066 interpreter-unresolved: rocm-tool: needs {OWN}, which neither the set nor debian-12 provides"
    );
    case.refused("", &["--strict"], &[&expected]);
    told(&case, "", &[]);
    assert!(rpm_needs(&case, "/bin/sh") && !rpm_needs(&case, OWN), "as rpmbuild does it");
    let config = format!("[interpreters]\n'{OWN}' = '/usr/bin/python3'\n");
    let found = told(&case, &config, &["--strict"]);
    assert!(found.len() == 1 && found[0].contains("becomes /usr/bin/python3"), "{found:?}");
    assert!(case.depends("rocm-tool").split(", ").any(|name| name == "python3"));
    let script = case.unpacked("rocm-tool").join("bin/one");
    tools::run(Command::new("/usr/bin/python3").arg(&script));
    assert!(fs::read_to_string(script).unwrap().starts_with("#!/usr/bin/python3\n'''exec'"));
    assert!(verify(&case).contains("exit status: 0"));
    // An interpreter declared to exist stays in place.
    told(&case, &format!("[interpreters]\n'{OWN}' = '{OWN}'\n"), &["--strict"]);
    let script = fs::read_to_string(case.unpacked("rocm-tool").join("bin/one")).unwrap();
    assert!(script.starts_with(&line));
}

#[test]
fn each_format_depends_as_its_own_tools_do() {
    tools::need(&TOOLS);
    for (line, distro, deb, rpm) in [
        ("#!/usr/bin/python3", "debian-12", "python3", "/usr/bin/python3"),
        ("#!/usr/bin/env python3", "debian-12", "python3", "/usr/bin/env"),
        ("#!/usr/bin/env -S python3 -u", "debian-12", "python3", "/usr/bin/env"),
        ("#!/usr/bin/python3.11", "debian-12", "python3.11", "/usr/bin/python3.11"),
        ("#!/usr/bin/env python3.13", "debian-13", "python3.13", "/usr/bin/env"),
        ("#!/usr/bin/perl -w", "debian-12", "perl", "/usr/bin/perl"),
        ("#! /usr/bin/ruby", "debian-12", "ruby", "/usr/bin/ruby"),
        ("#!/usr/bin/tclsh", "debian-12", "tcl", "/usr/bin/tclsh"),
        ("#!/bin/csh -f", "debian-12", "csh | tcsh", "/bin/csh"),
        ("#!/bin/sh", "debian-12", "", "/bin/sh"),
        ("#!/bin/bash -e", "debian-12", "", "/bin/bash"),
        ("#!/usr/bin/awk -f", "debian-13", "", "/usr/bin/awk"),
        ("#!/usr/bin/gnuplot", "debian-12", "gnuplot", "/usr/bin/gnuplot"),
    ] {
        let case = scripts(&[("script", line)]);
        let found = told(&case, "", &["--strict", "--distro", distro]);
        assert!(found.is_empty(), "{line}: {found:?}");
        let depends = case.depends("rocm-tool");
        assert_eq!(depends, deb, "{line}");
        assert!(rpm_needs(&case, rpm), "{line}");
    }
}

/// Asks lintian for missing dependencies on interpreters.
fn lintian(case: &Case) -> Vec<String> {
    let mut command = Command::new("lintian");
    command.args(["--allow-root", "--profile", "debian", "--fail-on", "none", "--tags"]);
    let tags = ["python3-script-but-no-python3-dep", "ruby-script-but-no-ruby-dep"];
    let tags = [tags, ["tclsh-script-but-no-tclsh-dep", "wish-script-but-no-wish-dep"]].concat();
    let further = ["gawk-script-but-no-gawk-dep", "php-script-but-no-php-cli-dep"];
    let tags = [tags, further.to_vec(), vec!["missing-dep-for-interpreter"]].concat().join(",");
    command.arg(tags).arg(case.path("out/rocm-tool_7.1.0-1_amd64.deb"));
    let told = tools::told(&mut command);
    told.lines().filter(|line| line.contains("-dep")).map(str::to_owned).collect()
}

#[test]
fn lintian_misses_no_interpreter() {
    tools::need(&["dpkg-deb", "rpm", "lintian"]);
    let lines = [
        ("python3", "#!/usr/bin/python3"),
        ("env", "#!/usr/bin/env python3"),
        ("perl", "#!/usr/bin/perl"),
        ("ruby", "#!/usr/bin/ruby"),
        ("tclsh", "#!/usr/bin/tclsh"),
        ("wish", "#!/usr/bin/wish"),
        ("csh", "#!/bin/csh"),
        ("ksh", "#!/bin/ksh"),
        ("lua", "#!/usr/bin/lua5.4"),
        ("node", "#!/usr/bin/node"),
        ("php", "#!/usr/bin/php"),
        ("gawk", "#!/usr/bin/gawk -f"),
        ("make", "#!/usr/bin/make -f"),
        ("expect", "#!/usr/bin/expect"),
        ("rscript", "#!/usr/bin/env Rscript"),
        ("octave", "#!/usr/bin/octave"),
        ("sh", "#!/bin/sh"),
    ];
    let case = scripts(&lines);
    assert!(told(&case, "", &["--strict"]).is_empty());
    assert_eq!(lintian(&case), [""; 0]);
    // Without any dependencies for them, all are missed except those that every system has.
    told(&case, "[interpreters]\n'**' = false\n", &[]);
    let missed = lintian(&case);
    for (name, _) in lines.iter().filter(|(name, _)| !["sh", "perl"].contains(name)) {
        assert!(
            missed.iter().any(|line| line.contains(&format!("bin/{name}"))),
            "{name}: {missed:?}"
        );
    }
}

#[test]
fn lines_that_start_nothing_need_nothing_and_are_named() {
    tools::need(&TOOLS);
    let long = format!("#!/usr/bin/python3 {}", "x".repeat(255));
    let longest = format!("#!/bin/sh {}", "x".repeat(245));
    assert_eq!(longest.len(), 255);
    let case = scripts(&[
        ("long", &long),
        ("return", "#!/bin/bash -e\r"),
        ("relative", "#!bin/python"),
        ("arguments", "#!/usr/bin/env python3 -u"),
        ("nothing", "#! "),
        ("longest", &longest),
    ]);
    let found = told(&case, "", &[]);
    let expected = [
        "names no program in its first line (bin/nothing)",
        "names /bin/bash in a first line that ends in a carriage return, which Linux treats as part of \
         it (bin/return)",
        "names /usr/bin/env python3 with arguments, which env treats as part of the name without its \
         option -S (bin/arguments)",
        "names /usr/bin/python3 in a first line longer than the 255 bytes that Linux reads (bin/long)",
        "names bin/python by a relative path, which Linux resolves in the working directory \
         (bin/relative)",
    ];
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for part in expected {
        assert!(found.iter().any(|line| line.contains(part)), "{part} is not in {found:?}");
    }
    assert_eq!(case.depends("rocm-tool"), "");
    let needs = case.rpm("rocm-tool", "--requires");
    let paths: Vec<&str> = needs.lines().filter(|line| line.starts_with('/')).collect();
    assert_eq!(paths, ["/bin/sh"]);
}

#[test]
fn what_is_no_script_and_what_the_set_has_is_silent() {
    tools::need(&TOOLS);
    let case = tool();
    let stage = case.stage("tool");
    write(&stage.join("bin/text"), 0o755, "no first line\n");
    write(&stage.join("share/library.py"), 0o644, &format!("#!{OWN}\n"));
    write(&stage.join("bin/own"), 0o755, "#!/opt/rocm-7.1/bin/interpreter\n");
    write(&stage.join("bin/linked"), 0o755, "#!/opt/rocm-7.1/lib/python/bin/python\n");
    write(&stage.join("bin/named"), 0o755, "#!/usr/bin/env interpreter\n");
    let other = case.stage("other");
    write(&other.join("bin/interpreter"), 0o755, "#!/bin/sh\n");
    write(&other.join("lib/python-3/bin/python"), 0o755, "#!/bin/sh\n");
    symlink("python-3", other.join("lib/python")).unwrap();
    let found = told(&case, "", &[]);
    assert!(found.is_empty(), "{found:?}");
    assert_eq!(case.depends("rocm-tool"), "rocm-other (<< 7.1.1~), rocm-other (>= 7.1.0-1)");
    // rpm knows the files of packages, and follows no link to a folder.
    for path in ["bin/interpreter", "lib/python-3/bin/python"] {
        assert!(rpm_needs(&case, &format!("/opt/rocm-7.1/{path}")), "{path}");
    }
    // A file without execute permission cannot run anything, and neither can a missing one.
    write(&other.join("bin/interpreter"), 0o644, "#!/bin/sh\n");
    fs::remove_file(other.join("lib/python")).unwrap();
    let found = told(&case, "", &[]);
    let expected = [
        "needs /opt/rocm-7.1/bin/interpreter, a file of the set that is not executable (bin/own)",
        "needs /usr/bin/env interpreter, a file of the set that is not executable (bin/named)",
        "needs /opt/rocm-7.1/lib/python/bin/python, which neither the set nor debian-12 provides \
         (bin/linked)",
    ];
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for part in expected {
        assert!(found.iter().any(|line| line.contains(part)), "{part} is not in {found:?}");
    }
}

/// The paths below the prefix that a package provides.
fn provided(case: &Case, package: &str) -> Vec<String> {
    let all = rpm_list(&case.path(&format!("out/{package}.rpm")), "--provides");
    let paths = all.lines().filter_map(|line| line.strip_prefix("/opt/rocm-7.1/"));
    let mut paths: Vec<String> = paths.map(str::to_owned).collect();
    paths.sort();
    paths
}

/// dnf and zypper find a required path among the files in `primary`, or if a package provides it.
#[test]
fn required_paths_that_clients_do_not_find_are_provided() {
    tools::need(&TOOLS);
    let (one, two) = ("rocm-tool-7.1.0-1.x86_64", "rocm-other-7.1.0-1.noarch");
    let case = tool();
    let (stage, other) = (case.stage("tool"), case.stage("other"));
    for (script, interpreter) in [
        ("own", "libexec/runner"),
        ("linked", "libexec/link"),
        ("through-folder", "lib/python/libexec/python"),
        ("listed", "bin/interpreter"),
    ] {
        let line = format!("#!/opt/rocm-7.1/{interpreter}\n");
        write(&stage.join("bin").join(script), 0o755, &line);
    }
    write(&stage.join("libexec/runner"), 0o755, "#!/bin/sh\n");
    for program in ["libexec/runner-2", "lib/python-3/libexec/python", "bin/interpreter"] {
        write(&other.join(program), 0o755, "#!/bin/sh\n");
    }
    symlink("runner-2", other.join("libexec/link")).unwrap();
    symlink("python-3", other.join("lib/python")).unwrap();
    let python = ["lib/python-3", "lib/python-3/libexec/python"];
    let config = "[relations.rocm-other]\nrpm.requires = ['/opt/rocm-7.1/lib/libtool.a']\n\
                  [relations.rocm-tool]\nrpm.requires = ['/opt/rocm-7.1/lib/python-3', \
                  '/opt/absent', '(/opt/rocm-7.1/libexec/runner-2 or absent)']\n";
    case.built(config, &[]);
    assert_eq!(provided(&case, one), ["lib/libtool.a", "libexec/runner"]);
    let programs = ["libexec/link", "libexec/runner-2"];
    assert_eq!(provided(&case, two), [&python[..], &programs].concat());
    let found = verify(&case);
    assert!(found.contains("exit status: 0"), "{found}");
    // Without the requirement, or where another package provides the path, nothing is added.
    let removed = "[relations.rocm-tool]\nrpm.remove = ['/opt/rocm-7.1/libexec/runner']\n\
                   rpm.provides = ['/opt/rocm-7.1/libexec/link']\n";
    case.built(removed, &[]);
    assert_eq!(provided(&case, one), ["libexec/link"]);
    assert_eq!(provided(&case, two), python[1..]);
    assert_eq!(case.verified(), (Some(0), Vec::new()));
    // Packages of which one does not provide what the other requires are named.
    case.built("[relations.rocm-other]\nrpm.remove = ['/opt/rocm-7.1/libexec/link']\n", &[]);
    let (status, problems) = case.verified();
    let expected = format!("requires /opt/rocm-7.1/libexec/link of {two}.rpm, which no package");
    assert_eq!((status, problems.len()), (Some(1), 1), "{problems:?}");
    assert!(problems[0].starts_with("V050") && problems[0].contains(&expected), "{problems:?}");
}

/// A run without the owner of a required path cannot let it provide the path.
#[test]
fn a_path_that_an_earlier_package_does_not_provide_is_named() {
    tools::need(&TOOLS);
    let case = tool();
    write(&case.stage("other").join("libexec/runner"), 0o755, "#!/bin/sh\n");
    case.built("", &[]);
    let since = case.path("first.json");
    fs::copy(case.path("out/packages.json"), &since).unwrap();
    let line = "#!/opt/rocm-7.1/libexec/runner\n";
    write(&case.stage("tool").join("bin/own"), 0o755, line);
    let options = ["--release", "2", "--since", since.to_str().unwrap(), "--only", "tool"];
    let said = case.built("", &options);
    let expected = "rocm-tool 7.1.0-2 needs /opt/rocm-7.1/libexec/runner, which no suitable \
                    package provides";
    assert!(said.contains("R113 earlier-held-back: rpm: ") && said.contains(expected), "{said}");
    let said = case.built("", &options[..4]);
    assert!(!said.contains("R113"), "{said}");
    assert_eq!(provided(&case, "rocm-other-7.1.0-2.noarch"), ["libexec/runner"]);
    // Later runs need the owner no more.
    fs::copy(case.path("out/packages.json"), &since).unwrap();
    write(&case.stage("tool").join("bin/second"), 0o755, line);
    let said = case.built("", &["--release", "3", "--since", options[3], "--only", "tool"]);
    assert!(case.path("out/rocm-tool-7.1.0-3.x86_64.rpm").exists(), "{said}");
    assert!(!said.contains("R113"), "{said}");
}

#[test]
fn a_loader_of_the_build_machine_is_named() {
    tools::need(&["cc", "dpkg-deb", "rpm"]);
    let case = Case::new();
    let program = case.stage("tool").join("bin/program");
    let source = "int main(void) { return 0; }";
    case.compile(
        &program,
        source,
        "-Wl,--dynamic-linker=/nix/store/glibc/lib/ld-linux-x86-64.so.2",
    );
    case.compile(&case.stage("tool").join("bin/good"), source, "");
    let found = told(&case, "", &[]);
    let expected = "rocm-tool: is loaded by /nix/store/glibc/lib/ld-linux-x86-64.so.2, which neither the \
                    set nor debian-12 provides (bin/program); link it for the loader of the distribution, or \
                    set it to false in `interpreters`";
    assert!(found.len() == 1 && found[0].ends_with(expected), "{found:?}");
    // A program keeps its own interpreter.
    let other = "[interpreters]\n'/nix/**' = '/lib64/ld-linux-x86-64.so.2'\n";
    assert!(told(&case, other, &[])[0].ends_with(expected));
    let found = told(&case, "[interpreters]\n'/nix/**' = false\n", &["--strict"]);
    assert!(found.len() == 1 && found[0].contains("R068"), "{found:?}");
}

#[test]
fn settings_of_interpreters_are_checked() {
    let case = scripts(&[("script", "#!/bin/sh")]);
    for (value, message) in [
        ("true", "`true` is not allowed; give an absolute path, or false"),
        ("'python3'", "`python3` is not an absolute path without whitespace"),
        (
            "'/usr/bin/env python3'",
            "`/usr/bin/env python3` is not an absolute path without whitespace",
        ),
        ("7", "the absolute path of an interpreter, or false"),
    ] {
        let config = format!("[interpreters]\n'/opt/x' = {value}\n");
        case.refused(&config, &[], &["line 2, column 12", message]);
    }
}

/// The name of a Debian package, and the one of the two that is installed.
#[test]
fn a_name_of_the_distribution_is_a_finding() {
    tools::need(&TOOLS);
    let case = Case::new();
    write(&case.stage("smi").join("share/smi"), 0o644, "");
    let line = name_finding(&case, &["--version", "7.1.0"]).unwrap();
    let set = "R067 name-of-distribution: rocm-smi: is also the name of a package of debian-12, with \
               version 5.2.3-2: apt prefers the higher version, that of the set (7.1.0-1), and replaces \
               an installed package of the distribution by it; give the package another name \
               (`selectors`, `scheme`) to keep both";
    assert!(line.ends_with(set), "{line}");
    let line = name_finding(&case, &["--version", "5.2.3", "--distro", "debian-13"]).unwrap();
    let distribution = "debian-13, with version 6.1.2-1: apt prefers the higher version and does not \
                        install that of the set (5.2.3-1); give the package another name (`selectors`, \
                        `scheme`), or set `epoch`";
    assert!(line.ends_with(distribution), "{line}");
    let line = name_finding(&case, &["--version", "5.2.3", "--release", "2"]).unwrap();
    assert!(line.contains("the set has the same version, so apt may install either"), "{line}");
    assert_eq!(name_finding(&case, &["--version", "7.1.0", "--format", "rpm"]), None);
    assert_eq!(name_finding(&case, &["--version", "7.1.0", "--scheme", "rocm-versioned"]), None);
    fs::remove_dir_all(case.path("out")).unwrap();
    case.refused("", &["--strict"], &["R067 name-of-distribution: rocm-smi"]);
}

/// The names come from the root, so a release without a shipped table is judged as well.
#[test]
fn a_name_of_a_roots_own_rocm_is_a_finding() {
    tools::need(&TOOLS);
    let case = Case::new();
    write(&case.stage("smi").join("share/smi"), 0o644, "");
    let root = case.path("root");
    write(&root.join("etc/os-release"), 0o644, "ID=debian\nVERSION_CODENAME=forky\n");
    fs::create_dir_all(root.join("var/lib/dpkg/info")).unwrap();
    let packages =
        [("dpkg", "1.23.11", "Dpkg Developers"), ("rocm-smi", "9.1.0-3", "Debian ROCm Team")];
    let status = packages.map(|(name, version, team)| {
        write(&root.join(format!("var/lib/dpkg/info/{name}.list")), 0o644, "/.\n");
        format!(
            "Package: {name}\nStatus: install ok installed\nMaintainer: {team} <debian-ai@lists.debian.org>\n\
             Architecture: amd64\nSource: {name}-lib\nVersion: {version}\nDescription: {name}\n\n"
        )
    });
    write(&root.join("var/lib/dpkg/status"), 0o644, &status.concat());
    let line =
        name_finding(&case, &["--version", "7.1.0", "--distro", root.to_str().unwrap()]).unwrap();
    assert!(line.contains("rocm-smi: is also the name of a package of"), "{line}");
    assert!(line.contains("with version 9.1.0-3: apt prefers the higher version"), "{line}");
}

fn name_finding(case: &Case, options: &[&str]) -> Option<String> {
    let mut command = rockpack();
    command.args(["build", "--artifacts"]).arg(case.path("shard")).args(options);
    let told = tools::told(command.arg("--out").arg(case.path("out")));
    assert!(told.contains("exit status: 0"), "{told}");
    told.lines().find(|line| line.contains("R067")).map(|line| line.trim().to_owned())
}

//! The program's integration into a shell: manual pages and completions.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::example::{rockpack, shards};
use support::fat_wheels::fat;
use support::program::rockpack_path;
use support::tools::{need, succeed};

/// The words of a text that look like long options.
fn options(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let words = text.split(|c: char| !is_part(c)).filter(|word| word.starts_with("--"));
    words.filter(|word| word.len() > 3).map(str::to_owned).collect()
}

fn without_aliases(help: &str) -> String {
    let mut parts = help.split("[alias");
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |text, part| text + part.split_once(']').unwrap().1)
}

/// The commands that the help lists.
fn commands() -> Vec<String> {
    let help = succeed(rockpack().arg("--help"));
    let (_, below) = help.split_once("\nUsage: ").unwrap();
    let (list, _) = below.split_once("\nOptions:\n").unwrap();
    let lines = list.lines().filter_map(|line| line.strip_prefix("  "));
    let words = lines.filter_map(|line| line.split(' ').next());
    words.filter(|word| !["", "help"].contains(word)).map(str::to_owned).collect()
}

#[test]
fn every_command_has_a_manual_page_with_all_options() {
    need(&["groff", "man", "lexgrog"]);
    let room = tempfile::tempdir().unwrap();
    let out = room.path().join("man1");
    succeed(rockpack().arg("man").arg(&out));
    let files = fs::read_dir(&out).unwrap().map(|page| page.unwrap().path());
    let pages: BTreeMap<PathBuf, String> =
        files.map(|page| (page.clone(), shown_by_man(&page))).collect();
    let all = &pages[&out.join("rockpack.1")];
    for (path, page) in &pages {
        check_sections(page, &pages);
        let named = succeed(Command::new("lexgrog").arg(path));
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(named.contains(&format!(": \"{name} - ")), "{named}");
    }
    for (command, texts) in [
        ("build", ["AWS_REGION", "~/.aws/config", "packages.json", "--cache DIR"]),
        ("gpu", ["TMPDIR", "/sys/class/kfd", "apt(8)", "\"Strix Halo\""]),
        (
            "config-show",
            ["--config FILE", "NO_COLOR", "rockpack config show", "rockpack-config(1)"],
        ),
    ] {
        let page = &pages[&out.join(format!("rockpack-{command}.1"))];
        assert!(texts.iter().all(|text| page.contains(text)), "{page}");
    }
    assert!(!pages[&out.join("rockpack-explain.1")].contains("AWS_REGION"));
    for command in commands() {
        assert!(all.contains(&format!("rockpack-{command}(1)")), "{command}: {all}");
        let page = &pages[&out.join(format!("rockpack-{command}.1"))];
        assert!(page.contains(&format!("rockpack {command}")), "{page}");
        let help = succeed(rockpack().arg(&command).arg("--help"));
        // Only the help lists other spellings of an option.
        let help = without_aliases(&help);
        let lost: Vec<String> = options(&help).difference(&options(page)).cloned().collect();
        assert!(lost.is_empty(), "{command}: {lost:?}");
    }
    // The same pages already exist.
    succeed(rockpack().arg("man").arg(&out));
}

/// Checks the order of a page's last sections, of which FILES may be missing, its footer, and that the pages of
/// rockpack that it names exist.
fn check_sections(page: &str, pages: &BTreeMap<PathBuf, String>) {
    let titles = page.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()));
    let titles: Vec<&str> = titles.filter(|line| !line.contains('(') && *line != "FILES").collect();
    let last = ["EXIT STATUS", "ENVIRONMENT", "EXAMPLES", "SEE ALSO"];
    assert!(titles.ends_with(&last) && !page.contains("]("), "{titles:?}");
    let source = concat!("rockpack ", env!("CARGO_PKG_VERSION"));
    assert!(page.trim_end().lines().last().unwrap().starts_with(source), "{page}");
    let (_, related) = page.rsplit_once("SEE ALSO\n").unwrap();
    let words = related.split([' ', ',', '\n']).filter(|word| word.starts_with("rockpack"));
    let names: Vec<&str> = words.filter_map(|word| word.strip_suffix("(1)")).collect();
    let have = |name: &&str| pages.keys().any(|path| path.file_stem().unwrap() == *name);
    assert!(!names.is_empty() && names.iter().all(have), "{names:?}");
}

fn shown_by_man(page: &Path) -> String {
    let said = Command::new("groff").args(["-man", "-ww", "-z"]).arg(page).output().unwrap();
    assert!(said.status.success() && said.stderr.is_empty(), "{said:?}");
    let mut man = Command::new("man");
    man.arg("-l").arg(page).env("MANWIDTH", "1000").env("MANPAGER", "cat");
    succeed(man.env("MAN_KEEP_FORMATTING", "").env("LC_ALL", "C"))
}

/// The examples in the help of the program and of every command.
fn examples() -> Vec<String> {
    let words = commands();
    let helps =
        [vec!["--help"]].into_iter().chain(words.iter().map(|it| vec![it.as_str(), "--help"]));
    let helps = helps.map(|words| succeed(rockpack().args(words)));
    let texts = helps.map(|help| help.split_once("\nExamples:\n").unwrap().1.to_owned());
    let lines: Vec<String> =
        texts.flat_map(|it| it.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    lines.iter().filter_map(|line| line.strip_prefix("    ")).map(str::to_owned).collect()
}

/// In a folder with shards and a folder with a wheel, all examples run one after the other, but for those that
/// need the network, this machine's files or its GPUs.
#[test]
fn the_examples_of_the_help_run() {
    need(&["bash"]);
    let room = tempfile::tempdir().unwrap();
    symlink(shards(), room.path().join("shards")).unwrap();
    fs::create_dir(room.path().join("wheelhouse")).unwrap();
    fat().write(&room.path().join("wheelhouse"));
    let mut path = rockpack_path().parent().unwrap().as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap());
    let elsewhere = ["s3://", "/opt/", "distro /", "gpu --from"];
    let (left_out, run): (Vec<_>, Vec<_>) =
        examples().into_iter().partition(|line| elsewhere.iter().any(|it| line.contains(it)));
    assert!(left_out.len() < 10 && run.len() > 20, "{left_out:?}");
    for line in run {
        let mut bash = Command::new("bash");
        bash.args(["-c", &line]).current_dir(room.path()).env("HOME", room.path());
        bash.env("PATH", &path).env("GITHUB_STEP_SUMMARY", "summary.md");
        succeed(bash.env_remove("SOURCE_DATE_EPOCH"));
    }
}

/// `-h` takes at most 48 lines, with one line for each option; `--help` is complete.
#[test]
fn the_short_help_of_every_command_fits_a_screen() {
    assert!(line_count(&["-h"]) <= 48);
    for command in commands() {
        let (short, long) = (line_count(&[&command, "-h"]), line_count(&[&command, "--help"]));
        assert!(short <= 48 && short < long, "{command}: {short} lines of {long}");
    }
}

fn line_count(arguments: &[&str]) -> usize {
    succeed(rockpack().args(arguments)).lines().count()
}

/// The completions that bash offers for the last of `words`.
fn completed(script: &Path, words: &[&str]) -> Vec<String> {
    let line = "source \"$0\"; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); \
                _rockpack rockpack \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD-1]}\"; \
                printf '%s\\n' \"${COMPREPLY[@]}\"";
    let mut bash = Command::new("bash");
    let said = succeed(bash.args(["-c", line]).arg(script).args(words));
    said.lines().map(str::to_owned).collect()
}

#[test]
fn bash_completes_commands_options_and_values() {
    need(&["bash"]);
    let room = tempfile::tempdir().unwrap();
    let script = room.path().join("rockpack.bash");
    fs::write(&script, succeed(rockpack().args(["completions", "bash"]))).unwrap();
    assert_eq!(completed(&script, &["rockpack", "bu"]), ["build"]);
    assert_eq!(completed(&script, &["rockpack", "build", "--artif"]), ["--artifacts"]);
    assert_eq!(completed(&script, &["rockpack", "config", "sc"]), ["schema"]);
    assert_eq!(completed(&script, &["rockpack", "--color", "al"]), ["always"]);
    assert_eq!(completed(&script, &["rockpack", "explain", "R09"]).first().unwrap(), "R090");
    assert_eq!(completed(&script, &["rockpack", "explain", "R070", "V031"]), ["V031"]);
    let distributions = completed(&script, &["rockpack", "build", "--distro", "debian-1"]);
    assert_eq!(distributions, ["debian-12", "debian-13"]);
    assert!(!completed(&script, &["rockpack", "plan", "--distro", ""]).contains(&"rpm".to_owned()));
    let scheme = ["rockpack", "config", "show", "--scheme", "rocm-"];
    assert_eq!(completed(&script, &scheme), ["rocm-versioned"]);
    let (all, commands) = (completed(&script, &["rockpack", ""]), commands());
    for command in &commands {
        assert!(all.contains(command), "{command}: {all:?}");
    }
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        let script = succeed(rockpack().args(["completions", shell]));
        assert!(commands.iter().all(|command| script.contains(command.as_str())), "{shell}");
        let values: &[&str] = match shell {
            "zsh" => &["R070", "library-unresolved", "V031", "debian-13", "rocm-versioned"],
            "fish" => {
                &["'(rockpack explain | string replace \" \" \\t)'", "debian-13", "rocm-versioned"]
            }
            _ => &[],
        };
        assert!(values.iter().all(|value| script.contains(value)), "{shell}");
    }
}

/// What completions offer is not all that the parser takes.
#[test]
fn values_that_no_shell_completes_are_taken() {
    let explained = succeed(rockpack().args(["explain", "library-unresolved", "gfx1151"]));
    assert!(explained.starts_with("R070 library-unresolved\n"), "{explained}");
    let mut plan = rockpack();
    plan.args(["plan", "--artifacts"]).arg(shards()).args(["--version", "7.1.0", "--distro"]);
    succeed(plan.arg("deb=debian-13,rpm=el9"));
}

#[test]
fn codes_are_explained_and_slips_are_named() {
    let explain = |words: &[&str]| rockpack().arg("explain").args(words).output().unwrap();
    let said = succeed(rockpack().args(["explain", "r012"]));
    assert!(said.starts_with("R012 arch-not-grouped\n\n"), "{said}");
    assert_eq!(said, succeed(rockpack().args(["explain", "arch-not-grouped"])));
    assert!(said.contains("Why it matters: ") && said.contains("To solve it: "), "{said}");
    let both = succeed(rockpack().args(["explain", "V034", "R012"]));
    assert!(both.starts_with("V034 host-binary-missing\n\n") && both.ends_with(&said), "{both}");
    let list = succeed(rockpack().arg("explain"));
    for code in ["R001 manifest-prefix-absent", "V001 unreadable", "V084 publication-in-future"] {
        assert!(list.lines().any(|line| line == code), "{list}");
    }
    let unknown = explain(&["arch-not-groupd"]);
    assert_eq!(unknown.status.code(), Some(64));
    let said = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(said.contains("did you mean `arch-not-grouped`?"), "{said}");
}

/// A quiet run reports warnings and errors even if it fails.
#[test]
fn a_quiet_run_that_fails_says_no_notes() {
    let out = tempfile::tempdir().unwrap();
    let mut build = rockpack();
    build.args(["build", "--strict", "--artifacts"]).arg(support::example::shards());
    build.arg("--out").arg(out.path().join("out"));
    assert!(has_notes(&stderr_of_failure(&mut build)));
    let quiet = stderr_of_failure(build.arg("-q"));
    assert!(!has_notes(&quiet) && quiet.contains("R003 version-unset"), "{quiet}");
}

fn stderr_of_failure(build: &mut Command) -> String {
    let output = build.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    String::from_utf8(output.stderr).unwrap()
}

fn has_notes(said: &str) -> bool {
    said.lines().any(|line| line.starts_with("note: "))
}

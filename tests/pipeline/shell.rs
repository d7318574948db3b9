//! The program's integration into a shell: manual pages and completions.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::example::rockpack;
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
    let (_, list) = help.split_once("Commands:\n").unwrap();
    let (list, _) = list.split_once("\n\n").unwrap();
    let lines = list.lines().filter_map(|line| line.strip_prefix("  "));
    let words = lines.filter_map(|line| line.split(' ').next());
    words.filter(|word| !["", "help"].contains(word)).map(str::to_owned).collect()
}

#[test]
fn every_command_has_a_manual_page_with_all_options() {
    need(&["groff", "man"]);
    let room = tempfile::tempdir().unwrap();
    let out = room.path().join("man1");
    succeed(rockpack().arg("man").arg(&out));
    let files = fs::read_dir(&out).unwrap().map(|page| page.unwrap().path());
    let pages: BTreeMap<PathBuf, String> =
        files.map(|page| (page.clone(), shown_by_man(&page))).collect();
    let all = &pages[&out.join("rockpack.1")];
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

fn shown_by_man(page: &Path) -> String {
    let said = Command::new("groff").args(["-man", "-ww", "-z"]).arg(page).output().unwrap();
    assert!(said.status.success() && said.stderr.is_empty(), "{said:?}");
    let mut man = Command::new("man");
    man.arg("-l").arg(page).env("MANWIDTH", "1000").env("MANPAGER", "cat");
    succeed(man.env("MAN_KEEP_FORMATTING", "").env("LC_ALL", "C"))
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
    let (all, commands) = (completed(&script, &["rockpack", ""]), commands());
    for command in &commands {
        assert!(all.contains(command), "{command}: {all:?}");
    }
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        let script = succeed(rockpack().args(["completions", shell]));
        assert!(commands.iter().all(|command| script.contains(command.as_str())), "{shell}");
    }
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
    assert!(said.contains("`arch-not-grouped` is"), "{said}");
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

//! `accept`: findings that a configuration accepts, with a reason.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;
use support::example::{configuration, rockpack, shards};
use support::tools;
use tempfile::TempDir;

/// An entry for every warning of the example shards: code, subject, reason.
const ALL: [[&str; 3]; 3] = [
    ["R012", "gfx906", "every compiler falls back to it"],
    ["R050", "runtime_relation.*", "the runtime is not packaged yet"],
    ["R070", "libamdhip64.so*", "users install the runtime by hand"],
];

/// A folder with the example configuration and entries of `accept`.
struct Room(TempDir);

impl Room {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// The configuration as JSON.
    fn json(&self, entries: &[[&str; 3]]) -> PathBuf {
        let text = fs::read_to_string(configuration()).unwrap();
        let mut config: Value = serde_json::from_str(&text).unwrap();
        let entry = |[code, subject, reason]: &[&str; 3]| serde_json::json!({ "code": code, "subject": subject, "reason": reason });
        config["accept"] = entries.iter().map(entry).collect();
        let file = self.0.path().join("config.json");
        fs::write(&file, config.to_string()).unwrap();
        file
    }

    /// The command `words` on the example shards, with these entries.
    fn command(&self, words: &[&str], entries: &[[&str; 3]]) -> Command {
        let mut command = rockpack();
        command.args(words).arg("--artifacts").arg(shards()).arg("--config");
        command.arg(self.json(entries)).current_dir(self.0.path());
        command
    }

    fn plan(&self, words: &[&str], entries: &[[&str; 3]]) -> Output {
        let mut command = self.command(&["plan", "--version", "7.1.0", "--strict", "-v"], entries);
        command.args(words).output().unwrap()
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_strict_build_takes_what_is_accepted_and_says_so() {
    let room = Room::new();
    let words = ["build", "--version", "7.1.0", "--out", "out"];
    let output = tools::run(room.command(&words, &ALL).args(["--strict", "-v"]));
    let said = text(output.stderr);
    let line =
        "accepted: R070 library-unresolved: rocm-blas: needs libamdhip64.so.7, which neither";
    assert!(said.lines().any(|it| it.starts_with(line)), "{said}");
    assert!(said.contains("; reason: users install the runtime by hand\n"), "{said}");
    assert!(!said.contains("warning: "), "{said}");
    let receipt = fs::read(room.0.path().join("out/packages.json")).unwrap();
    let receipt: Value = serde_json::from_slice(&receipt).unwrap();
    let findings = receipt["findings"].as_array().unwrap();
    let accepted = findings.iter().filter(|finding| finding.get("accepted").is_some());
    let accepted: Vec<_> =
        accepted.map(|it| (it["code"].clone(), it["accepted"].clone())).collect();
    assert_eq!(accepted, ALL.map(|[code, _, reason]| (code.into(), reason.into())));
    // Accepted findings stay: verify takes them as the explanation.
    let mut verify = rockpack();
    tools::run(verify.args(["verify", "out"]).current_dir(room.0.path()));
    // Every command that reads the receipt reads them again.
    let mut plan = room.command(&["plan", "--version", "7.1.0", "--since", "out"], &ALL);
    tools::run(plan.args(["--since", "out/packages.json"]));
}

#[test]
fn each_warning_that_is_not_accepted_fails_a_strict_run() {
    let room = Room::new();
    for left in 0..ALL.len() {
        let mut entries = ALL.to_vec();
        let [code, ..] = entries.remove(left);
        let output = room.plan(&[], &entries);
        let said = text(output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        let errors: Vec<&str> = said.lines().filter(|line| line.starts_with("  × ")).collect();
        assert_eq!(errors, ["  × 1 warning with --strict"], "{said}");
        let warnings: Vec<&str> =
            said.lines().filter(|line| line.starts_with("warning: ")).collect();
        assert!(warnings.len() == 1 && warnings[0].contains(&format!(": {code} ")), "{said}");
        assert!(said.contains("accept them by `accept`"), "{said}");
    }
}

#[test]
fn json_and_plans_have_the_reason() {
    let room = Room::new();
    let output = room.plan(&["--json"], &ALL);
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(finding(&plan, "R070")["accepted"], ALL[2][2]);
    assert_eq!(finding(&plan, "R070")["severity"], "warning");
    assert_eq!(finding(&plan, "R021").get("accepted"), None);
    let output = room.command(&["recombine", "--output-dir", "joined"], &ALL).output().unwrap();
    let said = text(output.stderr);
    assert!(output.status.success() && !said.contains("R012") && !said.contains("R098"), "{said}");
}

fn finding<'a>(plan: &'a Value, code: &str) -> &'a Value {
    let findings = plan["findings"].as_array().unwrap();
    findings.iter().find(|finding| finding["code"] == code).unwrap()
}

/// Patterns match a finding's subject and single values, not the items of its lists.
#[test]
fn subjects_are_held_against_single_things() {
    let room = Room::new();
    for (pattern, fits) in [
        ("libamdhip64.so.7", true),
        ("rocm-blas", true),
        ("debian-12", true),
        ("*", true),
        ("libamdhip64", false),
        ("bin/exblas-bench", false),
        ("*libexblas.so.1.2", false),
        ("needs *", false),
    ] {
        let output = room.plan(&[], &[ALL[0], ALL[1], ["R070", pattern, "a test"]]);
        let said = text(output.stderr);
        assert_eq!(output.status.success(), fits, "{pattern}: {said}");
        let stale = format!("R098 accept-unmatched: accept.2: accepts R070 about `{pattern}`");
        assert_eq!(said.contains(&stale), !fits, "{said}");
    }
}

#[test]
fn an_entry_that_fits_nothing_is_a_finding() {
    let room = Room::new();
    let stale = ["R013", "gfx1030", "is not built yet"];
    let entries = [ALL[0], ALL[1], ALL[2], stale];
    let output = room.plan(&[], &entries);
    let said = text(output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let expected = "R098 accept-unmatched: accept.3: accepts R013 about `gfx1030`, but this set has \
                    no such finding: remove the entry, or correct its subject";
    assert!(said.contains(expected), "{said}");
    // The subject may be in a part of the set that is not built, or exist in another distribution.
    for limit in [["--only", "blas"], ["--format", "deb"], ["--distro", "debian-13"]] {
        let output = room.plan(&limit, &entries);
        let said = text(output.stderr);
        assert!(output.status.success(), "{limit:?}: {said}");
        assert!(
            said.contains("note: R099 accept-unmatched-here: accept.3: accepts R013"),
            "{said}"
        );
    }
}

/// Findings about an earlier set appear only if the command names one.
#[test]
fn an_entry_for_updates_is_no_mistake_elsewhere() {
    let room = Room::new();
    let entries = [ALL[0], ALL[1], ALL[2], ["R087", "rocm-sparse", "is gone for good"]];
    let output = room.plan(&[], &entries);
    let said = text(output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("note: R099 accept-unmatched-here: accept.3: accepts R087"), "{said}");
    let plan = room.plan(&["--json"], &ALL).stdout;
    fs::write(room.0.path().join("plan.json"), plan).unwrap();
    let said = text(room.plan(&["--since", "plan.json"], &entries).stderr);
    assert!(said.contains("R098 accept-unmatched: accept.3: accepts R087"), "{said}");
}

#[test]
fn entries_that_say_nothing_are_refused() {
    let room = Room::new();
    for (entry, expected) in [
        (["R0700", "x", "y"], "accept.0.code: `R0700` is not a finding code"),
        (["R0700", "x", "y"], "did you mean `R070`?"),
        (["r070", "x", "y"], "did you mean `R070`?"),
        (["library-unresolved", "x", "y"], "did you mean `R070`?"),
        (["V031", "x", "y"], "is not a finding code"),
        (["R096", "x", "y"], "R096 cache-entry-damaged is not a finding about packages"),
        (["R098", "x", "y"], "R098 accept-unmatched is not a finding about packages"),
        (["R070", "x", " "], "accept.0.reason: must be one line of text that is not empty"),
        (["R070", "", "y"], "accept.0.subject: must be one line of text that is not empty"),
    ] {
        let output = room.plan(&[], &[entry]);
        let said = text(output.stderr);
        assert_eq!(output.status.code(), Some(64), "{said}");
        assert!(said.contains("config.json: line 1, column ") && said.contains(expected), "{said}");
    }
    let file = room.0.path().join("c.toml");
    for (key, expected) in [("", "missing field `reason`"), ("resaon = 'y'", "`reason`?")] {
        fs::write(&file, format!("[[accept]]\ncode = 'R070'\nsubject = 'x'\n{key}\n")).unwrap();
        let mut plan = rockpack();
        plan.args(["plan", "--version", "7.1.0", "--artifacts"]).arg(shards());
        let said = text(plan.arg("--config").arg(&file).output().unwrap().stderr);
        assert!(said.contains("c.toml: line ") && said.contains(expected), "{said}");
    }
}

#[test]
fn config_show_has_the_entries_with_their_place() {
    let room = Room::new();
    let shown = tools::succeed(&mut room.command(&["config", "show", "--json"], &ALL));
    let shown: Vec<Value> = serde_json::from_str(&shown).unwrap();
    let accept = shown.iter().find(|setting| setting["key"] == "accept").unwrap();
    assert_eq!(accept["origin"], "file");
    assert_eq!(accept["value"][2]["subject"], "libamdhip64.so*");
}

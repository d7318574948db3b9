//! Findings with their severity and remedy, code objects that are lost, and paths that are left out.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use support::example::{GROUPS, PREFIX, Set, build_of, configuration, shards, tree};
use support::{python, tools};
use tempfile::TempDir;

use super::{json, markdown, report};

/// Reads the remedy of each code from the pages of findings: one paragraph, of links the words alone.
const REMEDIES: &str = r"
import json, re, sys
remedies = {}
for section in re.split(r'^## (?=R\d{3} )', sys.stdin.read(), flags=re.M)[1:]:
    found = re.search(r'^To solve it: (.*?)(?:\n\n|\Z)', section, re.M | re.S)
    if found:
        text = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', found[1])
        remedies[section[:4]] = ' '.join(text.split())
print(json.dumps(remedies))
";

fn remedies() -> Value {
    let pages = fs::read_to_string(tools::repository("docs/reference/findings.md")).unwrap();
    serde_json::from_str(&python::run(REMEDIES, &[], &pages).unwrap()).unwrap()
}

/// A receipt of the example with other findings.
fn receipt_with(folder: &TempDir, findings: &[Value]) -> PathBuf {
    let mut receipt = Set::build().receipt();
    receipt["findings"] = json!(findings);
    let file = folder.path().join("packages.json");
    fs::write(&file, receipt.to_string()).unwrap();
    file
}

fn severities(found: &Value) -> Vec<&str> {
    let findings = found["findings"].as_array().unwrap().iter();
    findings.map(|own| own["severity"].as_str().unwrap()).collect()
}

/// Builds the example into a folder with a configuration that accepts two of its three warnings.
fn build_accepting(folder: &Path) -> PathBuf {
    let text = fs::read_to_string(configuration()).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    config["accept"] = json!([
        { "code": "R012", "subject": "gfx906", "reason": "every compiler falls back to it" },
        { "code": "R070", "subject": "libamdhip64.so*", "reason": "users install it by hand" },
    ]);
    let (file, out) = (folder.join("config.json"), folder.join("out"));
    fs::write(&file, config.to_string()).unwrap();
    let mut build = support::example::rockpack();
    build.arg("build").arg("--artifacts").arg(shards()).arg("--config").arg(file);
    tools::run(build.args(["--version", "7.1.0", "--format", "deb", "--out"]).arg(&out));
    out
}

#[test]
fn warnings_are_first_and_accepted_findings_last() {
    let folder = tempfile::tempdir().unwrap();
    let out = build_accepting(folder.path());
    let found = json(&mut report(&out));
    assert_eq!(severities(&found), ["warning", "note", "note", "note", "accepted", "accepted"]);
    let remedies = remedies();
    let receipt: Value =
        serde_json::from_slice(&fs::read(out.join("packages.json")).unwrap()).unwrap();
    for own in found["findings"].as_array().unwrap() {
        assert_eq!(own["remedy"], remedies[own["code"].as_str().unwrap()]);
        let all = receipt["findings"].as_array().unwrap().iter();
        let texts = all.filter(|finding| finding["code"] == own["code"]).map(|finding| {
            let [subject, message] = ["subject", "message"].map(|it| crate::text(&finding[it]));
            let reason = finding["accepted"].as_str();
            let reason = reason.map(|it| format!(" (accepted: {it})")).unwrap_or_default();
            format!("{subject}: {message}{reason}")
        });
        assert_eq!(own["texts"], texts.collect::<Value>());
    }
    let shown = markdown(&out);
    let titles = shown.lines().filter_map(|line| line.strip_prefix("**")?.split_once(' '));
    assert!(titles.map(|(severity, _)| severity).eq(severities(&found)), "{shown}");
    assert!(shown.contains(" (accepted: users install it by hand)\n"), "{shown}");
}

/// Code of gfx906 is in no group: one code object of the library in each shard.
#[test]
fn code_objects_in_no_package_are_counted() {
    let set = Set::build();
    let found = json(&mut report(&set.out()));
    for own in found["findings"].as_array().unwrap() {
        assert_eq!(own["code_objects"], if own["code"] == "R012" { 3 } else { 0 }, "{own}");
    }
    let title = "**warning R012 arch-not-grouped**: 1; 3 code objects not packaged\n";
    assert!(markdown(&set.out()).contains(title));
}

#[test]
fn every_code_has_the_remedy_of_its_page() {
    let remedies = remedies();
    let codes: BTreeSet<String> = remedies.as_object().unwrap().keys().cloned().collect();
    assert!(codes.len() > 100);
    let all = codes.iter().map(String::as_str).chain(["R999"]).map(|code| {
        let [name, subject, message] = ["name", "subject", "message"];
        json!({ "code": code, "name": name, "severity": "note", "subject": subject, "message": message })
    });
    let folder = tempfile::tempdir().unwrap();
    let receipt = receipt_with(&folder, &all.collect::<Vec<_>>());
    let found = json(&mut report(&receipt));
    let found = found["findings"].as_array().unwrap();
    assert_eq!(found.len(), codes.len() + 1);
    for own in found {
        let code = own["code"].as_str().unwrap();
        assert_eq!(own["remedy"], remedies.get(code).cloned().unwrap_or_default(), "{code}");
        assert!(!own["remedy"].to_string().contains("]("), "{own}");
    }
    let shown = markdown(&receipt);
    assert_eq!(shown.matches("\nTo solve it: ").count(), codes.len());
}

#[test]
fn paths_that_are_left_out_are_listed() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let mut build = build_of(&shards(), &out);
    tools::run(build.args(["--format", "deb", "--only", "blas_run"]));
    let stage = "host-suite-sparse_lib_generic/third-party/SuiteSparse/stage";
    let files = tree(&GROUPS[0].folder(&shards()).join(stage)).into_keys();
    let files = files.filter(|path| path.contains(".so"));
    let paths: Vec<String> = files.map(|path| format!("/{PREFIX}/{path}")).collect();
    assert_eq!(paths.len(), 3);
    assert_eq!(json(&mut report(&out))["left_out"], json!(paths));
    let shown = markdown(&out);
    let (_, listed) = shown.split_once("\n## Left out\n\n3 paths of the input ").unwrap();
    let listed: Vec<&str> = listed.lines().filter_map(|line| line.strip_prefix("- ")).collect();
    assert_eq!(listed, paths);
    assert!(!markdown(&Set::build().out()).contains("Left out"));
}

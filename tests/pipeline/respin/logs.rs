//! The output of a running command, and its record of time and bytes.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use support::example::{Set, build_of, configuration, files, names, rockpack, shards};
use support::program::rockpack_path;
use support::tools;

/// The stages of a build.
const STAGES: [&str; 5] = ["split", "plan", "pack", "emit", "seal"];

/// The lines of a log, which are all JSON.
fn events(output: &Output) -> Vec<Value> {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect()
}

fn of<'a>(events: &'a [Value], event: &str) -> Vec<&'a Value> {
    events.iter().filter(|found| found["event"] == event).collect()
}

fn logged(out: &Path, options: &[&str]) -> Vec<Value> {
    let mut command = build_of(&shards(), out);
    events(&tools::run(command.args(["--log-format", "json"]).args(options)))
}

fn sum(events: &[Value], work: &str, kind: &str, field: &str) -> u64 {
    let summary = of(events, "summary")[0]["compressed"].as_array().unwrap();
    let work = summary.iter().find(|found| found["work"] == work).unwrap();
    work[kind][field].as_u64().unwrap()
}

#[test]
fn every_event_is_a_line_of_json() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let events = logged(&out, &[]);
    for stage in STAGES {
        let [begin, end] = ["begin", "end"].map(|event| {
            let mut own = of(&events, event);
            own.retain(|found| found["stage"] == stage);
            let [own] = own[..] else { panic!("{event} of {stage}: {own:?}") };
            own
        });
        assert!(end["seconds"].as_f64().unwrap() >= 0.0);
        if ["split", "pack"].contains(&stage) {
            assert_eq!(begin["bytes"], end["bytes"], "{stage}");
        }
    }
    // Packages without files also end a stage, without new totals. Metapackages come last.
    let rpm = logged(&folder.path().join("rpm"), &["--format", "rpm"]);
    for events in [&events, &rpm] {
        let ends =
            of(events, "end").into_iter().map(|end| (end["stage"].as_str(), end["bytes"].as_u64()));
        assert_eq!(ends.clone().collect::<BTreeSet<_>>().len(), ends.count());
    }
    let written: BTreeSet<String> = of(&events, "package")
        .iter()
        .map(|package| {
            let file = package["file"].as_str().unwrap().to_owned();
            let size = fs::metadata(out.join(&file)).unwrap().len();
            assert_eq!(package["bytes"].as_u64(), Some(size), "{file}");
            file
        })
        .collect();
    let mut there = names(&out);
    assert!(there.remove("packages.json"));
    assert_eq!(written, there);
    let [last] = of(&events, "summary")[..] else { panic!("{events:?}") };
    let at = |event: &str| events.iter().rposition(|found| found["event"] == event).unwrap();
    let summary = at("summary");
    assert!(at("end") < summary, "{events:?}");
    // The findings come last.
    let note = &events[summary + 1];
    assert!(events[summary + 2..].iter().all(|event| event["code"].is_string()), "{events:?}");
    assert_eq!(last["packages"].as_u64(), Some(there.len() as u64));
    let place = format!("{} packages in {}; publish them with", there.len(), out.display());
    assert!(note["message"].as_str().unwrap().starts_with(&place), "{note}");
    assert!(
        last["cpu_seconds"].as_f64().unwrap() > 0.0 && last["memory"].as_u64().unwrap() > 1 << 20
    );
    is_of_each_finding(&events, &out);
    // No result contains times: two runs differ only in the log.
    let receipt = fs::read_to_string(out.join("packages.json")).unwrap();
    assert!(!receipt.contains("seconds"));
}

/// Fails unless each finding of the receipt is an event with the same fields.
fn is_of_each_finding(events: &[Value], out: &Path) {
    let receipt: Value =
        serde_json::from_slice(&fs::read(out.join("packages.json")).unwrap()).unwrap();
    let recorded = receipt["findings"].as_array().unwrap();
    let told: Vec<Value> =
        events.iter().filter(|event| event["code"].is_string()).cloned().collect();
    assert!(recorded.len() > 3 && told.len() == recorded.len(), "{told:?}");
    for (mut event, finding) in told.into_iter().zip(recorded) {
        let name = event.as_object_mut().unwrap().remove("event").unwrap();
        assert_eq!((&event, &name), (finding, &finding["severity"]));
    }
}

#[test]
fn the_summary_says_what_was_compressed() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let cache = ["--cache", cache.to_str().unwrap()];
    let here = folder.path();
    let first = logged(&here.join("first"), &cache);
    let receipt: Value =
        serde_json::from_slice(&fs::read(here.join("first/packages.json")).unwrap()).unwrap();
    let in_archives = |record: &&Value| record.get("archive").is_some();
    let code = receipt["code_objects"].as_array().unwrap().iter().filter(in_archives);
    let distinct: BTreeSet<_> = code.map(|record| record["sha256"].as_str().unwrap()).collect();
    assert_eq!(sum(&first, "kernels", "made", "count"), distinct.len() as u64);
    assert_eq!(sum(&first, "kernels", "reused", "count"), 0);
    let debs =
        names(&here.join("first")).iter().filter(|name| name.ends_with(".deb")).count() as u64;
    let found = ["made", "reused"].iter().map(|kind| sum(&first, "deb", kind, "count"));
    assert_eq!(found.sum::<u64>(), debs);
    assert!(sum(&first, "deb", "made", "after") < sum(&first, "deb", "made", "before"));
    // Another version with the same prefix compresses no kernels and no payload with kernels.
    let second = logged(&here.join("second"), &[&cache[..], &["--release", "2"]].concat());
    for work in ["kernels", "rpm"] {
        assert_eq!(sum(&second, work, "made", "count"), 0, "{work}");
        // Payloads without files are alike, so even the first run reuses some.
        let all: u64 = ["made", "reused"].iter().map(|kind| sum(&first, work, kind, "count")).sum();
        assert_eq!(sum(&second, work, "reused", "count"), all, "{work}");
    }
    // Host packages differ in their changelog.
    let made = sum(&second, "deb", "made", "count");
    assert_eq!(made + sum(&second, "deb", "reused", "count"), debs);
    assert_eq!(debs - made, 3, "those of the three groups");
    // Warnings are also events.
    for path in files(Path::new(cache[1])).into_keys().filter(|path| path.len() == 65) {
        fs::write(Path::new(cache[1]).join(path), "damaged").unwrap();
    }
    let third = logged(&here.join("third"), &cache);
    assert!(of(&third, "warning").iter().any(|warning| warning["code"] == "R096"));
}

#[test]
fn failures_are_events() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = rockpack();
    command.args(["--log-format", "json", "build", "--artifacts"]).arg(folder.path().join("none"));
    let output = command.arg("--out").arg(folder.path().join("out")).output().unwrap();
    assert_eq!(output.status.code(), Some(64));
    assert!(output.stdout.is_empty());
    let events = events(&output);
    let errors = of(&events, "error");
    assert!(errors[0]["message"].as_str().unwrap().contains("none"), "{errors:?}");
    // Every command has the option.
    let mut command = rockpack();
    command
        .args(["split", "--log-format", "json", "--tmp-dir", "/tmp", "--artifacts"])
        .arg(shards());
    let output = tools::run(command.arg("--output-dir").arg(folder.path().join("split")));
    let events = self::events(&output);
    let notes = of(&events, "note").into_iter().filter(|note| note.get("code").is_none());
    assert_eq!(notes.count(), 1);
    assert!(events.iter().any(|event| event["code"] == "R001"), "{events:?}");
}

#[test]
fn off_a_terminal_each_package_is_a_line() {
    let set = Set::build();
    let mut there = names(&set.out());
    let said = String::from_utf8(set.output.stderr).unwrap();
    there.remove("packages.json");
    for name in there {
        assert!(said.contains(&format!("made {name} (")), "{said}");
    }
    for word in STAGES.into_iter().chain(["stage", "kernels", "s of CPU"]) {
        assert!(said.contains(word), "{word}: {said}");
    }
    assert!(!said.contains(['█', '░']), "{said}");
}

/// util-linux' `script` gives the program a terminal.
#[test]
fn on_a_terminal_one_bar_names_each_stage() {
    tools::need(&["script"]);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let command = format!(
        "stty cols 100; '{}' build --artifacts '{}' --config '{}' --version 7.1.0 --out '{}'",
        rockpack_path().display(),
        shards().display(),
        configuration().display(),
        out.display()
    );
    let mut script = Command::new("script");
    let said = tools::succeed(script.args(["-qec", &command, "/dev/null"]).env("TERM", "xterm"));
    for stage in STAGES {
        let mut bars = said.split(['\r', '\n']).filter(|line| line.contains(['█', '░']));
        assert!(bars.any(|bar| bar.contains(stage) && bar.contains("B/s")), "{stage}: {said}");
    }
    assert!(said.contains("rocm-blas_7.1.0-1_amd64.deb ") && !said.contains("made "), "{said}");
}

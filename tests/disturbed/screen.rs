//! A terminal's content during and after a run: bars while it works, then its last messages.

use std::fs;

use support::raw_deb::{END, RawMember, control, deb, members};
use support::screen::{Shown, interrupted_on_terminal, on_terminal};
use support::tools::need;
use tempfile::TempDir;

use crate::room::{Fault, strike_on_terminal};
use crate::scenarios::Scenario;

/// A character that only the bar contains, as long as it is not full.
const BAR: &str = "░";

/// Runs the scenario's command, and strikes it after each 1/`part` of its writes.
fn struck<const N: usize>(scenario: &Scenario, act: &str, parts: [usize; N]) -> [Shown; N] {
    let count = scenario.calls("write", "out").len();
    parts.map(|part| struck_at(scenario, Fault { calls: "write", act, at: count / part }))
}

fn struck_at(scenario: &Scenario, fault: Fault<'_>) -> Shown {
    let out = scenario.begin("screen");
    let shown = strike_on_terminal(&mut scenario.command_into(&out), &out, fault);
    scenario.end("screen");
    shown
}

/// The error remains on the screen, and the bars do not.
fn has_last_words(shown: &Shown, code: i32, words: &[&str]) {
    let text = shown.text();
    assert!(shown.written.contains(BAR), "there was no bar: {text}");
    assert_eq!(shown.status.code(), Some(code), "{text}");
    for word in words {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(!text.contains(BAR) && !text.contains('█'), "{text}");
    // A set that was rolled back is not reported as written.
    assert!(!text.contains("made "), "{text}");
    is_said_once(shown);
}

/// Each stage has at most one line.
fn is_said_once(shown: &Shown) {
    for stage in ["split", "plan", "pack", "emit", "seal", "verify", "index"] {
        let is_of_stage = |line: &&String| line.trim_start().starts_with(&format!("{stage} "));
        let lines: Vec<&String> = shown.lines.iter().filter(is_of_stage).collect();
        assert!(lines.len() <= 1, "{lines:?} in {}", shown.text());
    }
}

#[test]
fn the_message_of_an_interrupted_run_stays_on_the_screen() {
    need(&["gcc"]);
    let interrupted = ["ended by SIGINT", "partial output is removed"];
    for scenario in [Scenario::build(), Scenario::split(), Scenario::recombine()] {
        // A run may end before it checks for the signal: the earlier the signal, the less likely.
        let mut shown = (2..30).map(|part| struck(&scenario, "signal:2", [part]));
        let ended = shown.find(|[shown]| !shown.status.success());
        let [ended] = ended.unwrap_or_else(|| panic!("{}: no run ended", scenario.name));
        has_last_words(&ended, 130, &interrupted);
    }
}

/// A folder with packages that take a second to read.
fn long_packages() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["one", "two", "three"] {
        let root = RawMember::new("./", b'5', b"");
        let own = RawMember::file("./control", &control(name));
        let control = [members(&[root, own]), END.to_vec()].concat();
        let file = RawMember::new(&format!("./{name}"), b'0', &vec![0; 80 << 20]);
        let package = deb(&control, &[file.bytes(), END.to_vec()].concat());
        fs::write(folder.path().join(format!("{name}_1_all.deb")), package).unwrap();
    }
    folder
}

/// The terminal shows `^C` after the bars, and no unfinished stage is reported as done.
#[test]
fn a_typed_interrupt_leaves_no_bars_and_no_stage_that_was_cut_off() {
    need(&["setsid"]);
    let packages = long_packages();
    let shown = || {
        let room = tempfile::tempdir().unwrap();
        let mut repo = support::example::rockpack();
        repo.arg("repo").arg(packages.path()).arg("--out").arg(room.path().join("repository"));
        interrupted_on_terminal(&repo, "   index ")
    };
    // On a busy machine, a run may end before the key is typed.
    let ended = std::iter::repeat_with(shown).take(10).find(|shown| !shown.status.success());
    let shown = ended.expect("no run was interrupted");
    has_last_words(&shown, 130, &["ended by SIGINT", "partial output is removed"]);
    assert!(shown.written.contains("^C") && !shown.text().contains(" index "), "{}", shown.text());
}

#[test]
fn the_message_of_a_full_disk_stays_on_the_screen() {
    need(&["gcc"]);
    let full = ["No space left on device", "free space on that file system"];
    for scenario in [Scenario::build(), Scenario::split()] {
        let [shown] = struck(&scenario, "errors:28", [2]);
        has_last_words(&shown, 2, &full);
    }
}

#[test]
fn the_screen_of_a_whole_run_has_the_result_and_no_bars() {
    let scenario = Scenario::build();
    let shown = scenario.undisturbed(|mut build, out| {
        let shown = on_terminal(&mut build);
        let place = format!("packages in {}; publish them with `rockpack repo ", out.display());
        assert!(shown.text().contains(&place), "{}", shown.text());
        let verified = on_terminal(support::example::rockpack().arg("verify").arg(out));
        assert!(verified.written.contains(BAR) && verified.status.success());
        assert!(!verified.text().contains(BAR), "{}", verified.text());
        assert!(verified.lines.iter().any(|line| line.starts_with("  verify ")), "a line stays");
        assert!(verified.text().contains("all checks passed"));
        is_said_once(&verified);
        shown
    });
    assert!(shown.written.contains(BAR) && shown.status.success());
    assert!(!shown.text().contains(BAR), "{}", shown.text());
    is_said_once(&shown);
}

#[test]
fn a_quiet_run_draws_nothing() {
    let scenario = Scenario::build();
    scenario.undisturbed(|mut build, _| {
        let shown = on_terminal(build.arg("-q"));
        assert!(shown.status.success() && !shown.written.contains(BAR), "{}", shown.text());
        for word in ["made ", "s of CPU", "note: ", "publish them"] {
            assert!(!shown.text().contains(word), "{word}: {}", shown.text());
        }
        assert!(shown.text().contains("warning: R"), "{}", shown.text());
    });
}

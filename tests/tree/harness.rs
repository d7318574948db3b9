//! The harness of the test programs: its reports, and the tests it runs.

use std::backtrace::Backtrace;
use std::process::Command;

use support::harness;
use support::tools::{have, need, told};

/// The variable that makes the tests below end as their callers expect.
const VARIABLE: &str = "ROCKPACK_TEST_OF_THE_HARNESS";

fn is_asked() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// This program with these arguments, without anything that takes time.
fn again(arguments: &[&str]) -> Command {
    let mut program = Command::new(std::env::current_exe().unwrap());
    program.args(arguments).env(VARIABLE, "1").env_remove("ROCKPACK_TEST_TIMES");
    program.env_remove("ROCKPACK_INTEROP").env("RUST_BACKTRACE", "0");
    program
}

/// The output of this program with these arguments.
fn run(arguments: &[&str]) -> String {
    told(&mut again(arguments))
}

#[test]
fn an_example_fails() {
    let caught = std::panic::catch_unwind(|| panic!("which the test catches"));
    assert!(caught.is_err());
    note!("a note of the example");
    assert!(!is_asked(), "why the example fails");
}

#[test]
fn an_example_lacks_a_tool() {
    if is_asked() {
        need(&["no-such-tool", "sh", "nor-this-one"]);
    }
}

#[test]
fn an_example_lacks_a_tool_for_a_part() {
    if is_asked() {
        assert!(!have(&["no-such-tool"]));
    }
}

#[test]
#[ignore = "is asked for by another test"]
fn an_example_is_ignored() {}

#[test]
fn skipped_tests_are_reported_with_their_reasons() {
    let said = run(&["harness::an_example_lacks"]);
    assert!(
        said.contains("lacks_a_tool            ... ignored (needs no-such-tool, nor-this-one)\n")
    );
    assert!(said.contains("for_a_part ... ignored (in part: needs no-such-tool)\n"), "{said}");
    assert!(said.contains("test result: ok. 0 passed; 0 failed; 2 ignored;"), "{said}");
    assert!(said.contains("\nskipped 1: needs no-such-tool, nor-this-one\n"), "{said}");
    assert!(said.ends_with("exit status: 0\n"), "{said}");
}

#[test]
fn skipped_tests_fail_where_all_tools_are_promised() {
    let said = told(again(&["harness::an_example_lacks"]).env("ROCKPACK_INTEROP", "1"));
    assert!(said.contains("0 passed; 2 failed; 0 ignored;"), "{said}");
}

#[test]
fn a_failure_is_reported_with_its_last_panic_and_its_notes() {
    let said = run(&["harness::an_example_fails"]);
    let report = "---- harness::an_example_fails ----\na note of the example\npanicked at ";
    assert!(said.contains(report) && said.contains("\nwhy the example fails\n"), "{said}");
    assert!(!said.contains("which the test catches"), "{said}");
    assert!(said.ends_with("exit status: 101\n"), "{said}");
}

#[test]
fn a_backtrace_shows_the_frames_of_the_test_alone() {
    let program = std::env::current_exe().unwrap();
    if program.iter().any(|folder| folder == "release") {
        harness::skip("needs a program that is not optimised: others do not know their frames");
    }
    // Without debug information, as in `.ci/run`, frames have no location to distinguish them.
    let has_places = Backtrace::force_capture().to_string().contains("tests/tree/harness.rs:");
    // A single test runs in the main thread, below more frames than others.
    for threads in ["1", "2"] {
        let mut program = again(&["harness::an_example_fails", "--test-threads", threads]);
        let said = told(program.env("RUST_BACKTRACE", "1"));
        let (_, report) = said.split_once("\nwhy the example fails\n").unwrap();
        let (frames, _) = report.split_once("\n\n").unwrap();
        assert!(frames.contains("an_example_fails"), "{frames}");
        if !has_places {
            continue;
        }
        let [frame, place] = frames.lines().collect::<Vec<_>>()[..] else { panic!("{frames}") };
        assert!(frame.ends_with("an_example_fails"), "{frame}");
        assert!(place.trim_start().starts_with("at ./tests/tree/harness.rs:"), "{place}");
    }
}

#[test]
fn filters_choose_tests_as_cargos_own_harness_does() {
    let exact = "harness::an_example_lacks_a_tool";
    assert_eq!(count_line(&[exact]), "running 2 tests");
    assert_eq!(count_line(&["--exact", exact]), "running 1 test");
    let part = "harness::an_example_lacks_a_tool_for_a_part";
    assert_eq!(count_line(&["--exact", exact, part, "harness::none"]), "running 2 tests");
    assert_eq!(count_line(&["an_example_lacks", "an_example_is"]), "running 3 tests");
    assert_eq!(count_line(&["harness::an_example", "--skip", "lacks"]), "running 2 tests");
    assert_eq!(count_line(&["harness::an_example", "--ignored"]), "running 1 test");
    let said = run(&["harness::an_example_is_ignored"]);
    assert!(
        said.ends_with("\nignored 1: is asked for by another test\nexit status: 0\n"),
        "{said}"
    );
    let listed = run(&["--list", "--format", "terse", "harness::an_example_lacks"]);
    assert_eq!(listed, format!("{exact}: test\n{part}: test\nexit status: 0\n"));
}

/// The line of a run that counts its tests.
fn count_line(arguments: &[&str]) -> String {
    let said = run(arguments);
    let line = said.lines().find(|line| line.starts_with("running ")).unwrap_or(&said);
    line.to_owned()
}

#[test]
fn a_test_runs_alone_in_a_process_of_its_own() {
    match harness::alone("harness::a_test_runs_alone_in_a_process_of_its_own") {
        Some(said) => assert!(said.contains("here it runs") && said.contains("1 passed"), "{said}"),
        None => println!("here it runs"),
    }
}

//! Runs a program's tests as cargo's own harness does. In addition, a test that lacks a tool ends with
//! [`skip`] and is reported as ignored, with the reason, and a test that does not end in time ends the
//! program.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{self, AssertUnwindSafe, PanicHookInfo, catch_unwind, resume_unwind};
use std::process::{Command, ExitCode};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use clap::{ArgAction, CommandFactory, FromArgMatches};
pub use inventory::submit;
use libtest_mimic::{Arguments, Completion, Failed, FormatSetting, Trial};

use crate::program::{self, Program};
use crate::{scratch, times, tools};

/// A test, as `#[test]` registers it.
#[derive(Debug)]
pub struct Test {
    /// `program::module::function`.
    pub path: &'static str,
    /// The reason to run only with `--ignored`; absent for ordinary tests.
    pub ignored: Option<&'static str>,
    /// The test itself, which panics if it fails.
    pub run: fn(),
}

inventory::collect!(Test);

/// The `main` of a test program.
#[macro_export]
macro_rules! main {
    () => {
        fn main() -> std::process::ExitCode {
            $crate::harness::run($crate::program::Program {
                rockpack: env!("CARGO_BIN_EXE_rockpack"),
                kept: env!("CARGO_TARGET_TMPDIR"),
            })
        }
    };
}

/// The most minutes for a test: twice the limit of a slice of a long sweep.
const MINUTES: u64 = 20;

/// The time after which a running test is named.
const LONG: Duration = Duration::from_secs(60);

/// Runs the tests that the command line selects.
pub fn run(program: Program) -> ExitCode {
    program::set(program);
    // This folder holds everything temporary, including that of statics, and goes with the run.
    let scratch = scratch::make(&scratch::place());
    tempfile::env::override_temp_dir(scratch.path()).unwrap();
    let (arguments, tests) = asked();
    keep_panics(arguments.nocapture);
    std::thread::spawn(watch);
    let is_asked = |test: &&&Test| {
        arguments.filter.as_ref().is_none_or(|filter| fits(test.name(), filter, arguments.exact))
    };
    let ignored: Vec<_> = tests.iter().filter(is_asked).filter_map(|test| test.ignored).collect();
    let trials = tests.into_iter().map(trial).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    times::print_slowest();
    if !arguments.list && arguments.format != Some(FormatSetting::Json) {
        if !arguments.ignored && !arguments.include_ignored {
            print_counted("ignored", ignored);
        }
        print_counted("skipped", lock(&SKIPPED).iter().map(String::as_str));
    }
    conclusion.exit_code()
}

/// The selected tests, by name. Cargo's harness takes several filters, this one only one.
fn asked() -> (Arguments, Vec<&'static Test>) {
    let several = |filter: clap::Arg| filter.num_args(0..).action(ArgAction::Append);
    let matches = Arguments::command().mut_arg("filter", several).get_matches();
    let mut arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    // Most tests also wait for programs and disks: twice as many threads keep the cores busy.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    arguments.test_threads.get_or_insert(2 * cores);
    let filters: Vec<&String> = matches.get_many("filter").into_iter().flatten().collect();
    let mut tests: Vec<&Test> = inventory::iter::<Test>.into_iter().collect();
    // Tests of the same function run side by side: for several systems it needs several roots, which are then
    // made at the same time.
    tests.sort_by_key(|test| (test.path.rsplit("::").next(), test.path));
    if filters.len() > 1 {
        arguments.filter = None;
        let exact = arguments.exact;
        tests.retain(|test| filters.iter().any(|filter| fits(test.name(), filter, exact)));
    }
    (arguments, tests)
}

fn fits(name: &str, filter: &str, exact: bool) -> bool {
    if exact { name == filter } else { name.contains(filter) }
}

impl Test {
    /// `module::function`.
    fn name(&self) -> &'static str {
        self.path.split_once("::").map_or(self.path, |(_, name)| name)
    }
}

fn trial(test: &'static Test) -> Trial {
    let trial = Trial::ignorable_test(test.name(), move || outcome(test));
    trial.with_ignored_flag(test.ignored.is_some())
}

fn outcome(test: &'static Test) -> Result<Completion, Failed> {
    lock(&RUNNING).insert(test.name(), (Instant::now(), false));
    KEPT.set(Some(Kept::default()));
    let start = times::start();
    let ended = catch_unwind(AssertUnwindSafe(test.run));
    times::end(test.name(), start);
    let kept = KEPT.take().unwrap_or_default();
    lock(&RUNNING).remove(test.name());
    let skipped = match ended.map_err(|payload| payload.downcast::<Skip>()) {
        Ok(()) if kept.parts.is_empty() => return Ok(Completion::Completed),
        Ok(()) => format!("in part: {}", kept.parts.into_iter().collect::<Vec<_>>().join("; ")),
        Err(Ok(skip)) => skip.0,
        Err(Err(payload)) => return Err(kept.failure(&*payload).into()),
    };
    lock(&SKIPPED).push(skipped.clone());
    Ok(Completion::ignored_with(skipped))
}

/// The panic payload of a skipped test.
struct Skip(String);

static SKIPPED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Ends the calling test, which is reported as skipped. Fails it if `ROCKPACK_INTEROP=1` promises all tools.
pub fn skip(reason: &str) -> ! {
    assert_ne!(std::env::var("ROCKPACK_INTEROP").as_deref(), Ok("1"), "{reason}");
    resume_unwind(Box::new(Skip(reason.to_owned())))
}

/// Skips only a part of the calling test, which then goes on.
pub fn skip_part(reason: &str) {
    assert_ne!(std::env::var("ROCKPACK_INTEROP").as_deref(), Ok("1"), "{reason}");
    in_test(|kept| kept.parts.insert(reason.to_owned()));
}

/// Runs the test `name`, which calls this function, in a process of its own, without backtraces in errors:
/// those take more heap than any input. Returns the output of that process; nothing inside it.
pub fn alone(name: &str) -> Option<String> {
    const VARIABLE: &str = "ROCKPACK_TEST_ALONE";
    if std::env::var_os(VARIABLE).is_some() {
        return None;
    }
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", name, "--test-threads", "1"]).env(VARIABLE, "1");
    Some(tools::succeed(again.env("RUST_LIB_BACKTRACE", "0").env_remove("ROCKPACK_TEST_TIMES")))
}

/// Notes the current step of a test, for the report if it fails there.
#[macro_export]
macro_rules! note {
    ($($text:tt)*) => {
        $crate::harness::note(format!($($text)*))
    };
}

/// See [`crate::note!`].
pub fn note(text: String) {
    in_test(|kept| kept.notes.push(text));
}

/// Prints a line for each reason: `skipped 3: needs rpmbuild`.
fn print_counted<'a>(word: &str, reasons: impl IntoIterator<Item = &'a str>) {
    let mut counts = BTreeMap::<&str, usize>::new();
    for reason in reasons {
        *counts.entry(reason).or_default() += 1;
    }
    for (reason, count) in counts {
        println!("{word} {count}: {reason}");
    }
}

/// A thread's record of its running test.
#[derive(Default)]
struct Kept {
    /// The last panic: the test may catch others.
    panic: Option<String>,
    notes: Vec<String>,
    /// The reasons for skipped parts.
    parts: BTreeSet<String>,
}

impl Kept {
    /// The report of a test that ended with `payload`.
    fn failure(mut self, payload: &dyn Any) -> String {
        // The panic of another thread was reported when it came.
        let text = || payload.downcast_ref::<String>().cloned().unwrap_or("a thread failed".into());
        self.notes.push(self.panic.take().unwrap_or_else(text));
        self.notes.join("\n")
    }
}

thread_local! {
    static KEPT: RefCell<Option<Kept>> = const { RefCell::new(None) };
}

/// Changes the record of this thread's test; returns `None` outside of a test.
fn in_test<T>(change: impl FnOnce(&mut Kept) -> T) -> Option<T> {
    KEPT.with_borrow_mut(|kept| kept.as_mut().map(change))
}

/// Keeps panic messages for the test's report, instead of printing them at once.
fn keep_panics(print_too: bool) {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let kept = in_test(|kept| kept.panic = Some(told(info)));
        if kept.is_none() || print_too {
            print(info);
        }
    }));
}

fn told(info: &PanicHookInfo<'_>) -> String {
    let trace = Backtrace::capture();
    if trace.status() != BacktraceStatus::Captured {
        return info.to_string();
    }
    let trace = trace.to_string();
    let lines: Vec<&str> = trace.lines().collect();
    // The frames that call the test are the same for all tests, and so are those that report the panic.
    let last = lines.iter().rposition(|line| is_of_test(line));
    let end = last.map_or(lines.len(), |at| at + 1);
    // Without locations of frames, those that call the test, and catch panics, are also listed.
    let (panics, height) =
        if last.is_some() { ("panicking::", 2) } else { ("core::panicking::", 1) };
    let from =
        lines[..end].iter().rposition(|line| line.contains(panics)).map_or(0, |at| at + height);
    format!("{info}\n{}", lines[from.min(end)..end].join("\n"))
}

/// Tells whether a line of a backtrace is about a frame of a test, or of code that a test calls.
fn is_of_test(line: &str) -> bool {
    line.trim_start().starts_with("at ./tests/") && !line.contains("/support/harness.rs")
}

/// The start of each running test, and whether it was already reported as long.
static RUNNING: Mutex<BTreeMap<&str, (Instant, bool)>> = Mutex::new(BTreeMap::new());

/// Names tests that take long, and ends the program if one does not end: a thread cannot be stopped from
/// outside.
fn watch() {
    loop {
        std::thread::sleep(Duration::from_secs(1));
        for (name, (since, told)) in lock(&RUNNING).iter_mut() {
            if since.elapsed() > LONG && !*told {
                *told = true;
                eprintln!("test {name} has been running for over {} seconds", LONG.as_secs());
            }
            if since.elapsed() > Duration::from_secs(MINUTES * 60) {
                eprintln!("test {name} FAILED: it does not end in {MINUTES} minutes");
                std::process::exit(101);
            }
        }
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

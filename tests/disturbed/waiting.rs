//! Runs that wait for another run's lock, and do not check for signals meanwhile.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use support::example::{names, rockpack, shards};
use support::tools::{self, need};
use support::waiting::{Process, until};

use crate::room::{folder, started};

/// The least time before a waiting run ends by itself, with a margin for clock differences.
const PATIENCE: Duration = Duration::from_secs(9);

/// A build waiting for the lock of its output folder.
struct Waiting {
    build: Process,
    out: tempfile::TempDir,
    _notes: tempfile::TempDir,
    _lock: File,
}

impl Waiting {
    fn begin() -> Self {
        let (out, notes) = (folder(), folder());
        fs::write(out.path().join("there"), "").unwrap();
        let lock = locked(out.path());
        let mut build = build_into(out.path());
        let (build, log) = started(&mut build, (out.path(), notes.path()), "lock");
        let mut waiting = Self { build, out, _notes: notes, _lock: lock };
        waiting.until("it asks for the lock", |_| log.exists());
        waiting
    }

    /// Repeats `seen` until it holds, as long as the build runs.
    fn until(&mut self, what: &str, seen: impl Fn(u32) -> bool) {
        until(what, || {
            assert_eq!(self.build.has_ended(), None, "the build has ended");
            seen(self.build.child().id()).then_some(())
        });
    }

    fn signal(&mut self, name: &str) {
        signal(&mut self.build, name);
    }

    /// The exit code of the build, which must have written nothing.
    fn code(&mut self) -> Option<i32> {
        let code = self.build.end().code();
        assert_eq!(names(self.out.path()).into_iter().collect::<Vec<_>>(), ["there"]);
        code
    }
}

fn locked(folder: &Path) -> File {
    let lock = File::open(folder).unwrap();
    lock.lock().unwrap();
    lock
}

fn build_into(out: &Path) -> Command {
    let mut build = rockpack();
    build.args(["build", "--version", "1.0", "--artifacts"]);
    build.arg(shards().join("gfx1151-build")).arg("--out").arg(out);
    build
}

fn signal(process: &mut Process, name: &str) {
    let mut kill = Command::new("sh");
    kill.args(["-c", "kill -s \"$0\" \"$1\"", name]).arg(process.child().id().to_string());
    tools::run(&mut kill);
}

/// Tells whether a process has its own handler for the signal with this number.
fn handles(process: u32, number: u32) -> bool {
    let status = Path::new("/proc").join(process.to_string()).join("status");
    let status = fs::read_to_string(status).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    mask.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).unwrap() >> (number - 1) & 1 == 1)
}

fn threads(process: u32) -> usize {
    let tasks = Path::new("/proc").join(process.to_string()).join("task");
    fs::read_dir(tasks).map_or(0, Iterator::count)
}

#[test]
fn a_run_that_waits_ends_ten_seconds_after_a_signal() {
    need(&["gcc"]);
    let mut waiting = Waiting::begin();
    let start = Instant::now();
    waiting.signal("INT");
    assert_eq!(waiting.code(), Some(130));
    assert!(start.elapsed() >= PATIENCE, "{:?}", start.elapsed());
}

/// The exit code is the second signal's: that signal ended the run, not the timeout.
#[test]
fn a_second_signal_ends_a_run_that_waits() {
    need(&["gcc"]);
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let mut waiting = Waiting::begin();
        let before = threads(waiting.build.child().id());
        waiting.signal("INT");
        waiting.until("a thread lets ten seconds pass", |build| threads(build) > before);
        waiting.signal(name);
        assert_eq!(waiting.code(), Some(code));
    }
}

/// A run names the lock that it waits for, in words and as an event: of the output folder, of a cache, and of
/// a repository. It continues when the lock is free.
#[test]
fn a_run_says_for_whom_it_waits() {
    let folder = folder();
    let [out, json, quiet, cache, repository] =
        ["out", "json", "quiet", "cache", "repository"].map(|name| folder.path().join(name));
    let locks = [cache.join("lock"), repository.join(".rockpack/lock")];
    for made in [&out, &json, &quiet, &cache, &locks[1].with_file_name("")] {
        fs::create_dir_all(made).unwrap();
    }
    for lock in &locks {
        fs::write(lock, "").unwrap();
    }
    let mut builds = [&out, &json, &quiet, &folder.path().join("other")].map(|out| build_into(out));
    builds[1].args(["--log-format", "json"]);
    builds[2].arg("--quiet");
    builds[3].arg("--cache").arg(&cache);
    // A run says nothing before it has waited for a second.
    thread::scope(|scope| {
        for (build, lock) in builds.into_iter().zip([&out, &json, &quiet, &locks[0]]) {
            scope.spawn(move || waits(build, lock));
        }
    });
    let mut publish = rockpack();
    publish.args(["repo", "--wait"]).arg(&out).arg("--out").arg(&repository);
    waits(publish, &locks[1]);
}

/// Fails unless the run waits for the lock at `path`, which this process holds, names both, and finishes
/// afterwards.
fn waits(mut command: Command, path: &Path) {
    let lock = locked(path);
    let mut waiting = Process::start(command.stdout(Stdio::null()).stderr(Stdio::piped()));
    let mut said = BufReader::new(waiting.child().stderr.take().unwrap());
    let holder = format!("process {} (", std::process::id());
    let mut all = String::new();
    let waits = format!("waiting for the lock on {}", path.display());
    while !all.contains(&waits) {
        assert_ne!(said.read_line(&mut all).unwrap(), 0, "{command:?} ended: {all}");
    }
    assert!(all.contains(&holder), "{all}");
    drop(lock);
    said.read_to_string(&mut all).unwrap();
    assert!(waiting.end().success(), "{command:?}: {all}");
}

/// Shells start background programs with ignored signals, and others without. No library is loaded here that
/// could change the signals.
#[test]
fn what_a_run_was_started_to_do_about_a_signal_decides() {
    const SIGINT: u32 = 2;
    const SIGTERM: u32 = 15;
    need(&["env"]);
    for (start, code) in [("--ignore-signal=INT", 0), ("--default-signal=INT", 130)] {
        let out = folder();
        // The run cannot end before the signal comes.
        let lock = locked(out.path());
        let build = build_into(out.path());
        let mut command = Command::new("env");
        command.arg(start).arg(build.get_program()).args(build.get_args());
        let mut build = Process::start(command.stderr(Stdio::piped()));
        let id = build.child().id();
        // The program sets up all signals together.
        until("it handles SIGTERM", || handles(id, SIGTERM).then_some(()));
        assert_eq!(handles(id, SIGINT), code != 0, "{start}");
        signal(&mut build, "INT");
        if code == 0 {
            drop(lock);
        } else {
            // The run waits for the lock: only a second signal, or ten seconds, ends it there.
            signal(&mut build, "INT");
        }
        let mut said = String::new();
        build.child().stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(build.end().code(), Some(code), "{start}");
        let told = "ended by SIGINT immediately, before it removed its partial output";
        assert_eq!(said.contains(told), code != 0, "{said}");
        assert_eq!(names(out.path()).contains("packages.json"), code == 0, "{start}");
    }
}

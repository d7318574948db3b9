//! Runs that are stuck: they wait for the lock of another run, and see no signal.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use support::example::{names, rockpack, shards};
use support::tools::{self, need};
use support::waiting::{Process, until};

use crate::room::{folder, started};

/// What a run has to wait before it ends by itself, less what clocks may differ by.
const PATIENCE: Duration = Duration::from_secs(9);

/// A build that waits for the lock of its output folder.
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
        let lock = File::open(out.path()).unwrap();
        lock.lock().unwrap();
        let mut build = rockpack();
        build.args(["build", "--version", "1.0", "--artifacts"]);
        build.arg(shards().join("gfx1151-build")).arg("--out").arg(out.path());
        let (build, log) = started(&mut build, (out.path(), notes.path()), "lock");
        let mut waiting = Self { build, out, _notes: notes, _lock: lock };
        waiting.until("it asks for the lock", |_| log.exists());
        waiting
    }

    /// Looks again and again, as long as the build lives.
    fn until(&mut self, what: &str, seen: impl Fn(u32) -> bool) {
        until(what, || {
            assert_eq!(self.build.has_ended(), None, "the build has ended");
            seen(self.build.child().id()).then_some(())
        });
    }

    fn signal(&mut self, name: &str) {
        let mut kill = Command::new("sh");
        kill.args(["-c", "kill -s \"$0\" \"$1\"", name]).arg(self.build.child().id().to_string());
        tools::run(&mut kill);
    }

    /// How the build ends, which wrote nothing.
    fn code(&mut self) -> Option<i32> {
        let code = self.build.end().code();
        assert_eq!(names(self.out.path()).into_iter().collect::<Vec<_>>(), ["there"]);
        code
    }
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

/// The code is that of the second one: it ended the run, and not that time had passed.
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

//! Programs that run beside a test, and waiting with a limit.

use std::process::{Child, Command, ExitStatus, Output};
use std::time::{Duration, Instant};

/// Longer than anything that tests wait for, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Calls `look` repeatedly until it returns something; fails after [`PATIENCE`].
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(start.elapsed() < PATIENCE, "waited {PATIENCE:?} in vain until {what}");
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// A program that is killed when the test that started it ends.
pub struct Process(Option<Child>);

impl Process {
    /// Starts a program.
    pub fn start(command: &mut Command) -> Self {
        let child = command.spawn();
        Self(Some(child.unwrap_or_else(|error| panic!("{command:?}: {error}"))))
    }

    pub fn child(&mut self) -> &mut Child {
        self.0.as_mut().unwrap()
    }

    /// The exit status, if the program has ended.
    pub fn has_ended(&mut self) -> Option<ExitStatus> {
        self.child().try_wait().unwrap()
    }

    /// Waits until the program ends.
    pub fn end(&mut self) -> ExitStatus {
        until("a program ends", || self.has_ended())
    }

    /// Kills the program. Returns whether it was still running, or had failed.
    pub fn kill(&mut self) -> bool {
        self.child().kill().unwrap();
        !self.end().success()
    }

    /// Waits for the program's end. Its output must fit into a pipe.
    pub fn output(mut self) -> Output {
        self.end();
        self.0.take().unwrap().wait_with_output().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

//! Signals that end a run.
//!
//! The first signal asks the run to end, and the run undoes what it began. A second signal, or a wait of
//! [`PATIENCE`], ends it at once, as SIGKILL does: the next run then undoes the rest. Signals that this
//! process was started to ignore, as by nohup, stay ignored.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::run::interrupt;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level::signal_name;

use super::progress::Terminal;

const ENDING: [i32; 3] = [SIGHUP, SIGINT, SIGTERM];

/// Time that a run may take to end after a signal: one that waits for another run's lock, or for a disk, does
/// not notice it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Time for the message of a run that ends at once.
const SPEECH: Duration = Duration::from_millis(500);

/// Makes signals ask this process to end.
pub(super) fn watch(terminal: Arc<Terminal>) -> Result<()> {
    let ignored = ignored();
    let heeded = ENDING.into_iter().filter(|number| !is_ignored(*number, ignored));
    let signals = Signals::new(heeded).map_err(not_handled)?;
    // A write above the limit of file sizes then fails, and does not end the process.
    if !is_ignored(SIGXFSZ, ignored) {
        flag::register(SIGXFSZ, Arc::default()).map_err(not_handled)?;
    }
    let thread = thread::Builder::new().name("signals".into());
    thread.spawn(move || heed(signals, &terminal)).map(drop).map_err(Error::no_thread)
}

fn heed(mut signals: Signals, terminal: &Arc<Terminal>) {
    for signal in signals.forever() {
        if !interrupt::request(signal) {
            end(signal, terminal);
        }
        let terminal = Arc::clone(terminal);
        // If no thread can be started, a second signal ends a run that waits.
        drop(thread::Builder::new().spawn(move || {
            thread::sleep(PATIENCE);
            end(signal, &terminal);
        }));
    }
}

fn is_ignored(number: i32, ignored: u64) -> bool {
    ignored >> (number - 1) & 1 == 1
}

fn not_handled(error: io::Error) -> Error {
    Error::new(Kind::Io, "signals cannot be handled").cause(error)
}

/// Ends the process with a message. If nobody reads stderr, or a write to it blocks, the process ends without
/// one.
fn end(signal: i32, terminal: &Arc<Terminal>) -> ! {
    let name = name_of(signal);
    let message = format!("ended by {name} at once, before it took back what it began");
    let error = Error::new(Kind::Interrupted, message)
        .hint("the next run into the same place takes back what is left; run it again");
    let (said, heard) = channel();
    let terminal = Arc::clone(terminal);
    let speaker = thread::Builder::new().spawn(move || {
        terminal.error(&error);
        // After a long write nobody receives this any more.
        let _ = said.send(());
    });
    if speaker.is_ok() {
        let _ = heard.recv_timeout(SPEECH);
    }
    std::process::exit(code(signal).into())
}

fn name_of(signal: i32) -> &'static str {
    signal_name(signal).unwrap_or("a signal")
}

fn code(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

/// The message and the exit code, if a signal asked this process to end.
pub(super) fn ended() -> Option<(Error, ExitCode)> {
    let signal = interrupt::requested()?;
    let error = Error::new(Kind::Interrupted, format!("ended by {}", name_of(signal)))
        .hint("what was not finished is taken back, by the next run if need be; run it again");
    Some((error, ExitCode::from(code(signal))))
}

/// The signals that this process ignores, signal 1 in the lowest bit; 0 if the kernel does not tell.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}

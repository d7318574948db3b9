//! Signals that end a run.
//!
//! The first signal asks the run to end, and the run removes its partial output. A second signal, or a wait of
//! [`GRACE_PERIOD`], ends it immediately, as SIGKILL does: the next run then removes the rest. Signals that this process
//! was started to ignore, as by nohup, stay ignored.

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

const ENDING_SIGNALS: [i32; 3] = [SIGHUP, SIGINT, SIGTERM];

/// Time that a run may take to end after a signal: a run that waits for a lock or a disk does not notice it.
const GRACE_PERIOD: Duration = Duration::from_secs(10);

/// Time for writing the message before the process ends.
const MESSAGE_TIMEOUT: Duration = Duration::from_millis(500);

/// Makes signals ask this process to end.
pub(super) fn watch(terminal: Arc<Terminal>) -> Result<()> {
    let ignored = ignored();
    let handled = ENDING_SIGNALS.into_iter().filter(|number| !is_ignored(*number, ignored));
    let signals = Signals::new(handled).map_err(handler_error)?;
    // A write above the limit of file sizes then fails, and does not end the process.
    if !is_ignored(SIGXFSZ, ignored) {
        flag::register(SIGXFSZ, Arc::default()).map_err(handler_error)?;
    }
    let thread = thread::Builder::new().name("signals".into());
    thread
        .spawn(move || handle_signals(signals, &terminal))
        .map(drop)
        .map_err(Error::thread_start_failure)
}

fn handle_signals(mut signals: Signals, terminal: &Arc<Terminal>) {
    for signal in signals.forever() {
        if !interrupt::request(signal) {
            end(signal, terminal);
        }
        let terminal = Arc::clone(terminal);
        // If no thread can be started, a second signal ends a run that waits.
        drop(thread::Builder::new().spawn(move || {
            thread::sleep(GRACE_PERIOD);
            end(signal, &terminal);
        }));
    }
}

fn is_ignored(number: i32, ignored: u64) -> bool {
    ignored >> (number - 1) & 1 == 1
}

fn handler_error(error: io::Error) -> Error {
    Error::new(Kind::Io, "signals cannot be handled").cause(error)
}

/// Ends the process with a message. If stderr is closed, or a write to it blocks, the process ends without the message.
fn end(signal: i32, terminal: &Arc<Terminal>) -> ! {
    let name = name_of(signal);
    let message = format!("ended by {name} immediately, before it removed its partial output");
    let error = Error::new(Kind::Interrupted, message)
        .hint("the next run with the same output removes it; run it again");
    let (sender, receiver) = channel();
    let terminal = Arc::clone(terminal);
    let writer = thread::Builder::new().spawn(move || {
        terminal.error(&error);
        // After a long write the receiver has given up.
        let _ = sender.send(());
    });
    if writer.is_ok() {
        let _ = receiver.recv_timeout(MESSAGE_TIMEOUT);
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
pub(super) fn interruption() -> Option<(Error, ExitCode)> {
    let signal = interrupt::requested()?;
    let error = Error::new(Kind::Interrupted, format!("ended by {}", name_of(signal)))
        .hint("partial output is removed, at the latest by the next run; run it again");
    Some((error, ExitCode::from(code(signal))))
}

/// The signals that this process ignores, signal 1 in the lowest bit; 0 if /proc does not say.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}

//! Processor time of tests: `ROCKPACK_TEST_TIMES=30` prints the 30 with the most. The times are exact with
//! `--test-threads 1`, but for Python code, which [`crate::python`] runs.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

struct Time {
    name: &'static str,
    clock: Duration,
    /// Hundredths of a second of this process and its finished children.
    processor: u64,
}

static TIMES: Mutex<Vec<Time>> = Mutex::new(Vec::new());

pub(crate) fn start() -> (Instant, u64) {
    (Instant::now(), processor())
}

pub(crate) fn end(name: &'static str, (clock, before): (Instant, u64)) {
    let time = Time { name, clock: clock.elapsed(), processor: processor() - before };
    TIMES.lock().unwrap_or_else(PoisonError::into_inner).push(time);
}

pub(crate) fn print_slowest() {
    let Some(count) = std::env::var("ROCKPACK_TEST_TIMES").ok() else { return };
    let mut times = TIMES.lock().unwrap_or_else(PoisonError::into_inner);
    times.sort_by_key(|time| std::cmp::Reverse(time.processor));
    for time in times.iter().take(count.parse().expect("ROCKPACK_TEST_TIMES")) {
        let (seconds, hundredths) = (time.processor / 100, time.processor % 100);
        let clock = time.clock.as_secs_f64();
        println!("{seconds:6}.{hundredths:02} s of the processor, {clock:7.2} s: {}", time.name);
    }
}

/// See proc(5): utime, stime, cutime and cstime come after the name, which may contain spaces.
fn processor() -> u64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = text.rsplit_once(") ").map_or("", |(_, fields)| fields).split(' ').skip(11);
    fields.take(4).map(|field| field.parse::<u64>().unwrap_or(0)).sum()
}

//! Measures the time of stages and adds up their bytes.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use rockpack_report::{Compressed, Stage, StageSummary, Sum, Summary, Work, WorkSummary};

#[derive(Debug, Clone, Default)]
pub(super) struct StageTime {
    /// Workers that are active now.
    working: usize,
    /// When the first of them began.
    since: Option<Instant>,
    /// Time of finished work.
    busy: Duration,
    pub expected: u64,
    pub done: u64,
    is_reported: bool,
}

impl StageTime {
    /// Time during which at least one worker was active.
    pub fn busy(&self) -> Duration {
        self.busy + self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

#[derive(Debug, Default)]
struct MeasuredRun {
    stages: BTreeMap<Stage, StageTime>,
    compressed: BTreeMap<Work, [Sum; 2]>,
    packages: u64,
    package_bytes: u64,
}

#[derive(Debug)]
pub(super) struct Meter {
    started: Instant,
    measured: Mutex<MeasuredRun>,
}

impl Meter {
    pub fn new() -> Self {
        Self { started: Instant::now(), measured: Mutex::default() }
    }

    fn measured(&self) -> MutexGuard<'_, MeasuredRun> {
        self.measured.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn expect(&self, stage: Stage, bytes: u64) {
        self.measured().stages.entry(stage).or_default().expected += bytes;
    }

    /// Begins work on a stage. Returns its state if this is the first work.
    pub fn begin(&self, stage: Stage) -> Option<StageTime> {
        let mut measured = self.measured();
        let timed = measured.stages.entry(stage).or_default();
        let is_first = timed.since.is_none() && timed.busy.is_zero();
        timed.working += 1;
        timed.since.get_or_insert_with(Instant::now);
        is_first.then(|| timed.clone())
    }

    pub fn advance(&self, stage: Stage, bytes: u64) -> StageTime {
        let mut measured = self.measured();
        let timed = measured.stages.entry(stage).or_default();
        timed.done += bytes;
        timed.clone()
    }

    pub fn end(&self, stage: Stage) {
        let mut measured = self.measured();
        let timed = measured.stages.entry(stage).or_default();
        timed.working = timed.working.saturating_sub(1);
        if timed.working == 0 {
            timed.busy += timed.since.take().map_or(Duration::ZERO, |since| since.elapsed());
        }
    }

    /// The bytes and working time of each stage that has ended, once.
    pub fn take_finished(&self) -> Vec<(Stage, u64, Duration)> {
        let mut finished = Vec::new();
        for (stage, timed) in &mut self.measured().stages {
            let is_over = timed.since.is_none() && timed.done >= timed.expected;
            if is_over && !std::mem::replace(&mut timed.is_reported, true) {
                finished.push((*stage, timed.done, timed.busy()));
            }
        }
        finished
    }

    pub fn compressed(&self, work: Work, compressed: Compressed) {
        let Compressed { before, after, reused } = compressed;
        let mut measured = self.measured();
        let sum = &mut measured.compressed.entry(work).or_default()[usize::from(reused)];
        sum.count += 1;
        sum.before += before;
        sum.after += after;
    }

    pub fn package(&self, bytes: u64) {
        let mut measured = self.measured();
        measured.packages += 1;
        measured.package_bytes += bytes;
    }

    pub fn summary(&self) -> Summary {
        let measured = self.measured();
        let stages = measured.stages.iter().map(|(stage, timed)| StageSummary {
            stage: *stage,
            seconds: seconds(timed.busy()),
            bytes: timed.done,
        });
        let compressed = measured.compressed.iter().map(|(work, [made, reused])| WorkSummary {
            work: *work,
            made: *made,
            reused: *reused,
        });
        let cpu_time: Option<Duration> = clock_gettime(ClockId::ProcessCPUTime).try_into().ok();
        Summary {
            seconds: seconds(self.started.elapsed()),
            cpu_seconds: cpu_time.map(seconds),
            memory: peak_memory(),
            stages: stages.collect(),
            compressed: compressed.collect(),
            packages: measured.packages,
            package_bytes: measured.package_bytes,
        }
    }
}

/// Seconds rounded to milliseconds: more digits are noise.
pub(super) fn seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1000.0).round() / 1000.0
}

/// The peak resident set, which Linux writes as `VmHWM:  1234 kB`.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

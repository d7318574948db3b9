//! Bars on a terminal: one for each stage, below everything that is written meanwhile.
//!
//! The bars are the last lines of the screen as long as the run works, and are wiped off before
//! anything else is written. Once they are closed nothing draws them again: what was written last,
//! such as the text of an error, is what stays on the screen.

use std::collections::HashMap;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::meter::Timed;
use crate::cli::render;
use crate::report::Stage;

/// The template of a stage that works.
const WORKING: &str = "{prefix:>8} {wide_bar} {decimal_bytes}/{decimal_total_bytes} \
                       {decimal_bytes_per_sec} ETA {eta}";

/// The template of a stage that went through all of its bytes.
const DONE: &str = "{prefix:>8} {msg}";

/// The bars of a run.
pub(super) struct Bars {
    all: MultiProgress,
    /// None once the bars are closed.
    by_stage: Mutex<Option<HashMap<Stage, StageBar>>>,
}

struct StageBar {
    bar: ProgressBar,
    /// Whether the stage went through all bytes that were announced so far.
    is_done: bool,
}

impl Bars {
    /// No bars yet, on stderr.
    pub fn new() -> Self {
        Self { all: MultiProgress::new(), by_stage: Mutex::new(Some(HashMap::new())) }
    }

    fn by_stage(&self) -> MutexGuard<'_, Option<HashMap<Stage, StageBar>>> {
        self.by_stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the bar of a stage longer by `bytes`.
    pub fn expect(&self, stage: Stage, bytes: u64) {
        if let Some(by_stage) = self.by_stage().as_mut() {
            let stage_bar = by_stage.entry(stage).or_insert_with(|| self.add(stage));
            stage_bar.works();
            stage_bar.bar.inc_length(bytes);
        }
    }

    /// Moves the bar of a stage that was announced with some bytes.
    pub fn advance(&self, stage: Stage, bytes: u64) {
        if let Some(stage_bar) = self.by_stage().as_mut().and_then(|all| all.get_mut(&stage)) {
            stage_bar.works();
            stage_bar.bar.inc(bytes);
        }
    }

    /// Puts what the stage took in the place of its bar.
    pub fn end(&self, stage: Stage, timed: &Timed) {
        if let Some(stage_bar) = self.by_stage().as_mut().and_then(|all| all.get_mut(&stage)) {
            stage_bar.is_done = true;
            set_template(&stage_bar.bar, DONE);
            stage_bar.bar.set_message(render::stage_text(timed.done, timed.busy()));
            stage_bar.bar.tick();
        }
    }

    /// Writes a line above the bars.
    pub fn line(&self, line: &str) {
        self.all.suspend(|| drop(writeln!(std::io::stderr(), "{line}")));
    }

    /// Wipes the bars off, for good. Says whether there were any.
    pub fn close(&self) -> bool {
        let Some(by_stage) = self.by_stage().take() else { return false };
        // A terminal that cannot be written to shows nothing that could be wiped off.
        drop(self.all.clear());
        // A bar is drawn once more when it goes, and so has to have nowhere to be drawn.
        self.all.set_draw_target(ProgressDrawTarget::hidden());
        !by_stage.is_empty()
    }

    fn add(&self, stage: Stage) -> StageBar {
        let bar = self.all.add(ProgressBar::new(0));
        set_template(&bar, WORKING);
        bar.set_prefix(stage.as_str());
        StageBar { bar, is_done: false }
    }
}

impl StageBar {
    fn works(&mut self) {
        if self.is_done {
            self.is_done = false;
            set_template(&self.bar, WORKING);
        }
    }
}

fn set_template(bar: &ProgressBar, template: &str) {
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
}

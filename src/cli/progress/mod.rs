//! What is seen of a run on stderr: on a terminal one bar per stage, elsewhere one plain line per
//! finished package, or every event as a line of JSON.

mod json;
mod meter;

use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};

use clap::ValueEnum;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::cli::render;
use crate::error::{Error, printable};
use crate::report::{Compressed, Finding, Progress, Stage, Work};
use json::Json;
use meter::Meter;

/// How a run speaks on stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum LogFormat {
    /// Bars on a terminal, lines elsewhere
    Text,
    /// One JSON object per line: `event` is begin, progress, end, package, note, warning, summary or
    /// error; findings of a failed run are notes and warnings before the error
    Json,
}

/// Shows progress on stderr.
pub(super) struct Terminal {
    meter: Meter,
    shown: ProgressDisplay,
}

enum ProgressDisplay {
    Bars(Bars),
    Lines,
    Json(Json),
}

struct Bars {
    all: MultiProgress,
    by_stage: Mutex<HashMap<Stage, ProgressBar>>,
}

impl Terminal {
    /// Bars if stderr is a terminal, plain lines otherwise; or JSON.
    pub(super) fn new(format: LogFormat) -> Self {
        let bars = || Bars { all: MultiProgress::new(), by_stage: Mutex::default() };
        let shown = match format {
            LogFormat::Json => ProgressDisplay::Json(Json::default()),
            LogFormat::Text if std::io::stderr().is_terminal() => ProgressDisplay::Bars(bars()),
            LogFormat::Text => ProgressDisplay::Lines,
        };
        Self { meter: Meter::new(), shown }
    }

    /// Shows where time and bytes went.
    pub(super) fn summary(&self) {
        let summary = self.meter.summary();
        match &self.shown {
            ProgressDisplay::Json(json) => json.summary(&summary),
            ProgressDisplay::Bars(_) | ProgressDisplay::Lines => {
                self.line(render::summary_text(&summary).trim_end())
            }
        }
    }

    /// Shows what was noticed before the run failed, and why it failed.
    pub(super) fn error(&self, error: &Error) {
        for remark in error.remarks() {
            match &self.shown {
                ProgressDisplay::Json(json) => json.remark(remark),
                ProgressDisplay::Bars(_) | ProgressDisplay::Lines => self.line(&remark.text),
            }
        }
        match &self.shown {
            ProgressDisplay::Json(json) => json.error(error),
            ProgressDisplay::Bars(_) | ProgressDisplay::Lines => {
                super::terminal::print_error(error)
            }
        }
    }

    /// A line that cannot be shown is no reason to stop.
    fn line(&self, line: &str) {
        match &self.shown {
            ProgressDisplay::Bars(bars) => {
                bars.all.suspend(|| drop(writeln!(std::io::stderr(), "{line}")))
            }
            _ => drop(writeln!(std::io::stderr(), "{line}")),
        }
    }
}

impl Bars {
    /// Acts on the bar of a stage that was announced with some bytes.
    fn with(&self, stage: Stage, act: impl FnOnce(&ProgressBar)) {
        let by_stage = self.by_stage.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bar) = by_stage.get(&stage) {
            act(bar);
        }
    }

    fn expect(&self, stage: Stage, bytes: u64) {
        let mut by_stage = self.by_stage.lock().unwrap_or_else(PoisonError::into_inner);
        let bar = by_stage.entry(stage).or_insert_with(|| self.all.add(new_bar(stage)));
        bar.inc_length(bytes);
    }
}

/// Of sealing, every package tells.
fn has_events(stage: Stage) -> bool {
    stage != Stage::Seal
}

fn new_bar(stage: Stage) -> ProgressBar {
    let bar = ProgressBar::new(0);
    let template = "{prefix:>8} {wide_bar} {decimal_bytes}/{decimal_total_bytes} \
                    {decimal_bytes_per_sec} ETA {eta}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_prefix(stage.as_str());
    bar
}

impl Progress for Terminal {
    fn expect(&self, stage: Stage, bytes: u64) {
        self.meter.expect(stage, bytes);
        if let (ProgressDisplay::Bars(bars), true) = (&self.shown, bytes > 0) {
            bars.expect(stage, bytes);
        }
    }

    fn begin(&self, stage: Stage) {
        let first = self.meter.begin(stage).filter(|_| has_events(stage));
        if let (ProgressDisplay::Json(json), Some(timed)) = (&self.shown, first) {
            json.begin(stage, &timed);
        }
    }

    fn advance(&self, stage: Stage, bytes: u64) {
        let timed = self.meter.advance(stage, bytes);
        match &self.shown {
            ProgressDisplay::Bars(bars) => bars.with(stage, |bar| bar.inc(bytes)),
            ProgressDisplay::Json(json) if has_events(stage) => json.progress(stage, &timed),
            ProgressDisplay::Json(_) | ProgressDisplay::Lines => {}
        }
    }

    fn end(&self, stage: Stage) {
        let Some(timed) = self.meter.end(stage) else {
            return;
        };
        match &self.shown {
            ProgressDisplay::Bars(bars) => bars.with(stage, ProgressBar::finish),
            ProgressDisplay::Json(json) if has_events(stage) => json.end(stage, &timed),
            ProgressDisplay::Json(_) | ProgressDisplay::Lines => {}
        }
    }

    fn compressed(&self, work: Work, compressed: Compressed) {
        self.meter.compressed(work, compressed);
    }

    fn package(&self, name: &str, bytes: u64) {
        self.meter.package(bytes);
        match &self.shown {
            ProgressDisplay::Json(json) => json.package(name, bytes),
            _ => {
                let size = render::units::bytes(bytes);
                self.line(&printable(&format!("wrote {name} ({size})")));
            }
        }
    }

    fn warn(&self, finding: &Finding) {
        match &self.shown {
            ProgressDisplay::Json(json) => json.warning(finding),
            _ => self.line(&format!("warning: {finding}")),
        }
    }

    fn note(&self, text: &str) {
        match &self.shown {
            ProgressDisplay::Json(json) => json.note(text),
            ProgressDisplay::Bars(_) | ProgressDisplay::Lines => self.line(&printable(text)),
        }
    }
}

//! Progress on a terminal: one bar per stage; off-terminal one plain line per finished package.

use std::collections::HashMap;
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::render;
use crate::report::{Finding, Progress, Stage};

/// Shows progress on stderr.
pub(super) struct Terminal {
    bars: Option<Bars>,
}

struct Bars {
    all: MultiProgress,
    by_stage: Mutex<HashMap<Stage, ProgressBar>>,
}

impl Terminal {
    /// Bars if stderr is a terminal, plain lines otherwise.
    pub(super) fn new() -> Self {
        let bars = std::io::stderr()
            .is_terminal()
            .then(|| Bars { all: MultiProgress::new(), by_stage: Mutex::default() });
        Self { bars }
    }

    fn with_bar(&self, stage: Stage, act: impl FnOnce(&ProgressBar)) {
        if let Some(bars) = &self.bars {
            let by_stage = bars.by_stage.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(bar) = by_stage.get(&stage) {
                act(bar);
            }
        }
    }
}

impl Progress for Terminal {
    fn begin(&self, stage: Stage, bytes: u64) {
        let Some(bars) = &self.bars else { return };
        let mut by_stage = bars.by_stage.lock().unwrap_or_else(PoisonError::into_inner);
        let bar = by_stage.entry(stage).or_insert_with(|| bars.all.add(ProgressBar::new(0)));
        let template = "{prefix:>8} {wide_bar} {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec} {eta}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_prefix(format!("{stage:?}").to_lowercase());
        bar.inc_length(bytes);
    }

    fn advance(&self, stage: Stage, bytes: u64) {
        self.with_bar(stage, |bar| bar.inc(bytes));
    }

    fn end(&self, stage: Stage) {
        self.with_bar(stage, ProgressBar::finish);
    }

    fn package(&self, name: &str, bytes: u64) {
        let line = format!("wrote {name} ({})", render::units::bytes(bytes));
        match &self.bars {
            // A line that cannot be shown is no reason to stop a build.
            Some(bars) => drop(bars.all.println(line)),
            None => drop(writeln!(std::io::stderr(), "{line}")),
        }
    }

    fn warn(&self, finding: &Finding) {
        let line = format!("warning {finding}");
        match &self.bars {
            Some(bars) => drop(bars.all.println(line)),
            None => drop(writeln!(std::io::stderr(), "{line}")),
        }
    }
}

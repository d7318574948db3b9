//! Bars on a terminal: one for each stage, below all other output.
//!
//! The bars are the last lines of the screen while the run works, and are erased before anything else is
//! written. Once closed, they are never drawn again: the last output, such as the text of an error, stays on
//! the screen.

use std::collections::HashMap;
use std::io::{Result, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use console::Term;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};

use super::meter::Timed;
use crate::cli::render;
use rockpack_report::Stage;

/// The template of a working stage.
const WORKING: &str = "{prefix:>8} {wide_bar} {decimal_bytes}/{decimal_total_bytes} \
                       {decimal_bytes_per_sec} ETA {eta}";

/// The template of a stage that has processed all of its bytes.
const DONE: &str = "{prefix:>8} {msg}";

pub(super) struct Bars {
    all: MultiProgress,
    /// The bars by stage; `None` once they are closed.
    by_stage: Mutex<Option<HashMap<Stage, StageBar>>>,
}

/// The terminal without its last columns. The cursor waits behind the bars, and the terminal echoes a key
/// that ends the run there as `^C`. Without room for that it would start a new line, and the wrong lines
/// would be erased.
#[derive(Debug)]
struct Narrow(Term);

/// Columns that stay free.
const FREE: u16 = 3;

/// Methods that are those of the terminal itself.
macro_rules! of_terminal {
    ($($method:ident($($argument:ident: $Type:ty)?);)*) => {
        $(fn $method(&self $(, $argument: $Type)?) -> Result<()> {
            self.0.$method($($argument)?)
        })*
    };
}

impl TermLike for Narrow {
    fn width(&self) -> u16 {
        TermLike::width(&self.0).saturating_sub(FREE)
    }

    fn height(&self) -> u16 {
        TermLike::height(&self.0)
    }

    of_terminal! {
        move_cursor_up(count: usize);
        move_cursor_down(count: usize);
        move_cursor_right(count: usize);
        move_cursor_left(count: usize);
        write_line(text: &str);
        write_str(text: &str);
        clear_line();
        flush();
    }
}

struct StageBar {
    bar: ProgressBar,
    /// Tells whether the stage has processed all bytes announced so far.
    is_done: bool,
}

impl Bars {
    /// An empty set of bars on stderr.
    pub fn new() -> Self {
        let target = ProgressDrawTarget::term_like(Box::new(Narrow(Term::buffered_stderr())));
        let all = MultiProgress::with_draw_target(target);
        Self { all, by_stage: Mutex::new(Some(HashMap::new())) }
    }

    fn by_stage(&self) -> MutexGuard<'_, Option<HashMap<Stage, StageBar>>> {
        self.by_stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Extends the bar of a stage by `bytes`.
    pub fn expect(&self, stage: Stage, bytes: u64) {
        if let Some(by_stage) = self.by_stage().as_mut() {
            let stage_bar = by_stage.entry(stage).or_insert_with(|| self.add(stage));
            stage_bar.works();
            stage_bar.bar.inc_length(bytes);
        }
    }

    /// Moves the bar of a stage that has announced bytes.
    pub fn advance(&self, stage: Stage, bytes: u64) {
        if let Some(stage_bar) = self.by_stage().as_mut().and_then(|all| all.get_mut(&stage)) {
            stage_bar.works();
            stage_bar.bar.inc(bytes);
        }
    }

    /// Replaces the bar of a stage by its bytes and time.
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

    /// Erases the bars for good, and tells whether there were any.
    pub fn close(&self) -> bool {
        let Some(by_stage) = self.by_stage().take() else { return false };
        // A terminal that cannot be written to shows nothing to erase.
        drop(self.all.clear());
        // A bar is drawn once more on drop, so the draw target must be hidden.
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

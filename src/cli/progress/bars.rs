//! The progress bar on a terminal, below all other output.
//!
//! The bar is the last line of the screen while the run works, and is erased before anything else is written. Once
//! closed, it is never drawn again: the last output, such as the text of an error, stays on the screen.

use std::io::{Result, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use console::Term;
use indicatif::{
    HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle, TermLike,
};

use rockpack_report::Stage;

/// The template: the stage that began last, and the bytes of all stages.
const TEMPLATE: &str = "{prefix:>8} {wide_bar} {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec}{remaining}";

/// Time before the remaining time is shown: until then, stages still announce their bytes.
const ESTIMATE_DELAY: Duration = Duration::from_secs(10);

/// The bar of the whole run; `None` once it is closed.
pub(super) struct Bar(Mutex<Option<ProgressBar>>);

/// The terminal without its last columns. Ctrl-C is echoed as `^C` at the cursor, after the bar. Without free columns
/// it would wrap, and the wrong line would be erased.
#[derive(Debug)]
struct NarrowTerminal(Term);

/// Free columns: `^C` and one more.
const FREE_COLUMNS: u16 = 3;

/// Passes methods on to the terminal.
macro_rules! delegate_to_terminal {
    ($($method:ident($($argument:ident: $Type:ty)?);)*) => {
        $(fn $method(&self $(, $argument: $Type)?) -> Result<()> {
            self.0.$method($($argument)?)
        })*
    };
}

impl TermLike for NarrowTerminal {
    fn width(&self) -> u16 {
        TermLike::width(&self.0).saturating_sub(FREE_COLUMNS)
    }

    fn height(&self) -> u16 {
        TermLike::height(&self.0)
    }

    delegate_to_terminal! {
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

impl Bar {
    pub fn new() -> Self {
        let target =
            ProgressDrawTarget::term_like(Box::new(NarrowTerminal(Term::buffered_stderr())));
        let bar = ProgressBar::with_draw_target(Some(0), target);
        if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
            bar.set_style(style.with_key("remaining", remaining));
        }
        Self(Mutex::new(Some(bar)))
    }

    /// Changes the bar unless it is closed.
    pub fn draw(&self, change: impl FnOnce(&ProgressBar)) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(change);
    }

    /// Shows the stage that began.
    pub fn begin(&self, stage: Stage) {
        self.draw(|bar| bar.set_prefix(stage.as_str()));
    }

    /// Writes a line above the bar.
    pub fn line(&self, line: &str) {
        let write = || drop(writeln!(std::io::stderr(), "{line}"));
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Erases the bar permanently, and returns whether it had any bytes to show.
    pub fn close(&self) -> bool {
        let Some(bar) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return false;
        };
        bar.finish_and_clear();
        bar.length() > Some(0)
    }
}

fn remaining(state: &ProgressState, text: &mut dyn std::fmt::Write) {
    if state.elapsed() >= ESTIMATE_DELAY {
        let _ = write!(text, " {:#} left", HumanDuration(state.eta()));
    }
}

//! The output of a run: progress, findings and errors on stderr, results on stdout.
//!
//! On a terminal there is one bar per stage, elsewhere one plain line per finished package, or every event as
//! a line of JSON. All output goes through [`Terminal`], which erases the bars before it writes lasting text.

mod bars;
mod meter;

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use clap::{ArgAction, Args, ColorChoice, ValueEnum};
use rockpack_core::error::{Error, Remark, Result, printable, printable_lines, without_commands};
use rockpack_core::run::interrupt;
use rockpack_report::{Compressed, Finding, Findings, Progress, Stage, Work};
use rockpack_verify::Problem;
use serde::Serialize;
use serde_json::{Value, json};

use super::terminal::json_text;
use super::{render, terminal};
use bars::Bars;
use meter::{Meter, seconds};

/// The form of output on stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    /// Bars on a terminal, lines elsewhere
    Text,
    /// One JSON object per line: `event` is begin, progress, end, package, note, warning, failed,
    /// summary or error; findings are notes and warnings
    Json,
}

/// The options of all commands for output beside the result.
#[derive(Debug, Args)]
pub(super) struct ShownArguments {
    /// How progress, findings and errors are written
    #[arg(
        long,
        hide_short_help = true,
        global = true,
        value_enum,
        default_value = "text",
        value_name = "FORMAT"
    )]
    log_format: LogFormat,
    /// Write only warnings and errors to stderr
    ///
    /// No progress, no notes, no summary; waits for other runs are reported all the same
    #[arg(short, long, global = true, action = ArgAction::SetTrue, conflicts_with = "verbose")]
    quiet: bool,
    /// Show more
    ///
    /// The time and bytes of each stage, and the notes of split and recombine; lists of `inspect`
    #[arg(short, long, global = true, action = ArgAction::SetTrue)]
    verbose: bool,
    /// Whether errors and help have colours
    ///
    /// auto: on a terminal, unless NO_COLOR is set
    #[arg(
        long,
        hide_short_help = true,
        global = true,
        value_enum,
        default_value = "auto",
        value_name = "WHEN"
    )]
    color: ColorChoice,
}

/// Writes the output of a run.
pub(super) struct Terminal {
    meter: Meter,
    shown: ProgressDisplay,
    amount: Amount,
    has_colours: bool,
    /// The mark that the hint about `explain` was shown.
    explained: OnceLock<()>,
}

/// The amount of output beside the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Amount {
    Quiet,
    Usual,
    Verbose,
}

enum ProgressDisplay {
    Bars(Bars),
    Lines,
    /// JSON, with the time of each stage's last event.
    Json(Mutex<BTreeMap<Stage, Instant>>),
}

impl Terminal {
    /// Bars if stderr is a terminal, plain lines otherwise; or JSON.
    pub(super) fn new(arguments: &ShownArguments) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let amount = match (arguments.quiet, arguments.verbose) {
            (true, _) => Amount::Quiet,
            (_, true) => Amount::Verbose,
            _ => Amount::Usual,
        };
        let shown = match arguments.log_format {
            LogFormat::Json => ProgressDisplay::Json(Mutex::default()),
            LogFormat::Text if is_terminal && amount != Amount::Quiet => {
                ProgressDisplay::Bars(Bars::new())
            }
            LogFormat::Text => ProgressDisplay::Lines,
        };
        let has_colours = terminal::has_colours(arguments.color, is_terminal);
        Self { meter: Meter::new(), shown, amount, has_colours, explained: OnceLock::new() }
    }

    fn is_quiet(&self) -> bool {
        self.amount == Amount::Quiet
    }

    /// Whether --verbose was given.
    pub(super) fn is_verbose(&self) -> bool {
        self.amount == Amount::Verbose
    }

    /// Whether a stage has events of its own: none has with --quiet. Sealing never has: each package reports it.
    fn has_events(&self, stage: Stage) -> bool {
        stage != Stage::Seal && !self.is_quiet()
    }

    /// Writes a line, or an event with the text, even with --quiet.
    pub(super) fn say(&self, text: &str) {
        match &self.shown {
            ProgressDisplay::Json(_) => write_event(&json!({ "event": "note", "message": text })),
            _ => self.line(text),
        }
    }

    /// Erases the bars, and leaves one line for each ended stage in their place. Nothing is drawn any more.
    pub(super) fn close(&self) {
        let is_shown = match &self.shown {
            ProgressDisplay::Bars(bars) => bars.close(),
            ProgressDisplay::Lines => self.is_verbose(),
            ProgressDisplay::Json(_) => false,
        };
        if is_shown {
            for (stage, bytes, busy) in self.meter.take_finished() {
                let text = render::stage_text(bytes, busy);
                self.line(&format!("{:>8} {text}", stage.as_str()));
            }
        }
    }

    /// Shows the time and bytes of the run, in place of the bars.
    pub(super) fn summary(&self) {
        let summary = self.meter.summary();
        self.meter.take_finished();
        self.close();
        match &self.shown {
            _ if self.is_quiet() => {}
            ProgressDisplay::Json(_) => write_fields("summary", &summary),
            _ => render::summary_text(&summary).lines().for_each(|line| self.line(line)),
        }
    }

    /// Writes `text`, the result, to stdout. Its renderer leaves no control characters in it except line breaks;
    /// escaping here keeps forgotten ones from the terminal.
    pub(super) fn print(&self, text: &str) -> Result<()> {
        self.close();
        terminal::write(&printable_lines(text))
    }

    /// Writes `value`, the result, as indented JSON to stdout.
    pub(super) fn print_json(&self, value: &impl Serialize) -> Result<()> {
        self.close();
        terminal::write(&json_text(serde_json::to_string_pretty(value))?)
    }

    /// Writes the result to stdout: `value` as indented JSON, or its `text`.
    pub(super) fn print_result(
        &self,
        is_json: bool,
        value: &impl Serialize,
        text: impl FnOnce() -> String,
    ) -> Result<()> {
        if is_json { self.print_json(value) } else { self.print(&text()) }
    }

    /// Shows the findings when the run is over.
    pub(super) fn findings(&self, findings: &Findings) {
        let shown = if self.is_quiet() { findings.warnings() } else { findings.clone() };
        self.recorded(&shown);
        let is_text = !matches!(self.shown, ProgressDisplay::Json(_)) && !self.is_quiet();
        if is_text && !shown.is_empty() && self.explained.set(()).is_ok() {
            self.line(render::EXPLAIN);
        }
    }

    /// Shows the warnings among the findings; all of them with --verbose or as JSON.
    pub(super) fn warnings(&self, findings: &Findings) {
        let all = self.is_verbose() || matches!(self.shown, ProgressDisplay::Json(_));
        if all { self.findings(findings) } else { self.findings(&findings.warnings()) }
    }

    /// Shows findings that a receipt has.
    pub(super) fn recorded(&self, findings: &Findings) {
        self.close();
        findings.iter().for_each(|finding| self.remark(&finding.remark()));
    }

    /// Reports failed checks to programs; people read them in the result.
    pub(super) fn problems(&self, problems: &[Problem]) {
        if let ProgressDisplay::Json(_) = &self.shown {
            problems.iter().for_each(|problem| write_fields("failed", problem));
        }
    }

    /// Shows the findings of the failed run, and its error.
    pub(super) fn error(&self, error: &Error) {
        self.close();
        let remarks = error.remarks().into_iter();
        let said = remarks.filter(|remark| !self.is_quiet() || !remark.is_note());
        said.for_each(|remark| self.remark(remark));
        match &self.shown {
            ProgressDisplay::Json(_) => error.flattened().for_each(|fault| {
                let (message, hint) = (fault.in_full(), fault.hint_text());
                write_event(&json!({ "event": "error", "message": message, "hint": hint }));
            }),
            _ => terminal::print_error(error, self.has_colours),
        }
    }

    /// Shows a finding; as JSON, an event of its severity.
    fn remark(&self, remark: &Remark) {
        let ProgressDisplay::Json(_) = &self.shown else { return self.line(&remark.text) };
        if let Ok(Value::Object(fields)) = serde_json::from_str(&remark.json) {
            let severity = fields.get("severity").and_then(Value::as_str).unwrap_or("note");
            write_fields(severity, &fields);
        }
    }

    /// Writes a line to stderr. A failed write does not stop the run.
    fn line(&self, line: &str) {
        let line = printable(line);
        let line = without_commands(&line);
        match &self.shown {
            ProgressDisplay::Bars(bars) => bars.line(&line),
            _ => drop(writeln!(std::io::stderr(), "{line}")),
        }
    }
}

impl Progress for Terminal {
    fn expect(&self, stage: Stage, bytes: u64) {
        self.meter.expect(stage, bytes);
        if let (ProgressDisplay::Bars(bars), true) = (&self.shown, bytes > 0) {
            bars.expect(stage, bytes);
        }
    }

    fn begin(&self, stage: Stage) {
        let first = self.meter.begin(stage).filter(|_| self.has_events(stage));
        if let (ProgressDisplay::Json(said), Some(timed)) = (&self.shown, first) {
            is_due(said, stage);
            write_event(&json!({ "event": "begin", "stage": stage, "bytes": timed.expected }));
        }
    }

    fn advance(&self, stage: Stage, bytes: u64) {
        // An interrupted run skips the rest and must not count it.
        if interrupt::requested().is_some() {
            return;
        }
        let timed = self.meter.advance(stage, bytes);
        match &self.shown {
            ProgressDisplay::Bars(bars) => bars.advance(stage, bytes),
            ProgressDisplay::Json(said) if self.has_events(stage) && is_due(said, stage) => {
                let (done, bytes, seconds) = (timed.done, timed.expected, seconds(timed.busy()));
                write_event(
                    &json!({ "event": "progress", "stage": stage, "done": done, "bytes": bytes, "seconds": seconds }),
                );
            }
            ProgressDisplay::Json(_) | ProgressDisplay::Lines => {}
        }
    }

    fn end(&self, stage: Stage) {
        let Some(timed) = self.meter.end(stage) else { return };
        match &self.shown {
            ProgressDisplay::Bars(bars) => bars.end(stage, &timed),
            ProgressDisplay::Json(_) if self.has_events(stage) => {
                let (bytes, seconds) = (timed.done, seconds(timed.busy()));
                write_event(
                    &json!({ "event": "end", "stage": stage, "bytes": bytes, "seconds": seconds }),
                );
            }
            ProgressDisplay::Json(_) | ProgressDisplay::Lines => {}
        }
    }

    fn compressed(&self, work: Work, compressed: Compressed) {
        self.meter.compressed(work, compressed);
    }

    /// Reports a complete package, which reaches the output folder with the whole set. A terminal shows only
    /// bars until then: a line would outlast a package that an interrupt undoes.
    fn package(&self, name: &str, bytes: u64) {
        self.meter.package(bytes);
        match &self.shown {
            _ if self.is_quiet() => {}
            ProgressDisplay::Json(_) => {
                write_event(&json!({ "event": "package", "file": name, "bytes": bytes }));
            }
            ProgressDisplay::Bars(_) => {}
            ProgressDisplay::Lines => self.line(&format!("made {name} ({})", render::bytes(bytes))),
        }
    }

    fn warn(&self, finding: &Finding) {
        self.remark(&finding.remark());
    }

    fn note(&self, text: &str) {
        if !self.is_quiet() {
            self.say(text);
        }
    }
}

/// The interval of a stage's progress events.
const INTERVAL: Duration = Duration::from_secs(5);

/// Whether an event of a stage's progress is due by the time of the last one. Notes the time then.
fn is_due(said: &Mutex<BTreeMap<Stage, Instant>>, stage: Stage) -> bool {
    let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
    let due = said.get(&stage).is_none_or(|last| last.elapsed() >= INTERVAL);
    if due {
        said.insert(stage, Instant::now());
    }
    due
}

/// An event with the fields of a value.
fn write_fields(event: &str, value: &impl Serialize) {
    if let Ok(Value::Object(mut fields)) = serde_json::to_value(value) {
        fields.insert("event".to_owned(), event.into());
        write_event(&Value::Object(fields));
    }
}

/// Writes an event in one call. A failed write does not stop the run.
fn write_event(event: &Value) {
    let event = event.to_string();
    let line = terminal::plain_json(&event).into_owned() + "\n";
    let _ = std::io::stderr().write_all(line.as_bytes());
}

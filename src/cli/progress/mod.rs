//! The output of a run: progress, findings and errors on stderr, results on stdout.
//!
//! On a terminal there is one bar, elsewhere one plain line per finished package, or every event as
//! a line of JSON. All output goes through [`Terminal`], which erases the bar before it writes lasting text.

mod bars;
mod meter;

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::{ArgAction, Args, ColorChoice, ValueEnum};
use rockpack_core::error::{Error, Remark, Result, printable, printable_lines, without_commands};
use rockpack_core::run::interrupt;
use rockpack_report::words::counted;
use rockpack_report::{Compressed, Finding, Findings, Progress, Stage, Work};
use rockpack_verify::Problem;
use serde::Serialize;
use serde_json::{Value, json};

use super::terminal::json_text;
use super::{render, terminal};
use bars::Bar;
use meter::{Meter, seconds};

/// The form of output on stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    /// A bar on a terminal, lines elsewhere
    Text,
    /// One JSON object per line: `event` is begin, progress, end, package, note, warning, failed,
    /// summary or error; findings are notes and warnings
    Json,
}

/// The options of all commands for output to stderr.
#[derive(Debug, Args)]
pub(super) struct DisplayArguments {
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
    /// No progress, no notes, no summary; a wait for another run is still reported
    #[arg(short, long, global = true, action = ArgAction::SetTrue, conflicts_with = "verbose")]
    quiet: bool,
    /// Show more
    ///
    /// All notes, the time and bytes of each stage, and the long lists of `inspect`
    #[arg(short, long, global = true, action = ArgAction::SetTrue)]
    verbose: bool,
    /// When errors and help have colours
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

pub(super) struct Terminal {
    meter: Meter,
    shown: ProgressDisplay,
    verbosity: Verbosity,
    has_colours: bool,
}

/// The amount of output to stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verbosity {
    Quiet,
    Normal,
    Verbose,
}

enum ProgressDisplay {
    Bar(Bar),
    Lines,
    /// JSON, with the time of each stage's last event.
    Json(Mutex<BTreeMap<Stage, Instant>>),
}

impl Terminal {
    /// A bar if stderr is a terminal, plain lines otherwise; or JSON.
    pub(super) fn new(arguments: &DisplayArguments) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let verbosity = match (arguments.quiet, arguments.verbose) {
            (true, _) => Verbosity::Quiet,
            (_, true) => Verbosity::Verbose,
            _ => Verbosity::Normal,
        };
        let shown = match arguments.log_format {
            LogFormat::Json => ProgressDisplay::Json(Mutex::default()),
            LogFormat::Text if is_terminal && verbosity != Verbosity::Quiet => {
                ProgressDisplay::Bar(Bar::new())
            }
            LogFormat::Text => ProgressDisplay::Lines,
        };
        let has_colours = terminal::has_colours(arguments.color, is_terminal);
        Self { meter: Meter::new(), shown, verbosity, has_colours }
    }

    fn is_quiet(&self) -> bool {
        self.verbosity == Verbosity::Quiet
    }

    pub(super) fn is_verbose(&self) -> bool {
        self.verbosity == Verbosity::Verbose
    }

    /// Writes a line, or an event with the text, even with --quiet.
    pub(super) fn note_always(&self, text: &str) {
        match &self.shown {
            ProgressDisplay::Json(_) => write_event(&json!({ "event": "note", "message": text })),
            _ => self.line(text),
        }
    }

    /// Ends the progress: erases the bar, and reports each stage that ended.
    pub(super) fn close(&self) {
        let is_shown = match &self.shown {
            ProgressDisplay::Bar(bar) => bar.close(),
            ProgressDisplay::Lines => self.is_verbose(),
            ProgressDisplay::Json(_) => !self.is_quiet(),
        };
        if !is_shown {
            return;
        }
        for (stage, bytes, busy) in self.meter.take_finished() {
            if let ProgressDisplay::Json(_) = self.shown {
                let seconds = seconds(busy);
                let event =
                    json!({ "event": "end", "stage": stage, "bytes": bytes, "seconds": seconds });
                write_event(&event);
            } else {
                let text = render::stage_text(bytes, busy);
                self.line(&format!("{:>8} {text}", stage.as_str()));
            }
        }
    }

    /// Shows the time and bytes of the run, in place of the bar.
    pub(super) fn summary(&self) {
        let summary = self.meter.summary();
        if !matches!(self.shown, ProgressDisplay::Json(_)) {
            self.meter.take_finished();
        }
        self.close();
        match &self.shown {
            _ if self.is_quiet() => {}
            ProgressDisplay::Json(_) => write_fields("summary", &summary),
            _ => render::summary_text(&summary).lines().for_each(|line| self.line(line)),
        }
    }

    /// Writes `text`, the result, to stdout. Renderers escape control characters; escaping again here protects the
    /// terminal if one forgets.
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

    /// Shows the findings when the run is over: the number of notes, or all of them with --verbose, then the warnings.
    pub(super) fn findings(&self, findings: &Findings) {
        self.close();
        if matches!(self.shown, ProgressDisplay::Json(_)) {
            let shown = if self.is_quiet() { findings.warnings() } else { findings.clone() };
            return shown.iter().for_each(|finding| self.remark(&finding.remark()));
        }
        let (warnings, notes): (Vec<&Finding>, Vec<&Finding>) =
            findings.iter().partition(|finding| finding.is_warning());
        if self.is_verbose() {
            notes.iter().for_each(|note| self.remark(&note.remark()));
        } else if !notes.is_empty() && !self.is_quiet() {
            let them = if notes.len() == 1 { "it" } else { "them" };
            self.line(&format!("{}; -v shows {them}", counted(notes.len(), "note")));
        }
        warnings.iter().for_each(|warning| self.remark(&warning.remark()));
        if !warnings.is_empty() && !self.is_quiet() {
            let warnings = counted(warnings.len(), "warning");
            self.line(&format!("{warnings}; {}", render::EXPLAIN));
        }
    }

    /// Shows the warnings among the findings; all of them with --verbose or as JSON.
    pub(super) fn warnings(&self, findings: &Findings) {
        let all = self.is_verbose() || matches!(self.shown, ProgressDisplay::Json(_));
        if all { self.findings(findings) } else { self.findings(&findings.warnings()) }
    }

    /// Shows findings of a receipt, including notes.
    pub(super) fn receipt_findings(&self, findings: &Findings) {
        self.close();
        findings.iter().for_each(|finding| self.remark(&finding.remark()));
    }

    /// Writes failed checks as JSON events; as text they are part of the result.
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
                let (message, hint) = (fault.full_text(), fault.hint_text());
                write_event(&json!({ "event": "error", "message": message, "hint": hint }));
            }),
            _ => terminal::print_error(error, self.has_colours),
        }
    }

    /// Shows a finding; as JSON, an event of its severity.
    fn remark(&self, remark: &Remark) {
        let ProgressDisplay::Json(_) = &self.shown else {
            let text = printable(&remark.text);
            return match text.strip_prefix("warning:").filter(|_| self.has_colours) {
                Some(rest) => self.write(&format!("\u{1b}[33mwarning:\u{1b}[0m{rest}")),
                None => self.write(&text),
            };
        };
        if let Ok(Value::Object(fields)) = serde_json::from_str(&remark.json) {
            let severity = fields.get("severity").and_then(Value::as_str).unwrap_or("note");
            write_fields(severity, &fields);
        }
    }

    /// Writes a line to stderr. A failed write does not stop the run.
    fn line(&self, line: &str) {
        self.write(&printable(line));
    }

    fn write(&self, line: &str) {
        let line = without_commands(line);
        match &self.shown {
            ProgressDisplay::Bar(bar) => bar.line(&line),
            _ => drop(writeln!(std::io::stderr(), "{line}")),
        }
    }
}

impl Progress for Terminal {
    fn expect(&self, stage: Stage, bytes: u64) {
        self.meter.expect(stage, bytes);
        if let ProgressDisplay::Bar(bar) = &self.shown {
            bar.draw(|bar| bar.inc_length(bytes));
        }
    }

    fn begin(&self, stage: Stage) {
        let Some(timed) = self.meter.begin(stage) else { return };
        match &self.shown {
            ProgressDisplay::Bar(bar) => bar.begin(stage),
            ProgressDisplay::Json(said) if !self.is_quiet() => {
                is_due(said, stage);
                write_event(&json!({ "event": "begin", "stage": stage, "bytes": timed.expected }));
            }
            ProgressDisplay::Json(_) | ProgressDisplay::Lines => {}
        }
    }

    fn advance(&self, stage: Stage, bytes: u64) {
        // An interrupted run skips the rest and must not count it.
        if interrupt::requested().is_some() {
            return;
        }
        let timed = self.meter.advance(stage, bytes);
        match &self.shown {
            // Stages that announced nothing are not in the length of the bar.
            ProgressDisplay::Bar(bar) if timed.expected > 0 => bar.draw(|bar| bar.inc(bytes)),
            ProgressDisplay::Json(said) if !self.is_quiet() && is_due(said, stage) => {
                let (done, bytes, seconds) = (timed.done, timed.expected, seconds(timed.busy()));
                write_event(
                    &json!({ "event": "progress", "stage": stage, "done": done, "bytes": bytes, "seconds": seconds }),
                );
            }
            _ => {}
        }
    }

    fn end(&self, stage: Stage) {
        self.meter.end(stage);
    }

    fn compressed(&self, work: Work, compressed: Compressed) {
        self.meter.compressed(work, compressed);
    }

    /// Reports a complete package, which reaches the output folder with the whole set. A terminal shows only
    /// the bar until then: a line would outlast a package that an interrupt undoes.
    fn package(&self, name: &str, bytes: u64) {
        self.meter.package(bytes);
        match &self.shown {
            _ if self.is_quiet() => {}
            ProgressDisplay::Json(_) => {
                write_event(&json!({ "event": "package", "file": name, "bytes": bytes }));
            }
            ProgressDisplay::Bar(_) => {}
            ProgressDisplay::Lines => self.line(&format!("made {name} ({})", render::bytes(bytes))),
        }
    }

    fn warn(&self, finding: &Finding) {
        self.remark(&finding.remark());
    }

    fn note(&self, text: &str) {
        if !self.is_quiet() {
            self.note_always(text);
        }
    }
}

/// The interval of a stage's progress events.
const INTERVAL: Duration = Duration::from_secs(5);

/// Whether the next progress event of a stage is due. If so, records the time.
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

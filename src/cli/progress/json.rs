//! Events as lines of JSON.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rockpack_core::error::{Error, Remark};
use serde::Serialize;
use serde_json::{Value, json};

use super::meter::{Timed, seconds};
use crate::cli::terminal;
use rockpack_report::{Stage, Summary};
use rockpack_verify::Problem;

/// The interval of a stage's progress events.
const INTERVAL: Duration = Duration::from_secs(5);

/// Writes each event to stderr in one call.
#[derive(Debug, Default)]
pub(super) struct Json {
    /// The time of each stage's last event.
    said: Mutex<BTreeMap<Stage, Instant>>,
}

impl Json {
    pub fn begin(&self, stage: Stage, timed: &Timed) {
        self.is_due(stage);
        write(&json!({ "event": "begin", "stage": stage, "bytes": timed.expected }));
    }

    pub fn progress(&self, stage: Stage, timed: &Timed) {
        if self.is_due(stage) {
            let (done, bytes, seconds) = (timed.done, timed.expected, seconds(timed.busy()));
            write(
                &json!({ "event": "progress", "stage": stage, "done": done, "bytes": bytes, "seconds": seconds }),
            );
        }
    }

    pub fn end(&self, stage: Stage, timed: &Timed) {
        let seconds = seconds(timed.busy());
        write(&json!({ "event": "end", "stage": stage, "bytes": timed.done, "seconds": seconds }));
    }

    pub fn package(&self, file: &str, bytes: u64) {
        write(&json!({ "event": "package", "file": file, "bytes": bytes }));
    }

    pub fn note(&self, message: &str) {
        write(&json!({ "event": "note", "message": message }));
    }

    /// A check that failed.
    pub fn failed(&self, problem: &Problem) {
        write_fields("failed", problem);
    }

    pub fn summary(&self, summary: &Summary) {
        write_fields("summary", summary);
    }

    /// A finding, as an event of its severity.
    pub fn remark(&self, remark: &Remark) {
        if let Ok(Value::Object(fields)) = serde_json::from_str(&remark.json) {
            let severity = fields.get("severity").and_then(Value::as_str).map(str::to_owned);
            write_fields(severity.as_deref().unwrap_or("note"), &fields);
        }
    }

    /// One event for each fault.
    pub fn error(&self, error: &Error) {
        for fault in error.flattened() {
            write(
                &json!({ "event": "error", "message": fault.in_full(), "hint": fault.hint_text() }),
            );
        }
    }

    fn is_due(&self, stage: Stage) -> bool {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let due = said.get(&stage).is_none_or(|last| last.elapsed() >= INTERVAL);
        if due {
            said.insert(stage, Instant::now());
        }
        due
    }
}

/// An event with the fields of a value.
fn write_fields(event: &str, value: &impl Serialize) {
    if let Ok(Value::Object(mut fields)) = serde_json::to_value(value) {
        fields.insert("event".to_owned(), event.into());
        write(&Value::Object(fields));
    }
}

/// Writes an event. A failed write does not stop the run.
fn write(event: &Value) {
    let event = event.to_string();
    let line = terminal::plain_json(&event).into_owned() + "\n";
    let _ = std::io::stderr().write_all(line.as_bytes());
}

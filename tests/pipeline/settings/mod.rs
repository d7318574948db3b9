//! Settings, from outside: faults are refused at once, before any input is opened; every value states its
//! origin; the documents generated from the keys' declaration are true; and rockpack proposes groups if none
//! are configured.
//!
//! With `ROCKPACK_BLESS=1`, the schema and the documentation's list are written instead of compared; look at
//! the difference before you keep it.

mod bytes;
mod commands;
mod origins;
mod proposed;
mod refused;
mod schema;

use std::fs;
use std::path::PathBuf;
use std::process::Output;

use serde_json::Value;
use support::example::rockpack;
use support::tools;
use tempfile::TempDir;

/// A folder with configurations and without artifacts.
struct Room(TempDir);

impl Room {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        fs::write(self.path(name), text).unwrap();
        self.path(name)
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The keys that `config show` prints, each with its value and origin.
fn shown(words: &[&str]) -> Vec<(String, Value, Value)> {
    let mut command = rockpack();
    command
        .args(["config", "show", "--json"])
        .args(words)
        .current_dir(support::program::repository(""));
    let mut list: Vec<Value> =
        serde_json::from_str(&tools::succeed(command.env("SOURCE_DATE_EPOCH", "1700000000")))
            .unwrap();
    let triple = |setting: &mut Value| {
        let [key, value] = ["key", "value"].map(|field| setting[field].take());
        let origin = setting.as_object_mut().unwrap();
        origin.retain(|field, _| !["key", "value", "unset"].contains(&field.as_str()));
        (key.as_str().unwrap().to_owned(), value, setting.take())
    };
    list.iter_mut().map(triple).collect()
}

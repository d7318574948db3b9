//! Tests from artifacts to packages, from outside and stage by stage: scanning, splitting, recombining,
//! planning, building, and the commands that inspect the output.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests fail by panics")]

#[macro_use]
extern crate support;

mod archives;
mod budgets;
mod cost;
mod databases;
mod device_code;
mod directories;
mod discover;
mod distro;
mod earlier_tools;
mod exit_codes;
mod extract;
mod fallbacks;
mod findings;
mod gpu;
mod hotfix;
mod inspect;
mod inspect_package;
mod inspect_wheel;
mod main_job;
mod odd_code;
mod package_list;
mod pins;
mod plan;
mod refusals;
mod report;
mod reproducible;
mod respin;
mod rules;
mod scan;
mod schemas;
mod schemes;
mod settings;
mod shell;
mod stored;
mod thin;
mod trees;
mod wheels;

/// The text that a JSON value is.
fn text(value: &serde_json::Value) -> String {
    value.as_str().unwrap().to_owned()
}

support::main!();

//! Failures of earlier tools, shown from outside to be impossible, where no test of a feature does.
//! README.md lists all of them with their tests; each `*.patch` takes one fix away.
#![allow(clippy::unwrap_used)] // a test that panics has failed

#[path = "../support/device.rs"]
mod device;
#[path = "../support/example.rs"]
mod example;
#[path = "../support/runtime/mod.rs"]
mod runtime;
#[path = "../support/tools.rs"]
mod tools;

mod generic;
mod output;
mod patches;
mod units;

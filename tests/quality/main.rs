//! What makes packages ones that a distribution would take, judged by its own tools: lint,
//! signatures, the dynamic loader, gdb, update-alternatives, and rpm with a moved prefix.
#![allow(clippy::unwrap_used)] // a test that panics has failed

#[path = "../support/bases.rs"]
mod bases;
#[path = "../support/device.rs"]
mod device;
#[path = "../support/example.rs"]
mod example;
#[path = "../support/roots.rs"]
mod roots;
#[path = "../support/runtime/mod.rs"]
mod runtime;
#[path = "../support/tools.rs"]
mod tools;

mod alternatives;
mod debug;
mod lint;
mod loader;
mod moved;
mod signed;
mod texts;

//! Faults of the system while a run works: a call that fails, a full disk, a signal, a kill, input
//! that changes. Afterwards no part of anything stands under a final name, what was there before is
//! there still, and the next run gives what an undisturbed one does.
//!
//! `cargo test --test faults` strikes at some places; with `ROCKPACK_FAULTS=all` at every one, and
//! the figures are printed (`-- --nocapture`). README.md here has those of a whole run.
#![allow(clippy::unwrap_used)] // a test that panics has failed

mod changed;
mod disk;
#[path = "../support/example.rs"]
mod example;
mod injected;
mod room;
mod scenarios;
mod signals;
mod terminal;
#[path = "../support/tools.rs"]
mod tools;

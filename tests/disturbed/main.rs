//! Faults of the system while a run works: a call that fails, a full disk, a signal, a kill, input
//! that changes. Afterwards no part of anything stands under a final name, what was there before is
//! there still, and the next run gives what an undisturbed one does.
//!
//! `cargo test --test disturbed` strikes at some places; with `ROCKPACK_FAULTS=all` at every one, and
//! the figures are printed (`-- --nocapture`). README.md here says what is promised.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests fail by panics")]

#[macro_use]
extern crate support;

mod beside;
mod ceilings;
mod changed;
mod clock;
mod complete;
mod disk;
mod injected;
mod left;
mod publications;
mod reading;
mod recovered;
mod room;
mod scenarios;
mod screen;
mod signals;
mod sweep;
mod terminal;
mod threads;
mod users;
mod waiting;
mod wheels;

support::main!();

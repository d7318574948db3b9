//! Faults of the system during a run: a failing call, a full disk, a signal, a kill, changing input.
//! Afterwards no partial file has a final name, the earlier output still exists, and the next run gives the
//! same as an undisturbed one.
//!
//! `cargo test --test disturbed` strikes at some places; with `ROCKPACK_FAULTS=all` it strikes at every one
//! and prints the figures (`-- --nocapture`). `tests/README.md` states what is expected of each fault.

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
mod servers;
mod signals;
mod sweep;
mod terminal;
mod thinned;
mod threads;
mod users;
mod waiting;
mod wheels;

support::main!();

//! Faults of the system while a run works: a call that fails, a full disk, a signal, a kill, input
//! that changes. Afterwards no part of anything stands under a final name, what was there before is
//! there still, and the next run gives what an undisturbed one does.
//!
//! `cargo test --test faults` strikes at some places; with `ROCKPACK_FAULTS=all` at every one, and
//! the figures are printed (`-- --nocapture`). README.md here says what is promised.
#![allow(clippy::unwrap_used)] // a test that panics has failed

#[path = "../support/archives.rs"]
mod archives;
mod beside;
mod ceilings;
mod changed;
mod clock;
mod complete;
mod disk;
#[path = "../support/example.rs"]
mod example;
#[path = "../support/repo_fixture.rs"]
#[allow(dead_code, reason = "made for the tests of repositories")]
mod fixture;
mod injected;
#[path = "../support/keys.rs"]
#[allow(dead_code, reason = "made for the tests of repositories")]
mod keys;
mod left;
mod publications;
#[path = "../support/published.rs"]
#[allow(dead_code, reason = "made for the tests of repositories")]
mod published;
mod reading;
mod recovered;
mod room;
mod scenarios;
mod signals;
#[path = "../support/strace.rs"]
#[allow(dead_code, reason = "made for the tests of what is written")]
mod strace;
mod sweep;
mod terminal;
mod threads;
#[path = "../support/tools.rs"]
mod tools;
mod waiting;

//! Builds that share their work: with earlier ones, by a cache, and with other machines, by parts.
#![allow(clippy::unwrap_used)] // a test that panics has failed

#[path = "../support/example.rs"]
mod example;
#[path = "../support/tools.rs"]
mod tools;

mod cache;
mod logs;
mod partition;

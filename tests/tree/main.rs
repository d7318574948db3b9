//! The documents and examples of the repository, and what the program is built from.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests fail by panics")]

#[macro_use]
extern crate support;

mod book;
mod examples;
mod supply;
mod tutorial;

support::main!();

//! Properties of the source tree and its documents.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests fail by panics")]

#[macro_use]
extern crate support;

mod architecture;
mod book;
mod elf_matrix;
mod examples;
mod harness;
mod layers;
mod mirrors;
mod patches;
mod promises;
mod supply;
mod tutorial;
mod words;

support::main!();

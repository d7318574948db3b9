//! Tests of the library by a C program that uses only its header.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "tests fail by panics")]

mod archives;
mod behaviour;
mod exported;
mod future;
mod lines;
mod loading;
mod privileged;
mod program;
mod surroundings;
mod world;

//! Foreign tools and fixtures for the integration tests.
// Every test program uses a part of it; a panic is how a test fails.
#![allow(dead_code, clippy::unwrap_used)]

pub mod fixtures;
pub mod tools;
pub mod transform;

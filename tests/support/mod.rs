//! Foreign tools and fixtures for the integration tests.
#![allow(dead_code)] // Every test program uses a part of it.

pub mod fixtures;
pub mod tools;

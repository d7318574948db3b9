//! The input of a run: artifacts as build jobs leave them, Python wheels, and the rules for which of their
//! files belong to the kernel databases that libraries read at run time.

pub mod artifact;
pub mod database;
pub mod wheel;

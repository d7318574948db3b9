//! The main job from outside: `rockpack build` on the example shards, judged by the tools that
//! will meet its packages.
#![allow(clippy::unwrap_used)] // a test that panics has failed

#[path = "../support/archives.rs"]
mod archives;
#[path = "../support/bases.rs"]
mod bases;
#[path = "../support/example.rs"]
mod example;
#[path = "../support/roots.rs"]
mod roots;
#[path = "../support/runtime/mod.rs"]
mod runtime;
#[path = "../support/tools.rs"]
mod tools;

mod changed;
mod commands;
mod content;
mod families;
mod folders;
mod installed;
mod killed;
mod loaded;
mod packages;

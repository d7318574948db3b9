//! The main job from outside: `rockpack build` on the example shards, judged by the tools that will handle
//! its packages.

mod changed;
mod commands;
mod content;
mod families;
mod folders;
mod installed;
pub(crate) mod killed;
mod loaded;
mod packages;

//! GPU targets: target IDs, base archs, features.
//!
//! Source: the AMDGPU chapter of LLVM's user guide ("Processors", "Target ID"), and code objects
//! of two compiler generations. This module owns spellings and comparison of targets; it knows
//! nothing of files.

mod features;
mod target;

pub use target::{BaseArch, Target};

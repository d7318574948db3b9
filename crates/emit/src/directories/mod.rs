//! Artifact directories: the values of the middle stages, written out.
//!
//! ```text
//! OUT/blas_lib_generic/     artifact_manifest.txt, host files, lib/.kpack/blas_lib.kpm
//! OUT/blas_lib_gfx1100/     artifact_manifest.txt, lib/.kpack/blas_lib_gfx1100.kpack, databases
//! ```
//!
//! This module assigns files to artifacts, names kernel archives, and stages folders: each is written beside
//! its final name and renamed when it is complete. It is the only writer of artifact directories; `emit`
//! writes packages.
//!
//! The archives of a module (a stage prefix) are in its own `lib/.kpack`, so that a module can be installed
//! alone. Their names stay distinct when all modules are merged: `{component}_{arch}.kpack` if one module has
//! device code, `{component}_{module}_{arch}.kpack` if several do and their names differ, and otherwise the
//! whole stage prefix in place of the module.

mod kernels;
mod means;
mod names;
mod output;
mod places;
mod recombine;
mod split;
mod staging;

pub use means::check_ahead;
pub use output::{OutputArtifact, WrittenArtifact};
pub use recombine::{RecombineOptions, RecombineReport, recombine};
pub use split::{SplitInput, SplitOptions, SplitReport, split};

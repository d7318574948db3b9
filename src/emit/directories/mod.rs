//! Artifact directories: the values of the middle stages, written out.
//!
//! ```text
//! OUT/blas_lib_generic/     artifact_manifest.txt, host files, lib/.kpack/blas_lib.kpm
//! OUT/blas_lib_gfx1100/     artifact_manifest.txt, lib/.kpack/blas_lib_gfx1100.kpack, databases
//! ```
//!
//! Owns which artifact a file goes to, what kernel archives are called, and how folders appear:
//! each is written beside its final name and renamed when it is whole. This is the only writer of
//! artifact directories; packages are `emit`'s.
//!
//! The archives of a module (a stage prefix) lie in its own `lib/.kpack`, so that a module can be
//! installed alone, and have names that differ when all modules are laid over one another:
//! `{component}_{arch}.kpack` where one module has device code, `{component}_{module}_{arch}.kpack`
//! where several have names of their own, and otherwise the whole stage prefix in place of the module.

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

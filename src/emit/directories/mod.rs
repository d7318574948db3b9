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
mod output;
mod places;
mod recombine;
mod split;
mod staging;

pub use output::{OutputArtifact, WrittenArtifact};
pub use recombine::{RecombineOptions, RecombineReport, recombine};
pub use split::{SplitInput, SplitOptions, SplitReport, split};

use std::path::{Path, PathBuf};

use rockpack_base::error::{Faults, Result};
use rockpack_base::run::Budget;

use crate::files::Swap;
use crate::input::artifact;
use crate::report::Progress;

/// The zstd level of kernel archives in artifact directories. These are read once more, by the
/// step that makes packages and compresses anew, so speed counts: measured on Debian's librocblas
/// (435 MB of code objects, one core), level 1 takes 0.6 s for 159 MB, level 3 0.85 s for 149 MB.
const LEVEL: i32 = 1;

/// Refuses an output folder for what is made of `roots`, whatever these hold; changes nothing.
pub fn check_ahead(roots: &[PathBuf], out: &Path) -> Result<()> {
    let mut faults = Faults::default();
    faults.keep(artifact::refuse_inside(roots, out, "output folder"));
    faults.keep(Swap::check_ahead(&staging::ARTIFACTS, out, || Ok(())));
    faults.finish()
}

/// What the artifacts of a component are made with.
#[derive(Clone, Copy)]
struct Means<'a> {
    staging: &'a staging::ArtifactStaging,
    /// What compressed code objects are drawn from, of all archives that are written together; what
    /// it has no room for goes to anonymous temporary files.
    budget: &'a Budget,
    progress: &'a dyn Progress,
}

/// The folder of kernel archives, relative to a stage prefix: where ROCm's Python tool puts them, so
/// what the configuration says of packages does not hold here.
const KERNEL_FOLDER: &str = "lib/.kpack";

/// What kernel manifests call the folder above the last one of [`KERNEL_FOLDER`].
const KERNEL_PREFIX: &str = "lib";

/// The GPU family in names of artifacts with host files.
const GENERIC: &str = "generic";

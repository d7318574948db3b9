//! What artifact directories are made with, and where they may be made.

use std::path::{Path, PathBuf};

use rockpack_base::error::{Faults, Result};
use rockpack_base::run::Budget;

use super::staging;
use crate::files::Swap;
use crate::input::artifact;
use crate::report::Progress;

/// Refuses an output folder for what is made of `roots`, whatever these hold; changes nothing.
pub fn check_ahead(roots: &[PathBuf], out: &Path) -> Result<()> {
    let mut faults = Faults::default();
    faults.keep(artifact::refuse_inside(roots, out, "output folder"));
    faults.keep(Swap::check_ahead(&staging::ARTIFACTS, out, || Ok(())));
    faults.finish()
}

/// What the artifacts of a component are made with.
#[derive(Clone, Copy)]
pub(super) struct Means<'a> {
    pub(super) staging: &'a staging::ArtifactStaging,
    /// What compressed code objects are drawn from, of all archives that are written together; what
    /// it has no room for goes to anonymous temporary files.
    pub(super) budget: &'a Budget,
    pub(super) progress: &'a dyn Progress,
}

//! The shared means of writing artifact directories, and the check of their output folder.

use std::path::{Path, PathBuf};

use rockpack_core::error::{Faults, Result};
use rockpack_core::run::Budget;

use super::staging;
use rockpack_files::Swap;
use rockpack_report::Progress;
use rockpack_split::input::artifact;

/// Refuses an output folder for the results of `roots`, independent of their content; changes nothing.
pub fn check_ahead(roots: &[PathBuf], out: &Path) -> Result<()> {
    let mut faults = Faults::default();
    faults.keep(artifact::refuse_inside(roots, out, "output folder"));
    faults.keep(Swap::check_ahead(&staging::ARTIFACTS, out, || Ok(())));
    faults.finish()
}

/// The shared means of writing the artifacts of a component.
#[derive(Clone, Copy)]
pub(super) struct Means<'a> {
    pub(super) staging: &'a staging::ArtifactStaging,
    /// Memory for compressed code objects of all archives that are written together; the rest goes to
    /// anonymous temporary files.
    pub(super) budget: &'a Budget,
    pub(super) progress: &'a dyn Progress,
}

//! The means of a scan.

use std::path::{Path, PathBuf};

use rockpack_core::run::Budget;

/// The options of a scan.
#[derive(Debug, Clone)]
pub struct ScanOptions {
    /// An existing folder. An anonymous temporary file on its file system keeps the content of packed
    /// artifacts while the scan lives. It takes somewhat more bytes than the archives.
    pub spool_dir: PathBuf,
    /// The budget for reading the artifacts and for keeping their lists of files.
    pub budget: Budget,
}

impl ScanOptions {
    /// Keeps the content of packed artifacts in the system's folder for temporary files.
    pub fn within(budget: &Budget) -> Self {
        Self { spool_dir: std::env::temp_dir(), budget: budget.clone() }
    }

    /// Keeps the content of packed artifacts on the file system of the output folder `out`, which need not
    /// exist yet.
    pub fn beside(out: &Path, budget: &Budget) -> Self {
        let existing = out.ancestors().find(|path| path.is_dir());
        // A relative path without a folder is below the current one.
        let spool_dir = existing.unwrap_or(Path::new(".")).to_path_buf();
        Self { spool_dir, budget: budget.clone() }
    }
}

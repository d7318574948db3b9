//! What a scan may use.

use std::path::{Path, PathBuf};

use rockpack_base::run::Budget;

/// How to scan.
#[derive(Debug, Clone)]
pub struct ScanOptions {
    /// An existing folder. On its file system, in a file without a name, what packed artifacts
    /// hold is kept while the scan lives: in somewhat more bytes than the archives have.
    pub spool_dir: PathBuf,
    /// What reading the artifacts, and remembering what they hold, is drawn from.
    pub budget: Budget,
}

impl ScanOptions {
    /// Keeps the content of packed artifacts in the system's folder for temporary files.
    pub fn within(budget: &Budget) -> Self {
        Self { spool_dir: std::env::temp_dir(), budget: budget.clone() }
    }

    /// Keeps the content of packed artifacts where the output folder `out` is, or will be.
    pub fn beside(out: &Path, budget: &Budget) -> Self {
        let existing = out.ancestors().find(|path| path.is_dir());
        // A relative path without a folder of its own is below the current one.
        let spool_dir = existing.unwrap_or(Path::new(".")).to_path_buf();
        Self { spool_dir, budget: budget.clone() }
    }
}

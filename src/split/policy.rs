//! What is refused, and what is passed on with a finding.

use rockpack_base::tree::{ArtifactName, TreePath};

use crate::input::database::DatabaseRules;

/// How artifacts are taken apart.
pub struct SplitPolicy<'a> {
    /// Which files are kernel databases.
    pub rules: &'a DatabaseRules,
    /// Whether fat binaries of an artifact that cannot be transformed stay as they are, with a
    /// finding; they are refused otherwise.
    pub keeps_fat: &'a (dyn Fn(&ArtifactName) -> bool + Sync),
    /// Whether the file at a path is packed as data although it is for another machine than x86-64;
    /// such a file is refused otherwise.
    pub allows_other_machine: &'a (dyn Fn(&TreePath) -> bool + Sync),
}

impl<'a> SplitPolicy<'a> {
    /// Refuses what cannot be transformed, and what is for another machine.
    pub fn strict(rules: &'a DatabaseRules) -> Self {
        Self { rules, keeps_fat: &|_| false, allows_other_machine: &|_| false }
    }

    /// Refuses neither: whoever looks into artifacts is told of both by findings.
    pub fn lenient(rules: &'a DatabaseRules) -> Self {
        Self { rules, keeps_fat: &|_| true, allows_other_machine: &|_| true }
    }
}

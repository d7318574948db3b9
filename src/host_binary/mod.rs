//! Fat host binaries: what is in them, and how they become host-only.

use crate::content::Content;

/// A fat binary that can be transformed; made by `examine`, which makes every refusal.
#[derive(Debug)]
pub struct Analysis {
    /// The original.
    pub original: Content,
}

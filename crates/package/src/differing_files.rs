//! Finds files that differ between two `.rpm` packages with the same path. rpm installs both if the files are
//! identical.

use std::collections::{BTreeSet, HashMap};

use rockpack_archive::path_digests::path_digest;
use rockpack_archive::rpm::{Front, differing_paths};
use rockpack_core::content::Content;
use rockpack_core::error::Result;

/// Packages of a repository by position, with the paths at which each pair differs.
pub struct DifferingFiles<F> {
    open: F,
    /// The path numbers by pair; `None` if a package cannot be read.
    pairs: HashMap<(usize, usize), Option<BTreeSet<u64>>>,
}

impl<F: Fn(usize) -> Option<Content>> DifferingFiles<F> {
    /// Reads packages with `open`, each pair once.
    pub fn new(open: F) -> Self {
        Self { open, pairs: HashMap::new() }
    }

    /// Whether the files of two packages differ at the path of this number. They count as different if a
    /// package cannot be read.
    pub fn differ(&mut self, (one, other): (usize, usize), path: u64) -> bool {
        let Self { open, pairs } = self;
        let paths = pairs.entry((one, other)).or_insert_with(|| {
            let (one, other) = (open(one)?, open(other)?);
            differing(&one, &other).ok()
        });
        paths.as_ref().is_none_or(|paths| paths.contains(&path))
    }
}

fn differing(one: &Content, other: &Content) -> Result<BTreeSet<u64>> {
    let paths = differing_paths(&Front::read(one)?, &Front::read(other)?)?;
    Ok(paths.iter().map(|path| path_digest(path)).collect())
}

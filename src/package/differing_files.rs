//! Files at one path of two `.rpm` packages, which rpm installs together where they are the same.

use std::collections::{BTreeSet, HashMap};

use rockpack_base::content::Content;
use rockpack_base::error::Result;
use rockpack_base::formats::path_digests::path_digest;
use rockpack_base::formats::rpm::{Front, differing_paths};

/// Packages of a repository by their positions, with the paths at which two of them differ.
pub struct DifferingFiles<F> {
    open: F,
    /// The numbers of the paths by pair; none where a package cannot be read.
    pairs: HashMap<(usize, usize), Option<BTreeSet<u64>>>,
}

impl<F: Fn(usize) -> Option<Content>> DifferingFiles<F> {
    /// Reads packages by `open`, each pair once.
    pub fn new(open: F) -> Self {
        Self { open, pairs: HashMap::new() }
    }

    /// Whether the files of two packages differ at the path of this number. Of a package that cannot be
    /// read, they do.
    pub fn differ(&mut self, (one, other): (usize, usize), path: u64) -> bool {
        let Self { open, pairs } = self;
        let of_pair = || {
            let (one, other) = (open(one)?, open(other)?);
            differing(&one, &other).ok()
        };
        let paths = pairs.entry((one, other)).or_insert_with(of_pair);
        paths.as_ref().is_none_or(|paths| paths.contains(&path))
    }
}

fn differing(one: &Content, other: &Content) -> Result<BTreeSet<u64>> {
    let paths = differing_paths(&Front::read(one)?, &Front::read(other)?)?;
    Ok(paths.iter().map(|path| path_digest(path)).collect())
}

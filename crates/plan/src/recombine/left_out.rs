//! Device code that is in no package: counted, named and recorded by digest.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use rockpack_core::content::{Content, Sha256Digest};
use rockpack_core::error::Result;
use rockpack_elf::code_object::is_code_object;

use rockpack_report::LeftOutFile;
use rockpack_split::loose_code;

/// A code object or database file that is left out.
#[derive(Debug, Clone)]
pub struct LeftOut {
    /// The file with it: `<component>/<path>`.
    pub place: String,
    /// The bytes.
    pub content: Content,
}

/// All device code that is left out for one reason.
#[derive(Debug, Default)]
pub struct AllLeftOut(Vec<LeftOut>);

/// The amount and the places of device code that is left out.
pub struct CountedLeftOut {
    /// The number of code objects and database files.
    pub count: usize,
    /// The number of distinct ones.
    pub different: usize,
    /// The files that had them.
    pub places: Vec<LeftOutFile>,
    /// The SHA-256 of each in hex, and of the code objects in those that are bundles.
    pub code_objects: BTreeSet<Sha256Digest>,
}

impl AllLeftOut {
    /// Adds one code object or file.
    pub fn add(&mut self, left: LeftOut) {
        self.0.push(left);
    }

    /// Sums up everything, for the finding that accounts for it.
    pub fn counted(&self) -> Result<CountedLeftOut> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for left in &self.0 {
            *counts.entry(left.place.as_str()).or_default() += 1;
        }
        let places =
            counts.into_iter().map(|(file, count)| LeftOutFile { file: file.to_owned(), count });
        let digests: BTreeSet<Sha256Digest> =
            self.0.par_iter().map(|left| left.content.digest()).collect::<Result<_>>()?;
        let inside: Vec<BTreeSet<Sha256Digest>> =
            self.0.par_iter().map(code_objects).collect::<Result<_>>()?;
        Ok(CountedLeftOut {
            count: self.0.len(),
            different: digests.len(),
            places: places.collect(),
            code_objects: inside.into_iter().flatten().chain(digests).collect(),
        })
    }
}

/// The code objects in a file with several, which may be looked up one by one.
fn code_objects(left: &LeftOut) -> Result<BTreeSet<Sha256Digest>> {
    if is_code_object(&left.content)? {
        return Ok(BTreeSet::new());
    }
    let found = loose_code(&left.content, None)?;
    found.into_iter().map(|code| code.digest(&left.content)).collect()
}

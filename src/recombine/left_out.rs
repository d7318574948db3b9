//! Device code that is in no package, counted, named and accounted for by digest.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use crate::content::Content;
use crate::error::Result;
use crate::formats::code_object::is_code_object;
use crate::report::{Code, Finding};
use crate::split::loose_code;

/// How many places a finding names.
const NAMED_PLACES: usize = 5;

/// A code object or database file that is left out.
#[derive(Debug, Clone)]
pub struct LeftOut {
    /// The file that holds it: `<component>/<path>`.
    pub place: String,
    /// Its bytes.
    pub content: Content,
}

/// What is left out for one reason.
#[derive(Debug, Default)]
pub struct AllLeftOut(Vec<LeftOut>);

impl AllLeftOut {
    /// Adds one.
    pub fn add(&mut self, left: LeftOut) {
        self.0.push(left);
    }

    /// How much it is, `different` of it, why it is left out, and where it was.
    fn described(&self, different: usize, why: &str) -> String {
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        for left in &self.0 {
            *places.entry(left.place.as_str()).or_default() += 1;
        }
        let places: Vec<String> = places.iter().map(|(place, n)| format!("{place}: {n}")).collect();
        format!(
            "{} code objects or database files ({different} different) are in no package, because \
             {why} ({})",
            self.0.len(),
            shortened(&places)
        )
    }

    /// A finding about `subject` that accounts for all of it.
    pub fn finding(&self, code: Code, subject: impl Into<String>, why: &str) -> Result<Finding> {
        let digests = self.digests()?;
        let mut finding = Finding::new(code, subject, self.described(digests.len(), why));
        let inside: Vec<BTreeSet<String>> =
            self.0.par_iter().map(code_objects).collect::<Result<_>>()?;
        let all: BTreeSet<String> = inside.into_iter().flatten().chain(digests).collect();
        finding.code_objects = all.into_iter().collect();
        Ok(finding)
    }

    fn digests(&self) -> Result<BTreeSet<String>> {
        self.0.par_iter().map(|left| left.content.sha256_hex()).collect()
    }
}

/// The code objects in a file of several, which may be asked for one by one.
fn code_objects(left: &LeftOut) -> Result<BTreeSet<String>> {
    if is_code_object(&left.content)? {
        return Ok(BTreeSet::new());
    }
    let found = loose_code(&left.content, None)?;
    found.into_iter().map(|code| code.digest(&left.content)).collect()
}

fn shortened(places: &[String]) -> String {
    let named = places.iter().take(NAMED_PLACES).cloned().collect::<Vec<_>>();
    match places.len() > NAMED_PLACES {
        true => format!("{} and {} more", named.join(", "), places.len() - NAMED_PLACES),
        false => named.join(", "),
    }
}

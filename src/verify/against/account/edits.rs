//! Ranges of a file that others take the place of.

use std::collections::BTreeMap;
use std::ops::Range;

use rockpack_base::content::Content;
use rockpack_base::error::{Error, Result};

/// Disjoint changes of a file, by its own offsets.
#[derive(Debug, Default, Clone)]
pub(in crate::verify) struct Edits(BTreeMap<u64, (u64, Content)>);

impl Edits {
    /// Replaces `range` by `with`. Fails if another change concerns the same bytes.
    pub(in crate::verify) fn put(&mut self, range: Range<u64>, with: Content) -> Result<()> {
        let before = self.0.range(..range.end.max(range.start.saturating_add(1))).next_back();
        let meets =
            before.is_some_and(|(start, (end, _))| *end > range.start || *start == range.start);
        if meets || range.end < range.start {
            return Err(Error::malformed("two changes concern the same bytes"));
        }
        self.0.insert(range.start, (range.end, with));
        Ok(())
    }

    /// Has `bytes` stand from `at` on.
    pub(in crate::verify) fn write(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        self.put(at..at.saturating_add(bytes.len() as u64), Content::of_bytes(bytes))
    }

    /// `content` with all changes.
    pub(in crate::verify) fn apply(&self, content: &Content) -> Result<Content> {
        let (mut parts, mut done) = (Vec::with_capacity(self.0.len() * 2 + 1), 0);
        for (start, (end, with)) in &self.0 {
            parts.push(content.slice(done..*start)?);
            parts.push(with.clone());
            done = *end;
        }
        parts.push(content.slice(done..content.len())?);
        Ok(Content::concat(&parts))
    }
}

//! Replaces ranges of a content by others, all given in offsets of the original.

use std::collections::BTreeMap;
use std::ops::Range;

use rockpack_core::content::Content;
use rockpack_core::error::{Error, Result};

/// Disjoint replacements.
#[derive(Debug, Default)]
pub struct Splices {
    /// End and replacement by start.
    items: BTreeMap<u64, (u64, Content)>,
}

impl Splices {
    /// Replaces `range` by `with`. Overlap with another replacement is a broken invariant: one of the two
    /// would be lost.
    pub fn replace(&mut self, range: Range<u64>, with: Content) -> Result<()> {
        let before = self.items.range(..range.end).next_back();
        if let Some((start, (end, _))) = before.filter(|(_, (end, _))| *end > range.start) {
            let message = format!("edits of {start:#x}..{end:#x} and {range:#x?} overlap");
            return Err(Error::bug(message));
        }
        self.items.insert(range.start, (range.end, with));
        Ok(())
    }

    /// Overwrites the bytes from `offset` on with `bytes`.
    pub fn overwrite(&mut self, offset: u64, bytes: Vec<u8>) -> Result<()> {
        let end = offset.saturating_add(bytes.len() as u64);
        self.replace(offset..end, Content::of_bytes(bytes))
    }

    /// The content with all replacements made.
    pub fn apply(&self, content: &Content) -> Result<Content> {
        let mut parts = Vec::with_capacity(self.items.len() * 2 + 1);
        let mut done = 0;
        for (start, (end, with)) in &self.items {
            parts.push(content.slice(done..*start)?);
            parts.push(with.clone());
            done = *end;
        }
        parts.push(content.slice(done..content.len())?);
        Ok(Content::concat(&parts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(content: &Content) -> String {
        let bytes = content.read_vec(0..content.len(), 100, "test").unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn replacements_are_made_in_the_offsets_of_the_original() {
        let mut splices = Splices::default();
        splices.replace(6..8, Content::default()).unwrap();
        splices.overwrite(0, b"AB".to_vec()).unwrap();
        splices.replace(2..4, Content::of_bytes(*b"cdcd")).unwrap();
        let content = Content::of_bytes(*b"0123456789");
        assert_eq!(text(&splices.apply(&content).unwrap()), "ABcdcd4589");
    }

    #[test]
    fn overlapping_replacements_are_refused() {
        let mut splices = Splices::default();
        splices.overwrite(4, b"xx".to_vec()).unwrap();
        assert!(splices.overwrite(5, b"y".to_vec()).is_err());
        assert!(splices.overwrite(3, b"yy".to_vec()).is_err());
        assert!(splices.overwrite(6, b"y".to_vec()).is_ok());
    }
}

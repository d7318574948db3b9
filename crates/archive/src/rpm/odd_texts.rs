//! Odd texts of a header: those that are not UTF-8. The `rpm` crate reads them with U+FFFD in place of
//! invalid bytes.

use std::collections::BTreeMap;

use rpm::IndexTag as Tag;

/// The tags with names of files and targets of links.
pub(super) const FILE_NAMES: [Tag; 3] =
    [Tag::RPMTAG_BASENAMES, Tag::RPMTAG_DIRNAMES, Tag::RPMTAG_FILELINKTOS];

/// Texts whose encoding matters, with their names in messages, their tags, and the number of strings that
/// count: one language, the latest changes, or whole lists.
const TEXTS: [(&str, &[Tag], usize); 20] = [
    ("name", &[Tag::RPMTAG_NAME], 1),
    ("version", &[Tag::RPMTAG_VERSION], 1),
    ("release", &[Tag::RPMTAG_RELEASE], 1),
    ("arch", &[Tag::RPMTAG_ARCH], 1),
    ("summary", &[Tag::RPMTAG_SUMMARY], 1),
    ("description", &[Tag::RPMTAG_DESCRIPTION], 1),
    ("packager", &[Tag::RPMTAG_PACKAGER], 1),
    ("url", &[Tag::RPMTAG_URL], 1),
    ("license", &[Tag::RPMTAG_LICENSE], 1),
    ("vendor", &[Tag::RPMTAG_VENDOR], 1),
    ("group", &[Tag::RPMTAG_GROUP], 1),
    ("build host", &[Tag::RPMTAG_BUILDHOST], 1),
    ("source rpm", &[Tag::RPMTAG_SOURCERPM], 1),
    ("file names", &FILE_NAMES, usize::MAX),
    ("change log", &[Tag::RPMTAG_CHANGELOGNAME, Tag::RPMTAG_CHANGELOGTEXT], CHANGES),
    ("provides", &[Tag::RPMTAG_PROVIDENAME, Tag::RPMTAG_PROVIDEVERSION], usize::MAX),
    ("requires", &[Tag::RPMTAG_REQUIRENAME, Tag::RPMTAG_REQUIREVERSION], usize::MAX),
    ("conflicts", &[Tag::RPMTAG_CONFLICTNAME, Tag::RPMTAG_CONFLICTVERSION], usize::MAX),
    ("obsoletes", &[Tag::RPMTAG_OBSOLETENAME, Tag::RPMTAG_OBSOLETEVERSION], usize::MAX),
    ("weak dependencies", &WEAK, usize::MAX),
];

const WEAK: [Tag; 8] = [
    Tag::RPMTAG_RECOMMENDNAME,
    Tag::RPMTAG_RECOMMENDVERSION,
    Tag::RPMTAG_SUGGESTNAME,
    Tag::RPMTAG_SUGGESTVERSION,
    Tag::RPMTAG_SUPPLEMENTNAME,
    Tag::RPMTAG_SUPPLEMENTVERSION,
    Tag::RPMTAG_ENHANCENAME,
    Tag::RPMTAG_ENHANCEVERSION,
];

/// Number of changelog entries in an index.
const CHANGES: usize = 10;

/// Tags with a string that is not UTF-8, each with the position of the first such string.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct OddTexts(pub BTreeMap<u32, usize>);

impl OddTexts {
    /// Checks the first `count` strings of a tag, which lie in `bytes` with a NUL behind each.
    pub fn look(&mut self, tag: u32, bytes: &[u8], count: usize) {
        let mut strings = bytes.split(|byte| *byte == 0).take(count);
        let odd = strings.position(|string| std::str::from_utf8(string).is_err());
        self.0.extend(odd.map(|odd| (tag, odd)));
    }

    /// Whether any string is odd.
    pub fn is_any(&self) -> bool {
        !self.0.is_empty()
    }

    /// Whether any string of the tags is odd.
    pub fn has(&self, tags: &[Tag]) -> bool {
        tags.iter().any(|tag| self.0.contains_key(&(*tag as u32)))
    }

    /// Names of the fields with an odd string that counts.
    pub fn named(&self) -> impl Iterator<Item = &'static str> {
        let odd = TEXTS
            .iter()
            .filter(move |(_, tags, most)| tags.iter().any(|tag| self.is_odd(*tag, *most)));
        odd.map(|(name, _, _)| *name)
    }

    fn is_odd(&self, tag: Tag, most: usize) -> bool {
        self.0.get(&(tag as u32)).is_some_and(|first| *first < most)
    }
}

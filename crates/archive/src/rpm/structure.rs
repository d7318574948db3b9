//! The structure of a header, checked as rpm 4.18 and 6.1 check it before they read a tag.
//!
//! ```text
//! magic   8e ad e8 01 00 00 00 00, u32 entries, u32 bytes of data
//! entry   u32 tag, u32 type, u32 offset in the data, u32 count
//! type    1 char, 2 to 5 integers of 8 to 64 bits, 6 string, 7 binary, 8 strings, 9 strings by language
//! data    the values in the order of the entries, aligned by their types
//! region  the first entry, 62 in a signature and 63 in a header: its 16 bytes end the data of its entries,
//!         and repeat it with the negated size of these entries as offset
//! ```
//!
//! Source: trials of every tag and type, and of every bit of a header. What one of the two refuses is refused,
//! and a tag twice: the `rpm` crate reads the first, and rpm the last. Old headers have no region; rpm does not
//! check their types.

use std::collections::{BTreeMap, HashSet};
use std::ffi::CStr;
use std::ops::Range;

use rpm::IndexTag as Tag;

use super::HEADER_MAGIC;
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result};

pub(super) const SIGNATURE: u32 = 62;
pub(super) const HEADER: u32 = 63;

/// The size in bytes from which on rpm refuses a header.
pub(super) const HEADER_SIZE: u64 = 256 << 20;

/// The number of values from which on rpm refuses a tag that is not binary.
pub(super) const VALUES: u32 = 1 << 20;

/// The numbers of tags but regions; rpm 4 reads larger ones as negative.
const TAGS: Range<u32> = 100..1 << 31;

/// Bytes of a value of each type, from type 1 on; 1 for strings.
const WIDTHS: [usize; 9] = [1, 1, 2, 4, 8, 1, 1, 1, 1];

/// Type and count of a region.
const REGION: [u32; 2] = [7, 16];

/// Types, and ranges of tags that have one of them: start and end of each. The first row with a tag counts.
type TagTypes = (&'static [u32], &'static [u32]);

const SIGNATURE_TAGS: [TagTypes; 5] = [
    (&[4], &[275, 276, 277, 278, 1000, 1001, 1007, 1008]),
    (&[5], &[270, 272]),
    (&[6], &[269, 270, 273, 274, 279, 280]),
    (&[7], &[267, 269, 1002, 1003, 1004, 1006]),
    (&[8], &[274, 275, 276, 277, 278, 279]),
];

/// Signatures that rpm 4 reads, one OpenPGP packet each: of the header (DSA, RSA), and with payload (PGP, GPG).
pub(crate) const SIGNATURES: [u32; 4] = [267, 268, 1002, 1005];

/// Tags of a header, beginning with the ones that rpm copies into it from the signature.
const HEADER_TAGS: [TagTypes; 9] = [
    (&[], &[257, 258, 259, 260, 261, 263, 267, 272, 273, 274, 276, 280]),
    (&[6], &[5121, 5125]),
    (&[8], &[5092, 5093]),
    (&[1], &[1029, 1030]),
    (&[3], &[1030, 1031, 1033, 1034]),
    (&[4], NUMBERS),
    (&[5], &[5008, 5010, 5112, 5114]),
    (&[7], &[1012, 1014, 1043, 1044, 1146, 1147]),
    (&[6, 8, 9], TEXTS),
];

const NUMBERS: &[u32] = &[
    1003, 1004, 1006, 1007, 1008, 1010, 1028, 1029, 1034, 1035, 1037, 1038, 1045, 1047, 1048, 1049,
    1051, 1054, 1068, 1070, 1080, 1081, 1095, 1097, 1106, 1107, 1112, 1113, 1114, 1115, 1116, 1117,
    1119, 1120, 1127, 1130, 1134, 1135, 1140, 1142, 1143, 1146, 1158, 1159, 1161, 1162, 1195, 1196,
    5011, 5012, 5017, 5028, 5032, 5034, 5037, 5038, 5045, 5046, 5048, 5049, 5051, 5052, 5054, 5055,
    5057, 5058, 5068, 5069, 5070, 5071, 5072, 5073, 5078, 5079, 5080, 5081, 5082, 5083, 5084, 5086,
    5091, 5092, 5093, 5094, 5107, 5109, 5114, 5116, 5119, 5120,
];

const TEXTS: &[u32] = &[
    100, 101, 266, 267, 1000, 1003, 1004, 1006, 1007, 1008, 1010, 1012, 1014, 1017, 1018, 1028,
    1035, 1037, 1039, 1041, 1044, 1045, 1047, 1048, 1049, 1051, 1054, 1056, 1059, 1063, 1064, 1068,
    1079, 1080, 1081, 1083, 1085, 1093, 1094, 1095, 1097, 1100, 1113, 1114, 1115, 1116, 1117, 1119,
    1120, 1127, 1132, 1134, 1135, 1136, 1142, 1143, 1147, 1158, 1159, 1161, 1196, 1197, 5000, 5003,
    5005, 5008, 5010, 5011, 5012, 5017, 5030, 5032, 5034, 5037, 5040, 5045, 5046, 5048, 5049, 5051,
    5052, 5054, 5055, 5057, 5058, 5063, 5066, 5068, 5069, 5070, 5071, 5072, 5076, 5078, 5079, 5080,
    5081, 5082, 5086, 5091, 5096, 5102, 5103, 5107, 5109, 5110, 5116, 5119, 5120, 5121,
];

/// Tags that have a value for each base name (1117), or are not there.
const FILE_TAGS: [u32; 9] = [1028, 1033, 1034, 1039, 1040, 1096, 1140, 5008, 5010];

/// Checks the header at `start`. Returns its end, and its texts that are not UTF-8.
pub(super) fn check(package: &Content, start: u64, region: u32) -> Result<(u64, NonUtf8Texts)> {
    unplaced(package, start, region)
        .map_err(|e| e.structure("rpm header").at(&package.place(start)))
}

fn unplaced(package: &Content, start: u64, region: u32) -> Result<(u64, NonUtf8Texts)> {
    let intro: [u8; 16] = package.read_array(start)?;
    if !intro.starts_with(&HEADER_MAGIC) {
        return Err(refusal("has no header magic"));
    }
    let [_, _, count, size] = words(&intro).map(u64::from);
    let (count_max, size_max) =
        if region == SIGNATURE { (32, 64 << 20) } else { (0xffff, HEADER_SIZE) };
    if count > count_max || size > size_max || 8 + 16 * count + size >= HEADER_SIZE {
        let message = format!("{count} entries and {size} bytes of data exceed rpm's limits");
        return Err(Error::new(Kind::Limit, message));
    }
    let index = start + 16..start + 16 + count * 16;
    let data = index.end..index.end + size;
    let index = package.read_vec(index, count_max * 16, "rpm header index")?;
    let bytes = package.read_vec(data.clone(), size_max, "rpm header data")?;
    let rows: Vec<[u32; 4]> = index.chunks_exact(16).map(words).collect();
    Ok((data.end, check_rows(&rows, &bytes, region)?))
}

fn check_rows(rows: &[[u32; 4]], data: &[u8], region: u32) -> Result<NonUtf8Texts> {
    let trailer = trailer(rows, data, region)?;
    let (mut tags, mut non_utf8) = (HashSet::new(), NonUtf8Texts::default());
    // The end of the last value, and the bytes of all, aligned.
    let (mut used, mut packed) = (0, 0_usize);
    for row in rows.iter().skip(usize::from(trailer.is_some())) {
        let [tag, kind, _, count] = *row;
        if !tags.insert(tag) {
            return Err(Error::malformed(format!("tag {tag} appears twice")));
        }
        let width = WIDTHS.get((kind as usize).wrapping_sub(1)).copied();
        let width = width.ok_or_else(|| refusal(&format!("tag {tag} has unknown type {kind}")))?;
        let value = value(*row, width, data)?;
        let is_packet = matches!(data.get(value.start), Some(0x88..=0x8b | 0xc2));
        let is_signed = region == SIGNATURE && SIGNATURES.contains(&tag);
        if !accepts_tag(*row, region, trailer.is_some()) || is_signed && !is_packet {
            let value = format!("type {kind} with count {count}");
            return Err(refusal(&format!("rpm does not take the value of tag {tag}, {value}")));
        }
        let is_in = |trailer: &Range<usize>| value.start < trailer.end && trailer.start < value.end;
        if value.start < used || trailer.as_ref().is_some_and(is_in) {
            return Err(refusal(&format!("tag {tag} shares bytes of the data with other tags")));
        }
        used = value.end;
        packed = packed.next_multiple_of(width) + value.len();
        if matches!(kind, 6 | 8 | 9) {
            non_utf8.record(tag, &data[value], usize::try_from(count).unwrap_or(usize::MAX));
        }
    }
    let count = |tag: u32| rows.iter().find(|row| row[0] == tag).map(|row| row[3]);
    if let Some(files) = count(1117)
        && let Some(tag) = FILE_TAGS.iter().find(|tag| count(**tag).is_some_and(|it| it != files))
    {
        return Err(refusal(&format!("tag {tag} has another number of values than files")));
    }
    if packed + trailer.map_or(0, |trailer| trailer.len()) != data.len() {
        return Err(refusal("has data of no tag"));
    }
    Ok(non_utf8)
}

/// The place of the region's bytes; `None` if there is no region. Only a signature may have further tags.
fn trailer(rows: &[[u32; 4]], data: &[u8], region: u32) -> Result<Option<Range<usize>>> {
    let [tag, kind, offset, count] = *rows.first().ok_or_else(|| refusal("has no tags"))?;
    if tag != region {
        return Ok(None);
    }
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let bytes = data.get(start..).and_then(|rest| rest.get(..16)).unwrap_or_default();
    let [last_tag, last_kind, negated, last_count] = words(bytes);
    let size = negated.wrapping_neg();
    let inside = usize::try_from(size / 16).unwrap_or(usize::MAX);
    let has_end = if region == SIGNATURE {
        // Old signatures have the number of another region there.
        [61, tag].contains(&last_tag) && (1..=rows.len()).contains(&inside)
    } else {
        last_tag == tag && inside == rows.len() && start + 16 == data.len()
    };
    if !has_end || [[kind, count], [last_kind, last_count]] != [REGION; 2] || size % 16 != 0 {
        return Err(refusal(&format!("the region, tag {tag}, is not one of all tags")));
    }
    Ok(Some(start..start + 16))
}

/// Whether rpm takes the number, type and count of a tag.
fn accepts_tag([tag, kind, _, count]: [u32; 4], region: u32, has_region: bool) -> bool {
    let rows = if region == SIGNATURE { &SIGNATURE_TAGS[..] } else { &HEADER_TAGS };
    let is_of = |(_, tags): &&TagTypes| tags.partition_point(|edge| *edge <= tag) % 2 == 1;
    let is_checked = has_region || region == SIGNATURE;
    let fits = |types: &[u32]| types.contains(&kind) || !is_checked && !types.is_empty();
    let has_type = rows.iter().find(is_of).is_none_or(|(types, _)| fits(types));
    let has_count = match tag {
        1004 if region == SIGNATURE => count == 16,
        270 | 271 | 275 | 277 | 1000 | 1007 if region == SIGNATURE => count == 1,
        5092 | 5097 => count == 1,
        _ => (kind == 7 || count < VALUES) && (kind != 6 || count == 1),
    };
    TAGS.contains(&tag) && has_type && has_count
}

/// The bytes of a tag's value in the data; strings must end inside the data.
fn value([tag, kind, offset, count]: [u32; 4], width: usize, data: &[u8]) -> Result<Range<usize>> {
    let outside = || refusal(&format!("tag {tag} lies outside of the data"));
    let [start, count] = [offset, count].map(|word| usize::try_from(word).unwrap_or(usize::MAX));
    let rest = data.get(start..).filter(|_| start % width == 0).ok_or_else(outside)?;
    let len = if matches!(kind, 6 | 8 | 9) {
        let message = format!("tag {tag} has a string that does not end in the data");
        strings(rest, count).ok_or_else(|| refusal(&message))?
    } else {
        let len = count.checked_mul(width).filter(|len| (1..=rest.len()).contains(len));
        len.ok_or_else(outside)?
    };
    Ok(start..start + len)
}

/// Length in bytes of the first `count` strings, each with its NUL.
fn strings(bytes: &[u8], count: usize) -> Option<usize> {
    let mut len = 0;
    for _ in 0..count {
        len += CStr::from_bytes_until_nul(bytes.get(len..)?).ok()?.count_bytes() + 1;
    }
    (count > 0).then_some(len)
}

fn refusal(message: &str) -> Error {
    Error::malformed(message)
        .hint("rpm rejects such a package, too: get it from its builder, or build it again")
}

fn words(bytes: &[u8]) -> [u32; 4] {
    [0, 4, 8, 12].map(|at| be32(bytes.get(at..).unwrap_or_default()))
}

pub(super) fn be32(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |word, byte| word << 8 | u32::from(*byte))
}

pub(super) const FILE_NAMES: [Tag; 3] =
    [Tag::RPMTAG_BASENAMES, Tag::RPMTAG_DIRNAMES, Tag::RPMTAG_FILELINKTOS];

/// Texts whose encoding matters, with their names in messages, their tags, and the number of strings that
/// count: one language, the latest changes, or whole lists.
const ENCODED_TEXTS: [(&str, &[Tag], usize); 20] = [
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

/// Tags with a string that is not UTF-8, each with the position of the first such string. The `rpm` crate reads them
/// with U+FFFD in place of invalid bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct NonUtf8Texts(BTreeMap<u32, usize>);

impl NonUtf8Texts {
    /// Checks the first `count` strings of a tag, which lie in `bytes` with a NUL after each.
    fn record(&mut self, tag: u32, bytes: &[u8], count: usize) {
        let mut strings = bytes.split(|byte| *byte == 0).take(count);
        let non_utf8 = strings.position(|string| std::str::from_utf8(string).is_err());
        self.0.extend(non_utf8.map(|non_utf8| (tag, non_utf8)));
    }

    pub fn is_any(&self) -> bool {
        !self.0.is_empty()
    }

    pub fn has(&self, tags: &[Tag]) -> bool {
        tags.iter().any(|tag| self.0.contains_key(&(*tag as u32)))
    }

    pub fn field_names(&self) -> impl Iterator<Item = &'static str> {
        let non_utf8 = ENCODED_TEXTS.iter().filter(move |(_, tags, most)| {
            tags.iter().any(|tag| self.0.get(&(*tag as u32)).is_some_and(|first| first < most))
        });
        non_utf8.map(|(name, _, _)| *name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpm::IndexTag;

    /// Reads a header with a region of these rows (tag, type, offset, count) and data.
    fn read(rows: &[[u32; 4]], data: &[u8]) -> Result<(u64, NonUtf8Texts)> {
        let size = u32::try_from(16 * (rows.len() + 1)).unwrap();
        let at = u32::try_from(data.len()).unwrap();
        let rows = [&[[63, 7, at, 16]], rows].concat();
        let trailer = [63, 7, size.wrapping_neg(), 16].map(u32::to_be_bytes).concat();
        raw(&rows, &[data, &trailer].concat(), HEADER)
    }

    fn raw(rows: &[[u32; 4]], data: &[u8], region: u32) -> Result<(u64, NonUtf8Texts)> {
        let lengths = [rows.len(), data.len()].map(|len| u32::try_from(len).unwrap());
        let words = lengths.into_iter().chain(rows.iter().copied().flatten());
        let words: Vec<u8> = words.flat_map(u32::to_be_bytes).collect();
        check(&Content::of_bytes([&HEADER_MAGIC[..], &words, data].concat()), 0, region)
    }

    fn refused(rows: &[[u32; 4]], data: &[u8], part: &str) {
        let error = read(rows, data).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }

    #[test]
    fn a_tag_is_there_once() {
        let rows = [[1003, 4, 0, 1], [1006, 4, 4, 1], [1008, 4, 8, 1], [1003, 4, 12, 1]];
        assert_eq!(read(&rows[..3], &[0; 12]).unwrap().0, 16 + 4 * 16 + 12 + 16);
        refused(&rows, &[0; 16], "tag 1003 appears twice");
    }

    #[test]
    fn bytes_are_those_of_one_tag() {
        for (kind, width) in [(2, 1), (3, 2), (4, 4), (5, 8), (7, 1)] {
            read(&two_rows(kind, 2 * width, 2), &[0; 32][..4 * width as usize]).unwrap();
            let shared = &[0; 32][..3 * width as usize];
            refused(&two_rows(kind, width, 2), shared, "tag 60002 shares bytes");
        }
        for kind in [8, 9] {
            read(&two_rows(kind, 4, 3), b"a\0b\0\0\0c\0").unwrap();
            refused(&two_rows(kind, 2, 3), b"a\0b\0\0\0", "tag 60002 shares bytes");
        }
        read(&[[60_001, 6, 0, 1], [60_002, 6, 3, 1]], b"ab\0\0").unwrap();
        refused(&[[60_001, 6, 0, 1], [60_002, 6, 1, 1]], b"ab\0", "tag 60002 shares bytes");
        refused(&[[60_001, 7, 0, 1]], b"ab", "data of no tag");
        refused(&[[60_001, 7, 0, 3]], b"ab", "tag 60001 shares bytes");
    }

    /// Rows of two tags of one type, the second at `at` with `count` values.
    fn two_rows(kind: u32, at: u32, count: u32) -> [[u32; 4]; 2] {
        [[60_001, kind, 0, 2], [60_002, kind, at, count]]
    }

    #[test]
    fn texts_that_are_not_utf8_are_noticed() {
        let summary = IndexTag::RPMTAG_SUMMARY as u32;
        assert_eq!(odd_fields(&[[summary, 9, 0, 2]], b"a\xe4\0b\0"), ["summary"]);
        // Texts of another language do not count, nor does U+FFFD that another tool wrote.
        assert!(odd_fields(&[[summary, 9, 0, 2]], b"\xef\xbf\xbd\0b\xe4\0").is_empty());
        let changes = IndexTag::RPMTAG_CHANGELOGTEXT as u32;
        assert_eq!(odd_fields(&[[changes, 8, 0, 13]], &texts_odd_at(9)), ["change log"]);
        assert!(odd_fields(&[[changes, 8, 0, 14]], &texts_odd_at(10)).is_empty());
        let bases = IndexTag::RPMTAG_BASENAMES as u32;
        assert_eq!(odd_fields(&[[bases, 8, 0, 14]], &texts_odd_at(10)), ["file names"]);
        assert!(odd_fields(&[[60_000, 7, 0, 2]], b"\xff\xff").is_empty());
    }

    fn odd_fields(rows: &[[u32; 4]], data: &[u8]) -> Vec<&'static str> {
        read(rows, data).unwrap().1.field_names().collect()
    }

    fn texts_odd_at(at: usize) -> Vec<u8> {
        [b"x\0".repeat(at), b"\xff\0".to_vec(), b"x\0".repeat(3)].concat()
    }

    #[test]
    fn tags_lie_in_the_data() {
        refused(&[[60_000, 4, 20, 1]], &[0; 4], "tag 60000 lies outside");
        refused(&[[60_000, 4, 4, 5]], &[0; 4], "tag 60000 lies outside");
        refused(&[[60_000, 5, 0, u32::MAX]], &[0; 8], "tag 60000 lies outside");
        refused(&[[60_000, 4, 1, 1]], &[0; 8], "tag 60000 lies outside");
        refused(&[[60_000, 4, 0, 0]], &[0; 8], "tag 60000 lies outside");
        refused(&[[60_000, 8, 0, 20]], b"ab\0c", "tag 60000 has a string that does not end");
    }

    #[test]
    fn tags_are_of_the_types_that_rpm_knows() {
        for [tag, kind, count] in [[1000, 7, 1], [1029, 7, 1], [5092, 6, 1], [5121, 8, 1]] {
            refused(&[[tag, kind, 0, count]], &[0], "rpm does not take");
        }
        for tag in [99, 1 << 31, 257, 269, 279] {
            refused(&[[tag, 7, 0, 1]], &[0], "rpm does not take");
        }
        // Without a region, rpm checks no types.
        raw(&[[1000, 4, 0, 1]], &[0; 4], HEADER).unwrap();
        for [tag, kind, count, len] in [[1000, 4, 2, 8], [1004, 7, 15, 15], [273, 8, 1, 1]] {
            let data = vec![0; usize::try_from(len).unwrap()];
            let row = [tag, kind, 0, count];
            raw(&[row], &data, SIGNATURE).unwrap_err();
        }
        raw(&[[1004, 7, 0, 16]], &[0; 16], SIGNATURE).unwrap();
    }
}

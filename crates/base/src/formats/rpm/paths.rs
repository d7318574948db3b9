//! The paths that an `.rpm`'s header lists: of each file a base name, and which of the directories it
//! is in. One directory may be that of any number of files, so that the paths take more than what
//! lists them. Whoever puts them together may rely on what is checked here.

use rpm::{Header, IndexTag};

use super::faults::fault;
use crate::error::{Error, Kind, Result};

/// Longest path (Linux's PATH_MAX).
const PATH_MAX: usize = 4096;

/// What the paths may take for each byte of the header: what rpmbuild writes of a link or a folder
/// takes some 58 bytes, of a file with its digest 150, so that paths of 900 bytes are accepted of any
/// number of them.
const PATHS_PER_BYTE: u64 = 16;

/// Refuses paths that are longer than any, or take very much more than the header of `len` bytes.
pub(super) fn check(header: &Header<IndexTag>, len: u64) -> Result<()> {
    if !header.entry_is_present(IndexTag::RPMTAG_BASENAMES) {
        return Ok(());
    }
    let bad = |e: rpm::Error| fault("has bad file tags").cause(e);
    let texts = |tag| header.get_entry_data_as_string_array(tag).map_err(bad);
    let (bases, directories) =
        (texts(IndexTag::RPMTAG_BASENAMES)?, texts(IndexTag::RPMTAG_DIRNAMES)?);
    let indexes = header.get_entry_data_as_u32_array(IndexTag::RPMTAG_DIRINDEXES).map_err(bad)?;
    let mut sum = 0;
    for (base, index) in bases.iter().zip(indexes) {
        let directory = usize::try_from(index).ok().and_then(|index| directories.get(index));
        let path = directory.map_or(0, |directory| directory.len()) + base.len();
        if path > PATH_MAX {
            let message = format!("lists a path of {path} bytes, and the longest has {PATH_MAX}");
            return Err(limit(message));
        }
        sum += path as u64;
    }
    let most = len * PATHS_PER_BYTE;
    if sum > most {
        Err(limit(format!(
            "of {len} bytes lists paths of {sum}, more than {PATHS_PER_BYTE} for each byte"
        )))
    } else {
        Ok(())
    }
}

fn limit(message: String) -> Error {
    let hint = "no package needs such paths: get it from who built it";
    Error::new(Kind::Limit, message).structure("rpm header").hint(hint)
}

#[cfg(test)]
mod tests {
    use rpm::{HeaderEntry, IndexData};

    use super::*;

    /// Whether so many files are accepted in a folder of such a length, in a header of `len` bytes.
    fn listed(count: usize, folder: usize, len: u64) -> Result<()> {
        let tags = [
            (IndexTag::RPMTAG_BASENAMES, IndexData::StringArray(vec!["a".to_owned(); count])),
            (IndexTag::RPMTAG_DIRNAMES, IndexData::StringArray(vec!["d".repeat(folder)])),
            (IndexTag::RPMTAG_DIRINDEXES, IndexData::Int32(vec![0; count])),
        ];
        let tags = tags.into_iter().map(|(tag, data)| HeaderEntry::new(tag.into(), data));
        check(
            &Header::from_entries(tags.collect::<Vec<_>>(), IndexTag::RPMTAG_HEADERIMMUTABLE),
            len,
        )
    }

    #[test]
    fn paths_have_a_longest() {
        listed(1, 4095, 5000).unwrap();
        let error = listed(1, 4096, 5000).unwrap_err();
        assert!(error.to_string().contains("lists a path of 4097 bytes"), "{error}");
    }

    #[test]
    fn paths_take_no_more_than_their_header_allows() {
        listed(400, 399, 10_000).unwrap();
        let error = listed(401, 399, 10_000).unwrap_err();
        assert!(error.to_string().contains("of 10000 bytes lists paths of 160400"), "{error}");
    }
}

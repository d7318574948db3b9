//! The limits on paths in the header of an `.rpm`. It lists for each file a base name and the number of a
//! directory. Any number of files can share one directory, so the joined paths may take far more bytes than
//! the header. Code that joins them may rely on these checks.

use rpm::{Header, IndexTag};

use super::files::{number_array, text_array};
use rockpack_core::error::{Error, Kind, Result};

/// Longest path in bytes (Linux's PATH_MAX).
const PATH_MAX: usize = 4096;

/// Bytes of joined paths allowed per byte of the header. rpmbuild writes some 58 bytes for a link or folder,
/// and 150 for a file with its digest, so any number of paths of 900 bytes is accepted.
const PATHS_PER_BYTE: u64 = 16;

/// Refuses paths that are too long, or take far more bytes than the header of `len` bytes.
pub(super) fn check(header: &Header<IndexTag>, len: u64) -> Result<()> {
    if !header.entry_is_present(IndexTag::RPMTAG_BASENAMES) {
        return Ok(());
    }
    let bases = text_array(header, IndexTag::RPMTAG_BASENAMES)?;
    let directories = text_array(header, IndexTag::RPMTAG_DIRNAMES)?;
    let indexes = number_array(header, IndexTag::RPMTAG_DIRINDEXES)?;
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

    /// Checks a header of `len` bytes with `count` files in a folder whose name has `folder` bytes.
    fn listed(count: usize, folder: usize, len: u64) -> Result<()> {
        let tags = [
            (IndexTag::RPMTAG_BASENAMES, IndexData::StringArray(vec!["a".to_owned(); count])),
            (IndexTag::RPMTAG_DIRNAMES, IndexData::StringArray(vec!["d".repeat(folder)])),
            (IndexTag::RPMTAG_DIRINDEXES, IndexData::Int32(vec![0; count])),
        ];
        let entries = tags.into_iter().map(|(tag, data)| HeaderEntry::new(tag.into(), data));
        check(
            &Header::from_entries(entries.collect::<Vec<_>>(), IndexTag::RPMTAG_HEADERIMMUTABLE),
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

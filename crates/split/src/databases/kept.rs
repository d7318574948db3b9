//! Cached descriptions of long kernel indexes.
//!
//! Walking an index of a hundred megabytes takes half a second; its description has some kilobytes.

use std::io;

use rockpack_core::content::Content;
use rockpack_core::error::{Error, Result};
use rockpack_core::gfx;

use crate::input::database::{Index, read_index};
use rockpack_files::cache::{Cache, ContentDigest, Key, KeyBuilder, content_digest};

/// Version of the descriptions; raised when the walk would describe the same index differently with the same table of
/// architectures.
const INDEXES: u64 = 1;

/// Bytes of the shortest index whose description is cached. Shorter ones are walked in less than a millisecond.
const SHORTEST: u64 = 256 << 10;

/// Bytes of the longest description that is cached.
const LONGEST: usize = 1 << 20;

/// Reads an index, or takes its description from the cache, which needs none of the memory of the walk.
pub(super) fn read(content: &Content, cache: Option<&Cache>) -> Result<Index> {
    let Some(cache) = cache.filter(|_| content.len() >= SHORTEST) else {
        return read_index(content);
    };
    let digest = content_digest(content)?;
    if let Some(entry) = cache.find(&key(digest)) {
        match serde_json::from_slice(entry.facts()) {
            Ok(description) => return Ok(Index::Described(description)),
            Err(_) => cache.discard_invalid(&entry),
        }
    }
    let index = read_index(content)?;
    if let Index::Described(description) = &index {
        let facts = serde_json::to_vec(description).map_err(|fault| {
            Error::bug("the description of an index cannot be written as JSON").cause(fault)
        })?;
        // If the file changed meanwhile, the description would not match the digest.
        if facts.len() <= LONGEST && content_digest(content)? == digest {
            cache.keep(&key(digest), &facts, 0, &mut io::empty());
        }
    }
    Ok(index)
}

fn key(digest: ContentDigest) -> Key {
    let mut key = KeyBuilder::new("index");
    key.number(INDEXES).text(gfx::KNOWN_ARCHS).bytes(digest.as_bytes());
    key.finish()
}

#[cfg(test)]
mod tests {
    use rmpv::Value;

    use super::*;

    /// A long index with `name` in names of every kind.
    fn index(name: &str) -> Content {
        let mut keys: Vec<(Value, Value)> = (0..20_000)
            .map(|number: u32| (number.to_string().into(), format!("{name}_{number}").into()))
            .collect();
        keys.push(("operationIdentifier".into(), format!("Contraction_{name}").into()));
        keys.push(("code".into(), format!("x_{name}.co").into()));
        let mut bytes = Vec::new();
        rmpv::encode::write_value(&mut bytes, &Value::Map(keys)).unwrap();
        Content::of_bytes(bytes)
    }

    #[test]
    fn a_description_from_the_cache_is_that_of_the_index() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path(), 1 << 30).unwrap();
        // The last two are an arch with a qualifier, and one of the right shape that is not known.
        for name in ["one_gfx1100", "other_gfx90a", "gfx1250-strict", "gfx1999"] {
            let content = index(name);
            assert!(content.len() >= SHORTEST);
            let Index::Described(expected) = read_index(&content).unwrap() else {
                panic!("{name}")
            };
            assert_eq!((expected.archs.len(), expected.operations.len()), (1, 1), "{name}");
            assert_eq!(expected.code_object_files.len(), 1, "{name}");
            for _ in 0..2 {
                let read = read(&content, Some(&cache)).unwrap();
                assert_eq!(read, Index::Described(expected.clone()), "{name}");
                assert!(cache.find(&key(content_digest(&content).unwrap())).is_some());
            }
        }
        assert!(cache.findings().is_empty());
    }

    #[test]
    fn a_kept_description_is_taken_and_a_damaged_one_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path(), 1 << 30).unwrap();
        let content = index("one_gfx1100");
        let place = key(content_digest(&content).unwrap());
        let Index::Described(mut description) = read_index(&content).unwrap() else { panic!() };
        description.solutions += 1;
        let facts = serde_json::to_vec(&description).unwrap();
        cache.keep(&place, &facts, 0, &mut io::empty());
        assert_eq!(read(&content, Some(&cache)).unwrap(), Index::Described(description));
        cache.discard_invalid(&cache.find(&place).unwrap());
        cache.keep(&place, b"{}", 0, &mut io::empty());
        assert_eq!(read(&content, Some(&cache)).unwrap(), read_index(&content).unwrap());
        assert_eq!(cache.findings().len(), 2, "one of this test, and one of the description");
        assert_eq!(read(&content, Some(&cache)).unwrap(), read_index(&content).unwrap());
    }

    #[test]
    fn short_indexes_and_files_that_are_none_are_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path(), 1 << 30).unwrap();
        for bytes in [vec![0x80], vec![0xc1; 300 << 10]] {
            let content = Content::of_bytes(bytes);
            assert_eq!(read(&content, Some(&cache)).unwrap(), read_index(&content).unwrap());
            assert!(cache.find(&key(content_digest(&content).unwrap())).is_none());
        }
    }
}

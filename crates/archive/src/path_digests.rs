//! The paths of a package as 48-bit digests, the first bytes of their SHA-256; in JSON, one string in hex. A
//! repository of 20,000 packages has some ten million paths, and state files must store them all. One in five such
//! repositories has two paths with the same digest, so callers that find a digest twice compare the paths.

use rockpack_core::content::{hex, unhex};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest, Sha256};

const BYTES: usize = 6;

/// Digests of paths, sorted, big-endian: a quarter less memory than `u64`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathDigests(Box<[[u8; BYTES]]>);

/// The digest of a path. A leading slash does not change it.
pub fn path_digest(path: &str) -> u64 {
    digest_prefix(&Sha256::digest(path.trim_start_matches('/')))
}

/// The first 48 bits of a SHA-256.
pub(crate) fn digest_prefix(digest: &[u8]) -> u64 {
    digest.iter().take(BYTES).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

impl PathDigests {
    /// The digests of `paths`, sorted and deduplicated.
    pub fn of<'a>(paths: impl IntoIterator<Item = &'a str>) -> Self {
        Self::of_digests(paths.into_iter().map(path_digest).collect())
    }

    /// Sorts and deduplicates `digests`.
    pub fn of_digests(mut digests: Vec<u64>) -> Self {
        digests.sort_unstable();
        digests.dedup();
        let packed = digests.iter().filter_map(|digest| digest.to_be_bytes().last_chunk().copied());
        Self(packed.collect())
    }

    /// All digests, sorted.
    pub fn iter(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|digest| digest_prefix(digest))
    }
}

impl Serialize for PathDigests {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex(self.0.as_flattened()))
    }
}

impl<'de> Deserialize<'de> for PathDigests {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let numbers = text.as_bytes().chunks(2 * BYTES);
        let numbers = numbers.map(|digits| std::str::from_utf8(digits).ok().and_then(unhex));
        let numbers: Option<Box<[[u8; BYTES]]>> = numbers.collect();
        numbers.map(Self).ok_or_else(|| de::Error::custom("paths must be 48-bit digests in hex"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_survive_json() {
        let digests = PathDigests::of(["/usr/b", "usr/a", "usr/b"]);
        assert_eq!(digests.iter().count(), 2);
        assert!(digests.iter().any(|digest| digest == path_digest("/usr/a")));
        let text = serde_json::to_string(&digests).unwrap();
        assert_eq!(text.len(), 2 + 24);
        assert_eq!(serde_json::from_str::<PathDigests>(&text).unwrap(), digests);
        assert_eq!(serde_json::from_str::<PathDigests>("\"\"").unwrap(), PathDigests::default());
        for odd in ["\"0\"", "\"00000000000g\"", "\"0000000000001\"", "1"] {
            assert!(serde_json::from_str::<PathDigests>(odd).is_err(), "{odd}");
        }
    }
}

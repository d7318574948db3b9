//! The paths of a package as 48-bit numbers, the first bytes of their SHA-256. As JSON, they are one text in
//! hex. A repository of 20,000 packages has some ten million paths, and states must store them. One in five
//! such repositories has two paths with the same number, so callers that find a number twice compare the
//! paths.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest, Sha256};

/// Bytes of a number.
const BYTES: usize = 6;

/// Numbers of paths, sorted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathDigests(Vec<u64>);

/// The number of a path, with or without a leading slash.
pub fn path_digest(path: &str) -> u64 {
    let digest = Sha256::digest(path.trim_start_matches('/'));
    digest.iter().take(BYTES).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

impl PathDigests {
    /// The numbers of `paths`, sorted and deduplicated.
    pub fn of<'a>(paths: impl IntoIterator<Item = &'a str>) -> Self {
        Self::of_numbers(paths.into_iter().map(path_digest).collect())
    }

    /// Sorts and deduplicates `digests`.
    pub fn of_numbers(mut digests: Vec<u64>) -> Self {
        digests.sort_unstable();
        digests.dedup();
        digests.shrink_to_fit();
        Self(digests)
    }

    /// All numbers, sorted.
    pub fn as_slice(&self) -> &[u64] {
        &self.0
    }
}

impl Serialize for PathDigests {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let width = 2 * BYTES;
        let text: String = self.0.iter().map(|digest| format!("{digest:0width$x}")).collect();
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for PathDigests {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let numbers = text.as_bytes().chunks(2 * BYTES).map(number).collect::<Option<Vec<u64>>>();
        numbers
            .map(Self)
            .ok_or_else(|| de::Error::custom("paths are not numbers of 48 bits in hex"))
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(digits).ok().filter(|text| text.len() == 2 * BYTES)?;
    u64::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_go_out_and_come_back() {
        let digests = PathDigests::of(["/usr/b", "usr/a", "usr/b"]);
        assert_eq!(digests.as_slice().len(), 2);
        assert!(digests.as_slice().contains(&path_digest("/usr/a")));
        let text = serde_json::to_string(&digests).unwrap();
        assert_eq!(text.len(), 2 + 24);
        assert_eq!(serde_json::from_str::<PathDigests>(&text).unwrap(), digests);
        assert_eq!(serde_json::from_str::<PathDigests>("\"\"").unwrap(), PathDigests::default());
        for odd in ["\"0\"", "\"00000000000g\"", "\"0000000000001\"", "1"] {
            assert!(serde_json::from_str::<PathDigests>(odd).is_err(), "{odd}");
        }
    }
}

//! The paths of a package as a receipt has them, by folder:
//!
//! ```text
//! "folders": { "/opt/rocm-7.1/lib/": { "libx.so.1": { "size": 38, "sha256": "…" } } }
//! ```
//!
//! Both keys together are a path. Receipts of schema 3 have a list of entries with whole paths instead.

use std::collections::BTreeMap;
use std::fmt;

use rockpack_core::once::Ordered;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Serialize, Serializer};

use super::MemberRecord;
use crate::MemberKind;

/// Bytes of joined paths allowed for each byte that states them. Any number of entries can share a folder,
/// and would take far more memory than the receipt. Entries of at least 30 bytes below a folder of PATH_MAX
/// bytes are accepted in any number.
const PATHS_PER_BYTE: usize = 4096 / 30 + 1;

pub(super) fn serialize<S: Serializer>(
    members: &[MemberRecord],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut folders: BTreeMap<&str, BTreeMap<&str, &MemberRecord>> = BTreeMap::new();
    for member in members {
        let end = member.path.rfind('/').map_or(0, |slash| slash + 1);
        let (folder, name) = member.path.split_at(end);
        folders.entry(folder).or_default().insert(name, member);
    }
    folders.serialize(serializer)
}

/// Reads the entries, each path once, and sorts them by path.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<MemberRecord>, D::Error> {
    let mut members = deserializer.deserialize_any(Folders)?;
    members.sort_by(|a, b| a.path.cmp(&b.path));
    let is_once = members.is_sorted_by(|a, b| a.path < b.path);
    if is_once { Ok(members) } else { Err(D::Error::custom("a path is given twice")) }
}

struct Folders;

impl<'de> Visitor<'de> for Folders {
    type Value = Vec<MemberRecord>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of folders")
    }

    /// Reads the list of schema 3.
    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut folders: A) -> Result<Self::Value, A::Error> {
        let (mut members, mut joined, mut stated) = (Vec::new(), 0, 0);
        while let Some((folder, entries)) = folders.next_entry::<String, Ordered<MemberRecord>>()? {
            joined += folder.len() * entries.0.len();
            stated += folder.len() + entries.0.iter().map(stated_bytes).sum::<usize>();
            if joined / PATHS_PER_BYTE > stated {
                return Err(A::Error::custom("the paths are too long for their number"));
            }
            members.extend(
                entries
                    .0
                    .into_iter()
                    .map(|(name, entry)| MemberRecord { path: format!("{folder}{name}"), ..entry }),
            );
        }
        Ok(members)
    }
}

/// The least bytes of an entry in a receipt.
fn stated_bytes((name, entry): &(String, MemberRecord)) -> usize {
    let kind = if entry.kind == MemberKind::File { 0 } else { 24 };
    let texts = [&entry.sha256, &entry.target];
    let [sha256, target] = texts.map(|text| text.as_ref().map_or(0, String::len));
    name.len() + r#""":{},"#.len() + kind + sha256 + target
}

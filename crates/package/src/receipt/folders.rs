//! The installed paths of packages, as receipts state them: by folder, and once for both formats.

use std::collections::{BTreeMap, HashSet};

use rockpack_core::unique_keys::OrderedMap;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::records::{MemberRecord, PackageRecord};
use crate::MemberKind;

/// Bytes of joined paths allowed for each byte that states them. Any number of entries can share a folder,
/// and would take far more memory than the receipt. Entries of at least 30 bytes below a folder of PATH_MAX
/// bytes are accepted in any number.
const PATHS_PER_BYTE: usize = 4096 / 30 + 1;

/// Writes records. What both records with one `id` have alike is written once, as `shared_folders` of the first.
pub(super) fn write_packages<S: Serializer>(
    records: &[PackageRecord],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    if records.iter().map(|record| &record.id).collect::<HashSet<_>>().len() == records.len() {
        return records.serialize(serializer);
    }
    let mut records = records.to_vec();
    let mut firsts: BTreeMap<String, &mut PackageRecord> = BTreeMap::new();
    for record in &mut records {
        let Some(first) = firsts.remove(&record.id) else {
            firsts.insert(record.id.clone(), record);
            continue;
        };
        let mut own: HashSet<MemberRecord> = record.members.drain(..).collect();
        first.shared_folders = first.members.extract_if(.., |member| own.remove(member)).collect();
        record.members.extend(own);
    }
    records.serialize(serializer)
}

/// Reads records. What one of them shares belongs to the next one with its `id`, too.
pub(super) fn read_packages<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<PackageRecord>, D::Error> {
    let mut records = Vec::<PackageRecord>::deserialize(deserializer)?;
    let mut shared = BTreeMap::new();
    for PackageRecord { id, members, shared_folders, .. } in &mut records {
        let stated = std::mem::take(shared_folders);
        // To one only: any number would take far more memory than the receipt.
        members.extend(shared.remove(&*id).unwrap_or_default());
        members.extend_from_slice(&stated);
        if !stated.is_empty() {
            shared.insert(id.clone(), stated);
        }
        members.sort_by(|a, b| a.path.cmp(&b.path));
        if !members.is_sorted_by(|a, b| a.path < b.path) {
            return Err(D::Error::custom("a path is given twice"));
        }
    }
    Ok(records)
}

/// Writes paths by folder:
///
/// ```text
/// "folders": { "/opt/rocm-7.1/lib/": { "libx.so.1": [38, "…", 420], "libx.so": { "kind": "link", … } } }
/// ```
///
/// Both keys together are a path.
pub(super) fn write_folders<S: Serializer>(
    members: &[MemberRecord],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut folders: BTreeMap<&str, BTreeMap<&str, CompactEntry<'_>>> = BTreeMap::new();
    for member in members {
        let end = member.path.rfind('/').map_or(0, |slash| slash + 1);
        let (folder, name) = member.path.split_at(end);
        folders.entry(folder).or_default().insert(name, CompactEntry(member));
    }
    folders.serialize(serializer)
}

struct CompactEntry<'a>(&'a MemberRecord);

impl Serialize for CompactEntry<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let MemberRecord { size, sha256, mode, kind, target, .. } = self.0;
        match (size, sha256, kind, target) {
            (Some(size), Some(sha256), MemberKind::File, None) => {
                (size, sha256, mode).serialize(serializer)
            }
            _ => self.0.serialize(serializer),
        }
    }
}

/// Reads the entries of a package, in any order.
pub(super) fn read_folders<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<MemberRecord>, D::Error> {
    let folders = OrderedMap::<OrderedMap<MemberRecord>>::deserialize(deserializer)?;
    let (mut members, mut joined, mut stated) = (Vec::new(), 0, 0);
    for (folder, entries) in folders.0 {
        joined += folder.len() * entries.0.len();
        stated += folder.len() + entries.0.iter().map(stated_bytes).sum::<usize>();
        if joined / PATHS_PER_BYTE > stated {
            return Err(D::Error::custom("the paths are too long for their number"));
        }
        for (name, entry) in entries.0 {
            members.push(MemberRecord { path: format!("{folder}{name}"), ..entry });
        }
    }
    Ok(members)
}

/// The least bytes of an entry in a receipt.
fn stated_bytes((name, entry): &(String, MemberRecord)) -> usize {
    let kind = if entry.kind == MemberKind::File { 0 } else { 24 };
    let texts = [&entry.sha256, &entry.target];
    let [sha256, target] = texts.map(|text| text.as_ref().map_or(0, String::len));
    name.len() + r#""":{},"#.len() + kind + sha256 + target
}

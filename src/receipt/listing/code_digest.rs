//! What a kernel archive holds, apart from how it is compressed.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_base::content::hex;
use sha2::{Digest as _, Sha256};

use crate::receipt::{CodeObjectPlace, CodeObjectRecord};

/// A code object of an archive: its key, its target, and its SHA-256 in hex.
pub type CodeRow = (String, String, String);

/// SHA-256, in hex, of the lines `key target sha256` of an archive's code objects, sorted. Rows that
/// repeat a code object for a more specific target are not among them. Receipts know it of packed
/// archives and plans of those that will be.
pub fn code_digest(rows: &BTreeSet<CodeRow>) -> String {
    let mut hasher = Sha256::new();
    for (key, target, sha256) in rows {
        hasher.update(format!("{key} {target} {sha256}\n"));
    }
    hex(&hasher.finalize())
}

/// Kernel archive, as an absolute path → the digest of those of `records` that are in it.
pub fn code_digests<'a>(
    records: impl Iterator<Item = &'a CodeObjectRecord>,
) -> BTreeMap<String, String> {
    let mut rows: BTreeMap<&str, BTreeSet<CodeRow>> = BTreeMap::new();
    for record in records {
        if let CodeObjectPlace::Archive { archive, key, .. } = &record.place {
            let row = (key.clone(), record.target.clone(), record.sha256.clone());
            rows.entry(archive).or_default().insert(row);
        }
    }
    rows.into_iter().map(|(archive, rows)| (archive.to_owned(), code_digest(&rows))).collect()
}

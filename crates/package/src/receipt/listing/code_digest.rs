//! Digests of the contents of kernel archives, independent of compression.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::content::hex;
use sha2::{Digest as _, Sha256};

use crate::receipt::{CodeObjectPlace, CodeObjectRecord};

/// A code object of an archive: its key, its target, and its SHA-256 in hex.
pub type CodeRow = (String, String, String);

/// SHA-256, in hex, of the sorted lines `key target sha256` of an archive's code objects. Rows that repeat a
/// code object for a more specific target are left out. A receipt yields it for packed archives, a plan for
/// planned ones.
pub fn code_digest(rows: &BTreeSet<CodeRow>) -> String {
    let mut hasher = Sha256::new();
    for (key, target, sha256) in rows {
        hasher.update(format!("{key} {target} {sha256}\n"));
    }
    hex(&hasher.finalize())
}

/// Maps the absolute path of each kernel archive to the digest of its code objects among `records`.
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

//! The union of files with the same name from shards that were built separately.
//!
//! | files | union | refused |
//! |---|---|---|
//! | offload bundles, compressed or not, one in each file | one bundle: entries of the host first, then by id | an id with different bytes |
//! | MessagePack maps, compressed (zlib) or not | one map, sorted by encoded keys; compressed if any of them is | a key with different values; keys that are numbers; strings that are not UTF-8 |
//!
//! Numbers as keys are starts of ranges (see the row "mapping" in `index/mod.rs`). The range of a solution
//! depends on all keys, so a map with additional ones has another meaning.
//!
//! The bytes depend only on the content of the files, not on their order or on the program: a verifier that
//! has the files can recompute the union.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use flate2::Compression;
use flate2::bufread::ZlibDecoder;
use flate2::write::ZlibEncoder;
use rmpv::Value;
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Result};
use rockpack_elf::fatbin::{self, Bundles};
use rockpack_elf::message_pack::{encode, is_text};
use rockpack_elf::offload_binary;
use rockpack_elf::offload_bundle::{self, BundleEntryKind};

use super::index::{DEPTH_LIMIT, is_zlib};
use rockpack_report::MergeObstacle;

/// Longest map that is read, in bytes, plain or inflated. Maps are merged in memory, where a value of one
/// byte takes about sixty; real maps that need merging have a few kilobytes.
const MAP_LIMIT: u64 = 4 << 20;

/// A file that replaces several with the same name, or the reason why there is none.
pub type Union = std::result::Result<Content, MergeObstacle>;

/// Merges `files`. Fails if one of them cannot be read.
pub fn union(files: &[Content]) -> Result<Union> {
    let mut bundles = 0;
    for file in files {
        let is_binary = file.starts_with(offload_binary::MAGIC)?;
        bundles += usize::from(!is_binary && fatbin::starts_bundle(file)?);
    }
    match bundles {
        0 => union_of_maps(files),
        _ if bundles == files.len() => union_of_bundles(files),
        _ => Ok(Err(MergeObstacle::SomeBundles)),
    }
}

fn union_of_bundles(files: &[Content]) -> Result<Union> {
    // Host entries come first, as compilers write them.
    let mut entries: BTreeMap<(bool, String), Content> = BTreeMap::new();
    for file in files {
        let mut bundles = Bundles::new(file);
        let Some(first) = bundles.next().transpose()? else {
            return Ok(Err(MergeObstacle::NoBundle));
        };
        if bundles.next().is_some() {
            return Ok(Err(MergeObstacle::SeveralBundles));
        }
        for entry in &first.bundle.entries {
            let key = (entry.id.kind != BundleEntryKind::Host, entry.id.text.clone());
            match entries.get(&key) {
                Some(known) if known.same_bytes(&entry.content)? => {}
                Some(_) => {
                    return Ok(Err(MergeObstacle::EntriesDiffer { entry: entry.id.to_string() }));
                }
                None => drop(entries.insert(key, entry.content.clone())),
            }
        }
    }
    let entries: Vec<_> = entries.into_iter().map(|((_, id), content)| (id, content)).collect();
    offload_bundle::write(&entries).map(Ok)
}

fn union_of_maps(files: &[Content]) -> Result<Union> {
    let mut entries: BTreeMap<Vec<u8>, (Value, Value)> = BTreeMap::new();
    let mut compressed = false;
    for file in files {
        compressed |= is_zlib(file)?;
        let Some(Value::Map(map)) = decoded(file)? else {
            return Ok(Err(MergeObstacle::UnknownFormat));
        };
        if !map.iter().all(|(key, value)| is_text(key) && is_text(value)) {
            return Ok(Err(MergeObstacle::NotUtf8));
        }
        for (key, value) in map {
            if is_number(&key) {
                return Ok(Err(MergeObstacle::Ranges));
            }
            match entries.get(&encode(&key)?) {
                // Compared as bytes: NaN does not equal itself.
                Some((_, known)) if encode(known)? == encode(&value)? => {}
                Some(_) => return Ok(Err(MergeObstacle::ValuesDiffer { key: key.to_string() })),
                None => drop(entries.insert(encode(&key)?, (key, value))),
            }
        }
    }
    let bytes = encode(&Value::Map(entries.into_values().collect()))?;
    let bytes = if compressed { deflated(&bytes)? } else { bytes };
    Ok(Ok(Content::of_bytes(bytes)))
}

fn is_number(key: &Value) -> bool {
    let text = key.as_str().filter(|text| !text.is_empty());
    key.is_number() || text.is_some_and(|text| text.bytes().all(|c| c.is_ascii_digit()))
}

/// The one value of a file, if it is MessagePack within the limit.
fn decoded(file: &Content) -> Result<Option<Value>> {
    if file.len() > MAP_LIMIT {
        return Ok(None);
    }
    let mut bytes = file.read_vec(0..file.len(), MAP_LIMIT, "kernel index")?;
    if is_zlib(file)? {
        let mut plain = Vec::new();
        let mut decoder = ZlibDecoder::new(bytes.as_slice()).take(MAP_LIMIT + 1);
        if decoder.read_to_end(&mut plain).is_err() || plain.len() as u64 > MAP_LIMIT {
            return Ok(None);
        }
        bytes = plain;
    }
    let mut rest = bytes.as_slice();
    let value = rmpv::decode::read_value_with_max_depth(&mut rest, DEPTH_LIMIT).ok();
    Ok(value.filter(|_| rest.is_empty()))
}

fn deflated(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.map_err(|cause| Error::bug("an index cannot be compressed").cause(cause))
}

#[cfg(test)]
#[path = "union_tests.rs"]
mod tests;

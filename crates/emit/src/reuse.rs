//! Reuses payloads that an earlier run compressed.
//!
//! A payload depends only on its entries, their content, their time, and the compression. So a package with another
//! version, other relations, scripts or texts reuses the payload, and only the parts around it are written again. The
//! lookup reads and digests the files of a package before compression; after a miss they are read a second time.
//!
//! The facts in a cache entry are the SHA-256 of the payload's files, which the package and its receipt state, and the
//! facts of its format ([`Finished`]).
//!
//! [`Finished`]: rockpack_archive::payload::Finished

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

use rockpack_archive::package_file::PackageSpecification;
use rockpack_archive::payload::{CompressedPayload, FileDigests, PayloadEntry};
use rockpack_core::content::{Content, DigestingWriter};
use rockpack_core::error::{Error, Faults, Result, ResultExt};
use rockpack_core::run::threads;
use sha1::{Digest as _, Sha1};
use sha2::Sha256;

use super::EmitOptions;
use super::schedule::compressor_cores;
use rockpack_files::cache::{Cache, CacheEntry, ContentDigest, Key, KeyBuilder};
use rockpack_package::{Format, Package, PackageEntry};

/// Version of the payload format; raised when payloads of the same entries get other bytes or facts.
const PAYLOADS: u64 = 4;

pub(super) struct PayloadReuse<'a> {
    cache: &'a Cache,
    entries: &'a [PackageEntry<Content>],
    /// The known digests of the entries, so that no file is digested again.
    pub precomputed: PrecomputedDigests,
}

/// The digests of each entry that are known before its package is written.
pub(super) struct PrecomputedDigests {
    /// The result of the first reading; `None` for entries that are not files.
    pub contents: Vec<Option<FirstReading>>,
    /// SHA-256 and SHA-1 of each entry; `None` for entries that are not files, or in no payload of the cache.
    pub digests: Vec<Option<FileDigests>>,
}

pub(super) struct FirstReading {
    pub digest: ContentDigest,
    /// SHA-1, for an SPDX document.
    pub sha1: Option<[u8; 20]>,
}

/// The result of a cache lookup for a package file.
pub(super) enum CacheLookup {
    Hit {
        /// Bytes of the payload.
        payload: u64,
        sha256: [u8; 32],
    },
    /// The file is empty; the payload will be cached under this key.
    Miss(Key),
}

impl<'a> PayloadReuse<'a> {
    /// Reads the files of `package`, on its share of the cores.
    pub fn new(
        cache: &'a Cache,
        package: &'a Package<Content>,
        options: &EmitOptions<'_>,
    ) -> Result<Self> {
        let entries = &package.entries;
        let threads = compressor_cores(package.formats().count(), options);
        let read = threads::each(entries, threads, |entry| first_reading(entry, options.sha1))?;
        let precomputed =
            PrecomputedDigests { contents: Faults::all(read)?, digests: vec![None; entries.len()] };
        Ok(Self { cache, entries, precomputed })
    }

    /// Writes the whole package into the empty `file`, if its payload is cached.
    pub fn fill(
        &mut self,
        mut file: &File,
        format: Format,
        specification: &PackageSpecification,
    ) -> Result<CacheLookup> {
        let entries = self.entries.iter().enumerate();
        let inside = entries.filter(|(_, entry)| entry.formats.has(format));
        let inside: Vec<usize> = inside.map(|(index, _)| index).collect();
        let key = self.key(specification, format, &inside);
        let Some(entry) = self.cache.find(&key) else { return Ok(CacheLookup::Miss(key)) };
        let Some((files, facts)) = self.cached_digests(&inside, &entry) else {
            self.cache.discard_invalid(&entry);
            return Ok(CacheLookup::Miss(key));
        };
        let around = specification.framing(&CompressedPayload {
            len: entry.body_len(),
            facts,
            files: &files,
        })?;
        let mut sink = DigestingWriter::<_, Sha256>::new(file);
        sink.write_all(&around.front).map_err(unwritten)?;
        if !self.cache.copy(&entry, &mut sink).map_err(unwritten)? {
            file.set_len(0).and_then(|()| file.seek(SeekFrom::Start(0))).map_err(unwritten)?;
            return Ok(CacheLookup::Miss(key));
        }
        sink.write_all(around.back).map_err(unwritten)?;
        for (index, sha256) in inside.into_iter().zip(files) {
            let sha1 = self.precomputed.contents[index].as_ref().and_then(|content| content.sha1);
            self.precomputed.digests[index] =
                sha256.map(|sha256| FileDigests { sha256, md5: None, sha1 });
        }
        Ok(CacheLookup::Hit { payload: entry.body_len(), sha256: sink.digest.finalize().into() })
    }

    fn key(&self, specification: &PackageSpecification, format: Format, inside: &[usize]) -> Key {
        let entries = specification.entries();
        let mut key = KeyBuilder::new("payload");
        key.number(PAYLOADS).text(format.as_str());
        key.text(&format!("{:?}", specification.compression())).number(specification.mtime());
        for (PayloadEntry { path, kind, mode, size, .. }, index) in entries.iter().zip(inside) {
            key.text(path).text(&format!("{kind:?}")).number((*mode).into()).number(*size);
            let content = self.precomputed.contents[*index].as_ref();
            key.bytes(content.map_or(&[], |content| content.digest.as_bytes()));
        }
        key.finish()
    }

    /// The cached SHA-256 of each of the entries `inside`, and the facts after them.
    fn cached_digests<'e>(
        &self,
        inside: &[usize],
        entry: &'e CacheEntry,
    ) -> Option<CachedFacts<'e>> {
        let mut rest = entry.facts();
        let mut digests = Vec::new();
        for index in inside {
            if self.precomputed.contents[*index].is_none() {
                digests.push(None);
                continue;
            }
            let (sha256, behind) = rest.split_first_chunk()?;
            digests.push(Some(*sha256));
            rest = behind;
        }
        Some((digests, rest))
    }
}

type CachedFacts<'e> = (Vec<Option<[u8; 32]>>, &'e [u8]);

/// The facts that the cache keeps with a payload: the SHA-256 of its files, in order, then `facts`.
pub(super) fn cached_facts(files: impl Iterator<Item = [u8; 32]>, facts: &[u8]) -> Vec<u8> {
    files.flatten().chain(facts.iter().copied()).collect()
}

/// The cache entry of a long file's digests, which other packages with this file use. Its facts are SHA-256 and MD5.
pub(super) struct CachedDigests<'a> {
    cache: &'a Cache,
    key: Key,
}

impl<'a> CachedDigests<'a> {
    /// The entry for the `content` of `len` bytes; `None` if it is too short.
    pub fn of(cache: &'a Cache, content: &FirstReading, len: u64) -> Option<Self> {
        let mut key = KeyBuilder::new("digests");
        key.bytes(content.digest.as_bytes());
        (len >= 1 << 20).then(|| Self { cache, key: key.finish() })
    }

    pub fn find(&self) -> Option<FileDigests> {
        let entry = self.cache.find(&self.key)?;
        let found = entry.facts().split_first_chunk().and_then(|(sha256, md5)| {
            Some(FileDigests { sha256: *sha256, md5: Some(md5.try_into().ok()?), sha1: None })
        });
        if found.is_none() {
            self.cache.discard_invalid(&entry);
        }
        found
    }

    pub fn keep(&self, digests: &FileDigests) {
        if let Some(md5) = digests.md5 {
            let facts = [&digests.sha256[..], &md5].concat();
            self.cache.keep(&self.key, &facts, 0, &mut io::empty());
        }
    }
}

fn unwritten(error: io::Error) -> Error {
    Error::io_without_path("write the package", error)
}

fn first_reading(entry: &PackageEntry<Content>, sha1: bool) -> Result<Option<FirstReading>> {
    let Some(content) = entry.node.data() else { return Ok(None) };
    let (mut digest, mut sha1) = (blake3::Hasher::new(), sha1.then(Sha1::new));
    let read = content.each_window(|bytes| {
        digest.update(bytes);
        if let Some(sha1) = &mut sha1 {
            sha1.update(bytes);
        }
    });
    read.context(|| format!("reading /{}", entry.path))?;
    let sha1 = sha1.map(|sha1| sha1.finalize().into());
    Ok(Some(FirstReading { digest: digest.finalize(), sha1 }))
}

//! Reuses payloads that an earlier run compressed.
//!
//! A payload depends only on its entries with their content, their time, and the compression. So a package
//! with another version, other relations, scripts or texts reuses the payload, and only the parts around it
//! are written anew. To look it up, the files of a package are read and digested before compression; without a
//! hit they are read a second time.
//!
//! The cache keeps with a payload the digests of its files that the package and its receipt state, then the
//! [`Finished::facts`] of its format.
//!
//! [`Finished::facts`]: rockpack_base::formats::payload::Finished::facts

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write as _};

use rockpack_base::content::{Content, DigestingWriter};
use rockpack_base::error::{Error, Result, ResultExt};
use rockpack_base::formats::package_file::PackageSpecification;
use rockpack_base::formats::payload::{FileDigests, PayloadEntry, Ready};
use rockpack_base::run::threads;

use super::compressor;
use super::options::EmitOptions;
use super::turns::sorted_out;
use crate::pack::cache::{Cache, CacheEntry, ContentDigest, Key, KeyMaker, content_digest};
use crate::package::{Format, Package, PackageEntry};

/// Version of the payload format; raised when payloads of the same entries get other bytes or facts.
const PAYLOADS: u64 = 4;

/// The payloads of one package.
pub(super) struct Reuse<'a> {
    cache: &'a Cache,
    entries: &'a [PackageEntry<Content>],
    sha1: bool,
    seen: Seen,
}

/// What a first reading and the cache say of each entry; `None` for entries that are not files.
pub(super) struct Seen {
    /// The digests of the content that was read.
    pub contents: Vec<Option<ContentDigest>>,
    /// The digests that were kept with a cached payload, without MD5.
    pub digests: Vec<Option<FileDigests>>,
}

/// The state of a package file after a look into the cache.
pub(super) enum Known {
    /// The file is written.
    Filled {
        /// Bytes of the payload.
        payload: u64,
        /// SHA-256 of the file.
        sha256: [u8; 32],
    },
    /// The file is empty; the payload will be cached under this key.
    New(Key),
}

impl<'a> Reuse<'a> {
    /// Reads the files of `package`, on its share of the cores.
    pub fn new(
        cache: &'a Cache,
        package: &'a Package<Content>,
        options: &EmitOptions<'_>,
    ) -> Result<Self> {
        let entries = &package.entries;
        let threads = compressor::cores(package.formats(), options);
        let contents = sorted_out(threads::each(entries, threads, digest)?)?;
        let seen = Seen { contents, digests: vec![None; entries.len()] };
        Ok(Self { cache, entries, sha1: options.sha1, seen })
    }

    /// Writes the whole package into the empty `file`, if its payload is cached.
    pub fn fill(
        &mut self,
        mut file: &File,
        format: Format,
        specification: &PackageSpecification,
    ) -> Result<Known> {
        let key = self.key(specification, format);
        let Some(entry) = self.cache.find(&key) else { return Ok(Known::New(key)) };
        let (files, facts) = self.kept_digests(format, &entry)?;
        let ready = Ready { len: entry.body_len(), facts, files: &sums_of(&files) };
        let around = specification.around(&ready)?;
        let mut sink = DigestingWriter::new(file);
        sink.write_all(&around.front).map_err(unwritten)?;
        if !self.cache.copy(&entry, &mut sink).map_err(unwritten)? {
            file.set_len(0).and_then(|()| file.seek(SeekFrom::Start(0))).map_err(unwritten)?;
            return Ok(Known::New(key));
        }
        sink.write_all(around.back).map_err(unwritten)?;
        for (index, digests) in self.indices(format).zip(files).collect::<Vec<_>>() {
            self.seen.digests[index] = digests;
        }
        Ok(Known::Filled { payload: entry.body_len(), sha256: sink.finish().sha256 })
    }

    /// Returns the digests, so that no file is digested again.
    pub fn into_seen(self) -> Seen {
        self.seen
    }

    /// The key of a payload of the entries in `format`.
    fn key(&self, specification: &PackageSpecification, format: Format) -> Key {
        let mut key = KeyMaker::new("payload");
        key.number(PAYLOADS).text(format.as_str()).number(self.sha1.into());
        key.text(&format!("{:?}", specification.compression())).number(specification.mtime());
        for (PayloadEntry { path, kind, mode, size, .. }, index) in
            specification.entries().iter().zip(self.indices(format))
        {
            key.text(path).text(&format!("{kind:?}")).number((*mode).into()).number(*size);
            let content = self.seen.contents.get(index).and_then(Option::as_ref);
            key.bytes(content.map_or(&[], |digest| digest.as_bytes()));
        }
        key.finish()
    }

    /// The indices of the entries in `format`.
    fn indices(&self, format: Format) -> impl Iterator<Item = usize> {
        let entries = self.entries.iter().enumerate();
        entries.filter(move |(_, entry)| entry.formats.has(format)).map(|(index, _)| index)
    }

    /// The digests of each entry in `format` that were kept with its payload, and the facts behind them.
    fn kept_digests<'e>(
        &self,
        format: Format,
        entry: &'e CacheEntry,
    ) -> Result<(Vec<Option<FileDigests>>, &'e [u8])> {
        let mut rest = entry.facts();
        let mut digests = Vec::new();
        for index in self.indices(format) {
            let is_file = self.seen.contents.get(index).is_some_and(Option::is_some);
            digests.push(if is_file { Some(self.next_digests(&mut rest)?) } else { None });
        }
        Ok((digests, rest))
    }

    fn next_digests(&self, facts: &mut &[u8]) -> Result<FileDigests> {
        let sha256 = next(facts)?;
        let sha1 = if self.sha1 { Some(next(facts)?) } else { None };
        Ok(FileDigests { sha256, md5: None, sha1 })
    }
}

/// The facts that the cache keeps with a payload: the digests of its files, in order, then `facts`.
pub(super) fn kept_facts<'a>(
    files: impl Iterator<Item = (&'a [u8; 32], Option<&'a [u8; 20]>)>,
    facts: &[u8],
) -> Vec<u8> {
    let mut all = Vec::new();
    for (sha256, sha1) in files {
        all.extend(sha256);
        all.extend(sha1.into_iter().flatten());
    }
    all.extend(facts);
    all
}

fn next<const N: usize>(facts: &mut &[u8]) -> Result<[u8; N]> {
    let (first, rest) = facts
        .split_first_chunk()
        .ok_or_else(|| Error::bug("the facts of a payload lack digests of its files"))?;
    *facts = rest;
    Ok(*first)
}

fn sums_of(files: &[Option<FileDigests>]) -> Vec<Option<[u8; 32]>> {
    files.iter().map(|digests| digests.map(|digests| digests.sha256)).collect()
}

fn unwritten(error: io::Error) -> Error {
    Error::io_unplaced("write the package", error)
}

fn digest(entry: &PackageEntry<Content>) -> Result<Option<ContentDigest>> {
    let Some(content) = entry.node.data() else { return Ok(None) };
    content_digest(content).map(Some).context(|| format!("reading /{}", entry.path))
}

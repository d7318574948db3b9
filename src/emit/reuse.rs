//! Reuses payloads that an earlier run compressed.
//!
//! A payload depends only on its entries with the digests of their content, their time, and the compression.
//! So a package with another version, other relations, scripts or texts reuses the payload, and only the
//! parts around it are written anew. To look it up, the files of a package are read and digested before
//! compression; without a hit they are read a second time.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

use rockpack_base::content::Content;
use rockpack_base::error::{Error, Result, ResultExt};
use rockpack_base::formats::package_file::PackageSpecification;
use rockpack_base::formats::payload::{FileDigests, PayloadEntry, Ready};
use rockpack_base::run::threads;
use rockpack_base::tree::Node;

use super::compressor;
use super::fan_out::FileHashers;
use super::options::EmitOptions;
use super::turns::sorted_out;
use crate::pack::cache::{Cache, Key, KeyMaker};
use crate::package::{Format, Package, PackageEntry};

/// Version of the payload format; raised when payloads of the same entries get other bytes.
const PAYLOADS: u64 = 3;

/// The payloads of one package.
pub(super) struct Reuse<'a> {
    cache: &'a Cache,
    entries: &'a [PackageEntry<Content>],
    /// Digests of each entry, without MD5; `None` for entries that are not files.
    digests: Vec<Option<FileDigests>>,
}

/// The state of a package file after a look into the cache.
pub(super) enum Known {
    /// The file is written; the payload has this many bytes.
    Filled(u64),
    /// The file is empty; the payload will be cached under this key.
    New(Key),
}

impl Known {
    /// The key of a payload that is still to be made.
    pub fn key(self) -> Option<Key> {
        match self {
            Self::Filled(_) => None,
            Self::New(key) => Some(key),
        }
    }
}

impl<'a> Reuse<'a> {
    /// Reads the files of `package`, on its share of the cores.
    pub fn new(
        cache: &'a Cache,
        package: &'a Package<Content>,
        options: &EmitOptions<'_>,
    ) -> Result<Self> {
        let threads = compressor::cores(package.formats(), options);
        let digests = digests(&package.entries, threads, options.sha1)?;
        Ok(Self { cache, entries: &package.entries, digests })
    }

    /// Writes the whole package into the empty `file`, if its payload is cached.
    pub fn fill(
        &self,
        mut file: &File,
        format: Format,
        specification: &PackageSpecification,
    ) -> Result<Known> {
        let inside =
            self.entries.iter().zip(&self.digests).filter(|(entry, _)| entry.formats.has(format));
        let files: Vec<_> = inside.map(|(_, digests)| Some((*digests)?.sha256)).collect();
        let key = key(specification, format, &files);
        let Some(entry) = self.cache.find(&key) else {
            return Ok(Known::New(key));
        };
        let ready = Ready {
            len: entry.body_len(),
            sha256: entry.body_sha256(),
            facts: entry.facts(),
            files: &files,
        };
        let around = specification.around(&ready)?;
        file.write_all(&around.front).map_err(unwritten)?;
        if self.cache.copy(&entry, &mut file).map_err(unwritten)? {
            file.write_all(around.back).map_err(unwritten)?;
            return Ok(Known::Filled(entry.body_len()));
        }
        file.set_len(0).and_then(|()| file.seek(SeekFrom::Start(0))).map_err(unwritten)?;
        Ok(Known::New(key))
    }

    /// Returns the digests, so that no file is read again.
    pub fn into_digests(self) -> Vec<Option<FileDigests>> {
        self.digests
    }
}

fn unwritten(error: io::Error) -> Error {
    Error::io_unplaced("write the package", error)
}

/// The key of a payload of entries whose files have these digests.
fn key(specification: &PackageSpecification, format: Format, files: &[Option<[u8; 32]>]) -> Key {
    let mut key = KeyMaker::new("payload");
    key.number(PAYLOADS).text(format.as_str());
    key.text(&format!("{:?}", specification.compression())).number(specification.mtime());
    for (PayloadEntry { path, kind, mode, size, .. }, sha256) in
        specification.entries().iter().zip(files)
    {
        key.text(path).text(&format!("{kind:?}")).number((*mode).into()).number(*size);
        key.bytes(sha256.as_ref().map_or(&[], |digest| &digest[..]));
    }
    key.finish()
}

/// The digests of each file, read by `threads` threads.
fn digests(
    entries: &[PackageEntry<Content>],
    threads: usize,
    sha1: bool,
) -> Result<Vec<Option<FileDigests>>> {
    sorted_out(threads::each(entries, threads, |entry| file_digests(entry, sha1))?)
}

fn file_digests(entry: &PackageEntry<Content>, sha1: bool) -> Result<Option<FileDigests>> {
    let Node::File { data, .. } = &entry.node else { return Ok(None) };
    let mut digests = FileHashers::new(false, sha1);
    let read = data.each_window(|bytes| digests.update(bytes));
    read.context(|| format!("reading /{}", entry.path))?;
    Ok(Some(digests.finish()))
}

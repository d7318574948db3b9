//! The shared state of the checks of a repository, whose indexes are read as clients read them.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use rockpack_archive::apt_index::format_date;
use rockpack_core::compression::{Decoder, Method};
use rockpack_core::content::{Content, hex, if_exists, is_file};
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::run::Budget;
use sha2::{Digest, Sha256, Sha512};

use super::states::State;
use crate::problem::{Problem, Problems, Report};
use rockpack_signing::Trust;

/// Bytes of an index, which is held in memory. The largest distributions have smaller ones.
pub(super) const INDEX_MAX: u64 = 2 << 30;

/// Decoded bytes for each byte of a compressed index. Lists of distributions have about ten.
const EXPANSION_MAX: u64 = 64;

/// Decoded bytes that all indexes together may have in addition.
pub(super) const BASE_ALLOWANCE: u64 = 32 << 20;

/// Bytes of a top-level index such as `Release`. The largest distributions have less than a hundredth of this.
pub(super) const HEAD_MAX: u64 = 16 << 20;

/// The tolerated difference of clocks in seconds.
const DAY: i64 = 86_400;

/// Packages that are checked in one batch; it bounds the problems held before they are counted.
pub(super) const BATCH_SIZE: usize = 1024;

pub(super) const DIGEST_DIFFERS: &str = "its content does not have the digest that is its name";

pub(super) struct Context<'a> {
    pub(super) files: NamedFiles<'a>,
    /// The keys that must have signed indexes.
    pub(super) trust: &'a Trust,
    /// Those keys and the keys named in indexes that they signed: clients accept packages signed by them.
    pub(super) package_trust: &'a Trust,
    /// Paths that indexes name, relative to the root.
    pub(super) named: BTreeSet<String>,
    pub(super) states: Vec<State>,
    /// Paths of each `.rpm` without a signature.
    pub(super) unsigned: Vec<String>,
    pub(super) report: &'a mut Report,
    pub(super) problems: &'a mut Problems,
    /// What remains of [`BASE_ALLOWANCE`].
    pub(super) allowance: u64,
}

impl Context<'_> {
    /// The bytes of an index, at most `most`. Reports a missing or invalid file.
    pub(super) fn read(&mut self, path: &str, most: u64) -> Result<Option<Vec<u8>>> {
        let Some(file) = place(self.files.root, path) else {
            let path_text = path.escape_debug();
            self.bad_index(path, format!("`{path_text}` lies outside of the repository"));
            return Ok(None);
        };
        self.named.insert(path.to_owned());
        let Some(metadata) = if_exists(&file, "inspect", fs::metadata(&file))? else {
            self.index_differs(path, "is listed, but the file is missing");
            return Ok(None);
        };
        if !metadata.is_file() {
            self.bad_index(path, "is not a file");
            return Ok(None);
        }
        if metadata.len() > most {
            let len = metadata.len();
            let reason = format!("has {len} bytes, more than the limit of {most}");
            self.bad_index(path, reason);
            return Ok(None);
        }
        let bytes = self.files.read(&file, "an index")?;
        self.report.indexes += 1;
        Ok(Some(bytes))
    }

    /// Decodes a compressed index. Fails if it exceeds [`EXPANSION_MAX`] for each byte plus what other indexes left of
    /// [`BASE_ALLOWANCE`].
    pub(super) fn open(&mut self, path: &str, bytes: &[u8]) -> Result<Vec<u8>> {
        let method =
            method(path).ok_or_else(|| Error::unsupported("has an unknown file extension"))?;
        let mut decoder = Decoder::new(BufReader::new(bytes), method)?;
        let mut text = Vec::new();
        let own = EXPANSION_MAX.saturating_mul(bytes.len() as u64);
        let most = self.allowance.saturating_add(own).min(INDEX_MAX);
        let read = (&mut decoder).take(most).read_to_end(&mut text);
        let read = read.map_err(|e| Error::malformed("cannot be decompressed").cause(e))? as u64;
        if read == most {
            let message =
                format!("unpacks to {most} bytes or more, more than any index of its size");
            let hint = "the index is corrupt or hostile: publish it again";
            return Err(Error::new(Kind::Limit, message).hint(hint));
        }
        self.allowance = self.allowance.saturating_sub(read.saturating_sub(own));
        decoder.finish()?;
        Ok(text)
    }

    pub(super) fn bad_index(&mut self, file: &str, reason: impl Into<String>) {
        self.problems.add(Problem::BadIndex { file: file.to_owned(), reason: reason.into() });
    }

    /// The content of an index. Reports an error as a problem.
    pub(super) fn parsed<T>(&mut self, file: &str, parsed: Result<T>) -> Option<T> {
        parsed.inspect_err(|error| self.bad_index(file, error.to_string())).ok()
    }

    pub(super) fn index_differs(&mut self, file: &str, reason: impl Into<String>) {
        self.problems.add(Problem::IndexMismatch { file: file.to_owned(), reason: reason.into() });
    }

    pub(super) fn bad_signature(&mut self, file: &str, reason: impl Into<String>) {
        self.problems.add(Problem::BadSignature { file: file.to_owned(), reason: reason.into() });
    }

    /// Counts a valid signature in `file` if there are keys. Reports a bad one.
    pub(super) fn signed<T>(&mut self, file: &str, checked: Result<T>) -> Option<T> {
        let bad = |error: &Error| self.bad_signature(file, error.to_string());
        let signed = checked.inspect_err(bad).ok()?;
        self.report.signatures += usize::from(!self.trust.keys.is_empty());
        Some(signed)
    }

    /// Reports a date more than a day ahead of the clock.
    pub(super) fn check_date(&mut self, file: &str, seconds: i64) {
        if seconds > self.trust.at.clock.saturating_add(DAY) {
            let date = format_date(seconds).unwrap_or_else(|_| seconds.to_string());
            self.problems.add(Problem::PublicationInFuture { file: file.to_owned(), date });
        }
    }

    pub(super) fn add_inconsistency(&mut self, file: &str, reason: impl Into<String>) {
        let (file, reason) = (file.to_owned(), reason.into());
        self.problems.add(Problem::IndexInconsistent { file, reason });
    }
}

/// The reason why an index that names this path is bad.
pub(super) fn names_outside(path: &str) -> String {
    format!("names `{}`", path.escape_debug())
}

pub(super) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

pub(super) fn sha512(bytes: &[u8]) -> String {
    hex(&Sha512::digest(bytes))
}

/// The compression method of an index, by its extension.
pub(super) fn method(path: &str) -> Option<Method> {
    let extension = path.rsplit('/').next().and_then(|name| name.rsplit_once('.'));
    extension.map_or(Some(Method::Stored), |(_, extension)| Method::of_extension(extension))
}

/// The location of a path that an index names, if it is inside the repository.
pub(super) fn place(root: &Path, path: &str) -> Option<PathBuf> {
    has_plain_parts(path).then(|| root.join(path))
}

/// Whether each part of `path` is a name: none is empty, `.` or `..`.
pub(super) fn has_plain_parts(path: &str) -> bool {
    path.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
}

#[derive(Clone, Copy)]
pub(super) struct NamedFiles<'a> {
    pub(super) root: &'a Path,
    pub(super) budget: &'a Budget,
}

impl NamedFiles<'_> {
    /// The location of the file at `path`; `None` if it is missing or outside of the repository.
    pub(super) fn find(self, path: &str) -> Result<Option<PathBuf>> {
        let Some(file) = place(self.root, path) else { return Ok(None) };
        Ok(is_file(&file)?.then_some(file))
    }

    /// The bytes of a file of the repository; errors call it `what`.
    pub(super) fn read(self, file: &Path, what: &str) -> Result<Vec<u8>> {
        let content = Content::open(file, self.budget)?;
        content.read_vec(0..content.len(), INDEX_MAX, what)
    }

    pub(super) fn open(self, path: &str) -> Result<Option<Content>> {
        self.find(path)?.map(|file| Content::open(file, self.budget)).transpose()
    }

    /// The problems of a file: it is missing or unreadable, or differs from the index in the properties that `compare`
    /// returns.
    pub(super) fn faults<P: AsRef<str>>(
        self,
        path: &str,
        compare: impl FnOnce(&Content) -> Result<Vec<P>>,
    ) -> Vec<Problem> {
        let file = path.to_owned();
        match self.open(path).and_then(|content| content.as_ref().map(compare).transpose()) {
            Ok(Some(properties)) => {
                let reasons = properties
                    .iter()
                    .map(|property| format!("its {} differs from the index", property.as_ref()));
                let fault = |reason| Problem::PackageMismatch { file: file.clone(), reason };
                reasons.map(fault).collect()
            }
            Ok(None) => vec![Problem::PackageMissing { file }],
            Err(error) => vec![Problem::PackageMismatch { file, reason: error.to_string() }],
        }
    }
}

//! The folder with the metadata of a wheel.

use std::collections::BTreeSet;

use rockpack_base::error::{Error, Result};
use rockpack_base::formats::wheel::{Metadata, Record, WheelFile};
use rockpack_base::formats::zip::ZipReader;

use super::DIST_INFO;

/// The longest METADATA or WHEEL that is read, in bytes: PyPI takes descriptions of some hundred KiB.
const HEADERS_LIMIT: u64 = 16 << 20;

/// The longest RECORD that is read, in bytes: a row for each of a million files.
const RECORD_LIMIT: u64 = 128 << 20;

/// The texts in the folder with the metadata.
pub(super) struct Texts {
    pub(super) folder: String,
    pub(super) record: Record,
    pub(super) metadata: Metadata,
    pub(super) headers: WheelFile,
}

impl Texts {
    /// Reads those of the one folder that is called like one.
    pub(super) fn read(zip: &ZipReader) -> Result<Self> {
        let firsts = zip.members().iter().filter_map(|member| member.name.split_once('/'));
        let folders: BTreeSet<&str> = firsts
            .filter(|(first, _)| first.ends_with(DIST_INFO))
            .map(|(first, _)| first)
            .collect();
        let mut names = folders.into_iter();
        let folder = match (names.next(), names.next()) {
            (Some(folder), None) => folder,
            (None, _) => {
                return Err(Error::malformed("has no .dist-info folder, so it is no wheel"));
            }
            (Some(one), Some(other)) => {
                let message = format!("has two .dist-info folders, {one} and {other}");
                return Err(Error::malformed(message));
            }
        };
        Ok(Self {
            record: Record::parse(&text(zip, folder, "RECORD", RECORD_LIMIT)?)?,
            metadata: Metadata::parse(&text(zip, folder, "METADATA", HEADERS_LIMIT)?)?,
            headers: WheelFile::parse(&text(zip, folder, "WHEEL", HEADERS_LIMIT)?)?,
            folder: folder.to_owned(),
        })
    }
}

fn text(zip: &ZipReader, folder: &str, name: &str, limit: u64) -> Result<Vec<u8>> {
    let path = format!("{folder}/{name}");
    let member = zip
        .members()
        .iter()
        .find(|member| member.name == path)
        .ok_or_else(|| Error::malformed(format!("has no {path}, and installers refuse it")))?;
    zip.read(member, limit, name)
}

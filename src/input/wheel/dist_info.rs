//! The `dist-info` folder of a wheel.

use std::collections::BTreeSet;

use rockpack_base::error::{Error, Kind, Result, ResultExt};
use rockpack_base::formats::wheel::{Metadata, Record, Version, WheelFile, WheelName, normalized};
use rockpack_base::formats::zip::ZipReader;

use crate::report::{Finding, Findings};

/// The suffix of such folders' names.
const ENDING: &str = ".dist-info";

/// Longest METADATA in bytes. It has the whole README of a project.
const METADATA_LIMIT: u64 = 16 << 20;

/// Longest WHEEL in bytes. It has a line for each tag.
const WHEEL_LIMIT: u64 = 64 << 10;

/// Rows that RECORD may have beyond two for each member.
const ROWS_MORE: usize = 1024;

/// Longest RECORD in bytes: some hundred for each of a hundred thousand files.
const RECORD_LIMIT: u64 = 64 << 20;

/// The files of the folder, read.
pub(super) struct DistInfo {
    /// The name of the folder.
    pub folder: String,
    pub metadata: Metadata,
    pub wheel_file: WheelFile,
    pub record: Record,
}

impl DistInfo {
    /// Reads the folder of the wheel in `zip`, whose file is called `name`.
    pub fn read(zip: &ZipReader, name: &WheelName) -> Result<Self> {
        let folder = folder(zip)?;
        let metadata = Metadata::parse(&read_file(zip, &folder, "METADATA", METADATA_LIMIT)?)?;
        let wheel_file = WheelFile::parse(&read_file(zip, &folder, "WHEEL", WHEEL_LIMIT)?)?;
        let record = read_file(zip, &folder, "RECORD", RECORD_LIMIT)?;
        refuse_long(&record, zip.members().len())?;
        let record = Record::parse(&record).context(|| format!("reading {folder}/RECORD"))?;
        refuse_another(&metadata, name)?;
        refuse_another_folder(&folder, name)?;
        Ok(Self { folder, metadata, wheel_file, record })
    }
}

fn read_file(zip: &ZipReader, folder: &str, file: &str, limit: u64) -> Result<Vec<u8>> {
    let path = format!("{folder}/{file}");
    let member = zip.members().iter().find(|member| member.name == path).ok_or_else(|| {
        let error = Error::malformed(format!("has no {path}, so it is no wheel"));
        error.hint("build the wheel anew: METADATA, WHEEL and RECORD make an archive one")
    })?;
    zip.read(member, limit, file)
}

/// Refuses a RECORD with far more rows than there are members, whose number the budget limits.
fn refuse_long(record: &[u8], members: usize) -> Result<()> {
    let rows = record.iter().filter(|byte| matches!(byte, b'\n' | b'\r')).count();
    if rows / 2 <= members.saturating_mul(2) + ROWS_MORE {
        return Ok(());
    }
    let message = format!("has some {rows} rows, and the wheel has {members} members");
    Err(Error::new(Kind::Limit, message).structure("RECORD").hint("build the wheel anew"))
}

/// The one folder at the top with such a name.
fn folder(zip: &ZipReader) -> Result<String> {
    let tops = zip.members().iter().filter_map(|member| member.name.split_once('/'));
    let folders: BTreeSet<&str> =
        tops.map(|(top, _)| top).filter(|top| top.ends_with(ENDING)).collect();
    let mut found = folders.into_iter();
    match (found.next(), found.next()) {
        (Some(folder), None) => Ok(folder.to_owned()),
        (None, _) => {
            let error = Error::malformed("has no dist-info folder, so it is no wheel");
            Err(error.hint("build the wheel anew"))
        }
        (Some(one), Some(other)) => {
            let message = format!("has two dist-info folders, {one} and {other}");
            Err(Error::new(Kind::Conflict, message).hint("a wheel holds one distribution"))
        }
    }
}

/// Tells whether two spellings are equal as versions.
fn is_version(text: &str, version: Option<&Version>) -> bool {
    text.parse::<Version>().is_ok_and(|own| Some(&own) == version)
}

fn refuse_another(metadata: &Metadata, name: &WheelName) -> Result<()> {
    let version = name.parsed_version();
    if version.is_none() {
        let message = format!("has the version {}, which is none by PEP 440", name.version);
        return Err(Error::malformed(message).hint("pip installs no such wheel: build it anew"));
    }
    let (own_name, own_version) = (metadata.name(), metadata.version());
    let is_same = normalized(own_name) == normalized(&name.distribution);
    if is_same && is_version(own_version, version.as_ref()) {
        return Ok(());
    }
    let message = format!("is {own_name} {own_version} by its METADATA");
    Err(Error::new(Kind::Conflict, message)
        .hint("pip refuses a wheel whose METADATA contradict its file name: rename or rebuild it"))
}

fn refuse_another_folder(folder: &str, name: &WheelName) -> Result<()> {
    let stem = folder.strip_suffix(ENDING).unwrap_or(folder);
    let (own, version) = stem.split_once('-').unwrap_or((stem, ""));
    let is_same = normalized(own) == normalized(&name.distribution);
    if is_same && is_version(&version.replace('_', "-"), name.parsed_version().as_ref()) {
        return Ok(());
    }
    let message = format!("has the folder {folder}, which is not that of its file name");
    Err(Error::new(Kind::Conflict, message).hint("rename or rebuild the wheel"))
}

/// Notes tags and a build number of WHEEL that contradict the file name. The file name decides.
pub(super) fn note_tags(file: &WheelFile, name: &WheelName, findings: &mut Findings) {
    let of_name = WheelFile::tags_of(name);
    let own = file.tags();
    let same: bool = own.iter().collect::<BTreeSet<_>>() == of_name.iter().collect();
    if !same || file.build() != name.build.as_deref() {
        let (wheel, build) = (name.to_string(), file.build().map(str::to_owned));
        findings.add(Finding::WheelTagsDiffer { wheel, tags: own, build });
    }
}

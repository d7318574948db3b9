//! The only writer of wheels.
//!
//! Members are sorted by name, those of `dist-info` last, and RECORD at the end. Members of the input are copied
//! without recompression, kernel archives are stored, and other members are deflated on all cores. Each member is read
//! once, also for its digest in RECORD.

use std::collections::BTreeMap;
use std::path::Path;

use rockpack_archive::wheel::{RecordRow, WheelArchive, WheelName};
use rockpack_archive::zip::{DosTime, WrittenMember, ZipMember, ZipWriter};
use rockpack_core::content::{Content, hex};
use rockpack_core::error::{Error, Result, ResultExt};
use rockpack_core::run::Budget;
use rockpack_emit::Staging;
use rockpack_package::receipt::wheels::{WheelKind, WheelRecord};
use rockpack_report::{Findings, Progress, PypiRefusal, Stage, found};
use rockpack_split::input::wheel::Wheel;

use crate::plan::{
    FILE_MODE, GENERATOR, MemberSource, PlannedMember, PlannedWheel, record_of_copy,
};

/// PyPI's limit for the size of a file, in bytes, unless it allows a project more.
const PYPI_SIZE: u64 = 100 << 20;

pub(crate) struct WriteOptions<'a> {
    pub staging: &'a Staging,
    /// The time of all members, in seconds since 1970.
    pub time: i64,
    pub budget: &'a Budget,
    pub progress: &'a dyn Progress,
}

/// Writes `packed`, and frees its members.
pub(crate) fn write(packed: PlannedWheel, options: &WriteOptions<'_>) -> Result<WheelRecord> {
    let PlannedWheel { record, dist_info, members, .. } = packed;
    options.progress.begin(Stage::Emit);
    let written = write_members(&dist_info, members, &record.file_name, options);
    options.progress.end(Stage::Emit);
    let installed_size = written.context(|| format!("writing {}", record.file_name))?;
    sealed(WheelRecord { installed_size, ..record }, options)
}

/// Writes a copy of a staged device wheel with the tags of `name`.
pub(crate) fn retag(
    record: &WheelRecord,
    name: &WheelName,
    options: &WriteOptions<'_>,
) -> Result<WheelRecord> {
    let (file_name, staging) = (name.to_string(), options.staging);
    let written = Content::open(staging.path(&record.file_name), options.budget)?;
    let archive = WheelArchive::open(written)?;
    options.progress.expect(Stage::Emit, record.installed_size);
    let mut writer = Writer::new(&file_name, options)?;
    let own = |file: &str| format!("{}/{file}", archive.dist_info);
    for member in archive.zip.members().iter().filter(|it| it.name != own("RECORD")) {
        if member.name == own("WHEEL") {
            let text = Content::of_bytes(archive.wheel_file.of(name, GENERATOR));
            let source = MemberSource::Generated(text);
            writer.member(member.name.clone(), &PlannedMember { mode: FILE_MODE, source })?;
            continue;
        }
        let row = archive.record.rows.get(&member.name).and_then(|row| row.digest.as_ref());
        let sha256 = row.and_then(|digest| digest.bytes.as_slice().try_into().ok());
        let sha256 = sha256.ok_or_else(|| Error::bug("a member has no row"))?;
        let mode = member.mode.unwrap_or(FILE_MODE);
        writer.kept(member, mode, &archive.zip.stored(member)?, sha256)?;
    }
    let installed_size = writer.finish(&own("RECORD"))?;
    sealed(WheelRecord { file_name, installed_size, ..record.clone() }, options)
}

/// Stages the wheel at `path` as `name`, instead of a device wheel with the same files.
pub(crate) fn adopt(
    record: &WheelRecord,
    name: &WheelName,
    path: &Path,
    options: &WriteOptions<'_>,
) -> Result<WheelRecord> {
    let content = Content::open(path, options.budget)?;
    let archive = WheelArchive::open(content.clone()).map_err(|error| error.file(path))?;
    archive.check(name).map_err(|error| error.file(path))?;
    let list = format!("{}/RECORD", archive.dist_info);
    let members = archive.zip.members().iter().filter(|member| member.name != list);
    let (file_name, installed_size) = (name.to_string(), members.map(|it| it.size).sum());
    content
        .write_to(&mut options.staging.create(&file_name)?, &options.staging.path(&file_name))?;
    sealed(WheelRecord { file_name, installed_size, ..record.clone() }, options)
}

/// Syncs a complete wheel, and sets the size and digest in its record.
fn sealed(record: WheelRecord, options: &WriteOptions<'_>) -> Result<WheelRecord> {
    let content = options.staging.seal(&record.file_name, options.budget)?;
    let (size, sha256) = (content.len(), hex(&content.sha256()?));
    Ok(WheelRecord { size, sha256, ..record })
}

pub(crate) fn copy(wheel: &Wheel, options: &WriteOptions<'_>) -> Result<WheelRecord> {
    let record = record_of_copy(wheel);
    let mut file = options.staging.create(&record.file_name)?;
    let content = Content::open(&wheel.path, options.budget)?;
    content.write_to(&mut file, &options.staging.path(&record.file_name))?;
    let list = format!("{}/RECORD", wheel.dist_info);
    let members = wheel.members.iter().filter(|(name, _)| **name != list);
    let installed_size = members.map(|(_, member)| member.zip.size).sum();
    sealed(WheelRecord { installed_size, ..record }, options)
}

/// Findings about new wheels that PyPI would refuse.
pub(crate) fn pypi_refusals(all: &[WheelRecord]) -> Result<Findings> {
    let mut findings = Findings::default();
    for WheelRecord { file_name, size, .. } in all.iter().filter(|it| it.role != WheelKind::Copy) {
        let WheelName { version, platforms, .. } = file_name.parse()?;
        let mut reasons = Vec::new();
        if version.contains('+') {
            reasons.push(PypiRefusal::LocalVersion { version });
        }
        let bare = platforms.into_iter().filter(|platform| platform.starts_with("linux_"));
        reasons.extend(bare.map(|platform| PypiRefusal::Platform { platform }));
        if *size > PYPI_SIZE {
            reasons.push(PypiRefusal::Size { size: *size, limit: PYPI_SIZE });
        }
        if !reasons.is_empty() {
            findings.add(found::WheelNotForPypi { wheel: file_name.clone(), reasons });
        }
    }
    Ok(findings)
}

/// Findings about wheels whose split saves no download for any GPU, and about releases that need more space in an index
/// than before. `sizes` has the bytes of the split wheels, by file name.
pub(crate) fn savings(sizes: &BTreeMap<String, u64>, all: &[WheelRecord]) -> Findings {
    let mut findings = Findings::default();
    let mut releases: BTreeMap<(&str, &str), (u64, u64)> = BTreeMap::new();
    for record in all.iter().filter(|it| it.role != WheelKind::Copy) {
        let host = all.iter().find(|it| it.file_name == record.made_of).unwrap_or(record);
        let release = releases.entry((&host.distribution, &host.version)).or_default();
        release.0 += sizes.get(&record.file_name).copied().unwrap_or_default();
        release.1 += record.size;
    }
    for ((distribution, version), (size, set_size)) in releases {
        if set_size > size {
            let release = format!("{distribution} {version}");
            findings.add(found::WheelSetLarger { release, size, set_size });
        }
    }
    for (wheel, size) in sizes {
        let is_made = |it: &&WheelRecord| it.made_of == *wheel || it.also_made_of.contains(wheel);
        let made: Vec<&WheelRecord> = all.iter().filter(is_made).collect();
        let for_group = |group: &String| -> u64 {
            let is_needed =
                |it: &&&WheelRecord| it.role == WheelKind::Host || it.groups.contains(group);
            made.iter().filter(is_needed).map(|it| it.size).sum()
        };
        let least = made.iter().flat_map(|it| &it.groups).map(for_group).min();
        // Different zlib levels alone can save one percent.
        if let Some(least_size) = least.filter(|least| *least > size - size / 100) {
            let (wheel, size) = (wheel.clone(), *size);
            findings.add(found::WheelSavesNothing { wheel, size, least_size });
        }
    }
    findings
}

/// Writes the members, and returns the size of all except RECORD.
fn write_members(
    dist_info: &str,
    members: BTreeMap<String, PlannedMember>,
    file_name: &str,
    options: &WriteOptions<'_>,
) -> Result<u64> {
    let mut writer = Writer::new(file_name, options)?;
    let own = format!("{dist_info}/");
    let (last, first): (BTreeMap<_, _>, BTreeMap<_, _>) =
        members.into_iter().partition(|(name, _)| name.starts_with(&own));
    for (name, member) in first.into_iter().chain(last) {
        writer.member(name, &member)?;
    }
    writer.finish(&format!("{dist_info}/RECORD"))
}

struct Writer<'a> {
    zip: ZipWriter,
    options: &'a WriteOptions<'a>,
    installed_size: u64,
    rows: String,
}

impl<'a> Writer<'a> {
    fn new(file_name: &str, options: &'a WriteOptions<'a>) -> Result<Self> {
        let WriteOptions { staging, time, .. } = options;
        let (file, path) = (staging.create(file_name)?, staging.path(file_name));
        let zip = ZipWriter::new(file, &path, DosTime::new(*time));
        Ok(Self { zip, options, installed_size: 0, rows: String::new() })
    }

    fn member(&mut self, name: String, member: &PlannedMember) -> Result<()> {
        let PlannedMember { mode, source } = member;
        let written = match source {
            MemberSource::Copied(kept) => {
                let zip = ZipMember { name, ..kept.zip.clone() };
                return self.kept(&zip, *mode, &kept.stored, kept.sha256);
            }
            MemberSource::Stored(content) => self.zip.store(&name, *mode, content)?,
            MemberSource::Generated(content) => self.zip.deflate(&name, *mode, content)?,
            MemberSource::Fat(path) => {
                return Err(Error::bug("a fat binary is not packed").structure(path.as_str()));
            }
        };
        self.list(&name, &written);
        Ok(())
    }

    /// Copies a member of another archive with its compressed bytes `stored`.
    fn kept(
        &mut self,
        member: &ZipMember,
        mode: u32,
        stored: &Content,
        sha256: [u8; 32],
    ) -> Result<()> {
        self.zip.copy(member, mode, stored)?;
        self.list(&member.name, &WrittenMember { size: member.size, sha256 });
        Ok(())
    }

    fn list(&mut self, name: &str, written: &WrittenMember) {
        self.options.progress.advance(Stage::Emit, written.size);
        self.installed_size += written.size;
        self.rows.push_str(&RecordRow::of(&written.sha256, written.size).line(name));
    }

    fn finish(mut self, record: &str) -> Result<u64> {
        self.rows.push_str(&RecordRow::default().line(record));
        self.zip.deflate(record, FILE_MODE, &Content::of_bytes(self.rows))?;
        self.zip.finish()?;
        Ok(self.installed_size)
    }
}

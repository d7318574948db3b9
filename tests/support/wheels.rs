//! Python wheels, made and changed member by member.
//!
//! A separate writer stores the members, so a wheel can have content that no program writes, such as links
//! and duplicate names.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rockpack_archive::wheel::RecordRow;
use rockpack_archive::zip::ZipReader;
use rockpack_core::content::Content;
use sha2::{Digest as _, Sha256};

/// The mode of ordinary files.
pub const PLAIN: u32 = 0o100_644;

/// A file in a wheel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WheelFile {
    pub bytes: Vec<u8>,
    /// The mode, including the bits for the file type.
    pub mode: u32,
}

/// A wheel as a set of files.
#[derive(Debug, Clone)]
pub struct LooseWheel {
    /// The wheel's file name.
    pub name: String,
    pub files: BTreeMap<String, WheelFile>,
}

impl LooseWheel {
    /// A wheel with METADATA and WHEEL that fit its name; `fields` are further fields of METADATA.
    pub fn new(name: &str, fields: &str) -> Self {
        let mut wheel = Self { name: name.to_owned(), files: BTreeMap::new() };
        let parts: Vec<&str> = name.trim_end_matches(".whl").split('-').collect();
        let (distribution, version) = (parts[0], parts[1]);
        let tag = parts[parts.len() - 3..].join("-");
        let metadata =
            format!("Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n{fields}");
        let headers = format!("Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {tag}\n");
        wheel.add(&wheel.info("METADATA"), metadata);
        wheel.add(&wheel.info("WHEEL"), headers);
        wheel
    }

    /// Reads a wheel file.
    pub fn read(path: &Path) -> Self {
        let zip = ZipReader::open(Content::of_bytes(fs::read(path).unwrap())).unwrap();
        let files = zip.members().iter().map(|member| {
            let bytes = zip.read(member, u64::MAX, "member").unwrap();
            (member.name.clone(), WheelFile { bytes, mode: member.mode.unwrap_or(PLAIN) })
        });
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        Self { name, files: files.collect() }
    }

    /// The path of a `dist-info` file.
    pub fn info(&self, file: &str) -> String {
        let mut parts = self.name.split('-');
        let (distribution, version) = (parts.next().unwrap(), parts.next().unwrap());
        format!("{distribution}-{version}.dist-info/{file}")
    }

    /// Adds an ordinary file, or replaces its content.
    pub fn add(&mut self, path: &str, bytes: impl Into<Vec<u8>>) {
        self.files.insert(path.to_owned(), WheelFile { bytes: bytes.into(), mode: PLAIN });
    }

    /// The text of a file.
    pub fn text(&self, path: &str) -> String {
        String::from_utf8(self.files[path].bytes.clone()).unwrap()
    }

    /// Replaces `old` in a text, which must contain it.
    pub fn replace(&mut self, path: &str, old: &str, new: &str) {
        let text = self.text(path);
        assert!(text.contains(old), "{old} in {text}");
        self.add(path, text.replace(old, new));
    }

    /// Updates RECORD to match the other files.
    pub fn record(&mut self) {
        let own = self.info("RECORD");
        let others = self.files.iter().filter(|(path, _)| **path != own);
        let mut text: String = others
            .map(|(path, file)| {
                let sha256 = Sha256::digest(&file.bytes).into();
                RecordRow::of(&sha256, file.bytes.len() as u64).line(path)
            })
            .collect();
        text.push_str(&RecordRow::default().line(&own));
        self.add(&own, text);
    }

    /// Writes the wheel into `folder`, with a matching RECORD.
    pub fn write(&mut self, folder: &Path) -> PathBuf {
        self.record();
        self.write_as_is(folder)
    }

    /// Writes the wheel into `folder` without touching RECORD.
    pub fn write_as_is(&self, folder: &Path) -> PathBuf {
        let path = folder.join(&self.name);
        let members = self.files.iter().map(|(path, file)| (path.as_str(), file));
        fs::write(&path, archive(members)).unwrap();
        path
    }
}

/// A ZIP archive of stored members.
pub fn archive<'a>(members: impl Iterator<Item = (&'a str, &'a WheelFile)>) -> Vec<u8> {
    let (mut bytes, mut headers, mut count) = (Vec::new(), Vec::new(), 0_u16);
    for (name, file) in members {
        let size = u32::try_from(file.bytes.len()).unwrap();
        // From the flags to the length of the extra fields: UTF-8, stored, 1980-01-01.
        let mut common = vec![0, 8, 0, 0, 0, 0, 0x21, 0];
        common.extend(crc32(&file.bytes).to_le_bytes());
        common.extend(size.to_le_bytes());
        common.extend(size.to_le_bytes());
        common.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
        common.extend([0, 0]);
        let offset = u32::try_from(bytes.len()).unwrap();
        bytes.extend(b"PK\x03\x04\x14\x00");
        bytes.extend(&common);
        bytes.extend(name.as_bytes());
        bytes.extend(&file.bytes);
        headers.extend(b"PK\x01\x02\x14\x03\x14\x00");
        headers.extend(&common);
        headers.extend([0; 6]);
        headers.extend((file.mode << 16).to_le_bytes());
        headers.extend(offset.to_le_bytes());
        headers.extend(name.as_bytes());
        count += 1;
    }
    let offset = u32::try_from(bytes.len()).unwrap();
    let size = u32::try_from(headers.len()).unwrap();
    bytes.extend(headers);
    bytes.extend(b"PK\x05\x06\x00\x00\x00\x00");
    bytes.extend(count.to_le_bytes());
    bytes.extend(count.to_le_bytes());
    bytes.extend(size.to_le_bytes());
    bytes.extend(offset.to_le_bytes());
    bytes.extend([0, 0]);
    bytes
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    let byte = |crc: u32, byte: &u8| (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc));
    !bytes.iter().fold(u32::MAX, byte)
}

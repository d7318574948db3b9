//! A `.deb` as its two archives, not compressed, so that single bytes can be changed.

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::process::Command;

use md5::Digest as _;
use support::{hex, tools};

/// Bytes of a block of tar, and of its headers.
pub const BLOCK: usize = 512;
/// The position of the checksum in a header.
const CHECKSUM: Range<usize> = 148..156;
/// The position of the size in a header.
const SIZE: Range<usize> = 124..136;

/// The archives of a package.
#[derive(Clone)]
pub struct LooseDeb {
    control: Vec<u8>,
    pub data: Vec<u8>,
}

/// A member of an archive.
#[derive(Debug, Clone)]
pub struct Member {
    /// The path from the root, without `./` and a slash at the end.
    pub path: String,
    /// The offset of the header.
    pub header: usize,
    /// The range of the content.
    pub content: Range<usize>,
}

impl LooseDeb {
    /// Has dpkg-deb take the package apart.
    pub fn read(package: &Path) -> Self {
        let [control, data] = ["--ctrl-tarfile", "--fsys-tarfile"]
            .map(|option| tools::run(Command::new("dpkg-deb").arg(option).arg(package)).stdout);
        Self { control, data }
    }

    /// The member at a path.
    pub fn member(&self, path: &str) -> Member {
        members(&self.data).into_iter().find(|member| member.path == path).unwrap()
    }

    /// The content of the member at a path.
    pub fn content(&self, path: &str) -> &[u8] {
        &self.data[self.member(path).content]
    }

    /// The package with other content at a path.
    pub fn with(&self, path: &str, bytes: &[u8]) -> Self {
        let mut changed = self.clone();
        let Member { header, content, .. } = self.member(path);
        let mut padded = bytes.to_vec();
        padded.resize(bytes.len().next_multiple_of(BLOCK), 0);
        let end = content.start + content.len().next_multiple_of(BLOCK);
        changed.data.splice(content.start..end, padded);
        let size = format!("{:011o}\0", bytes.len());
        changed.data[header..][SIZE].copy_from_slice(size.as_bytes());
        changed.seal(header);
        changed
    }

    /// The package with other bytes at an offset of the header of the member at a path.
    pub fn with_field(&self, path: &str, at: usize, bytes: &[u8]) -> Self {
        let mut changed = self.clone();
        let header = self.member(path).header;
        changed.data[header + at..][..bytes.len()].copy_from_slice(bytes);
        changed.seal(header);
        changed
    }

    /// Makes the checksum of a header right.
    pub fn seal(&mut self, header: usize) {
        let block = &mut self.data[header..][..BLOCK];
        block[CHECKSUM].fill(b' ');
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[CHECKSUM].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }

    /// Writes the package, with md5sums of its current files.
    pub fn write(&self, package: &Path) {
        let mut control = self.control.clone();
        let sums = members(&control).into_iter().find(|member| member.path == "md5sums").unwrap();
        let text = String::from_utf8(control[sums.content.clone()].to_vec()).unwrap();
        let all = members(&self.data);
        let line = |line: &str| {
            let (sum, path) = line.split_once("  ").unwrap();
            let member = all.iter().find(|member| member.path == path);
            let content = member.and_then(|member| self.data.get(member.content.clone()));
            let new = content.map(|content| hex(&md5::Md5::digest(content)));
            format!("{}  {path}\n", new.as_deref().unwrap_or(sum))
        };
        let text: String = text.lines().map(line).collect();
        control[sums.content].copy_from_slice(text.as_bytes());
        let mut bytes = b"!<arch>\n".to_vec();
        let parts: [(&str, &[u8]); 3] =
            [("debian-binary", b"2.0\n"), ("control.tar", &control), ("data.tar", &self.data)];
        for (name, part) in parts {
            let len = part.len();
            bytes.extend(
                format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{len:<10}`\n", 0, 0, 0, "100644").bytes(),
            );
            bytes.extend(part);
            bytes.extend(vec![b'\n'; len % 2]);
        }
        fs::write(package, bytes).unwrap();
    }
}

/// The members of an archive.
pub fn members(tar: &[u8]) -> Vec<Member> {
    let (mut members, mut at) = (Vec::new(), 0);
    while let Some(block) = tar.get(at..at + BLOCK).filter(|block| block[0] != 0) {
        let name = text_field(block, 0..100);
        // Nothing is to be read behind a size that is no number.
        let Ok(len) = usize::from_str_radix(text_field(block, SIZE).trim(), 8) else { break };
        let path = name.trim_start_matches("./").trim_end_matches('/').to_owned();
        let content = at + BLOCK..at + BLOCK + len;
        members.push(Member { path, header: at, content });
        at += BLOCK + len.next_multiple_of(BLOCK);
    }
    members
}

fn text_field(block: &[u8], range: Range<usize>) -> String {
    let bytes = block[range].split(|byte| *byte == 0).next().unwrap();
    String::from_utf8_lossy(bytes).into_owned()
}

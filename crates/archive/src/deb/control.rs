//! The control archive: fields, sums, conffiles, triggers, maintainer scripts.
//!
//! A control file is one paragraph of `Name: value` lines; a line with a blank at its start continues the
//! field above, and ` .` encodes an empty line. Refused when writing: values with line breaks (a description
//! passes its lines separately), names with blanks or colons. [`super::fields`] reads control files.

use flate2::{Compression, GzBuilder};

use super::fields::fault;
use super::tar::TarWriter;
use crate::payload::{PayloadEntry, PayloadEntryKind, Treatment};
use rockpack_core::content::hex;
use rockpack_core::error::{Error, Result};

/// The shortest control archive that may be compressed. Only MD5 sums of hundreds of files make it as long.
const LONG: u64 = 64 << 10;

/// How many bytes of data are moved at most for each byte of the control archive if that is compressed.
const DATA_MOVED_MAX: u64 = 16;

/// The level of gzip. Most of the input is digests in hex, which no level shrinks by more than half.
const LEVEL: u32 = 6;

/// Whether a control archive of `control` bytes is compressed next to a data archive of `data` bytes.
pub fn is_compressed(control: u64, data: u64) -> bool {
    control >= LONG && control > data / DATA_MOVED_MAX
}

/// A field of the control file: its name and its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlField {
    /// The name, e.g. `Depends`.
    pub name: String,
    /// The first line and the continuation lines; an empty one is written as ` .`.
    pub lines: Vec<String>,
}

impl ControlField {
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), lines: vec![value.into()] }
    }

    fn check(&self) -> Result<()> {
        let named = !self.name.is_empty() && !self.name.starts_with(['#', '-']);
        if !named || !self.name.chars().all(|c| c.is_ascii_graphic() && c != ':') {
            return Err(fault(format!("`{}` is not a valid field name", self.name.escape_debug())));
        }
        let first = self.lines.first().map_or("", String::as_str);
        if first.trim().is_empty() || self.lines.iter().any(|line| line.contains(char::is_control))
        {
            return Err(fault(format!("field {} is empty or has control characters", self.name)));
        }
        if self.lines.iter().skip(1).any(|line| line == ".") {
            let message =
                format!("field {} has the line `.`, which means an empty line", self.name);
            return Err(fault(message));
        }
        Ok(())
    }

    fn render(&self) -> String {
        let lines = self.lines.iter().enumerate().map(|(index, line)| match index {
            0 => format!("{}: {line}\n", self.name),
            _ if line.is_empty() => " .\n".to_owned(),
            _ => format!(" {line}\n"),
        });
        lines.collect()
    }
}

/// The parts of the control archive that do not follow from the entries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Control {
    pub fields: Vec<ControlField>,
    pub triggers: Vec<String>,
    /// Maintainer scripts by name (`postinst`, …).
    pub scripts: Vec<(String, String)>,
}

const SCRIPTS: [&str; 4] = ["preinst", "postinst", "prerm", "postrm"];

impl Control {
    /// Refuses anything that dpkg would refuse or misread.
    pub fn check(&self) -> Result<()> {
        let mut faults: Vec<Error> = self.fields.iter().filter_map(|f| f.check().err()).collect();
        for (name, text) in &self.scripts {
            if !SCRIPTS.contains(&name.as_str()) {
                faults.push(fault(format!("dpkg knows no maintainer script {name}")));
            } else if !text.starts_with("#!") {
                faults.push(fault(format!("maintainer script {name} does not begin with #!")));
            }
        }
        if self.triggers.iter().any(|line| line.contains('\n')) {
            faults.push(fault("a line of triggers has a line break".to_owned()));
        }
        Error::gather(faults).map_or(Ok(()), Err)
    }

    fn fields_text(&self) -> String {
        self.fields.iter().map(ControlField::render).collect()
    }

    /// The control archive of a package whose data archive has `data` bytes: a gzip member of stored blocks, whose
    /// length does not depend on the sums, or compressed if that makes a package of many small files smaller.
    pub(super) fn archive(
        &self,
        entries: &[PayloadEntry],
        sums: &[[u8; 16]],
        stamp: u64,
        data: u64,
    ) -> Result<Vec<u8>> {
        let files = self.files(entries, sums);
        let stored = gzip(&files, stamp, Compression::none())?;
        if !is_compressed(stored.len() as u64, data) {
            return Ok(stored);
        }
        drop(stored);
        gzip(&files, stamp, Compression::new(LEVEL))
    }

    /// The longest possible control archive of a package whose sums and data are not known yet.
    pub(super) fn longest_archive(&self, entries: &[PayloadEntry], stamp: u64) -> Result<Vec<u8>> {
        let files = entries.iter().filter(|entry| entry.is_file()).count();
        gzip(&self.files(entries, &vec![[0; 16]; files]), stamp, Compression::none())
    }

    /// The files of the control archive that have a text.
    fn files(&self, entries: &[PayloadEntry], sums: &[[u8; 16]]) -> Vec<(PayloadEntry, String)> {
        let plain = [
            ("control", self.fields_text()),
            ("conffiles", conffiles(entries)),
            ("md5sums", md5sums(entries, sums)),
            ("triggers", self.triggers.iter().map(|line| format!("{line}\n")).collect()),
        ];
        let plain = plain.into_iter().map(|(name, text)| (name.to_owned(), 0o644, text));
        let scripts = self.scripts.iter().map(|(name, text)| (name.clone(), 0o755, text.clone()));
        let some = plain.chain(scripts).filter(|(_, _, text)| !text.is_empty());
        let files = some.map(|(path, mode, text)| {
            let (path, kind, size) = (path.into(), PayloadEntryKind::File, text.len() as u64);
            (PayloadEntry { path, kind, mode, size, treatment: Treatment::Plain }, text)
        });
        files.collect()
    }
}

fn gzip(files: &[(PayloadEntry, String)], stamp: u64, level: Compression) -> Result<Vec<u8>> {
    let gzip = GzBuilder::new().mtime(0).write(Vec::new(), level);
    let mut archive = TarWriter::new(gzip, stamp);
    archive.begin(&root())?;
    for (entry, text) in files {
        archive.begin(entry)?;
        archive.members.data(text.as_bytes())?;
        archive.members.end()?;
    }
    let gzip = archive.finish()?;
    gzip.finish().map_err(|e| Error::io_without_path("write control.tar.gz", e))
}

pub(super) fn root() -> PayloadEntry {
    PayloadEntry {
        path: "".into(),
        kind: PayloadEntryKind::Directory,
        mode: 0o755,
        size: 0,
        treatment: Treatment::Plain,
    }
}

fn conffiles(entries: &[PayloadEntry]) -> String {
    let conffiles = entries.iter().filter(|e| e.treatment == Treatment::Config);
    conffiles.map(|e| format!("/{}\n", e.path)).collect()
}

/// One line per regular file that is no conffile, as in `dh_md5sums`; `sums` has one sum per regular file.
fn md5sums(entries: &[PayloadEntry], sums: &[[u8; 16]]) -> String {
    let files = entries.iter().filter(|entry| entry.is_file()).zip(sums);
    let lengths = entries.iter().map(|entry| 2 * size_of::<[u8; 16]>() + entry.path.len() + 3);
    let mut lines = String::with_capacity(lengths.sum());
    for (entry, sum) in files.filter(|(entry, _)| entry.treatment != Treatment::Config) {
        lines.extend([&*hex(sum), "  ", &*entry.path, "\n"]);
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    use super::super::fields::parse;
    use super::*;

    #[test]
    fn fields_round_trip() {
        let description = ControlField {
            name: "Description".to_owned(),
            lines: ["short", "long", "", "more"].map(str::to_owned).to_vec(),
        };
        let control = Control {
            fields: vec![ControlField::new("Package", "x"), description],
            ..Control::default()
        };
        control.check().unwrap();
        let text = control.fields_text();
        assert_eq!(text, "Package: x\nDescription: short\n long\n .\n more\n");
        let fields = parse(&text).unwrap();
        assert_eq!(fields.get("Description").unwrap(), "short\nlong\n\nmore");
    }

    proptest! {
        #[test]
        fn fields_are_read_as_they_were_written(
            fields in btree_map("[!-~&&[^:#-]][!-~&&[^:]]{0,9}", vec("([!-~ä]([ -~ä]{0,9}[!-~])?)?", 1..4), 1..6)
        ) {
            let given = fields.iter().map(|(name, lines)| ControlField { name: name.clone(), lines: lines.clone() });
            let mut names = BTreeSet::new();
            let fields: Vec<ControlField> = given
                .filter(|field| field.check().is_ok() && names.insert(field.name.to_lowercase()))
                .collect();
            if fields.is_empty() {
                return Ok(());
            }
            let control = Control { fields: fields.clone(), ..Control::default() };
            let read = parse(&control.fields_text()).unwrap();
            let given: BTreeMap<String, String> =
                fields.into_iter().map(|f| (f.name, f.lines.join("\n"))).collect();
            prop_assert_eq!(read.to_map(), given);
        }
    }

    #[test]
    fn a_line_that_stands_for_an_empty_one_is_refused() {
        let lines = ["short", "."].map(str::to_owned).to_vec();
        let error = ControlField { name: "Description".to_owned(), lines }.check().unwrap_err();
        assert!(error.to_string().contains("means an empty line"), "{error}");
    }

    #[test]
    fn what_would_forge_a_field_is_refused() {
        for (name, value) in [("A", "x\nB: y"), ("A B", "x"), ("", "x"), ("A", " "), ("A:", "x")] {
            assert!(ControlField::new(name, value).check().is_err(), "{name:?} {value:?}");
        }
    }
}

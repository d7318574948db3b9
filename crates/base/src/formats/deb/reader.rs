//! Reads a `.deb` back, streaming, with everything checked that the format promises.
//!
//! Stricter than dpkg: exactly the three members, in order, one compressed stream each, nothing
//! behind any end, and in the control archive files alone. Refused, too: control files, with their
//! names and headers, of more than 256 MiB, and one named `control` of more than 4 MiB. Content is
//! compared with its stated MD5 sum by whoever visits the entries.

use std::collections::BTreeMap;
use std::io::{BufReader, Read};
use std::sync::Arc;

use super::fields::{self, ControlFields};
use super::lists::{Conffiles, Sums};
use super::tar_reader::DebMembers;
use crate::content::{Content, ContentReader};
use crate::error::{Error, Kind, Result};
use crate::formats::ar;
use crate::formats::compression::{Decoder, Method, decoder_fault};
use crate::formats::payload::{Digest, Marking, PayloadEntry, PayloadEntryKind, Visitor};
use crate::formats::tar::BLOCK;

/// A control archive is read into memory; md5sums of a million files stay below this.
const CONTROL_MAX: u64 = 256 << 20;

/// Fields and relations take many times the bytes that state them. Debian's longest control file is
/// of 75 KiB.
const FIELDS_MAX: u64 = 4 << 20;

/// Where the decoder of a member reads from.
type BufferedContent = BufReader<ContentReader>;

/// Control files by name.
type ControlFiles = BTreeMap<String, Arc<String>>;

/// An opened `.deb`.
#[derive(Debug)]
pub struct DebReader {
    data: Content,
    method: Method,
    fields: ControlFields,
    files: ControlFiles,
    sums: Sums,
    conffiles: Conffiles,
}

impl DebReader {
    /// Reads the control archive; the data archive stays where it is.
    pub fn open(package: Content) -> Result<Self> {
        let [control, data] = members(&package)?;
        let control_method = method(&control.name, "control.tar")?;
        let files = control_files(&package.slice(control.range)?, control_method)?;
        let text = |name: &str| files.get(name).cloned().unwrap_or_default();
        let at = |error: Error| error.at(&package.place(0));
        let fields = fields::parse(&text("control")).map_err(at)?;
        let sums = Sums::parse(text("md5sums")).map_err(at)?;
        let conffiles = Conffiles::parse(text("conffiles")).map_err(at)?;
        let method = method(&data.name, "data.tar")?;
        let data = package.slice(data.range)?;
        Ok(Self { data, method, fields, files, sums, conffiles })
    }

    /// The fields of the control file.
    pub fn control(&self) -> &ControlFields {
        &self.fields
    }

    /// The files of the control archive: name → text.
    pub fn control_files(&self) -> &BTreeMap<String, Arc<String>> {
        &self.files
    }

    /// The paths in md5sums, without leading slash. Visiting the entries gives each sum with its
    /// file; this list also shows those without a file.
    pub fn md5sums(&self) -> impl Iterator<Item = &str> {
        self.sums.paths()
    }

    /// Goes once through the data archive, in its order. The root directory is not visited.
    pub fn visit(&self, visitor: &mut Visitor<'_>) -> Result<()> {
        let mut members = DebMembers::new(decoder(&self.data, self.method)?);
        let place = self.data.place(0);
        while let Some(mut read) = members.next().map_err(|e| e.at(&place))? {
            if read.entry.path.is_empty() {
                if read.entry.kind != PayloadEntryKind::Directory {
                    return Err(Error::malformed("`./` is no directory").at(&place));
                }
                continue;
            }
            let path = &read.entry.path;
            read.declared = self.sums.get(path).copied().map(Digest::Md5);
            if self.conffiles.get(path).is_some() {
                read.entry.marking = Marking::Config;
            }
            visitor(&read, &mut members)?;
        }
        members.into_inner().finish().map_err(|e| e.at(&place)).map(drop)
    }
}

/// The text of the control file, without a look at the rest of the package but its framing: for
/// indexes, which take packages of other tools, too.
pub fn read_control(package: &Content) -> Result<String> {
    let [control, data] = members(package)?;
    method(&data.name, "data.tar")?;
    let method = method(&control.name, "control.tar")?;
    let mut files = control_files(&package.slice(control.range)?, method)?;
    let text = files.remove("control").map(Arc::unwrap_or_clone);
    text.ok_or_else(|| structure(package, "has no control file"))
}

/// The members behind `debian-binary`: control and data.
fn members(package: &Content) -> Result<[ar::ArMember; 2]> {
    let [version, control, data] = ar::members(package)?
        .try_into()
        .map_err(|_| structure(package, "does not have exactly three members"))?;
    if version.name != "debian-binary" {
        return Err(structure(package, "does not begin with debian-binary"));
    }
    let stated = package.slice(version.range)?;
    if stated.read_vec(0..stated.len(), 16, "debian-binary")? != super::FORMAT_VERSION {
        return Err(structure(package, "is not of format 2.0"));
    }
    Ok([control, data])
}

fn decoder(member: &Content, method: Method) -> Result<Decoder<BufferedContent>> {
    Decoder::new(BufReader::with_capacity(1 << 18, member.reader()), method)
}

fn method(name: &str, stem: &str) -> Result<Method> {
    let rest = name.strip_prefix(stem);
    let extension = rest.map(|rest| rest.strip_prefix('.').unwrap_or(rest));
    extension.and_then(Method::of_extension).ok_or_else(|| {
        Error::unsupported(format!("member {name} stands where {stem} with gz, xz or zst belongs"))
    })
}

fn control_files(member: &Content, method: Method) -> Result<ControlFiles> {
    let place = member.place(0);
    let mut members = DebMembers::new(decoder(member, method)?);
    let mut files = BTreeMap::new();
    let mut left = CONTROL_MAX;
    while let Some(read) = members.next().map_err(|e| e.at(&place))? {
        let is_file = is_control_file(&read.entry).map_err(|e| e.at(&place))?;
        let size = charge(&read.entry, &mut left).map_err(|e| e.at(&place))?;
        if !is_file {
            continue;
        }
        // Not by doubling: that would take twice the limit.
        let mut bytes = Vec::with_capacity(size);
        members.read_to_end(&mut bytes).map_err(|e| decoder_fault(e).at(&place))?;
        let name = read.entry.path;
        let text = String::from_utf8(bytes)
            .map_err(|_| Error::malformed(format!("{name} is no UTF-8")).at(&place))?;
        if files.insert(name.clone(), Arc::new(text)).is_some() {
            return Err(Error::malformed(format!("control archive has {name} twice")).at(&place));
        }
    }
    members.into_inner().finish().map_err(|e| e.at(&place))?;
    Ok(files)
}

/// Whether a member is a file, rather than the root. dpkg-deb unpacks whatever else is there: a link
/// in the place of `control` would stand for another file than the one that is read here.
fn is_control_file(entry: &PayloadEntry) -> Result<bool> {
    let name = &entry.path;
    match entry.kind {
        PayloadEntryKind::Directory if name.is_empty() => Ok(false),
        PayloadEntryKind::File if !name.contains('/') => Ok(true),
        _ => {
            let message = format!("control archive has ./{name}, which is no file right below ./");
            let hint = "a link could stand for another control file: rebuild it with files alone";
            Err(Error::unsupported(message).hint(hint))
        }
    }
}

/// The size of a member that, with its name and header, is within what is left.
fn charge(entry: &PayloadEntry, left: &mut u64) -> Result<usize> {
    let limit = |what: &str, most: u64| {
        Error::new(Kind::Limit, format!("{what} exceeds {most} bytes"))
            .hint("no package has as much: have it rebuilt")
    };
    if entry.path == "control" && entry.size > FIELDS_MAX {
        return Err(limit("control file", FIELDS_MAX));
    }
    let cost = entry.size + entry.path.len() as u64 + BLOCK as u64;
    let whole = left.checked_sub(cost);
    *left = whole.ok_or_else(|| limit("control archive", CONTROL_MAX))?;
    usize::try_from(entry.size).map_err(|_| limit("control archive", CONTROL_MAX))
}

fn structure(package: &Content, message: &str) -> Error {
    Error::malformed(message.to_owned()).structure(".deb").at(&package.place(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, size: u64) -> PayloadEntry {
        let (path, kind, marking) = (path.to_owned(), PayloadEntryKind::File, Marking::Plain);
        PayloadEntry { path, kind, mode: 0o644, size, marking }
    }

    #[test]
    fn control_files_of_many_or_long_names_are_refused() {
        for (name, size) in [("a".repeat(4000), 0), ("a".to_owned(), 0), ("a".to_owned(), 4000)] {
            let mut left = CONTROL_MAX;
            let most = CONTROL_MAX / (512 + name.len() as u64 + size);
            for _ in 0..most {
                charge(&file(&name, size), &mut left).unwrap();
            }
            let error = charge(&file(&name, size), &mut left).unwrap_err();
            assert_eq!(error.kind(), Kind::Limit);
        }
        let mut left = CONTROL_MAX;
        assert!(charge(&file("control", FIELDS_MAX), &mut left).is_ok());
        let error = charge(&file("control", FIELDS_MAX + 1), &mut left).unwrap_err();
        assert!(error.to_string().contains("control file exceeds 4194304 bytes"), "{error}");
    }
}

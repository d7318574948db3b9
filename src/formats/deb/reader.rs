//! Reads a `.deb` back, streaming, with everything checked that the format promises.
//!
//! Stricter than dpkg: exactly the three members, in order, one compressed stream each, nothing
//! behind any end, and in the control archive files alone. Content is compared with its stated MD5
//! sum by whoever visits the entries.

use std::collections::BTreeMap;
use std::io::{BufReader, Read};

use super::fields::{self, Fields};
use super::tar_reader::Members;
use crate::content::{Content, ContentReader, unhex};
use crate::error::{Error, Kind, Result};
use crate::formats::ar;
use crate::formats::compression::{Decoder, Method, decoder_fault};
use crate::formats::payload::{Digest, Entry, EntryKind, Marking, Visitor};

/// A control archive is read into memory; md5sums of a million files stay below this.
const CONTROL_MAX: u64 = 256 << 20;

/// Where the decoder of a member reads from.
type Source = BufReader<ContentReader>;

/// An opened `.deb`.
#[derive(Debug)]
pub struct Reader {
    data: Content,
    method: Method,
    fields: Fields,
    files: BTreeMap<String, String>,
    sums: BTreeMap<String, [u8; 16]>,
    conffiles: Vec<String>,
}

impl Reader {
    /// Reads the control archive; the data archive stays where it is.
    pub fn open(package: Content) -> Result<Self> {
        let [control, data] = members(&package)?;
        let control_method = method(&control.name, "control.tar")?;
        let files = control_files(&package.slice(control.range)?, control_method)?;
        let text = |name: &str| files.get(name).map_or("", String::as_str);
        let fields = fields::parse(text("control")).map_err(|e| e.at(&package.place(0)))?;
        let sums = sums(text("md5sums"))?;
        let conffiles = text("conffiles").lines().map(str::to_owned).collect();
        let method = method(&data.name, "data.tar")?;
        let data = package.slice(data.range)?;
        Ok(Self { data, method, fields, files, sums, conffiles })
    }

    /// The fields of the control file.
    pub fn control(&self) -> &Fields {
        &self.fields
    }

    /// The files of the control archive: name → text.
    pub fn control_files(&self) -> &BTreeMap<String, String> {
        &self.files
    }

    /// The paths in md5sums (without leading slash) and their sums; visiting the entries gives
    /// each sum with its file, this list also shows those without a file.
    pub fn md5sums(&self) -> &BTreeMap<String, [u8; 16]> {
        &self.sums
    }

    /// Goes once through the data archive, in its order. The root directory is not visited.
    pub fn visit(&self, visitor: &mut Visitor<'_>) -> Result<()> {
        let mut members = Members::new(decoder(&self.data, self.method)?);
        let place = self.data.place(0);
        while let Some(mut read) = members.next().map_err(|e| e.at(&place))? {
            if read.entry.path.is_empty() {
                if read.entry.kind != EntryKind::Directory {
                    return Err(Error::malformed("`./` is no directory").at(&place));
                }
                continue;
            }
            let path = &read.entry.path;
            read.declared = self.sums.get(path).copied().map(Digest::Md5);
            if self.conffiles.iter().any(|file| file.strip_prefix('/') == Some(path)) {
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
    files.remove("control").ok_or_else(|| structure(package, "has no control file"))
}

/// The members behind `debian-binary`: control and data.
fn members(package: &Content) -> Result<[ar::Member; 2]> {
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

fn decoder(member: &Content, method: Method) -> Result<Decoder<Source>> {
    Decoder::new(BufReader::with_capacity(1 << 18, member.reader()), method)
}

fn method(name: &str, stem: &str) -> Result<Method> {
    let rest = name.strip_prefix(stem);
    let extension = rest.map(|rest| rest.strip_prefix('.').unwrap_or(rest));
    extension.and_then(Method::of_extension).ok_or_else(|| {
        Error::unsupported(format!("member {name} stands where {stem} with gz, xz or zst belongs"))
    })
}

fn control_files(member: &Content, method: Method) -> Result<BTreeMap<String, String>> {
    let place = member.place(0);
    let mut members = Members::new(decoder(member, method)?);
    let mut files = BTreeMap::new();
    let mut left = CONTROL_MAX;
    while let Some(read) = members.next().map_err(|e| e.at(&place))? {
        if !is_control_file(&read.entry).map_err(|e| e.at(&place))? {
            continue;
        }
        left = left.checked_sub(read.entry.size).ok_or_else(|| {
            Error::new(Kind::Limit, format!("control archive exceeds {CONTROL_MAX} bytes"))
                .at(&place)
        })?;
        let mut bytes = Vec::new();
        members.read_to_end(&mut bytes).map_err(|e| decoder_fault(e).at(&place))?;
        let name = read.entry.path;
        let text = String::from_utf8(bytes)
            .map_err(|_| Error::malformed(format!("{name} is no UTF-8")).at(&place))?;
        if files.insert(name.clone(), text).is_some() {
            return Err(Error::malformed(format!("control archive has {name} twice")).at(&place));
        }
    }
    members.into_inner().finish().map_err(|e| e.at(&place))?;
    Ok(files)
}

/// Whether a member is a file, rather than the root. dpkg-deb unpacks whatever else is there: a link
/// in the place of `control` would stand for another file than the one that is read here.
fn is_control_file(entry: &Entry) -> Result<bool> {
    let name = &entry.path;
    match entry.kind {
        EntryKind::Directory if name.is_empty() => Ok(false),
        EntryKind::File if !name.contains('/') => Ok(true),
        _ => {
            let message = format!("control archive has ./{name}, which is no file right below ./");
            let hint = "a link could stand for another control file: rebuild it with files alone";
            Err(Error::unsupported(message).hint(hint))
        }
    }
}

fn sums(text: &str) -> Result<BTreeMap<String, [u8; 16]>> {
    let mut sums = BTreeMap::new();
    for line in text.lines() {
        let entry = line
            .split_once("  ")
            .and_then(|(sum, path)| Some((path.to_owned(), unhex::<16>(sum)?)));
        let (path, sum) = entry.ok_or_else(|| {
            let message = format!("`{}` is no sum and path", line.escape_debug());
            Error::malformed(message).structure("md5sums")
        })?;
        if sums.insert(path, sum).is_some() {
            return Err(Error::malformed("has a path twice").structure("md5sums"));
        }
    }
    Ok(sums)
}

fn structure(package: &Content, message: &str) -> Error {
    Error::malformed(message.to_owned()).structure(".deb").at(&package.place(0))
}

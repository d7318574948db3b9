//! A streaming reader of `.deb` files. It reads the data as dpkg's own tar reader does, and the control
//! archive as GNU tar does, because dpkg runs GNU tar for it.
//!
//! It is stricter than dpkg: control and data are one compressed stream each, nothing follows them, and the
//! control archive has only files, each once. Refused too: control files that exceed 256 MiB in total with
//! their names and headers, and a file `control` of more than 4 MiB, or of more than both 256 KiB and 64
//! times the packed bytes of the control archive. The visitor of the entries compares content with its stated
//! MD5 sum.

use std::collections::BTreeMap;
use std::io::{BufReader, Read};
use std::sync::Arc;

use super::fields::{self, ControlFields};
use super::framing::Framing;
use super::lists::{self, Conffiles, Sums, below_root};
use super::tar_reader::DebMembers;
use crate::payload::{Digest, PayloadEntryKind, ReadEntry, Treatment, Visitor};
use crate::tar::{Dialect, EntryType, TarMember, TarMembers};
use crate::tar_header::BLOCK;
use rockpack_core::compression::{Decoder, Method, decoder_fault};
use rockpack_core::content::{Content, ContentReader};
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::tree::TreePath;

/// Maximum size in bytes of control files, which are read into memory: md5sums of a million files have fewer.
const CONTROL_MAX: u64 = 256 << 20;

/// Longest control file in bytes. In memory it takes many times as much. Debian's longest has 75 KiB.
pub(crate) const FIELDS_MAX: u64 = 4 << 20;

/// Bytes of fields that any package may have, however small it is packed.
const FIELDS_BASE: u64 = 256 << 10;

/// Bytes of fields per packed byte of the control archive: normal text has about five.
const UNPACKED: u64 = 64;

/// The type of a folder in GNU tar's incremental archives, whose content is the names of its files.
const DUMPED_FOLDER: u8 = b'D';

type BufferedContent = BufReader<ContentReader>;

type ControlFiles = BTreeMap<String, Arc<String>>;

#[derive(Debug)]
pub struct DebReader {
    data: Content,
    name: String,
    /// The compression method of the data archive; `None` if rockpack cannot read it.
    method: Option<Method>,
    pub fields: ControlFields,
    sums: Sums,
    conffiles: Conffiles,
}

impl DebReader {
    /// Reads the control archive; the data archive is not read yet.
    pub fn open(package: Content) -> Result<Self> {
        let framing = Framing::read(&package)?;
        let (control, method) = (framing.control_method()?, framing.data_method()?);
        let member = package.slice(framing.control.range)?;
        let files = control_files(&member, control, |_| true)?;
        let fields = fields::parse_control(&text_of(&files, "control"))
            .map_err(|e| e.at(&package.place(0)))?;
        let sums = Sums::parse(text_of(&files, "md5sums")).map_err(|e| e.at(&package.place(0)))?;
        let conffiles =
            Conffiles::parse(text_of(&files, "conffiles")).map_err(|e| e.at(&package.place(0)))?;
        let data = package.slice(framing.data.range)?;
        let name = framing.data.name;
        Ok(Self { data, name, method, fields, sums, conffiles })
    }

    /// The paths in md5sums, without leading slash. Visiting the entries gives each sum with its file; this
    /// list also has those without a file.
    pub fn md5sums(&self) -> impl Iterator<Item = &str> {
        self.sums.paths()
    }

    /// The name of the data archive, if rockpack cannot read its compression method.
    pub fn unread(&self) -> Option<&str> {
        self.method.is_none().then_some(&self.name)
    }

    /// Visits the entries of the data archive once, in order, without the root directory.
    pub fn visit(&self, visitor: &mut Visitor<'_>) -> Result<()> {
        let place = self.data.place(0);
        let method = self.method.ok_or_else(|| unread(&self.name).at(&place))?;
        let mut members = DebMembers::new(decoder(&self.data, method)?);
        while let Some((mut entry, member)) = members.next().map_err(|e| e.at(&place))? {
            if entry.path.is_empty() {
                continue;
            }
            let sum = self.sums.get(&entry.path).filter(|_| entry.is_file());
            if self.conffiles.get(&entry.path).is_some() {
                entry.treatment = Treatment::Config;
            }
            let ([user, group], declared) = (member.owners(), sum.copied().map(Digest::Md5));
            let read = ReadEntry { entry, user, group, mtime: member.time(), declared };
            visitor(&read, &mut members)?;
        }
        members.into_inner().finish().map_err(|e| e.at(&place)).map(drop)
    }
}

/// The texts of the `wanted` files in the control archive of `package`, by name.
pub fn control_texts(package: &Content, wanted: &[&str]) -> Result<ControlFiles> {
    let framing = Framing::read(package)?;
    let method = framing.control_method()?;
    let member = package.slice(framing.control.range)?;
    let mut files = control_files(&member, method, |name| wanted.contains(&name))?;
    files.retain(|name, _| wanted.contains(&name.as_str()));
    Ok(files)
}

fn text_of(files: &ControlFiles, name: &str) -> Arc<String> {
    files.get(name).cloned().unwrap_or_default()
}

/// The part of a package that an index is made of: the control archive. It accepts packages of other tools,
/// and reads nothing else but the framing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DebFront {
    pub control: String,
    sums: Arc<String>,
    conffiles: Arc<String>,
}

impl DebFront {
    pub fn read(package: &Content) -> Result<Self> {
        let mut files = control_texts(package, &["control", "md5sums", "conffiles"])?;
        let control = files.remove("control").map(Arc::unwrap_or_clone).ok_or_else(|| {
            let error = Error::malformed("has no control file").structure("control archive");
            error.at(&package.place(0)).hint("dpkg cannot read it: build it again")
        })?;
        let sums = files.remove("md5sums").unwrap_or_default();
        let conffiles = files.remove("conffiles").unwrap_or_default();
        Ok(Self { control, sums, conffiles })
    }

    /// The files in the lists of the control archive, without leading slash: all regular files of a package
    /// that has both lists. Invalid lines are ignored.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        lists::paths(&self.sums, &self.conffiles)
    }
}

/// Size of the read-ahead buffer. A shorter member gets a buffer of its own length, because indexing many small
/// packages would otherwise fragment the memory.
const READ_AHEAD: u64 = 1 << 18;

fn decoder(member: &Content, method: Method) -> Result<Decoder<BufferedContent>> {
    let capacity = member.len().min(READ_AHEAD) as usize;
    Decoder::new(BufReader::with_capacity(capacity, member.reader()), method)
}

fn unread(name: &str) -> Error {
    let message = format!("{name} is compressed in a way that rockpack does not read");
    let hint = "rockpack reads .gz, .xz, .zst and .lzma, so nothing that the package installs can be \
                looked at: build it again with one of them";
    Error::unsupported(message).structure(name).hint(hint)
}

/// The files of a control archive, without the text of those that are not `wanted`.
fn control_files(
    member: &Content,
    method: Method,
    wanted: impl Fn(&str) -> bool,
) -> Result<ControlFiles> {
    let place = member.place(0);
    let mut members = TarMembers::new(decoder(member, method)?, Dialect::Control);
    let mut files = BTreeMap::new();
    let mut left = CONTROL_MAX;
    while let Some(read) = members.next_member().map_err(|e| e.at(&place))? {
        let name = control_name(&read).map_err(|e| e.at(&place))?.to_owned();
        let size = charge(&name, read.size, &mut left)
            .and_then(|size| check_ratio(&name, read.size, member.len()).map(|()| size))
            .map_err(|e| e.at(&place))?;
        if name.is_empty() {
            continue;
        }
        let mut bytes = Vec::new();
        if wanted(&name) {
            // A growing buffer would take twice the limit.
            bytes.reserve_exact(size);
            members.read_to_end(&mut bytes).map_err(|e| decoder_fault(e).at(&place))?;
        }
        let text = String::from_utf8(bytes).map_err(|_| {
            let hint = "dpkg and apt read it as UTF-8: build the package with UTF-8 texts";
            Error::malformed(format!("{name} is not UTF-8")).at(&place).hint(hint)
        })?;
        if files.insert(name.clone(), Arc::new(text)).is_some() {
            let hint = "dpkg reads the last and apt the first: build the package again";
            let error = Error::malformed(format!("control archive has {name} twice"));
            return Err(error.at(&place).hint(hint));
        }
    }
    members.into_inner().finish().map_err(|e| e.at(&place))?;
    Ok(files)
}

/// The name of a control file, in any spelling; empty for the root. Other kinds of members are refused:
/// dpkg-deb unpacks them, and a link called `control` would lead it to another file than the one read here.
fn control_name(member: &TarMember) -> Result<&str> {
    let name = below_root(&member.name);
    match member.kind {
        EntryType::Directory if matches!(name, "" | ".") => Ok(""),
        kind if kind.as_byte() == DUMPED_FOLDER && matches!(name, "" | ".") => Ok(""),
        kind if is_file(kind) && TreePath::new(name).is_ok() && !name.contains('/') => Ok(name),
        _ => {
            let message = format!("control archive has ./{name}, which is not a file in ./ itself");
            let hint = "a link could replace another control file: build it again with files only";
            Err(member.unsupported(message).hint(hint))
        }
    }
}

/// Whether GNU tar unpacks a member of this type as a file, as it does for unknown types.
fn is_file(kind: EntryType) -> bool {
    !b"123456DKLMSVXgx".contains(&kind.as_byte())
}

/// Subtracts a member with its name and header from what is left, and returns its size.
fn charge(name: &str, size: u64, left: &mut u64) -> Result<usize> {
    if name == "control" && size > FIELDS_MAX {
        return Err(too_long("control file", FIELDS_MAX));
    }
    let cost = size + name.len() as u64 + BLOCK as u64;
    let whole = left.checked_sub(cost);
    *left = whole.ok_or_else(|| too_long("control archive", CONTROL_MAX))?;
    usize::try_from(size).map_err(|_| too_long("control archive", CONTROL_MAX))
}

fn too_long(what: &str, most: u64) -> Error {
    Error::new(Kind::Limit, format!("{what} exceeds {most} bytes"))
        .hint("no real package is as large: build it again")
}

/// Refuses fields that unpack from a much smaller package: a reader of many packages holds the fields of all.
fn check_ratio(name: &str, size: u64, packed: u64) -> Result<()> {
    let most = FIELDS_BASE.max(packed.saturating_mul(UNPACKED));
    if name != "control" || size <= most {
        return Ok(());
    }
    let message =
        format!("control file has {size} bytes, and its archive {packed}: that ratio is too high");
    let hint = "the package is corrupt or hostile, or repeats its relations: build it again";
    Err(Error::new(Kind::Limit, message).hint(hint))
}

/// Maximum number of members of a data archive, a bound for hostile input. The largest package of Debian has 120,000.
const MEMBERS_MAX: usize = 1 << 22;

/// Longest file name in bytes, so that dpkg can append `.dpkg-new`.
const NAME_MAX: usize = 246;

/// Longest path in bytes, without its leading slash, so that dpkg can append `.dpkg-new`.
const PATH_MAX: usize = 4085;

/// Calls `own` with the path of each member of the data archive except folders, in order and without leading
/// slash, and with its number (`path_digests`). Refused: data that rockpack cannot unpack
/// ([`Kind::Unsupported`]), invalid archives, and packages that dpkg would not install.
pub fn each_owned_path(package: &Content, mut own: impl FnMut(&str, u64)) -> Result<()> {
    let framing = Framing::read(package)?;
    let known_method = framing.data_method()?;
    let name = framing.data.name;
    let data = package.slice(framing.data.range)?;
    let place = data.place(0);
    let method = known_method.ok_or_else(|| unread(&name).at(&place))?;
    let walked = walk(decoder(&data, method)?, &mut own);
    walked.map_err(|error| error.at(&place).context(format!("reading {name}")))
}

/// The failure of [`each_owned_path`] in one line: the place in the data, and the reason.
pub fn unreadable_reason(error: &Error) -> String {
    let structure = error.place().structure.as_ref();
    match structure.filter(|structure| !error.message().starts_with(structure.as_str())) {
        Some(structure) => format!("{structure}: {}", error.message()),
        None => error.message().to_owned(),
    }
}

/// Refuses a path that would be too long for Linux with `.dpkg-new` appended.
fn refuse_overlong(path: &str) -> Result<(), String> {
    let names = path.as_bytes().split(|byte| *byte == b'/');
    let longest = names.map(<[u8]>::len).max().unwrap_or_default();
    if longest <= NAME_MAX && path.len() <= PATH_MAX {
        return Ok(());
    }
    let start: String = path.chars().take(40).collect();
    Err(format!(
        "the path {start}… has a name of {longest} bytes and {} in all, more than the {NAME_MAX} and \
         {PATH_MAX} that dpkg can write",
        path.len()
    ))
}

fn walk(archive: Decoder<BufferedContent>, own: &mut dyn FnMut(&str, u64)) -> Result<()> {
    // Small files have many short members.
    let mut members = DebMembers::new(BufReader::new(archive));
    let mut count = 0;
    while let Some((entry, member)) = members.next()? {
        count += 1;
        if count > MEMBERS_MAX {
            return Err(Error::new(Kind::Limit, format!("has more than {MEMBERS_MAX} members")));
        }
        if let Some(why) = &members.refusal {
            return Err(member.fault(&format!("the member `./{}` {why}", entry.path)));
        }
        refuse_overlong(&entry.path).map_err(|message| member.fault(&message))?;
        if entry.kind != PayloadEntryKind::Directory {
            own(&entry.path, members.number);
        }
    }
    members.into_inner().into_inner().finish().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_bounded_by_what_is_packed() {
        assert!(check_ratio("control", FIELDS_BASE, 0).is_ok());
        assert!(check_ratio("md5sums", FIELDS_MAX, 0).is_ok());
        assert!(check_ratio("control", FIELDS_MAX, FIELDS_MAX / UNPACKED).is_ok());
        let error = check_ratio("control", FIELDS_BASE + 1, 100).unwrap_err();
        assert_eq!(error.kind(), Kind::Limit);
        assert!(error.hint_text().is_some() && error.to_string().contains("262145 bytes"));
    }

    #[test]
    fn control_files_of_many_or_long_names_are_refused() {
        for (name, size) in [("a".repeat(4000), 0), ("a".to_owned(), 0), ("a".to_owned(), 4000)] {
            let mut left = CONTROL_MAX;
            let most = CONTROL_MAX / (512 + name.len() as u64 + size);
            for _ in 0..most {
                charge(&name, size, &mut left).unwrap();
            }
            let error = charge(&name, size, &mut left).unwrap_err();
            assert_eq!(error.kind(), Kind::Limit);
        }
        let mut left = CONTROL_MAX;
        assert!(charge("control", FIELDS_MAX, &mut left).is_ok());
        let error = charge("control", FIELDS_MAX + 1, &mut left).unwrap_err();
        assert!(error.to_string().contains("control file exceeds 4194304 bytes"), "{error}");
    }
}

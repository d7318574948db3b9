//! The paths that a package owns, from its data archive.

use super::framing::Framing;
use super::reader::{BufferedContent, decoder, unread};
use super::tar_reader::DebMembers;
use crate::payload::PayloadEntryKind;
use rockpack_core::compression::Decoder;
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result};

/// Most members of a data archive that are read, a bound for hostile input. The largest package of Debian has
/// 120,000.
const MEMBERS_MAX: usize = 1 << 22;

/// Longest file name in bytes, so that dpkg can append `.dpkg-new`.
const NAME_MAX: usize = 246;

/// Longest path in bytes, without its leading slash, so that dpkg can append `.dpkg-new`.
const PATH_MAX: usize = 4085;

/// Calls `own` with the path of each member of the data archive except folders, in order and without leading
/// slash. Refused: data that rockpack cannot unpack ([`Kind::Unsupported`]), invalid archives, and packages
/// that dpkg would not install.
pub fn each_owned_path(package: &Content, mut own: impl FnMut(&str)) -> Result<()> {
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
pub fn why_unread(error: &Error) -> String {
    let structure = error.place().structure.as_ref();
    match structure.filter(|structure| !error.message().starts_with(structure.as_str())) {
        Some(structure) => format!("{structure}: {}", error.message()),
        None => error.message().to_owned(),
    }
}

/// Refuses a path that would be too long for Linux with `.dpkg-new` appended.
fn refuse_overlong(path: &str) -> Result<(), String> {
    let longest = path.split('/').map(str::len).max().unwrap_or_default();
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

fn walk(archive: Decoder<BufferedContent>, own: &mut dyn FnMut(&str)) -> Result<()> {
    let mut members = DebMembers::new(archive);
    let mut count = 0;
    while let Some(read) = members.next()? {
        count += 1;
        if count > MEMBERS_MAX {
            return Err(Error::new(Kind::Limit, format!("has more than {MEMBERS_MAX} members")));
        }
        if let Some(why) = members.refusal() {
            return Err(members.fault(&format!("the member `./{}` {why}", read.entry.path)));
        }
        refuse_overlong(&read.entry.path).map_err(|message| members.fault(&message))?;
        if read.entry.kind != PayloadEntryKind::Directory {
            own(&read.entry.path);
        }
    }
    members.into_inner().finish().map(drop)
}

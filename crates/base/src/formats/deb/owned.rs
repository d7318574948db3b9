//! The paths that a package owns, from its data archive.

use super::framing::Framing;
use super::reader::{BufferedContent, decoder, unread};
use super::tar_reader::DebMembers;
use crate::content::Content;
use crate::error::{Error, Kind, Result};
use crate::formats::compression::Decoder;
use crate::formats::payload::PayloadEntryKind;

/// Members of a data archive that are looked at; a bound for hostile input. The largest package of
/// Debian has 120,000.
const MEMBERS_MAX: usize = 1 << 22;

/// Bytes that a name may have which dpkg writes with `.dpkg-new` behind it.
const NAME_MAX: usize = 246;

/// Bytes that such a path may have, without its leading slash.
const PATH_MAX: usize = 4085;

/// Calls `own` with the path of everything but folders in the data archive, without leading slash, in its
/// order. Refused: data that cannot be unpacked here ([`Kind::Unsupported`]), what is no archive, and what
/// dpkg would not install.
pub fn each_owned_path(package: &Content, mut own: impl FnMut(&str)) -> Result<()> {
    let framing = Framing::read(package)?;
    let method = framing.data_method()?;
    let name = framing.data.name;
    let data = package.slice(framing.data.range)?;
    let place = data.place(0);
    let method = method.ok_or_else(|| unread(&name).at(&place))?;
    let walked = walk(decoder(&data, method)?, &mut own);
    walked.map_err(|error| error.at(&place).context(format!("reading {name}")))
}

/// Why [`each_owned_path`] failed, in one line: where in the data, and what is there.
pub fn why_unread(error: &Error) -> String {
    let structure = error.place().structure.as_ref();
    match structure.filter(|structure| !error.message().starts_with(structure.as_str())) {
        Some(structure) => format!("{structure}: {}", error.message()),
        None => error.message().to_owned(),
    }
}

/// Refuses a path that Linux does not have with `.dpkg-new` behind it.
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

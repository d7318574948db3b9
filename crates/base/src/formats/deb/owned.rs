//! The paths that a package owns, from its data archive. Packages of other tools are read as dpkg
//! reads them: names need no `./` in front, and hard links count as files.

use tar::EntryType;

use super::framing::Framing;
use super::lists::below_root;
use super::reader::{BufferedContent, decoder, unread};
use crate::content::Content;
use crate::error::{Error, Kind, Result};
use crate::formats::compression::Decoder;
use crate::formats::tar::{Extensions, TarMembers};

/// Members of a data archive that are looked at; a bound for hostile input. The largest package of
/// Debian has 120,000.
const MEMBERS_MAX: usize = 1 << 22;

/// Calls `own` with the path of each file and link in the data archive, without leading slash, in its
/// order. Refused: data that cannot be unpacked here ([`Kind::Unsupported`]), and what is no archive.
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

fn walk(archive: Decoder<BufferedContent>, own: &mut dyn FnMut(&str)) -> Result<()> {
    let mut members = TarMembers::new(archive, Extensions::Gnu);
    let mut count = 0;
    while let Some(member) = members.next_member()? {
        count += 1;
        if count > MEMBERS_MAX {
            return Err(Error::new(Kind::Limit, format!("has more than {MEMBERS_MAX} members")));
        }
        if member.is_label() {
            let error = member.fault("is a volume label");
            return Err(error.hint("dpkg refuses it: pack the archive without `--label`"));
        }
        if member.kind != EntryType::Directory {
            own(below_root(&member.name));
        }
    }
    members.into_inner().finish().map(drop)
}

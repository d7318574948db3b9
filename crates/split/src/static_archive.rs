//! The members of static archives (`.a`), as far as a reader of their contents needs them.
//!
//! ```text
//! 8 bytes  magic "!<arch>\n"; "!<thin>\n" where the members stay in files of their own
//! per member, at an even offset:
//!   60  header: name 16, date 12, owner 6, group 6, mode 8, size 10 in decimal, end 2
//!       then, for the BSD name "#1/n", n bytes of name, which its size includes
//!       then the bytes of the member
//! ```
//!
//! Source: ar(5) of FreeBSD; of thin archives, the manual of ar in GNU binutils.

use rockpack_core::content::Content;
use rockpack_core::error::{Error, Result};

/// The first bytes of a static archive.
pub(super) const MAGIC: &[u8; 8] = b"!<arch>\n";

/// The first bytes of a thin one, which names its members and does not hold them.
pub(super) const THIN_MAGIC: &[u8; 8] = b"!<thin>\n";

/// Length of a member header in bytes.
const MEMBER_HEADER: u64 = 60;

/// Prefix of a member's name if the long name precedes its content.
const BSD_NAME: &[u8] = b"#1/";

/// Whether a member of the static archive is a thin one.
pub(super) fn has_thin_member(archive: &Content) -> Result<bool> {
    for member in Members::of(archive) {
        if member?.starts_with(THIN_MAGIC)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The members of a static archive.
pub(super) struct Members<'a> {
    archive: &'a Content,
    position: u64,
}

impl<'a> Members<'a> {
    /// The members of `archive`, which begins with the magic.
    pub fn of(archive: &'a Content) -> Self {
        Self { archive, position: MAGIC.len() as u64 }
    }

    /// Reads the member at the position, and moves on to the next.
    fn read(&mut self) -> Result<Content> {
        let header: [u8; 60] = self.archive.read_array(self.position)?;
        let size = number(&header[48..58]).ok_or_else(|| self.bad_size())?;
        let name = header[..16].strip_prefix(BSD_NAME);
        let name_len = name.and_then(number).filter(|len| *len <= size).unwrap_or(0);
        let start = self.position + MEMBER_HEADER;
        let end = start.checked_add(size).ok_or_else(|| self.bad_size())?;
        let member = self.archive.slice(start + name_len..end)?;
        // Members are padded to even lengths.
        self.position = end.saturating_add(end % 2);
        Ok(member)
    }

    fn bad_size(&self) -> Error {
        Error::malformed("the size of a member is no number")
            .structure("static archive")
            .at(&self.archive.place(self.position))
    }
}

/// A decimal number, then blanks.
fn number(field: &[u8]) -> Option<u64> {
    std::str::from_utf8(field).ok()?.trim_end().parse().ok()
}

impl Iterator for Members<'_> {
    type Item = Result<Content>;

    fn next(&mut self) -> Option<Result<Content>> {
        if self.position >= self.archive.len() {
            return None;
        }
        let member = self.read();
        if member.is_err() {
            self.position = self.archive.len();
        }
        Some(member)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, bytes: &[u8]) -> Vec<u8> {
        let header = format!("{name:<48}{:<10}`\n", bytes.len());
        let padding = b"\n".repeat(bytes.len() % 2);
        [header.as_bytes(), bytes, &padding].concat()
    }

    #[test]
    fn long_names_in_front_of_members_are_no_part_of_them() {
        let members = [
            member("/", b"symbols"),
            member("#1/12", b"long_name.o\0code"),
            member("x.o/", b"odd"),
            member("#1/99", b"short"),
        ];
        let archive = Content::of_bytes([MAGIC.to_vec(), members.concat()].concat());
        let read = Members::of(&archive).map(|member| {
            let member = member.unwrap();
            member.read_vec(0..member.len(), 99, "member").unwrap()
        });
        let expected = [&b"symbols"[..], b"code", b"odd", b"short"];
        assert_eq!(read.collect::<Vec<_>>(), expected);
    }
}

//! The members of a `.deb`, and the recognition of control and data among them.
//!
//! ```text
//! debian-binary       lines; the first one is the version of the format: "2.<minor>"
//! _*                  any number of members for others, here and before the data
//! control.tar<.ext>   not compressed, or .gz, .xz, .zst
//! data.tar<.ext>      the same, or .bz2, .lzma
//! *                   any number of members for others
//! ```
//!
//! Source: deb(5), dpkg-deb 1.21 and apt 2.6. Members for others, such as signatures (`_gpgorigin`), are
//! ignored. Refused: two members that are one of the three, because dpkg reads the first and apt the last.

use super::excerpt;
use crate::ar::{self, ArMember};
use rockpack_core::compression::Method;
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result};

const VERSION: &str = "debian-binary";
const CONTROL: &str = "control.tar";
const DATA: &str = "data.tar";

/// Extensions of archives that dpkg or apt know.
const ENDINGS: [&str; 7] = ["", ".gz", ".xz", ".zst", ".bz2", ".lzma", ".lz4"];

/// Longest content of `debian-binary`, in bytes: four are usual.
const VERSION_MAX: u64 = 4096;

/// The two archives of a package.
pub(super) struct Framing {
    pub control: ArMember,
    pub data: ArMember,
}

impl Framing {
    pub fn read(package: &Content) -> Result<Self> {
        let mut members = ar::members(package)?.into_iter();
        let version = members
            .next()
            .filter(|member| member.name == VERSION)
            .ok_or_else(|| fault(package, 0, "does not begin with debian-binary"))?;
        check_version(package, &version)?;
        let control = next_archive(package, &mut members, CONTROL)?;
        let data = next_archive(package, &mut members, DATA)?;
        let second = members.find(|member| stands_for_one(&member.name));
        let Some(second) = second else { return Ok(Self { control, data }) };
        let message = format!("has a second {} after its data", second.name);
        let hint = "dpkg reads the first and apt the last: take one of them out, or build it again";
        Err(fault(package, at(&second), &message).hint(hint))
    }

    pub fn control_method(&self) -> Result<Method> {
        let name = &self.control.name;
        let method = Method::of_extension(ending(name, CONTROL)?);
        method.filter(|method| *method != Method::Lzma).ok_or_else(|| {
            Error::unsupported(format!(
                "member {name} is in the place of control.tar with .gz, .xz or .zst"
            ))
            .hint("dpkg reads only these: build the package again")
        })
    }

    /// The compression method of the data archive; `None` if rockpack cannot read it.
    pub fn data_method(&self) -> Result<Option<Method>> {
        ending(&self.data.name, DATA).map(Method::of_extension)
    }
}

fn next_archive(
    package: &Content,
    members: &mut impl Iterator<Item = ArMember>,
    stem: &str,
) -> Result<ArMember> {
    let member = members
        .find(|member| !member.name.starts_with('_'))
        .ok_or_else(|| fault(package, 0, &format!("has no {stem}")))?;
    ending(&member.name, stem).map_err(|e| e.at(&package.place(at(&member))))?;
    Ok(member)
}

/// The offset of a member's header in the package, in bytes.
fn at(member: &ArMember) -> u64 {
    member.range.start.saturating_sub(ar::HEADER_SIZE as u64)
}

/// The extension of an archive's name after `stem`, without its dot.
fn ending<'a>(name: &'a str, stem: &str) -> Result<&'a str> {
    let rest = name.strip_prefix(stem);
    let ending = match rest {
        Some("") => Some(""),
        rest => rest.and_then(|rest| rest.strip_prefix('.')).filter(|ending| !ending.is_empty()),
    };
    ending.ok_or_else(|| {
        let message = format!("member {} is in the place of {stem}", excerpt(name));
        Error::malformed(message).structure(".deb").hint(
            "only members whose names begin with `_` may come before the data: \
             build the package again",
        )
    })
}

/// Whether dpkg or apt would read a member of this name as version, control or data.
fn stands_for_one(name: &str) -> bool {
    let mut rests = [CONTROL, DATA].into_iter().filter_map(|stem| name.strip_prefix(stem));
    name == VERSION || rests.any(|rest| ENDINGS.contains(&rest))
}

/// Checks the version of the format in the first line; its major number must be 2. Additions of later minor
/// versions can be ignored.
fn check_version(package: &Content, member: &ArMember) -> Result<()> {
    let stated = package.slice(member.range.clone())?;
    let bytes = stated.read_vec(0..stated.len(), VERSION_MAX, VERSION)?;
    let first = bytes.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = first.strip_suffix(b"\n").and_then(|line| std::str::from_utf8(line).ok());
    let parts = line.and_then(|line| line.split_once('.'));
    let number = ar::plain_number::<i32>;
    let version = parts.and_then(|(major, minor)| Some((number(major)?, number(minor)?)));
    match version {
        Some((2, _)) => Ok(()),
        Some((major, minor)) => {
            let message = format!("has format {major}.{minor}; only 2.x is supported");
            Err(Error::new(Kind::Unsupported, message)
                .structure(VERSION)
                .at(&package.place(member.range.start))
                .hint("dpkg rejects it, too: build the package with a current dpkg-deb"))
        }
        None => Err(fault(package, member.range.start, "has no version of its format")),
    }
}

fn fault(package: &Content, at: u64, message: &str) -> Error {
    Error::malformed(message.to_owned()).structure(".deb").at(&package.place(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framing(members: &[(&str, &str)]) -> Result<[String; 2]> {
        let mut bytes = ar::MAGIC.to_vec();
        for (name, body) in members {
            bytes.extend(ar::header(name, 0, body.len() as u64).unwrap());
            bytes.extend(body.bytes());
            bytes.extend((body.len() % 2 == 1).then_some(b'\n'));
        }
        let framing = Framing::read(&Content::of_bytes(bytes))?;
        Ok([framing.control.name, framing.data.name])
    }

    const CORE: [(&str, &str); 3] =
        [(VERSION, "2.0\n"), ("control.tar.gz", "c"), ("data.tar.bz2", "d")];

    #[test]
    fn members_for_others_are_passed_over() {
        let [version, control, data] = CORE;
        let (own, more) = (("_own", "x"), ("more", "y"));
        for members in [
            vec![version, control, data],
            vec![version, own, own, control, own, data, own],
            vec![version, control, data, more, ("_gpgorigin", ""), more],
            vec![version, control, data, ("data.tar.sig", "s"), ("control", "s")],
        ] {
            assert_eq!(framing(&members).unwrap(), ["control.tar.gz", "data.tar.bz2"]);
        }
        for (members, said) in [
            (vec![own, version, control, data], "does not begin with debian-binary"),
            (vec![version, more, control, data], "member more is in the place of control.tar"),
            (vec![version, control, more, data], "member more is in the place of data.tar"),
            (vec![version, data, control], "is in the place of control.tar"),
            (vec![version, control, own], "has no data.tar"),
            (vec![version, control, ("data.targz", "")], "is in the place of data.tar"),
            (vec![version, control, data, ("data.tar.xz", "")], "has a second data.tar.xz"),
            (vec![version, control, data, own, control], "has a second control.tar.gz"),
            (vec![version, control, data, version], "has a second debian-binary"),
        ] {
            let error = framing(&members).unwrap_err();
            assert!(error.to_string().contains(said), "{said}: {error}");
        }
    }

    #[test]
    fn minor_versions_and_further_lines_are_passed_over() {
        for (version, is_read) in [
            ("2.0\n", true),
            ("2.1\n", true),
            ("2.17\nmore\n", true),
            ("2.0", false),
            ("2.\n", false),
            ("2\n", false),
            ("2.0 \n", false),
            ("2.0\0\n", false),
            ("3.0\n", false),
            ("-2.0\n", false),
            ("2.99999999999\n", false),
            ("", false),
        ] {
            let mut members = CORE;
            members[0].1 = version;
            assert_eq!(framing(&members).is_ok(), is_read, "{version:?}");
        }
    }
}

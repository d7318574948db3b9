//! Source distributions of Python projects.
//!
//! ```text
//! {name}-{version}.tar.gz, or .zip    the name as its writer spells it: Ex-Rocm-1.0.tar.gz
//!   {folder}/PKG-INFO                 core metadata, in the form of a wheel's METADATA
//!   {folder}/…                        sources, all in the one folder at the top
//! ```
//!
//! All bytes are read, since a copy may be cut. Source: the source distribution format of the Python Packaging User
//! Guide (PEP 517, 625, 643), and the file names that pip 26.3 and uv 0.13 take.

use std::io::{self, BufReader, Read};
use std::path::Path;

use rockpack_core::compression::{Decoder, Method, decoder_fault};
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result};

use crate::tar::{Dialect, TarMembers};
use crate::wheel::{Metadata, Version, normalized};
use crate::zip::ZipReader;

const ENDINGS: [&str; 2] = [".tar.gz", ".zip"];

/// Endings of other archives of distributions, which PyPI no longer accepts.
const OTHERS: [&str; 4] = [".egg", ".tar.bz2", ".tar.xz", ".tgz"];

const PKG_INFO: &str = "PKG-INFO";

/// Longest PKG-INFO in bytes. It has the whole README of a project.
const INFO_MAX: u64 = 16 << 20;

/// Most bytes that one byte of an archive may unpack to. Sources have some ten.
const UNPACKED: u64 = 64;

/// Bytes that any archive may unpack to, in addition to that.
const UNPACKED_BASE: u64 = 256 << 20;

/// The stem and ending of a file name, if that is one of a source distribution.
pub fn parts(file: &str) -> Option<(&str, &'static str)> {
    let split = |ending: &'static str| Some((file.strip_suffix(ending)?, ending));
    ENDINGS.into_iter().find_map(split).filter(|(stem, _)| readings(stem).next().is_some())
}

/// Whether the file at `path` has the name of a source distribution.
pub fn is_one(path: &Path) -> bool {
    path.file_name().and_then(|name| parts(name.to_str()?)).is_some()
}

/// Whether the file name at `path` resembles that of a distribution of any age: it has a version after a hyphen.
pub fn resembles_sdist(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let stem = ENDINGS.iter().chain(&OTHERS).find_map(|ending| name.strip_suffix(*ending));
    stem.is_some_and(|stem| stem.split('-').skip(1).any(|part| part.parse::<Version>().is_ok()))
}

/// The names and versions that a stem may mean, since both may have hyphens.
fn readings(stem: &str) -> impl Iterator<Item = (&str, Version)> {
    stem.match_indices('-').filter_map(move |(at, _)| {
        let (name, version) = (stem.get(..at)?, stem.get(at + 1..)?);
        Some((name, version.replace('_', "-").parse::<Version>().ok()?))
    })
}

/// Reads a source distribution with these parts of its name, which PKG-INFO has to fit.
pub(crate) fn metadata(content: &Content, (stem, ending): (&str, &str)) -> Result<Metadata> {
    let most = content.len().saturating_mul(UNPACKED).saturating_add(UNPACKED_BASE);
    let text = match ending {
        ".zip" => info_of_zip(content, most)?,
        _ => info_of_tar(content, most)?,
    };
    let metadata = Metadata::parse(&text)
        .map_err(|error| Error::new(error.kind(), error.message()).structure(PKG_INFO))?;
    let (name, version) = (metadata.name(), metadata.version());
    let stated = (normalized(name), version.parse::<Version>().ok());
    if readings(stem).any(|(name, version)| (normalized(name), Some(version)) == stated) {
        return Ok(metadata);
    }
    let message = format!("its PKG-INFO says {name} {version}, unlike its file name");
    Err(Error::malformed(message).hint("pip and uv refuse it: build it again, and keep its name"))
}

fn info_of_tar(content: &Content, most: u64) -> Result<Vec<u8>> {
    let mut info = None;
    let mut read = || -> Result<()> {
        let decoder = Decoder::new(BufReader::new(content.reader()), Method::Gzip)?;
        let mut members = TarMembers::new(decoder.take(most), Dialect::Control);
        let found = find_info(&mut members, &mut info);
        let rest = members.into_inner();
        if rest.limit() == 0 {
            return Err(too_long(most));
        }
        found.and_then(|()| rest.into_inner().finish().map(drop))
    };
    let read = read();
    match (info, read) {
        (Some(info), Ok(())) => Ok(info),
        (None, Ok(())) => Err(no_info()),
        (Some(_), Err(error)) => Err(error),
        (None, Err(error)) => Err(error.wrong_file_kind()),
    }
}

fn find_info(members: &mut TarMembers<impl Read>, info: &mut Option<Vec<u8>>) -> Result<()> {
    let mut top = None;
    while let Some(member) = members.next_member()? {
        if is_info(&member.name, &mut top)? {
            let mut bytes = Vec::new();
            members.by_ref().take(INFO_MAX + 1).read_to_end(&mut bytes).map_err(decoder_fault)?;
            if bytes.len() as u64 > INFO_MAX || info.replace(bytes).is_some() {
                let message = format!("is listed twice, or has more than {INFO_MAX} bytes");
                return Err(Error::malformed(message).structure(PKG_INFO));
            }
        }
    }
    Ok(())
}

fn info_of_zip(content: &Content, most: u64) -> Result<Vec<u8>> {
    let zip = ZipReader::open(content.clone()).map_err(Error::wrong_file_kind)?;
    let (mut top, mut info, mut size) = (None, None, 0u64);
    for member in zip.members() {
        size = size.saturating_add(member.size);
        if is_info(&member.name, &mut top)? {
            info = Some(member);
        }
    }
    let info = info.ok_or_else(no_info)?;
    if size >= most {
        return Err(too_long(most));
    }
    for member in zip.members() {
        io::copy(&mut zip.reader(member)?, &mut io::sink()).map_err(decoder_fault)?;
    }
    zip.read(info, INFO_MAX, PKG_INFO)
}

/// Whether a member is PKG-INFO in the folder `top`, that of the first member. Other folders are refused.
fn is_info(name: &str, top: &mut Option<String>) -> Result<bool> {
    let name = name.strip_prefix("./").unwrap_or(name);
    if name.is_empty() {
        return Ok(false);
    }
    let (folder, rest) = name.split_once('/').unwrap_or((name, ""));
    let is_in_top = top.get_or_insert_with(|| folder.to_owned()).as_str() == folder;
    if is_in_top { Ok(rest == PKG_INFO) } else { Err(no_info()) }
}

fn no_info() -> Error {
    let error = Error::malformed("has no PKG-INFO in one folder at its top").wrong_file_kind();
    error.hint("only source distributions have one, which `python -m build --sdist` makes")
}

fn too_long(most: u64) -> Error {
    let message = format!("unpacks to {most} bytes and more, too much for its size");
    Error::new(Kind::Limit, message).hint("it is corrupt or hostile: leave it out")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_a_version_at_their_end() {
        for (file, is_known, is_like) in [
            ("exrocm-7.14.0.tar.gz", true, true),
            ("Ex-Rocm-1.0+rocm7_1.zip", true, true),
            ("ex-1.0-1.tar.gz", true, true),
            ("rocm-7.14.0-linux.zip", false, true),
            ("ex-1.0-py3.9.egg", false, true),
            ("ex-1.0.tar.bz2", false, true),
            ("math_lib_gfx1151.tar.gz", false, false),
            ("rocm-blas_7.1.0.orig.tar.gz", false, false),
            ("ex-1.0.whl", false, false),
        ] {
            let path = Path::new(file);
            assert_eq!((is_one(path), resembles_sdist(path)), (is_known, is_like), "{file}");
        }
    }
}

//! The reference to kernel archives inside a transformed host binary, `.rocm_kpack_ref`.
//!
//! ```text
//! MessagePack map
//!   "kernel_name"         str           the key of the binary in the archives' tables
//!   "kpack_search_paths"  array of str  relative to the binary's directory; `@GFXARCH@` is
//!                                       replaced by each compatible target
//! ```
//!
//! Source: the runtime's loader. Loaders refuse more than 64 KiB. An early prototype wrote only the paths,
//! separated by colons; that form is read, never written. Zero bytes after the map leave room for a later
//! rewrite.

use std::fmt;

use crate::message_pack::{Decoder, Fault, Input, Item};
use crate::{Code, Names};

/// Maximum size in bytes of a marker: loaders refuse longer ones.
pub const LIMIT: usize = 64 << 10;

/// The placeholder for the target in a search path.
pub const ARCH_PLACEHOLDER: &str = "@GFXARCH@";

/// The field with the key of the binary.
pub const KERNEL_NAME: &str = "kernel_name";
/// The field with the paths of archives.
pub const SEARCH_PATHS: &str = "kpack_search_paths";
const FIELDS: [&str; 2] = [KERNEL_NAME, SEARCH_PATHS];

/// The fields of a marker that a loader uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MarkerFields {
    /// The key of the binary in the archives' tables.
    pub kernel_name: Vec<u8>,
    /// The paths of archives relative to the binary's directory, at least one.
    pub search_paths: Names,
}

/// The reason why a loader rejects a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadFault<E> {
    /// The marker is not a MessagePack value.
    Decode(Fault<E>),
    /// The marker is not a map, or lacks a text `kernel_name` or an array with a text `kpack_search_paths`.
    Fields,
}

impl<E> LoadFault<E> {
    /// The result code for callers of the C interface.
    pub fn code(&self) -> Code {
        match self {
            Self::Decode(Fault::OutOfMemory) => Code::OutOfMemory,
            Self::Decode(_) | Self::Fields => Code::InvalidMetadata,
        }
    }
}

impl<E> From<Fault<E>> for LoadFault<E> {
    fn from(fault: Fault<E>) -> Self {
        Self::Decode(fault)
    }
}

/// Reads a marker as AMD's loader does, from the map at the start of `input`, which has at most [`LIMIT`]
/// bytes. The first of equal keys counts. Paths of another type and all other keys are skipped. The value is
/// read to its end, and nothing after it.
pub fn load<I: Input>(input: I) -> Result<MarkerFields, LoadFault<I::Error>> {
    let mut decoder = Decoder::new(input);
    let Item::Map(pairs) = decoder.item()? else { return Err(LoadFault::Fields) };
    let (mut name, mut paths) = (None, None);
    for _ in 0..pairs {
        match decoder.one_of(&FIELDS)? {
            Some(KERNEL_NAME) if name.is_none() => {
                let mut text = Vec::new();
                name = Some(match decoder.item()? {
                    Item::Text(len) => decoder.text(len, &mut text).map(|()| Some(text))?,
                    other => decoder.skip_rest_of(other).map(|()| None)?,
                });
            }
            Some(SEARCH_PATHS) if paths.is_none() => {
                paths = Some(decoder.names()?);
            }
            _ => decoder.skip()?,
        }
    }
    let kernel_name = name.flatten().ok_or(LoadFault::Fields)?;
    let search_paths = paths.filter(|paths| !paths.is_empty()).ok_or(LoadFault::Fields)?;
    Ok(MarkerFields { kernel_name, search_paths })
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    /// The key of the binary in the archives' tables.
    pub kernel_name: String,
    /// The paths of archives relative to the binary's directory.
    pub kpack_search_paths: Vec<String>,
}

/// A marker of any form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnyMarker {
    /// The current form.
    Map(Marker),
    /// The early prototype's list of paths.
    PathList(Vec<String>),
}

/// The reason why the strict reader rejects a marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MarkerFault {
    Empty,
    /// The section has this many bytes, more than [`LIMIT`].
    TooLong(usize),
    /// The bytes are not a map of the two fields, each once and of its type.
    NotAMap,
    /// Bytes that are not zero follow the map.
    TrailingBytes,
    /// The bytes are neither a map nor a list of paths.
    NotAList,
}

impl fmt::Display for MarkerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("is empty"),
            Self::TooLong(length) => {
                write!(f, "{length} bytes exceed the {LIMIT} that loaders accept")
            }
            Self::NotAMap => f.write_str("is not a map of kernel_name and kpack_search_paths"),
            Self::TrailingBytes => f.write_str("is followed by other bytes"),
            Self::NotAList => f.write_str("is neither a map nor a list of paths"),
        }
    }
}

impl std::error::Error for MarkerFault {}

/// Reads a marker of any form from the bytes of its section, as strictly as tools should: texts are UTF-8,
/// each field occurs once, and only zeros follow.
pub fn parse(bytes: &[u8]) -> Result<AnyMarker, MarkerFault> {
    if bytes.len() > LIMIT {
        return Err(MarkerFault::TooLong(bytes.len()));
    }
    match bytes.first() {
        None => Err(MarkerFault::Empty),
        // Fixed-length map, 16-bit and 32-bit map.
        Some(0x80..=0x8f | 0xde | 0xdf) => parse_map(bytes).map(AnyMarker::Map),
        Some(_) => parse_list(bytes).map(AnyMarker::PathList),
    }
}

fn parse_map(bytes: &[u8]) -> Result<Marker, MarkerFault> {
    let mut decoder = Decoder::new(bytes);
    let marker = strict_map(&mut decoder).ok_or(MarkerFault::NotAMap)?;
    let zeros = decoder.input.iter().all(|byte| *byte == 0);
    if zeros { Ok(marker) } else { Err(MarkerFault::TrailingBytes) }
}

fn strict_map(decoder: &mut Decoder<&[u8]>) -> Option<Marker> {
    let Item::Map(pairs) = decoder.item().ok()? else { return None };
    let (mut kernel_name, mut paths) = (None, None);
    for _ in 0..pairs {
        match decoder.one_of(&FIELDS).ok()? {
            Some(KERNEL_NAME) if kernel_name.is_none() => {
                kernel_name = Some(strict_text(decoder)?);
            }
            Some(SEARCH_PATHS) if paths.is_none() => {
                let Item::Array(count) = decoder.item().ok()? else { return None };
                let texts = (0..count).map(|_| strict_text(decoder));
                paths = Some(texts.collect::<Option<Vec<String>>>()?);
            }
            // The field occurs twice.
            Some(_) => return None,
            None => decoder.skip().ok()?,
        }
    }
    Some(Marker { kernel_name: kernel_name?, kpack_search_paths: paths? })
}

fn strict_text(decoder: &mut Decoder<&[u8]>) -> Option<String> {
    let Item::Text(len) = decoder.item().ok()? else { return None };
    let mut bytes = Vec::new();
    decoder.text(len, &mut bytes).ok()?;
    String::from_utf8(bytes).ok()
}

fn parse_list(bytes: &[u8]) -> Result<Vec<String>, MarkerFault> {
    let end = bytes.iter().rposition(|byte| *byte != 0);
    let text = std::str::from_utf8(&bytes[..end.map_or(0, |end| end + 1)])
        .ok()
        .filter(|text| !text.is_empty() && !text.contains(char::is_control))
        .ok_or(MarkerFault::NotAList)?;
    Ok(text.split(':').map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Marker {
        Marker {
            kernel_name: "lib/libx.so".into(),
            kpack_search_paths: vec![".kpack/x_@GFXARCH@.kpack".into()],
        }
    }

    fn bytes() -> Vec<u8> {
        let names = b"\x82\xabkernel_name\xablib/libx.so\xb2kpack_search_paths\x91\xb8";
        [&names[..], b".kpack/x_@GFXARCH@.kpack"].concat()
    }

    #[test]
    fn a_map_may_be_followed_by_zeros_only() {
        let mut bytes = bytes();
        bytes.extend_from_slice(&[0; 40]);
        assert_eq!(parse(&bytes).unwrap(), AnyMarker::Map(sample()));
        bytes.push(1);
        assert_eq!(parse(&bytes), Err(MarkerFault::TrailingBytes));
    }

    /// Found by fuzzing: an unknown field with deep nesting overflowed the stack.
    #[test]
    fn deep_nesting_is_refused() {
        assert_eq!(parse(&nested_field(20_000)), Err(MarkerFault::NotAMap));
        let mut known = bytes();
        known[0] = 0x83;
        known.extend_from_slice(&nested_field(20)[1..]);
        assert_eq!(parse(&known).unwrap(), AnyMarker::Map(sample()));
    }

    /// A map with an unknown field of nested arrays.
    fn nested_field(depth: usize) -> Vec<u8> {
        [b"\x81\xa1x".to_vec(), vec![0x91; depth], vec![0xc0]].concat()
    }

    #[test]
    fn the_prototype_list_is_read() {
        let list = AnyMarker::PathList(vec!["a".into(), "b/c".into()]);
        assert_eq!(parse(b"a:b/c\0").unwrap(), list);
    }

    #[test]
    fn every_truncation_is_refused() {
        let bytes = bytes();
        for len in 0..bytes.len() {
            assert!(parse(&bytes[..len]).is_err(), "{len}");
        }
        assert!(parse(&vec![b'a'; LIMIT + 1]).is_err());
        assert!(parse(b"\x01\x02").is_err());
    }
}

//! The reference to kernel archives inside a transformed host binary, `.rocm_kpack_ref`.
//!
//! ```text
//! MessagePack map
//!   "kernel_name"         str           the key of the binary in the archives' tables
//!   "kpack_search_paths"  array of str  relative to the binary's directory; `@GFXARCH@` stands
//!                                       for each target that the device is compatible with
//! ```
//!
//! Source: the runtime's loader. Loaders refuse more than 64 KiB. An early prototype wrote the
//! paths alone, separated by colons; that form is read, never written. Zero bytes behind the map
//! are the room of a later rewrite.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Kind, Result};

/// Loaders refuse longer markers.
pub const LIMIT: usize = 64 << 10;

/// Deepest nesting that is read: fields that are not known may hold anything, and the reader uses
/// the stack.
const DEPTH_LIMIT: usize = 32;

/// What stands for the target in a search path.
pub const ARCH_PLACEHOLDER: &str = "@GFXARCH@";

/// The reference to kernel archives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marker {
    /// Key of the binary in the archives' tables.
    pub kernel_name: String,
    /// Paths of archives relative to the binary's directory.
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

impl Marker {
    /// The bytes of the section.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let bytes = rmp_serde::to_vec_named(self)
            .map_err(|error| Error::bug("cannot write a marker").cause(error))?;
        check_length(bytes.len())?;
        Ok(bytes)
    }
}

/// Reads a marker of any form from the bytes of its section.
pub fn parse(bytes: &[u8]) -> Result<AnyMarker> {
    check_length(bytes.len())?;
    match bytes.first() {
        None => Err(Error::truncated("is empty").structure("marker")),
        // Fixed-length map, 16-bit and 32-bit map.
        Some(0x80..=0x8f | 0xde | 0xdf) => parse_map(bytes).map(AnyMarker::Map),
        Some(_) => parse_list(bytes).map(AnyMarker::PathList),
    }
}

fn check_length(length: usize) -> Result<()> {
    if length <= LIMIT {
        return Ok(());
    }
    let message = format!("{length} bytes exceed the {LIMIT} that loaders accept");
    Err(Error::new(Kind::Limit, message).structure("marker"))
}

fn parse_map(bytes: &[u8]) -> Result<Marker> {
    let mut rest = bytes;
    let mut deserializer = rmp_serde::Deserializer::new(&mut rest);
    deserializer.set_max_depth(DEPTH_LIMIT);
    let marker = Marker::deserialize(&mut deserializer).map_err(|error| {
        Error::malformed("is no map of kernel_name and kpack_search_paths")
            .structure("marker")
            .cause(error)
    })?;
    match rest.iter().all(|byte| *byte == 0) {
        true => Ok(marker),
        false => Err(Error::malformed("is followed by other bytes").structure("marker")),
    }
}

fn parse_list(bytes: &[u8]) -> Result<Vec<String>> {
    let end = bytes.iter().rposition(|byte| *byte != 0);
    let text = std::str::from_utf8(&bytes[..end.map_or(0, |end| end + 1)]).ok();
    let text = text.filter(|text| !text.is_empty() && !text.contains(char::is_control));
    match text {
        Some(text) => Ok(text.split(':').map(str::to_owned).collect()),
        None => Err(Error::malformed("is neither a map nor a list of paths").structure("marker")),
    }
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

    #[test]
    fn the_bytes_are_a_map_with_names() {
        let mut expected = vec![0x82, 0xab];
        expected.extend_from_slice(b"kernel_name\xablib/libx.so\xb2kpack_search_paths\x91\xb8");
        expected.extend_from_slice(b".kpack/x_@GFXARCH@.kpack");
        assert_eq!(sample().to_bytes().unwrap(), expected);
    }

    #[test]
    fn a_map_may_be_followed_by_zeros_only() {
        let mut bytes = sample().to_bytes().unwrap();
        bytes.extend_from_slice(&[0; 40]);
        assert_eq!(parse(&bytes).unwrap(), AnyMarker::Map(sample()));
        bytes.push(1);
        assert_eq!(parse(&bytes).unwrap_err().kind(), Kind::Malformed);
    }

    /// Found by fuzzing: a field that is not known ended the program with an overflow of the stack.
    #[test]
    fn deep_nesting_is_refused() {
        let nested = |depth: usize| [b"\x81\xa1x".to_vec(), vec![0x91; depth], vec![0xc0]].concat();
        let error = parse(&nested(20_000)).unwrap_err();
        assert_eq!(error.kind(), Kind::Malformed);
        let mut known = sample().to_bytes().unwrap();
        known[0] = 0x83;
        known.extend_from_slice(&nested(20)[1..]);
        assert_eq!(parse(&known).unwrap(), AnyMarker::Map(sample()));
    }

    #[test]
    fn the_prototype_list_is_read() {
        let list = AnyMarker::PathList(vec!["a".into(), "b/c".into()]);
        assert_eq!(parse(b"a:b/c\0").unwrap(), list);
    }

    #[test]
    fn every_truncation_is_refused() {
        let bytes = sample().to_bytes().unwrap();
        for len in 0..bytes.len() {
            assert!(parse(&bytes[..len]).is_err(), "{len}");
        }
        assert!(parse(&vec![b'a'; LIMIT + 1]).is_err());
        assert!(parse(b"\x01\x02").is_err());
    }
}

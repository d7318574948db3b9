//! The archs that an index names.
//!
//! An index is one MessagePack value, of up to a hundred megabytes, whose shape differs between
//! libraries and versions. It is walked without being kept: any string in it, key or value, may
//! name archs. Newer libraries compress it (`.dat.zlib`, one zlib stream).

use std::collections::BTreeSet;
use std::fmt;
use std::io::{BufRead, BufReader, Read};

use flate2::bufread::ZlibDecoder;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::content::{Content, WINDOW};
use crate::error::{Error, Result};
use crate::gfx::{self, BaseArch};

/// What an index says of archs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexArchs {
    /// The archs named in its strings.
    Named(BTreeSet<BaseArch>),
    /// It is no single MessagePack value; why not.
    Unreadable(String),
}

/// Collects the archs that the strings of an index name.
pub fn archs_of_index(content: &Content) -> Result<IndexArchs> {
    let mut archs = BTreeSet::new();
    let buffered = || BufReader::with_capacity(WINDOW, content.reader());
    let walked = match is_zlib(content)? {
        true => walk(inflated(buffered()), &mut archs),
        false => walk(buffered(), &mut archs),
    };
    match walked {
        Ok(()) => Ok(IndexArchs::Named(archs)),
        Err(fault) => unreadable(content, fault),
    }
}

fn walk(reader: impl Read, archs: &mut BTreeSet<BaseArch>) -> Result<(), rmp_serde::decode::Error> {
    let mut deserializer = rmp_serde::Deserializer::new(reader);
    deserializer.set_max_depth(DEPTH_LIMIT);
    Walk { archs }.deserialize(&mut deserializer)
}

/// Whether the content starts with the header of a zlib stream. As MessagePack, its first byte
/// would be a lone number.
fn is_zlib(content: &Content) -> Result<bool> {
    if content.len() < 2 {
        return Ok(false);
    }
    let header: [u8; 2] = content.read_array(0)?;
    Ok(header[0] == 0x78 && u16::from_be_bytes(header).is_multiple_of(31))
}

fn inflated(reader: impl BufRead) -> impl Read {
    BufReader::new(ZlibDecoder::new(reader).take(INFLATED_LIMIT))
}

/// Most bytes that are read of a compressed index: ten times the largest plain one known.
const INFLATED_LIMIT: u64 = 1 << 30;

/// Deepest nesting that is walked. Real indexes nest a few dozen levels; the walk uses the stack.
const DEPTH_LIMIT: usize = 256;

fn unreadable(content: &Content, fault: rmp_serde::decode::Error) -> Result<IndexArchs> {
    use rmp_serde::decode::Error::{InvalidDataRead, InvalidMarkerRead};
    let reason = match fault {
        // What failed may be the reading of the file rather than its format.
        InvalidMarkerRead(io) | InvalidDataRead(io) => match Error::from_io(io) {
            Ok(error) => return Err(error.at(&content.place(0))),
            Err(io) => io.to_string(),
        },
        fault => fault.to_string(),
    };
    Ok(IndexArchs::Unreadable(reason))
}

/// Walks a value and everything in it.
struct Walk<'a> {
    archs: &'a mut BTreeSet<BaseArch>,
}

impl Walk<'_> {
    fn again(&mut self) -> Walk<'_> {
        Walk { archs: self.archs }
    }

    fn note(&mut self, text: &str) {
        if text.contains("gfx") {
            self.archs.extend(gfx::archs_in(text));
        }
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a MessagePack value")
    }

    fn visit_str<E>(mut self, text: &str) -> Result<(), E> {
        self.note(text);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(self.again())?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while map.next_key_seed(self.again())?.is_some() {
            map.next_value_seed(self.again())?;
        }
        Ok(())
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, extension: D) -> Result<(), D::Error> {
        serde::de::IgnoredAny::deserialize(extension).map(drop)
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_bytes<E>(self, _: &[u8]) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rmpv::Value;

    use super::*;

    fn archs(bytes: impl Into<Vec<u8>>) -> IndexArchs {
        archs_of_index(&Content::of_bytes(bytes)).unwrap()
    }

    fn encoded(value: &Value) -> Vec<u8> {
        let mut bytes = Vec::new();
        rmpv::encode::write_value(&mut bytes, value).unwrap();
        bytes
    }

    #[test]
    fn strings_anywhere_are_seen() {
        let value = Value::Map(vec![
            ("gfx906:xnack-".into(), Value::Array(vec![1.into(), Value::Nil, 1.5.into()])),
            (Value::Binary(vec![1]), Value::Map(vec![("x".into(), "for gfx90a".into())])),
            (true.into(), Value::Ext(7, b"gfx908".to_vec())),
            ("ISA900".into(), "gfx000".into()),
        ]);
        let names = ["gfx906", "gfx90a"].map(|name| name.parse().unwrap());
        assert_eq!(archs(encoded(&value)), IndexArchs::Named(BTreeSet::from(names)));
    }

    #[test]
    fn a_compressed_index_is_read_as_the_plain_one() {
        let plain = encoded(&Value::Array(vec!["gfx906".into()]));
        let mut zlib = flate2::read::ZlibEncoder::new(&plain[..], flate2::Compression::best());
        let mut compressed = Vec::new();
        zlib.read_to_end(&mut compressed).unwrap();
        assert_ne!(compressed, plain);
        assert_eq!(archs(compressed), archs(plain));
    }

    #[test]
    fn an_index_cut_anywhere_is_unreadable() {
        let value = Value::Array(vec!["gfx906".into(), 7.into(), Value::Map(vec![])]);
        let bytes = encoded(&value);
        for len in 0..bytes.len() {
            assert!(matches!(archs(&bytes[..len]), IndexArchs::Unreadable(_)), "cut to {len}");
        }
    }

    #[test]
    fn deep_nesting_is_unreadable_rather_than_a_crash() {
        assert!(matches!(archs(vec![0x91; 1 << 20]), IndexArchs::Unreadable(_)));
    }
}

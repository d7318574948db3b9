//! What an index says: the archs, operations and files that it names.
//!
//! An index is one MessagePack value, of up to a hundred megabytes, whose shape differs between
//! libraries and versions. It is walked without being kept. Newer libraries compress it
//! (`.dat.zlib`, one zlib stream). The shapes known, from the readers in Tensile, TensileLite and
//! hipBLASLt (`Serialization/PlaceholderLibrary.hpp`, `MasterSolutionLibrary.hpp`,
//! `hipblaslt-ext-op.cpp`), and from Debian's rocBLAS 5.5:
//!
//! | what | shape |
//! |---|---|
//! | library | `{solutions: [{name, problemType: {operationIdentifier, …}, …}], library: node}` |
//! | node, lazily loaded | `{type: "Placeholder", value: S}`: the library is `S.dat` beside it |
//! | mapping | `{"0": S, "17": S, …}`: from that solution on, up to the next, `S.dat` |
//! | extension operations | `{arch: {operation: [{func_name, co_path, …}]}}` |
//!
//! Any string in it, key or value, may name archs.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{BufRead, BufReader, Read};

use flate2::bufread::ZlibDecoder;
use serde::Serialize;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::content::{Content, WINDOW};
use crate::error::{Error, Result};
use crate::gfx::{self, BaseArch};

/// What an index says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct IndexDescription {
    /// The archs that its strings name.
    pub archs: BTreeSet<BaseArch>,
    /// Operations: identifiers of contractions (`Contraction_l_Ailk_Bjlk_Cijk_Dijk`) and names of
    /// extension operations (`LayerNorm`).
    pub operations: BTreeSet<String>,
    /// Number of solutions, that is of kernels with the problems that they solve.
    pub solutions: u64,
    /// File names of code objects (`extop_gfx1100.co`), as they stand in it.
    pub code_object_files: BTreeSet<String>,
    /// Further libraries that are loaded when they are needed, without suffix: each is an index
    /// `<name>.dat` beside this one, with its code objects.
    pub libraries: BTreeSet<String>,
}

/// An index that was read, or why it is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Index {
    /// What it says.
    Described(IndexDescription),
    /// It is no single MessagePack value; why not.
    Unreadable(String),
}

/// What the index says; an error if it is no single MessagePack value.
pub fn describe_index(content: &Content) -> Result<IndexDescription> {
    match read_index(content)? {
        Index::Described(description) => Ok(description),
        Index::Unreadable(reason) => {
            let message = format!("is no MessagePack index: {reason}");
            Err(Error::malformed(message).structure("kernel index").at(&content.place(0)))
        }
    }
}

/// Reads an index. An error means that the content cannot be read at all.
pub fn read_index(content: &Content) -> Result<Index> {
    let mut description = IndexDescription::default();
    let buffered = || BufReader::with_capacity(WINDOW, content.reader());
    let walked = if is_zlib(content)? {
        walk(inflated(buffered()), &mut description)
    } else {
        walk(buffered(), &mut description)
    };
    match walked {
        Ok(()) => Ok(Index::Described(description)),
        Err(fault) => unreadable(content, fault),
    }
}

fn walk(
    mut reader: impl Read,
    description: &mut IndexDescription,
) -> Result<(), rmp_serde::decode::Error> {
    let mut deserializer = rmp_serde::Deserializer::new(&mut reader);
    deserializer.set_max_depth(DEPTH_LIMIT);
    let position = ValuePosition { depth: 0, key: ValueKey::Other };
    ValueWalk { description, position }.deserialize(&mut deserializer)?;
    match reader.read(&mut [0; 1]).map_err(rmp_serde::decode::Error::InvalidDataRead)? {
        0 => Ok(()),
        _ => Err(rmp_serde::decode::Error::Uncategorized("more follows its value".to_owned())),
    }
}

/// Whether the content starts with the header of a zlib stream. As MessagePack, its first byte
/// would be a lone number.
pub(super) fn is_zlib(content: &Content) -> Result<bool> {
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
pub(super) const DEPTH_LIMIT: usize = 256;

fn unreadable(content: &Content, fault: rmp_serde::decode::Error) -> Result<Index> {
    use rmp_serde::decode::Error::{InvalidDataRead, InvalidMarkerRead};
    let reason = match fault {
        // What failed may be the reading of the file rather than its format.
        InvalidMarkerRead(io) | InvalidDataRead(io) => match Error::from_io(io) {
            Ok(error) => return Err(error.at(&content.place(0))),
            Err(io) => io.to_string(),
        },
        fault => fault.to_string(),
    };
    Ok(Index::Unreadable(reason))
}

/// What the key of a map says of its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueKey {
    /// `operationIdentifier`.
    Operation,
    /// `solutions`.
    Solutions,
    /// `type`.
    Type,
    /// `value`.
    Value,
    /// A number, or a text of digits.
    Number,
    /// An arch.
    Arch,
    /// Anything else, or no key.
    Other,
}

impl ValueKey {
    fn of(text: &str) -> Self {
        match text {
            "operationIdentifier" => Self::Operation,
            "solutions" => Self::Solutions,
            "type" => Self::Type,
            "value" => Self::Value,
            _ if !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit()) => Self::Number,
            _ if text.starts_with("gfx") && text.parse::<BaseArch>().is_ok() => Self::Arch,
            _ => Self::Other,
        }
    }
}

/// Where a value stands: how many maps and arrays are around it, and behind which key.
#[derive(Debug, Clone, Copy)]
struct ValuePosition {
    depth: usize,
    key: ValueKey,
}

/// What a value turned out to be, as far as the map around it wants to know.
#[derive(Debug, PartialEq, Eq)]
enum SeenValue {
    /// The text `Placeholder`.
    Placeholder,
    /// The text behind a `value`.
    Value(String),
    /// An array of so many elements.
    Array(u64),
    /// Anything else.
    Other,
}

/// Walks a value and everything in it.
struct ValueWalk<'a> {
    description: &'a mut IndexDescription,
    position: ValuePosition,
}

impl ValueWalk<'_> {
    fn inside(&mut self, key: ValueKey) -> ValueWalk<'_> {
        let position = ValuePosition { depth: self.position.depth.saturating_add(1), key };
        ValueWalk { description: self.description, position }
    }

    fn note(&mut self, text: &str) {
        if text.contains("gfx") {
            self.description.archs.extend(gfx::archs_in(text));
        }
        if text.ends_with(".co") || text.ends_with(".hsaco") {
            insert(&mut self.description.code_object_files, text);
        }
        match (self.position.key, self.position.depth) {
            (ValueKey::Operation, _) => insert(&mut self.description.operations, text),
            (ValueKey::Number, 1) => insert(&mut self.description.libraries, text),
            _ => {}
        }
    }
}

/// Most texts repeat what is known already: only new ones are copied.
fn insert(set: &mut BTreeSet<String>, text: &str) {
    if !set.contains(text) {
        set.insert(text.to_owned());
    }
}

impl<'de> DeserializeSeed<'de> for ValueWalk<'_> {
    type Value = SeenValue;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<SeenValue, D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// The methods of a visitor that take these types for one and the same.
macro_rules! scalars {
    ($seen:expr; $($visit:ident($($scalar:ty)?)),+) => {
        $(fn $visit<E>(self $(, _: $scalar)?) -> Result<Self::Value, E> {
            Ok($seen)
        })+
    };
}

impl<'de> Visitor<'de> for ValueWalk<'_> {
    type Value = SeenValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a MessagePack value")
    }

    fn visit_str<E>(mut self, text: &str) -> Result<SeenValue, E> {
        self.note(text);
        Ok(match self.position.key {
            ValueKey::Type if text == "Placeholder" => SeenValue::Placeholder,
            ValueKey::Value => SeenValue::Value(text.to_owned()),
            _ => SeenValue::Other,
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<SeenValue, A::Error> {
        let mut count: u64 = 0;
        while seq.next_element_seed(self.inside(ValueKey::Other))?.is_some() {
            count = count.saturating_add(1);
        }
        Ok(SeenValue::Array(count))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<SeenValue, A::Error> {
        let mut placeholder = false;
        let mut value = None;
        while let Some(key) = map.next_key_seed(KeyWalk(self.inside(self.position.key)))? {
            match map.next_value_seed(self.inside(key))? {
                SeenValue::Placeholder => placeholder = true,
                SeenValue::Value(text) => value = Some(text),
                SeenValue::Array(count) if key == ValueKey::Solutions => {
                    self.description.solutions = self.description.solutions.saturating_add(count);
                }
                SeenValue::Array(_) | SeenValue::Other => {}
            }
        }
        if let Some(value) = value.filter(|_| placeholder) {
            self.description.libraries.insert(value);
        }
        Ok(SeenValue::Other)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(
        self,
        extension: D,
    ) -> Result<SeenValue, D::Error> {
        serde::de::IgnoredAny::deserialize(extension).map(|_| SeenValue::Other)
    }

    scalars! {
        SeenValue::Other; visit_bool(bool), visit_i64(i64), visit_u64(u64), visit_f64(f64),
            visit_bytes(&[u8]), visit_unit()
    }
}

/// Walks a key; its position is that of the map's values, behind the key of the map itself.
struct KeyWalk<'a>(ValueWalk<'a>);

impl<'de> DeserializeSeed<'de> for KeyWalk<'_> {
    type Value = ValueKey;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<ValueKey, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for KeyWalk<'_> {
    type Value = ValueKey;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a MessagePack value")
    }

    fn visit_str<E>(self, text: &str) -> Result<ValueKey, E> {
        let ValuePosition { depth, key } = self.0.position;
        if text.contains("gfx") {
            self.0.description.archs.extend(gfx::archs_in(text));
        }
        if (key, depth) == (ValueKey::Arch, 2) {
            insert(&mut self.0.description.operations, text);
        }
        Ok(ValueKey::of(text))
    }

    scalars! { ValueKey::Number; visit_i64(i64), visit_u64(u64) }
    scalars! { ValueKey::Other; visit_bool(bool), visit_f64(f64), visit_bytes(&[u8]), visit_unit() }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<ValueKey, A::Error> {
        self.0.visit_seq(seq).map(|_| ValueKey::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ValueKey, A::Error> {
        self.0.visit_map(map).map(|_| ValueKey::Other)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(
        self,
        extension: D,
    ) -> Result<ValueKey, D::Error> {
        self.0.visit_newtype_struct(extension).map(|_| ValueKey::Other)
    }
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;

//! Keys and signatures as text.

use pgp::armor::{self, BlockType};
use pgp::ser::Serialize;
use rockpack_core::error::{Error, Kind, Result};

/// Bytes that are already encoded.
struct RawBytes<'a>(&'a [u8]);

impl Serialize for RawBytes<'_> {
    fn to_writer<W: std::io::Write>(&self, writer: &mut W) -> pgp::errors::Result<()> {
        writer.write_all(self.0)?;
        Ok(())
    }

    fn write_len(&self) -> usize {
        self.0.len()
    }
}

/// Packets in armour.
pub(super) fn armored(bytes: &[u8], kind: BlockType) -> Result<String> {
    let mut text = Vec::new();
    armor::write(&RawBytes(bytes), kind, &mut text, None, true).map_err(failed)?;
    String::from_utf8(text).map_err(|error| Error::bug("armour is no text").cause(error))
}

pub(super) fn failed(error: pgp::errors::Error) -> Error {
    Error::new(Kind::Unsupported, "nothing can be signed").cause(error)
}

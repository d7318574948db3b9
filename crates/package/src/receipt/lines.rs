//! The line breaks of receipts: `grep` and `diff` show single packages, relations, paths and code objects.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

/// Writes a receipt as JSON.
pub(super) fn write(receipt: &impl Serialize, mut sink: &mut dyn Write) -> io::Result<()> {
    receipt.serialize(&mut Serializer::with_formatter(&mut sink, Lines(0)))?;
    sink.write_all(b"\n")
}

/// The number of open objects: 1 in the receipt, 2 in a package, a code object or `kept`, 4 in a folder.
struct Lines(usize);

impl Formatter for Lines {
    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0 += 1;
        writer.write_all(b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0 -= 1;
        writer.write_all(b"}")
    }

    fn begin_array_value<W>(&mut self, writer: &mut W, first: bool) -> io::Result<()>
    where
        W: ?Sized + Write,
    {
        separate(writer, first, self.0 <= 2)
    }

    fn begin_object_key<W>(&mut self, writer: &mut W, first: bool) -> io::Result<()>
    where
        W: ?Sized + Write,
    {
        separate(writer, first, [1, 4].contains(&self.0))
    }
}

fn separate<W: ?Sized + Write>(writer: &mut W, first: bool, is_line: bool) -> io::Result<()> {
    writer.write_all(if first { b"" } else { b"," })?;
    writer.write_all(if is_line { b"\n" } else { b"" })
}

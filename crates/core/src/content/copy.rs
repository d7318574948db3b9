//! Writing content into a file, without passing it through memory where possible.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use rustix::io::Errno;

use super::{Content, Piece, PieceSource, WINDOW};
use crate::error::{Error, Result};
use crate::run::{Budget, interrupt};

/// Bytes that the kernel copies between two checks for an interruption.
const COPIED_AT_ONCE: usize = 64 << 20;

impl Content {
    /// Writes all bytes to `file`, which is at `path`, from its current position on.
    ///
    /// The kernel copies ranges of input files, and shares their blocks where the file system can.
    pub fn write_to(&self, file: &mut File, path: &Path) -> Result<()> {
        for piece in self.pieces.iter() {
            let copied = match &piece.source {
                PieceSource::File(input) => copy_range(&*input.handle()?, piece, file)?,
                _ => 0,
            };
            write_rest(piece, copied, file, path)?;
        }
        Ok(())
    }
}

/// Lets the kernel copy, and returns the number of bytes copied. The rest is left if the kernel cannot copy
/// between these files, the input became shorter, or an operation failed; the caller's own reading and
/// writing of the rest reports the reason.
fn copy_range(input: &File, piece: &Piece, file: &File) -> Result<u64> {
    let mut at = piece.offset;
    let end = piece.offset + piece.len;
    while at < end {
        interrupt::check()?;
        let len = usize::try_from(end - at).unwrap_or(COPIED_AT_ONCE).min(COPIED_AT_ONCE);
        match rustix::fs::copy_file_range(input, Some(&mut at), file, None, len) {
            Ok(0) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => break,
        }
    }
    Ok(at - piece.offset)
}

fn write_rest(piece: &Piece, copied: u64, file: &mut File, path: &Path) -> Result<()> {
    if copied == piece.len {
        return Ok(());
    }
    let rest =
        Piece { at: 0, len: piece.len - copied, offset: piece.offset + copied, ..piece.clone() };
    let len = rest.len;
    let mut reader = Content { pieces: [rest].into(), len, budget: Budget::unlimited() }.reader();
    let mut window = vec![0; usize::try_from(len).map_or(WINDOW, |len| len.min(WINDOW))];
    loop {
        match reader.read_window(&mut window)? {
            0 => return Ok(()),
            len => file.write_all(&window[..len]).map_err(|e| Error::io(path, "write", e))?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_piece_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        std::fs::write(&from, b"0123456789").unwrap();
        let input = Content::open(&from, &Budget::unlimited()).unwrap();
        let parts = [input.slice(2..9).unwrap(), Content::of_bytes(*b"abc"), Content::zeros(3)];
        let content = Content::concat(&parts);
        let mut file = File::create(&to).unwrap();
        content.write_to(&mut file, &to).unwrap();
        content.slice(1..8).unwrap().write_to(&mut file, &to).unwrap();
        assert_eq!(std::fs::read(&to).unwrap(), b"2345678abc\0\0\x00345678a");
    }

    #[test]
    fn an_input_that_became_shorter_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        std::fs::write(&from, b"0123456789").unwrap();
        let content = Content::open(&from, &Budget::unlimited()).unwrap();
        let _open = content.pin().unwrap();
        std::fs::write(&from, b"01234").unwrap();
        let mut file = File::create(&to).unwrap();
        assert!(content.write_to(&mut file, &to).is_err());
    }
}

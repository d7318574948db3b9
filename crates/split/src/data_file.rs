//! Device code in data files that stay as they are: archives, compressed files, pickles and others. Only the first
//! 64 KiB are searched, of the file or what it decodes to, and of the members of a ZIP archive that begin there.

use std::io::Read;

use rockpack_archive::zip;
use rockpack_core::compression::{Decoder, Method};
use rockpack_core::content::Content;
use rockpack_core::error::Result;
use rockpack_core::zstd_stream;

use super::host_binary::device_code_form;
use rockpack_report::EmbeddedForm;

/// The number of bytes that are searched.
const WINDOW: usize = 64 << 10;

/// The number of bytes that are read: zstd decodes blocks of up to 128 KiB as a whole.
const READ: u64 = 192 << 10;

/// The form of the first device code in the data file `content`. Damaged data has none.
pub(super) fn code_in_data(content: &Content) -> Result<Option<EmbeddedForm>> {
    let bytes = content.read_vec(0..content.len().min(READ), READ, "beginning")?;
    let near = &bytes[..bytes.len().min(WINDOW)];
    if near.is_ascii() && !near.contains(&0) {
        return Ok(None);
    }
    // Pickles of the protocols 1 and 2 have bytes as characters of Latin-1, in UTF-8, for a function of `_codecs`.
    let is_pickle = near.windows(7).any(|bytes| bytes == b"_codecs");
    let pickled = String::from_utf8_lossy(if is_pickle { near } else { b"" });
    let pickled = pickled.chars().map(|character| u8::try_from(character).unwrap_or_default());
    let plain = Decoder::of_streams(&bytes[..], method(&bytes))?;
    let members = zip::deflated(&bytes, near.len()).map(beginning);
    let mut parts = [beginning(plain), pickled.collect()].into_iter().chain(members);
    parts.find_map(|part| device_code_form(part).transpose()).transpose()
}

/// The compression of a file that begins with `bytes`.
fn method(bytes: &[u8]) -> Method {
    match bytes {
        [0x1f, 0x8b, 8, ..] => Method::Gzip,
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Method::Xz,
        _ if bytes.get(..4).is_some_and(zstd_stream::begins_frame) => Method::Zstd,
        _ => Method::Stored,
    }
}

/// The bytes that a decoder gives before its limit, its end or a fault.
fn beginning(decoder: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = decoder.take(WINDOW as u64).read_to_end(&mut bytes);
    bytes
}

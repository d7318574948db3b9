//! The file that is mapped at an address, by `/proc/self/maps`.

use rockpack_kpack::Code;
use rustix::buffer::spare_capacity;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::report::{self, Cause};

const MAPS: &std::ffi::CStr = c"/proc/self/maps";

/// Bytes that are read at once, several times the longest line.
const CHUNK: usize = 32 << 10;

/// The mapping in a line of `/proc/self/maps` that contains the address.
struct Mapping<'a> {
    path: &'a [u8],
    /// The offset of the address in the file.
    offset: u64,
}

/// Parses a line such as `7f0c1000-7f0c2000 r-xp 00001000 fe:01 1234   /usr/lib/x.so`. Returns `None` if its
/// range does not contain `address`. The path may have spaces.
fn mapping(line: &[u8], address: u64) -> Option<Mapping<'_>> {
    let mut fields = line.splitn(6, |byte| *byte == b' ');
    let range = fields.next()?;
    let dash = range.iter().position(|byte| *byte == b'-')?;
    let (start, end) = (hex_number(range.get(..dash)?)?, hex_number(range.get(dash + 1..)?)?);
    let offset = hex_number(fields.nth(1)?)?;
    let path = fields.nth(2).unwrap_or_default().trim_ascii_start();
    let within = (start..end).contains(&address);
    within.then(|| Mapping { path, offset: offset.saturating_add(address - start) })
}

fn hex_number(text: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()
}

fn unreadable(errno: Errno) -> Code {
    let cause = Cause(errno);
    let why = format_args!("/proc/self/maps: cannot be read: {cause}");
    report::fail(Code::PathDiscoveryFailed, why)
}

/// Finds the file that is mapped at `address`, and passes its path and the offset of the address in it to
/// `take`.
pub fn discover(
    address: u64,
    take: impl FnOnce(&[u8], u64) -> Result<(), Code>,
) -> Result<(), Code> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let maps = rustix::fs::open(MAPS, flags, Mode::empty()).map_err(unreadable)?;
    let mut lines = Vec::new();
    loop {
        lines.try_reserve(CHUNK).map_err(|_| report::refused("a list of mappings"))?;
        match rustix::io::read(&maps, spare_capacity(&mut lines)) {
            Ok(0) => break,
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(unreadable(errno)),
        }
        let end = lines.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let whole = lines.get(..end).unwrap_or_default().split(|byte| *byte == b'\n');
        if let Some(found) = whole.filter_map(|line| mapping(line, address)).next() {
            return named(&found, address).and_then(|path| take(path, found.offset));
        }
        lines.drain(..end);
    }
    let why = format_args!("no file is mapped at address {address:#x}");
    Err(report::fail(Code::PathDiscoveryFailed, why))
}

/// The path of a mapping. Fails for anonymous mappings and the kernel's own, such as `[stack]`.
fn named<'a>(mapping: &Mapping<'a>, address: u64) -> Result<&'a [u8], Code> {
    if mapping.path.is_empty() || mapping.path.first() == Some(&b'[') {
        let why = format_args!("memory at address {address:#x} belongs to no file");
        return Err(report::fail(Code::PathDiscoveryFailed, why));
    }
    Ok(mapping.path)
}

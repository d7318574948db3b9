//! Reads arbitrary bytes as a `.deb` or an `.rpm`: errors are fine, panics and runaway memory are not.

use rockpack_core::content::Content;
use rockpack_core::error::Error;
use rockpack_archive::package_file::PackageReader;

pub fn run(bytes: &[u8]) {
    let Some(reader) = super::read(PackageReader::open(Content::of_bytes(bytes))) else {
        return;
    };
    // A few kilobytes can decompress to gigabytes; a thousand entries are enough to look at.
    let mut left = 1000;
    let visited = reader.visit(&mut |_, _| {
        left -= 1;
        match left {
            0 => Err(Error::unsupported("enough")),
            _ => Ok(()),
        }
    });
    super::read(visited);
}

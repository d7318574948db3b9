//! Checksum files of packed artifacts: the result is a digest from the file, for the requested name, in any
//! spelling of its digits.

use rockpack_split::input::artifact::parse_checksum;
use rockpack_core::content::hex;

const ARCHIVE: &str = "a.tar.zst";

pub fn run(bytes: &[u8]) {
    let Some(digest) = super::read(parse_checksum(bytes, ARCHIVE)) else {
        return;
    };
    let digest = hex(&digest);
    let text = std::str::from_utf8(bytes).unwrap().to_ascii_lowercase();
    let alone = text.trim().lines().count() == 1;
    // Another file may have the same digest.
    let of_it = |line: &str| alone || line.rsplit(['/', ' ', '*']).next() == Some(ARCHIVE);
    let mut lines = text.lines().map(str::trim_end).filter(|line| line.starts_with(&digest));
    assert!(lines.any(of_it), "{text}");
    let written = format!("{digest}  {ARCHIVE}\n");
    assert_eq!(hex(&parse_checksum(written.as_bytes(), ARCHIVE).unwrap()), digest);
}

//! Numbers in the headers of tar archives, as dpkg reads them.
//!
//! ```text
//! octal digits, with blanks in front, and blanks and NULs behind; a NUL and no digit is zero, and nothing
//! but blanks is no number
//! 0x80, then the number, big-endian
//! 0xff, then the number, big-endian in two's complement, which is negative
//! ```
//!
//! Source: `lib/dpkg/tarfn.c` of dpkg 1.21. The `tar` crate drops digits that do not fit, and everything
//! behind a NUL.

/// The number in a field of up to twelve bytes; `None` if dpkg finds no number.
pub(super) fn number(field: &[u8]) -> Option<i128> {
    match field.split_first() {
        Some((0x80, rest)) => Some(big_endian(0, rest)),
        Some((0xff, rest)) => Some(big_endian(-1, rest)),
        _ => octal(field),
    }
}

fn big_endian(start: i128, bytes: &[u8]) -> i128 {
    bytes.iter().fold(start, |number, byte| (number << 8) | i128::from(*byte))
}

fn octal(field: &[u8]) -> Option<i128> {
    let start = field.iter().position(|byte| *byte != b' ')?;
    let field = field.get(start..).unwrap_or_default();
    let end = field.iter().position(|byte| is_filler(*byte)).unwrap_or(field.len());
    let (digits, rest) = field.split_at_checked(end)?;
    if !rest.iter().all(|byte| is_filler(*byte)) {
        return None;
    }
    digits.iter().try_fold(0, |number, digit| match digit {
        b'0'..=b'7' => Some((number << 3) | i128::from(digit - b'0')),
        _ => None,
    })
}

fn is_filler(byte: u8) -> bool {
    matches!(byte, b' ' | 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_that_dpkg_sees() {
        for (field, expected) in [
            (&b"0000644\0"[..], Some(0o644)),
            (b"  644 \0\0", Some(0o644)),
            (b"00000644", Some(0o644)),
            (b"77777777", Some(0o7777_7777)),
            (b"777777777777", Some(0o7777_7777_7777)),
            (b"\0\0\0\0\0\0\0\0", Some(0)),
            (b"       \0", Some(0)),
            (b"        ", None),
            (b"", None),
            (b"644 x\0\0\0", None),
            (b"644\0x\0\0\0", None),
            (b"9\0\0\0\0\0\0\0", None),
            (b"-1\0\0\0\0\0\0", None),
            (b"\x81\0\0\0\0\0\0\0", None),
            (b"\x80\0\0\0\0\0\x01\xa4", Some(0o644)),
            (b"\x80\x01\0\0\0\0\0\0", Some(1 << 48)),
            (b"\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", Some((1 << 88) - 1)),
            (b"\xff\xff\xff\xff\xff\xff\xff\xfe", Some(-2)),
            (b"\xff\0\0\0\0\0\0\0\0\0\0\0", Some(-(1 << 88))),
        ] {
            assert_eq!(number(field), expected, "{field:?}");
        }
    }
}

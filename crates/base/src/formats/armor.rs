//! OpenPGP armour: several keys or signatures in one file.
//!
//! ```text
//! -----BEGIN PGP PUBLIC KEY BLOCK-----      RFC 9580, 6.2
//! …
//! -----END PGP PUBLIC KEY BLOCK-----
//! ```
//!
//! gpg and apt read every block of a file; the `pgp` crate reads the first.

/// The beginning of a block, at the beginning of a line.
const BEGIN: &[u8] = b"-----BEGIN PGP ";

/// Splits a file into its blocks, each with the text up to the next one; the whole file if it has no block.
pub fn blocks(bytes: &[u8]) -> Vec<&[u8]> {
    let starts: Vec<usize> = (0..bytes.len()).filter(|at| begins_block(bytes, *at)).collect();
    if starts.is_empty() {
        return vec![bytes];
    }
    let ends = starts.iter().skip(1).copied().chain([bytes.len()]);
    starts.iter().zip(ends).filter_map(|(start, end)| bytes.get(*start..end)).collect()
}

fn begins_block(bytes: &[u8], at: usize) -> bool {
    let is_first = at.checked_sub(1).is_none_or(|before| bytes.get(before) == Some(&b'\n'));
    is_first && bytes.get(at..).is_some_and(|rest| rest.starts_with(BEGIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_is_one() {
        let [one, two] = ["one", "two"]
            .map(|text| format!("-----BEGIN PGP X-----\n\n{text}\n-----END PGP X-----\n"));
        let both = format!("text\n{one}\n{two}");
        let found: Vec<&[u8]> = blocks(both.as_bytes());
        assert_eq!(found, [format!("{one}\n").as_bytes(), two.as_bytes()]);
        let inside = b"\x98\x33 -----BEGIN PGP X-----";
        assert_eq!(blocks(inside), [inside]);
        assert_eq!(blocks(b""), [b""]);
    }
}

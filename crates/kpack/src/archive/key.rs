//! The keys of a table of contents: `<kernel_name>#<co_index>`.

use crate::result_code::OutOfMemory;

const SEPARATOR: char = '#';

/// Digits of the highest index.
const DIGITS: usize = 10;

/// The TOC key of wrapper `co_index` of the binary with the name `kernel_name`.
pub fn key(kernel_name: &str, co_index: u32) -> String {
    format!("{kernel_name}{SEPARATOR}{co_index}")
}

/// The TOC key for a name that need not be UTF-8. Fails if memory is refused.
pub fn try_key(kernel_name: &[u8], co_index: u32) -> Result<Vec<u8>, OutOfMemory> {
    use std::io::Write as _;
    let mut key = Vec::new();
    key.try_reserve_exact(kernel_name.len().saturating_add(SEPARATOR.len_utf8() + DIGITS))?;
    key.extend_from_slice(kernel_name);
    // This writes into reserved memory, so it neither fails nor allocates.
    let _ = write!(key, "{SEPARATOR}{co_index}");
    Ok(key)
}

/// Splits a TOC key into kernel name and index. Returns `None` for keys of early tools, which have no index.
pub fn split_key(key: &str) -> Option<(&str, u32)> {
    let (kernel_name, co_index) = key.rsplit_once(SEPARATOR)?;
    Some((kernel_name, co_index.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_and_taken_apart() {
        for (name, index) in [("lib/libx.so.1", 0), ("a#b", 7), ("", u32::MAX)] {
            let text = key(name, index);
            assert_eq!(split_key(&text), Some((name, index)));
            let bytes = try_key(name.as_bytes(), index).unwrap();
            assert_eq!(bytes, text.as_bytes());
            assert!(bytes.capacity() >= name.len() + 1 + DIGITS);
        }
        assert_eq!(try_key(b"\xff", 1).unwrap(), b"\xff#1");
        for none in ["lib/libx.so", "lib/libx.so#", "lib/libx.so#-1", "lib/libx.so#4294967296"] {
            assert_eq!(split_key(none), None, "{none}");
        }
    }
}

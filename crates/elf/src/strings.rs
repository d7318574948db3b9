//! Strings in a string table.

/// The string at `offset` of a string table, without its closing zero. Empty outside of the table; `None` for
/// more than `limit` bytes.
pub fn string_at(table: &[u8], offset: u32, limit: usize) -> Option<&[u8]> {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let tail = table.get(start..).unwrap_or_default();
    let (head, is_cut) = match tail.get(..=limit) {
        Some(head) => (head, true),
        None => (tail, false),
    };
    match head.iter().position(|byte| *byte == 0) {
        Some(end) => head.get(..end),
        None => (!is_cut).then_some(head),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_end_at_a_zero_or_with_the_table() {
        let table = b"\0ab\0cd";
        for (offset, expected) in [(0, ""), (1, "ab"), (2, "b"), (4, "cd"), (6, ""), (7, "")] {
            assert_eq!(string_at(table, offset, 2), Some(expected.as_bytes()), "{offset}");
        }
        assert_eq!(string_at(table, u32::MAX, 2), Some(&b""[..]));
        assert_eq!((string_at(table, 1, 1), string_at(table, 4, 1)), (None, None));
    }
}

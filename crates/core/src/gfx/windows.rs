//! Archs in texts that are too long to hold in memory.

use std::collections::BTreeSet;
use std::io;

use super::{BaseArch, archs_in};

/// Bytes that are searched together.
const WINDOW: usize = 64 << 10;

/// Longest word that is kept until its end is read, in bytes.
const WORD_LIMIT: usize = 4096;

/// The archs that a text names: those that [`archs_in`] finds in the whole text, unless it has words longer
/// than 4 KiB. The text need not be UTF-8. `fill` writes the next bytes into its buffer and returns their
/// number; zero ends the text.
pub fn archs_in_windows(
    mut fill: impl FnMut(&mut [u8]) -> io::Result<usize>,
) -> io::Result<BTreeSet<BaseArch>> {
    let mut archs = BTreeSet::new();
    let mut buffer = vec![0; WORD_LIMIT + WINDOW];
    let mut kept = 0;
    loop {
        let len = fill(&mut buffer[kept..])?;
        let filled = kept + len;
        let end = match len {
            0 => filled,
            _ => last_word_start(&buffer[..filled]),
        };
        // Many windows of an index hold only numbers. The search for a `g` skips them without a conversion.
        if buffer[..end].contains(&b'g') {
            archs.extend(archs_in(&String::from_utf8_lossy(&buffer[..end])));
        }
        if len == 0 {
            return Ok(archs);
        }
        buffer.copy_within(end..filled, 0);
        kept = filled - end;
    }
}

/// The start of the last word of `text`, which may continue in the next window. Words may contain dashes, as
/// archs do (`gfx1250-strict`). Words longer than [`WORD_LIMIT`] are cut.
fn last_word_start(text: &[u8]) -> usize {
    let before = text.iter().rposition(|byte| !byte.is_ascii_alphanumeric() && *byte != b'-');
    let start = before.map_or(0, |at| at + 1);
    if text.len() - start <= WORD_LIMIT { start } else { text.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &[u8]) -> Vec<String> {
        let mut rest = text;
        let archs = archs_in_windows(|buffer| io::Read::read(&mut rest, buffer)).unwrap();
        archs.iter().map(BaseArch::to_string).collect()
    }

    #[test]
    fn names_across_the_end_of_a_window_are_whole() {
        let first = WORD_LIMIT + WINDOW;
        for before in (first - 100..first + 40).chain(first + WINDOW - 20..first + WINDOW + 20) {
            assert_eq!(named_behind(before, "gfx1250-strict gfx90a"), ["gfx1250-strict", "gfx90a"]);
            assert_eq!(named_behind(before, "gfx90a-xnack+ gfx1100.co"), ["gfx1100", "gfx90a"]);
            assert!(named_behind(before, "xgfx942 gfx90a6e gfx000").is_empty(), "{before}");
        }
    }

    /// The archs in `text` behind `before` bytes.
    fn named_behind(before: usize, text: &str) -> Vec<String> {
        named(&[vec![0xff; before], text.as_bytes().to_vec()].concat())
    }

    #[test]
    fn long_words_are_cut() {
        assert!(named(&vec![b'a'; 300_000]).is_empty());
        let text = [&[b'a'; 300_000][..], b" gfx90a ", &[b'-'; 300_000], b" gfx942"].concat();
        assert_eq!(named(&text), ["gfx90a", "gfx942"]);
    }
}

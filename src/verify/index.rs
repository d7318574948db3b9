//! Which archs an index of kernels names.
//!
//! Indexes are MessagePack with the archs in plain strings. They are searched as text here, in
//! windows, instead of being decoded: that needs no memory, whatever the file claims to hold.

use std::collections::BTreeSet;

use crate::content::{Content, WINDOW};
use crate::error::Result;
use crate::gfx::{BaseArch, archs_in};

/// Bytes of one window that the next one sees again: longer than any arch.
const OVERLAP: usize = 64;

/// The archs that the file name of `path` and the bytes of `content` name.
pub(super) fn archs_named(path: &str, content: &Content) -> Result<BTreeSet<BaseArch>> {
    let name = path.rsplit('/').next().unwrap_or_default();
    let mut archs: BTreeSet<BaseArch> = archs_in(name).into_iter().collect();
    let mut reader = content.reader();
    let mut window = vec![0; WINDOW + OVERLAP];
    let mut kept = 0;
    loop {
        let len = reader.read_window(&mut window[kept..])?;
        let filled = kept + len;
        // A word that the end of the window cuts is seen whole in the next one.
        let words = match len {
            0 => filled,
            _ => window[..filled].iter().rposition(|b| !b.is_ascii_alphanumeric()).unwrap_or(0),
        };
        archs.extend(archs_in(&String::from_utf8_lossy(&window[..words])));
        if len == 0 {
            return Ok(archs);
        }
        kept = filled.min(OVERLAP);
        window.copy_within(filled - kept..filled, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_across_the_end_of_a_window_are_whole() {
        for before in WINDOW - 20..WINDOW + 80 {
            let mut bytes = vec![0; before];
            bytes.extend(b"\xa7gfx1100\xa6gfx90a");
            let archs = archs_named("lib/x.dat", &Content::of_bytes(bytes)).unwrap();
            let archs: Vec<&str> = archs.iter().map(BaseArch::as_str).collect();
            assert_eq!(archs, ["gfx1100", "gfx90a"], "{before}");
        }
    }

    #[test]
    fn the_file_name_counts() {
        let archs = archs_named("lib/T_gfx1151.dat", &Content::of_bytes(*b"none")).unwrap();
        assert_eq!(archs.len(), 1);
    }
}

//! The build-id: a note that ties a program or library to its debug file.
//!
//! ```text
//! 0   4  bytes of the name       a note of a SHT_NOTE section or PT_NOTE segment
//! 4   4  bytes of the descriptor
//! 8   4  type, 3 for a build-id
//! 12  n  name, padded to 4       "GNU\0"
//!     n  descriptor, padded to 4: the build-id, of any length
//! ```
//!
//! Source: System V ABI, "Note Section"; `NT_GNU_BUILD_ID` of glibc's `elf.h`; gdb's manual, "Separate Debug
//! Files". A debug file made by `objcopy --only-keep-debug` keeps the note's section but not always its
//! segment's bytes, so sections are searched first.

use object::read::elf::NoteIterator;
use object::{LittleEndian as LE, elf};

use super::ElfFile;
use rockpack_core::content::hex;
use rockpack_core::error::Result;

const GNU: &[u8] = b"GNU\0";
/// Longest note section or segment that is searched, in bytes. All of them together are searched for at most twice as
/// many: sections and segments cover the same bytes, and a damaged file may list them many times. A build-id is short
/// and one of the first notes.
const NOTES_MAX: u64 = 1 << 20;
/// Shortest build-id in bytes: debuggers name a folder by the first byte and a file by the rest.
const SHORTEST: usize = 2;
/// Longest build-id in bytes. `ld --build-id` makes up to 20; given ones may be longer.
const LONGEST: usize = 64;

/// The build-id of `file` in hex; `None` if it has no valid one.
pub fn build_id(file: &ElfFile) -> Result<Option<String>> {
    let sections = file.sections.iter().filter(|section| section.sh_type == elf::SHT_NOTE);
    let segments = file.program_headers.iter().filter(|header| header.p_type == elf::PT_NOTE);
    let ranges = sections
        .map(|section| (section.sh_offset, section.sh_size))
        .chain(segments.map(|segment| (segment.p_offset, segment.p_filesz)));
    let mut left = 2 * NOTES_MAX;
    for (start, size) in ranges {
        let end = start.checked_add(size).filter(|end| *end <= file.content().len());
        let Some(end) = end.filter(|_| size <= NOTES_MAX.min(left)) else { continue };
        left -= size;
        let notes = file.content().read_vec(start..end, NOTES_MAX, "notes")?;
        if let Some(found) = find(&notes) {
            return Ok(Some(hex(found)));
        }
    }
    Ok(None)
}

/// The descriptor of the first build-id among `notes`.
fn find(notes: &[u8]) -> Option<&[u8]> {
    let notes = NoteIterator::<elf::FileHeader64<LE>>::new(LE, 4, notes).ok()?;
    let own = notes
        .map_while(|note| note.ok())
        .filter(|note| note.name_bytes() == GNU && note.n_type(LE) == elf::NT_GNU_BUILD_ID);
    own.map(|note| note.desc()).find(|id| (SHORTEST..=LONGEST).contains(&id.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(kind: u32, name: &[u8], descriptor: &[u8]) -> Vec<u8> {
        let [name_len, len] = [name, descriptor].map(|part| u32::try_from(part.len()).unwrap());
        let mut bytes = Vec::new();
        for word in [name_len, len, kind] {
            bytes.extend(word.to_le_bytes());
        }
        for part in [name, descriptor] {
            bytes.extend(part);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    #[test]
    fn the_note_is_found_after_others() {
        let property = note(5, GNU, &[1; 13]);
        let other = note(3, b"Go\0", b"what Go calls a build id");
        let own = note(3, GNU, &[0xab; 20]);
        let notes = [property, other, own].concat();
        assert_eq!(find(&notes), Some(&[0xab; 20][..]));
        for end in 0..notes.len() {
            assert_eq!(find(&notes[..end]), None, "{end}");
        }
        assert_eq!(find(&note(3, GNU, &[1])), None, "too short for a folder and a file");
        assert_eq!(find(&[0xff; 64]), None);
    }
}

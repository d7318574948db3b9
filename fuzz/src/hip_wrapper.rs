//! Wrappers: only zeros are between them, and written again they are the section.

use rockpack_core::content::Content;
use rockpack_elf::hip_wrapper;

pub fn run(bytes: &[u8]) {
    let Some(wrappers) = super::read(hip_wrapper::parse(&Content::of_bytes(bytes))) else {
        return;
    };
    let mut written = vec![0; bytes.len()];
    for wrapper in wrappers {
        let at = usize::try_from(wrapper.offset).unwrap();
        written[at..at + hip_wrapper::SIZE].copy_from_slice(&wrapper.to_bytes());
    }
    assert_eq!(written, bytes);
}

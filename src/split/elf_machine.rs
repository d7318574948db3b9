//! The machine that an ELF file is for.

use rockpack_base::content::Content;
use rockpack_base::error::Result;

use crate::report::ElfMachine;

/// Bytes up to and including `e_machine`.
const IDENTIFICATION: usize = 20;

/// The machine of the ELF file `content`, if packages are not for it.
pub(super) fn other_machine(content: &Content) -> Result<Option<ElfMachine>> {
    if content.len() < IDENTIFICATION as u64 {
        return Ok(None);
    }
    let head: [u8; IDENTIFICATION] = content.read_array(0)?;
    if !head.starts_with(b"\x7fELF") {
        return Ok(None);
    }
    let machine = ElfMachine::new(head[4], head[5], [head[18], head[19]]);
    Ok(machine.filter(|machine| !machine.is_packaged()))
}

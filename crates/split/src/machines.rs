//! Refuses ELF code for machines that packages are not for.
//!
//! Packages are for x86-64. A file for another machine cannot be run or linked there, and device code in it
//! is not looked for: it fails the run unless the policy allows the file as data. The check reads ELF files
//! of every type, the members of static archives, and the host code in bundles of unlinked objects. AMDGPU
//! code objects are device code, not another machine's.

use std::collections::BTreeSet;

use rockpack_core::content::Content;
use rockpack_core::error::{Error, Result};
use rockpack_core::tree::TreePath;
use rockpack_elf::fatbin::{self, Bundles};
use rockpack_elf::offload_bundle::BundleEntryKind;

use super::development::Sniffed;
use super::notes::Notes;
use super::parts::SplitPolicy;
use super::static_archive::{self, Members};
use rockpack_report::ElfMachine;
use rockpack_report::words::list;

/// Bytes of an ELF file up to and including `e_machine`.
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

/// Refuses the file at `path` if it has code for another machine; if the policy allows it, notes it instead.
pub(super) fn judge(
    path: &TreePath,
    content: &Content,
    sniffed: Sniffed,
    policy: &SplitPolicy<'_>,
    notes: &mut Notes,
) -> Result<()> {
    let (holder, machines) = match sniffed {
        Sniffed::OtherMachine(machine) => ("is an ELF file", [machine].into()),
        Sniffed::Development(_) if content.starts_with(static_archive::MAGIC)? => {
            ("is a static archive with members", of_members(content)?)
        }
        Sniffed::UnlinkedBundle => ("is an offload bundle with host code", of_bundles(content)?),
        _ => return Ok(()),
    };
    if machines.is_empty() {
        return Ok(());
    }
    if (policy.allows_other_machine)(path) {
        machines.into_iter().for_each(|machine| notes.other_machine(machine, path));
        return Ok(());
    }
    let machines = list(&machines.into_iter().collect::<Vec<_>>());
    let message = format!("{holder} for {machines}, and packages are for x86-64");
    Err(Error::unsupported(message).at(&content.place(0)).hint(
        "build the artifact for x86-64, or leave the file out of it; a file that is data, such as \
         a sample for an emulator, is packed if `other_machines` in the configuration names it \
         (for `rockpack split`, --other-machines)",
    ))
}

/// The other machines of the members of a static archive.
fn of_members(archive: &Content) -> Result<BTreeSet<ElfMachine>> {
    let mut machines = BTreeSet::new();
    for member in Members::of(archive) {
        let member = member?;
        machines.extend(other_machine(&member)?);
        if fatbin::starts_bundle(&member)? {
            // A member with a bundle's magic that cannot be read as one is passed on unchanged.
            match of_bundles(&member) {
                Err(error) if error.is_of_reading() => return Err(error),
                found => machines.extend(found.unwrap_or_default()),
            }
        }
    }
    Ok(machines)
}

/// The other machines of the host code in the bundles that `content` consists of.
fn of_bundles(content: &Content) -> Result<BTreeSet<ElfMachine>> {
    let mut machines = BTreeSet::new();
    for next in Bundles::new(content) {
        let next = next?;
        let entries = next.bundle.bundle.entries.iter();
        for entry in entries.filter(|entry| entry.id.kind == BundleEntryKind::Host) {
            machines.extend(other_machine(&entry.content)?);
        }
    }
    Ok(machines)
}

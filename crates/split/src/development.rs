//! The type of a file by its first bytes, which development files carry device code, and the machines of ELF code.
//!
//! Packages are for x86-64. A file for another machine cannot be run or linked there: it fails the run unless the
//! policy allows the file as data, which is not searched for device code. The check reads ELF files
//! of every type, the members of static archives, and the host code in bundles of unlinked objects. AMDGPU
//! code objects are device code, not code for another machine.

use std::collections::BTreeSet;

use object::elf;
use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result, ResultExt};
use rockpack_core::gfx::BaseArch;
use rockpack_core::tree::TreePath;
use rockpack_elf::fatbin::{self, Bundles};
use rockpack_elf::kpack;
use rockpack_elf::offload_bundle::{BundleEntry, BundleEntryKind};
use rockpack_elf::{ElfFile, FileHeader};
use rockpack_report::words::list;
use rockpack_report::{DevelopmentFile, ElfMachine};

use super::parts::{Notes, SplitPolicy};

const BITCODE: &[u8; 4] = b"BC\xc0\xde";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sniffed {
    /// An ELF code object for AMDGPU, linked.
    CodeObject,
    /// An ELF file for neither x86-64 nor AMDGPU, of any type.
    OtherMachine(ElfMachine),
    /// An ELF file for the host, linked.
    HostElf,
    /// A linked ELF64 file without section table.
    Stripped,
    /// An offload bundle of device code in a file of its own.
    Bundle,
    /// A bundle that also holds host code, or an offload binary that also holds unlinked code or code for other
    /// vendors' GPUs.
    UnlinkedBundle,
    /// A static archive that only names its members.
    ThinArchive,
    /// A file for later links, with the kind of its device code, if any.
    Development(Option<DevelopmentFile>),
    Other,
}

pub(super) fn sniff(content: &Content) -> Result<Sniffed> {
    if content.starts_with(b"\x7fELF")? {
        return sniff_elf(content);
    }
    if content.starts_with(&kpack::MAGIC)? {
        let message = "is a kernel archive, but its name is not one that loaders look for";
        return Err(Error::unsupported(message)
            .at(&content.place(0))
            .hint("kernel archives are called {component}_{arch}.kpack"));
    }
    if content.starts_with(THIN_MAGIC)? {
        return Ok(Sniffed::ThinArchive);
    }
    if content.starts_with(ARCHIVE_MAGIC)? {
        let fat = any_member(content, carries_device_code)?;
        return Ok(Sniffed::Development(fat.then_some(DevelopmentFile::StaticArchive)));
    }
    if content.starts_with(BITCODE)? {
        return Ok(Sniffed::Development(Some(DevelopmentFile::Bitcode)));
    }
    if !fatbin::starts_bundle(content)? {
        Ok(Sniffed::Other)
    } else if has_other_code(content)? {
        Ok(Sniffed::UnlinkedBundle)
    } else {
        Ok(Sniffed::Bundle)
    }
}

/// Whether bundles have host code, or an offload binary has an image that AMD's runtimes do not load. Such an
/// entry of a bundle is an error of its own.
fn has_other_code(content: &Content) -> Result<bool> {
    for next in Bundles::new(content) {
        let bundle = next?.bundle;
        for entry in bundle.entries.iter().filter(|entry| !entry.content.is_empty()) {
            let is_host = entry.id.kind == BundleEntryKind::Host;
            if is_host || bundle.is_binary && is_other_image(entry)? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

fn is_other_image(entry: &BundleEntry) -> Result<bool> {
    if matches!(entry.id.kind, BundleEntryKind::Other(_)) {
        return Ok(true);
    }
    match FileHeader::read(&entry.content)? {
        Some(header) => Ok(header.e_type == elf::ET_REL),
        None => entry.content.starts_with(BITCODE),
    }
}

fn sniff_elf(content: &Content) -> Result<Sniffed> {
    if let Some(machine) = other_machine(content)? {
        return Ok(Sniffed::OtherMachine(machine));
    }
    // The examination of host binaries reports a file with ELF magic and no readable header.
    let Some(header) = FileHeader::read(content)? else {
        return Ok(Sniffed::HostElf);
    };
    if header.e_type == elf::ET_REL {
        return Ok(Sniffed::Development(object_device_code(content, header)?));
    }
    if header.e_machine == elf::EM_AMDGPU {
        return Ok(Sniffed::CodeObject);
    }
    if ElfFile::with_header(content, header)?.sections.is_empty() {
        Ok(Sniffed::Stripped)
    } else {
        Ok(Sniffed::HostElf)
    }
}

/// Prefixes of the names of sections with device code in an unlinked object: bundled by either driver, or
/// unbundled.
const DEVICE_SECTIONS: [&[u8]; 3] =
    [b".hip_fatbin", b"__CLANG_OFFLOAD_BUNDLE__", b".llvm.offloading"];

/// The kind of development file that an unlinked object with device code is; `None` without device code.
fn object_device_code(content: &Content, header: FileHeader) -> Result<Option<DevelopmentFile>> {
    if header.e_machine == elf::EM_AMDGPU {
        return Ok(Some(DevelopmentFile::DeviceObject));
    }
    let object = ElfFile::with_header(content, header)?;
    let holds = object.sections.iter().any(|section| {
        let name = object.name_bytes(section);
        DEVICE_SECTIONS.iter().any(|start| name.starts_with(start))
    });
    Ok(holds.then_some(DevelopmentFile::HostObject))
}

/// The archs that the bundles in the members of a static archive name.
pub(super) fn archs_of_archive(content: &Content) -> Result<BTreeSet<BaseArch>> {
    let mut archs = BTreeSet::new();
    for member in members(content) {
        for bundles in bundles_of_member(&member?)? {
            for next in Bundles::new(&bundles) {
                let entries = next?.bundle.entries.into_iter();
                let targets = entries.filter_map(|entry| entry.id.target);
                archs.extend(targets.map(|target| target.base().clone()));
            }
        }
    }
    Ok(archs)
}

/// The parts of a member that hold bundles: the member itself, or sections of an object. Refuses overlapping sections
/// that together have more bytes than the member: their bundles would be read again and again.
fn bundles_of_member(member: &Content) -> Result<Vec<Content>> {
    if fatbin::starts_bundle(member)? {
        return Ok(vec![member.clone()]);
    }
    let Some(header) = FileHeader::read(member)?.filter(|header| header.e_type == elf::ET_REL)
    else {
        return Ok(Vec::new());
    };
    let object = ElfFile::with_header(member, header)?;
    let bundled = object.sections.iter().enumerate().filter(|(_, section)| {
        let name = object.name_bytes(section);
        DEVICE_SECTIONS[..2].iter().any(|start| name.starts_with(start))
    });
    let mut found = Vec::new();
    let mut left = member.len();
    for (index, section) in bundled {
        let bytes = member.slice(object.file_range(index, section)?)?;
        left = left.checked_sub(bytes.len()).ok_or_else(|| {
            let message = "shares its bytes with other sections of device code";
            let error = object.refuse_section(Kind::Malformed, index, message);
            error.hint("no compiler writes such an object: build the archive or copy it again")
        })?;
        // The name of such a section's relocations has the same prefix.
        if fatbin::starts_bundle(&bytes)? {
            found.push(bytes);
        }
    }
    Ok(found)
}

/// Whether a member of a static archive carries device code; members are ELF objects, bundles or bitcode.
fn carries_device_code(member: &Content) -> Result<bool> {
    if fatbin::starts_bundle(member)? {
        return Ok(true);
    }
    match FileHeader::read(member)? {
        Some(header) => Ok(object_device_code(member, header)?.is_some()),
        None => member.starts_with(BITCODE),
    }
}

pub(super) const ARCHIVE_MAGIC: &[u8; 8] = b"!<arch>\n";

/// The first bytes of a thin one, which names its members and does not hold them.
const THIN_MAGIC: &[u8; 8] = b"!<thin>\n";

const MEMBER_HEADER: u64 = 60;

/// Prefix of a member's name if the long name precedes its content.
const BSD_NAME: &[u8] = b"#1/";

pub(super) fn has_thin_member(archive: &Content) -> Result<bool> {
    any_member(archive, |member| member.starts_with(THIN_MAGIC))
}

fn any_member(archive: &Content, meets: impl Fn(&Content) -> Result<bool>) -> Result<bool> {
    for member in members(archive) {
        if meets(&member?)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The members of a static archive (`.a`), which begins with the magic; ends after the first error.
///
/// ```text
/// 8 bytes  magic "!<arch>\n"; "!<thin>\n" where the members stay in files of their own
/// per member, at an even offset:
///   60  header: name 16, date 12, owner 6, group 6, mode 8, size 10 in decimal, end 2
///       then, for the BSD name "#1/n", n bytes of name, which its size includes
///       then the bytes of the member
/// ```
///
/// Source: ar(5) of FreeBSD; of thin archives, the manual of ar in GNU binutils.
fn members(archive: &Content) -> impl Iterator<Item = Result<Content>> {
    let mut position = ARCHIVE_MAGIC.len() as u64;
    std::iter::from_fn(move || {
        let is_left = position < archive.len();
        let member = is_left.then(|| member(archive, &mut position))?;
        Some(member.inspect_err(|_| position = archive.len()))
    })
}

fn member(archive: &Content, position: &mut u64) -> Result<Content> {
    let at = *position;
    let bad_size = || {
        let error = Error::malformed("the size of a member is not a number");
        error.structure("static archive").at(&archive.place(at))
    };
    let header: [u8; 60] = archive.read_array(at)?;
    let size = number(&header[48..58]).ok_or_else(bad_size)?;
    let name = header[..16].strip_prefix(BSD_NAME);
    let name_len = name.and_then(number).filter(|len| *len <= size).unwrap_or(0);
    let start = at + MEMBER_HEADER;
    let end = start.checked_add(size).ok_or_else(bad_size)?;
    let member = archive.slice(start + name_len..end)?;
    // Members are padded to even lengths.
    *position = end.saturating_add(end % 2);
    Ok(member)
}

/// A decimal number, then spaces.
fn number(field: &[u8]) -> Option<u64> {
    std::str::from_utf8(field).ok()?.trim_end().parse().ok()
}

/// Bytes of an ELF file up to and including `e_machine`.
const IDENTIFICATION: usize = 20;

/// The machine of the ELF file `content`, if packages are not for it.
fn other_machine(content: &Content) -> Result<Option<ElfMachine>> {
    if content.len() < IDENTIFICATION as u64 || !content.starts_with(b"\x7fELF")? {
        return Ok(None);
    }
    let head: [u8; IDENTIFICATION] = content.read_array(0)?;
    let machine = ElfMachine::new(head[4], head[5], [head[18], head[19]]);
    Ok(machine.filter(|machine| !machine.is_packaged()))
}

/// Refuses the file at `path` if it has code for another machine; if the policy allows it, reports it instead.
pub(super) fn check_machines(
    path: &TreePath,
    content: &Content,
    sniffed: Sniffed,
    policy: &SplitPolicy<'_>,
    notes: &mut Notes,
) -> Result<()> {
    let (holder, machines) = match sniffed {
        Sniffed::OtherMachine(machine) => ("is an ELF file", [machine].into()),
        Sniffed::Development(_) if content.starts_with(ARCHIVE_MAGIC)? => {
            ("is a static archive with members", machines_of_members(content)?)
        }
        Sniffed::UnlinkedBundle => {
            ("is an offload bundle with host code", machines_of_bundles(content)?)
        }
        _ => return Ok(()),
    };
    if machines.is_empty() {
        return Ok(());
    }
    if (policy.allows_other_machine)(path) {
        machines.into_iter().for_each(|machine| notes.other_machine(machine, path));
        return Ok(());
    }
    let machines = list(machines);
    let message = format!("{holder} for {machines}, but packages are for x86-64");
    Err(Error::unsupported(message).at(&content.place(0)).hint(
        "build the artifact for x86-64, or leave the file out of it; a file that is data, such as \
         a sample for an emulator, is packed if `other_machines` in the configuration names it \
         (for `rockpack split`, --other-machines)",
    ))
}

/// The other machines of the members of a static archive.
fn machines_of_members(archive: &Content) -> Result<BTreeSet<ElfMachine>> {
    let mut machines = BTreeSet::new();
    for member in members(archive) {
        let member = member?;
        machines.extend(other_machine(&member)?);
        if fatbin::starts_bundle(&member)? {
            // A member with a bundle's magic that cannot be read as one is packed unchanged.
            machines.extend(machines_of_bundles(&member).if_readable()?.unwrap_or_default());
        }
    }
    Ok(machines)
}

/// The other machines of the host code in the bundles that `content` consists of.
fn machines_of_bundles(content: &Content) -> Result<BTreeSet<ElfMachine>> {
    let mut machines = BTreeSet::new();
    for next in Bundles::new(content) {
        let next = next?;
        let entries = next.bundle.entries.iter();
        for entry in entries.filter(|entry| entry.id.kind == BundleEntryKind::Host) {
            machines.extend(other_machine(&entry.content)?);
        }
    }
    Ok(machines)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A static archive of an unlinked object with `count` sections of device code, all of them one
    /// bundle without entries.
    fn archive(count: u16) -> Content {
        let bundle = [&b"__CLANG_OFFLOAD_BUNDLE__"[..], &[0; 4096]].concat();
        let names = b"\0.hip_fatbin\0.names\0";
        let names_at = 64 + bundle.len();
        let headers_at = names_at + names.len();
        let mut object = [&b"\x7fELF\x02\x01\x01"[..], &[0; 57]].concat();
        let halves = [(16, elf::ET_REL.0), (18, elf::EM_X86_64.0), (52, 64), (58, 64)];
        for (at, half) in halves.into_iter().chain([(60, count + 2), (62, 1)]) {
            object[at..at + 2].copy_from_slice(&half.to_le_bytes());
        }
        object[40..48].copy_from_slice(&(headers_at as u64).to_le_bytes());
        object.extend([&bundle, &names[..]].concat());
        object.extend(section_header(0, elf::SHT_NULL, 0, 0));
        object.extend(section_header(13, elf::SHT_STRTAB, names_at, names.len()));
        let fat = section_header(1, elf::SHT_PROGBITS, 64, bundle.len());
        object.extend(fat.repeat(usize::from(count)));
        let header = format!("{:<48}{:<10}`\n", "x.o/", object.len());
        Content::of_bytes([&b"!<arch>\n"[..], header.as_bytes(), &object].concat())
    }

    fn section_header(name: u32, kind: elf::SectionType, at: usize, size: usize) -> Vec<u8> {
        let mut header = vec![0; 64];
        header[..4].copy_from_slice(&name.to_le_bytes());
        header[4..8].copy_from_slice(&kind.0.to_le_bytes());
        header[24..32].copy_from_slice(&(at as u64).to_le_bytes());
        header[32..40].copy_from_slice(&(size as u64).to_le_bytes());
        header
    }

    #[test]
    fn sections_that_share_a_bundle_again_and_again_are_refused() {
        assert!(any_member(&archive(1), carries_device_code).unwrap());
        assert!(archs_of_archive(&archive(1)).unwrap().is_empty());
        let error = archs_of_archive(&archive(2)).unwrap_err();
        assert!(error.to_string().contains("shares its bytes"), "{error}");
    }

    fn member(name: &str, bytes: &[u8]) -> Vec<u8> {
        let header = format!("{name:<48}{:<10}`\n", bytes.len());
        let padding = b"\n".repeat(bytes.len() % 2);
        [header.as_bytes(), bytes, &padding].concat()
    }

    #[test]
    fn long_names_before_members_are_not_part_of_them() {
        let members = [
            member("/", b"symbols"),
            member("#1/12", b"long_name.o\0code"),
            member("x.o/", b"odd"),
            member("#1/99", b"short"),
        ];
        let archive = Content::of_bytes([ARCHIVE_MAGIC.to_vec(), members.concat()].concat());
        let read = super::members(&archive).map(|member| {
            let member = member.unwrap();
            member.read_vec(0..member.len(), 99, "member").unwrap()
        });
        let expected = [&b"symbols"[..], b"code", b"odd", b"short"];
        assert_eq!(read.collect::<Vec<_>>(), expected);
    }
}

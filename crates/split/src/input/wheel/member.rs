//! One file of a wheel.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use rockpack_archive::wheel::{
    ListingFault, Place, RecordHasher, WheelArchive, installed_mode, place,
};
use rockpack_archive::zip::{MemberReader, Method, ZipMember};
use rockpack_core::content::{BlockStore, Content, HeldBytes, WINDOW};
use rockpack_core::error::{Error, Result};
use rockpack_core::hold;
use rockpack_core::tree::TreePath;
use sha2::{Digest as _, Sha256};

use crate::input::artifact::member_name;

/// Bytes at the start of a PE file in which its header and its table of sections lie.
const PE_HEAD: u64 = 64 << 10;

#[derive(Debug, Clone)]
pub struct WheelMember {
    pub zip: ZipMember,
    pub stored: Content,
    pub content: Content,
    pub sha256: [u8; 32],
    /// The mode that installers give it: 0755 or 0644.
    pub mode: u32,
    /// The path in site-packages; `None` for files installed elsewhere.
    pub installed: Option<TreePath>,
    /// The difference from its row in RECORD, if that is stale.
    pub stale: Option<String>,
}

pub(super) struct MemberContext<'a> {
    pub archive: &'a WheelArchive,
    pub path: &'a Path,
    pub store: Arc<BlockStore>,
}

impl MemberContext<'_> {
    /// Reads a member; errors name it.
    pub fn member(&self, member: &ZipMember) -> Result<WheelMember> {
        self.read(member).map_err(|error| error.file(member_name(self.path, &member.name)))
    }

    fn read(&self, member: &ZipMember) -> Result<WheelMember> {
        let WheelArchive { zip, dist_info, .. } = self.archive;
        let mut reader = zip.reader(member)?;
        let stated = self.archive.hasher(&member.name);
        let stated = stated.filter(|hasher| hasher.output_size() != 32);
        let mut sums = MemberDigests { sha256: Sha256::new(), stated };
        let stored = zip.stored(member)?;
        let content = match member.method {
            Method::Stored => {
                sums.of(&mut reader, member.size, |_| Ok(()))?;
                stored.clone()
            }
            Method::Deflated => self.decoded(member, &mut reader, &mut sums)?,
        };
        let (sha256, stale) = sums.compare(member, self.archive)?;
        refuse_pe(&content)?;
        let installed = match place(&member.name, dist_info) {
            Place::Site(path) => Some(TreePath::new(path)?),
            Place::DistInfo => Some(TreePath::new(member.name.as_str())?),
            Place::Other(_) => None,
        };
        let (zip, mode) = (member.clone(), installed_mode(member));
        Ok(WheelMember { zip, stored, content, sha256, mode, installed, stale })
    }

    /// The bytes of a deflated member: in memory, or in the store if the budget has no room.
    fn decoded(
        &self,
        member: &ZipMember,
        reader: &mut MemberReader,
        sums: &mut MemberDigests,
    ) -> Result<Content> {
        let name = member_name(self.path, &member.name);
        let budget = self.store.budget();
        if let Some(mut held) = HeldBytes::reserve_over_limit(member.size, budget) {
            sums.of(reader, member.size, |bytes| {
                held.extend(bytes);
                Ok(())
            })?;
            return Ok(Content::of_held(held.named(name)).within(budget));
        }
        let mut writer = self.store.writer()?;
        sums.of(reader, member.size, |bytes| writer.write(bytes))?;
        writer.finish()?.content(0..member.size, name)
    }
}

/// Refuses a PE file with a section for device code, `.hip_fatbin`, whose name is cut to eight bytes.
fn refuse_pe(content: &Content) -> Result<()> {
    let end = if content.starts_with(b"MZ")? { content.len().min(PE_HEAD) } else { 0 };
    let head = content.read_vec(0..end, end, "header")?;
    let mut sections = pe_sections(&head).unwrap_or_default().chunks(40);
    if !sections.any(|section| section.starts_with(b".hip_fat")) {
        return Ok(());
    }
    let message = "is a PE file, a program or library for Windows, with device code (.hip_fat)";
    Err(Error::unsupported(message).hint("remove it from the wheel, or use the wheel unchanged"))
}

/// The table of sections, with 40 bytes for each. The offset of the header is at 60 of the file. The header has 24
/// bytes, with the number of sections at 6, and at 20 the size of the optional header before the table.
fn pe_sections(head: &[u8]) -> Option<&[u8]> {
    let header = u32::from_le_bytes(*head.get(60..)?.first_chunk()?);
    let header =
        head.get(usize::try_from(header).ok()?..).filter(|it| it.starts_with(b"PE\0\0"))?;
    let number =
        |at: usize| Some(usize::from(u16::from_le_bytes(*header.get(at..)?.first_chunk()?)));
    let table = header.get(24 + number(20)?..)?;
    table.get(..(40 * number(6)?).min(table.len()))
}

struct MemberDigests {
    sha256: Sha256,
    /// The hasher for RECORD, if that uses another hash function.
    stated: Option<RecordHasher>,
}

impl MemberDigests {
    /// Digests all `size` bytes of `reader`, and writes them to `sink`.
    fn of(
        &mut self,
        reader: &mut impl Read,
        size: u64,
        mut sink: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        // Most members are short. The extra byte detects the end in the first read.
        let len = usize::try_from(size).map_or(WINDOW, |size| size.saturating_add(1).min(WINDOW));
        let mut window = vec![0; len];
        loop {
            let len = reader.read(&mut window).map_err(hold::fault)?;
            let bytes = window.get(..len).unwrap_or_default();
            if bytes.is_empty() {
                return Ok(());
            }
            self.sha256.update(bytes);
            if let Some(stated) = &mut self.stated {
                stated.update(bytes);
            }
            sink(bytes)?;
        }
    }

    /// Compares the digests and the size of `member` with RECORD. Returns the SHA-256, and the difference of a stale
    /// row.
    fn compare(
        self,
        member: &ZipMember,
        wheel: &WheelArchive,
    ) -> Result<([u8; 32], Option<String>)> {
        let sha256: [u8; 32] = self.sha256.finalize().into();
        let found = self.stated.map_or_else(|| sha256.to_vec(), |it| it.finalize().into_vec());
        let fault = wheel.listing_fault(member, Some(&found));
        match fault.filter(|it| matches!(it, ListingFault::Stale(_)) || !it.is_of_split()) {
            // Findings report these; the written wheels get a new RECORD.
            None | Some(ListingFault::Unlisted | ListingFault::WithoutItself) => Ok((sha256, None)),
            Some(ListingFault::Stale(fault)) => Ok((sha256, Some(fault.to_string()))),
            Some(fault) => Err(Error::malformed(fault.to_string()).hint(
                "the wheel was changed after it was built: if that was intended, write a new RECORD \
                 with `unzip` and `wheel pack`",
            )),
        }
    }
}

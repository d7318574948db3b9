//! Clang offload bundle, uncompressed.
//!
//! ```text
//! 24 bytes  magic "__CLANG_OFFLOAD_BUNDLE__"
//! u64       number of entries
//! per entry u64 offset (from the start of the bundle) | u64 size | u64 id length | id
//! then      the bytes of the entries, normally each 4096-aligned
//! ```
//!
//! An entry id is `<kind>-<triple>[-<target id>]`: `host-x86_64-unknown-linux--`,
//! `hipv4-amdgcn-amd-amdhsa--gfx942:xnack+`, `hip-spirv64-amd-amdhsa--amdgcnspirv`. Triples have
//! three or four parts depending on the compiler ([`split_entry_id`] tells where they end).
//!
//! Source: LLVM's documentation of clang-offload-bundler; bundles of LLVM 17 and 19. Real bundles name the
//! host entry in odd ways (LLVM 19 may write it twice into one id), so only its kind is read from it.
//!
//! Refused: entries that overlap each other or the table, reach beyond the content, or share an id. The
//! number of entries is not trusted: nothing is allocated for an entry before its bytes were read.

use derive_more::Display;

use rockpack_core::content::{Content, ContentReader};
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::gfx::{Target, split_entry_id, target_error};

/// The first bytes of every bundle.
pub const MAGIC: &[u8; 24] = b"__CLANG_OFFLOAD_BUNDLE__";

/// Longest id that is read, in bytes. The longest known ones have under 100; the field has 64 bits.
pub const ID_LIMIT: u64 = 1024;

/// Maximum number of entries that are read. There are under a hundred GPU targets, each with a few feature
/// variants; the field has 64 bits.
pub const ENTRY_LIMIT: u64 = 4096;

/// Length of the magic and the number of entries.
pub const HEADER_LEN: u64 = 32;

/// The recipient of an entry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BundleEntryKind {
    /// `host`: the host compiler; empty in a linked binary.
    Host,
    /// `hip` or `hipv4`: HIP device code.
    Hip,
    OpenMp,
    Other(String),
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Display)]
#[display("{text}")]
pub struct EntryId {
    pub text: String,
    /// The part before the first `-`.
    pub kind: BundleEntryKind,
    /// The target triple, without empty trailing parts.
    pub triple: String,
    /// The target ID, if the entry names a GPU target.
    pub target: Option<Target>,
}

impl EntryId {
    pub fn parse(text: &str) -> Result<Self> {
        let (kind, rest) = text.split_once('-').ok_or_else(|| {
            Error::malformed(format!("`{}` is not an entry id", text.escape_debug()))
                .hint("entry ids are written as in `hipv4-amdgcn-amd-amdhsa--gfx1100`")
        })?;
        let kind = match kind {
            "host" => BundleEntryKind::Host,
            "hip" | "hipv4" => BundleEntryKind::Hip,
            "openmp" => BundleEntryKind::OpenMp,
            other => BundleEntryKind::Other(other.to_owned()),
        };
        let (triple, target) = match kind {
            BundleEntryKind::Host => (rest, None),
            _ => split_entry_id(rest).map_err(target_error)?,
        };
        let (text, triple) = (text.to_owned(), triple.trim_end_matches('-').to_owned());
        Ok(Self { text, kind, triple, target })
    }
}

#[derive(Debug, Clone)]
pub struct BundleEntry {
    pub id: EntryId,
    pub content: Content,
    /// Offset of the entry's bytes from the start of the bundle.
    pub offset: u64,
}

#[derive(Debug, Clone)]
pub struct Bundle {
    /// The entries, in the order of the table.
    pub entries: Vec<BundleEntry>,
    /// Bytes from the magic to the end of the table or of the last entry, whichever is later.
    pub len: u64,
    /// Whether it is an LLVM offload binary, of whose entries several may have one id.
    pub is_binary: bool,
}

impl Bundle {
    /// A bundle of the entries for which `keeps` is true, at their alignment; `None` if that is all entries.
    pub fn only(
        &self,
        mut keeps: impl FnMut(&BundleEntry) -> Result<bool>,
    ) -> Result<Option<Content>> {
        let mut kept = Vec::new();
        let mut alignment = ENTRY_ALIGNMENT;
        for entry in &self.entries {
            if !entry.content.is_empty() {
                alignment = alignment.min(1 << entry.offset.trailing_zeros().min(12));
            }
            if keeps(entry)? {
                kept.push((entry.id.text.clone(), entry.content.clone()));
            }
        }
        let is_whole = kept.len() == self.entries.len();
        (!is_whole).then(|| write_aligned(&kept, alignment)).transpose()
    }
}

/// The alignment of each entry, which compilers choose because entries are mapped as pages.
const ENTRY_ALIGNMENT: u64 = 4096;

/// Writes a bundle of `entries` (id, bytes), in their order.
pub fn write(entries: &[(String, Content)]) -> Result<Content> {
    write_aligned(entries, ENTRY_ALIGNMENT)
}

fn write_aligned(entries: &[(String, Content)], alignment: u64) -> Result<Content> {
    let ids: usize = entries.iter().map(|(id, _)| 24 + id.len()).sum();
    let mut table = MAGIC.to_vec();
    table.extend((entries.len() as u64).to_le_bytes());
    let mut position = HEADER_LEN.checked_add(ids as u64).ok_or_else(too_long)?;
    let mut pieces = Vec::new();
    for (id, content) in entries {
        let offset = position.checked_next_multiple_of(alignment).ok_or_else(too_long)?;
        for number in [offset, content.len(), id.len() as u64] {
            table.extend(number.to_le_bytes());
        }
        table.extend(id.as_bytes());
        pieces.push(Content::zeros(offset - position));
        pieces.push(content.clone());
        position = offset.checked_add(content.len()).ok_or_else(too_long)?;
    }
    pieces.insert(0, Content::of_bytes(table));
    Ok(Content::concat(&pieces))
}

fn too_long() -> Error {
    Error::unsupported("is longer than 64 bits can express").structure("offload bundle")
}

/// Reads the bundle at the start of `content`, which may extend beyond it.
pub fn parse(content: &Content) -> Result<Bundle> {
    parse_inner(content).map_err(|error| error.structure("offload bundle").at(&content.place(0)))
}

fn parse_inner(content: &Content) -> Result<Bundle> {
    let mut table = EntryTable { content, reader: content.reader(), position: 0 };
    let declared = table.header()?;
    let mut entries = Vec::new();
    for _ in 0..declared {
        entries.push(table.entry()?);
    }
    let end = table.position;
    check_ids(&entries).map_err(|error| error.at(&content.place(HEADER_LEN)))?;
    let len = check_ranges(&entries, end, content)?;
    Ok(Bundle { entries, len, is_binary: false })
}

/// A reader of the table, in one pass, so that a compressed source is decoded once.
struct EntryTable<'a> {
    content: &'a Content,
    reader: ContentReader,
    position: u64,
}

impl EntryTable<'_> {
    /// Reads the magic and the number of entries.
    fn header(&mut self) -> Result<u64> {
        if self.array()? != *MAGIC {
            return Err(Error::malformed("the magic is missing"));
        }
        let declared = self.number()?;
        if declared > ENTRY_LIMIT {
            let message = format!("{declared} entries exceed the limit of {ENTRY_LIMIT}");
            return Err(Error::new(Kind::Limit, message).at(&self.content.place(24)));
        }
        Ok(declared)
    }

    fn entry(&mut self) -> Result<BundleEntry> {
        let place = self.content.place(self.position);
        let offset = self.number()?;
        let size = self.number()?;
        let id_len = self.number()?;
        let id = self.id(id_len).map_err(|error| error.at(&place))?;
        let content = self.bytes(&id, offset, size);
        Ok(BundleEntry { content: content.map_err(|error| error.at(&place))?, id, offset })
    }

    fn id(&mut self, len: u64) -> Result<EntryId> {
        if len > ID_LIMIT {
            let message = format!("an entry id of {len} bytes exceeds the limit of {ID_LIMIT}");
            return Err(Error::new(Kind::Limit, message));
        }
        let len = usize::try_from(len).map_err(|_| Error::bug("id limit above usize"))?;
        let mut bytes = vec![0; len];
        self.fill(&mut bytes)?;
        let text = String::from_utf8(bytes);
        EntryId::parse(&text.map_err(|_| Error::malformed("an entry id is not text"))?)
    }

    /// The bytes of an entry. An empty entry may have any offset.
    fn bytes(&self, id: &EntryId, offset: u64, size: u64) -> Result<Content> {
        if size == 0 {
            return Ok(Content::default());
        }
        let end = self.content.len();
        if offset.checked_add(size).is_none_or(|needed| needed > end) {
            return Err(Error::truncated(format!(
                "entry {id} claims {size} bytes from offset {offset:#x} of the bundle on, beyond its end at {end:#x}"
            )));
        }
        self.content.slice(offset..offset + size)
    }

    fn number(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        let start = self.position;
        let len = self.reader.read_window(bytes)?;
        self.position += len as u64;
        if len == bytes.len() {
            Ok(())
        } else {
            Err(Error::truncated("ends within its table").at(&self.content.place(start)))
        }
    }
}

fn check_ids(entries: &[BundleEntry]) -> Result<()> {
    // LLVM 17 to 19 drop the features of targets that they do not know: both `gfx950:xnack+` and
    // `gfx950:xnack-` become `…--gfx950-`, and only their code objects differ.
    let is_short = |id: &EntryId| id.target.is_some() && id.text.ends_with('-');
    let ids = entries.iter().map(|entry| &entry.id).filter(|id| !is_short(id));
    let mut ids: Vec<&str> = ids.map(|id| id.text.as_str()).collect();
    ids.sort_unstable();
    match ids.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Error::malformed(format!("two entries are named {}", pair[0]))),
        None => Ok(()),
    }
}

/// Returns the end of the last entry; an error if any two of the entries and the table overlap.
fn check_ranges(entries: &[BundleEntry], table_end: u64, content: &Content) -> Result<u64> {
    let mut filled: Vec<&BundleEntry> = entries.iter().filter(|e| !e.content.is_empty()).collect();
    filled.sort_by_key(|entry| entry.offset);
    let (mut end, mut before) = (table_end, "the table");
    for entry in filled {
        if entry.offset < end {
            let message = format!("entry {} overlaps {before}", entry.id);
            return Err(Error::malformed(message).at(&content.place(entry.offset)));
        }
        end = entry.offset + entry.content.len();
        before = &entry.id.text;
    }
    Ok(end)
}

#[cfg(test)]
#[path = "offload_bundle_tests.rs"]
mod tests;

//! The kind and facts of one installed file, by its content.

use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rockpack_core::content::Content;
use rockpack_core::error::{Error, Result, ResultExt};
use rockpack_core::hold::{fault, hold};
use rockpack_core::run::Budget;
use rockpack_elf::marker::{self, AnyMarker, Marker};
use rockpack_elf::{ccob, code_object, kpm, offload_binary, offload_bundle};
use rockpack_split::aks2;
use rockpack_split::host_binary::first_code;
use rockpack_split::input::database::{DatabaseRole, IndexDescription};

use crate::problem::CodePosition;
use crate::readers::archive::{self, ArchiveFacts, CodeKind};
use crate::readers::elf_file::{addresses_of, bytes_of};
use crate::readers::fat_binary::{self, DeviceEntry};
use crate::readers::host_elf::{self, HostElf};
use crate::readers::host_form::HostForm;
use crate::readers::index::{self, archs_named};
use crate::readers::{HashingReader, Sha};

/// Bytes that determine the format of a file: an ELF64 header.
const HEAD: usize = 64;

/// The extension by which loaders find kernel archives, whatever their content is.
const ARCHIVE_ENDING: &str = ".kpack";

/// The folder of the dynamic loader's configuration.
const LOADER_FOLDER: &str = "/etc/ld.so.conf.d/";

/// Longest file of the loader's configuration that is read, in bytes; usual ones have a line or two.
const LOADER_FILE_LIMIT: u64 = 64 << 10;

pub(crate) const SCRIPT: &[u8] = b"#!";

const LINE_MAX: u64 = 4096;

#[derive(Debug)]
pub(crate) struct FileFacts {
    pub(crate) size: u64,
    pub(crate) sha256: Sha,
    pub(crate) class: Class,
}

impl FileFacts {
    pub(crate) fn host(&self) -> Option<&HostFacts> {
        let Class::Host(host) = &self.class else { return None };
        Some(host)
    }

    pub(crate) fn archive(&self) -> Option<&ArchiveFacts> {
        let Class::Archive(archive) = &self.class else { return None };
        Some(archive)
    }

    /// The code objects in the file with their positions.
    pub(crate) fn code_objects(&self) -> Vec<(CodePosition, &Sha)> {
        match &self.class {
            Class::Archive(archive) => archive
                .entries()
                .map(|row| (CodePosition::row(row.key, row.target), &row.facts.sha256))
                .collect(),
            Class::CodeObject(_) => vec![(CodePosition::File, &self.sha256)],
            Class::Bundle(entries) => entries
                .iter()
                .map(|entry| (CodePosition::Entry { id: entry.id.clone() }, &entry.sha256))
                .collect(),
            _ => Vec::new(),
        }
    }
}

#[derive(Debug)]
pub(crate) enum Class {
    /// Not related to device code.
    Other,
    /// The first line of a script with the line feed.
    Script(Vec<u8>),
    /// A linked x86-64 ELF file.
    Host(Box<HostFacts>),
    /// An AMDGPU ELF file.
    CodeObject(CodeKind),
    /// The code objects of offload bundles, compressed or not.
    Bundle(Vec<DeviceEntry>),
    /// An index of kernels, or a file of AOTriton for members of an arch family.
    Index(IndexDescription),
    Archive(ArchiveFacts),
    Manifest(kpm::Manifest),
    /// The folders in a file of the loader's configuration.
    LoaderFolders(Vec<String>),
    /// A file that claims to be one of the above but is invalid.
    Broken(Claimed, Error),
}

impl Class {
    /// Whether it is a kernel archive, or an invalid one.
    pub(crate) fn claims_to_be_archive(&self) -> bool {
        matches!(self, Self::Archive(_) | Self::Broken(Claimed::Archive, _))
    }
}

/// The format that an invalid file claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claimed {
    Host,
    Device,
    /// Code or an index of a kernel database, by name.
    Database,
    /// A kernel archive, by magic or by name.
    Archive,
    Manifest,
}

#[derive(Debug)]
pub(crate) struct HostFacts {
    pub(crate) elf: HostElf,
    /// The marker that the wrappers of a transformed binary point to.
    pub(crate) marker: Option<Marker>,
    /// The reason why a transformed binary has no readable marker.
    pub(crate) marker_fault: Option<String>,
    /// A message about device code in `.hip_fatbin`.
    pub(crate) device_code: Option<String>,
    /// A message about device code elsewhere.
    pub(crate) embedded: Option<String>,
    /// The form of a transformed binary, if its headers can be read.
    pub(crate) form: Option<Box<HostForm>>,
}

impl HostFacts {
    /// Whether a marker or wrapper says that its device code is elsewhere.
    pub(crate) fn claims_to_be_transformed(&self) -> bool {
        self.elf.marker.is_some()
            || self.elf.wrappers.iter().any(|wrapper| wrapper.magic == host_elf::HIPK)
    }
}

/// Reads the file `content` for the install path `path`.
pub(crate) fn examine_content(path: &str, content: &Content) -> Result<FileFacts> {
    let class = class(path, content)?;
    Ok(FileFacts { size: content.len(), sha256: content.sha256()?, class })
}

fn class(path: &str, content: &Content) -> Result<Class> {
    let _open = content.pin()?;
    let len = content.len().min(HEAD as u64);
    let head = content.read_vec(0..len, len, "header")?;
    Ok(match claimed(path, &head) {
        Some(claimed) => classify(path, content, &head).unwrap_or_else(|error| {
            // An unusual ELF file that neither has nor had device code is an ordinary file.
            let is_odd = claimed == Claimed::Host && !error.is_read_failure();
            match is_odd.then(|| has_signs(content)) {
                Some(Ok(false)) => Class::Other,
                Some(Err(error)) => Class::Broken(claimed, error),
                Some(Ok(true)) | None => Class::Broken(claimed, error),
            }
        }),
        None if is_loader_file(path, content.len()) => {
            let bytes = content.read_vec(0..content.len(), LOADER_FILE_LIMIT, "loader file")?;
            let text = String::from_utf8_lossy(&bytes);
            // One folder per line; comments start with `#`. Source: ldconfig(8).
            let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
            let folders = lines.filter(|line| line.starts_with('/'));
            let folders = folders.map(|folder| folder.trim_end_matches('/').to_owned());
            Class::LoaderFolders(folders.collect())
        }
        None => first_line(content)?.map_or_else(|| unclaimed(head), Class::Script),
    })
}

/// The first line of a script, at most [`LINE_MAX`] bytes; `None` for other files.
pub(crate) fn first_line(content: &Content) -> Result<Option<Vec<u8>>> {
    let mut line = content.read_vec(0..content.len().min(LINE_MAX), LINE_MAX, "first line")?;
    let end = line.iter().position(|byte| *byte == b'\n');
    line.truncate(end.map_or(line.len(), |end| end + 1));
    Ok(line.starts_with(SCRIPT).then_some(line))
}

/// Reads files of packages. A file that is in several packages is examined once.
pub(crate) struct Examiner {
    pub(crate) budget: Budget,
    known: Mutex<HashMap<(String, Sha), Arc<FileFacts>>>,
}

impl Examiner {
    pub(crate) fn within(budget: &Budget) -> Self {
        Self { budget: budget.clone(), known: Mutex::default() }
    }

    /// Reads the file installed at `path`, of `size` bytes, to its end. Only files that need random access are held in
    /// memory.
    pub(crate) fn examine(
        &self,
        path: &str,
        reader: &mut HashingReader<'_>,
        size: u64,
    ) -> Result<Arc<FileFacts>> {
        let mut head = vec![0; HEAD.min(usize::try_from(size).unwrap_or(HEAD))];
        reader.read_exact(&mut head).map_err(fault)?;
        let is_held = head.starts_with(SCRIPT)
            || is_loader_file(path, size)
            || claimed(path, &head).is_some();
        if !is_held {
            io::copy(reader, &mut io::sink()).map_err(fault)?;
            let class = unclaimed(head);
            return Ok(Arc::new(FileFacts { size, sha256: reader.sha256(), class }));
        }
        let content = hold(&mut head.as_slice().chain(&mut *reader), size, &self.budget)?;
        let key = (path.to_owned(), reader.sha256());
        if let Some(facts) = self.known().get(&key) {
            return Ok(Arc::clone(facts));
        }
        let facts = Arc::new(FileFacts { size, sha256: key.1, class: class(path, &content)? });
        self.known().insert(key, Arc::clone(&facts));
        Ok(facts)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<(String, Sha), Arc<FileFacts>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The class, by its first bytes, of a file that does not need random access.
fn unclaimed(head: Vec<u8>) -> Class {
    if !is_elf(&head, object::elf::EM_AMDGPU) {
        return Class::Other;
    }
    let linked = archive::check_linked(&Content::of_bytes(head.clone()));
    let code_kind = linked.and_then(|()| archive::code_kind(head));
    code_kind.map_or_else(|e| Class::Broken(Claimed::Device, e), Class::CodeObject)
}

pub(crate) fn is_elf(head: &[u8], machine: object::elf::Machine) -> bool {
    head.starts_with(b"\x7fELF") && head.get(18..20) == Some(machine.0.to_le_bytes().as_slice())
}

fn is_bundle(head: &[u8]) -> bool {
    let magics: [&[u8]; 3] = [offload_bundle::MAGIC, ccob::MAGIC, offload_binary::MAGIC];
    magics.iter().any(|magic| head.starts_with(magic))
}

/// The claimed format of a file that needs random access; `None` for files that are read once, front to end.
fn claimed(path: &str, head: &[u8]) -> Option<Claimed> {
    if head.starts_with(b"KPAK") || path.ends_with(ARCHIVE_ENDING) {
        Some(Claimed::Archive)
    } else if is_elf(head, object::elf::EM_X86_64) {
        Some(Claimed::Host)
    } else if index::kind(path).is_some()
        || aks2::MAGICS.iter().any(|magic| head.starts_with(magic))
            && !index::arch_family_at(path).is_empty()
    {
        Some(Claimed::Database)
    } else if is_elf(head, object::elf::EM_AMDGPU) {
        None
    } else if is_bundle(head) || is_index(path) {
        Some(Claimed::Device)
    } else {
        path.ends_with(".kpm").then_some(Claimed::Manifest)
    }
}

fn is_loader_file(path: &str, size: u64) -> bool {
    path.starts_with(LOADER_FOLDER) && path.ends_with(".conf") && size <= LOADER_FILE_LIMIT
}

/// Whether kernel libraries look for indexes at such a path.
fn is_index(path: &str) -> bool {
    path.contains("/library/") && path.ends_with(".dat")
}

/// Whether `content` contains device code, or the magic of transformed wrappers.
fn has_signs(content: &Content) -> Result<bool> {
    if first_code(content, 0..content.len())?.is_some() {
        return Ok(true);
    }
    let (magic, mut window, mut found) = (host_elf::HIPK.to_le_bytes(), Vec::new(), false);
    content.each_window(|bytes| {
        window.extend_from_slice(bytes);
        found |= window.windows(magic.len()).any(|bytes| bytes == magic);
        window.drain(..window.len().saturating_sub(magic.len() - 1));
    })?;
    Ok(found)
}

fn classify(path: &str, content: &Content, head: &[u8]) -> Result<Class> {
    if head.starts_with(b"KPAK") || path.ends_with(ARCHIVE_ENDING) {
        return archive::read(content).map(Class::Archive);
    }
    match index::kind(path) {
        Some((DatabaseRole::Index, _)) => return index::read(path, content).map(Class::Index),
        Some((DatabaseRole::Code, _)) if !is_bundle(head) => {
            // Libraries load it as device code, so all of it must be code objects or bundles.
            if !is_elf(head, object::elf::EM_AMDGPU) {
                let message = "is neither a code object nor an offload bundle";
                return Err(Error::malformed(message).at(&content.place(0)));
            }
            code_object::read_whole(content)?;
            return archive::code_kind(head.to_vec()).map(Class::CodeObject);
        }
        _ => {}
    }
    if is_bundle(head) {
        return fat_binary::bundles(content).map(Class::Bundle);
    }
    if let Some(elf) = host_elf::read(content)? {
        return host(content, elf).map(|host| Class::Host(Box::new(host)));
    }
    if path.ends_with(".kpm") {
        return kpm::Manifest::parse(content).map(Class::Manifest);
    }
    let mut archs = aks2::archs(content, &index::arch_family_at(path))?;
    if archs.is_empty() {
        if !is_index(path) {
            return Ok(Class::Other);
        }
        archs = archs_named(path, content.reader())?;
    }
    Ok(Class::Index(IndexDescription { archs, ..IndexDescription::default() }))
}

fn host(content: &Content, elf: HostElf) -> Result<HostFacts> {
    let (marker, marker_fault) = match marker(content, &elf) {
        Ok(marker) => (marker, None),
        Err(error) => (None, Some(error.to_string())),
    };
    let section = elf.fatbin.as_ref().map(bytes_of).unwrap_or_default();
    // The section may be absent, empty (some tools leave it so) or zero.
    let bytes = content.slice(section.clone())?;
    let device_code = match first_code(content, section.clone())? {
        Some((_, offset)) => Some(format!("still has an offload bundle at offset {offset:#x}")),
        None => (!bytes.is_zero()?).then(|| "still has a .hip_fatbin with content".to_owned()),
    };
    let outside = match first_code(content, 0..section.start)? {
        None => first_code(content, section.end..content.len())?,
        before => before,
    };
    let embedded = outside.map(|(form, offset)| {
        format!("has {form} at offset {offset:#x}, and no finding keeps it there")
    });
    // A binary whose headers cannot be read has no form.
    let form = elf.marker.map(|_| HostForm::read(content, None).if_readable()).transpose()?;
    let form = form.flatten().map(Box::new);
    Ok(HostFacts { elf, marker, marker_fault, device_code, embedded, form })
}

/// Reads the marker as the runtime does: the loaded bytes that the wrappers point to. The section only bounds them.
pub(crate) fn marker(content: &Content, elf: &HostElf) -> Result<Option<Marker>> {
    let Some(wrapper) = elf.wrappers.iter().find(|wrapper| wrapper.magic == host_elf::HIPK) else {
        return Ok(None);
    };
    let section = elf.marker.as_ref().map(addresses_of);
    let section = section.filter(|section| section.start == wrapper.pointer).ok_or_else(|| {
        let message = format!("a wrapper points to {:#x}, but no marker is there", wrapper.pointer);
        Error::malformed(message)
    })?;
    let offset =
        elf.loaded_at(&section).ok_or_else(|| Error::malformed("its marker is not loaded"))?;
    let end = offset.saturating_add(section.end - section.start);
    let bytes = content.read_vec(offset..end, marker::LIMIT as u64, "marker")?;
    match marker::parse(&bytes)? {
        AnyMarker::Map(marker) => Ok(Some(marker)),
        AnyMarker::PathList(_) => Err(Error::unsupported("has a marker of the early prototype")),
    }
}

//! Artifacts that are split already: their transformed binaries and kernel archives, put together
//! as the builds that they were made from.
//!
//! A binary's rows are those under the kernel name of its marker, in all archives of its shard. An
//! archive with feature variants names a code object under several targets; what counts is the one
//! with the fewest features, because the others follow from the archive that it is packed in.
//!
//! An archive of whose rows no marker of the shard asks for any, which no manifest of the shard lists,
//! and which does not lie in a `.kpack` folder, is a file that its component ships.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rockpack_core::content::Content;
use rockpack_core::error::Result;
use rockpack_core::tree::TreePath;
use rockpack_elf::kpack;

use crate::checks::set_archives::{is_in_kernel_folder, kernel_name};
use crate::own::digest::Sha;
use crate::own::host_elf::{HIPK, HostElf};
use crate::own::originals::{self, DeviceCode, DeviceEntry};

/// A file of a shard.
#[derive(Clone)]
pub(crate) struct InputFile {
    pub(crate) shard: String,
    pub(crate) content: Content,
    /// The mode in the artifact.
    pub(crate) mode: u32,
}

/// One shard's build of a binary.
pub(crate) struct BinaryBuild {
    pub(crate) file: InputFile,
    pub(crate) device: DeviceCode,
    /// SHA-256 of its machine code.
    pub(crate) code: Sha,
}

impl BinaryBuild {
    /// Whether an installed binary has the machine code of the build, and as many wrappers.
    pub(crate) fn is_of(&self, elf: &HostElf) -> bool {
        elf.code == self.code && elf.wrappers.len() == self.device.by_wrapper.len()
    }
}

/// A transformed binary of a shard.
pub(crate) struct TransformedInput {
    kernel_name: String,
    wrappers: usize,
    /// The build, whose device code is in archives.
    build: BinaryBuild,
}

/// The rows of an archive: `<kernel_name>#<co_index>` → its code objects.
pub(crate) type ArchiveRows = BTreeMap<String, Vec<DeviceEntry>>;

/// A kernel archive of a shard.
pub(crate) struct ArchiveInput {
    /// The install-relative path.
    pub(crate) path: TreePath,
    pub(crate) file: InputFile,
    pub(crate) rows: ArchiveRows,
}

/// The archives and transformed binaries of all shards.
#[derive(Default)]
pub(crate) struct SplitInputs {
    binaries: Vec<(TreePath, TransformedInput)>,
    /// Shard → archives.
    archives: BTreeMap<String, Vec<ArchiveInput>>,
    /// Shard → paths of archives that its manifests list.
    listed: BTreeMap<String, BTreeSet<TreePath>>,
}

/// A host ELF as a transformed binary, if it is one.
pub(crate) fn transformed(file: &InputFile, elf: &HostElf) -> Result<Option<TransformedInput>> {
    let wrappers = elf.wrappers.iter().filter(|wrapper| wrapper.magic == HIPK).count();
    let marker = crate::own::facts::marker(&file.content, elf)?;
    let (file, device, code) = (file.clone(), DeviceCode::default(), elf.code);
    let build = BinaryBuild { file, device, code };
    Ok(marker.map(|it| TransformedInput { kernel_name: it.kernel_name, wrappers, build }))
}

/// The rows of the archive that fills `content`; `None` if it is no archive.
pub(crate) fn rows(content: &Content) -> Result<Option<ArchiveRows>> {
    if !content.starts_with(b"KPAK")? {
        return Ok(None);
    }
    let reader = kpack::KpackReader::open(content.clone())?;
    let mut rows = ArchiveRows::new();
    let mut read: BTreeMap<u32, DeviceEntry> = BTreeMap::new();
    for (key, targets) in &reader.toc().rows {
        let row = rows.entry(key.clone()).or_default();
        for (target, at) in targets {
            let entry = match read.entry(at.ordinal) {
                Entry::Occupied(known) => known.get().clone(),
                Entry::Vacant(slot) => {
                    let body = reader.code_object(at.ordinal)?;
                    // Several readers follow: what is compressed is decoded once for all of them.
                    let _open = body.pin()?;
                    slot.insert(originals::entry("", &body)?).clone()
                }
            };
            add(row, DeviceEntry { target: target.clone(), ..entry });
        }
    }
    Ok(Some(rows))
}

/// Adds an entry to a row. If targets of one arch name the same code, the one with the fewest features
/// stays.
fn add(row: &mut Vec<DeviceEntry>, entry: DeviceEntry) {
    let same = row
        .iter_mut()
        .find(|other| other.sha256 == entry.sha256 && base_arch(other) == base_arch(&entry));
    match same {
        Some(other) if feature_count(other) > feature_count(&entry) => *other = entry,
        Some(_) => {}
        None => row.push(entry),
    }
}

fn base_arch(entry: &DeviceEntry) -> Option<&str> {
    entry.target.split(':').next()
}

fn feature_count(entry: &DeviceEntry) -> usize {
    entry.target.matches(':').count()
}

impl SplitInputs {
    /// Adds a binary at an install-relative path.
    pub(crate) fn binary(&mut self, path: &TreePath, binary: TransformedInput) {
        self.binaries.push((path.clone(), binary));
    }

    /// Adds an archive.
    pub(crate) fn archive(&mut self, archive: ArchiveInput) {
        self.archives.entry(archive.file.shard.clone()).or_default().push(archive);
    }

    /// Adds the manifest at `path` of a shard, which lists `files` beside it.
    pub(crate) fn manifest(&mut self, shard: &str, path: &TreePath, files: &[String]) {
        let beside = files.iter().filter_map(|file| match path.parent() {
            Some(folder) => folder.join(file).ok(),
            None => TreePath::new(file).ok(),
        });
        self.listed.entry(shard.to_owned()).or_default().extend(beside);
    }

    /// Takes out the archives that components ship. `fat` are the paths of binaries that were not split.
    pub(crate) fn take_shipped<'a>(
        &'a mut self,
        fat: impl Iterator<Item = &'a TreePath>,
    ) -> Vec<ArchiveInput> {
        let Self { binaries, archives, listed, .. } = self;
        let names = binaries.iter().flat_map(|(path, it)| [path.as_str(), &it.kernel_name]);
        let mut asked: BTreeSet<&str> = names.collect();
        asked.extend(fat.map(TreePath::as_str));
        let mut shipped = Vec::new();
        for (shard, archives) in archives {
            let found = archives.extract_if(.., |archive| {
                let is_listed = listed.get(shard).is_some_and(|all| all.contains(&archive.path));
                let is_split_off = is_listed || is_in_kernel_folder(archive.path.as_str());
                !is_split_off && !archive.rows.keys().any(|key| asked.contains(kernel_name(key)))
            });
            shipped.extend(found);
        }
        shipped
    }

    /// The builds that the binaries were made from. Nothing loads the rows that are left.
    pub(crate) fn builds(mut self) -> Vec<(TreePath, BinaryBuild)> {
        let mut builds = Vec::new();
        for (path, TransformedInput { kernel_name, wrappers, mut build }) in
            std::mem::take(&mut self.binaries)
        {
            let by_wrapper = (0..wrappers)
                .map(|index| self.take(&build.file.shard, &format!("{kernel_name}#{index}")))
                .map(Arc::new);
            build.device.by_wrapper = by_wrapper.collect();
            builds.push((path, build));
        }
        builds
    }

    fn take(&mut self, shard: &str, key: &str) -> Vec<DeviceEntry> {
        let archives = self.archives.get_mut(shard).into_iter().flatten();
        archives.filter_map(|archive| archive.rows.remove(key)).flatten().collect()
    }
}

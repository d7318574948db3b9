//! The content of the artifacts, by install-relative path.
//!
//! Transformed binaries and kernel archives of artifacts that are already split are recombined into the builds that
//! they were made from. The rows of a binary are those under the kernel name of its marker, in all archives of its
//! shard. If an archive names a code object under several targets, the one with the fewest features counts; the others
//! are aliases.
//!
//! An archive is a file that its component ships if no marker of the shard refers to its rows, no manifest of the shard
//! lists it, and it is not in a `.kpack` folder.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rockpack_core::content::Content;
use rockpack_core::error::Result;
use rockpack_core::tree::{Node, TreePath};
use rockpack_elf::{kpack, kpm};
use rockpack_report::Progress;
use rockpack_split::input::artifact::Scan;

use crate::checks::set_archives::{is_in_kernel_folder, kernel_name};
use crate::read_each;
use crate::readers::Sha;
use crate::readers::fat_binary::{self, DeviceCode, DeviceEntry};
use crate::readers::host_elf::{self, HIPK, HostElf};

#[derive(Default)]
pub(crate) struct ArtifactInputs {
    /// Files that are packaged unchanged: one for each shard that has the path.
    pub(crate) plain: BTreeMap<TreePath, Vec<UnchangedNode>>,
    pub(crate) fat: BTreeMap<TreePath, Vec<BinaryBuild>>,
}

/// What one shard has at a path. `device` has the code objects: the file itself, or those of its bundles.
pub(crate) enum UnchangedNode {
    File { file: InputFile, sha256: Sha, device: Vec<DeviceEntry> },
    Link { target: String },
    Directory,
}

impl UnchangedNode {
    fn file(&self) -> Option<&InputFile> {
        let Self::File { file, .. } = self else { return None };
        Some(file)
    }

    pub(super) fn content(&self) -> Option<&Content> {
        self.file().map(|file| &file.content)
    }
}

pub(crate) enum ExaminedInput {
    UnchangedNode(UnchangedNode),
    Fat(BinaryBuild),
    /// The kernel name of a transformed binary, and the build without its code, which is in archives.
    Transformed(String, BinaryBuild),
    Archive(ArchiveRows),
    /// The files that a kernel manifest lists. Packages have rewritten manifests.
    Manifest(Vec<String>),
}

impl ArtifactInputs {
    pub(crate) fn read(scan: &Scan, progress: &dyn Progress) -> Result<Self> {
        let mut inputs = Self::default();
        let mut files: Vec<(&TreePath, InputFile)> = Vec::new();
        for shard in &scan.shards {
            let prefixes = shard.artifacts.iter().flat_map(|artifact| &artifact.prefixes);
            for (path, node) in prefixes.flat_map(|prefix| &prefix.tree) {
                match node {
                    // Packages have their own folders of kernel archives.
                    Node::Directory { .. } if path.name() == ".kpack" => {}
                    Node::Directory { .. } => inputs.add(path, UnchangedNode::Directory),
                    Node::Link { target } => {
                        inputs.add(path, UnchangedNode::Link { target: target.clone() })
                    }
                    Node::File { data, mode } => {
                        let (shard, content) = (shard.name.clone(), data.clone());
                        files.push((path, InputFile { shard, content, mode: *mode }));
                    }
                }
            }
        }
        // A build may package a file unchanged that this reader cannot parse, such as an unusual ELF file. The package
        // must have the same bytes.
        let read = |(path, file): &(&TreePath, InputFile)| match examine(path, file) {
            Err(error) if error.is_format_fault() => {
                plain(file, Vec::new()).map(ExaminedInput::UnchangedNode)
            }
            examined => examined,
        };
        let found = read_each(&files, |(_, file)| file.content.len(), progress, read);
        let mut split = SplitInputs::default();
        for ((path, file), found) in files.into_iter().zip(found) {
            match found? {
                ExaminedInput::Transformed(name, build) => {
                    split.binaries.push((path.clone(), name, build));
                }
                ExaminedInput::Archive(rows) => {
                    split.archives.push(ArchiveInput { path: path.clone(), file, rows });
                }
                ExaminedInput::Manifest(listed) => {
                    let beside = listed.iter().filter_map(|name| path.sibling(name).ok());
                    split.listed.extend(beside.map(|path| (file.shard.clone(), path)));
                }
                ExaminedInput::UnchangedNode(plain) => inputs.add(path, plain),
                ExaminedInput::Fat(build) => {
                    inputs.fat.entry(path.clone()).or_default().push(build);
                }
            }
        }
        for ArchiveInput { path, file, rows } in split.take_shipped(inputs.fat.keys()) {
            let device = rows.into_values().flatten().collect();
            inputs.add(&path, plain(&file, device)?);
        }
        for (path, build) in split.builds() {
            inputs.fat.entry(path).or_default().push(build);
        }
        Ok(inputs)
    }

    fn add(&mut self, path: &TreePath, plain: UnchangedNode) {
        self.plain.entry(path.clone()).or_default().push(plain);
    }

    pub(crate) fn has(&self, path: &TreePath) -> bool {
        self.plain.contains_key(path) || self.fat.contains_key(path)
    }

    pub(super) fn modes(&self, path: &TreePath) -> impl Iterator<Item = u32> {
        let plain = self.plain.get(path).into_iter().flatten().filter_map(UnchangedNode::file);
        let fat = self.fat.get(path).into_iter().flatten().map(|build| &build.file);
        plain.chain(fat).map(|file| file.mode)
    }

    pub(crate) fn in_binaries(&self) -> impl Iterator<Item = &DeviceEntry> {
        self.fat.values().flatten().flat_map(BinaryBuild::entries)
    }

    /// The code objects of all device code files, with the paths and files.
    pub(crate) fn in_files(&self) -> impl Iterator<Item = (&TreePath, &InputFile, &DeviceEntry)> {
        self.plain.iter().flat_map(|(path, found)| {
            let files = found.iter().filter_map(|plain| match plain {
                UnchangedNode::File { file, device, .. } => Some((file, device)),
                UnchangedNode::Link { .. } | UnchangedNode::Directory => None,
            });
            files.flat_map(move |(file, device)| device.iter().map(move |it| (path, file, it)))
        })
    }
}

fn plain(file: &InputFile, device: Vec<DeviceEntry>) -> Result<UnchangedNode> {
    Ok(UnchangedNode::File { file: file.clone(), sha256: file.content.sha256()?, device })
}

/// Examines a file at an install-relative path. Fails if it is invalid for the format that it claims.
pub(crate) fn examine(path: &TreePath, file: &InputFile) -> Result<ExaminedInput> {
    let content = &file.content;
    let _open = content.pin()?;
    if let Some(elf) = host_elf::read(content)? {
        if let Some(by_wrapper) = fat_binary::read(content, &elf)? {
            let build = BinaryBuild { file: file.clone(), by_wrapper, code: elf.code };
            return Ok(ExaminedInput::Fat(build));
        }
        if let Some(marker) = crate::readers::facts::marker(content, &elf)? {
            let own = elf.wrappers.iter().filter(|wrapper| wrapper.magic == HIPK);
            let by_wrapper = own.map(|_| Arc::default()).collect();
            let build = BinaryBuild { file: file.clone(), by_wrapper, code: elf.code };
            return Ok(ExaminedInput::Transformed(marker.kernel_name, build));
        }
    }
    if let Some(rows) = rows(content)? {
        return Ok(ExaminedInput::Archive(rows));
    }
    if path.name().ends_with(".kpm")
        && let Ok(manifest) = kpm::Manifest::parse(content)
    {
        let files = manifest.archives.into_values().map(|archive| archive.file);
        return Ok(ExaminedInput::Manifest(files.collect()));
    }
    Ok(ExaminedInput::UnchangedNode(plain(file, fat_binary::standalone_code(content)?)?))
}

#[derive(Clone)]
pub(crate) struct InputFile {
    pub(crate) shard: String,
    pub(crate) content: Content,
    pub(crate) mode: u32,
}

pub(crate) struct BinaryBuild {
    pub(crate) file: InputFile,
    pub(crate) by_wrapper: DeviceCode,
    /// SHA-256 of the machine code.
    pub(crate) code: Sha,
}

impl BinaryBuild {
    /// Whether an installed binary has the same machine code and the same number of wrappers.
    pub(crate) fn is_of(&self, elf: &HostElf) -> bool {
        elf.code == self.code && elf.wrappers.len() == self.by_wrapper.len()
    }

    /// All entries; a bundle with several wrappers repeats its entries.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &DeviceEntry> {
        self.by_wrapper.iter().flat_map(|entries| entries.iter())
    }
}

/// `<kernel_name>#<co_index>` → code objects.
pub(crate) type ArchiveRows = BTreeMap<String, Vec<DeviceEntry>>;

pub(crate) struct ArchiveInput {
    pub(crate) path: TreePath,
    pub(crate) file: InputFile,
    pub(crate) rows: ArchiveRows,
}

#[derive(Default)]
pub(crate) struct SplitInputs {
    /// Path, kernel name and build.
    binaries: Vec<(TreePath, String, BinaryBuild)>,
    archives: Vec<ArchiveInput>,
    /// Shards and paths of archives that manifests list.
    listed: BTreeSet<(String, TreePath)>,
}

/// The rows of the archive `content`; `None` if it is not an archive.
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
                    // Decodes a compressed code object once for several readers.
                    let _open = body.pin()?;
                    slot.insert(fat_binary::entry("", &body)?).clone()
                }
            };
            add(row, DeviceEntry { target: target.clone(), ..entry });
        }
    }
    Ok(Some(rows))
}

/// Adds an entry to a row. If several targets of one arch name the same code, the one with the fewest features is kept.
fn add(row: &mut Vec<DeviceEntry>, entry: DeviceEntry) {
    let same = row
        .iter_mut()
        .find(|other| other.sha256 == entry.sha256 && base_arch(other) == base_arch(&entry));
    let feature_count = |entry: &DeviceEntry| entry.target.matches(':').count();
    match same {
        Some(other) if feature_count(other) > feature_count(&entry) => *other = entry,
        Some(_) => {}
        None => row.push(entry),
    }
}

fn base_arch(entry: &DeviceEntry) -> Option<&str> {
    entry.target.split(':').next()
}

impl SplitInputs {
    /// Removes and returns the archives that components ship. `fat` are the paths of binaries that were not split.
    pub(crate) fn take_shipped<'a>(
        &'a mut self,
        fat: impl Iterator<Item = &'a TreePath>,
    ) -> Vec<ArchiveInput> {
        let Self { binaries, archives, listed } = self;
        let names = binaries.iter().flat_map(|(path, name, _)| [path.as_str(), name.as_str()]);
        let mut asked: BTreeSet<&str> = names.collect();
        asked.extend(fat.map(TreePath::as_str));
        let shipped = archives.extract_if(.., |ArchiveInput { path, file, rows }| {
            let is_split_off = listed.contains(&(file.shard.clone(), path.clone()))
                || is_in_kernel_folder(path.as_str());
            !is_split_off && !rows.keys().any(|key| asked.contains(kernel_name(key)))
        });
        shipped.collect()
    }

    /// The builds that the binaries were made from. The remaining rows are never loaded.
    pub(crate) fn builds(self) -> Vec<(TreePath, BinaryBuild)> {
        let Self { binaries, mut archives, .. } = self;
        let builds = binaries.into_iter().map(|(path, name, mut build)| {
            let shard = &build.file.shard;
            for (index, entries) in build.by_wrapper.iter_mut().enumerate() {
                let key = format!("{name}#{index}");
                let own = archives.iter_mut().filter(|archive| archive.file.shard == *shard);
                *entries = Arc::new(own.filter_map(|it| it.rows.remove(&key)).flatten().collect());
            }
            (path, build)
        });
        builds.collect()
    }
}

//! The packages that a run is given: finds them, and reads those that no state has recorded.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::iter::Either;
use rayon::prelude::*;
use rockpack_archive::deb::unreadable_reason;
use rockpack_archive::rpm::{self, LEAD_MAGIC};
use rockpack_archive::sdist;
use rockpack_core::content::{Content, Inputs, StampedFile, list, real_path};
use rockpack_core::error::{Error, Faults, Kind, Result, ResultExt};
use rockpack_core::run::{Budget, threads};
use rockpack_package::Format;
use rockpack_package::indexed::{IndexMetadata, IndexedPackage, PackageKind};
use rockpack_package::receipt::part_of_file;
use rockpack_report::{Findings, PackageLeftOut, Progress, Stage, found};

use super::channels::Channels;
use super::options::RepoOptions;
use super::receipts::{self, Siblings, name_of};
use super::state::{PoolRecord, PublishedFile};
use super::store::{Modified, Stat, stat_of};

#[derive(Debug, Clone)]
pub(super) struct GivenPackage {
    pub file: PathBuf,
    /// The content to publish. If the file changed since it was found, reads fail.
    pub content: Content,
    pub source: Arc<PublishedFile>,
    pub indexed: Arc<IndexedPackage>,
    /// Whether this run read it: it was unknown, the run checks all packages, or signed it.
    pub read: bool,
    /// Whether the pool may have a hard link to the file, because this run wrote it.
    pub link: bool,
    /// The packages that the receipts of its folder name.
    pub siblings: Arc<Siblings>,
}

/// Refuses packages inside the output repository.
pub(super) fn refuse_inside(options: &RepoOptions<'_>) -> Result<()> {
    let Some(out) = real_path(&options.out)? else {
        return Ok(());
    };
    let mut faults = Faults::default();
    for path in options.packages.iter().filter(|path| !options.built.contains_key(*path)) {
        // Reading reports missing packages.
        if faults.keep(real_path(path)).flatten().is_some_and(|path| path.starts_with(&out)) {
            let hint = "packages in a repository stay there; give the packages to add";
            let error = Error::new(Kind::Usage, "is inside the repository");
            faults.add(error.file(path).hint(hint));
        }
    }
    faults.finish()
}

/// Refuses an output, such as a folder for packages, inside a repository: its packages could not be given to that
/// repository again, and it would look like a part of the repository.
pub fn refuse_output_inside(repository: &Path, out: &Path, what: &str) -> Result<()> {
    if !place(out)?.starts_with(place(repository)?) {
        return Ok(());
    }
    let message = format!("the {what} is inside the repository {}", repository.display());
    let hint = "write it outside the repository";
    Err(Error::new(Kind::Usage, message).file(out).hint(hint))
}

/// The real path that `folder` has or will have, with all links resolved.
fn place(folder: &Path) -> Result<PathBuf> {
    for above in folder.ancestors().filter(|above| *above != Path::new("")) {
        if let Some(real) = real_path(above)? {
            return Ok(real.join(folder.strip_prefix(above).unwrap_or(Path::new(""))));
        }
    }
    // A relative path without any existing part.
    let here = Path::new(".").canonicalize().map_err(|e| Error::io(folder, "resolve", e))?;
    Ok(here.join(folder))
}

/// A given file before it is read: without its digest.
type FoundPackage = (Arc<StampedFile>, PublishedFile);

/// The given packages in path order, and findings about files that are left out. Files that a channel knows by name,
/// size and time are not read, unless the run checks all.
pub(super) fn given(
    options: &RepoOptions<'_>,
    channels: &Channels,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<(Vec<GivenPackage>, Findings)> {
    let has_sources = options.includes(PackageKind::Wheel);
    let mut found = FoundFiles { has_sources, ..FoundFiles::default() };
    Faults::all(options.packages.iter().map(|path| found.add(path)))?;
    let FoundFiles { files, mut findings, .. } = found;
    let (mut packages, errors) =
        findings.explain(read(files, options, channels, budget, progress))?;
    let is_bad = |it: &Error| it.is_format_fault() || it.kind() == Kind::Verify;
    let skips_bad = options.changes.skip_bad;
    let (left_out, others): (Vec<_>, Vec<_>) =
        errors.into_iter().partition(|it| is_not_sdist(it) || skips_bad && is_bad(it));
    for error in left_out {
        let file = error.place().file.as_deref().unwrap_or(Path::new("")).display().to_string();
        let reason = if is_not_sdist(&error) {
            PackageLeftOut::NoDistribution(error.message().to_owned())
        } else {
            PackageLeftOut::Bad(unreadable_reason(&error))
        };
        findings.add(found::PackageFileLeftOut { file, reason });
    }
    findings.explain(Error::gather(others).map_or(Ok(()), Err))?;
    findings.extend(findings.explain(receipts::check(&mut packages, options))?);
    Ok((packages, findings))
}

/// Whether the error is about a file that only has the name of a source distribution.
fn is_not_sdist(error: &Error) -> bool {
    let file = error.place().file.as_deref();
    error.is_wrong_file_kind() && !error.is_refusal() && file.is_some_and(sdist::is_one)
}

fn read(
    mut files: Vec<PathBuf>,
    options: &RepoOptions<'_>,
    channels: &Channels,
    budget: &Budget,
    progress: &dyn Progress,
) -> Result<(Vec<GivenPackage>, Vec<Error>)> {
    files.sort();
    files.dedup();
    let found: Vec<Result<FoundPackage>> = files.into_par_iter().map(inspect).collect();
    progress.expect(Stage::Index, found.iter().flatten().map(|(_, source)| source.size).sum());
    progress.begin(Stage::Index);
    let known = known_packages(channels);
    let read = |found: Result<FoundPackage>| {
        let (file, source) = found?;
        let record = if options.check { None } else { known.get(&key(&source)).copied() };
        let (size, built) = (source.size, options.built.get(file.path()));
        let given = given_package((file, source), record, built, options, budget);
        progress.advance(Stage::Index, size);
        given
    };
    let outcomes = read_in_batches(found, read);
    progress.end(Stage::Index);
    outcomes
}

/// Packages per thread that are read before the results are copied.
const BATCH: usize = 32;

/// Calls `read` for all packages, and keeps copies of the results. A separate thread makes the copies: results between
/// freed buffers of decompressors would fragment the heap, to up to ten times its size.
fn read_in_batches(
    found: Vec<Result<FoundPackage>>,
    read: impl Fn(Result<FoundPackage>) -> Result<GivenPackage> + Sync,
) -> Result<(Vec<GivenPackage>, Vec<Error>)> {
    let (mut kept, mut errors) = (Vec::with_capacity(found.len()), Vec::new());
    let mut found = found.into_iter();
    while !found.as_slice().is_empty() {
        let batch: Vec<_> = found.by_ref().take(BATCH * threads::count()).collect();
        let (failed, given): (Vec<Error>, Vec<GivenPackage>) =
            batch.into_par_iter().map(&read).partition_map(Either::from);
        kept.extend(threads::on_new_thread(|| given.iter().map(copied).collect::<Vec<_>>())?);
        errors.extend(failed);
    }
    Ok((kept, errors))
}

fn copied(given: &GivenPackage) -> GivenPackage {
    let mut copy = GivenPackage { siblings: Arc::default(), ..given.clone() };
    if given.read {
        copy.source = Arc::new(PublishedFile::clone(&given.source));
        copy.indexed = Arc::new(IndexedPackage::clone(&given.indexed));
    }
    copy
}

type SourceKey<'a> = (&'a str, u64, Modified);

fn key(source: &PublishedFile) -> SourceKey<'_> {
    (&*source.name, source.size, source.modified)
}

/// The packages that channels know by name, size and time. Two with different contents are ambiguous: neither counts.
fn known_packages(channels: &Channels) -> BTreeMap<SourceKey<'_>, &Arc<PoolRecord>> {
    let mut known: BTreeMap<SourceKey<'_>, Option<&Arc<PoolRecord>>> = BTreeMap::new();
    for record in channels.0.values().flat_map(|state| state.records.values()) {
        let source = &record.source;
        let one = known.entry(key(source)).or_insert(Some(record));
        *one = one.filter(|other| {
            let digests = [&other.source.sha256, &other.indexed.sha256];
            digests == [&source.sha256, &record.indexed.sha256]
        });
    }
    known.into_iter().filter_map(|(key, record)| Some((key, record?))).collect()
}

/// A package from its `record`, as this run `built` it, or as read now.
pub(super) fn given_package(
    (stamped, source): FoundPackage,
    record: Option<&Arc<PoolRecord>>,
    built: Option<&IndexedPackage>,
    options: &RepoOptions<'_>,
    budget: &Budget,
) -> Result<GivenPackage> {
    let (file, siblings, mut inputs) =
        (stamped.path().to_path_buf(), Arc::default(), Inputs::within(budget));
    let content = inputs.add(stamped);
    if let Some(record) = record {
        // The record's file differs from its source if publishing signed it.
        let (source, indexed) = (Arc::clone(&record.source), Arc::clone(&record.indexed));
        let (read, link) = (false, false);
        return Ok(GivenPackage { file, content, source, indexed, read, link, siblings });
    }
    let indexed = match built {
        Some(built) => built.clone(),
        None => {
            let read = inputs.explain(IndexedPackage::read(&content, &source.name));
            let read = read.file(&file).context(reading);
            // Only a file that is named itself can lack the suffix of a package.
            let is_named =
                PackageKind::of_file_name(&file).is_none() && options.packages.contains(&file);
            read.map_err(|error| if is_named { error.named_by_user() } else { error })?
        }
    };
    let source = Arc::new(PublishedFile { sha256: indexed.sha256.clone(), ..source });
    let (read, link, indexed) = (built.is_none(), built.is_some(), Arc::new(indexed));
    let given = GivenPackage { file, content, source, indexed, read, link, siblings };
    // A package that this run wrote may be signed already.
    match (&options.package_signer, &given.indexed.facts) {
        (Some(signer), IndexMetadata::Rpm(package)) if !(given.link && package.signed) => {
            let content = rpm::signed(&given.content, signer).file(&given.file).context(reading)?;
            let indexed = IndexedPackage::read(&content, &given.source.name)
                .file(&given.file)
                .context(reading)?;
            let indexed = Arc::new(indexed);
            Ok(GivenPackage { content, indexed, read: true, link: false, ..given })
        }
        _ => Ok(given),
    }
}

fn reading() -> String {
    "indexing packages".to_owned()
}

pub(super) fn inspect(file: PathBuf) -> Result<FoundPackage> {
    let metadata = fs::metadata(&file).map_err(|e| Error::io(&file, "inspect", e))?;
    let Stat { size, modified } = stat_of(&metadata);
    let source = PublishedFile { name: name_of(&file), size, modified, sha256: String::new() };
    Ok((Arc::new(StampedFile::of(&file, &metadata)?), source))
}

/// The file suffix of packages for Debian's installer.
const INSTALLER: &str = "udeb";

/// The beginning of a `.deb`, with the name of its first member; other `ar` archives are libraries.
const DEB_START: &[u8] = b"!<arch>\ndebian-binary";

/// The package files in the given folders, and findings about files that are left out.
#[derive(Default)]
struct FoundFiles {
    has_sources: bool,
    files: Vec<PathBuf>,
    findings: Findings,
}

impl FoundFiles {
    /// Adds the file at `path`, with any name, or the packages in the folder at `path` and its subfolders.
    fn add(&mut self, path: &Path) -> Result<()> {
        let metadata = fs::metadata(path)
            .map_err(|e| Error::io(path, "inspect", e))
            .map_err(|error| error.named_by_user().context("looking for packages"))?;
        if !metadata.is_dir() {
            self.files.push(path.to_path_buf());
            return Ok(());
        }
        let before = self.files.len();
        self.walk(path, path)?;
        if self.files.len() > before || is_part(path)? {
            return Ok(());
        }
        let error = Error::new(Kind::Usage, "there is no package in this folder").file(path);
        self.findings.explain(Err(error))
    }

    /// Adds the packages in a folder at or below `root`.
    fn walk(&mut self, root: &Path, folder: &Path) -> Result<()> {
        for entry in list(folder)? {
            let entry = entry?;
            let path = entry.path();
            let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
            let kind = entry.file_type().map_err(|e| Error::io(&path, "inspect", e))?;
            if kind.is_dir() && !is_hidden {
                self.walk(root, &path)?;
            } else if !kind.is_dir() {
                self.file(root, path, is_hidden);
            }
        }
        Ok(())
    }

    fn file(&mut self, root: &Path, path: PathBuf, is_hidden: bool) {
        let is_installers = path.extension().is_some_and(|it| it.eq_ignore_ascii_case(INSTALLER));
        let reason = match PackageKind::of_file_name(&path).is_some()
            || self.has_sources && sdist::is_one(&path)
        {
            true if is_hidden => PackageLeftOut::Hidden,
            true if is_installers => PackageLeftOut::Installer,
            true => return self.files.push(path),
            false if is_hidden => return,
            false if self.has_sources && sdist::resembles_sdist(&path) && path.is_file() => {
                let reason = "is not named NAME-VERSION.tar.gz or .zip".to_owned();
                PackageLeftOut::NoDistribution(reason)
            }
            false => match unlisted_package(root, &path) {
                Some(reason) => reason,
                None => return,
            },
        };
        let file = path.display().to_string();
        self.findings.add(found::PackageFileLeftOut { file, reason });
    }
}

/// Whether a folder has the receipt of a part of a set. A part may have no packages.
fn is_part(folder: &Path) -> Result<bool> {
    let names = Faults::all(list(folder)?.map(|entry| Ok(entry?.file_name())))?;
    Ok(names.iter().any(|name| part_of_file(&name.to_string_lossy()).is_some()))
}

/// Why a file without the name of a package is reported. `None` for unreadable files, and for links to folders below
/// `root`, which are searched anyway.
fn unlisted_package(root: &Path, path: &Path) -> Option<PackageLeftOut> {
    let metadata = fs::metadata(path).ok()?;
    if metadata.is_dir() {
        let is_inside = path.canonicalize().ok()?.starts_with(root.canonicalize().ok()?);
        return (!is_inside).then_some(PackageLeftOut::LinkedFolder);
    }
    if !metadata.is_file() {
        return None;
    }
    let mut head = Vec::new();
    File::open(path).ok()?.take(DEB_START.len() as u64).read_to_end(&mut head).ok()?;
    if head.starts_with(&LEAD_MAGIC) {
        return Some(PackageLeftOut::Unnamed(Format::Rpm));
    }
    (head == DEB_START).then_some(PackageLeftOut::Unnamed(Format::Deb))
}

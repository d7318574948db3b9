//! Python wheels: opened by their central directory, compared with their RECORD, and read as one artifact.
//!
//! ```text
//! x-1.0-cp312-cp312-linux_x86_64.whl       a ZIP archive (rockpack_archive::zip)
//!     x/…, x.libs/…                        files, by their paths in site-packages
//!     x-1.0.data/{purelib,platlib}/…       the same
//!     x-1.0.data/{scripts,headers,data}/…  files that are installed elsewhere
//!     x-1.0.dist-info/METADATA, WHEEL, RECORD, …
//! ```
//!
//! Each member is decoded once, while its digest is computed. Deflated content is kept in memory, or in a
//! [`BlockStore`] if the budget has no room; stored content stays in the wheel. The files that are installed
//! in site-packages are the tree of an artifact with one prefix, without those of `dist-info`.
//!
//! The reader refuses what pip would not install, or would install differently: a wheel without METADATA, WHEEL
//! or RECORD, with two `dist-info` folders, or with another name or version than that of its file; digests
//! and sizes that differ from RECORD, paths that leave the wheel, links, two members that are installed at
//! one path, wheels for Windows, PE files with device code, and contents of more than fifty times their archive.

mod find;
mod member;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use rockpack_archive::wheel::{
    Condition, ListingFault, Metadata, Place, Requirement, Version, WheelArchive, WheelFile,
    WheelName, normalized, place,
};
use rockpack_archive::zip::{ZipMember, ZipReader};
use rockpack_core::content::{BlockStore, Content, Inputs};
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::run::MemoryUse;
use rockpack_core::tree::{ArtifactName, ComponentKind, Node, Tree, TreePath};
use rockpack_report::{Findings, Progress, Stage, found};

use super::artifact::{Artifact, Scan, ScanOptions, Shard, StagePrefix, member_name, refuse_deep};
use member::MemberContext;

pub use find::{always_required, find, refuse_among, sort_required_first};
pub use member::WheelMember;

/// Maximum bytes of content for each byte of the archive, as on PyPI.
const RATIO_MAX: u64 = 50;

/// Bytes of content that are allowed for every archive.
const ALWAYS: u64 = 64 << 20;

#[derive(Debug)]
pub struct Wheel {
    pub path: PathBuf,
    pub size: u64,
    pub name: WheelName,
    pub metadata: Metadata,
    pub wheel_file: WheelFile,
    pub dist_info: String,
    /// The files by their names in the archive.
    pub members: BTreeMap<String, WheelMember>,
    /// The one artifact, with the files that are installed in site-packages.
    pub scan: Scan,
}

impl Wheel {
    pub fn artifact(&self) -> Result<&Artifact> {
        let mut artifacts = self.scan.shards.iter().flat_map(|shard| &shard.artifacts);
        artifacts.next().ok_or_else(|| Error::bug("a wheel has no artifact"))
    }

    /// The other distributions that it requires in exactly its own version, as device wheels do.
    pub fn pinned(&self) -> Vec<String> {
        let own = normalized(self.metadata.name());
        let version: Option<Version> = self.metadata.version().parse().ok();
        let pins = self.metadata.all("Requires-Dist").filter_map(|text| {
            let needed = Requirement::parse(text).ok()?;
            let is_pin =
                needed.condition == Condition::Always && needed.exact()? == version.as_ref()?;
            // A device wheel may require an extra of another wheel, too.
            let is_plain = needed.extras.is_empty() && needed.project != own;
            (is_pin && is_plain).then_some(needed.project)
        });
        pins.collect()
    }

    /// The scheme by which a member is installed, e.g. `platlib` or `scripts`, if its path names one.
    pub fn scheme<'a>(&self, member: &'a str) -> Option<&'a str> {
        let stem = self.dist_info.strip_suffix(".dist-info")?;
        let below = member.strip_prefix(stem)?.strip_prefix(".data/")?;
        below.split('/').next()
    }

    /// Whether a member, by its name in the archive, is in the `dist-info` folder.
    pub fn is_dist_info(&self, name: &str) -> bool {
        name.strip_prefix(&self.dist_info).is_some_and(|rest| rest.starts_with('/'))
    }
}

pub fn read(path: &Path, options: &ScanOptions, progress: &dyn Progress) -> Result<Wheel> {
    let mut inputs = Inputs::within(&options.budget);
    let content = inputs.content(path)?;
    let wheel = read_content(path, content, options, progress);
    let named = |error: Error| {
        if error.place().file.is_some() { error } else { error.file(path) }
    };
    let mut wheel = inputs.explain(wheel).map_err(named)?;
    wheel.scan.inputs = inputs;
    Ok(wheel)
}

fn read_content(
    path: &Path,
    content: Content,
    options: &ScanOptions,
    progress: &dyn Progress,
) -> Result<Wheel> {
    let file_name = path
        .file_name()
        .and_then(|name| name.to_str())
        .ok_or_else(|| Error::malformed("has no name in UTF-8"))?;
    let name: WheelName = file_name.parse()?;
    refuse_windows(&name)?;
    let size = content.len();
    let archive = WheelArchive::open(content)?;
    refuse_bomb(&archive.zip, size)?;
    archive.check_headers(&name)?;
    archive.check_places()?;
    let mut findings = Findings::default();
    // The file name decides.
    if !archive.wheel_file.agrees_with(&name) {
        let WheelArchive { wheel_file, .. } = &archive;
        let (wheel, build) = (name.to_string(), wheel_file.build().map(str::to_owned));
        findings.add(found::WheelTagsDiffer { wheel, tags: wheel_file.tags(), build });
    }
    let mut check = RecordCheck::new(&archive);
    let kept = sort(&archive, &mut check, path)?;
    progress.expect(Stage::Split, kept.iter().map(|member| member.size).sum());
    progress.begin(Stage::Split);
    let store = BlockStore::create(&options.spool_dir, &options.budget)?;
    let reading = MemberContext { archive: &archive, path, store };
    // The other half is for decoding compressed content inside members.
    let rest =
        options.budget.try_draw(MemoryUse::HeldBytes, options.budget.all(MemoryUse::HeldBytes) / 2);
    let read: Vec<Result<WheelMember>> = kept
        .par_iter()
        .map(|member| {
            let read = reading.member(member);
            progress.advance(Stage::Split, member.size);
            read
        })
        .collect();
    drop(rest);
    progress.end(Stage::Split);
    let mut faults = Faults::default();
    let members: BTreeMap<String, WheelMember> = read
        .into_iter()
        .filter_map(|member| faults.keep(member))
        .map(|member| (member.zip.name.clone(), member))
        .collect();
    let tree = faults.keep(tree(&members, &archive.dist_info, path));
    faults.finish()?;
    let stale = members.iter().filter_map(|(name, it)| Some((name.clone(), it.stale.clone()?)));
    check.finish(&name, stale.collect(), &mut findings);
    let artifact = artifact(path, &name, tree.unwrap_or_default());
    let shard = Shard { name: artifact.shard.clone(), artifacts: vec![artifact] };
    let scan = Scan { shards: vec![shard], inputs: Inputs::within(&options.budget), findings };
    let path = path.to_path_buf();
    let WheelArchive { metadata, wheel_file, dist_info, .. } = archive;
    Ok(Wheel { path, size, name, metadata, wheel_file, dist_info, members, scan })
}

fn refuse_windows(name: &WheelName) -> Result<()> {
    let windows = name.platforms.iter().find(|platform| platform.starts_with("win"));
    let Some(platform) = windows else { return Ok(()) };
    let error = Error::unsupported(format!("is a wheel for Windows ({platform})"));
    Err(error.hint("only wheels for Linux can be split; use wheels for Windows unchanged"))
}

fn refuse_bomb(zip: &ZipReader, size: u64) -> Result<()> {
    let bytes = zip.members().iter().fold(0_u64, |sum, member| sum.saturating_add(member.size));
    if bytes <= ALWAYS.max(size.saturating_mul(RATIO_MAX)) {
        return Ok(());
    }
    let message =
        format!("its members have {bytes} bytes, more than {RATIO_MAX} times its size of {size}");
    Err(Error::new(Kind::Limit, message)
        .hint("PyPI refuses such wheels, too: check the tool that wrote it"))
}

/// The members that are files of the wheel. Reports the others, and refuses unusable ones.
fn sort<'a>(
    archive: &'a WheelArchive,
    check: &mut RecordCheck<'_>,
    path: &Path,
) -> Result<Vec<&'a ZipMember>> {
    let mut faults = Faults::default();
    let mut kept = Vec::new();
    for member in archive.zip.members() {
        let usable = archive
            .check_member(member)
            .and_then(|()| refuse_deep(&TreePath::new(member.path())?))
            .map_err(|error| error.file(member_name(path, &member.name)));
        if faults.keep(usable).is_some() && check.keeps(member) {
            kept.push(member);
        }
    }
    faults.finish()?;
    Ok(kept)
}

/// The files that are installed in site-packages.
fn tree(
    members: &BTreeMap<String, WheelMember>,
    dist_info: &str,
    path: &Path,
) -> Result<Tree<Content>> {
    let mut tree = Tree::new();
    let mut faults = Faults::default();
    for (name, member) in members {
        let Some(installed) = &member.installed else { continue };
        if place(name, dist_info) == Place::DistInfo {
            continue;
        }
        if place(installed.as_str(), dist_info) == Place::DistInfo {
            let message = format!("is installed at {installed}, in the folder of the metadata");
            faults.add(Error::new(Kind::Conflict, message).file(member_name(path, name)));
            continue;
        }
        let node = Node::File { data: member.content.clone(), mode: member.mode };
        faults.keep(tree.insert(installed.clone(), node));
    }
    faults.finish()?;
    Ok(tree)
}

fn artifact(path: &Path, name: &WheelName, tree: Tree<Content>) -> Artifact {
    let prefix = StagePrefix { path: String::new(), module: None, tree };
    let artifact = ArtifactName {
        name: normalized(&name.distribution),
        kind: ComponentKind::Lib,
        gpu_family: String::new(),
    };
    Artifact::new(&name.to_string(), artifact, path, vec![prefix])
}

/// Differences between RECORD and the members, with which a wheel can be split.
struct RecordCheck<'a> {
    archive: &'a WheelArchive,
    unlisted: Vec<String>,
    unhashed: usize,
    dropped: Vec<String>,
}

impl<'a> RecordCheck<'a> {
    fn new(archive: &'a WheelArchive) -> Self {
        Self { archive, unlisted: Vec::new(), unhashed: 0, dropped: Vec::new() }
    }

    /// Records a member, and returns whether it is a file of the wheel. A changed wheel cannot keep signatures of
    /// RECORD, which installers ignore.
    fn keeps(&mut self, member: &ZipMember) -> bool {
        let fault = self.archive.listing_fault(member, None);
        if member.name.ends_with('/') || fault == Some(ListingFault::Signature) {
            self.dropped.push(member.name.clone());
            return false;
        }
        match fault {
            Some(ListingFault::Unlisted | ListingFault::WithoutItself) => {
                self.unlisted.push(member.name.clone());
            }
            Some(ListingFault::WithoutDigest) => self.unhashed += 1,
            _ => {}
        }
        true
    }

    /// Reports differences from RECORD, including `stale` rows, and dropped members.
    fn finish(self, name: &WheelName, stale: BTreeMap<String, String>, findings: &mut Findings) {
        let Self { archive, unlisted, unhashed, dropped } = self;
        let absent: Vec<String> = archive.rows_without_member().map(str::to_owned).collect();
        let wheel = name.to_string();
        if !unlisted.is_empty() || !absent.is_empty() || unhashed > 0 {
            let wheel = wheel.clone();
            findings.add(found::WheelRecordIncomplete { wheel, unlisted, absent, unhashed });
        }
        if !stale.is_empty() {
            findings.add(found::WheelRecordStale { wheel: wheel.clone(), members: stale });
        }
        if !dropped.is_empty() {
            findings.add(found::WheelMembersDropped { wheel, members: dropped });
        }
    }
}

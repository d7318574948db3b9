//! One archive: its rows, aliases and ordinals, the targets that it lists, and the code object for each target.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use rockpack_core::content::{Content, hex};
use rockpack_core::error::{Error, Result};
use rockpack_core::gfx::{BaseArch, Target};
use rockpack_elf::kpack::{self, HSACO, Scheme, Toc, TocRow};

use super::frames::Frame;
use rockpack_package::receipt::{CodeObjectPlace, CodeObjectRecord};
use rockpack_plan::recombine::Kernel;

#[derive(Debug, Clone)]
pub struct PackedArchive {
    pub arch: BaseArch,
    /// The file name, e.g. `blas_lib_gfx1100.kpack`.
    pub file_name: String,
    pub content: Content,
    /// The rows, sorted by binary, co_index and target.
    pub rows: Vec<PackedRow>,
    /// The number of distinct stored code objects.
    pub code_objects: u64,
}

impl PackedArchive {
    /// The records of this archive at `path` in `package` for the receipt, without aliases, which repeat the code
    /// object of another row.
    pub fn records(&self, path: &str, package: &str) -> impl Iterator<Item = CodeObjectRecord> {
        let own = self.rows.iter().filter(|row| !row.alias);
        own.map(move |row| CodeObjectRecord {
            sha256: hex(&row.sha256),
            size: row.original_size,
            stored_size: row.stored_size,
            target: row.target.to_string(),
            shard: Some(row.shard.clone()),
            package: package.to_owned(),
            place: CodeObjectPlace::Archive {
                binary: row.binary.clone(),
                archive: path.to_owned(),
                key: row.key.clone(),
            },
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedRow {
    /// The TOC key, e.g. `lib/librocblas.so.5#3`.
    pub key: String,
    pub binary: String,
    pub shard: String,
    pub target: Target,
    pub ordinal: u32,
    pub sha256: [u8; 32],
    pub original_size: u64,
    /// Its bytes in the compressed bundle of the input; see [`Kernel`].
    pub stored_size: Option<u64>,
    /// Whether the row repeats a code object of the same wrapper that was built for a less specific
    /// target, or for the generic target.
    pub alias: bool,
}

/// A code object of an archive, and the target under which devices look for it.
#[derive(Clone)]
pub(super) struct Member<'a> {
    pub kernel: &'a Kernel,
    pub frame: &'a Frame,
    pub target: Cow<'a, Target>,
}

impl<'a> Member<'a> {
    pub fn wrapper(&self) -> (&'a str, u32) {
        (self.kernel.binary.as_str(), self.kernel.co_index)
    }
}

pub(super) fn file_name(name: &str, arch: &str) -> String {
    format!("{name}_{arch}.kpack")
}

type MembersByTarget<'a> = BTreeMap<&'a Target, &'a Member<'a>>;

/// The archive of the set `name` for `arch` with `members`, which are all of that arch.
pub(super) fn assemble(
    name: &str,
    arch: &BaseArch,
    members: &[Member<'_>],
    scheme: Scheme,
) -> Result<PackedArchive> {
    let wrappers = wrappers(members)?;
    let targets = members.iter().map(|member| &*member.target).collect();
    let listed = listed(arch, &targets);
    let stored = Stored::of(&wrappers)?;
    let mut rows = Vec::new();
    for ((binary, co_index), wrapper) in &wrappers {
        let key = kpack::key(binary, *co_index);
        rows.extend(wrapper_rows(&key, wrapper, &listed, &stored)?);
    }
    let toc = Toc {
        group_name: name.to_owned(),
        gfx_arch_family: arch.to_string(),
        gfx_arches: listed.iter().map(Target::to_string).collect(),
        scheme,
        rows: table(&rows),
    };
    let frames = match scheme {
        Scheme::ZstdPerKernel => stored.frames,
        Scheme::None => stored.frames.iter().map(kpack::decoded).collect::<Result<_>>()?,
    };
    Ok(PackedArchive {
        arch: arch.clone(),
        file_name: file_name(name, arch.as_str()),
        code_objects: frames.len() as u64,
        content: kpack::write(&toc, &frames)?,
        rows,
    })
}

/// Groups members by wrapper. Refuses two code objects of one wrapper and target: loaders could find only
/// one.
fn wrappers<'a>(
    members: &'a [Member<'a>],
) -> Result<BTreeMap<(&'a str, u32), MembersByTarget<'a>>> {
    let mut wrappers: BTreeMap<(&str, u32), MembersByTarget<'a>> = BTreeMap::new();
    for member in members {
        let (binary, index) = member.wrapper();
        let wrapper = wrappers.entry((binary, index)).or_default();
        if wrapper.insert(&member.target, member).is_some() {
            let message = format!("wrapper {index} has two code objects for {}", member.target);
            return Err(Error::bug(message).file(binary));
        }
    }
    Ok(wrappers)
}

#[derive(Default)]
struct Stored {
    /// The ordinals by SHA-256 of the code object.
    ordinals: HashMap<[u8; 32], u32>,
    /// The frames in ordinal order.
    frames: Vec<Content>,
}

impl Stored {
    /// Assigns ordinals in the order of (binary, co_index, target); identical code objects share one.
    fn of(wrappers: &BTreeMap<(&str, u32), MembersByTarget<'_>>) -> Result<Self> {
        let mut stored = Self::default();
        for Member { frame, .. } in wrappers.values().flat_map(BTreeMap::values) {
            if stored.ordinals.contains_key(&frame.sha256) {
                continue;
            }
            let ordinal = u32::try_from(stored.frames.len())
                .map_err(|_| Error::bug("more code objects than ordinals"))?;
            stored.ordinals.insert(frame.sha256, ordinal);
            stored.frames.push(frame.content.clone());
        }
        Ok(stored)
    }
}

/// The rows of a wrapper: one forevery listed target that can run one of its code objects.
fn wrapper_rows(
    key: &str,
    wrapper: &MembersByTarget<'_>,
    listed: &[Target],
    stored: &Stored,
) -> Result<Vec<PackedRow>> {
    let mut rows = Vec::new();
    for target in listed.iter().collect::<BTreeSet<_>>() {
        // The runtime asks for the generic target last.
        let own = wrapper.iter().filter(|(_, it)| it.target.base() == it.kernel.target.base());
        let own = own.map(|(target, _)| *target);
        let chosen = most_specific(own, target);
        let Some(chosen) = chosen.or_else(|| most_specific(wrapper.keys().copied(), target)) else {
            continue;
        };
        let Member { kernel, frame, .. } = wrapper.get(chosen).ok_or_else(|| no_ordinal(key))?;
        rows.push(PackedRow {
            key: key.to_owned(),
            binary: kernel.binary.to_string(),
            shard: kernel.shard.clone(),
            target: target.clone(),
            ordinal: *stored.ordinals.get(&frame.sha256).ok_or_else(|| no_ordinal(key))?,
            sha256: frame.sha256,
            original_size: frame.original_size,
            stored_size: kernel.stored_size,
            alias: kernel.target != *target,
        });
    }
    Ok(rows)
}

fn no_ordinal(key: &str) -> Error {
    Error::bug(format!("a code object of {key} has no ordinal"))
}

fn table(rows: &[PackedRow]) -> BTreeMap<String, BTreeMap<String, TocRow>> {
    let mut table: BTreeMap<String, BTreeMap<String, TocRow>> = BTreeMap::new();
    for row in rows {
        let stored = TocRow {
            kind: HSACO.to_owned(),
            ordinal: row.ordinal,
            original_size: row.original_size,
            metadata: None,
        };
        let targets = table.entry(row.key.clone()).or_default();
        targets.insert(row.target.to_string(), stored);
    }
    table
}

/// The targets to list in an archive with code objects for `targets`, all of `arch`: most specific first.
///
/// Behaviour of loaders (AMD's `rocm_kpack` runtime; its sources between 2025 and 2026): from the target ID
/// that the device reports they form all target IDs with some of its features left out, those with most
/// features first, and among equally many those that keep the earlier features first. Released loaders commit
/// to the first of these that is in an archive's `gfx_arches`, and fail if the wrapper has no row for it;
/// later ones go on to the next. Both look for a row per wrapper, while `gfx_arches` holds for the whole
/// archive.
///
/// **Invariant.** For every device and every wrapper, both kinds of loader find the wrapper's most specific
/// code object that the device can run, if there is one; and every listed target has a row. It holds because
/// as soon as any target of the archive fixes a feature, the archive lists every fully specified target ID
/// that can run some code object. Devices report fully specified target IDs. If the archive lists a device's
/// own, a loader looks for it first, and each wrapper has a row for it with the most specific code object
/// that the device can run; a wrapper without that row has no such code object. If the archive does not list
/// it, the device can run no code object of the archive, so none of the shorter target IDs is listed either,
/// and the loader skips the archive.
///
/// The runtime also asks for the generic target of a device's arch, but released loaders stop, with an error
/// forevery device, at the archive of the arch itself if that lacks a row for the wrapper (measured with
/// librocm_kpack 0.1.0 of ROCm 7.14). So the archive of an arch also has rows for the wrappers that have no code
/// for some of its devices, but code for its generic target: copies of that code, under the features that it was
/// built for. Where code for the arch itself runs on a device, its row comes first. An arch
/// without code of its own in a set has no archive, and loaders go on to that of the generic target. No
/// archive repeats SPIR-V, which a loader would take for machine code.
fn listed(arch: &BaseArch, targets: &BTreeSet<&Target>) -> Vec<Target> {
    let mut distinct: BTreeSet<Target> = targets.iter().copied().cloned().collect();
    let mut features: BTreeSet<&str> = targets
        .iter()
        .flat_map(|target| target.features())
        .map(|(name, _)| name.as_str())
        .collect();
    if !features.is_empty() {
        // Features in use count as supported, even if the table does not know the arch.
        features.extend(arch.supported_features());
        let devices = arch.fully_specified(features).into_iter();
        distinct.extend(devices.filter(|device| targets.iter().any(|t| t.runs_on(device))));
    }
    let mut listed: Vec<Target> = distinct.into_iter().collect();
    listed.sort_by_key(|target| Reverse(target.features().len()));
    listed
}

/// The most specific of `candidates` that can run on `target`, in the order of loaders.
fn most_specific<'a>(
    candidates: impl IntoIterator<Item = &'a Target>,
    target: &Target,
) -> Option<&'a Target> {
    candidates.into_iter().filter(|candidate| candidate.runs_on(target)).min_by(|a, b| {
        let (a, b) = (a.features(), b.features());
        b.len().cmp(&a.len()).then_with(|| a.cmp(b))
    })
}

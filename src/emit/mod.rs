//! The only writer of packages.
//!
//! A package is written in both formats from one read of every file, after another one for the digests if
//! there is a cache: the content goes in windows
//! through bounded channels to one writer per format, each on its own thread with its own
//! compressor threads. Nothing is held but windows, digests and headers, so packages above 4 GiB
//! work in the memory of small ones. [`in_turn`] keeps the cores busy from package to package.
//! Files are staged in a hidden directory of the output folder, flushed and synced; the whole set
//! appears when [`Staging::commit`] renames it into place.
//!
//! Refuses: entries that a format cannot hold, times that 32 bits from 1970 on cannot hold, names that
//! are no file names.

mod compressor;
mod deb;
pub mod directories;
mod earlier;
mod fan_out;
mod listed;
mod receipt;
mod reuse;
mod rpm;
pub mod sbom;
mod staging;
mod text;
mod turns;
mod unsealed;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Serialize, Serializer};

pub use compressor::{Compression, Contexts};
pub use earlier::SpdxDocument;
pub use receipt::{WholeSet, WrittenPackage, receipt};
pub use staging::Staging;
pub use turns::{Turn, in_turn};
pub use unsealed::Unsealed;

use rockpack_base::content::{Content, hex};
use rockpack_base::error::{Error, Kind, Result, ResultExt};
use rockpack_base::formats::package_file::PackageSpecification;
use rockpack_base::formats::payload::{FileDigests, Marking, PayloadEntry, PayloadEntryKind};
use rockpack_base::run::Budget;
use rockpack_base::tree::Node;

use crate::pack::cache::{Cache, Key};
use crate::package::indexed::Indexed;
use crate::package::{Format, MemberKind, Package, PackageEntry, Treatment};
use crate::report::{Compressed, Progress, Stage, Work};
use crate::signing::Signer;
use fan_out::Sink;
use reuse::{Known, Reuse};
use unsealed::UnsealedFile;

/// How packages are written.
#[derive(Clone)]
pub struct EmitOptions<'a> {
    /// Threads to spread over the compressors; the bytes do not depend on their number.
    pub jobs: usize,
    /// What the memory of compressors is drawn from.
    pub budget: Budget,
    /// Contexts of compressors, for all packages.
    pub contexts: Contexts,
    /// How payloads are compressed.
    pub compression: Compression,
    /// Modification time of every payload entry, seconds since 1970.
    pub content_date: i64,
    /// BUILDTIME in rpm headers and the time in a deb's ar and control members, seconds since
    /// 1970.
    pub source_date_epoch: i64,
    /// Whether the packages are to be published: what the index of a repository says of them is
    /// found out while they are digested.
    pub indexed: bool,
    /// Whether the SHA-1 of every file is found out, too, as SPDX documents have it.
    pub sha1: bool,
    /// What signs the headers of `.rpm`s; a `.deb` has no signature that apt asks for.
    pub signer: Option<&'a Arc<dyn Signer>>,
    /// Where payloads are looked for that an earlier run compressed, and kept for later ones.
    pub cache: Option<&'a Cache>,
    /// Told of every window read (`advance`), every payload and every whole package; the caller says
    /// how many bytes to expect.
    pub progress: &'a dyn Progress,
}

/// A package file that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Emitted {
    /// [`Package::id`].
    pub package: String,
    /// Its format.
    pub format: Format,
    /// Its name in the output folder.
    pub file_name: String,
    /// Bytes of the package file.
    pub size: u64,
    /// Bytes that the package says it takes: a deb's Installed-Size × 1024, an rpm's SIZE.
    pub installed_size: u64,
    /// SHA-256 of the package file.
    #[serde(serialize_with = "hexadecimal")]
    pub sha256: [u8; 32],
    /// What it holds, in path order.
    pub members: Vec<EmittedMember>,
    /// What the index of a repository says of it, if it is to be published.
    #[serde(skip)]
    pub indexed: Option<Indexed>,
}

/// One path of an emitted package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EmittedMember {
    /// The absolute install path.
    pub path: String,
    /// Directory, file or link.
    pub kind: MemberKind,
    /// Permission bits.
    pub mode: u32,
    /// Bytes of content; 0 unless it is a file.
    pub size: u64,
    /// SHA-256 of a file's content.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "hexadecimal_option")]
    pub sha256: Option<[u8; 32]>,
    /// SHA-1 of a file's content, if [`EmitOptions::sha1`] asked for it.
    #[serde(skip)]
    pub sha1: Option<[u8; 20]>,
    /// The text of a link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

fn hexadecimal<S: Serializer>(digest: &[u8; 32], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&hex(digest))
}

fn hexadecimal_option<S: Serializer>(
    digest: &Option<[u8; 32]>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match digest {
        Some(digest) => hexadecimal(digest, serializer),
        None => serializer.serialize_none(),
    }
}

/// A package file, decided but for the content of its files.
struct Prepared {
    format: Format,
    file_name: String,
    installed_size: u64,
    specification: PackageSpecification,
}

/// Writes `package` into `staging`, in every format it has, from one read of every file.
pub fn emit_package(
    package: &Package<Content>,
    staging: &Staging,
    options: &EmitOptions<'_>,
) -> Result<Vec<Emitted>> {
    write_package(package, staging, options)?.seal(staging, options)
}

/// [`emit_package`] without the step that waits for the disk.
pub fn write_package(
    package: &Package<Content>,
    staging: &Staging,
    options: &EmitOptions<'_>,
) -> Result<Unsealed> {
    options.progress.begin(Stage::Emit);
    let unsealed = write(package, staging, options);
    options.progress.end(Stage::Emit);
    unsealed.context(|| format!("writing package {}", package.id))
}

/// Tells of a payload.
fn tell(options: &EmitOptions<'_>, format: Format, compressed: Compressed) {
    options.progress.compressed(Work::Payloads(format), compressed);
}

/// Bytes of the files in `format`.
fn contents(entries: &[PackageEntry<Content>], format: Format) -> u64 {
    let inside = entries.iter().filter(|entry| entry.formats.has(format));
    inside.filter_map(|entry| entry.node.data()).map(Content::len).sum()
}

fn write(
    package: &Package<Content>,
    staging: &Staging,
    options: &EmitOptions<'_>,
) -> Result<Unsealed> {
    let mut prepared = Vec::new();
    if let Some(control) = &package.deb {
        prepared.push(deb::prepare(package, control, options)?);
    }
    if let Some(control) = &package.rpm {
        prepared.push(rpm::prepare(package, control, options)?);
    }
    let reuse = options.cache.map(|cache| Reuse::new(cache, package, options)).transpose()?;
    let mut sinks = Vec::new();
    let mut files = Vec::new();
    for Prepared { format, file_name, installed_size, specification } in prepared {
        let file = staging.create(&file_name)?;
        let known = reuse.as_ref().map(|reuse| reuse.fill(&file, format, &specification));
        let key = match known.transpose().file(&file_name)? {
            Some(Known::Filled(after)) => {
                let before = contents(&package.entries, format);
                tell(options, format, Compressed { before, after, reused: true });
                None
            }
            other => {
                let writer = specification.writer(file).file(&file_name)?;
                sinks.push(Sink { format, file_name: file_name.clone(), writer });
                other.and_then(Known::key)
            }
        };
        files.push((format, file_name, installed_size, key));
    }
    let known = reuse.map(Reuse::into_digests);
    let read = fan_out::fan_out(&package.entries, known, sinks, options)?;
    for (format, finished) in &read.finished {
        let before = contents(&package.entries, *format);
        let after = finished.payload.end - finished.payload.start;
        tell(options, *format, Compressed { before, after, reused: false });
    }
    let file = |(format, file_name, installed_size, key): (Format, String, u64, Option<Key>)| {
        let finished = read.finished.iter().find(|(written, _)| *written == format);
        let keep = key.zip(finished.map(|(_, finished)| finished.clone()));
        let members = members(&package.entries, &read.digests, format);
        UnsealedFile { format, file_name, installed_size, members, keep }
    };
    Ok(Unsealed { package: package.id.clone(), files: files.into_iter().map(file).collect() })
}

fn members(
    entries: &[PackageEntry<Content>],
    digests: &[Option<FileDigests>],
    format: Format,
) -> Vec<EmittedMember> {
    let entries = entries.iter().zip(digests);
    let inside = entries.filter(|(entry, _)| entry.formats.has(format));
    inside.map(|(entry, digest)| member(entry, *digest, format)).collect()
}

/// The SHA-256 of every file in `emitted`, by absolute install path.
pub fn file_digests(emitted: &[Emitted]) -> BTreeMap<&str, &[u8; 32]> {
    let members = emitted.iter().flat_map(|package| &package.members);
    members.filter_map(|member| Some((member.path.as_str(), member.sha256.as_ref()?))).collect()
}

fn member(
    entry: &PackageEntry<Content>,
    digests: Option<FileDigests>,
    format: Format,
) -> EmittedMember {
    let (mode, size, target) = match &entry.node {
        Node::Directory { mode } => (*mode, 0, None),
        Node::File { data, mode } => (entry.treatment.mode(*mode, format), data.len(), None),
        Node::Link { target } => (LINK_MODE, 0, Some(target.clone())),
    };
    let path = format!("/{}", entry.path);
    let sha256 = digests.map(|digests| digests.sha256);
    let sha1 = digests.and_then(|digests| digests.sha1);
    EmittedMember { path, kind: MemberKind::of(&entry.node), mode, size, sha256, sha1, target }
}

/// Permission bits of every symbolic link; Linux has no others.
const LINK_MODE: u32 = 0o777;

/// What `format` has of the package, in the words of the formats.
fn payload_entries(package: &Package<Content>, format: Format) -> Result<Vec<PayloadEntry>> {
    let inside = package.entries.iter().filter(|entry| entry.formats.has(format));
    let mut faults = Vec::new();
    let mut entries = Vec::new();
    for entry in inside {
        match payload_entry(entry, format) {
            Ok(entry) => entries.push(entry),
            Err(fault) => faults.push(fault),
        }
    }
    Error::gather(faults).map_or(Ok(entries), Err)
}

fn payload_entry(entry: &PackageEntry<Content>, format: Format) -> Result<PayloadEntry> {
    let (kind, mode, size) = match &entry.node {
        Node::Directory { mode } => (PayloadEntryKind::Directory, *mode, 0),
        Node::File { data, mode } => {
            (PayloadEntryKind::File, entry.treatment.mode(*mode, format), data.len())
        }
        Node::Link { target } => (PayloadEntryKind::Link { target: target.clone() }, LINK_MODE, 0),
    };
    let path = entry.path.as_str().to_owned();
    if mode > 0o7777 {
        let message = format!("mode {mode:o} of /{path} has more than permission bits");
        return Err(Error::bug(message));
    }
    if entry.treatment != Treatment::Plain && kind == PayloadEntryKind::Directory {
        return Err(Error::bug(format!("directory /{path} is treated as a file")));
    }
    let marking = match entry.treatment {
        Treatment::Plain | Treatment::Library => Marking::Plain,
        Treatment::Config => Marking::Config,
        Treatment::Doc => Marking::Doc,
        Treatment::License => Marking::License,
    };
    Ok(PayloadEntry { path, kind, mode, size, marking })
}

/// A time that both formats can hold: 32 bits from 1970 on, the least of them (rpm's).
fn time(what: &str, seconds: i64) -> Result<u32> {
    u32::try_from(seconds).map_err(|_| {
        let message = format!("{what} {seconds} is not from 0 to {}", u32::MAX);
        Error::new(Kind::Limit, message).hint("times are seconds since 1970; rpm has 32 bits")
    })
}

/// Refuses a package file name that is not a plain one.
fn check_file_name(name: String) -> Result<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "+-._~^".contains(c);
    if name.starts_with('.') || !name.chars().all(plain) || name.len() > 255 {
        let message = format!("`{}` is no name of a package file", name.escape_debug());
        return Err(Error::new(Kind::Config, message)
            .hint("names and versions consist of letters, digits and + - . ~ ^"));
    }
    Ok(name)
}

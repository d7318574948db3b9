//! The only writer of packages.
//!
//! A package is written in both formats from one read of every file (a cache needs an earlier read for the
//! digests). The content goes in windows through bounded channels to one writer per format, each on its own thread
//! with its own compressor threads; the writers of a small package share one thread. Memory holds only windows,
//! digests and headers, so packages above 4 GiB need no more than small ones. [`schedule_packages`] keeps the cores busy from
//! package to package. Files are staged in a hidden directory of the output folder, flushed and synced; the whole set
//! appears when [`Staging::commit`] renames it into place.
//!
//! Refuses relations that a format cannot express, and invalid file names.

pub mod directories;
mod earlier;
mod emitted;
mod fan_out;
pub mod pack;
mod prepared;
mod reuse;
pub mod sbom;
mod schedule;
mod staging;

use std::sync::Arc;

pub use emitted::{
    EmittedMember, EmittedPackage, UnsyncedPackage, WrittenPackage, file_digests, receipt,
};
pub use rockpack_core::compression::{Compression, Contexts, PayloadCompressions};
pub use schedule::{WorkerSlot, schedule_packages};
pub use staging::Staging;

use rockpack_archive::payload::FileDigests;
use rockpack_core::content::Content;
use rockpack_core::error::{Result, ResultExt};
use rockpack_core::run::Budget;

use emitted::UnsyncedFile;
use fan_out::Sink;
use prepared::{Prepared, payload_entry, prepare_deb, prepare_rpm};
use reuse::{CacheLookup, PayloadReuse};
use rockpack_files::cache::Cache;
use rockpack_package::{Format, Package, PackageEntry};
use rockpack_report::{Compressed, Progress, Stage, Work};
use rockpack_signing::OpenPgpKey;

#[derive(Clone)]
pub struct EmitOptions<'a> {
    /// Threads to spread over the compressors; the bytes do not depend on their number.
    pub jobs: usize,
    pub budget: Budget,
    pub contexts: Contexts,
    pub compression: PayloadCompressions,
    /// Modification time of every payload entry, seconds since 1970. rpm stores times in 32 bits.
    pub content_date: u32,
    /// BUILDTIME in rpm headers and the time in a deb's ar and control members, seconds since
    /// 1970.
    pub source_date_epoch: u32,
    /// Whether to make the entries for a repository's index while digesting the packages, for publication.
    pub indexed: bool,
    /// Whether to compute the SHA-1 of every file as well, for SPDX documents.
    pub sha1: bool,
    /// Signer of the headers of `.rpm`s. A `.deb` is not signed, as apt does not check signatures in it.
    pub signer: Option<&'a Arc<OpenPgpKey>>,
    /// Cache of payloads that an earlier run compressed; new payloads are kept there too.
    pub cache: Option<&'a Cache>,
    /// Receives every window read, payload and finished package; the caller states the expected bytes.
    pub progress: &'a dyn Progress,
}

/// Writes `package` into `staging` in all its formats, from one read of every file.
pub fn emit_package(
    package: &Package<Content>,
    staging: &Staging,
    options: &EmitOptions<'_>,
) -> Result<Vec<EmittedPackage>> {
    write_package(package, staging, options)?.seal(staging, options)
}

/// [`emit_package`] without the wait for the disk.
pub fn write_package(
    package: &Package<Content>,
    staging: &Staging,
    options: &EmitOptions<'_>,
) -> Result<UnsyncedPackage> {
    options.progress.begin(Stage::Emit);
    let unsynced = write(package, staging, options);
    options.progress.end(Stage::Emit);
    unsynced.context(|| format!("writing package {}", package.id))
}

fn write(
    package: &Package<Content>,
    staging: &Staging,
    options: &EmitOptions<'_>,
) -> Result<UnsyncedPackage> {
    // Reports a compressed payload as progress.
    let report_payload = |format: Format, after, reused| {
        let inside = package.entries.iter().filter(|entry| entry.formats.has(format));
        let before = inside.filter_map(|entry| entry.node.data()).map(Content::len).sum();
        let compressed = Compressed { before, after, reused };
        options.progress.compressed(Work::Payloads(format), compressed);
    };
    let mut prepared = Vec::new();
    if let Some(control) = &package.deb {
        prepared.push(prepare_deb(package, control, options)?);
    }
    if let Some(control) = &package.rpm {
        prepared.push(prepare_rpm(package, control, options)?);
    }
    let mut reuse =
        options.cache.map(|cache| PayloadReuse::new(cache, package, options)).transpose()?;
    let mut sinks = Vec::new();
    let mut files = Vec::new();
    for Prepared { format, file_name, installed_size, specification } in prepared {
        let file = staging.create(&file_name)?;
        let known = reuse.as_mut().map(|reuse| reuse.fill(&file, format, &specification));
        let known = known.transpose().file(&file_name)?;
        match &known {
            Some(CacheLookup::Hit { payload, .. }) => report_payload(format, *payload, true),
            Some(CacheLookup::Miss(_)) | None => {
                let writer = specification.writer(file).file(&file_name)?;
                sinks.push(Sink { format, file_name: file_name.clone(), writer });
            }
        }
        files.push((format, file_name, installed_size, known));
    }
    let precomputed = reuse.map(|reuse| reuse.precomputed);
    let read = fan_out::fan_out(&package.entries, precomputed, sinks, options)?;
    for (format, finished) in &read.finished {
        report_payload(*format, finished.payload.end - finished.payload.start, false);
    }
    let files = files.into_iter().map(|(format, file_name, installed_size, known)| {
        let finished = read.finished.iter().find(|(written, _)| *written == format);
        let (keep, sha256) = match known {
            Some(CacheLookup::Miss(key)) => {
                (finished.map(|(_, finished)| (key, finished.clone())), None)
            }
            Some(CacheLookup::Hit { sha256, .. }) => (None, Some(sha256)),
            None => (None, None),
        };
        let members = members(&package.entries, &read.digests, format);
        UnsyncedFile { format, file_name, installed_size, members, keep, sha256 }
    });
    Ok(UnsyncedPackage { package: package.id.clone(), files: files.collect() })
}

fn members(
    entries: &[PackageEntry<Content>],
    digests: &[Option<FileDigests>],
    format: Format,
) -> Vec<EmittedMember> {
    let mut members = Vec::with_capacity(entries.len());
    let entries = entries.iter().zip(digests);
    let inside = entries.filter(|(entry, _)| entry.formats.has(format));
    members.extend(inside.map(|(entry, digests)| {
        let size = entry.node.data().map_or(0, Content::len);
        let payload = payload_entry(entry, size, format);
        EmittedMember {
            path: format!("/{}", entry.path),
            kind: entry.node.kind(),
            mode: payload.mode,
            size,
            sha256: digests.map(|digests| digests.sha256),
            sha1: digests.and_then(|digests| digests.sha1),
            target: payload.target().map(str::to_owned),
        }
    }));
    members
}

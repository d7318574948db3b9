//! The last step of a package: syncs its files to disk and digests them.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};

use rockpack_archive::payload::Finished;
use rockpack_core::content::{Content, WINDOW, unhex};
use rockpack_core::error::{Error, Result, ResultExt};

use super::emitted::{Emitted, EmittedMember};
use super::options::EmitOptions;
use super::reuse::kept_facts;
use super::staging::Staging;
use rockpack_files::cache::{Cache, Key};
use rockpack_package::indexed::Indexed;
use rockpack_package::{Format, MemberKind};
use rockpack_report::Stage;

/// A package whose files are written, but not yet synced or digested: their heads were patched last.
#[derive(Debug)]
pub struct Unsealed {
    /// The package's id.
    pub(super) package: String,
    pub(super) files: Vec<UnsealedFile>,
}

#[derive(Debug)]
pub(super) struct UnsealedFile {
    pub format: Format,
    pub file_name: String,
    pub installed_size: u64,
    pub members: Vec<EmittedMember>,
    /// The payload to be put into a cache, if any.
    pub keep: Option<(Key, Finished)>,
}

impl Unsealed {
    /// Syncs the files, computes sizes and digests, and puts new payloads into the cache.
    pub fn seal(self, staging: &Staging, options: &EmitOptions<'_>) -> Result<Vec<Emitted>> {
        let Self { package, files } = self;
        let emitted: Result<Vec<_>> =
            files.into_iter().map(|file| file.seal(&package, staging, options)).collect();
        emitted.context(|| format!("writing package {package}"))
    }
}

impl UnsealedFile {
    fn seal(self, package: &str, staging: &Staging, options: &EmitOptions<'_>) -> Result<Emitted> {
        let EmitOptions { cache, progress, .. } = *options;
        let Self { format, file_name, installed_size, members, keep } = self;
        if let (Some(cache), Some((key, finished))) = (cache, &keep) {
            keep_payload(cache, key, finished, &members, staging.open(&file_name)?)?;
        }
        progress.begin(Stage::Seal);
        let content = staging.seal(&file_name, &options.budget)?;
        let size = content.len();
        let digested = digested(&content, &members, options);
        progress.end(Stage::Seal);
        let (sha256, indexed) = digested?;
        progress.advance(Stage::Seal, size);
        progress.package(&file_name, size);
        Ok(Emitted {
            package: package.to_owned(),
            format,
            file_name,
            size,
            installed_size,
            sha256,
            members,
            indexed,
        })
    }
}

/// Reads a file once, for its digest and the entry of an index.
fn digested(
    content: &Content,
    members: &[EmittedMember],
    options: &EmitOptions<'_>,
) -> Result<([u8; 32], Option<Indexed>)> {
    if !options.indexed {
        return Ok((content.sha256()?, None));
    }
    let owned = members.iter().filter(|member| member.kind != MemberKind::Directory);
    let indexed = Indexed::of_built(content, owned.map(|member| member.path.as_str()))?;
    let sha256 = unhex(&indexed.sha256).ok_or_else(|| Error::bug("a digest is no SHA-256"))?;
    Ok((sha256, Some(indexed)))
}

/// Puts the payload of the package `file` into the cache.
fn keep_payload(
    cache: &Cache,
    key: &Key,
    finished: &Finished,
    members: &[EmittedMember],
    mut file: File,
) -> Result<()> {
    let Finished { payload, facts } = finished;
    let facts = kept_facts(members.iter().filter_map(|member| member.sha256), facts);
    let start = file.seek(SeekFrom::Start(payload.start));
    start.map_err(|e| Error::io_unplaced("read the package", e))?;
    let len = payload.end - payload.start;
    let mut body = BufReader::with_capacity(WINDOW, file).take(len);
    cache.keep(key, &facts, len, &mut body);
    Ok(())
}

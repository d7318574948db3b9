//! The last step of a package: its files are brought to disk and digested.

use super::{EmitOptions, Emitted, Member, Staging};
use crate::content::{Content, unhex};
use crate::error::{Error, Result, ResultExt};
use crate::indexed::Indexed;
use crate::plan::package::Format;

/// A package whose files are written, but neither on disk for certain nor digested as a whole:
/// their heads were patched last.
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
    pub members: Vec<Member>,
}

impl Unsealed {
    /// Waits for the disk and tells sizes and digests.
    pub fn seal(self, staging: &Staging, options: &EmitOptions<'_>) -> Result<Vec<Emitted>> {
        let Self { package, files } = self;
        let seal = |file: UnsealedFile| {
            let UnsealedFile { format, file_name, installed_size, members } = file;
            let content = staging.seal(&file_name)?;
            let size = content.len();
            let (sha256, indexed) = digested(&content, options)?;
            options.progress.package(&file_name, size);
            let package = package.clone();
            Ok(Emitted {
                package,
                format,
                file_name,
                size,
                installed_size,
                sha256,
                members,
                indexed,
            })
        };
        let emitted: Result<Vec<_>> = files.into_iter().map(seal).collect();
        emitted.context(|| format!("writing package {package}"))
    }
}

/// Read once, for its digest and what is known besides.
fn digested(content: &Content, options: &EmitOptions<'_>) -> Result<([u8; 32], Option<Indexed>)> {
    if !options.indexed {
        return Ok((content.sha256()?, None));
    }
    let indexed = Indexed::read(content)?;
    let sha256 = unhex(&indexed.sha256).ok_or_else(|| Error::bug("a digest is no SHA-256"))?;
    Ok((sha256, Some(indexed)))
}

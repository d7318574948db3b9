//! The code objects in files that are packed unchanged.

use std::collections::BTreeMap;

use rockpack_core::content::{Content, Sha256Digest};
use rockpack_core::error::{Error, Result};
use rockpack_core::tree::Node;

use super::Sources;
use rockpack_package::receipt::{CodeObjectPlace, CodeObjectRecord};
use rockpack_package::{Format, Package, PackageEntry};
use rockpack_plan::FileSource;
use rockpack_split::{LooseCode, loose_code};

/// A code object in a file of a package that is no archive.
#[derive(Debug)]
pub struct PackedCode {
    code: LooseCode,
    shard: Option<String>,
    package: String,
    /// The absolute install path of the file.
    file: String,
}

impl PackedCode {
    /// The receipt's line. If the code object is a whole file, its digest is that of the written file in
    /// `files`, by absolute install path, so that the file is read only once.
    pub fn record(self, files: &BTreeMap<&str, &[u8; 32]>) -> Result<CodeObjectRecord> {
        let Self { code, shard, package, file } = self;
        let LooseCode { entry, target, size, sha256 } = code;
        let sha256 = sha256
            .or_else(|| files.get(file.as_str()).map(|digest| Sha256Digest::from(**digest)))
            .ok_or_else(|| Error::bug(format!("{file} of {package} was written without a digest")))?
            .to_string();
        let place = CodeObjectPlace::File { file, entry };
        Ok(CodeObjectRecord { sha256, size, target, shard, package, place })
    }
}

/// The code objects of `entry`, which has the bytes `content`, if such a file can have any.
pub(super) fn packed_code(
    sources: &Sources<'_>,
    package: &Package<FileSource>,
    entry: &PackageEntry<FileSource>,
    content: &Content,
) -> Result<Vec<PackedCode>> {
    let Node::File { data: source, .. } = &entry.node else {
        return Ok(Vec::new());
    };
    let (arch, shard) = match source {
        FileSource::Database { component, path } => {
            let file = sources.database(component, path)?;
            let arch = file.archs.first().filter(|_| file.archs.len() == 1);
            (arch, Some(file.shard.clone()))
        }
        // Code for several archs is among the host files, and may belong to all shards.
        FileSource::Host { .. } => (None, None),
        _ => return Ok(Vec::new()),
    };
    let mut written = Format::ALL.into_iter().filter(|f| package.name(*f).is_some());
    if !written.any(|format| entry.formats.has(format)) {
        return Ok(Vec::new());
    }
    let packed = loose_code(content, arch)?.into_iter().map(|code| PackedCode {
        code,
        shard: shard.clone(),
        package: package.id.clone(),
        file: format!("/{}", entry.path),
    });
    Ok(packed.collect())
}

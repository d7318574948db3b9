//! The indexes that are signed, and keys beside those given that sign them all.

use std::fs;
use std::path::Path;

use super::context::HEAD_MAX;
use super::keys::{PublicKeys, SIGNATURES_MAX, Trust};
use crate::content::{KEY_FILE_LIMIT, is_file, list, read_file};
use crate::error::{Error, Result};

/// How the name of a keyring for clients ends.
pub(super) const KEYRING: &str = "-archive-keyring.asc";

/// A text that is signed.
pub(super) struct SignedFile {
    text: Vec<u8>,
    /// Without one, the text has it around it.
    signature: Option<Vec<u8>>,
}

impl SignedFile {
    /// Fails unless clients take it as signed by one of the keys.
    pub(super) fn check(&self, trust: &Trust) -> Result<()> {
        match &self.signature {
            Some(signature) => trust.check_detached(signature, &self.text),
            None => trust.clear_text(&String::from_utf8_lossy(&self.text))?.1,
        }
    }
}

/// The indexes of a repository that are signed. Those that are too large are named where they are read.
pub(super) fn signed_files(root: &Path) -> Result<Vec<SignedFile>> {
    let mut found = Vec::new();
    let read = |path: &Path| read_file(path).map_err(|e| Error::io(path, "read", e));
    let is_head = |path: &Path| -> Result<bool> {
        Ok(is_file(path)? && fs::metadata(path).is_ok_and(|file| file.len() <= HEAD_MAX))
    };
    let mut detached = |text: &Path, signature: &Path| -> Result<()> {
        if is_head(text)? && is_head(signature)? {
            found.push(SignedFile { text: read(text)?, signature: Some(read(signature)?) });
        }
        Ok(())
    };
    detached(&root.join("repodata/repomd.xml"), &root.join("repodata/repomd.xml.asc"))?;
    let folders = super::suites(root)?.into_iter().map(|suite| root.join("dists").join(suite));
    let folders: Vec<_> = folders.collect();
    for folder in &folders {
        detached(&folder.join("Release"), &folder.join("Release.gpg"))?;
    }
    for clear in folders.iter().map(|folder| folder.join("InRelease")) {
        if is_head(&clear)? {
            found.push(SignedFile { text: read(&clear)?, signature: None });
        }
    }
    Ok(found)
}

/// The keys of the repository's keyrings, beside those given, that sign every index which is signed, as
/// one of those given does: the other ones of keys that sign together.
pub(super) fn together(root: &Path, trust: &Trust) -> Result<PublicKeys> {
    if trust.keys.is_empty() {
        return Ok(PublicKeys::default());
    }
    let signed = signed_files(root)?;
    let by_given = signed.iter().all(|file| file.check(trust).is_ok());
    if signed.is_empty() || !by_given {
        return Ok(PublicKeys::default());
    }
    let mut found = PublicKeys::default();
    for key in published(root)?.without(&trust.keys).each().take(SIGNATURES_MAX) {
        let alone = Trust { keys: key, at: trust.at };
        if signed.iter().all(|file| file.check(&alone).is_ok()) {
            found = found.and(alone.keys);
        }
    }
    Ok(found)
}

/// The keys of all keyrings at the top of the repository. One that is no keyring has none here; that it
/// is none is told of it by itself.
fn published(root: &Path) -> Result<PublicKeys> {
    let mut all = PublicKeys::default();
    for entry in list(root)? {
        let path = entry?.path();
        let is_keyring =
            path.file_name().and_then(|name| name.to_str()).is_some_and(|n| n.ends_with(KEYRING));
        if is_keyring && is_file(&path)? {
            let bytes = read_file(&path).map_err(|e| Error::io(&path, "read", e))?;
            if bytes.len() as u64 <= KEY_FILE_LIMIT {
                all = all.and(PublicKeys::read(&bytes).unwrap_or_default());
            }
        }
    }
    Ok(all)
}

//! The indexes that `Release` lists.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_archive::apt_index::{IndexFile, Release};
use rockpack_core::content::is_there;
use rockpack_core::error::{Error, Result};

use crate::paths::{folder_of, name_of};
use crate::repository::context::{Context, NOT_ITS_NAME, method, sha256, sha512};

/// Endings of compressed indexes. `Release` lists an index uncompressed, too, even where only
/// compressed forms of it are stored, as those of Debian's archives are.
///
/// Source: the Debian wiki's page on the format of repositories, on `MD5Sum, SHA1, SHA256`.
const COMPRESSED: [&str; 6] = ["bz2", "gz", "lz4", "lzma", "xz", "zst"];

/// Checks all of them. Returned are the texts of those that list packages: all forms of one must
/// have it.
pub(super) fn check(
    context: &mut Context<'_>,
    folder: &str,
    release: &Release,
) -> Result<BTreeMap<String, String>> {
    let indexes = ReleaseIndexes::new(folder, release);
    let mut texts = BTreeMap::new();
    for file in &release.files {
        indexes.check(context, file, &mut texts)?;
    }
    Ok(texts)
}

/// The indexes that the rows of `Release` describe together.
struct ReleaseIndexes<'a> {
    /// The folder of `Release`.
    folder: &'a str,
    /// Whether indexes are there under their digests, too.
    by_hash: bool,
    paths: BTreeSet<&'a str>,
    /// Folders with a list of packages that can be read.
    readable: BTreeSet<&'a str>,
}

impl<'a> ReleaseIndexes<'a> {
    fn new(folder: &'a str, release: &'a Release) -> Self {
        let paths: BTreeSet<&str> = release.files.iter().map(|file| file.path.as_str()).collect();
        let readable = paths
            .iter()
            .filter(|path| {
                let name = name_of(path);
                is_list(name) && method(name).is_some()
            })
            .map(|path| folder_of(path))
            .collect();
        let by_hash = release.field("Acquire-By-Hash") == Some("yes");
        Self { folder, by_hash, paths, readable }
    }

    /// An index by its own name and by its digests.
    fn check(
        &self,
        context: &mut Context<'_>,
        file: &IndexFile,
        texts: &mut BTreeMap<String, String>,
    ) -> Result<()> {
        let path = format!("{}/{}", self.folder, file.path);
        let (above, name) = (folder_of(&path), name_of(&path));
        let possible = [("SHA256", Some(&file.sha256)), ("SHA512", file.sha512.as_ref())];
        let digests = possible.into_iter().filter_map(|(name, digest)| Some((name, digest?)));
        let hashed: Vec<String> =
            digests.map(|(name, digest)| format!("{above}/by-hash/{name}/{digest}")).collect();
        if self.by_hash {
            context.named.extend(hashed.iter().cloned());
        }
        let forms = self.compressed_forms(context, file)?;
        if !forms.is_empty() && !is_there(&context.root.join(&path))? {
            return check_unstored(context, &path, file, &forms);
        }
        let Some(bytes) = context.read(&path)? else {
            return Ok(());
        };
        if !is_as_listed(&bytes, file) {
            context.index_differs(&path, "is not the one that Release lists");
            return Ok(());
        }
        for hashed in hashed.iter().filter(|_| self.by_hash) {
            if context.read(hashed)?.is_some_and(|bytes| !is_as_listed(&bytes, file)) {
                context.index_differs(hashed, NOT_ITS_NAME);
            }
        }
        // Forms that only some clients read, like bz2, are left to their digests.
        let has_other = self.readable.contains(folder_of(&file.path));
        if is_list(name) && (method(name).is_some() || !has_other) {
            keep_text(context, &path, above, &bytes, texts);
        }
        Ok(())
    }

    /// The compressed forms of `file` that are listed and there.
    fn compressed_forms(&self, context: &Context<'_>, file: &IndexFile) -> Result<Vec<String>> {
        let mut forms = Vec::new();
        for ending in COMPRESSED {
            let form = format!("{}.{ending}", file.path);
            if !self.paths.contains(form.as_str()) {
                continue;
            }
            let path = format!("{}/{form}", self.folder);
            if context.files.find(&path)?.is_some() {
                forms.push(path);
            }
        }
        Ok(forms)
    }
}

/// Whether these are the bytes of an index that `Release` lists.
fn is_as_listed(bytes: &[u8], file: &IndexFile) -> bool {
    bytes.len() as u64 == file.size
        && sha256(bytes) == file.sha256
        && file.sha512.as_ref().is_none_or(|digest| sha512(bytes) == *digest)
}

/// Checks an index that exists only in other forms: the content of readable ones must be as listed.
fn check_unstored(
    context: &mut Context<'_>,
    path: &str,
    file: &IndexFile,
    forms: &[String],
) -> Result<()> {
    for form in forms.iter().filter(|form| method(form).is_some()) {
        // What cannot be read is named where the form itself is looked at.
        let Some(bytes) = context.read(form)? else { continue };
        if context.open(form, &bytes).is_ok_and(|text| !is_as_listed(&text, file)) {
            let reason = format!("does not hold the {} that Release lists", name_of(path));
            context.index_differs(form, reason);
        }
    }
    Ok(())
}

/// Whether a file of that name lists packages.
fn is_list(name: &str) -> bool {
    name.split('.').next() == Some("Packages")
}

/// Keeps the text of a list of packages.
fn keep_text(
    context: &mut Context<'_>,
    path: &str,
    above: &str,
    bytes: &[u8],
    texts: &mut BTreeMap<String, String>,
) {
    let text = context
        .open(path, bytes)
        .and_then(|text| String::from_utf8(text).map_err(|_| Error::malformed("is no UTF-8")));
    match text {
        Err(error) => context.unreadable(path, &error),
        Ok(text) => {
            let stem = format!("{above}/Packages");
            if texts.get(&stem).is_some_and(|other| *other != text) {
                let reason = "its content differs from the other compressed forms of this index";
                context.index_differs(path, reason);
            }
            texts.insert(stem, text);
        }
    }
}

//! The indexes that `Release` lists.

use std::collections::BTreeMap;

use super::super::{Check, Context, method, named_file, open, sha256, sha512};
use crate::content::is_there;
use crate::error::{Error, Result};
use crate::formats::apt_index::{IndexFile, Release};

/// Endings of compressed indexes. `Release` lists an index uncompressed, too, even where only
/// compressed forms of it are stored, as those of Debian's archives are.
///
/// Source: the Debian wiki's page on the format of repositories, on `MD5Sum, SHA1, SHA256`.
const COMPRESSED: [&str; 6] = ["gz", "bz2", "xz", "lzma", "lz4", "zst"];

/// An index by its own name and by its digests; the text of those that list packages is kept, and
/// all forms of one must have it.
pub(super) fn check(
    context: &mut Context<'_>,
    folder: &str,
    release: &Release,
    file: &IndexFile,
    indexes: &mut BTreeMap<String, String>,
) -> Result<()> {
    let path = format!("{folder}/{}", file.path);
    let above = path.rsplit_once('/').map_or("", |(above, _)| above);
    let digests = [("SHA256", Some(&file.sha256)), ("SHA512", file.sha512.as_ref())];
    let digests = digests.into_iter().filter_map(|(name, digest)| Some((name, digest?)));
    let hashed: Vec<String> =
        digests.map(|(name, digest)| format!("{above}/by-hash/{name}/{digest}")).collect();
    let by_hash = release.field("Acquire-By-Hash") == Some("yes");
    if by_hash {
        context.named.extend(hashed.iter().cloned());
    }
    let forms = compressed_forms(context, folder, release, file)?;
    if !forms.is_empty() && !is_there(&context.root.join(&path))? {
        return check_unstored(context, &path, file, &forms);
    }
    let Some(bytes) = context.read(&path)? else {
        return Ok(());
    };
    let same = |bytes: &[u8]| is_as_listed(bytes, file);
    if !same(&bytes) {
        context.add(Check::IndexMismatch, &path, "is not the one that Release lists");
        return Ok(());
    }
    for hashed in hashed.iter().filter(|_| by_hash) {
        if context.read(hashed)?.is_some_and(|bytes| !same(&bytes)) {
            context.add(Check::IndexMismatch, hashed, "does not have that digest");
        }
    }
    let name = path.rsplit('/').next().unwrap_or_default();
    let other_form = |other: &&IndexFile| {
        let folder = file.path.rsplit_once('/').map(|(folder, _)| folder);
        let (other_folder, other_name) = other.path.rsplit_once('/').unwrap_or(("", &other.path));
        Some(other_folder) == folder && is_list(other_name) && method(other_name).is_some()
    };
    // Forms that only some clients read, like bz2, are left to their digests.
    if is_list(name) && (method(name).is_some() || !release.files.iter().any(|f| other_form(&f))) {
        keep_text(context, (&path, above), &bytes, indexes);
    }
    Ok(())
}

/// Whether these are the bytes of an index that `Release` lists.
fn is_as_listed(bytes: &[u8], file: &IndexFile) -> bool {
    bytes.len() as u64 == file.size
        && sha256(bytes) == file.sha256
        && file.sha512.as_ref().is_none_or(|digest| sha512(bytes) == *digest)
}

/// The compressed forms of `file` that are listed and there.
fn compressed_forms(
    context: &Context<'_>,
    folder: &str,
    release: &Release,
    file: &IndexFile,
) -> Result<Vec<String>> {
    let is_form = |other: &&IndexFile| {
        let ending = other.path.strip_prefix(&file.path).and_then(|rest| rest.strip_prefix('.'));
        ending.is_some_and(|ending| COMPRESSED.contains(&ending))
    };
    let mut forms = Vec::new();
    for other in release.files.iter().filter(is_form) {
        let path = format!("{folder}/{}", other.path);
        if named_file(context.root, &path)?.is_some() {
            forms.push(path);
        }
    }
    Ok(forms)
}

/// An index that is there in other forms alone: what is in those that can be read is as listed.
fn check_unstored(
    context: &mut Context<'_>,
    path: &str,
    file: &IndexFile,
    forms: &[String],
) -> Result<()> {
    for form in forms.iter().filter(|form| method(form).is_some()) {
        // What cannot be read is named where the form itself is looked at.
        let Some(bytes) = context.read(form)? else { continue };
        if open(form, &bytes).is_ok_and(|text| !is_as_listed(&text, file)) {
            let name = path.rsplit('/').next().unwrap_or_default();
            let message = format!("does not hold the {name} that Release lists");
            context.add(Check::IndexMismatch, form, message);
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
    (path, above): (&str, &str),
    bytes: &[u8],
    indexes: &mut BTreeMap<String, String>,
) {
    let text = open(path, bytes)
        .and_then(|text| String::from_utf8(text).map_err(|_| Error::malformed("is no UTF-8")));
    match text {
        Err(error) => context.add(Check::BadIndex, path, error.to_string()),
        Ok(text) => {
            let stem = format!("{above}/Packages");
            if indexes.get(&stem).is_some_and(|other| *other != text) {
                context.add(Check::IndexMismatch, path, "differs from the other forms of it");
            }
            indexes.insert(stem, text);
        }
    }
}

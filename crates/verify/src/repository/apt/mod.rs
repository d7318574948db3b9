//! Checks a suite of an apt repository.

mod packages;

use std::collections::{BTreeMap, BTreeSet};

use rockpack_archive::apt_index::{IndexFile, Release, parse_date};
use rockpack_core::content::{exists, is_file};
use rockpack_core::error::{Error, Result};
use rockpack_report::words::either;

use crate::problem::Problem;
use crate::repository::context::{
    Context, DIGEST_DIFFERS, HEAD_MAX, INDEX_MAX, method, sha256, sha512,
};
use crate::{folder_of, name_of};

pub(super) fn check(context: &mut Context<'_>, suite: &str) -> Result<()> {
    let folder = format!("dists/{suite}");
    let Some((subject, text)) = release_text(context, &folder)? else { return Ok(()) };
    let Some(release) = context.parsed(&subject, Release::parse(&text)) else { return Ok(()) };
    if let Some(until) = release.field("Valid-Until")
        && let Some(time) = context.parsed(&subject, parse_date(until))
        && time < context.trust.at.time
    {
        let (file, until) = (subject.clone(), until.to_owned());
        context.problems.add(Problem::ReleaseExpired { file, until });
    }
    let date = release.field("Date").map(parse_date);
    if let Some(date) = date.and_then(|date| context.parsed(&subject, date)) {
        context.check_date(&subject, date);
    }
    check_name(context, &subject, suite, &release);
    let mut indexes = ReleaseIndexes::new(context, &folder, &release);
    release.files.iter().try_for_each(|file| indexes.check(file))?;
    let texts = indexes.texts;
    packages::check(context, suite, texts);
    Ok(())
}

/// The path and text of `Release`, after a comparison with `InRelease` and `Release.gpg`, or of `InRelease` alone.
fn release_text(context: &mut Context<'_>, folder: &str) -> Result<Option<(String, String)>> {
    let [path, clear, detached] =
        ["Release", "InRelease", "Release.gpg"].map(|name| format!("{folder}/{name}"));
    let plain = is_file(&context.files.root.join(&path))?;
    let has_clear = is_file(&context.files.root.join(&clear))?;
    let has_detached = is_file(&context.files.root.join(&detached))?;
    let has_signature = has_clear || (plain && has_detached);
    // apt requests InRelease first, and needs no other file then.
    if !context.trust.keys.is_empty() && !has_signature {
        context.bad_signature(&clear, "is missing");
    }
    if !plain && has_clear {
        let Some(bytes) = context.read(&clear, HEAD_MAX)? else { return Ok(None) };
        let text = clear_text(context, bytes);
        let text = context.signed(&clear, text);
        return Ok(text.map(|text| (clear, text)));
    }
    let Some(bytes) = context.read(&path, HEAD_MAX)? else { return Ok(None) };
    let Some(text) = context.parsed(&path, utf8(bytes)) else { return Ok(None) };
    let signed = [(&clear, has_clear), (&detached, has_detached)];
    for (path, _) in signed.into_iter().filter(|(_, exists)| *exists) {
        let Some(bytes) = context.read(path, HEAD_MAX)? else { continue };
        let checked = if path == &clear {
            clear_text(context, bytes).and_then(|own| match own.trim_end() == text.trim_end() {
                true => Ok(()),
                false => Err(Error::malformed("its text differs from Release")),
            })
        } else {
            context.trust.check_detached(&bytes, text.as_bytes())
        };
        context.signed(path, checked);
    }
    Ok(Some((path, text)))
}

/// The text of a clear-signed file. If there are keys, one of them must have signed it.
fn clear_text(context: &Context<'_>, bytes: Vec<u8>) -> Result<String> {
    let (text, signed) = context.trust.clear_text(&utf8(bytes)?)?;
    signed.map(|()| text)
}

fn utf8(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|_| Error::malformed("is not UTF-8"))
}

/// Checks that a suite is in the folder where clients request it: its name or codename.
fn check_name(context: &mut Context<'_>, subject: &str, folder: &str, release: &Release) {
    let fields = ["Suite", "Codename"].into_iter().filter_map(|name| release.field(name));
    let names: Vec<String> = fields.map(str::to_owned).collect();
    if !names.is_empty() && !names.iter().any(|name| name == folder) {
        let names = either(&names, 2);
        let reason =
            format!("states that its suite is {names}, but is in the folder of the suite {folder}");
        context.add_inconsistency(subject, reason);
    }
}

/// Extensions of compressed indexes. `Release` also lists the uncompressed index, even if only compressed forms of it
/// are stored, as in Debian's archives.
///
/// Source: the Debian wiki's page on the format of repositories, on `MD5Sum, SHA1, SHA256`.
const COMPRESSED: [&str; 6] = ["bz2", "gz", "lz4", "lzma", "xz", "zst"];

/// The indexes that `Release` lists.
struct ReleaseIndexes<'a, 'c> {
    context: &'a mut Context<'c>,
    folder: &'a str,
    /// Whether indexes are also stored under their digests.
    by_hash: bool,
    paths: BTreeSet<&'a str>,
    /// Folders with a readable package list.
    readable: BTreeSet<&'a str>,
    /// Texts of package lists: all forms of one must have the same text.
    texts: BTreeMap<String, String>,
}

impl<'a, 'c> ReleaseIndexes<'a, 'c> {
    fn new(context: &'a mut Context<'c>, folder: &'a str, release: &'a Release) -> Self {
        let paths: BTreeSet<&str> = release.files.iter().map(|file| file.path.as_str()).collect();
        let lists = paths.iter().filter(|path| is_list(name_of(path)) && method(path).is_some());
        let readable = lists.map(|path| folder_of(path)).collect();
        let by_hash = release.field("Acquire-By-Hash") == Some("yes");
        Self { context, folder, by_hash, paths, readable, texts: BTreeMap::new() }
    }

    /// Checks an index by its own name and by its digests.
    fn check(&mut self, file: &IndexFile) -> Result<()> {
        let path = format!("{}/{}", self.folder, file.path);
        let (above, name) = (folder_of(&path), name_of(&path));
        let sha512 = file.sha512.iter().map(|digest| ("SHA512", digest));
        let digests = [("SHA256", &file.sha256)].into_iter().chain(sha512);
        let hashed: Vec<String> =
            digests.map(|(name, digest)| format!("{above}/by-hash/{name}/{digest}")).collect();
        if self.by_hash {
            self.context.named.extend(hashed.iter().cloned());
        }
        let forms = self.compressed_forms(file)?;
        if !forms.is_empty() && !exists(&self.context.files.root.join(&path))? {
            // The index exists only in other forms, whose content must be the listed one.
            for form in forms.iter().filter(|form| method(form).is_some()) {
                // Unreadable forms are reported by their own row.
                let Some(bytes) = self.context.read(form, INDEX_MAX)? else { continue };
                if self.context.open(form, &bytes).is_ok_and(|text| !is_as_listed(&text, file)) {
                    let reason = format!("does not contain the {name} that Release lists");
                    self.context.index_differs(form, reason);
                }
            }
            return Ok(());
        }
        let Some(bytes) = self.context.read(&path, INDEX_MAX)? else { return Ok(()) };
        if !is_as_listed(&bytes, file) {
            self.context.index_differs(&path, "differs from its row in Release");
            return Ok(());
        }
        let stored: &[String] = if self.by_hash { &hashed } else { &[] };
        for hashed in stored {
            let bytes = self.context.read(hashed, INDEX_MAX)?;
            if bytes.is_some_and(|bytes| !is_as_listed(&bytes, file)) {
                self.context.index_differs(hashed, DIGEST_DIFFERS);
            }
        }
        // Of forms that only some clients read, like bz2, only the digests are checked.
        let has_other = self.readable.contains(folder_of(&file.path));
        if is_list(name) && (method(name).is_some() || !has_other) {
            let text = self.context.open(&path, &bytes).and_then(utf8);
            let Some(text) = self.context.parsed(&path, text) else { return Ok(()) };
            let stem = format!("{above}/Packages");
            if self.texts.get(&stem).is_some_and(|other| *other != text) {
                let reason = "its content differs from the other compressed forms of this index";
                self.context.index_differs(&path, reason);
            }
            self.texts.insert(stem, text);
        }
        Ok(())
    }

    fn compressed_forms(&self, file: &IndexFile) -> Result<Vec<String>> {
        let mut forms = Vec::new();
        for ending in COMPRESSED {
            let form = format!("{}.{ending}", file.path);
            let path = format!("{}/{form}", self.folder);
            if self.paths.contains(form.as_str()) && self.context.files.find(&path)?.is_some() {
                forms.push(path);
            }
        }
        Ok(forms)
    }
}

/// Whether the bytes have the size and digests in `Release`.
fn is_as_listed(bytes: &[u8], file: &IndexFile) -> bool {
    bytes.len() as u64 == file.size
        && sha256(bytes) == file.sha256
        && file.sha512.as_ref().is_none_or(|digest| sha512(bytes) == *digest)
}

fn is_list(name: &str) -> bool {
    name.split('.').next() == Some("Packages")
}

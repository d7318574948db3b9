//! The indexes that are signed, keyrings, and keys beside those given that what these sign names.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use rockpack_archive::apt_index::{KEYRING_KEYS, Release};
use rockpack_core::content::{KEY_FILE_LIMIT, is_file, list};
use rockpack_core::error::Result;

use super::Element;
use super::context::{Context, HEAD_MAX, NamedFiles};
use rockpack_report::words::few;
use rockpack_signing::{PublicKeys, Trust};

const REPOMD: &str = "repodata/repomd.xml";

/// How the names of keyrings for clients end.
const KEYRINGS: [&str; 2] = ["archive-keyring.asc", "archive-keyring.gpg"];

/// The beginning of keys in a text.
pub(super) const KEY_BLOCK: &str = "-----BEGIN PGP PUBLIC KEY BLOCK-----";

/// The start of a tag of `repomd.xml` that names the fingerprint of a key for clients.
const KEYRING_KEY: &str = "keyring-key:";

/// A text that is signed.
struct SignedFile {
    text: Vec<u8>,
    /// Without one, the text has it around it.
    signature: Option<Vec<u8>>,
    /// Whether it is `repomd.xml`, and no `Release`.
    is_repomd: bool,
}

impl SignedFile {
    /// The text, if clients take it as signed by one of the keys.
    fn text(&self, trust: &Trust) -> Result<Vec<u8>> {
        if let Some(signature) = &self.signature {
            return trust.check_detached(signature, &self.text).map(|()| self.text.clone());
        }
        let (text, signed) = trust.clear_text(&String::from_utf8_lossy(&self.text))?;
        signed.map(|()| text.into_bytes())
    }

    /// The fingerprints of the repository's keys that it names, if one of the keys signed it.
    fn names(&self, trust: &Trust) -> Option<Vec<String>> {
        let text = self.text(trust).ok()?;
        if self.is_repomd {
            let repomd = Element::parse(&text).ok()?;
            let tags = repomd.child("tags")?.all("repo");
            return Some(
                tags.filter_map(|it| Some(it.text.strip_prefix(KEYRING_KEY)?.to_lowercase()))
                    .collect(),
            );
        }
        let release = Release::parse(std::str::from_utf8(&text).ok()?).ok()?;
        Some(release.field(KEYRING_KEYS)?.split_whitespace().map(str::to_lowercase).collect())
    }
}

/// The indexes of a repository that are signed. Those that are too large are named where they are read.
fn signed_files(files: NamedFiles<'_>) -> Result<Vec<SignedFile>> {
    let mut found = Vec::new();
    let mut add = |text: &str, signature: Option<&str>| -> Result<()> {
        let [text, other] = [text, signature.unwrap_or(text)].map(|path| files.root.join(path));
        if is_head(&text)? && is_head(&other)? {
            let signature = signature.map(|_| read_signed(files, &other)).transpose()?;
            let is_repomd = text.ends_with(REPOMD);
            found.push(SignedFile { text: read_signed(files, &text)?, signature, is_repomd });
        }
        Ok(())
    };
    add(REPOMD, Some(&format!("{REPOMD}.asc")))?;
    for suite in super::suites(files.root)? {
        let file = |name: &str| format!("dists/{suite}/{name}");
        add(&file("InRelease"), None)?;
        add(&file("Release"), Some(&file("Release.gpg")))?;
    }
    Ok(found)
}

fn is_head(path: &Path) -> Result<bool> {
    Ok(is_file(path)? && fs::metadata(path).is_ok_and(|file| file.len() <= HEAD_MAX))
}

fn read_signed(files: NamedFiles<'_>, path: &Path) -> Result<Vec<u8>> {
    files.read(path, "a signed index")
}

/// The keys of the repository's keyrings, beside those given, that an index names which one of those
/// given signed: clients that trust it trust these.
pub(super) fn vouched(files: NamedFiles<'_>, trust: &Trust) -> Result<PublicKeys> {
    if trust.keys.is_empty() {
        return Ok(PublicKeys::default());
    }
    let signed = signed_files(files)?;
    let names: BTreeSet<String> =
        signed.iter().filter_map(|file| file.names(trust)).flatten().collect();
    if names.is_empty() {
        return Ok(PublicKeys::default());
    }
    Ok(published(files)?.without(&trust.keys).of(&names))
}

/// The keys of all keyrings of the repository. An invalid keyring counts as empty: another check reports it.
fn published(files: NamedFiles<'_>) -> Result<PublicKeys> {
    let mut all = PublicKeys::default();
    for entry in list(files.root)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        if name.is_some_and(is_keyring) && is_file(&path)? {
            let bytes = files.read(&path, "a keyring")?;
            if bytes.len() as u64 <= KEY_FILE_LIMIT {
                all = all.and(PublicKeys::read(&bytes).unwrap_or_default());
            }
        }
    }
    Ok(all)
}

/// Whether a file of that name is a keyring for clients.
pub(super) fn is_keyring(name: &str) -> bool {
    KEYRINGS.iter().any(|end| name.ends_with(*end))
}

/// The fault of a keyring: apt or rpm refuses its form, it has keys that are neither given nor named by an index that
/// a given key signed, or no key by which clients take an index. Bad signatures are reported at the indexes.
pub(super) fn keyring_fault(
    context: &Context<'_>,
    name: &str,
    bytes: &[u8],
) -> Result<Option<String>> {
    let unreadable = |reason: &str| Ok(Some(format!("is not read by all clients: {reason}")));
    let is_armoured = bytes.starts_with(KEY_BLOCK.as_bytes()) && !bytes.contains(&b'\r');
    if is_keyring(name) && name.ends_with(".asc") != is_armoured {
        return unreadable("apt takes armour alone from .asc, and none from .gpg");
    }
    let keys = match PublicKeys::read(bytes) {
        Ok(keys) => keys,
        Err(error) => return unreadable(&error.to_string()),
    };
    let signed = signed_files(context.files)?;
    let is_taken = |trust: &Trust| signed.iter().any(|file| file.text(trust).is_ok());
    let fingerprints = keys.clone().without(&context.takes.keys).fingerprints();
    if !context.trust.keys.is_empty() && !fingerprints.is_empty() && is_taken(context.trust) {
        let noun = if fingerprints.len() == 1 { "key" } else { "keys" };
        return Ok(Some(format!(
            "has the {noun} {} beside those given, and clients take what is signed by them: give them \
             by --key, too, if they belong there",
            few(&fingerprints, 3)
        )));
    }
    let is_right = signed.is_empty() || is_taken(&Trust { keys, ..*context.trust });
    let reason =
        "has no key by which an index of the repository is signed, or one that is not valid";
    Ok((!is_right).then(|| reason.to_owned()))
}

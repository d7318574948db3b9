//! Checks files for clients at the top of a repository (`.sources`, `.list`, `.repo`), keyrings and pages for pip and
//! uv, and finds additional keys that signed indexes name.
//!
//! No signature covers these files. The states of the repository have their digests, which detects accidents. Apart
//! from that, only faults that clients accept silently are checked: options that disable checks, and foreign keys. apt,
//! dnf and zypper report other faults themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use rockpack_archive::apt_index::{KEYRING_KEYS, Release};
use rockpack_core::content::{KEY_FILE_LIMIT, is_file, list};
use rockpack_core::error::Result;
use rockpack_report::words::few;
use rockpack_signing::{PublicKeys, Trust};

use crate::problem::Problem;
use crate::repository::context::{Context, HEAD_MAX, NamedFiles};
use crate::repository::states::State;
use crate::repository::{Element, REPOMD, REPOMD_SIGNATURE, suites};

/// The key that zypper imports without configuration.
const ZYPPER_KEY: &str = "repodata/repomd.xml.key";

/// The extensions of client files that define repositories.
const ENDINGS: [&str; 3] = [".repo", ".sources", ".list"];

/// Options by which clients accept content without a valid signature or from an expired index: if they are on, and if
/// they are off.
const SWITCHES: [&str; 2] = [
    "trusted allow-insecure allow-weak allow-downgrade-to-insecure",
    "check-valid-until check-date sslverify pkg_gpgcheck gpgcheck repo_gpgcheck",
];

/// Values that all clients parse as no, and as yes.
const WORDS: [[&str; 4]; 2] = [["0", "no", "false", "off"], ["1", "yes", "true", "on"]];

pub(super) fn check(context: &mut Context<'_>) -> Result<()> {
    let mut names = vec![ZYPPER_KEY.to_owned()];
    for entry in list(context.files.root)? {
        names.extend(entry?.file_name().to_str().map(str::to_owned));
    }
    names.sort();
    let is_signed = context.files.find(REPOMD_SIGNATURE)?.is_some();
    let mut are_packages_checked = false;
    for name in names {
        let Some(path) = context.files.find(&name)? else { continue };
        if is_keyring(&name) || name == ZYPPER_KEY {
            let keys = context.files.read(&path, "a keyring")?;
            if let Some(fault) = keyring_fault(context, &name, &keys)? {
                fail(context, &name, fault);
            }
            context.named.insert(name);
        } else if ENDINGS.iter().any(|ending| name.ends_with(*ending)) {
            let text = context.files.read(&path, "a file for clients")?;
            for (option, value) in options(&String::from_utf8_lossy(&text)) {
                are_packages_checked |= option == "gpgcheck" && is_set(&value, true);
                let fault = option_fault(context, (&option, value.trim()), is_signed)?;
                fault.into_iter().for_each(|fault| fail(context, &name, fault));
            }
        }
    }
    for file in std::mem::take(&mut context.unsigned).iter().filter(|_| are_packages_checked) {
        let reason = "has no signature of its header, but the .repo file sets gpgcheck=1";
        context.bad_signature(file, reason);
    }
    check_unchanged(context)
}

fn fail(context: &mut Context<'_>, file: &str, reason: String) {
    context.problems.add(Problem::ClientFile { file: file.to_owned(), reason });
}

/// The options in a file for clients: lower-case names, and values with their continuation lines.
fn options(text: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with(['#', ';'])) {
        if line.starts_with([' ', '\t']) {
            if let Some((_, value)) = found.last_mut() {
                value.push('\n');
                value.push_str(if line.trim() == "." { "" } else { line.trim() });
            }
            continue;
        }
        // A one-line apt source has its options in brackets.
        let inside = line.strip_prefix("deb").and_then(|source| source.split_once('['));
        let options = match inside.and_then(|(_, rest)| rest.split_once(']')) {
            Some((options, _)) => options.split_whitespace().collect(),
            None => vec![line],
        };
        let pairs = options.into_iter().filter_map(|option| option.split_once([':', '=']));
        found.extend(
            pairs.map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().to_owned())),
        );
    }
    found
}

/// The fault of an option by which clients accept content that they should refuse. `is_signed` tells whether the index
/// of rpm packages is signed; clients can check packages only if it and all packages are signed.
fn option_fault(
    context: &Context<'_>,
    (name, value): (&str, &str),
    is_signed: bool,
) -> Result<Option<String>> {
    if name == "signed-by" && value.starts_with(KEY_BLOCK) {
        return keyring_fault(context, "", value.as_bytes());
    }
    let is_open = match name {
        "repo_gpgcheck" => !is_signed,
        "gpgcheck" => !is_signed || !context.unsigned.is_empty(),
        _ => false,
    };
    let wanted = SWITCHES.iter().position(|names| names.split(' ').any(|own| own == name));
    let is_insecure = !is_open && wanted.is_some_and(|is_on| !is_set(value, is_on == 1));
    let words: Vec<&str> = value.split_whitespace().take(20).collect();
    let line = format!("{name}: {}", words.join(" "));
    let reason = format!("sets `{line}`, so clients accept unsigned or outdated content");
    Ok(is_insecure.then_some(reason))
}

/// Whether clients parse the value as yes, or, without `is_on`, as no.
fn is_set(value: &str, is_on: bool) -> bool {
    let [no, yes] = WORDS;
    (if is_on { yes } else { no }).contains(&value.trim().to_ascii_lowercase().as_str())
}

/// Compares unsigned files with their digests in the states, and checks that signature files exist. Files with another
/// fault, and unsigned files after an interrupted publication, are skipped.
fn check_unchanged(context: &mut Context<'_>) -> Result<()> {
    let states = &context.states;
    let mut changed = Vec::new();
    for path in states.iter().flat_map(State::signatures) {
        if context.files.find(&path)?.is_none() && !context.problems.names(&path) {
            changed.push(path);
        }
    }
    let kept = states.iter().filter_map(|state| state.value.get("unsigned_files")?.as_object());
    let mut written: BTreeMap<&String, BTreeSet<&str>> = BTreeMap::new();
    for (path, digest) in kept.flatten().filter(|_| !states.iter().any(|state| state.is_next)) {
        written.entry(path).or_default().extend(digest.as_str());
    }
    for (path, digests) in written {
        let is_right = match context.files.open(path)? {
            Some(file) => digests.contains(&*file.digest()?.to_string()),
            // Pages of wheels that are missing are reported where they are read.
            None => path.contains('/'),
        };
        if !is_right && !context.problems.names(path) {
            changed.push(path.clone());
        }
    }
    for path in changed {
        fail(context, &path, "was changed or removed since the publication".to_owned());
    }
    Ok(())
}

/// The suffixes of keyring names.
const KEYRINGS: [&str; 2] = ["archive-keyring.asc", "archive-keyring.gpg"];

/// The first line of ASCII-armoured keys.
const KEY_BLOCK: &str = "-----BEGIN PGP PUBLIC KEY BLOCK-----";

/// The prefix of a tag of `repomd.xml` with the fingerprint of a key for clients.
const KEYRING_KEY: &str = "keyring-key:";

struct SignedFile {
    text: Vec<u8>,
    /// `None` if the text is clear-signed.
    signature: Option<Vec<u8>>,
    /// Whether it is `repomd.xml`, not `Release`.
    is_repomd: bool,
}

impl SignedFile {
    /// The text, if one of the keys signed it.
    fn text(&self, trust: &Trust) -> Result<Vec<u8>> {
        if let Some(signature) = &self.signature {
            return trust.check_detached(signature, &self.text).map(|()| self.text.clone());
        }
        let (text, signed) = trust.clear_text(&String::from_utf8_lossy(&self.text))?;
        signed.map(|()| text.into_bytes())
    }

    /// The fingerprints of keys that it names, if one of the trusted keys signed it.
    fn names(&self, trust: &Trust) -> Option<Vec<String>> {
        let text = self.text(trust).ok()?;
        if self.is_repomd {
            let repomd = Element::parse(&text).ok()?;
            let tags = repomd.child("tags")?.all("repo");
            let keys = tags.filter_map(|it| it.text.strip_prefix(KEYRING_KEY));
            return Some(keys.map(str::to_lowercase).collect());
        }
        let release = Release::parse(std::str::from_utf8(&text).ok()?).ok()?;
        Some(release.field(KEYRING_KEYS)?.split_whitespace().map(str::to_lowercase).collect())
    }
}

/// The signed indexes of a repository. Those that are too large are reported where they are read.
fn signed_files(files: NamedFiles<'_>) -> Result<Vec<SignedFile>> {
    let mut found = Vec::new();
    let mut add = |text: &str, signature: Option<&str>| -> Result<()> {
        let [text, other] = [text, signature.unwrap_or(text)].map(|path| files.root.join(path));
        if is_head(&text)? && is_head(&other)? {
            let read = |path: &Path| files.read(path, "a signed index");
            let signature = signature.map(|_| read(&other)).transpose()?;
            let is_repomd = text.ends_with(REPOMD);
            found.push(SignedFile { text: read(&text)?, signature, is_repomd });
        }
        Ok(())
    };
    add(REPOMD, Some(REPOMD_SIGNATURE))?;
    for suite in suites(files.root)? {
        let file = |name: &str| format!("dists/{suite}/{name}");
        add(&file("InRelease"), None)?;
        add(&file("Release"), Some(&file("Release.gpg")))?;
    }
    Ok(found)
}

fn is_head(path: &Path) -> Result<bool> {
    Ok(is_file(path)? && fs::metadata(path).is_ok_and(|file| file.len() <= HEAD_MAX))
}

/// The additional keys of the repository's keyrings that an index signed by a given key names: clients that trust the
/// given key trust these as well.
pub(super) fn vouched_keys(files: NamedFiles<'_>, trust: &Trust) -> Result<PublicKeys> {
    if trust.keys.is_empty() {
        return Ok(PublicKeys::default());
    }
    let signed = signed_files(files)?;
    let names: BTreeSet<String> =
        signed.iter().filter_map(|file| file.names(trust)).flatten().collect();
    if names.is_empty() {
        return Ok(PublicKeys::default());
    }
    // An invalid keyring counts as empty: another check reports it.
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
    Ok(all.without(&trust.keys).with_fingerprints(&names))
}

fn is_keyring(name: &str) -> bool {
    KEYRINGS.iter().any(|end| name.ends_with(*end))
}

/// The fault of a keyring: apt or rpm refuses its form; it has keys that are neither given nor named by an index that a
/// given key signed; or none of its keys signed an index. Bad signatures are reported for the indexes.
fn keyring_fault(context: &Context<'_>, name: &str, bytes: &[u8]) -> Result<Option<String>> {
    let unreadable = |reason: &str| Ok(Some(format!("is not read by all clients: {reason}")));
    let is_armoured = bytes.starts_with(KEY_BLOCK.as_bytes()) && !bytes.contains(&b'\r');
    if is_keyring(name) && name.ends_with(".asc") != is_armoured {
        return unreadable("apt requires ASCII armour in .asc files and binary keys in .gpg files");
    }
    let keys = match PublicKeys::read(bytes) {
        Ok(keys) => keys,
        Err(error) => return unreadable(&error.to_string()),
    };
    let signed = signed_files(context.files)?;
    let is_taken = |trust: &Trust| signed.iter().any(|file| file.text(trust).is_ok());
    let fingerprints = keys.clone().without(&context.package_trust.keys).fingerprints();
    if !context.trust.keys.is_empty() && !fingerprints.is_empty() && is_taken(context.trust) {
        let noun = if fingerprints.len() == 1 { "key" } else { "keys" };
        return Ok(Some(format!(
            "has the {noun} {} in addition to those given, and clients accept content signed by them: \
             pass them with --key as well if they belong there",
            few(&fingerprints, 3)
        )));
    }
    let is_right = signed.is_empty() || is_taken(&Trust { keys, ..*context.trust });
    Ok((!is_right).then(|| "has no valid key that signed an index of the repository".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_in_all_forms() {
        let text = "# x\nTypes: deb\nTrusted:\n yes\n\n[own]\n;c\nsslverify = 0\n\
                    deb [arch=amd64 trusted=yes] https://example.org stable main\n";
        let found = options(text);
        let found: Vec<(&str, &str)> = found.iter().map(|(name, it)| (&**name, &**it)).collect();
        let expected = [
            ("types", "deb"),
            ("trusted", "\nyes"),
            ("sslverify", "0"),
            ("arch", "amd64"),
            ("trusted", "yes"),
        ];
        assert_eq!(found, expected);
    }
}

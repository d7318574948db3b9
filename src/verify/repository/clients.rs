//! Files for clients at the top of a repository: `.sources` of apt, `.repo` of dnf and zypper, and the
//! keyring. They are not signed, so they have to say what the indexes and the signatures say.

use std::collections::BTreeSet;
use std::path::Path;

use super::context::Context;
use super::keys::{PublicKeys, Trust, is_refused};
use super::signers::{KEYRING, SignedFile, signed_files};
use crate::content::{is_file, is_folder, list, read_file};
use crate::error::{Error, Result};
use crate::verify::problem::{ClientFault, Problem};

/// Lines of a `.sources` or `.repo` file that have clients take what nobody signed, or what is old.
const INSECURE: [(&str, &[&str]); 8] = [
    ("trusted", &["yes", "true", "1"]),
    ("allow-insecure", &["yes", "true", "1"]),
    ("allow-weak", &["yes", "true", "1"]),
    ("allow-downgrade-to-insecure", &["yes", "true", "1"]),
    ("check-valid-until", &["no", "false", "0"]),
    ("check-date", &["no", "false", "0"]),
    ("sslverify", &["no", "false", "0"]),
    ("verify-peer", &["no", "false", "0"]),
];

/// The beginning of keys in a text.
const KEY_BLOCK: &str = "-----BEGIN PGP PUBLIC KEY BLOCK-----";

/// The folder in which the writer of a repository remembers its settings.
const STATES: &str = ".rockpack";

/// A line of a file: its name in small letters, and its value.
type Line = (String, String);

/// What a file for clients is written for.
#[derive(Clone, Copy)]
enum Form {
    /// dnf and zypper.
    Repo,
    /// apt.
    Sources {
        /// Whether the keys stand in the file itself.
        has_keys: bool,
    },
}

/// Checks all files for clients.
pub(super) fn check(context: &mut Context<'_>) -> Result<()> {
    let places = places(context.root)?;
    let mut names = Vec::new();
    for entry in list(context.root)? {
        names.extend(entry?.file_name().to_str().map(str::to_owned));
    }
    names.sort();
    for name in names {
        let is_keyring = name.ends_with(KEYRING);
        if !(is_keyring || name.ends_with(".sources") || name.ends_with(".repo"))
            || !is_file(&context.root.join(&name))?
        {
            continue;
        }
        let file = context.root.join(&name);
        let bytes = read_file(&file).map_err(|e| Error::io(&file, "read", e))?;
        let faults = if is_keyring {
            keyring(context, &bytes)?
        } else {
            let text = String::from_utf8_lossy(&bytes);
            let lines = lines(&text);
            let mut faults = insecure(&lines);
            let keys = keys_within(&text);
            if let Some(keys) = &keys {
                faults.extend(keyring(context, keys.as_bytes())?);
            }
            faults.extend(elsewhere(&lines, &places));
            let form = if name.ends_with(".repo") {
                Form::Repo
            } else {
                Form::Sources { has_keys: keys.is_some() }
            };
            faults.extend(unsigned(context, &lines, form)?);
            faults
        };
        for fault in faults {
            context.problems.add(Problem::ClientFile { file: name.clone(), fault });
        }
    }
    Ok(())
}

/// The lines of a file, `Name: value` or `name=value`.
fn lines(text: &str) -> Vec<Line> {
    let line = |line: &str| {
        let at = line.find([':', '='])?;
        let (name, value) = line.split_at_checked(at)?;
        Some((name.trim().to_ascii_lowercase(), value.get(1..)?.trim().to_owned()))
    };
    text.lines().filter(|line| !line.starts_with('#')).filter_map(line).collect()
}

fn values<'a>(lines: &'a [Line], name: &str) -> impl Iterator<Item = &'a str> {
    let named = lines.iter().filter(move |(own, _)| own == name);
    named.flat_map(|(_, value)| value.split_whitespace())
}

fn insecure(lines: &[Line]) -> Vec<ClientFault> {
    let is_insecure = |(name, value): &&Line| {
        let value = value.to_ascii_lowercase();
        INSECURE.iter().any(|(own, values)| own == name && values.contains(&value.as_str()))
    };
    let found = lines.iter().filter(is_insecure);
    found.map(|(name, value)| ClientFault::Insecure { line: format!("{name}: {value}") }).collect()
}

/// The places at which the writer says that the repository is served.
fn places(root: &Path) -> Result<BTreeSet<String>> {
    let folder = root.join(STATES);
    let mut places = BTreeSet::new();
    if !is_folder(&folder)? {
        return Ok(places);
    }
    for entry in list(&folder)? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let bytes = read_file(&path).map_err(|e| Error::io(&path, "read", e))?;
        let state: serde_json::Value = serde_json::from_slice(&bytes)
            .map_err(|e| Error::malformed("is no state of a repository").file(&path).cause(e))?;
        let url = state.get("settings").and_then(|settings| settings.get("url")?.as_str());
        places.extend(url.map(|url| url.trim_end_matches('/').to_owned()));
    }
    Ok(places)
}

/// Other places than those that the writer remembers.
fn elsewhere(lines: &[Line], places: &BTreeSet<String>) -> Vec<ClientFault> {
    let served = ["uris", "baseurl", "mirrorlist", "metalink"].map(|name| values(lines, name));
    let keys = values(lines, "gpgkey");
    let is_own = |url: &str| places.contains(url.trim_end_matches('/'));
    let is_below = |url: &str| url.rsplit_once('/').is_some_and(|(folder, _)| is_own(folder));
    let served = served.into_iter().flatten().filter(|url| !is_own(url));
    let found = served.chain(keys.filter(|url| !is_below(url)));
    let found = found.filter(|_| !places.is_empty());
    found.map(|url| ClientFault::Elsewhere { url: url.to_owned() }).collect()
}

/// Files that do not have clients look at signatures that are there, or that name suites which are not.
fn unsigned(context: &Context<'_>, lines: &[Line], form: Form) -> Result<Vec<ClientFault>> {
    let there = |path: &str| is_file(&context.root.join(path));
    let Form::Sources { has_keys } = form else {
        let checks = values(lines, "repo_gpgcheck").eq(["1"]);
        let signed = there("repodata/repomd.xml.asc")?;
        return Ok((signed && !checks).then_some(ClientFault::Unchecked).into_iter().collect());
    };
    let mut faults = Vec::new();
    let names_key = has_keys || values(lines, "signed-by").next().is_some();
    for suite in values(lines, "suites").filter(|suite| !suite.ends_with('/')) {
        let folder = format!("dists/{suite}");
        let signed = there(&format!("{folder}/InRelease"))?;
        if !signed && !there(&format!("{folder}/Release"))? {
            faults.push(ClientFault::NoSuite { suite: suite.to_owned() });
        } else if signed && !names_key {
            faults.push(ClientFault::Unchecked);
        }
    }
    Ok(faults)
}

/// The keys that stand in a file of apt itself, in place of the name of a keyring: lines with a blank in
/// front, of which ` .` is an empty one.
fn keys_within(text: &str) -> Option<String> {
    let line = |line: &str| match line.strip_prefix([' ', '\t']).unwrap_or(line) {
        "." => "\n".to_owned(),
        line => format!("{line}\n"),
    };
    text.contains(KEY_BLOCK).then(|| text.lines().map(line).collect())
}

/// Judges a keyring: it may have none of the keys given, though one of them signed, keys beside those
/// given that no index names which these sign, or no key that made a signature. Whether signatures are good
/// is told of the indexes.
fn keyring(context: &Context<'_>, bytes: &[u8]) -> Result<Vec<ClientFault>> {
    let keys = match PublicKeys::read(bytes) {
        Ok(keys) => keys,
        Err(error) => {
            return Ok(vec![ClientFault::Unreadable { reason: error.to_string() }]);
        }
    };
    let signed = signed_files(context.root)?;
    let given = &context.trust.keys;
    if !given.is_empty() {
        let counts = signed.iter().any(|file| file.text(context.trust).is_ok());
        if !given.any_of(&keys) {
            return Ok(counts.then_some(ClientFault::OtherKeys).into_iter().collect());
        }
        let more = keys.without(&context.takes.keys).fingerprints();
        let fault = (!more.is_empty()).then_some(ClientFault::MoreKeys { fingerprints: more });
        return Ok(fault.into_iter().collect());
    }
    let trust = Trust { keys, at: context.trust.at };
    let is_by = |file: &SignedFile| file.text(&trust).map_or_else(is_refused, |_| true);
    let is_wrong = !signed.is_empty() && !signed.iter().any(is_by);
    Ok(is_wrong.then_some(ClientFault::NoSigner).into_iter().collect())
}

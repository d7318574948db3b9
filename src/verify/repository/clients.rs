//! Files for clients at the top of a repository: `.sources` and `.pref` of apt, `.repo` of dnf and zypper, and
//! the keyring. They are not signed, so they have to say what the indexes and the signatures say.

use std::collections::BTreeSet;

use rockpack_base::content::{is_file, list};
use rockpack_base::error::Result;
use rockpack_base::formats::apt_index::{Release, pin};

use super::context::Context;
use super::signers::{KEYRING, is_head, signed_files};
use super::stanzas::{Stanza, stanzas};
use super::states::State;
use super::trust::{PublicKeys, Trust, is_refused};
use crate::verify::problem::{ClientFault, Problem};

/// Switches that have clients take what nobody signed, or what is old, and what they have to be.
const SWITCHES: [(&str, bool); 7] = [
    ("trusted", false),
    ("allow-insecure", false),
    ("allow-weak", false),
    ("allow-downgrade-to-insecure", false),
    ("check-valid-until", true),
    ("check-date", true),
    ("sslverify", true),
];

/// Words that apt and libdnf take for yes.
const YES: [&str; 6] = ["yes", "true", "with", "on", "enable", "1"];

/// Words that they take for no.
const NO: [&str; 6] = ["no", "false", "without", "off", "disable", "0"];

/// Further fields that `.sources` files may have: whether and how clients ask the named suites.
const PLAIN_FIELDS: [&str; 11] = [
    "types",
    "suites",
    "components",
    "enabled",
    "architectures",
    "languages",
    "targets",
    "pdiffs",
    "by-hash",
    "description",
    "x-repolib-name",
];

/// Further options that `.repo` files may have.
const PLAIN_OPTIONS: [&str; 14] = [
    "name",
    "enabled",
    "gpgcheck",
    "repo_gpgcheck",
    "priority",
    "metadata_expire",
    "type",
    "autorefresh",
    "keeppackages",
    "cost",
    "module_hotfixes",
    "countme",
    "skip_if_unavailable",
    "refresh",
];

/// The folder of the keyrings that `.sources` files name.
const KEYRINGS: &str = "/usr/share/keyrings/";

/// The beginning of keys in a text.
const KEY_BLOCK: &str = "-----BEGIN PGP PUBLIC KEY BLOCK-----";

/// The kinds of files that are no keyrings.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// dnf and zypper.
    Repo,
    /// apt.
    Sources,
    /// Priorities of apt.
    Preferences,
}

/// The endings of their names.
const ENDINGS: [(&str, Form); 3] =
    [(".repo", Form::Repo), (".sources", Form::Sources), (".pref", Form::Preferences)];

/// Checks all files for clients.
pub(super) fn check(context: &mut Context<'_>) -> Result<()> {
    let places = places(&context.states);
    let mut names = Vec::new();
    for entry in list(context.root)? {
        names.extend(entry?.file_name().to_str().map(str::to_owned));
    }
    names.sort();
    for name in names {
        let form = ENDINGS.iter().find(|(ending, _)| name.ends_with(*ending)).map(|it| it.1);
        let file = context.root.join(&name);
        if (form.is_none() && !name.ends_with(KEYRING)) || !is_file(&file)? {
            continue;
        }
        let bytes = context.files.read(&file, "a file for clients")?;
        let faults = if let Some(form) = form {
            let text = String::from_utf8_lossy(&bytes);
            let mut faults = Vec::new();
            for stanza in stanzas(&text, form == Form::Repo) {
                faults.extend(of_stanza(context, &stanza, form, &places)?);
            }
            faults
        } else {
            keyring(context, &bytes)?
        };
        for fault in faults {
            context.problems.add(Problem::ClientFile { file: name.clone(), fault });
        }
    }
    Ok(())
}

/// Judges one stanza of a `.sources` or `.pref` file, or one section of a `.repo` file.
fn of_stanza(
    context: &Context<'_>,
    stanza: &Stanza,
    form: Form,
    places: &BTreeSet<String>,
) -> Result<Vec<ClientFault>> {
    let mut faults = switched(stanza);
    let keys = stanza.value("signed-by").filter(|value| value.contains(KEY_BLOCK));
    if let Some(keys) = keys {
        faults.extend(keyring(context, keys_within(keys).as_bytes())?);
    }
    faults.extend(elsewhere(stanza, places));
    faults.extend(unknown(context, stanza, form, places)?);
    faults.extend(unsigned(context, stanza, form)?);
    Ok(faults)
}

/// Switches that are not as they have to be.
fn switched(stanza: &Stanza) -> Vec<ClientFault> {
    let insecure = stanza.lines.iter().filter(|(name, value)| is_insecure(name, value));
    let faults = insecure.map(|(name, value)| ClientFault::Insecure {
        line: format!("{name}: {}", one_line(value)),
    });
    faults.collect()
}

fn is_insecure(name: &str, value: &str) -> bool {
    let switch = SWITCHES.iter().find(|(own, _)| *own == name);
    switch.is_some_and(|(_, is_on)| {
        let words = if *is_on { YES } else { NO };
        !words.contains(&value.trim().to_ascii_lowercase().as_str())
    })
}

/// Lines that no publication writes and users may not add.
fn unknown(
    context: &Context<'_>,
    stanza: &Stanza,
    form: Form,
    places: &BTreeSet<String>,
) -> Result<Vec<ClientFault>> {
    let mut faults = Vec::new();
    for (name, value) in &stanza.lines {
        let is_known = match (form, name.as_str()) {
            (Form::Sources, "uris") | (Form::Repo, "baseurl" | "mirrorlist" | "metalink") => true,
            (Form::Repo, "gpgkey") => true,
            (Form::Sources, "signed-by") => is_own_keyring(context, value)?,
            (Form::Sources, name) => PLAIN_FIELDS.contains(&name) || name.starts_with("x-repolib-"),
            (Form::Repo, name) => PLAIN_OPTIONS.contains(&name),
            (Form::Preferences, "pin") => is_own_pin(context, value, places)?,
            (Form::Preferences, name) => ["package", "pin-priority", "explanation"].contains(&name),
        };
        if !is_known && !SWITCHES.iter().any(|(own, _)| own == name) {
            let line = format!("{name}: {}", one_line(value));
            faults.push(ClientFault::Unknown { line });
        }
    }
    Ok(faults)
}

/// Whether `Signed-By` has keys, which are judged by themselves, or names the repository's keyring alone.
fn is_own_keyring(context: &Context<'_>, value: &str) -> Result<bool> {
    if value.contains(KEY_BLOCK) {
        return Ok(true);
    }
    for word in value.split_whitespace() {
        let name = word.strip_prefix(KEYRINGS).filter(|name| name.ends_with(KEYRING));
        let Some(name) = name.filter(|name| !name.contains('/')) else { return Ok(false) };
        if !is_file(&context.root.join(name))? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether `Pin` has the value for a suite of the repository at one of `places`. Without places, it may be
/// anything for a suite without origin and label.
fn is_own_pin(context: &Context<'_>, value: &str, places: &BTreeSet<String>) -> Result<bool> {
    let mut is_unknown = places.is_empty();
    for suite in super::suites(context.root)? {
        let path = context.root.join("dists").join(suite).join("Release");
        if !is_head(&path)? {
            continue;
        }
        let text = context.files.read(&path, "an index")?;
        let Ok(release) = Release::parse(&String::from_utf8_lossy(&text)) else { continue };
        let field = |name| release.field(name).unwrap_or_default().trim();
        let fields = ["Origin", "Label", "Codename"].map(field);
        let is_it = |url: &str| pin(url, fields).split_whitespace().eq(value.split_whitespace());
        // Without origin and label, a pin is for the host.
        let of_host = fields[..2].concat().is_empty();
        if (!of_host && is_it("")) || places.iter().any(|url| is_it(url)) {
            return Ok(true);
        }
        is_unknown &= of_host;
    }
    Ok(is_unknown)
}

/// A value of several lines, in one that is not long.
fn one_line(value: &str) -> String {
    let words: Vec<&str> = value.split_whitespace().collect();
    words.join(" ").chars().take(200).collect()
}

/// The URLs at which the repository is served, from the settings in its state files.
fn places(states: &[State]) -> BTreeSet<String> {
    let urls = states.iter().filter_map(|state| state.value.get("settings")?.get("url")?.as_str());
    urls.map(|url| url.trim_end_matches('/').to_owned()).collect()
}

/// Faults for URLs of a client file other than those in the repository's state; none without such URLs.
fn elsewhere(stanza: &Stanza, places: &BTreeSet<String>) -> Vec<ClientFault> {
    let words = ["uris", "baseurl", "mirrorlist", "metalink"].map(|name| stanza.words(name));
    let served = words.into_iter().flatten().filter(|url| !is_place(url, places));
    let keys = stanza
        .words("gpgkey")
        .filter(|url| url.rsplit_once('/').is_none_or(|(folder, _)| !is_place(folder, places)));
    let found = served.chain(keys).filter(|_| !places.is_empty());
    found.map(|url| ClientFault::Elsewhere { url: url.to_owned() }).collect()
}

fn is_place(url: &str, places: &BTreeSet<String>) -> bool {
    places.contains(url.trim_end_matches('/'))
}

/// Faults of client files that do not make clients check the repository's signatures, or that name
/// suites which do not exist.
fn unsigned(context: &Context<'_>, stanza: &Stanza, form: Form) -> Result<Vec<ClientFault>> {
    if form == Form::Repo {
        let said = stanza.value("repo_gpgcheck").map(|value| value.trim().to_ascii_lowercase());
        let checks = said.is_some_and(|said| YES.contains(&said.as_str()));
        let signed = has_file(context, "repodata/repomd.xml.asc")?;
        return Ok((signed && !checks).then_some(ClientFault::Unchecked).into_iter().collect());
    }
    let mut faults = Vec::new();
    let names_key = stanza.words("signed-by").next().is_some();
    for suite in stanza.words("suites").filter(|suite| !suite.ends_with('/')) {
        let folder = format!("dists/{suite}");
        let signed = has_file(context, &format!("{folder}/InRelease"))?;
        if !signed && !has_file(context, &format!("{folder}/Release"))? {
            faults.push(ClientFault::NoSuite { suite: suite.to_owned() });
        } else if signed && !names_key {
            faults.push(ClientFault::Unchecked);
        }
    }
    Ok(faults)
}

fn has_file(context: &Context<'_>, path: &str) -> Result<bool> {
    is_file(&context.root.join(path))
}

/// The keys in a value, in place of the name of a keyring: its lines may begin with blanks, and a
/// line of `.` is an empty one.
fn keys_within(value: &str) -> String {
    let lines = value.lines().map(|line| match line.trim() {
        "." => "\n".to_owned(),
        line => format!("{line}\n"),
    });
    lines.collect()
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
    let signed = signed_files(context.files)?;
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
    let trust = Trust { keys, ..*context.trust };
    let has_signed = signed.iter().any(|file| file.text(&trust).map_or_else(is_refused, |_| true));
    let is_wrong = !signed.is_empty() && !has_signed;
    Ok(is_wrong.then_some(ClientFault::NoSigner).into_iter().collect())
}

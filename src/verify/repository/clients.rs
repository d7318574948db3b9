//! Files for clients at the top of a repository: `.sources`, `.list` and `.pref` of apt, `.repo` of dnf and
//! zypper, and the keyring. They are not signed, so they have to say what the indexes and the signatures say.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_base::content::{is_file, list};
use rockpack_base::error::Result;
use rockpack_base::formats::apt_index::pin;

use super::context::Context;
use super::signers::{KEY_BLOCK, is_head, is_keyring, keyring_fault};
use super::stanzas::{Form, Stanza, is_set, stanzas};
use super::states::State;
use crate::verify::problem::{ClientFault, Problem, SignatureFault};

/// Switches that have clients take what nobody signed, or what is old: they have to be off, and on.
const SWITCHES: [&str; 2] = [
    "trusted allow-insecure allow-weak allow-downgrade-to-insecure",
    "check-valid-until check-date sslverify pkg_gpgcheck",
];

/// Further fields that sources of apt may have: whether and how clients ask the named suites.
const PLAIN_FIELDS: &str = "uris suites components enabled architectures languages lang targets target pdiffs by-hash \
    description";

/// Further options that `.repo` files may have.
const PLAIN_OPTIONS: &str = "name baseurl mirrorlist metalink gpgkey enabled gpgcheck \
    repo_gpgcheck priority metadata_expire autorefresh keeppackages cost module_hotfixes countme \
    refresh skip_if_unavailable";

/// The folders of the keyrings that sources of apt name.
const KEYRINGS: [&str; 2] = ["/usr/share/keyrings/", "/etc/apt/keyrings/"];

/// The endings of the names of files that are no keyrings.
const ENDINGS: [(&str, Form); 4] = [
    (".repo", Form::Repo),
    (".sources", Form::Sources),
    (".list", Form::List),
    (".pref", Form::Preferences),
];

/// The names of the URLs at which a repository is served.
const SERVED: [&str; 2] = ["uris", "baseurl"];

/// Checks all files for clients.
pub(super) fn check(context: &mut Context<'_>) -> Result<()> {
    let mut names = Vec::new();
    for entry in list(context.root)? {
        names.extend(entry?.file_name().to_str().map(str::to_owned));
    }
    names.sort();
    let (mut read, mut keyrings) = (Vec::new(), BTreeSet::new());
    for name in names {
        let form = ENDINGS.iter().find(|(ending, _)| name.ends_with(*ending)).map(|it| it.1);
        if (form.is_none() && !is_keyring(&name)) || !is_file(&context.root.join(&name))? {
            continue;
        }
        let Some(form) = form else {
            keyrings.insert(name);
            continue;
        };
        let bytes = context.files.read(&context.root.join(&name), "a file for clients")?;
        let text = String::from_utf8_lossy(&bytes);
        // A list of something else.
        if form == Form::List && !text.lines().any(|it| it.trim_start().starts_with("deb")) {
            continue;
        }
        match stanzas(&text, form) {
            Ok(found) => read.extend(found.into_iter().map(|stanza| (name.clone(), stanza))),
            Err(reason) => fail(context, &name, ClientFault::Unreadable { reason }),
        }
    }
    let places = places(&context.states, read.iter().map(|(_, stanza)| stanza));
    for (name, stanza) in &read {
        for fault in of_stanza(context, stanza, &places, &mut keyrings)? {
            fail(context, name, fault);
        }
    }
    if read.iter().any(|(_, stanza)| stanza.is_on("gpgcheck")) {
        for file in std::mem::take(&mut context.unsigned) {
            context.bad_signature(&file, SignatureFault::Unsigned);
        }
    }
    for name in keyrings {
        let bytes = context.files.read(&context.root.join(&name), "a keyring")?;
        if let Some(fault) = keyring_fault(context, &name, &bytes)? {
            fail(context, &name, fault);
        }
    }
    check_unchanged(context)
}

fn fail(context: &mut Context<'_>, file: &str, fault: ClientFault) {
    context.problems.add(Problem::ClientFile { file: file.to_owned(), fault });
}

/// Judges one stanza, section or line. Notes the keyrings that it names.
fn of_stanza(
    context: &Context<'_>,
    stanza: &Stanza,
    places: &BTreeSet<String>,
    keyrings: &mut BTreeSet<String>,
) -> Result<Vec<ClientFault>> {
    let mut faults = lacking(stanza);
    for keys in stanza.values("signed-by").filter(|value| value.contains(KEY_BLOCK)) {
        faults.extend(keyring_fault(context, "", keys.as_bytes())?);
    }
    faults.extend(elsewhere(stanza, places));
    for (name, value) in &stanza.lines {
        let line = format!("{name}: {}", one_line(value));
        match SWITCHES.iter().position(|names| is_one_of(name, names)) {
            Some(is_on) if !is_set(value, is_on == 1) => {
                faults.push(ClientFault::Insecure { line });
            }
            None if !is_known(context, stanza.form, (name, value), places) => {
                faults.push(ClientFault::Unknown { line });
            }
            _ => {}
        }
    }
    match stanza.form {
        Form::Repo => faults.extend(of_repo(context, stanza, places, keyrings)?),
        Form::Sources | Form::List => {
            faults.extend(of_suites(context, stanza)?);
            let words = stanza.words("signed-by").filter_map(|word| keyring_name(context, word));
            keyrings.extend(words.map(str::to_owned));
        }
        Form::Preferences => {}
    }
    Ok(faults)
}

/// Lines without which clients ignore or refuse a stanza.
fn lacking(stanza: &Stanza) -> Vec<ClientFault> {
    let names: &[&str] = match stanza.form {
        Form::Repo => &["baseurl"],
        Form::Sources | Form::List => &["types", "uris", "suites", "components"],
        Form::Preferences => &["package", "pin", "pin-priority"],
    };
    let absent = names.iter().filter(|name| stanza.words(name).next().is_none());
    absent.map(|name| ClientFault::Lacks { name: (*name).to_owned() }).collect()
}

/// Whether a line is one that publications write or users may add.
fn is_known(
    context: &Context<'_>,
    form: Form,
    (name, value): (&str, &str),
    places: &BTreeSet<String>,
) -> bool {
    match (form, name) {
        (Form::Repo, "type") => value.trim().eq_ignore_ascii_case("rpm-md"),
        (Form::Repo, name) => is_one_of(name, PLAIN_OPTIONS),
        (Form::Preferences, "pin") => is_own_pin(context, value, places),
        (Form::Preferences, "pin-priority") => value.trim().parse::<i16>().is_ok_and(|it| it != 0),
        (Form::Preferences, name) => is_one_of(name, "package explanation"),
        (_, "types") => value.split_whitespace().all(|kind| is_one_of(kind, "deb deb-src")),
        (_, "signed-by") => {
            let mut words = value.split(|c: char| c.is_whitespace() || c == ',');
            value.contains(KEY_BLOCK)
                || words.all(|word| word.is_empty() || keyring_name(context, word).is_some())
        }
        (_, name) => name.starts_with("x-repolib-") || is_one_of(name, PLAIN_FIELDS),
    }
}

fn is_one_of(name: &str, names: &str) -> bool {
    names.split(' ').any(|own| own == name)
}

/// The name of the repository's keyring at the path that a source of apt names.
fn keyring_name<'a>(context: &Context<'_>, path: &'a str) -> Option<&'a str> {
    let name = KEYRINGS.iter().find_map(|folder| path.strip_prefix(folder))?;
    let is_there = !name.contains('/') && context.files.find(name).is_ok_and(|it| it.is_some());
    is_there.then_some(name)
}

/// Whether `Pin` has the value for a suite of the repository at one of `places`. Without places, it may be
/// anything for a suite without origin and label.
fn is_own_pin(context: &Context<'_>, value: &str, places: &BTreeSet<String>) -> bool {
    let mut is_unknown = places.is_empty();
    for release in context.releases.values() {
        let field = |name| release.field(name).unwrap_or_default().trim();
        let fields = ["Origin", "Label", "Codename"].map(field);
        let is_it = |url: &str| pin(url, fields).split_whitespace().eq(value.split_whitespace());
        // Without origin and label, a pin is for the host.
        let of_host = fields[..2].concat().is_empty();
        if (!of_host && is_it("")) || places.iter().any(|url| is_it(url)) {
            return true;
        }
        is_unknown &= of_host;
    }
    is_unknown
}

/// A value of several lines, in one that is not long.
fn one_line(value: &str) -> String {
    let words: Vec<&str> = value.split_whitespace().collect();
    words.join(" ").chars().take(200).collect()
}

/// The URLs at which the repository is served, from the settings in its state files, or else those that all
/// files for clients name.
fn places<'a>(states: &[State], clients: impl Iterator<Item = &'a Stanza>) -> BTreeSet<String> {
    let place = |url: &str| url.trim_end_matches('/').to_owned();
    let urls = states.iter().filter_map(|state| state.value.get("settings")?.get("url")?.as_str());
    let stated: BTreeSet<String> = urls.map(place).collect();
    if !stated.is_empty() {
        return stated;
    }
    let named = clients.map(|stanza| -> BTreeSet<String> {
        SERVED.into_iter().flat_map(|name| stanza.words(name)).map(place).collect()
    });
    let named = named.filter(|urls| !urls.is_empty());
    named.reduce(|all, urls| &all & &urls).unwrap_or_default()
}

/// Faults for URLs other than `places`. What a list of mirrors names is never known.
fn elsewhere(stanza: &Stanza, places: &BTreeSet<String>) -> Vec<ClientFault> {
    let served = SERVED.into_iter().flat_map(|name| stanza.words(name));
    let served = served.filter(|url| !places.contains(url.trim_end_matches('/')));
    let mirrors = ["mirrorlist", "metalink"].into_iter().flat_map(|name| stanza.words(name));
    served.chain(mirrors).map(|url| ClientFault::Elsewhere { url: url.to_owned() }).collect()
}

/// Faults of sections that do not make clients check the signatures that are there, or have them require
/// others, and of the keys that they name.
fn of_repo(
    context: &Context<'_>,
    stanza: &Stanza,
    places: &BTreeSet<String>,
    keyrings: &mut BTreeSet<String>,
) -> Result<Vec<ClientFault>> {
    let mut faults = Vec::new();
    for url in stanza.words("gpgkey") {
        let path = places.iter().find_map(|place| url.strip_prefix(&**place)?.strip_prefix('/'));
        match path {
            None => faults.push(ClientFault::Elsewhere { url: url.to_owned() }),
            Some(path) if has_file(context, path)? && is_head(&context.root.join(path))? => {
                keyrings.insert(path.to_owned());
            }
            Some(_) => faults.push(ClientFault::Absent { what: format!("the key {url}") }),
        }
    }
    if !has_file(context, "repodata/repomd.xml")? {
        return Ok(faults);
    }
    let signed = has_file(context, "repodata/repomd.xml.asc")?;
    let has_key = stanza.words("gpgkey").next().is_some();
    if signed && !has_key {
        faults.push(ClientFault::Lacks { name: "gpgkey".to_owned() });
    }
    let (of_index, of_packages) = (stanza.is_on("repo_gpgcheck"), stanza.is_on("gpgcheck"));
    let are_signed = (signed || has_key) && context.unsigned.is_empty();
    if (signed && !of_index) || (are_signed && !of_packages) {
        faults.push(ClientFault::Unchecked);
    }
    faults.extend((of_index && !signed).then(no_signature));
    Ok(faults)
}

/// Faults of sources that name suites, or parts of them, which do not exist, or that do not make clients
/// check the signatures that are there, or require others.
fn of_suites(context: &Context<'_>, stanza: &Stanza) -> Result<Vec<ClientFault>> {
    let mut faults = Vec::new();
    let mut absent = |what: String| faults.push(ClientFault::Absent { what });
    let (mut unchecked, mut unsigned) = (false, false);
    for suite in stanza.words("suites") {
        let file = |name: &str| has_file(context, &format!("dists/{suite}/{name}"));
        let signed = file("InRelease")? || file("Release.gpg")?;
        if !file("InRelease")? && !file("Release")? {
            absent(format!("the suite {suite}"));
            continue;
        }
        let names_key = stanza.words("signed-by").next().is_some();
        unchecked |= signed && !names_key;
        unsigned |= !signed && names_key;
        let Some(release) = context.releases.get(suite) else { continue };
        for (field, name) in [("Components", "components"), ("Architectures", "architectures")] {
            let Some(published) = release.field(field) else { continue };
            // apt takes the last part of a component's name.
            let has = |word: &&str| {
                published.split_whitespace().any(|it| it.rsplit('/').next() == Some(*word))
            };
            for word in stanza.words(name).filter(|word| !has(word)) {
                absent(format!("{word} of the {name} of the suite {suite}"));
            }
        }
        let has_sources = release.files.iter().any(|file| file.path.contains("/source/Sources"));
        if stanza.words("types").any(|kind| kind == "deb-src") && !has_sources {
            absent(format!("the sources of the suite {suite}"));
        }
    }
    faults.extend(unchecked.then_some(ClientFault::Unchecked));
    faults.extend(unsigned.then(no_signature));
    Ok(faults)
}

fn no_signature() -> ClientFault {
    ClientFault::Absent { what: "a signature of the indexes".to_owned() }
}

fn has_file(context: &Context<'_>, path: &str) -> Result<bool> {
    Ok(context.files.find(path)?.is_some())
}

/// Compares files that no signature covers with the digests that the states keep of them. Files with another
/// fault, and repositories with an interrupted publication, are left out.
fn check_unchanged(context: &mut Context<'_>) -> Result<()> {
    let states = &context.states;
    let kept = states.iter().filter_map(|state| state.value.get("unsigned_files")?.as_object());
    let mut written: BTreeMap<&String, BTreeSet<&str>> = BTreeMap::new();
    for (path, digest) in kept.flatten().filter(|_| !states.iter().any(|state| state.is_next)) {
        written.entry(path).or_default().extend(digest.as_str());
    }
    let mut changed = Vec::new();
    for (path, digests) in written {
        let is_right = match context.files.open(path)? {
            Some(file) => digests.contains(&*file.digest()?.to_string()),
            // Pages of wheels that are missing are told of where they are read.
            None => path.contains('/'),
        };
        if !is_right && !context.problems.names(path) {
            changed.push(path.clone());
        }
    }
    for path in changed {
        fail(context, &path, ClientFault::Changed);
    }
    Ok(())
}

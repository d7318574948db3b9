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

/// The folders of keyrings of apt and rpm on the machines of clients.
const KEYRINGS: [&str; 3] =
    ["/usr/share/keyrings/", "/etc/apt/keyrings/", "file:///etc/pki/rpm-gpg/"];

/// The key that zypper takes without being told.
const ZYPPER_KEY: &str = "repodata/repomd.xml.key";

/// Names of keyrings, each with those that clients get with it: one of them may have earlier keys only.
type Keyrings = BTreeSet<Vec<String>>;

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
    let (mut read, mut keyrings) = (Vec::new(), Keyrings::new());
    keyrings.extend(has_file(context, ZYPPER_KEY)?.then(|| vec![ZYPPER_KEY.to_owned()]));
    for name in names {
        let form = ENDINGS.iter().find(|(ending, _)| name.ends_with(*ending)).map(|it| it.1);
        if (form.is_none() && !is_keyring(&name)) || !is_file(&context.root.join(&name))? {
            continue;
        }
        let Some(form) = form else {
            keyrings.insert(vec![name]);
            continue;
        };
        let bytes = context.files.read(&context.root.join(&name), "a file for clients")?;
        let text = String::from_utf8_lossy(&bytes);
        let mut first = text.lines().filter_map(|line| line.split_whitespace().next());
        // A list of something else.
        if form == Form::List && !first.any(|word| is_one_of(word, "deb deb-src")) {
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
    for names in keyrings {
        let mut keys = Vec::new();
        for name in &names {
            keys.push((&**name, context.files.read(&context.root.join(name), "a keyring")?));
        }
        if let Some(fault) = keyring_fault(context, &keys)? {
            fail(context, &names.join(", "), fault);
        }
        context.named.extend(names);
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
    keyrings: &mut Keyrings,
) -> Result<Vec<ClientFault>> {
    let mut faults = lacking(stanza);
    for keys in stanza.values("signed-by").filter(|value| value.contains(KEY_BLOCK)) {
        faults.extend(keyring_fault(context, &[("", keys.as_bytes().to_vec())])?);
    }
    faults.extend(elsewhere(context, stanza, places)?);
    for (name, value) in &stanza.lines {
        let line = format!("{name}: {}", one_line(value));
        match SWITCHES.iter().position(|names| is_one_of(name, names)) {
            Some(is_on) if !is_set(value, is_on == 1) => {
                faults.push(ClientFault::Insecure { line });
            }
            // The name that clients give to a keyring that is not published is theirs.
            None if name == "signed-by" && keyrings.is_empty() => {}
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
            add_keyrings(keyrings, words.map(str::to_owned).collect());
        }
        Form::Preferences => {}
    }
    Ok(faults)
}

/// Adds keyrings that clients get together, in the place of each of them alone.
fn add_keyrings(keyrings: &mut Keyrings, names: Vec<String>) {
    for name in &names {
        keyrings.remove(std::slice::from_ref(name));
    }
    keyrings.extend(Some(names).filter(|names| !names.is_empty()));
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

/// The name of the repository's keyring at a path on the machines of clients.
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
/// files for clients name, or a folder in it.
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
    let named: Vec<BTreeSet<String>> = named.filter(|urls| !urls.is_empty()).collect();
    let is_in =
        |place: &str, urls: &BTreeSet<String>| urls.iter().any(|url| within(url, place).is_some());
    let common = named.iter().flatten().filter(|it| named.iter().all(|urls| is_in(it, urls)));
    common.cloned().collect()
}

/// The path at which a URL leads into a folder.
fn within<'a>(url: &'a str, folder: &str) -> Option<&'a str> {
    let rest = url.strip_prefix(folder)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
}

/// The path in the repository of a URL at which it is served.
fn path_at<'a>(url: &'a str, places: &BTreeSet<String>) -> Option<&'a str> {
    places.iter().find_map(|place| within(url, place))
}

/// Faults for URLs other than `places`, and folders in them. What a list of mirrors names is never known.
fn elsewhere(
    context: &Context<'_>,
    stanza: &Stanza,
    places: &BTreeSet<String>,
) -> Result<Vec<ClientFault>> {
    let mirrors = ["mirrorlist", "metalink"].into_iter().flat_map(|name| stanza.words(name));
    let mut faults: Vec<ClientFault> = mirrors.map(other_place).collect();
    for url in SERVED.into_iter().flat_map(|name| stanza.words(name)) {
        let is_there = match path_at(url.trim_end_matches('/'), places) {
            None => false,
            Some("") => true,
            Some(_) if stanza.form != Form::Repo => false,
            // Without an index here, clients choose one of several folders, as by `$basearch`.
            Some(folder) => has_repomd(context, folder, "")? || !has_repomd(context, "", "")?,
        };
        faults.extend((!is_there).then(|| other_place(url)));
    }
    Ok(faults)
}

fn other_place(url: &str) -> ClientFault {
    ClientFault::Elsewhere { url: url.to_owned() }
}

/// Faults of sections that do not make clients check the signatures that are there, or have them require
/// others, and of the keys that they name.
fn of_repo(
    context: &Context<'_>,
    stanza: &Stanza,
    places: &BTreeSet<String>,
    keyrings: &mut Keyrings,
) -> Result<Vec<ClientFault>> {
    let (mut faults, mut keys) = (Vec::new(), Vec::new());
    for url in stanza.words("gpgkey") {
        let above = url.rsplit_once('/').map(|(folder, _)| folder).filter(|it| it.contains("//"));
        match path_at(url, places).or_else(|| keyring_name(context, url)) {
            // A folder above the repository has the keys of several.
            None if above.is_some_and(|it| places.iter().any(|at| within(at, it).is_some())) => {}
            None => faults.push(other_place(url)),
            Some(path) if has_file(context, path)? && is_head(&context.root.join(path))? => {
                keys.push(path.to_owned());
            }
            Some(_) => faults.push(ClientFault::Absent { what: format!("the key {url}") }),
        }
    }
    add_keyrings(keyrings, keys);
    let mut folders = stanza.words("baseurl").map(|url| url.trim_end_matches('/'));
    let folder = folders.find_map(|url| path_at(url, places)).unwrap_or_default();
    if !has_repomd(context, folder, "")? {
        return Ok(faults);
    }
    let signed = has_repomd(context, folder, ".asc")?;
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

/// Whether there is an index of rpm packages in a folder, with this at the end of its name.
fn has_repomd(context: &Context<'_>, folder: &str, end: &str) -> Result<bool> {
    has_file(context, format!("{folder}/repodata/repomd.xml{end}").trim_start_matches('/'))
}

fn has_file(context: &Context<'_>, path: &str) -> Result<bool> {
    Ok(context.files.find(path)?.is_some())
}

/// Compares files that no signature covers with the digests that the states keep of them, and looks for the
/// signatures. Files with another fault, and repositories with an interrupted publication, are left out.
fn check_unchanged(context: &mut Context<'_>) -> Result<()> {
    let states = &context.states;
    let mut changed = Vec::new();
    for path in states.iter().flat_map(State::signatures) {
        if !has_file(context, &path)? && !context.problems.names(&path) {
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

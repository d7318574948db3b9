//! Files for clients at the top of a repository (`.sources`, `.list`, `.repo`), keyrings, and pages for pip and uv.
//!
//! No signature covers them. The states of the repository have their digests, which find every accident. Apart from
//! that, this looks for what clients would accept in silence: options that switch checks off, and keys that are not
//! the repository's. What apt, dnf and zypper refuse, they report themselves.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::content::list;
use rockpack_core::error::Result;

use super::context::Context;
use super::signers::{KEY_BLOCK, is_keyring, keyring_fault};
use super::states::State;
use crate::problem::Problem;

/// The key that zypper takes without being told.
const ZYPPER_KEY: &str = "repodata/repomd.xml.key";

/// The signature of the index of rpm packages.
const REPOMD_SIGNATURE: &str = "repodata/repomd.xml.asc";

/// The endings of files that name repositories to clients.
const ENDINGS: [&str; 3] = [".repo", ".sources", ".list"];

/// Options with which clients accept content without a valid signature or of an expired index: when they are on, and
/// when they are off.
const SWITCHES: [&str; 2] = [
    "trusted allow-insecure allow-weak allow-downgrade-to-insecure",
    "check-valid-until check-date sslverify pkg_gpgcheck gpgcheck repo_gpgcheck",
];

/// Words that all clients take for no, and for yes.
const WORDS: [[&str; 4]; 2] = [["0", "no", "false", "off"], ["1", "yes", "true", "on"]];

/// Checks all files for clients.
pub(super) fn check(context: &mut Context<'_>) -> Result<()> {
    let mut names = vec![ZYPPER_KEY.to_owned()];
    for entry in list(context.root)? {
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
        let reason = "has no signature of its header, and the .repo file says gpgcheck=1";
        context.bad_signature(file, reason);
    }
    check_unchanged(context)
}

fn fail(context: &mut Context<'_>, file: &str, reason: String) {
    context.problems.add(Problem::ClientFile { file: file.to_owned(), reason });
}

/// The options in a file for clients: names in small letters, and values with their further lines.
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
        // A source of apt in one line has its options in brackets.
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

/// The fault of an option with which clients accept what they should refuse. `is_signed` tells whether the index of rpm
/// packages is signed; only then, and if all packages are signed, clients can check them.
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
    let reason = format!("says `{line}`, so that clients take what nobody signed, or what is old");
    Ok(is_insecure.then_some(reason))
}

/// Whether clients take the value for yes, or for no.
fn is_set(value: &str, is_on: bool) -> bool {
    let [no, yes] = WORDS;
    (if is_on { yes } else { no }).contains(&value.trim().to_ascii_lowercase().as_str())
}

/// Compares files that no signature covers with the digests that the states keep of them, and looks for the
/// signatures. Files with another fault, and repositories with an interrupted publication, are left out.
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

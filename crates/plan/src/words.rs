//! The texts of packages: those of the configuration's `packages` override those of a package list, and these
//! override the configuration's texts for all packages.
//!
//! The configuration means a package by its name or stem, as everywhere. Licence, home page and copyright of
//! a family's host package, or of the family by its own name, apply to the family's other packages too.

use std::collections::BTreeMap;

use rockpack_core::error::{Faults, Result};

use crate::config::PackageTexts;
use crate::drafts::{self, Draft};
use crate::settings::PlanSettings;
use rockpack_package::{Rights, Role};

/// The texts of a package that the configuration may override.
pub(crate) struct Words<'a> {
    pub license: &'a str,
    pub homepage: Option<&'a str>,
    pub copyright: Option<&'a str>,
    pub maintainer: &'a str,
    pub vendor: Option<&'a str>,
}

impl<'a> Words<'a> {
    pub fn of(draft: &'a Draft, setting: &'a PlanSettings) -> Self {
        let (says, keys) = (&draft.says, &setting.config.keys);
        Self {
            license: says.license.as_deref().unwrap_or(&keys.license),
            homepage: says.homepage.as_deref().or(keys.homepage.as_deref()),
            copyright: says.copyright.as_deref().or(keys.copyright.as_deref()),
            maintainer: says.maintainer.as_deref().unwrap_or(&keys.maintainer),
            vendor: says.vendor.as_deref().or(keys.vendor.as_deref()),
        }
    }

    /// The texts that a `.deb` has no control field for.
    pub fn rights(&self) -> Rights {
        Rights {
            license: self.license.to_owned(),
            copyright: self.copyright.map(str::to_owned),
            vendor: self.vendor.map(str::to_owned),
        }
    }
}

/// Puts the configuration's texts for single packages into them. Texts for a package that does not exist are
/// a typo; texts for one package under two names would hide each other.
pub(crate) fn add_configured(setting: &PlanSettings, drafts: &mut [Draft]) -> Result<()> {
    let config = &setting.config;
    let mut faults = Faults::default();
    let mut named: BTreeMap<usize, (&str, &PackageTexts)> = BTreeMap::new();
    let mut of_families = Vec::new();
    for (package, texts) in &config.texts {
        let found = drafts::named(drafts, package);
        let is_family = drafts.iter().any(|draft| draft.family == *package);
        let keys = ["packages", package];
        match found {
            Some(index) => {
                if let Some((other, _)) = named.insert(index, (package, texts)) {
                    let message = format!("is called {other} above already");
                    faults.add(config.fault(&keys, message));
                }
            }
            None if is_family && !texts.is_of_one() => {}
            None if is_family => {
                let of_family = "of its family, `license`, `homepage` and `copyright` can be said";
                let message = format!("there is no such package in the set; {of_family}");
                faults.add(config.fault(&keys, message));
            }
            None => faults.add(drafts::no_such_package(config, keys, drafts)),
        }
        let host = found.and_then(|index| drafts.get(index)).filter(|d| d.role == Role::Host);
        let family = host.map(|host| host.family.clone());
        of_families.extend(family.or_else(|| is_family.then(|| package.clone())).zip(Some(texts)));
    }
    faults.finish()?;
    for (family, texts) in of_families {
        let members = drafts.iter_mut().filter(|draft| draft.family == family);
        members.for_each(|draft| say_rights(draft, texts));
    }
    for (index, (_, texts)) in named {
        drafts.get_mut(index).into_iter().for_each(|draft| say(draft, texts));
    }
    Ok(())
}

/// Sets the texts that may apply to a whole family.
fn say_rights(draft: &mut Draft, texts: &PackageTexts) {
    let says = &mut draft.says;
    for (own, text) in [
        (&mut says.license, &texts.license),
        (&mut says.homepage, &texts.homepage),
        (&mut says.copyright, &texts.copyright),
    ] {
        replace(own, text.clone().map(Some));
    }
}

fn say(draft: &mut Draft, texts: &PackageTexts) {
    say_rights(draft, texts);
    replace(&mut draft.description.summary, texts.summary.clone());
    replace(&mut draft.description.paragraphs, texts.description.clone());
    replace(&mut draft.section, texts.section.clone());
}

/// Replaces `own` by `said`; without it, `own` stays.
fn replace<T>(own: &mut T, said: Option<T>) {
    said.into_iter().for_each(|said| *own = said);
}

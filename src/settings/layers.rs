//! Keys that are options, too: the command line wins over the configuration, and this over the scheme
//! and the defaults.
//!
//! A value that is refused is reported, and the default stands for it in what is checked behind it:
//! so one fault hides no other.

use std::path::Path;

use rockpack_base::error::{Error, Kind, Result};

use super::origin::{Gathered, Origin};
use crate::config::{Config, DEFAULT_SCHEME, Keys, Scheme};
use crate::dependencies::Distribution;
use crate::dependencies::distribution;
use crate::package::{DistributionTag, Version};
use crate::plan::{Named, Naming, Prefix};
use crate::report::{Finding, Findings};

/// The version of packages that were given none.
const NO_VERSION: &str = "0.0.0";

/// The release of packages that were given none.
const NO_RELEASE: &str = "1";

/// A prefix that stands for one that was refused.
const NO_PREFIX: &str = "/opt/rocm-0.0";

/// The command line over the configuration.
pub(crate) struct Layers<'a> {
    pub given: &'a Keys,
    pub config: &'a Config,
    pub gathered: &'a mut Gathered,
}

/// What the highest layer that has the key says.
struct Chosen<'a> {
    key: &'static str,
    text: Option<&'a str>,
    origin: Origin,
}

impl Chosen<'_> {
    /// `error` about this value, with its place.
    fn refuse(&self, config: &Config, error: &Error) -> Error {
        match &self.origin {
            Origin::Flag { option } => Error::new(Kind::Usage, error.message())
                .structure(option)
                .hint(error.hint_text().unwrap_or_default()),
            _ => config.located(&[self.key], error),
        }
    }
}

impl<'a> Layers<'a> {
    fn chosen(&self, key: &'static str, of: fn(&Keys) -> &Option<String>) -> Chosen<'a> {
        let (given, configured) = (of(self.given), of(&self.config.keys));
        let position = || self.config.position(&[key]).map(Origin::File);
        let origin = match (given, configured) {
            (Some(_), _) => Some(Origin::flag(key)),
            (None, Some(_)) => position(),
            (None, None) => None,
        };
        let text = given.as_deref().or(configured.as_deref());
        Chosen { key, text, origin: origin.unwrap_or(Origin::Default) }
    }

    /// The value made of what was chosen; nothing, after noting it, where that is wrong.
    fn keep<T>(&mut self, chosen: &Chosen<'_>, made: Result<T>) -> Option<T> {
        self.gathered.faults.keep(made.map_err(|error| chosen.refuse(self.config, &error)))
    }

    /// Version, names and prefix; nothing only where rockpack itself is wrong.
    pub fn named(&mut self) -> Option<Named> {
        let mut findings = Findings::default();
        let version = self.version(&mut findings)?;
        let names = self.naming(&version)?;
        let prefix = self.prefix(&names)?;
        Some(Named { version, names, prefix, findings })
    }

    fn version(&mut self, findings: &mut Findings) -> Option<Version> {
        let chosen = self.chosen("version", |keys| &keys.version);
        let release = self.chosen("release", |keys| &keys.release);
        if chosen.text.is_none() {
            findings.add(Finding::VersionUnset { version: NO_VERSION.to_owned() });
        }
        let text = chosen.text.unwrap_or(NO_VERSION);
        let text = self.keep(&chosen, Version::new(text, NO_RELEASE)).map_or(NO_VERSION, |_| text);
        let number = release.text.unwrap_or(NO_RELEASE);
        let number =
            self.keep(&release, Version::new(NO_VERSION, number)).map_or(NO_RELEASE, |_| number);
        self.gathered.note("version", Some(text), chosen.origin);
        self.gathered.note("release", Some(number), release.origin);
        let keys = &self.config.keys;
        let version = self.gathered.faults.keep(Version::new(text, number))?.with_epoch(keys.epoch);
        let DistributionTag { deb, rpm } = keys.distribution_tag.clone();
        let none = DistributionTag::default();
        let tags = [
            ("deb", DistributionTag { deb, ..none.clone() }),
            ("rpm", DistributionTag { rpm, ..none }),
        ];
        for (format, tag) in tags {
            let place = ["distribution_tag", format];
            let tagged = version.clone().with_tags(&tag);
            self.gathered.faults.keep(tagged.map_err(|error| self.config.located(&place, &error)));
        }
        Some(version.clone().with_tags(&keys.distribution_tag).unwrap_or(version))
    }

    fn naming(&mut self, version: &Version) -> Option<Naming> {
        let chosen = self.chosen("scheme", |keys| &keys.scheme);
        let name = chosen.text.unwrap_or(DEFAULT_SCHEME);
        let scheme = match &chosen.origin {
            // Its errors say where in the file they are.
            Origin::Flag { .. } if name.ends_with(".toml") => {
                self.gathered.faults.keep(Scheme::open(Path::new(name)))
            }
            _ => self.keep(&chosen, Scheme::shipped(name)),
        };
        self.gathered.note("scheme", Some(name), chosen.origin);
        let is_read = scheme.is_some();
        let default = || self.gathered.faults.keep(Scheme::shipped(DEFAULT_SCHEME));
        let scheme = scheme.or_else(default)?;
        let variant = self.chosen("variant", |keys| &keys.variant);
        let made = Naming::new(scheme.clone(), version, variant.text);
        let names = self.keep(&variant, made);
        self.gathered.note("variant", variant.text, variant.origin);
        let plain = || self.gathered.faults.keep(Naming::new(scheme, version, None));
        let mut names = names.or_else(plain)?;
        let chosen = self.chosen("version", |keys| &keys.version);
        if self.keep(&chosen, names.check_version()).is_none() {
            names =
                names.of_version(self.gathered.faults.keep(Version::new(NO_VERSION, NO_RELEASE))?);
        }
        if is_read {
            self.gathered.faults.keep(names.check_templates());
        }
        Some(names)
    }

    fn prefix(&mut self, names: &Naming) -> Option<Prefix> {
        let chosen = self.chosen("prefix", |keys| &keys.prefix);
        let own = names.prefix().and_then(|text| Prefix::new(&text));
        let (prefix, origin) = match chosen.text {
            Some(text) => (self.keep(&chosen, Prefix::new(text)), chosen.origin),
            None => {
                let version = self.chosen("version", |keys| &keys.version);
                (self.keep(&version, own), Origin::Scheme)
            }
        };
        self.gathered.note("prefix", prefix.as_ref().map(Prefix::absolute), origin);
        prefix.or_else(|| self.gathered.faults.keep(Prefix::new(NO_PREFIX)))
    }

    /// Whose libraries `.deb` packages depend on.
    pub fn distribution(&mut self) -> Option<Distribution> {
        let chosen = self.chosen("distro", |keys| &keys.distro);
        let name = chosen.text.unwrap_or(distribution::DEFAULT);
        let named = self.keep(&chosen, Distribution::named(name));
        self.gathered.note("distro", Some(name), chosen.origin);
        named.or_else(|| self.gathered.faults.keep(Distribution::named(distribution::DEFAULT)))
    }
}

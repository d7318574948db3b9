//! Names and prefix of packages, from the configuration and the naming scheme.
//!
//! A refused value is reported and replaced by its default for the checks that follow, so that one fault
//! hides no other.

use std::path::Path;

use rockpack_core::error::{Faults, Result};

use super::origin::{Gathered, Origin};
use rockpack_package::dependencies::Distribution;
use rockpack_package::{DistributionTag, Version};
use rockpack_plan::config::{Config, Keys, Scheme};
use rockpack_plan::{Named, Naming, Prefix};
use rockpack_report::{Finding, Findings};

/// The prefix that replaces a refused one.
const NO_PREFIX: &str = "/opt/rocm-0.0";

/// Version, names and prefix. `None` only if rockpack's own defaults are wrong.
pub(crate) fn named(config: &Config, gathered: &mut Gathered) -> Option<Named> {
    let mut findings = Findings::default();
    if !config.is_set(&["version"]) {
        findings.add(Finding::VersionUnset { version: config.keys.version.clone() });
    }
    let asked = Asked { config, instead: Keys::default() };
    let version = asked.version(&mut gathered.faults)?;
    let names = asked.naming(&version, &mut gathered.faults)?;
    let prefix = asked.prefix(&names, gathered)?;
    Some(Named { version, names, prefix, findings })
}

/// The distribution whose libraries `.deb` packages depend on.
pub(crate) fn distribution(config: &Config, faults: &mut Faults) -> Option<Distribution> {
    let asked = Asked { config, instead: Keys::default() };
    let named = asked.keep("distro", Distribution::named(&config.keys.distro), faults);
    named.or_else(|| faults.keep(Distribution::named(&asked.instead.distro)))
}

/// The values of the keys, and the defaults that replace refused ones.
struct Asked<'a> {
    config: &'a Config,
    instead: Keys,
}

impl Asked<'_> {
    /// The value made from a key. A fault is noted with the position of the key, and gives `None`.
    fn keep<T>(&self, key: &str, made: Result<T>, faults: &mut Faults) -> Option<T> {
        faults.keep(made.map_err(|error| self.config.located(&[key], &error)))
    }

    fn version(&self, faults: &mut Faults) -> Option<Version> {
        let (keys, instead) = (&self.config.keys, &self.instead);
        let upstream = Version::new(&keys.version, &instead.release);
        let release = Version::new(&instead.version, &keys.release);
        let upstream = self.keep("version", upstream, faults).map(|_| &keys.version);
        let release = self.keep("release", release, faults).map(|_| &keys.release);
        let version =
            Version::new(upstream.unwrap_or(&instead.version), release.unwrap_or(&instead.release));
        let version = faults.keep(version)?.with_epoch(keys.epoch);
        let DistributionTag { deb, rpm } = keys.distribution_tag.clone();
        let none = DistributionTag::default();
        let tags = [
            ("deb", DistributionTag { deb, ..none.clone() }),
            ("rpm", DistributionTag { rpm, ..none }),
        ];
        for (format, tag) in tags {
            let place = ["distribution_tag", format];
            let tagged = version.clone().with_tags(&tag);
            faults.keep(tagged.map_err(|error| self.config.located(&place, &error)));
        }
        Some(version.clone().with_tags(&keys.distribution_tag).unwrap_or(version))
    }

    fn naming(&self, version: &Version, faults: &mut Faults) -> Option<Naming> {
        let (keys, instead) = (&self.config.keys, &self.instead);
        let chosen = if self.config.is_given(&["scheme"]) && keys.scheme.ends_with(".toml") {
            // The errors of a scheme file have positions in that file.
            faults.keep(Scheme::open(Path::new(&keys.scheme)))
        } else {
            self.keep("scheme", Scheme::shipped(&keys.scheme), faults)
        };
        let is_read = chosen.is_some();
        let scheme = chosen.or_else(|| faults.keep(Scheme::shipped(&instead.scheme)))?;
        let names = Naming::new(scheme.clone(), version, keys.variant.as_deref());
        let mut names = self
            .keep("variant", names, faults)
            .or_else(|| faults.keep(Naming::new(scheme, version, None)))?;
        if self.keep("version", names.check_version(), faults).is_none() {
            let version = Version::new(&instead.version, &instead.release);
            names = names.of_version(faults.keep(version)?);
        }
        if is_read {
            faults.keep(names.check_templates());
        }
        Some(names)
    }

    fn prefix(&self, names: &Naming, gathered: &mut Gathered) -> Option<Prefix> {
        let faults = &mut gathered.faults;
        let chosen = match &self.config.keys.prefix {
            Some(text) => self.keep("prefix", Prefix::new(text), faults),
            None => {
                let own = names.prefix().and_then(|text| Prefix::new(&text));
                self.keep("version", own, faults)
            }
        };
        let shown = chosen.as_ref().map(Prefix::absolute);
        let prefix = chosen.or_else(|| faults.keep(Prefix::new(NO_PREFIX)));
        gathered.note_key(self.config, &["prefix"], shown, Origin::Scheme);
        prefix
    }
}

//! Settings for all packages of a set, settled before any input is read: names, version, prefix, formats,
//! relations, texts.

use std::collections::BTreeMap;

use derive_more::Deref;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rockpack_core::error::{Error, Faults, Kind, Result};

use crate::config::{Config, HipRuntime, KernelRelations, Runpath, SetRelations};
use crate::contents::selectors;
use crate::libraries::rules::{self, LibraryRule};
use crate::naming::Naming;
use crate::naming::parts::Parts;
use crate::prefix::Prefix;
use crate::relations::{self, PackageRelations};
use crate::shim::{self, Shim};
use crate::texts::Texts;
use rockpack_distribution::{Distribution, Distributions, KnownNames, PayloadCompression};
use rockpack_package::receipt::DistributionRecord;
use rockpack_package::{Format, Relation, Version};
use rockpack_report::{Findings, found};

/// The choices of the user, each valid by itself.
#[derive(Debug)]
pub struct Choices {
    pub config: Config,
    pub version: Version,
    pub names: Naming,
    pub prefix: Prefix,
    pub findings: Findings,
    /// The distributions that the packages are for. For `.rpm` packages alone, the sonames of the `.deb` distribution
    /// count as libraries of every system.
    pub distributions: Distributions,
    pub formats: Vec<Format>,
    /// The artifacts (`blas`), components (`blas_lib`) or packages (`rocm-blas`, with its kernel packages) to build;
    /// all if empty. Otherwise, metapackages of the whole set and of its groups are left out.
    pub only: Vec<String>,
    /// `SOURCE_DATE_EPOCH`: the time of changelog entries, in seconds since 1970. Without it, they
    /// carry the time of packed files.
    pub changelog_date: Option<i64>,
}

/// Settings for all packages of a set: the choices of the user, and what follows from them.
#[derive(Debug, Deref)]
pub struct PlanSettings {
    #[deref]
    choices: Choices,
    pub(super) parts: Parts,
    /// External libraries with the dependencies on their packages: those of the configuration, then those of
    /// the scheme.
    libraries: Vec<LibraryRule>,
    /// The absolute path of the link to the newest installed series; `None` if the set makes none.
    pub series_link: Option<String>,
    pub(super) texts: Texts,
    /// The time of changelog entries, in the format of Debian's changelogs.
    pub(super) date: String,
    /// Time of changelog entries, headers and signatures, in seconds since 1970.
    pub time: u32,
    /// Programs and packages of the distribution, or else of rpm-based ones.
    pub(super) known: KnownNames,
    /// The bound below which versions of packages of different families satisfy each other; `None` if only one
    /// version does.
    pub(super) next_patch: Option<String>,
    /// The HIP runtime for binaries that do not register with the shim.
    runtime: Vec<(Format, Option<Relation>)>,
    /// The library by which binaries register with every HIP runtime, if they are made for any.
    pub shim: Option<Shim>,
    pub(super) relations: Vec<PackageRelations>,
}

impl PlanSettings {
    /// Checks the choices. Reports all faults that do not depend on the input at once.
    pub fn new(choices: Choices) -> Result<Self> {
        let Choices { config, version, names, prefix, distributions, formats, .. } = &choices;
        let mut faults = Faults::default();
        if formats.is_empty() {
            faults.add(Error::new(Kind::Usage, "no package format is selected"));
        }
        faults.keep(selectors::check(config));
        let parts = faults.keep(Parts::new(config, names));
        let libraries = faults.keep(rules::read(config, names));
        let is_any = config.keys.hip_runtime == HipRuntime::Any;
        // A file that is named is checked, whether or not it is used.
        let file = config.keys.hip_shim.as_deref();
        let shim = (is_any || file.is_some()).then(|| Shim::open(file)).transpose();
        let shim = faults.keep(shim).map(|shim| shim.filter(|_| is_any));
        let runtime = formats
            .iter()
            .map(|format| Ok((*format, relations::runtime(config, names, *format)?)))
            .collect();
        let runtime = faults.keep(runtime);
        let relations = faults.keep(relations::configured(config, version));
        let next_patch = faults.keep(next_patch(config, version));
        let series_link = faults.keep(series_link(config, names, version, prefix));
        let seconds = choices.changelog_date.unwrap_or(i64::from(config.content_date));
        let dates = faults.keep(dates(seconds));
        let texts = faults.keep(Texts::new());
        let known = if formats.contains(&Format::Deb) {
            Some(distributions.deb.names.clone())
        } else {
            faults.keep(distributions.rpm.names())
        };
        let made = || {
            let (time, date) = dates?;
            Some(Self {
                parts: parts?,
                libraries: libraries?,
                texts: texts?,
                known: known?,
                runtime: runtime?,
                shim: shim?,
                relations: relations?,
                next_patch: next_patch?,
                series_link: series_link?,
                date,
                time,
                choices,
            })
        };
        faults.settle(made())
    }

    /// Whether the distribution has the library `soname`, or the configuration has an entry for it and packages
    /// of `family`. For `.rpm` packages alone, the sonames that Debian knows count as libraries of every system.
    pub(super) fn knows_library(&self, soname: &str, family: &str) -> bool {
        self.library_rule(soname, family).is_some() || self.distributions.deb.has(soname)
    }

    /// The distribution whose libraries `.deb` packages depend on; `None` without `.deb` packages. An `.rpm`
    /// requires libraries by name.
    pub fn distribution(&self) -> Option<&Distribution> {
        Some(&*self.distributions.deb).filter(|_| self.formats.contains(&Format::Deb))
    }

    pub(super) fn distribution_records(&self) -> Vec<DistributionRecord> {
        let Distributions { deb, rpm } = &self.distributions;
        let record = |format: &Format| {
            let (name, os_release) =
                format.select((&deb.name, deb.os_release.clone()), (&rpm.name, BTreeMap::new()));
            DistributionRecord { format: *format, name: name.clone(), os_release }
        };
        self.formats.iter().map(record).collect()
    }

    pub fn compression(&self, format: Format) -> PayloadCompression {
        let Distributions { deb, rpm } = &self.distributions;
        format.select(deb.compression, rpm.compression)
    }

    /// The first entry of the configuration or the scheme for the library `soname` and packages of `family`.
    pub(super) fn library_rule(&self, soname: &str, family: &str) -> Option<&LibraryRule> {
        self.libraries.iter().find(|rule| rule.matches(soname, family))
    }

    /// Whether kernel packages and their host depend on each other's code instead of release.
    pub(super) fn ties_by_code(&self) -> bool {
        self.config.keys.kernel_relations == KernelRelations::Code && self.next_patch.is_some()
    }

    pub fn runtime(&self, format: Format) -> Option<&Relation> {
        let found = self.runtime.iter().find(|(known, _)| *known == format);
        found.and_then(|(_, relation)| relation.as_ref())
    }

    pub fn runpath(&self) -> Runpath {
        self.config.keys.runpath.or(self.names.scheme.runpath).unwrap_or_default()
    }

    /// Whether the library of `hip_runtime = "any"` counts as this artifact.
    pub(super) fn is_shim(&self, artifact: &str) -> bool {
        self.shim.is_some() && artifact == shim::ARTIFACT
    }

    /// Notes formats in which no relation ties transformed binaries to a compatible runtime.
    pub(super) fn note_runtime(&self, needed: bool, findings: &mut Findings) {
        let unset = self.runtime.iter().filter(|(_, known)| known.is_none());
        let formats: Vec<Format> = unset.map(|(format, _)| *format).collect();
        if needed && !formats.is_empty() {
            findings.add(found::RuntimeUnset { formats });
        }
    }
}

/// The bound of relations between families: as configured, or else by the kind of version.
fn next_patch(config: &Config, version: &Version) -> Result<Option<String>> {
    let next = version.next_patch();
    match config.keys.set_relations {
        Some(SetRelations::Exact) => Ok(None),
        None => Ok(next.filter(|_| !version.is_pre_release())),
        Some(SetRelations::Patch) if next.is_some() => Ok(next),
        Some(SetRelations::Patch) => {
            let upstream = version.set_upstream();
            let message = format!("the version {upstream} has no patch number");
            let hint = "give a numeric version such as 7.1.0, or set `set_relations = \"exact\"`";
            Err(config.fault(&["set_relations"], message).hint(hint))
        }
    }
}

/// The link to the newest installed series, if the configuration or else the scheme asks for one. A variant has none:
/// it must be chosen, and is never the newest series.
fn series_link(
    config: &Config,
    names: &Naming,
    version: &Version,
    prefix: &Prefix,
) -> Result<Option<String>> {
    let keys = &config.keys;
    let is_wanted = keys.series_link.unwrap_or(names.scheme.series_link);
    if !is_wanted || keys.variant.is_some() {
        return Ok(None);
    }
    let link = version.series().and_then(|series| prefix.series_link(&series));
    // A scheme asks only for its own prefixes.
    if link.is_none() && keys.series_link.is_some() {
        let message = format!(
            "the prefix {} does not end in `-<major>.<minor>` of the version",
            prefix.absolute()
        );
        let hint = "give a prefix such as /opt/rocm-7.1, or remove `series_link`";
        return Err(config.fault(&["series_link"], message).hint(hint));
    }
    Ok(link)
}

/// A time in seconds since 1970, which rpm stores in 32 bits, and in the format of Debian's changelogs.
fn dates(seconds: i64) -> Result<(u32, String)> {
    let times = u32::try_from(seconds).ok().zip(Timestamp::from_second(seconds).ok());
    let (time, date) = times.ok_or_else(|| {
        let message = format!("{seconds} seconds since 1970 are outside of 1970 to 2106");
        let error = Error::new(Kind::Usage, message).structure("SOURCE_DATE_EPOCH");
        error.hint("RPM can store only these times")
    })?;
    let date = date.to_zoned_datetime(TimeZone::UTC);
    Ok((time, date.strftime("%a, %d %b %Y %H:%M:%S %z").to_string()))
}

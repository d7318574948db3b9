//! What holds for all packages of a set: version, prefix, formats, texts.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::PlanOptions;
use super::folders::Folders;
use super::naming::{Names, Naming};
use super::prefix::Prefix;
use super::relations;
use super::selectors::Bundle;
use super::texts::Texts;
use crate::config::{Config, DEFAULT_SCHEME, Scheme};
use crate::dependencies::Distribution;
use crate::dependencies::distribution::{self, PayloadCompression};
use crate::error::{Error, Kind, Result};
use crate::package::{Format, Relation, Version};
use crate::report::{Code, Finding, Findings};

/// The version of packages that were given none.
const NO_VERSION: &str = "0.0.0";

/// The release of packages that were given none.
const NO_RELEASE: &str = "1";

/// How Debian's changelogs write a time.
const CHANGELOG_DATE: &str = "%a, %d %b %Y %H:%M:%S %z";

pub(super) struct Setting<'a> {
    pub config: &'a Config,
    pub version: Version,
    /// The naming scheme.
    pub names: Naming,
    /// Libraries from outside and the dependencies on the packages that have them, as the
    /// configuration and, behind it, the scheme say.
    libraries: Vec<(String, Option<Relation>)>,
    pub prefix: Prefix,
    pub folders: Folders,
    pub formats: Vec<Format>,
    pub texts: Texts,
    /// The time of changelog entries, as Debian's write it.
    pub date: String,
    /// The same in seconds since 1970.
    pub time: u32,
    /// Whose libraries `.deb` packages depend on; none where there are none. An `.rpm` needs
    /// libraries by their names, which no table of Debian's could confirm or deny.
    pub distribution: Option<Distribution>,
    /// The HIP runtime that transformed binaries need.
    runtime: Vec<(Format, Option<Relation>)>,
}

impl<'a> Setting<'a> {
    pub fn new(config: &'a Config, options: &PlanOptions, findings: &mut Findings) -> Result<Self> {
        let mut formats = options.formats.clone();
        formats.sort();
        formats.dedup();
        if formats.is_empty() {
            return Err(Error::new(Kind::Usage, "no package format was asked for"));
        }
        let version = version(config, options, findings)?;
        let names = naming(config, options, &version)?;
        let prefix = prefix(config, options, &names)?;
        let runtime = |format: &Format| Ok((*format, relations::runtime(config, &names, *format)?));
        let runtime = formats.iter().map(runtime).collect::<Result<_>>()?;
        let seconds = options.changelog_date.unwrap_or(i64::from(config.content_date));
        let distribution = distribution(config, options.distro.as_deref())?;
        Ok(Self {
            config,
            libraries: relations::libraries(config, &names)?,
            names,
            prefix,
            folders: Folders::new(config)?,
            version,
            distribution: Some(distribution).filter(|_| formats.contains(&Format::Deb)),
            texts: Texts::new()?,
            date: date(seconds)?,
            // Emission refuses times that rpm cannot hold.
            time: u32::try_from(seconds).unwrap_or_default(),
            runtime,
            formats,
        })
    }

    /// The names of a bundle's host package.
    pub fn host_names(&self, bundle: &Bundle<'_>) -> Result<Names> {
        self.names.host(&bundle.stem, bundle.has_device_code() && !bundle.is_devel)
    }

    /// Whether the distribution has the library `soname`, or the configuration says who has.
    pub fn knows_library(&self, soname: &str) -> bool {
        let distribution = self.distribution.as_ref();
        self.configured_library(soname).is_some()
            || distribution.is_some_and(|distribution| distribution.library(soname).is_some())
    }

    /// The dependency of a `.deb` on the library `soname`, if the configuration or the scheme
    /// knows the library and names one.
    pub fn configured_library(&self, soname: &str) -> Option<Option<&Relation>> {
        let found = self.libraries.iter().find(|(known, _)| known == soname);
        found.map(|(_, relation)| relation.as_ref())
    }

    /// The relation to the HIP runtime in `format`, the configuration's before the scheme's.
    pub fn runtime(&self, format: Format) -> Option<&Relation> {
        let found = self.runtime.iter().find(|(known, _)| *known == format);
        found.and_then(|(_, relation)| relation.as_ref())
    }

    /// Notes formats in which nothing ties transformed binaries to a runtime that knows them.
    pub fn note_runtime(&self, needed: bool, findings: &mut Findings) {
        for (format, _) in self.runtime.iter().filter(|(_, known)| needed && known.is_none()) {
            let key = match format {
                Format::Deb => "runtime_relation.deb",
                Format::Rpm => "runtime_relation.rpm",
            };
            let message = "is not configured: host packages depend on no HIP runtime that reads \
                           kernel archives";
            findings.add(Finding::new(Code::RuntimeUnset, key, message));
        }
    }
}

/// A value of the caller or, behind it, of the configuration.
struct Chosen<'a> {
    key: &'static str,
    given: Option<&'a str>,
    configured: Option<&'a str>,
}

impl<'a> Chosen<'a> {
    fn new(key: &'static str, given: &'a Option<String>, configured: &'a Option<String>) -> Self {
        Self { key, given: given.as_deref(), configured: configured.as_deref() }
    }

    fn text(&self) -> Option<&'a str> {
        self.given.or(self.configured)
    }

    /// Says whose value `error` is about.
    fn blame(&self, config: &Config, error: &Error) -> Error {
        match self.given {
            Some(_) => Error::new(Kind::Usage, error.message())
                .structure(format!("--{}", self.key))
                .hint(error.hint_text().unwrap_or_default()),
            None => config.located(&[self.key], error),
        }
    }
}

fn version(config: &Config, options: &PlanOptions, findings: &mut Findings) -> Result<Version> {
    let version = Chosen::new("version", &options.version, &config.version);
    let release = Chosen::new("release", &options.release, &config.release);
    if version.text().is_none() {
        let message = format!("no version was given; the packages have {NO_VERSION}");
        findings.add(Finding::new(Code::VersionUnset, "version", message));
    }
    let text = version.text().unwrap_or(NO_VERSION);
    Version::new(text, NO_RELEASE).map_err(|error| version.blame(config, &error))?;
    let version = Version::new(text, release.text().unwrap_or(NO_RELEASE))
        .map_err(|error| release.blame(config, &error))?;
    let tagged = version.with_epoch(config.epoch).with_tags(&config.distribution_tag);
    tagged.map_err(|error| config.located(&["distribution_tag"], &error))
}

fn naming(config: &Config, options: &PlanOptions, version: &Version) -> Result<Naming> {
    let scheme = match (&options.scheme, &config.scheme) {
        (Some(given), _) => given.clone(),
        (None, Some(name)) => {
            Scheme::shipped(name).map_err(|error| config.located(&["scheme"], &error))?
        }
        (None, None) => Scheme::shipped(DEFAULT_SCHEME)?,
    };
    let variant = Chosen::new("variant", &options.variant, &config.variant);
    Naming::new(scheme, version, variant.text()).map_err(|error| variant.blame(config, &error))
}

fn prefix(config: &Config, options: &PlanOptions, names: &Naming) -> Result<Prefix> {
    let prefix = Chosen::new("prefix", &options.prefix, &config.prefix);
    match prefix.text() {
        Some(text) => Prefix::new(text).map_err(|error| prefix.blame(config, &error)),
        None => {
            let prefix = names.prefix().and_then(|text| Prefix::new(&text));
            prefix.map_err(|error| {
                Chosen::new("version", &options.version, &config.version).blame(config, &error)
            })
        }
    }
}

/// The distribution that is `given` or, behind that, configured.
pub(super) fn distribution(config: &Config, given: Option<&str>) -> Result<Distribution> {
    let given = given.map(str::to_owned);
    let chosen = Chosen::new("distro", &given, &config.distro);
    let name = chosen.text().unwrap_or(distribution::DEFAULT);
    Distribution::named(name).map_err(|error| chosen.blame(config, &error))
}

/// Which payloads the package managers of a set can read whose `.deb`s are for the distribution
/// `distro`. Every rpm since 4.14 reads zstd.
pub fn readable_payloads(
    config: &Config,
    distro: Option<&str>,
    formats: &[Format],
) -> Result<PayloadCompression> {
    if !formats.contains(&Format::Deb) {
        return Ok(PayloadCompression::Zstd);
    }
    distribution(config, distro).map(|distribution| distribution.compression)
}

fn date(seconds: i64) -> Result<String> {
    let time = Timestamp::from_second(seconds).map_err(|error| {
        let message = format!("{seconds} seconds since 1970 are no date");
        Error::new(Kind::Usage, message).cause(error)
    })?;
    Ok(time.to_zoned(TimeZone::UTC).strftime(CHANGELOG_DATE).to_string())
}

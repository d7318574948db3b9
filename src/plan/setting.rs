//! What holds for all packages of a set: version, prefix, formats, texts.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::PlanOptions;
use super::package::{Format, Relation};
use super::prefix::Prefix;
use super::relations;
use super::texts::Texts;
use super::version::Version;
use crate::config::Config;
use crate::error::{Error, Kind, Result};
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
    pub prefix: Prefix,
    pub formats: Vec<Format>,
    pub texts: Texts,
    /// The time of changelog entries, as they write it.
    pub date: String,
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
        let prefix = prefix(config, options, &version)?;
        let runtime = |format: &Format| Ok((*format, relations::runtime(config, *format)?));
        Ok(Self {
            config,
            prefix,
            version,
            texts: Texts::new()?,
            date: date(config, options)?,
            runtime: formats.iter().map(runtime).collect::<Result<_>>()?,
            formats,
        })
    }

    /// The configured relation to the HIP runtime in `format`.
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

fn version(config: &Config, options: &PlanOptions, findings: &mut Findings) -> Result<Version> {
    let given = options.version.as_ref().or(config.version.as_ref());
    if given.is_none() {
        let message = format!("no version was given; the packages have {NO_VERSION}");
        findings.add(Finding::new(Code::VersionUnset, "version", message));
    }
    let release = options.release.as_ref().or(config.release.as_ref());
    let release = release.map_or(NO_RELEASE, String::as_str);
    let version = Version::new(given.map_or(NO_VERSION, String::as_str), release);
    let own = options.version.is_none() && options.release.is_none();
    version.map_err(|error| match own {
        true => placed(config, &["version"], &error),
        false => error,
    })
}

fn prefix(config: &Config, options: &PlanOptions, version: &Version) -> Result<Prefix> {
    match (&options.prefix, &config.prefix) {
        (Some(text), _) => Prefix::new(text),
        (None, Some(text)) => Prefix::new(text).map_err(|e| placed(config, &["prefix"], &e)),
        (None, None) => Prefix::of_version(version),
    }
}

fn placed(config: &Config, keys: &[&str], error: &Error) -> Error {
    let hint = error.hint_text().unwrap_or_default();
    config.fault(keys, error.message()).hint(hint)
}

fn date(config: &Config, options: &PlanOptions) -> Result<String> {
    let seconds = options.changelog_date.unwrap_or(i64::from(config.content_date));
    let time = Timestamp::from_second(seconds).map_err(|error| {
        let message = format!("{seconds} seconds since 1970 are no date");
        Error::new(Kind::Usage, message).cause(error)
    })?;
    Ok(time.to_zoned(TimeZone::UTC).strftime(CHANGELOG_DATE).to_string())
}

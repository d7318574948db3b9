//! The settings of a package set, shared by all commands that make one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, Args};
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::run::threads;
use rockpack_distribution::{Distributions, Table};
use rockpack_package::receipt::RelationRecord;
use rockpack_package::{Format, UNSET_RELEASE, UNSET_VERSION, Version};
use rockpack_plan::config::{
    ArchiveLevel, Config, FormatValues, Grouping, KeyOptions, Keys, PerFormat, Runpath, Scheme,
    SetScope,
};
use rockpack_plan::{Choices, Naming, PackageList, PlanSettings, Prefix};
use rockpack_report::{Findings, found};
use rockpack_signing::Trust;
use rockpack_split::input::tree::InputPath;
use serde_json::Value;

use super::origin::{Origin, Resolution, Resolved};
use super::signing::ReceiptKeyArguments;
use super::{EPOCH, Environment, input_path, output_path};

/// The options of every command that makes a package set.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("inputs").required(true).multiple(true))]
pub struct SetArguments {
    /// Install trees, tarballs, libraries, or shards of artifacts
    ///
    /// A shard is a folder of artifacts (folders, .tar.zst, .tar.xz). Folders of shards and addresses also work:
    /// s3://BUCKET/PREFIX, https://HOST/PATH/ or a .txt file of addresses. NAME is the component of an install tree:
    /// `sparse`, or `sparse_dev` with the kind of its files. Without NAME, the names of ROCm's libraries and folders
    /// decide
    #[arg(value_name = "[NAME=]PATH", value_parser = input_path(), group = "inputs")]
    paths: Vec<InputPath>,
    /// Alternative to PATH; may be given several times
    #[arg(long, hide_short_help = true, num_args = 1.., value_name = "PATH", value_parser = input_path(), group = "inputs")]
    artifacts: Vec<InputPath>,
    #[command(flatten)]
    fetched: FetchedArguments,
    /// Packaging configuration (.json or .toml)
    ///
    /// Primary shard, architecture groups, validation rules for all or for single components, packages by module;
    /// `rockpack config schema` lists its keys. Without it and without --packages, groups and primary shard are those
    /// that `discover --propose` writes
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// TheRock's package.json, in place of selectors
    ///
    /// It defines which parts of artifacts are in each package, its dependencies and its texts; with --scheme amdrocm
    /// the names are AMD's
    #[arg(long, value_name = "FILE")]
    packages: Option<PathBuf>,
    #[command(flatten)]
    keys: KeyOptions,
    /// Package formats
    #[arg(long, value_delimiter = ',', default_value = "deb,rpm", value_name = "FORMAT", value_parser = format())]
    format: Vec<Format>,
    /// Only these artifacts, components or packages
    ///
    /// A name is an artifact (blas), a component (blas_lib) or a package (rocm-blas). The set has nothing else
    #[arg(long, num_args = 1.., value_name = "COMPONENT")]
    only: Vec<String>,
    /// Earlier set that this one updates
    ///
    /// A packages.json, a plan (JSON) or a folder of packages; may be given several times. Paths that moved to another
    /// package since then cause no conflicts. Unchanged packages of a packages.json are kept, unless its signature
    /// (packages.json.asc) is by a key that neither --receipt-key nor the signing options name
    #[arg(long, num_args = 1.., value_name = "SET")]
    since: Vec<PathBuf>,
    #[command(flatten)]
    receipt_keys: ReceiptKeyArguments,
    /// Number of threads [default: all cores]
    ///
    /// The packages do not depend on it
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Fail with exit code 2 on a warning that `accept` does not list
    #[arg(long)]
    strict: bool,
}

/// The options for artifacts at addresses.
#[derive(Debug, Default, Args)]
pub struct FetchedArguments {
    /// Cache for objects from addresses
    ///
    /// Objects are kept by the digest in their .sha256sum; objects without one are fetched each time. Nothing is ever
    /// removed
    #[arg(long, hide_short_help = true, value_name = "DIR", value_parser = output_path())]
    fetch_cache: Option<PathBuf>,
    /// Fail if there are no artifacts of a family
    ///
    /// The last part of their names, as gfx110X-dgpu; may be given several times
    #[arg(long, hide_short_help = true, value_delimiter = ',', value_name = "FAMILY")]
    expect: Vec<String>,
}

fn format() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::as_str))
        .map(|name| if name == Format::Deb.as_str() { Format::Deb } else { Format::Rpm })
}

#[derive(Debug)]
pub struct SetSettings {
    /// Shards, folders of shards, and install trees.
    pub artifacts: Vec<InputPath>,
    /// A folder that keeps objects by their digests.
    pub fetch_cache: Option<PathBuf>,
    /// Families that the artifacts must have.
    pub expect: Vec<String>,
    pub plan: PlanSettings,
    /// The groups of archs and the primary shard. `None` without a configuration or package list: the groups
    /// that `discover --propose` would write for the artifacts.
    pub grouping: Option<Grouping>,
    /// A package list, in place of the configuration's selectors and parts.
    pub packages: Option<PackageList>,
    /// Earlier sets that this one updates.
    pub since: Vec<PathBuf>,
    /// The keys that check their receipts.
    pub trust: Trust,
    pub jobs: usize,
    pub strict: bool,
    /// How much of the configured set the run covers.
    pub scope: SetScope,
    /// The configured level of kernel archives in a `.deb` and in an `.rpm`.
    pub archive_levels: [Option<ArchiveLevel>; 2],
}

impl SetSettings {
    /// The formats with uncompressed kernel archives.
    pub fn stored_formats(&self) -> Vec<Format> {
        let levels = Format::ALL.into_iter().zip(self.archive_levels);
        let stored = levels.filter(|(format, level)| {
            self.plan.formats.contains(format) && *level == Some(ArchiveLevel::Stored)
        });
        stored.map(|(format, _)| format).collect()
    }
}

impl SetArguments {
    /// Resolves the settings without reading input. Reports the faults of all settings together.
    pub fn resolve(self, environment: &Environment) -> Result<SetSettings> {
        let mut resolution = Resolution::default();
        let settings = self.resolve_into(environment, &mut resolution);
        resolution.faults.into_settings_faults().settle(settings)
    }

    /// Reads the configuration, resolves the settings, and gathers their faults. `None` means that a file
    /// could not be read, or that a value has no meaning without another, faulty one.
    pub(super) fn resolve_into(
        mut self,
        environment: &Environment,
        resolution: &mut Resolution,
    ) -> Option<SetSettings> {
        let found = Config::of(self.config.as_deref(), &mut resolution.faults);
        let opened = self.packages.as_deref().map(PackageList::open).transpose();
        let listed = resolution.faults.keep(opened);
        // The command line is checked even if a file cannot be read.
        let is_read = found.is_some() && listed.is_some();
        let mut config = found.or_else(|| resolution.faults.keep(Config::defaults()))?;
        let packages = listed.flatten();
        let configured_distro = config.keys.distro.clone();
        resolution.faults.keep(config.override_keys(&self.keys));
        let scope = self.scope(&configured_distro, &config);
        if packages.is_some() {
            resolution.faults.keep(config.refuse_selectors_with_list());
        }
        let keys = resolution.faults.keep(self.receipt_keys.keys());
        let asked = KeyResolver { config: &config, formats: &self.formats() };
        let archive_levels = asked.archive_levels(&mut resolution.faults);
        let choices = self.choices(config, environment, resolution)?;
        let plan = resolution.faults.keep(PlanSettings::new(choices)).filter(|_| is_read)?;
        note_derived(&plan, resolution);
        let jobs = self.jobs.map_or_else(threads::count, usize::from);
        resolution.note("jobs", jobs, Origin::Default);
        let is_decided = self.config.is_some() || self.packages.is_some();
        let grouping = is_decided.then(|| plan.config.grouping.clone());
        if grouping.is_none() {
            for key in ["primary_shard", "architecture_groups"] {
                let unset = Some("decided by the artifacts".to_owned());
                let known = Resolved::new(key, Value::Null, Origin::Proposed);
                resolution.resolved.push(Resolved { unset, ..known });
            }
        }
        let artifacts = self.inputs();
        let Self { since, strict, fetched: FetchedArguments { fetch_cache, expect }, .. } = self;
        // Only the signatures of receipts are judged at a time. A wrong SOURCE_DATE_EPOCH is reported with the
        // changelog date.
        let now = (!since.is_empty()).then(|| environment.now());
        let at = now.and_then(Result::ok).unwrap_or_default();
        let trust = Trust { keys: keys?, at, strict: false };
        Some(SetSettings {
            artifacts,
            fetch_cache,
            expect,
            plan,
            grouping,
            packages,
            since,
            trust,
            jobs,
            strict,
            scope,
            archive_levels,
        })
    }

    /// The inputs of the packages.
    pub(super) fn inputs(&self) -> Vec<InputPath> {
        [&*self.paths, &*self.artifacts].concat()
    }

    /// How much of the configured set the run covers; the configuration names `configured_distro`.
    fn scope(&self, configured_distro: &PerFormat, config: &Config) -> SetScope {
        let formats = self.formats();
        let is_another = formats.contains(&Format::Deb) && config.keys.distro != *configured_distro;
        if !self.only.is_empty() || formats.len() < Format::ALL.len() || is_another {
            SetScope::Limited
        } else if self.since.is_empty() {
            SetScope::WithoutEarlier
        } else {
            SetScope::Whole
        }
    }

    /// Package formats, in order.
    pub(super) fn formats(&self) -> Vec<Format> {
        BTreeSet::from_iter(&self.format).into_iter().copied().collect()
    }

    fn choices(
        &mut self,
        mut config: Config,
        environment: &Environment,
        resolution: &mut Resolution,
    ) -> Option<Choices> {
        let changelog_date = resolution.faults.keep(environment.epoch()).flatten();
        if let Some(seconds) = changelog_date {
            resolution.note(EPOCH, seconds, Origin::Environment { variable: EPOCH });
        }
        for name in self.only.iter().filter(|name| !is_name(name)) {
            let message = format!("--only `{}` is not a valid name", name.escape_debug());
            let hint = "name an artifact (blas), a component (blas_lib) or a package (rocm-blas)";
            resolution.faults.add(Error::new(Kind::Usage, message).hint(hint));
        }
        let formats = self.formats();
        let asked = KeyResolver { config: &config, formats: &formats };
        let distributions = asked.distributions(&mut resolution.faults)?;
        let release = config.keys.release.value(Format::Rpm).unwrap_or_default();
        let tag = distributions.rpm.tag.clone().filter(|tag| !release.ends_with(tag.as_str()));
        if let Some(tag) = tag {
            let tag = config.keys.distribution_tag.rpm.get_or_insert(tag).clone();
            let place = ["distribution_tag", "rpm"];
            resolution.note_key(&config, &place, tag, Origin::Distribution);
        }
        let mut findings = Findings::default();
        if !config.is_set(&["version"]) {
            findings.add(found::VersionUnset { version: UNSET_VERSION.to_owned() });
        }
        let asked = KeyResolver { config: &config, formats: &formats };
        let version = asked.version(&mut resolution.faults)?;
        let names = asked.naming(&version, &mut resolution.faults)?;
        let prefix = asked.prefix(&names, resolution)?;
        let only = std::mem::take(&mut self.only);
        Some(Choices {
            config,
            version,
            names,
            prefix,
            findings,
            distributions,
            formats,
            only,
            changelog_date,
        })
    }
}

/// Notes the values of keys whose defaults depend on other keys.
fn note_derived(plan: &PlanSettings, resolution: &mut Resolution) {
    let kernels = plan.config.folders.kernels.to_string();
    resolution.note_key(&plan.config, &["kpackdir"], kernels, Origin::Default);
    let runpath = plan.runpath();
    let default = if runpath == Runpath::default() { Origin::Default } else { Origin::Scheme };
    resolution.note_key(&plan.config, &["runpath"], runpath.to_string(), default);
    let has_link = plan.series_link.is_some();
    resolution.note_key(&plan.config, &["series_link"], has_link, Origin::Scheme);
    for format in &plan.formats {
        let relation = plan.runtime(*format).map(|it| RelationRecord::from(it).to_string());
        let default = relation.as_ref().map_or(Origin::Default, |_| Origin::Scheme);
        let keys = ["runtime_relation", format.as_str()];
        resolution.note_key(&plan.config, &keys, relation, default);
    }
}

/// Whether `text` may be a name: artifacts are named by folders, so it has no slash or blank.
fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '/')
}

/// The prefix for further checks after a refused one.
const FALLBACK_PREFIX: &str = "/opt/rocm-0.0";

/// Resolves values from keys. A refused value is reported, and replaced by its default for the following checks, so
/// that one fault hides no other. The result is `None` only if rockpack's own defaults are wrong.
struct KeyResolver<'a> {
    config: &'a Config,
    /// The formats that are made, in order.
    formats: &'a [Format],
}

impl KeyResolver<'_> {
    /// The value of a key. A fault is noted with the position of the key, and gives `None`.
    fn keep<T>(&self, key: &str, made: Result<T>, faults: &mut Faults) -> Option<T> {
        faults.keep(made.map_err(|error| self.config.located(&[key], &error)))
    }

    /// The values of `archive_level`. A format that is not made has that of the other one.
    fn archive_levels(&self, faults: &mut Faults) -> [Option<ArchiveLevel>; 2] {
        let mut level = |text: &String| self.keep("archive_level", text.parse(), faults);
        match &self.config.keys.archive_level {
            None => [None; 2],
            Some(PerFormat::One(text)) => [level(text); 2],
            Some(PerFormat::Each(FormatValues { deb, rpm })) => {
                let formats = [self.formats.first(), self.formats.last()];
                formats.map(|format| format?.select(deb, rpm).as_ref().and_then(&mut level))
            }
        }
    }

    /// The tables of `distro`. A format that it names no table for has the default one.
    fn distributions(&self, faults: &mut Faults) -> Option<Distributions> {
        let given = match &self.config.keys.distro {
            PerFormat::One(value) => vec![(None, value)],
            PerFormat::Each(values) => Format::ALL
                .into_iter()
                .filter_map(|it| Some((Some(it), it.select(&values.deb, &values.rpm).as_ref()?)))
                .collect(),
        };
        let mut distributions = faults.keep(Distributions::defaults())?;
        for (format, value) in given {
            let opened = Table::open(value);
            // The errors of a table or of a system name their own files.
            let has_place = opened.as_ref().is_err_and(|error| error.place().file.is_some());
            let opened =
                if has_place { faults.keep(opened) } else { self.keep("distro", opened, faults) };
            let Some(table) = opened else { continue };
            let is_plain = format.is_none() && matches!(table, Table::Rpm(_));
            if is_plain && !self.formats.contains(&Format::Rpm) && self.config.is_given(&["distro"])
            {
                let message = format!("`{value}` is a distribution with rpm, and no .rpm is made");
                let error = Error::new(Kind::Usage, message).hint("name one for .deb packages");
                self.keep("distro", Err::<(), _>(error), faults);
            }
            self.keep("distro", distributions.set(table, format), faults);
        }
        Some(distributions)
    }

    /// The values of a key for deb and rpm. A format that is not made has the value of the other one. Values
    /// that `check` refuses are noted, and give `None`.
    fn values<'v>(
        &self,
        key: &str,
        given: &'v PerFormat,
        check: impl Fn(&str) -> Result<Version>,
        faults: &mut Faults,
    ) -> Option<[&'v str; 2]> {
        let asked = match given {
            PerFormat::One(_) => self.formats.get(..1)?,
            PerFormat::Each(_) => self.formats,
        };
        let checked = asked.iter().map(|format| {
            let value = given.value(*format)?;
            check(value).map(|_| value)
        });
        let values: Vec<_> = checked.map(|value| self.keep(key, value, faults)).collect();
        Some([(*values.first()?)?, (*values.last()?)?])
    }

    fn version(&self, faults: &mut Faults) -> Option<Version> {
        let keys = &self.config.keys;
        let check_version = |text: &str| Version::new(text, UNSET_RELEASE);
        let check_release = |text: &str| Version::new(UNSET_VERSION, text);
        let versions = self.values("version", &keys.version, check_version, faults);
        let releases = self.values("release", &keys.release, check_release, faults);
        let releases = releases.unwrap_or([UNSET_RELEASE; 2]);
        let version = Version::of_formats(versions.unwrap_or([UNSET_VERSION; 2]), releases);
        let version = self
            .keep("version", version, faults)
            .or_else(|| faults.keep(Version::new(UNSET_VERSION, UNSET_RELEASE)))?
            .with_epoch(keys.epoch);
        let with_release_type = keys.release_type.as_deref().and_then(|release_type| {
            self.keep("release_type", version.clone().with_release_type(release_type), faults)
        });
        let mut version = with_release_type.unwrap_or(version);
        let tags = &keys.distribution_tag;
        for (format, tag) in [(Format::Deb, &tags.deb), (Format::Rpm, &tags.rpm)] {
            let tagged = tag.as_ref().map(|tag| version.clone().with_tag(format, tag)).transpose();
            let place = ["distribution_tag", format.as_str()];
            let located = tagged.map_err(|error| self.config.located(&place, &error));
            version = faults.keep(located).flatten().unwrap_or(version);
        }
        Some(version)
    }

    fn naming(&self, version: &Version, faults: &mut Faults) -> Option<Naming> {
        let keys = &self.config.keys;
        let chosen = if self.config.is_given(&["scheme"]) && keys.scheme.ends_with(".toml") {
            // The errors of a scheme file have positions in that file.
            faults.keep(Scheme::open(Path::new(&keys.scheme)))
        } else {
            self.keep("scheme", Scheme::shipped(&keys.scheme), faults)
        };
        let is_read = chosen.is_some();
        let scheme = chosen.or_else(|| faults.keep(Scheme::shipped(&Keys::default().scheme)))?;
        let names = Naming::new(scheme.clone(), version, keys.variant.as_deref());
        let mut names = self
            .keep("variant", names, faults)
            .or_else(|| faults.keep(Naming::new(scheme, version, None)))?;
        if self.keep("version", names.check_version(), faults).is_none() {
            let version = Version::new(UNSET_VERSION, UNSET_RELEASE);
            names = names.with_version(faults.keep(version)?);
        }
        if is_read {
            faults.keep(names.check_templates());
        }
        Some(names)
    }

    fn prefix(&self, names: &Naming, resolution: &mut Resolution) -> Option<Prefix> {
        let faults = &mut resolution.faults;
        let chosen = match &self.config.keys.prefix {
            Some(text) => self.keep("prefix", Prefix::new(text), faults),
            None => {
                let own = names.prefix().and_then(|text| Prefix::new(&text));
                self.keep("version", own, faults)
            }
        };
        let shown = chosen.as_ref().map(Prefix::absolute);
        let prefix = chosen.or_else(|| faults.keep(Prefix::new(FALLBACK_PREFIX)));
        resolution.note_key(self.config, &["prefix"], shown, Origin::Scheme);
        prefix
    }
}

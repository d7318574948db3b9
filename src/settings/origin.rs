//! The origins of values: options on the command line, and every setting with its value and origin.

use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Command};
use derive_more::Display;
use rockpack_core::error::{Faults, Result};
use rockpack_plan::config::{Config, Position, option_of};
use serde::Serialize;
use serde_json::{Map, Value};

use super::Environment;
use super::build::BuildArguments;
use super::schema::{self, KeyDefault};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Display)]
#[display(rename_all = "lowercase")]
#[serde(rename_all = "lowercase", tag = "origin")]
pub enum Origin {
    /// A default, because nothing sets the value.
    Default,
    Scheme,
    /// The distribution that `distro` names.
    Distribution,
    File(Position),
    /// An option of the command line.
    Flag {
        /// The option with its dashes, e.g. `--version`.
        option: String,
    },
    /// A variable of the environment.
    Environment {
        variable: &'static str,
    },
    /// The contents of the artifacts, which have not been read.
    Proposed,
}

impl Origin {
    /// The option for a key.
    pub fn flag(key: &str) -> Self {
        Self::Flag { option: option_of(key) }
    }

    /// The origin of the value at `keys`; `None` if neither command line nor configuration sets it.
    pub(super) fn of_key(config: &Config, keys: &[&str]) -> Option<Self> {
        if config.is_given(keys) {
            Some(Self::flag(&keys.concat()))
        } else {
            config.position(keys).map(Self::File)
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Resolved {
    /// The key or option: `validation.untransformable`, `--jobs`.
    pub key: String,
    /// The value; null if unset.
    pub value: Value,
    /// Words for an unset value, e.g. its default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unset: Option<String>,
    #[serde(flatten)]
    pub origin: Origin,
}

impl Resolved {
    pub(super) fn new(key: impl Into<String>, value: impl Into<Value>, origin: Origin) -> Self {
        Self { key: key.into(), value: value.into(), unset: None, origin }
    }
}

/// Faults and values that were noted while settings were resolved.
#[derive(Debug, Default)]
pub(crate) struct Resolution {
    pub faults: Faults,
    /// Values of keys and options that differ from the text on the command line.
    pub resolved: Vec<Resolved>,
}

impl Resolution {
    /// Notes the value of a key or option.
    pub fn note(&mut self, key: &str, value: impl Into<Value>, origin: Origin) {
        self.resolved.push(Resolved::new(key, value, origin));
    }

    /// Notes the value of a key; `default` is its origin if nothing sets it.
    pub fn note_key(
        &mut self,
        config: &Config,
        keys: &[&str],
        value: impl Into<Value>,
        default: Origin,
    ) {
        let origin = Origin::of_key(config, keys).unwrap_or(default);
        self.note(&keys.join("."), value, origin);
    }
}

/// Options that change only the output to the terminal.
const OUTPUT_OPTIONS: [&str; 6] = ["help", "json", "log_format", "quiet", "verbose", "color"];

/// The options of a command, and those on the command line.
pub struct GivenOptions {
    command: Command,
    matches: ArgMatches,
}

impl GivenOptions {
    /// The options of the innermost command of `matches`.
    pub fn of(command: &Command, matches: &ArgMatches) -> Self {
        let found = matches.subcommand();
        let inner = found.and_then(|(name, inner)| Some((command.find_subcommand(name)?, inner)));
        match inner {
            Some((command, matches)) => Self::of(command, matches),
            None => Self { command: command.clone(), matches: matches.clone() },
        }
    }

    /// All options that change results, by key and in the order of the help.
    pub(super) fn options(&self) -> Vec<Resolved> {
        let arguments =
            self.command.get_arguments().filter(|argument| argument.get_long().is_some());
        let deciding = arguments.filter(|a| !OUTPUT_OPTIONS.contains(&a.get_id().as_str()));
        let resolved = deciding.map(|argument| {
            let id = argument.get_id().as_str();
            let is_switch = matches!(argument.get_action(), ArgAction::SetTrue);
            let value = match (self.values(id), is_switch) {
                (_, true) => self.matches.get_flag(id).into(),
                (Some(values), false) => match <[Value; 1]>::try_from(values) {
                    Ok([value]) => value,
                    Err(values) => values.into(),
                },
                (None, false) => Value::Null,
            };
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            let (_, default) = schema::split_default(&help);
            let unset = default.filter(|_| value.is_null()).map(str::to_owned);
            Resolved { unset, ..Resolved::new(id, value, self.origin(id)) }
        });
        resolved.collect()
    }

    /// The origin of an option's value.
    pub(super) fn origin(&self, id: &str) -> Origin {
        if self.is_given(id) { Origin::flag(id) } else { Origin::Default }
    }

    fn is_given(&self, id: &str) -> bool {
        // Options of other commands have no value here.
        let known = self.matches.try_contains_id(id).unwrap_or(false);
        known && self.matches.value_source(id) == Some(ValueSource::CommandLine)
    }

    /// The values of an option: numbers as numbers, others as texts.
    fn values(&self, id: &str) -> Option<Vec<Value>> {
        let numbers = self
            .numbers::<u16>(id)
            .or_else(|| self.numbers::<u32>(id))
            .or_else(|| self.numbers::<u64>(id))
            .or_else(|| self.numbers::<i32>(id));
        numbers.or_else(|| {
            let values = self.matches.try_get_raw(id).ok()??;
            Some(values.map(|value| value.to_string_lossy().into()).collect())
        })
    }

    /// The values of an option of type `T`.
    fn numbers<T>(&self, id: &str) -> Option<Vec<Value>>
    where
        T: Copy + Into<Value> + Send + Sync + 'static,
    {
        let numbers = self.matches.try_get_many::<T>(id).ok()??;
        Some(numbers.map(|number| (*number).into()).collect())
    }
}

impl BuildArguments {
    /// Every key of the configuration and every option of the command line, with the values that a build or
    /// plan with these arguments would use.
    pub fn show(self, given: &GivenOptions, environment: &Environment) -> Result<Vec<Resolved>> {
        let mut resolution = Resolution::default();
        let settings = self.resolve_into(given, environment, &mut resolution);
        let Resolution { faults, mut resolved } = resolution;
        let settings = faults.into_settings_faults().settle(settings)?;
        let config = &settings.set.plan.config;
        let keys = ConfiguredValues { config, values: config.values()? };
        let (options, mut shown) = (given.options(), Vec::new());
        for key in schema::keys() {
            let name = key.path.join(".");
            let is_given = key.option.is_some() && config.is_given(&[&name]);
            let option = options.iter().find(|option| is_given && option.key == name);
            match remove_setting(&mut resolved, &name).or_else(|| option.cloned()) {
                Some(known) => shown.push(known),
                None => keys.add(&key.path, key.default, &mut shown),
            }
        }
        let as_keys: Vec<_> = schema::keys().into_iter().filter_map(|key| key.option).collect();
        for option in options.into_iter().filter(|it| !as_keys.contains(&option_of(&it.key))) {
            let settled = remove_setting(&mut resolved, &option.key);
            let is_given = matches!(option.origin, Origin::Flag { .. });
            let known = settled.filter(|_| !is_given).unwrap_or(option);
            shown.push(Resolved { key: option_of(&known.key), ..known });
        }
        shown.extend(resolved);
        Ok(shown)
    }
}

fn remove_setting(resolved: &mut Vec<Resolved>, key: &str) -> Option<Resolved> {
    let index = resolved.iter().position(|known| known.key == key)?;
    Some(resolved.remove(index))
}

/// The values in the configuration file.
struct ConfiguredValues<'a> {
    config: &'a Config,
    values: Map<String, Value>,
}

impl ConfiguredValues<'_> {
    /// Adds the values at and below `path`, or the default.
    fn add(&self, path: &[String], default: Option<KeyDefault>, shown: &mut Vec<Resolved>) {
        // The values of a map are shown with the map.
        if path.iter().any(|part| part == "*") {
            return;
        }
        let mut parts = path.iter();
        let first = parts.next().and_then(|part| self.values.get(part));
        let value = first.and_then(|first| parts.try_fold(first, |value, part| value.get(part)));
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        match value {
            Some(value) => self.add_leaves(&path, value, shown),
            None => {
                let (value, unset) = match default {
                    Some(KeyDefault::Value(value)) => (value, None),
                    Some(KeyDefault::Words(words)) => (Value::Null, Some(words)),
                    None => (Value::Null, None),
                };
                let known = Resolved::new(path.join("."), value, Origin::Default);
                shown.push(Resolved { unset, ..known });
            }
        }
    }

    fn add_leaves(&self, path: &[&str], value: &Value, shown: &mut Vec<Resolved>) {
        match value {
            Value::Object(map) if !map.is_empty() => {
                for (name, value) in map {
                    self.add_leaves(&[path, &[name]].concat(), value, shown);
                }
            }
            _ => {
                let position = self.config.position(path).map(Origin::File);
                let origin = position.unwrap_or(Origin::Default);
                shown.push(Resolved::new(path.join("."), value.clone(), origin));
            }
        }
    }
}

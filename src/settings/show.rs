//! Lists every setting with its value and origin.

use rockpack_core::error::Result;
use serde_json::{Map, Value};

use super::build::BuildArguments;
use super::environment::Environment;
use super::given::GivenOptions;
use super::origin::{Gathered, Origin, Resolved};
use super::schema::{self, KeyDefault};
use rockpack_plan::config::{Config, option_of};

impl BuildArguments {
    /// Every key of the configuration and every option of the command line, with the values that a build or
    /// plan with these arguments would use.
    pub fn show(self, given: &GivenOptions, environment: &Environment) -> Result<Vec<Resolved>> {
        let mut gathered = Gathered::default();
        let settings = self.gather(given, environment, &mut gathered);
        let Gathered { faults, mut resolved } = gathered;
        let settings = faults.of_settings().settle(settings)?;
        let keys = ConfiguredValues::of(&settings.set.plan.config)?;
        let (options, mut shown) = (given.options(), Vec::new());
        for key in schema::keys() {
            let name = key.path.join(".");
            let is_given = key.option.is_some() && settings.set.plan.config.is_given(&[&name]);
            let option = options.iter().find(|option| is_given && option.key == name);
            match take(&mut resolved, &name).or_else(|| option.cloned()) {
                Some(known) => shown.push(known),
                None => keys.add(&key.path, key.default, &mut shown),
            }
        }
        let as_keys: Vec<_> = schema::keys().into_iter().filter_map(|key| key.option).collect();
        for option in options.into_iter().filter(|it| !as_keys.contains(&option_of(&it.key))) {
            let settled = take(&mut resolved, &option.key);
            let known = settled.filter(|_| !option.is_given()).unwrap_or(option);
            shown.push(Resolved { key: option_of(&known.key), ..known });
        }
        shown.extend(resolved);
        Ok(shown)
    }
}

fn take(resolved: &mut Vec<Resolved>, key: &str) -> Option<Resolved> {
    let index = resolved.iter().position(|known| known.key == key)?;
    Some(resolved.remove(index))
}

/// The values in the configuration file.
struct ConfiguredValues<'a> {
    config: &'a Config,
    values: Map<String, Value>,
}

impl<'a> ConfiguredValues<'a> {
    fn of(config: &'a Config) -> Result<Self> {
        Ok(Self { config, values: config.values()? })
    }

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

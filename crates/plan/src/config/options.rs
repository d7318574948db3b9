//! Keys that are also options. The command line overrides the configuration.

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use rockpack_core::error::{Error, Result};
use schemars::Schema;
use serde_json::Value;

use super::configuration::Config;
use super::keys::Keys;

/// The keys that the command line has as options.
#[derive(Debug, Clone)]
pub struct KeyOptions(ArgMatches);

impl Args for KeyOptions {
    fn augment_args(command: Command) -> Command {
        let schema = schemars::schema_for!(Keys);
        let keys = Keys::augment_args(Command::new("keys").next_display_order(None));
        command.args(keys.get_arguments().map(|argument| as_option(argument.clone(), &schema)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// The option of a key: optional, with the default at the end of its help.
fn as_option(option: Arg, keys: &Schema) -> Arg {
    let default = keys
        .pointer(&format!("/properties/{}/default", option.get_id()))
        .and_then(Value::as_str)
        .map(|text| format!(" [default: {text}]"))
        .unwrap_or_default();
    let texts = [option.get_long_help(), option.get_help()];
    match texts.map(|text| Some(format!("{}{default}", text?))) {
        [Some(long_help), _] => option.long_help(long_help),
        [None, help] => option.help(help.unwrap_or_default()),
    }
    .required(false)
}

impl FromArgMatches for KeyOptions {
    fn from_arg_matches(matches: &ArgMatches) -> clap::error::Result<Self> {
        Ok(Self(matches.clone()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> clap::error::Result<()> {
        self.0 = matches.clone();
        Ok(())
    }
}

impl Config {
    /// Overrides keys with the values of the command line.
    pub fn put(&mut self, options: &KeyOptions) -> Result<()> {
        let KeyOptions(matches) = options;
        self.keys
            .update_from_arg_matches(matches)
            .map_err(|error| Error::bug("an option of a key has no value").cause(error))?;
        for argument in Keys::augment_args(Command::new("keys")).get_arguments() {
            let key = argument.get_id().as_str();
            if matches.contains_id(key) {
                self.document.give(key);
            }
        }
        Ok(())
    }
}

//! The options that a command has, and those on the command line.

use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Args, Command};
use serde_json::Value;

use super::origin::{Origin, Resolved};
use rockpack_plan::config::option_of;

/// Options that change how a command prints, but not what it makes.
const PRINTING: [&str; 6] = ["help", "json", "log_format", "quiet", "verbose", "color"];

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

    /// The options of `T` on the command line, as they are written.
    pub fn options_of<T: Args>(&self) -> Vec<String> {
        let command = T::augment_args(Command::new("options"));
        let ids = command.get_arguments().map(|argument| argument.get_id().as_str());
        let given = ids.filter(|id| self.is_given(id));
        given.map(option_of).collect()
    }

    /// All options that change results, by key and in the order of the help.
    pub(super) fn options(&self) -> Vec<Resolved> {
        let arguments =
            self.command.get_arguments().filter(|argument| argument.get_long().is_some());
        let deciding = arguments.filter(|a| !PRINTING.contains(&a.get_id().as_str()));
        let resolved = deciding.map(|argument| {
            let id = argument.get_id().as_str();
            let is_switch = matches!(argument.get_action(), ArgAction::SetTrue);
            let value = match (self.values(id), is_switch) {
                (_, true) => self.matches.get_flag(id).into(),
                (Some(values), false) => one_or_all(values),
                (None, false) => Value::Null,
            };
            let unset = default_in(argument).filter(|_| value.is_null());
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

fn one_or_all(values: Vec<Value>) -> Value {
    match <[Value; 1]>::try_from(values) {
        Ok([value]) => value,
        Err(values) => values.into(),
    }
}

/// The default that the help of an option describes.
fn default_in(argument: &clap::Arg) -> Option<String> {
    let help = argument.get_help()?.to_string();
    let (_, default) = super::schema::split_default(&help);
    default.map(str::to_owned)
}

//! Settings: command line, environment, configuration, naming scheme and defaults, resolved to one value of
//! checked parts.
//!
//! [`Keys`](rockpack_plan::config::Keys) declares the keys of the configuration. Each command declares its other
//! options. Everything that can be checked without input is checked here, before a shard, a package or an earlier set
//! is opened. Faults of several settings are reported together, but the first fault ends the reading of a file that
//! cannot be parsed, of the templates of a naming scheme, and of the further keys of a repository. The stage that reads
//! the input checks the rest, such as a primary shard that does not exist.
//!
//! This module has what several commands share: the environment, output paths, and the memory option.

mod artifacts;
mod build;
mod origin;
mod publish;
mod schema;
mod set;
mod signing;
mod verify;
mod wheel;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use clap::builder::{OsStringValueParser, PathBufValueParser, TypedValueParser};
use rockpack_core::error::{Error, Kind, Result};
use rockpack_core::run::{Budget, Limits, parse_size, threads};
use rockpack_core::tree::TreePath;
use rockpack_signing::judge::CheckTime;
use rockpack_signing::{PASSPHRASE_VARIABLE, Passphrase};
use rockpack_split::input::tree::InputPath;

pub use artifacts::{
    DiscoverArguments, DiscoverSettings, ProposalPlace, RecombineArguments, SplitArguments,
    target_id,
};
pub use build::{BuildArguments, BuildSettings};
pub use origin::{GivenOptions, Origin, Resolved};
pub use publish::RepoArguments;
pub use schema::{KeyDefault, KeyDocument, key_list, keys, schema};
pub use set::{SetArguments, SetSettings};
pub use signing::SigningArguments;
pub use verify::{VerifyArguments, VerifySettings};
pub use wheel::WheelArguments;

/// The variable that replaces the current time.
const EPOCH: &str = "SOURCE_DATE_EPOCH";

/// The variables that are settings, unparsed.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    pub source_date_epoch: Option<OsString>,
    /// ROCKPACK_SIGN_PASSPHRASE, which is never shown.
    pub passphrase: Option<Passphrase>,
}

impl Environment {
    pub fn of_process() -> Self {
        let passphrase = std::env::var_os(PASSPHRASE_VARIABLE);
        Self {
            source_date_epoch: std::env::var_os(EPOCH),
            passphrase: passphrase.map(|text| Passphrase::new(text.into_encoded_bytes())),
        }
    }

    /// SOURCE_DATE_EPOCH in seconds since 1970; `None` if unset.
    pub fn epoch(&self) -> Result<Option<i64>> {
        let Some(text) = &self.source_date_epoch else {
            return Ok(None);
        };
        let seconds = text.to_str().and_then(|text| text.parse().ok());
        seconds.filter(|seconds| *seconds >= 0).map(Some).ok_or_else(|| {
            Error::new(Kind::Usage, format!("{EPOCH} is {}", text.display()))
                .hint("set it to a number of seconds since 1970-01-01, or unset it")
        })
    }

    /// The current time: SOURCE_DATE_EPOCH or the clock, which is read once. A clock before 1970 is replaced by
    /// SOURCE_DATE_EPOCH.
    pub fn now(&self) -> Result<CheckTime> {
        let epoch = self.epoch()?;
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).ok();
        let clock = since_1970.and_then(|since| i64::try_from(since.as_secs()).ok());
        let time = epoch.or(clock).ok_or_else(|| {
            Error::new(Kind::Usage, "the clock is set before 1970")
                .hint("set the clock, or SOURCE_DATE_EPOCH")
        })?;
        Ok(CheckTime { time, clock: clock.unwrap_or(time) })
    }
}

/// Largest expected difference between clocks, in seconds.
const DAY: i64 = 86_400;

/// A parser of output paths. Refuses `-`, which means standard output to other programs: nothing could be written
/// there, and a file of that name is unlikely to be intended.
pub fn output_path() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| {
        if path == Path::new("-") {
            let message = "the output is a file or folder, not standard output; give a name, or \
                           `./-` if it is `-`";
            Err(message.to_owned())
        } else {
            Ok(path)
        }
    })
}

/// A parser of inputs, `[NAME=]PATH`.
pub fn input_path() -> impl TypedValueParser<Value = InputPath> {
    OsStringValueParser::new().try_map(|text| {
        InputPath::parse(text).map_err(|error| {
            format!("{}: {}", error.message(), error.hint_text().unwrap_or_default())
        })
    })
}

/// The option that selects one of several install prefixes in an input.
#[derive(Debug, Default, Args)]
pub struct PrefixArgument {
    /// Install prefix to use, if a DESTDIR has several
    #[arg(long, value_name = "DIR", value_parser = prefix_path)]
    pub prefix: Option<TreePath>,
}

/// Parses an absolute path.
fn prefix_path(text: &str) -> Result<TreePath, String> {
    let path = text.strip_prefix('/').ok_or("it is not absolute")?;
    TreePath::new(path.trim_end_matches('/')).map_err(|error| error.message().to_owned())
}

/// The memory option, shared by all commands with large outputs.
#[derive(Debug, Default, Args)]
pub struct MemoryArguments {
    /// Memory limit, e.g. 4G [default: a quarter of the machine's]
    ///
    /// The output does not depend on it. Less memory means fewer threads, and larger anonymous temporary files next to
    /// the output
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    memory: Option<u64>,
}

impl MemoryArguments {
    /// The budget of a command that compresses no payloads.
    pub fn budget(&self) -> Budget {
        Budget::new(Limits::of_reader(self.memory, threads::count()))
    }
}

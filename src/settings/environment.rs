//! Settings from the environment of the process.

use std::ffi::OsString;
use std::time::{SystemTime, UNIX_EPOCH};

use rockpack_core::error::{Error, Kind, Result};

use rockpack_signing::judge::Moment;
use rockpack_signing::{PASSPHRASE_VARIABLE, Passphrase};

/// The variable that replaces the current time.
pub(super) const EPOCH: &str = "SOURCE_DATE_EPOCH";

/// The variables that are settings, unparsed.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// SOURCE_DATE_EPOCH.
    pub source_date_epoch: Option<OsString>,
    /// ROCKPACK_SIGN_PASSPHRASE, which is never shown.
    pub passphrase: Option<Passphrase>,
}

impl Environment {
    /// Reads the environment of this process.
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

    /// The current time: SOURCE_DATE_EPOCH or the clock. Reads the clock once.
    pub fn now(&self) -> Result<Now> {
        let (epoch, clock) = (self.epoch()?, clock());
        let time = epoch.or(clock).ok_or_else(|| {
            Error::new(Kind::Usage, "the clock stands before 1970")
                .hint("set the clock, or SOURCE_DATE_EPOCH")
        })?;
        Ok(Now { time, clock: clock.unwrap_or(time) })
    }
}

/// The time that outputs state, and the time of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// SOURCE_DATE_EPOCH, or else the clock, in seconds since 1970.
    pub time: i64,
    /// The clock, in seconds since 1970; the same as `time` if the clock is before 1970.
    pub clock: i64,
}

impl Now {
    /// The moment at which keys and signatures are judged.
    pub fn moment(self) -> Moment {
        Moment { time: self.time, clock: self.clock }
    }
}

/// Largest difference between clocks that is expected, in seconds.
pub(super) const DAY: i64 = 86_400;

/// The clock, in seconds since 1970; `None` if it is before 1970.
fn clock() -> Option<i64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_secs()).ok()
}

//! What the environment of the process says.

use std::ffi::OsString;
use std::time::{SystemTime, UNIX_EPOCH};

use rockpack_base::error::{Error, Kind, Result};

use crate::signing::judge::Moment;
use crate::signing::{PASSPHRASE_VARIABLE, Passphrase};

/// The variable that stands for the time.
pub(super) const EPOCH: &str = "SOURCE_DATE_EPOCH";

/// The variables that are settings, as they are set.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// SOURCE_DATE_EPOCH.
    pub source_date_epoch: Option<OsString>,
    /// ROCKPACK_SIGN_PASSPHRASE, which is never shown.
    pub passphrase: Option<Passphrase>,
}

impl Environment {
    /// That of this process.
    pub fn of_process() -> Self {
        let passphrase = std::env::var_os(PASSPHRASE_VARIABLE);
        Self {
            source_date_epoch: std::env::var_os(EPOCH),
            passphrase: passphrase.map(|text| Passphrase::new(text.into_encoded_bytes())),
        }
    }

    /// SOURCE_DATE_EPOCH in seconds since 1970, if set.
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

    /// The time: SOURCE_DATE_EPOCH's, or the clock's. The clock is read once.
    pub fn now(&self) -> Result<Now> {
        let (epoch, clock) = (self.epoch()?, clock());
        let time = epoch.or(clock).ok_or_else(|| {
            Error::new(Kind::Usage, "the clock stands before 1970")
                .hint("set the clock, or SOURCE_DATE_EPOCH")
        })?;
        Ok(Now { time, clock: clock.unwrap_or(time) })
    }
}

/// The time that is stated of what is made, and the time that it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// SOURCE_DATE_EPOCH, or else what the clock shows, in seconds since 1970.
    pub time: i64,
    /// What the clock shows, in seconds since 1970; the time that is stated where it stands before.
    pub clock: i64,
}

impl Now {
    /// When keys and signatures are judged.
    pub fn moment(self) -> Moment {
        Moment { time: self.time, clock: self.clock }
    }
}

/// Clocks differ by less than this, in seconds.
pub(super) const DAY: i64 = 86_400;

/// What the clock shows, in seconds since 1970, if that is not before.
fn clock() -> Option<i64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since.as_secs()).ok()
}

//! What the environment of the process says.

use std::ffi::OsString;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::{Error, Kind, Result};
use crate::signing::Passphrase;

/// The variable that stands for the time.
pub(super) const EPOCH: &str = "SOURCE_DATE_EPOCH";

/// The variable with the passphrase of the signing key.
pub(super) const PASSPHRASE: &str = "ROCKPACK_SIGN_PASSPHRASE";

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
        let passphrase = std::env::var_os(PASSPHRASE);
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

    /// The time, in seconds since 1970: SOURCE_DATE_EPOCH's, or the clock's.
    pub fn now(&self) -> Result<i64> {
        if let Some(seconds) = self.epoch()? {
            return Ok(seconds);
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let seconds = since.ok().and_then(|since| i64::try_from(since.as_secs()).ok());
        seconds.ok_or_else(|| {
            Error::new(Kind::Usage, "the clock stands before 1970")
                .hint("set the clock, or SOURCE_DATE_EPOCH")
        })
    }
}

//! What the environment of the process says.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::{Error, Kind, Result};

/// SOURCE_DATE_EPOCH: seconds since the epoch, if set.
pub(super) fn source_date_epoch() -> Result<Option<i64>> {
    let Some(text) = std::env::var_os("SOURCE_DATE_EPOCH") else {
        return Ok(None);
    };
    let seconds = text.to_str().and_then(|text| text.parse().ok()).filter(|seconds| *seconds >= 0);
    seconds.map(Some).ok_or_else(|| {
        Error::new(Kind::Usage, format!("SOURCE_DATE_EPOCH is {}", text.display()))
            .hint("set it to a number of seconds since 1970-01-01, or unset it")
    })
}

/// The time, in seconds since the epoch: SOURCE_DATE_EPOCH's, or the clock's.
pub(super) fn now() -> Result<i64> {
    if let Some(seconds) = source_date_epoch()? {
        return Ok(seconds);
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = since.ok().and_then(|since| i64::try_from(since.as_secs()).ok());
    seconds.ok_or_else(|| Error::new(Kind::Usage, "the clock stands before 1970").hint("set it"))
}

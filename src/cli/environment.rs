//! What the environment of the process says.

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

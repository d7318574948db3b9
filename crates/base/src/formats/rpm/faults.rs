//! Errors about what a package says of itself.

use crate::error::{Error, Kind};

/// The package does not follow the format.
pub(super) fn fault(message: &str) -> Error {
    Error::malformed(message.to_owned()).structure("rpm")
}

/// The package is not what its header or signature states.
pub(super) fn mismatch(message: &str) -> Error {
    Error::new(Kind::Verify, message.to_owned()).structure("rpm")
}

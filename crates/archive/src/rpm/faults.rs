//! Errors about contradictory or invalid packages.

use rockpack_core::error::{Error, Kind};

/// Makes an error for a package that does not follow the format.
pub(super) fn fault(message: &str) -> Error {
    Error::malformed(message.to_owned()).structure("rpm")
}

/// Makes an error for a package that contradicts its header or signature.
pub(super) fn mismatch(message: &str) -> Error {
    Error::new(Kind::Verify, message.to_owned()).structure("rpm")
}

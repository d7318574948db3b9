//! The memory of commands without an option for it.

use rockpack_core::run::{Budget, Limits};

/// The budget of commands without an option for it.
pub(super) fn by_default() -> Budget {
    Budget::new(Limits::of_machine())
}

//! Sets that take the place of others: of earlier versions, and of packages under former names.

mod effect;
mod kinds;
pub(super) mod since;
pub(super) mod standing;
pub(super) mod upgrades;

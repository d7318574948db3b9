//! Sets that take the place of others: of earlier versions, and of packages under former names.

pub(super) mod effect;
mod kinds;
pub(super) mod since;
pub(super) mod upgrades;

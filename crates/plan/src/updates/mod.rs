//! Updates: sets that replace those of earlier versions, or packages under former names.

mod effect;
pub(super) mod imports;
mod kinds;
pub(super) mod since;
pub(super) mod standing;
pub(super) mod upgrades;

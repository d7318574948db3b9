//! Earlier sets, and what the signatures of their receipts prove.

use std::path::Path;

use rockpack_base::error::Result;
use rockpack_base::run::Budget;

use crate::receipt::listing::{self, Listing};
use crate::signing::Trust;

/// Reads the set at `path`. Fails if it is a receipt with a bad signature.
pub(super) fn read(path: &Path, trust: &Trust, budget: &Budget) -> Result<Listing> {
    listing::read(path, budget, &|receipt| trust.receipt_doubt(path, receipt))
}

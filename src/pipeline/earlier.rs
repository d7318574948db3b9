//! Earlier sets, and what the signatures of their receipts prove.

use std::path::Path;

use rockpack_core::error::Result;
use rockpack_core::run::Budget;

use rockpack_package::receipt::listing::{self, Listing};
use rockpack_signing::Trust;

/// Reads the set at `path`. Fails if it is a receipt with a bad signature.
pub(super) fn read(path: &Path, trust: &Trust, budget: &Budget) -> Result<Listing> {
    listing::read(path, budget, &|receipt| trust.receipt_doubt(path, receipt))
}

//! Earlier sets, and what the signatures of their receipts prove.

use std::path::Path;

use rockpack_base::content::{KEY_FILE_LIMIT, is_there, read_small};
use rockpack_base::error::{Error, Kind, Result, ResultExt};
use rockpack_base::run::Budget;

use crate::receipt::listing::{self, Listing};
use crate::receipt::signature_path;
use crate::report::ReceiptDoubt;
use crate::signing::{ReceiptSignature, Trust};

/// Reads the set at `path`. Fails if it is a receipt with a bad signature.
pub(super) fn read(path: &Path, trust: &Trust, budget: &Budget) -> Result<Listing> {
    let signature = signature_path(path);
    listing::read(path, budget, &|receipt| {
        if !is_there(&signature)? {
            return Ok(Some(ReceiptDoubt::Unsigned));
        }
        let armored = read_small(&signature, KEY_FILE_LIMIT, "signature")?;
        match trust.receipt_signature(&armored, receipt).file(&signature)? {
            ReceiptSignature::Good => Ok(None),
            ReceiptSignature::Unknown(_) if trust.keys.is_empty() => Ok(Some(ReceiptDoubt::NoKey)),
            ReceiptSignature::Unknown(keys) => Ok(Some(ReceiptDoubt::OtherKeys(keys))),
            ReceiptSignature::Bad(reason) => {
                let message = format!("has a signature that {reason}");
                let hint = "get the receipt and its signature again from the release";
                Err(Error::new(Kind::Verify, message).file(&signature).hint(hint))
            }
        }
    })
}

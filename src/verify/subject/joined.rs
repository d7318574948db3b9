//! Parts of a set, joined: what one build of all packages would have written.
//!
//! Every machine decided the whole set and says so by the digest of its plan; each receipt says
//! what its own packages are. So if all parts are there, agree on the plan, and each package is in
//! exactly the part that the plan gives it to, then their receipts together are that of one build
//! of the set, and whoever holds the packages against them holds them against that build. What the
//! plan does not cover is the content of files: that every machine read the same is shown by
//! `--against`, where all packages are held against one copy of the artifacts.

use sha2::{Digest, Sha256};

use super::argument::PackageArgument;
use crate::content::hex;
use crate::error::Result;
use crate::receipt::{JoinFault, Receipt, join as join_receipts};
use crate::verify::problem::{Joined, Problem, Problems};

/// Puts one argument in the place of all that are parts, if their receipts can be joined. They are
/// the set if then no check of it fails.
pub(in crate::verify) fn join(
    arguments: &mut Vec<PackageArgument>,
    problems: &mut Problems,
) -> Result<Option<Joined>> {
    for part in arguments.iter().filter_map(|argument| argument.misnamed) {
        problems.add(Problem::PartMisnamed { part });
    }
    let parts: Vec<&Receipt> = arguments.iter().flat_map(|argument| &argument.parts).collect();
    let (receipt, faults) = join_receipts(&parts);
    let count = parts.len();
    for fault in faults {
        problems.add(match fault {
            JoinFault::Missing(part) => Problem::PartMissing { part },
            JoinFault::Different(difference) => Problem::PartsDiffer { difference },
            JoinFault::Package(package, breach) => Problem::PartMismatch { package, breach },
        });
    }
    let Some(receipt) = receipt else { return Ok(None) };
    let receipt_sha256 = hex(&Sha256::digest(receipt.to_bytes()?));
    let joined = Joined { parts: count, receipt_sha256, receipt: receipt.clone() };
    let mut whole = PackageArgument { receipt: Some(receipt), ..PackageArgument::default() };
    for argument in arguments.iter_mut().filter(|argument| !argument.parts.is_empty()) {
        whole.packages.append(&mut argument.packages);
        whole.documents.append(&mut argument.documents);
        argument.parts.clear();
    }
    arguments.push(whole);
    Ok(Some(joined))
}

//! Parts of a set, joined: what one build of all packages would have written.
//!
//! Every machine decided the whole set and says so by the digest of its plan; each receipt says
//! what its own packages are. So if all parts are there, agree on the plan, and each package is in
//! exactly the part that the plan gives it to, then their receipts together are that of one build
//! of the set, and comparing the packages with them compares with that build. The
//! plan does not cover the content of files: `--against` shows that every machine read the same, since it
//! compares all packages with one copy of the artifacts.

use rockpack_core::content::hex;
use rockpack_core::error::Result;
use sha2::{Digest, Sha256};

use super::argument::PackageArgument;
use crate::problem::{Joined, Problem, Problems};
use rockpack_package::Format;
use rockpack_package::receipt::{JoinFault, Receipt, join as join_receipts};

/// Puts one argument in the place of all that are parts of a set, if their receipts can be joined. They
/// are the set if then no check of it fails. Parts of several releases are sets of their own; the
/// highest release is the one that is told.
pub(crate) fn join(
    arguments: &mut Vec<PackageArgument>,
    problems: &mut Problems,
) -> Result<Option<Joined>> {
    for part in arguments.iter().filter_map(|argument| argument.misnamed) {
        problems.add(Problem::PartMisnamed { part });
    }
    let parts = arguments.iter().flat_map(|argument| &argument.parts);
    let mut releases: Vec<String> = parts.map(Receipt::release).collect();
    releases.sort_by(|one, other| Format::Rpm.compare_versions(one, other));
    releases.dedup();
    let mut newest = None;
    for release in releases {
        newest = join_release(&release, arguments, problems)?;
    }
    Ok(newest)
}

/// Does the same with the parts of one release.
fn join_release(
    release: &str,
    arguments: &mut Vec<PackageArgument>,
    problems: &mut Problems,
) -> Result<Option<Joined>> {
    let parts: Vec<&Receipt> = arguments
        .iter()
        .flat_map(|argument| &argument.parts)
        .filter(|receipt| receipt.release() == release)
        .collect();
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
    let joined = Joined { parts: count, receipt_sha256, signed: None, receipt: receipt.clone() };
    let mut whole = PackageArgument { receipt: Some(receipt), ..PackageArgument::default() };
    let of_release =
        arguments.iter_mut().filter(|it| it.parts.iter().any(|part| part.release() == release));
    for argument in of_release {
        whole.packages.append(&mut argument.packages);
        whole.documents.append(&mut argument.documents);
        argument.parts.clear();
    }
    arguments.push(whole);
    Ok(Some(joined))
}

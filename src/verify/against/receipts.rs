//! Statements of receipts about artifacts, compared with these: the shard of each code object, and the paths
//! that are left out on purpose.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_base::content::hex;
use rockpack_base::tree::TreePath;

use super::inputs::{ArtifactInputs, CodeInFile};
use crate::receipt::{FILE_NAME, Receipt};
use crate::verify::checks::excuses::Excuses;
use crate::verify::problem::{
    CodeLoss, PackagePath, Problem, ProblemPlace, Problems, ReceiptDifference, RecordFault,
};

/// Adds what the receipt says and the artifacts contradict.
pub(in crate::verify) fn check(
    receipt: &Receipt,
    excuses: &Excuses,
    inputs: &ArtifactInputs,
    problems: &mut Problems,
) {
    check_shards(receipt, inputs, problems);
    for path in &receipt.left_out {
        if !is_of_artifacts(path, receipt, excuses, inputs) {
            let place = ProblemPlace::File(PackagePath::new(FILE_NAME, path));
            let difference = ReceiptDifference::NothingLeftOut;
            problems.add(Problem::ReceiptMismatch { place, difference });
        }
    }
}

/// Adds the code objects that no shard of that name has. Where the artifacts lie in folders of other names
/// than at the build, none is compared; nor is what the set keeps of earlier builds, whose shards may have
/// had other names.
fn check_shards(receipt: &Receipt, inputs: &ArtifactInputs, problems: &mut Problems) {
    let mut shards: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for build in inputs.fat.values().flatten() {
        for entry in build.device.entries() {
            shards.entry(hex(&entry.sha256)).or_default().insert(&build.shard);
        }
    }
    for CodeInFile { shard, entry, .. } in inputs.in_files() {
        shards.entry(hex(&entry.sha256)).or_default().insert(shard);
    }
    let all: BTreeSet<&str> = shards.values().flatten().copied().collect();
    let stated = receipt.code_objects.iter().filter_map(|record| record.shard.as_deref());
    if !stated.into_iter().any(|shard| all.contains(shard)) {
        return;
    }
    for record in &receipt.code_objects {
        let (Some(stated), Some(known)) = (&record.shard, shards.get(&record.sha256)) else {
            continue;
        };
        if !known.contains(stated.as_str()) {
            let shards = known.iter().map(|shard| (*shard).to_owned()).collect();
            let fault = RecordFault::OtherShard { shards, stated: stated.clone() };
            let installed = record.place.path().to_owned();
            problems.add(Problem::CodeObjectLost {
                path: installed.clone(),
                target: record.target.clone(),
                sha256: record.sha256.clone(),
                loss: CodeLoss::Recorded { installed, fault },
            });
        }
    }
}

/// Whether the artifacts have something at an absolute path, or files of their folder lie in others.
fn is_of_artifacts(
    path: &str,
    receipt: &Receipt,
    excuses: &Excuses,
    inputs: &ArtifactInputs,
) -> bool {
    let inside = path.strip_prefix(&receipt.prefix).and_then(|path| path.strip_prefix('/'));
    let Some(path) = inside.and_then(|path| TreePath::new(path).ok()) else { return false };
    let mut above = std::iter::successors(path.parent(), TreePath::parent);
    // Folders of kernel archives do not belong to the compared artifacts.
    path.name() == ".kpack"
        || inputs.has(&path)
        || above.any(|folder| excuses.moved.contains(&folder))
}

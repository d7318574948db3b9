//! Several wheels: a fault of one does not hide those of the others.

use std::path::PathBuf;

use rockpack_core::error::Error;
use rockpack_core::run::Budget;
use rockpack_report::{Findings, PackageLeftOut, found};

use super::{Made, Run};

/// Wheels that cannot be split, with the reasons.
pub(super) type BadWheels = Vec<(PathBuf, Error)>;

impl Run<'_> {
    /// Splits the wheels at `paths`, and returns the bad ones with their faults.
    pub(super) fn split_all(&self, paths: &[PathBuf], budget: &Budget) -> (Made, BadWheels) {
        let (mut made, mut bad) = (Made::default(), Vec::new());
        for path in paths {
            let done = self.split(path, &budget.scope(), &mut made);
            let Err(error) = done else { continue };
            let error = error.context(format!("splitting {}", path.display()));
            // The disk fails, or the run ends.
            let stops = error.flattened().any(Error::is_of_reading);
            bad.push((path.clone(), error));
            if stops {
                break;
            }
        }
        (made, bad)
    }
}

/// Whether all faults are of the wheels, and none of the disk or the settings.
pub(super) fn can_be_left_out(bad: &BadWheels) -> bool {
    let mut faults = bad.iter().flat_map(|(_, error)| error.flattened());
    faults.all(|fault| !fault.is_of_reading() && !fault.is_refusal())
}

/// Names the wheels that are left out, without their folders, so that receipts do not depend on these.
pub(super) fn left_out(bad: &BadWheels) -> Findings {
    let mut findings = Findings::default();
    for (path, error) in bad {
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let faults = error.flattened();
        let faults = faults.map(|it| it.to_string().replace(&*path.to_string_lossy(), ""));
        let faults = faults.map(|it| it.trim_start_matches([':', ' ']).to_owned());
        let reason = PackageLeftOut::Unsplit(faults.collect::<Vec<_>>().join("; "));
        findings.add(found::PackageFileLeftOut { file, reason });
    }
    findings
}

//! Splits several wheels, and reports the faults of all of them.

use std::path::PathBuf;

use rockpack_core::error::Error;
use rockpack_core::run::Budget;
use rockpack_report::{Findings, PackageLeftOut, found};

use super::{SplitResults, WheelSplitter};

pub(super) type BadWheels = Vec<(PathBuf, Error)>;

impl WheelSplitter<'_> {
    /// Splits the wheels at `paths`, and returns the bad ones with their faults.
    pub(super) fn split_all(
        &self,
        paths: &[PathBuf],
        budget: &Budget,
    ) -> (SplitResults, BadWheels) {
        let (mut made, mut bad) = (SplitResults::default(), Vec::new());
        for path in paths {
            let done = self.split(path, &budget.scope(), &mut made);
            let Err(error) = done else { continue };
            let error = error.context(format!("splitting {}", path.display()));
            // Disk failures and interruptions end the run.
            let stops = error.flattened().any(Error::is_read_failure);
            bad.push((path.clone(), error));
            if stops {
                break;
            }
        }
        (made, bad)
    }
}

/// Whether all faults are in the wheels, and none in the disk or the settings.
pub(super) fn can_be_left_out(bad: &BadWheels) -> bool {
    let mut faults = bad.iter().flat_map(|(_, error)| error.flattened());
    faults.all(|fault| !fault.is_read_failure() && !fault.is_refusal())
}

/// Findings about the wheels that are left out, without folders, on which receipts must not depend.
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

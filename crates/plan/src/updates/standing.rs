//! The packages of earlier sets with the planned version.

use std::collections::{BTreeMap, BTreeSet};

use crate::settings::PlanSettings;
use rockpack_package::receipt::listing::Listing;
use rockpack_package::receipt::{PartRecord, Standing};
use rockpack_report::{Finding, Findings};

/// The packages of earlier sets; for sets in several parts, only those of the present parts.
pub(crate) fn of_earlier(
    setting: &PlanSettings,
    earlier: &[Listing],
    findings: &mut Findings,
) -> Standing {
    let receipts = earlier.iter().filter_map(|listing| listing.receipt.as_deref());
    let mut parts: BTreeMap<String, (BTreeSet<u32>, &PartRecord)> = BTreeMap::new();
    for receipt in receipts {
        if let Some(record) = &receipt.part {
            let (present, _) = parts.entry(receipt.release()).or_insert((BTreeSet::new(), record));
            present.insert(record.part.index);
        }
    }
    for (release, (present, record)) in parts {
        if record.packages.values().any(|part| !present.contains(part)) {
            let (present, of) = (present.len(), record.part.of);
            findings.add(Finding::EarlierPartsAbsent { release, present, of });
        }
    }
    Standing::of(earlier, &setting.version, &setting.prefix.absolute(), &setting.formats)
}

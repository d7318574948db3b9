//! Claims of the receipt beside wheels.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_base::content::Sha256Digest;

use crate::receipt::wheels::{WheelKind, WheelRecord};
use crate::verify::own::wheel::Wheel;
use crate::verify::problem::{Problem, ProblemPlace, Problems, ReceiptDifference, ReceiptLack};
use crate::verify::subject::wheels::WheelArgument;

/// Compares the wheels of an argument with its receipt, and takes over for which archs they are where
/// their names do not say it.
pub(super) fn check(argument: &WheelArgument, wheels: &mut [Wheel], problems: &mut Problems) {
    let Some(receipt) = &argument.receipt else { return };
    let names = argument.wheels.iter().filter_map(|path| path.file_name());
    let there: BTreeSet<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    let records: BTreeMap<&str, &WheelRecord> =
        receipt.wheels.iter().map(|record| (record.file_name.as_str(), record)).collect();
    let absent = records.keys().filter(|name| !there.contains(**name));
    let unlisted = there.iter().filter(|name| !records.contains_key(name.as_str()));
    let lacks = absent
        .map(|name| ((*name).to_owned(), ReceiptLack::Package))
        .chain(unlisted.map(|name| (name.clone(), ReceiptLack::Record)));
    for (package, lack) in lacks {
        problems.add(Problem::ReceiptIncomplete { package, lack });
    }
    for wheel in wheels.iter_mut().filter(|wheel| there.contains(&wheel.installed.file)) {
        let Some(record) = records.get(wheel.installed.file.as_str()) else { continue };
        if record.role == WheelKind::Device {
            wheel.installed.stated_archs.get_or_insert_with(|| record.archs.clone());
        }
        check_bytes(record, wheel, problems);
    }
}

fn check_bytes(record: &WheelRecord, wheel: &Wheel, problems: &mut Problems) {
    let (size, sha256) = (wheel.installed.size, Sha256Digest::from(wheel.installed.sha256));
    if record.size == size && record.sha256 == sha256.to_string() {
        return;
    }
    let place = ProblemPlace::Package(wheel.installed.file.clone());
    let (stated_size, stated_sha256) = (record.size, record.sha256.clone());
    let difference = ReceiptDifference::Bytes { size, sha256, stated_size, stated_sha256 };
    problems.add(Problem::ReceiptMismatch { place, difference });
}

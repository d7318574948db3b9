//! Claims of the receipt beside wheels.

use std::collections::{BTreeMap, BTreeSet};

use crate::receipt::wheels::{WheelKind, WheelRecord};
use crate::verify::checks::claims::check_bytes;
use crate::verify::own::wheel::Wheel;
use crate::verify::problem::{Problem, Problems, ReceiptLack};
use crate::verify::subject::wheels::WheelArgument;

/// Compares the wheels of an argument with its receipt, and takes over for which archs they are where
/// their names do not say it, or name more: a family may have members without code.
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
            let stated = &mut wheel.installed.stated_archs;
            let has = |named: &Vec<String>| record.archs.iter().all(|arch| named.contains(arch));
            if stated.as_ref().is_none_or(has) {
                *stated = Some(record.archs.clone());
            }
        }
        check_bytes(&wheel.installed, record.size, &record.sha256, problems);
    }
}

//! Receipts of parts of a set, built on several machines, and how they are joined.
//!
//! Each part has a receipt of its own, such as `packages-2-of-3.json`, so that the packages of all parts fit
//! into one folder. The receipt describes the whole set: the digest of its plan, which is the same on every
//! machine with the same input, and the part that each package belongs to.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use derive_more::Display;
use serde::{Deserialize, Serialize};

use super::{FILE_NAME, Receipt};

/// One of several parts of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
#[display("{index}/{of}")]
pub struct SetPart {
    /// The number of the part, from 1.
    pub index: u32,
    pub of: u32,
}

impl FromStr for SetPart {
    type Err = String;

    /// Parses `2/3`. Leading zeros and more than [`Self::MOST`] parts are refused.
    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('/').and_then(|numbers| Self::new(numbers.0, numbers.1));
        parsed.ok_or_else(|| {
            format!("is not a part such as 2/3, the second of three; {} is the limit", Self::MOST)
        })
    }
}

impl SetPart {
    /// The most parts of a set: more than any CI system has jobs for.
    pub const MOST: u32 = 1000;

    fn new(index: &str, of: &str) -> Option<Self> {
        let part = Self { index: index.parse().ok()?, of: of.parse().ok()? };
        let canonical = part.index.to_string() == index && part.of.to_string() == of;
        let exists = 1 <= part.index && part.index <= part.of && part.of <= Self::MOST;
        (canonical && exists).then_some(part)
    }
}

/// The file name of the receipt of a whole set, or of one part.
pub fn file_name(part: Option<SetPart>) -> String {
    match part {
        None => FILE_NAME.to_owned(),
        Some(SetPart { index, of }) => format!("packages-{index}-of-{of}.json"),
    }
}

/// The ending of the names of receipts' signatures.
pub const SIGNATURE_ENDING: &str = ".asc";

/// The file name of the detached signature next to the receipt that is called `receipt`.
pub fn signature_name(receipt: &str) -> String {
    format!("{receipt}{SIGNATURE_ENDING}")
}

/// The path of the detached signature next to the receipt at `path`.
pub fn signature_path(path: &Path) -> PathBuf {
    let mut signature = path.as_os_str().to_owned();
    signature.push(SIGNATURE_ENDING);
    signature.into()
}

/// The file name of the SPDX document next to the receipt that is called `receipt`.
pub fn sbom_name(receipt: &str) -> String {
    format!("{}.spdx.json", receipt.strip_suffix(".json").unwrap_or(receipt))
}

/// The part whose receipt has this file name; `None` if no part has such a name.
pub fn part_of_file(name: &str) -> Option<SetPart> {
    let numbers = name.strip_prefix("packages-")?.strip_suffix(".json")?;
    let (index, of) = numbers.split_once("-of-")?;
    SetPart::new(index, of)
}

/// The receipt next to the SPDX document `name`: `Some(Some(part))` for a part, `Some(None)` for a whole set,
/// `None` if this is no name of an SPDX document.
pub fn part_of_sbom(name: &str) -> Option<Option<SetPart>> {
    let receipt = format!("{}.json", name.strip_suffix(".spdx.json")?);
    if receipt == FILE_NAME { Some(None) } else { part_of_file(&receipt).map(Some) }
}

/// The description of the whole set in the receipt of a part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartRecord {
    #[serde(flatten)]
    pub part: SetPart,
    /// SHA-256 of the plan, in hex. It covers every package with all its metadata, every path with its
    /// known size, every code object with its size, how everything is compressed, stamped and signed, every
    /// finding, the paths that are left out, the prefix, the time of the files, and the version of rockpack.
    pub plan_sha256: String,
    /// Every package file of the set, with the number of its part.
    #[serde(deserialize_with = "rockpack_core::unique_keys::map")]
    pub packages: BTreeMap<String, u32>,
}

/// Why receipts do not make up one set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JoinFault {
    Missing(SetPart),
    /// Two parts belong to different sets, or one part is given twice.
    Different(DifferentParts),
    /// This package is in the wrong part, in no part, in two parts, or not in the plan.
    Package(String, PlanBreach),
}

/// Why parts do not belong to one set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum DifferentParts {
    #[display("one part is given twice")]
    Twice,
    /// The parts are of sets with different numbers of parts.
    #[display("part {part} and part {first} are of sets with different numbers of parts")]
    Division { part: SetPart, first: SetPart },
    #[display(
        "part {part} has another plan than part {first}: other artifacts, other options, or \
         another version of rockpack"
    )]
    Plan { part: SetPart, first: SetPart },
    #[display("part {part} describes the whole set differently than part {first}")]
    Whole { part: SetPart, first: SetPart },
}

/// How a package fails to be in exactly its planned part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum PlanBreach {
    /// A part has the package, but the plan does not.
    #[display("is in a part but not in the plan")]
    NotPlanned,
    /// Another part has the package, alone or as well.
    #[display("is not in part {planned} alone, as planned")]
    NotAlone { planned: u32 },
    /// The planned part does not have the package.
    #[display("is planned for part {planned}, but is not in its receipt")]
    Absent { planned: u32 },
}

/// Joins the receipts of all parts into the receipt of the whole set, byte for byte the one that a single build
/// writes, except that each part has its own SPDX document. The receipt is `None` if `parts` are not all receipts of
/// parts of one set; it is complete only if there are no faults.
pub fn join(parts: &[&Receipt]) -> (Option<Receipt>, Vec<JoinFault>) {
    let records: Vec<&PartRecord> = parts.iter().filter_map(|part| part.part.as_ref()).collect();
    let (Some(first), Some(record)) = (parts.first(), records.first()) else {
        return (None, Vec::new());
    };
    let mut faults = Vec::new();
    for (other, theirs) in parts.iter().zip(&records).skip(1) {
        faults.extend(difference(first, record, other, theirs).map(JoinFault::Different));
    }
    if !faults.is_empty() || records.len() != parts.len() {
        return (None, faults);
    }
    let present: BTreeSet<u32> = records.iter().map(|record| record.part.index).collect();
    if present.len() != records.len() {
        faults.push(JoinFault::Different(DifferentParts::Twice));
    }
    let of = record.part.of;
    let absent = (1..=of).filter(|index| !present.contains(index));
    faults.extend(absent.map(|index| JoinFault::Missing(SetPart { index, of })));
    faults.extend(misplaced(parts, record, &present));
    (Some(joined(first, parts)), faults)
}

/// The first contradiction between two parts about the set they belong to; `None` if they agree.
fn difference(
    one: &Receipt,
    record: &PartRecord,
    other: &Receipt,
    theirs: &PartRecord,
) -> Option<DifferentParts> {
    let (first, part) = (record.part, theirs.part);
    if first.of != part.of {
        return Some(DifferentParts::Division { part, first });
    }
    if record.plan_sha256 != theirs.plan_sha256 {
        return Some(DifferentParts::Plan { part, first });
    }
    let version = (&one.rockpack_version, &one.version, &one.release);
    let same = version == (&other.rockpack_version, &other.version, &other.release)
        && (&one.prefix, one.content_date) == (&other.prefix, other.content_date)
        && one.distributions == other.distributions
        && (&one.left_out, &one.findings, &record.packages, &one.kept)
            == (&other.left_out, &other.findings, &theirs.packages, &other.kept);
    (!same).then_some(DifferentParts::Whole { part, first })
}

fn misplaced(parts: &[&Receipt], record: &PartRecord, present: &BTreeSet<u32>) -> Vec<JoinFault> {
    let mut faults = Vec::new();
    let mut found: BTreeSet<&str> = BTreeSet::new();
    for receipt in parts {
        let index = receipt.part.as_ref().map(|record| record.part.index);
        for package in &receipt.packages {
            let name = package.file_name.as_str();
            let planned = record.packages.get(name).copied();
            if planned.is_none() || planned != index || !found.insert(name) {
                let breach = planned
                    .map_or(PlanBreach::NotPlanned, |planned| PlanBreach::NotAlone { planned });
                faults.push(JoinFault::Package(name.to_owned(), breach));
            }
        }
    }
    for (name, index) in &record.packages {
        if present.contains(index) && !found.contains(name.as_str()) {
            let breach = PlanBreach::Absent { planned: *index };
            faults.push(JoinFault::Package(name.clone(), breach));
        }
    }
    faults
}

fn joined(first: &Receipt, parts: &[&Receipt]) -> Receipt {
    let mut packages: Vec<_> = parts.iter().flat_map(|part| part.packages.clone()).collect();
    packages.sort_by(|a, b| a.file_name.cmp(&b.file_name));
    let mut code_objects: Vec<_> =
        parts.iter().flat_map(|part| part.code_objects.clone()).collect();
    code_objects
        .sort_by(|a, b| (&a.place, &a.target, &a.package).cmp(&(&b.place, &b.target, &b.package)));
    let mut spdx: Vec<_> = parts.iter().flat_map(|part| part.spdx.clone()).collect();
    spdx.sort_by(|a, b| a.file_name.cmp(&b.file_name));
    Receipt { packages, code_objects, spdx, part: None, ..first.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_written_in_one_way() {
        let part = SetPart { index: 2, of: 3 };
        assert_eq!("2/3".parse(), Ok(part));
        assert_eq!(part.to_string(), "2/3");
        for bad in ["0/3", "4/3", "2", "/", "a/b", "02/3", "+2/3", "2/3/4", "1/0", "1/1001"] {
            assert!(bad.parse::<SetPart>().is_err(), "{bad}");
        }
        assert_eq!(file_name(Some(part)), "packages-2-of-3.json");
        assert_eq!(part_of_file("packages-2-of-3.json"), Some(part));
        for bad in
            ["packages.json", "packages-2-of-3", "packages-3-of-2.json", "packages-02-of-3.json"]
        {
            assert_eq!(part_of_file(bad), None, "{bad}");
        }
    }
}

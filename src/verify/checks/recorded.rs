//! The code objects that a receipt lists, held against the packages of one format.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_base::content::{Sha256Digest, hex};

use crate::receipt::{CodeObjectPlace, CodeObjectRecord, PackageRecord, Receipt};
use crate::verify::own::archive::{Nature, row_fault};
use crate::verify::own::facts::{Class, FileFacts};
use crate::verify::own::installed::Installed;
use crate::verify::problem::{CodeLoss, CodeWitness, Problem, Problems, RecordFault};

/// A receipt and the packages it speaks of.
pub(in crate::verify) struct Recorded<'a> {
    pub(in crate::verify) receipt: &'a Receipt,
    /// File name → what the receipt says of the package.
    pub(in crate::verify) records: &'a BTreeMap<&'a str, &'a PackageRecord>,
    /// Packages of one format.
    pub(in crate::verify) set: Vec<&'a Installed>,
}

impl Recorded<'_> {
    /// Checks that every code object is in the package and at the place that the receipt names, and that the
    /// packages have no others.
    pub(in crate::verify) fn check(&self, problems: &mut Problems) {
        let often = self.too_often();
        for record in self.receipt.all_code_objects() {
            let is_often = often.contains(&(&record.place, record.target.as_str()));
            let fault = self.fault(record);
            if let Some(fault) = fault.or(is_often.then_some(RecordFault::TooOften)) {
                let path = match &record.place {
                    CodeObjectPlace::Archive { binary, .. } => binary.to_string(),
                    CodeObjectPlace::File { file, .. } => file.to_string(),
                };
                let installed = record.place.path().to_owned();
                problems.add(Problem::CodeObjectLost {
                    path,
                    target: record.target.to_string(),
                    sha256: record.sha256.clone(),
                    loss: CodeLoss::Recorded { installed, fault },
                });
            }
        }
        self.check_unknown(problems);
    }

    /// Why a code object is not where the receipt says.
    fn fault(&self, record: &CodeObjectRecord) -> Option<RecordFault> {
        let Some((package, facts)) = self.file(record.place.path()) else {
            return Some(RecordFault::NotInstalled);
        };
        let fault = match &record.place {
            CodeObjectPlace::Archive { key, .. } => archive_fault(record, key, facts),
            CodeObjectPlace::File { entry, .. } => file_fault(record, entry.as_deref(), facts),
        };
        if fault.is_some() {
            return fault;
        }
        let id = self.records.get(package.file.as_str()).map(|record| record.id.as_str());
        (id != Some(record.package.as_str())).then(|| RecordFault::OtherPackage {
            package: package.file.clone(),
            stated: record.package.clone(),
        })
    }

    /// Places and targets that have more records than there may be code objects.
    fn too_often(&self) -> BTreeSet<(&CodeObjectPlace, &str)> {
        let mut counts: BTreeMap<(&CodeObjectPlace, &str), (usize, &CodeObjectRecord)> =
            BTreeMap::new();
        for record in self.receipt.all_code_objects() {
            let (count, _) = counts.entry((&record.place, &record.target)).or_insert((0, record));
            *count += 1;
        }
        let several = counts.into_iter().filter(|(_, (count, _))| *count > 1);
        let often = several.filter(|(_, (count, record))| *count > self.count_at(record));
        often.map(|(place, _)| place).collect()
    }

    /// The number of code objects for the target of a record at its place: bundles may have several
    /// entries with the same name.
    fn count_at(&self, record: &CodeObjectRecord) -> usize {
        let CodeObjectPlace::File { file, entry: Some(id) } = &record.place else { return 1 };
        match self.file(file).map(|(_, facts)| &facts.class) {
            Some(Class::Bundle(entries)) => entries.iter().filter(|it| it.id == *id).count(),
            _ => 1,
        }
    }

    fn file(&self, path: &str) -> Option<(&Installed, &FileFacts)> {
        self.set.iter().find_map(|package| Some((*package, package.paths.get(path)?.facts()?)))
    }

    fn check_unknown(&self, problems: &mut Problems) {
        let known: BTreeSet<&str> =
            self.receipt.all_code_objects().map(|record| record.sha256.as_str()).collect();
        for package in &self.set {
            for (path, facts) in package.files() {
                for (position, sha256) in facts.code_objects() {
                    let sha256 = Sha256Digest::from(*sha256);
                    if !known.contains(sha256.to_string().as_str()) {
                        let (file, unknown_to) = (package.at(path), CodeWitness::Receipt);
                        problems.add(Problem::CodeObjectForeign {
                            file,
                            position,
                            sha256,
                            unknown_to,
                        });
                    }
                }
            }
        }
    }
}

fn archive_fault(record: &CodeObjectRecord, key: &str, facts: &FileFacts) -> Option<RecordFault> {
    let found = match &facts.class {
        Class::Archive(archive) => archive.at(key, &record.target),
        _ => None,
    };
    let is_there =
        found.is_some_and(|found| hex(&found.sha256) == record.sha256 && found.size == record.size);
    (!is_there).then(|| RecordFault::NotAtKey { key: key.to_owned() })
}

fn file_fault(
    record: &CodeObjectRecord,
    entry: Option<&str>,
    facts: &FileFacts,
) -> Option<RecordFault> {
    match (&facts.class, entry) {
        (Class::CodeObject(nature), None) => {
            let same = hex(&facts.sha256) == record.sha256 && facts.size == record.size;
            // Of an unknown processor, the receipt may not have a target either.
            let target = match nature {
                Nature::Compiled(_) => row_fault(&record.target, nature),
                Nature::UnknownProcessor | Nature::Neutral => None,
            };
            (!same).then_some(RecordFault::NotTheFile).or(target.map(RecordFault::Target))
        }
        (Class::Bundle(entries), Some(id)) => {
            let mut entries = entries.iter().filter(|found| found.id == id);
            let found = entries.any(|found| {
                let same = hex(&found.sha256) == record.sha256 && found.size == record.size;
                same && found.target == record.target
            });
            (!found).then(|| RecordFault::NotTheEntry {
                id: id.to_owned(),
                target: record.target.to_string(),
            })
        }
        (Class::Archive(_), Some(key)) => archive_fault(record, key, facts),
        _ => Some(RecordFault::OtherKind),
    }
}

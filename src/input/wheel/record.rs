//! Findings about the RECORD and the WHEEL of a wheel.

use std::collections::BTreeSet;

use rockpack_base::formats::wheel::{Record, WheelFile, WheelName};
use rockpack_base::formats::zip::ZipMember;

use crate::report::{Finding, Findings};

/// Signatures of RECORD, which a changed wheel cannot keep; installers ignore them.
const SIGNATURES: [&str; 2] = ["RECORD.jws", "RECORD.p7s"];

/// RECORD, and the members that exist.
pub(super) struct RecordCheck<'a> {
    record: &'a Record,
    dist_info: &'a str,
    there: BTreeSet<String>,
    unlisted: Vec<String>,
    unhashed: usize,
    dropped: Vec<String>,
}

impl<'a> RecordCheck<'a> {
    /// A check of a wheel with this RECORD and `dist-info` folder.
    pub fn new(record: &'a Record, dist_info: &'a str) -> Self {
        Self {
            record,
            dist_info,
            there: BTreeSet::new(),
            unlisted: Vec::new(),
            unhashed: 0,
            dropped: Vec::new(),
        }
    }

    /// Takes a member, and tells whether it is a file of the wheel.
    pub fn keeps(&mut self, member: &ZipMember) -> bool {
        let own = member
            .name
            .strip_prefix(self.dist_info)
            .and_then(|rest| rest.strip_prefix('/'))
            .unwrap_or_default();
        self.there.insert(member.name.clone());
        if member.name.ends_with('/') || SIGNATURES.contains(&own) {
            self.dropped.push(member.name.clone());
            return false;
        }
        match self.record.rows.get(&member.name) {
            None => self.unlisted.push(member.name.clone()),
            _ if own == "RECORD" => {}
            Some(row) if row.digest.is_none() => self.unhashed += 1,
            Some(_) => {}
        }
        true
    }

    /// Notes differences from RECORD, and dropped members.
    pub fn finish(self, name: &WheelName, findings: &mut Findings) {
        let Self { record, there, unlisted, unhashed, dropped, .. } = self;
        let listed = record.rows.keys();
        let absent: Vec<String> = listed.filter(|path| !there.contains(*path)).cloned().collect();
        let wheel = name.to_string();
        if !unlisted.is_empty() || !absent.is_empty() || unhashed > 0 {
            let wheel = wheel.clone();
            findings.add(Finding::WheelRecordLacks { wheel, unlisted, absent, unhashed });
        }
        if !dropped.is_empty() {
            findings.add(Finding::WheelMembersDropped { wheel, members: dropped });
        }
    }
}

/// Notes tags and a build number of WHEEL that contradict the file name. The file name decides.
pub(super) fn note_tags(file: &WheelFile, name: &WheelName, findings: &mut Findings) {
    let of_name = WheelFile::tags_of(name);
    let own = file.tags();
    let same: bool = own.iter().collect::<BTreeSet<_>>() == of_name.iter().collect();
    if !same || file.build() != name.build.as_deref() {
        let (wheel, build) = (name.to_string(), file.build().map(str::to_owned));
        findings.add(Finding::WheelTagsDiffer { wheel, tags: own, build });
    }
}

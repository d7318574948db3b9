//! Findings about the RECORD and the WHEEL of a wheel.

use rockpack_archive::wheel::{ListingFault, WheelArchive, WheelFile, WheelName};
use rockpack_archive::zip::ZipMember;

use rockpack_report::{Finding, Findings};

/// Differences between RECORD and the members, with which a wheel can be split.
pub(super) struct RecordCheck<'a> {
    archive: &'a WheelArchive,
    unlisted: Vec<String>,
    unhashed: usize,
    dropped: Vec<String>,
}

impl<'a> RecordCheck<'a> {
    /// A check of a wheel.
    pub fn new(archive: &'a WheelArchive) -> Self {
        Self { archive, unlisted: Vec::new(), unhashed: 0, dropped: Vec::new() }
    }

    /// Takes a member, and tells whether it is a file of the wheel. A changed wheel cannot keep signatures of
    /// RECORD, which installers ignore.
    pub fn keeps(&mut self, member: &ZipMember) -> bool {
        let fault = self.archive.listing_fault(member, None);
        if member.name.ends_with('/') || fault == Some(ListingFault::Signature) {
            self.dropped.push(member.name.clone());
            return false;
        }
        match fault {
            Some(ListingFault::Unlisted | ListingFault::WithoutItself) => {
                self.unlisted.push(member.name.clone());
            }
            Some(ListingFault::WithoutDigest) => self.unhashed += 1,
            _ => {}
        }
        true
    }

    /// Notes differences from RECORD, and dropped members.
    pub fn finish(self, name: &WheelName, findings: &mut Findings) {
        let Self { archive, unlisted, unhashed, dropped } = self;
        let absent: Vec<String> = archive.rows_without_member().map(str::to_owned).collect();
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
    if !file.agrees_with(name) {
        let (wheel, build) = (name.to_string(), file.build().map(str::to_owned));
        findings.add(Finding::WheelTagsDiffer { wheel, tags: file.tags(), build });
    }
}

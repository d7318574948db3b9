//! Random changes of a finished package.

use std::ops::Range;

use support::sweep;
use support::tampered::section;

use super::loose::{BLOCK, LooseDeb, Member, members};
use super::{HOST, LINK, SMALL, SmallSet, TEXT, TOOL, set_of_every_kind};

/// Fields of a tar header that do not concern the content of an artifact, each with its reason.
const ELSEWHERE: [(Range<usize>, &str); 7] = [
    (0..2, "a name may begin in several ways"),
    (100..103, "dpkg ignores the bits of a mode that are no permissions"),
    (136..148, "nothing depends on the time of a file"),
    (257..265, "dpkg reads archives of each kind of tar"),
    (148..156, "the checksum of the header is made again"),
    (329..345, "numbers of devices are read of devices alone"),
    (345..512, "files that are not sparse and not parts of one use nothing behind these numbers"),
];

/// The changed field of a member.
struct Place {
    member: Member,
    at: usize,
}

/// Numbers that are the same in every run (xorshift64).
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }
}

/// The members that come from the artifacts.
fn of_artifacts(host: &LooseDeb) -> Vec<Member> {
    let own = [SMALL, TOOL, LINK, TEXT, "opt/rocm-7.1/share/x"];
    members(&host.data).into_iter().filter(|member| own.contains(&member.path.as_str())).collect()
}

/// Texts of a header of tar, which end with a zero.
const TEXTS: [Range<usize>; 4] = [0..100, 157..257, 265..297, 297..329];

/// Why a change there may stay unseen.
fn excuse(data: &[u8], place: &Place) -> Option<&'static str> {
    let at = place.at.checked_sub(place.member.header).filter(|at| *at < BLOCK)?;
    let header = &data[place.member.header..][..BLOCK];
    let behind = |text: &Range<usize>| {
        let end = header[text.clone()].iter().position(|byte| *byte == 0);
        end.is_some_and(|end| (text.start + end..text.end).contains(&at))
    };
    if TEXTS.iter().any(behind) {
        return Some("behind the zero at the end of a text nothing is read");
    }
    ELSEWHERE.iter().find(|(field, _)| field.contains(&at)).map(|(_, reason)| *reason)
}

/// Whether no loader or debugger reads the byte at `at` of an ELF file, which another check does not read either.
fn is_unread(elf: &[u8], at: usize, changed: u8) -> bool {
    let table = usize::from_le_bytes(elf[40..48].try_into().unwrap());
    let (names, size) = section(elf, ".shstrtab");
    let own = usize::from(elf[64] == 6) * 56;
    if let Some(at) = at.checked_sub(table) {
        let (row, field) = (&elf[table + at / 64 * 64..][..64], at % 64);
        let is_empty = [0, 8].contains(&row[4]) || row[32..40] == [0; 8];
        let is_names = row[24..32] == (names as u64).to_le_bytes();
        return is_empty && (24..32).contains(&field)
            || is_names && (32..40).contains(&field)
            || at < 4;
    }
    // Names that no section has any more, the entry for the program headers, and what fills gaps.
    (names..names + size).contains(&at)
        || (64..64 + own).contains(&at)
        || elf[at] == 0 && [b'X', b'Z'].contains(&changed)
}

/// Judges the package with the byte there changed by `change`; says where nothing tells.
fn unseen(set: &SmallSet, place: &Place, name: &str, change: u8) -> Option<String> {
    let mut host = set.host.clone();
    host.data[place.at] ^= change;
    if place.at < place.member.content.start {
        host.seal(place.member.header);
    }
    let file = set.shard.path(name);
    host.write(&file);
    let seen = !set.failing(&file).is_empty();
    let at = place.at.checked_sub(place.member.content.start);
    let elf = &set.host.data[place.member.content.clone()];
    let is_unread = |at: usize| is_unread(elf, at, elf[at] ^ change);
    let is_library = place.member.path == SMALL;
    let excused =
        excuse(&set.host.data, place).is_some() || is_library && at.is_some_and(is_unread);
    if seen || excused {
        return None;
    }
    let at = place.at.wrapping_sub(place.member.content.start).cast_signed();
    Some(format!("{} {at} ^ {change:#x}", place.member.path))
}

/// The bytes of the header and the content of a member.
fn bytes(member: &Member) -> Range<usize> {
    member.header..member.content.end
}

#[test]
fn random_changes_of_what_artifacts_have_are_found() {
    let (set, mut random) = (set_of_every_kind(), Random(0x9e37_79b9_7f4a_7c15));
    let all = of_artifacts(&set.host);
    let mut found = Vec::new();
    for round in 0..sweep::or_all(240, 4000) {
        // Half of the changes concern the library, whose bytes are most of all.
        let member = match round % 2 {
            0 => set.host.member(SMALL),
            _ => all[random.next(all.len())].clone(),
        };
        let range = bytes(&member);
        let at = range.start + random.next(range.len());
        let change = 1 << random.next(8) | random.next(256) as u8;
        found.extend(unseen(set, &Place { member, at }, "random.deb", change));
    }
    assert!(found.is_empty(), "not seen: {found:?}");
}

/// Changes of the bytes of a package, compressed and with stated digests, are found.
#[test]
fn random_changes_of_a_compressed_package_are_found() {
    let (set, mut random) = (set_of_every_kind(), Random(0x2545_f491_4f6c_dd1d));
    let original = std::fs::read(set.shard.path(HOST)).unwrap();
    let file = set.shard.path("raw.deb");
    let mut unseen = Vec::new();
    for _ in 0..sweep::or_all(60, 2000) {
        let mut bytes = original.clone();
        let at = random.next(bytes.len());
        bytes[at] ^= 1 << random.next(8);
        std::fs::write(&file, &bytes).unwrap();
        if set.failing(&file).is_empty() {
            unseen.push(at);
        }
    }
    // Headers of ar have times, owners and modes, which nothing reads.
    let headers = std::iter::successors(Some(8), |header| {
        let size = str::from_utf8(&original[header + 48..header + 58]).unwrap();
        let size: usize = size.trim().parse().unwrap();
        Some(header + 60 + size + size % 2).filter(|next| *next < original.len())
    });
    let headers: Vec<usize> = headers.collect();
    let is_unread =
        |at: &usize| headers.iter().any(|header| (header + 16..header + 48).contains(at));
    assert!(headers.len() == 3 && unseen.iter().all(is_unread), "{unseen:?}");
}

#[test]
#[ignore = "every byte of a library takes minutes: `.ci/nightly tests/tampering`"]
fn every_byte_of_a_library_is_accounted_for() {
    let set = set_of_every_kind();
    let mut found = Vec::new();
    for path in [SMALL, TOOL, LINK, TEXT] {
        let member = set.host.member(path);
        for at in bytes(&member).filter(|at| sweep::is_in_slice(*at)) {
            let place = Place { member: member.clone(), at };
            found.extend(unseen(set, &place, "every.deb", 0x41));
        }
    }
    assert!(found.is_empty(), "not seen: {found:?}");
}

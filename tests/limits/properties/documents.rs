//! Receipts, plans and SPDX documents give the same values when they are read back.

use std::collections::BTreeSet;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use rockpack_archive::spdx::{Document, File, SpdxChecksum, SpdxPackage};
use rockpack_emit::pack::planned::{DefaultSizes, GroupSum, Planned};
use rockpack_package::receipt::listing::{
    ListedMember, ListedPackage, Listing, PLAN_KIND, PLAN_SCHEMA, Size, parse,
};
use rockpack_package::receipt::{MemberRecord, Receipt, RelationRecord};
use rockpack_package::{Comparison, Format, MemberKind, RelationKind, RoleKind};
use rockpack_report::Findings;

use super::file;

/// Any text, including quotes, line ends and characters above U+FFFF.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![4 => "\\PC{0,40}", 1 => any::<String>()]
}

fn size() -> impl Strategy<Value = Size> {
    (any::<u64>(), any::<bool>()).prop_map(|(bytes, estimated)| Size { bytes, estimated })
}

const KINDS: [RelationKind; 3] =
    [RelationKind::Depends, RelationKind::Supplements, RelationKind::Obsoletes];
const COMPARISONS: [Comparison; 2] = [Comparison::Equal, Comparison::Less];
const MEMBERS: [MemberKind; 3] = [MemberKind::File, MemberKind::Link, MemberKind::Directory];
const ROLES: [RoleKind; 2] = [RoleKind::Host, RoleKind::KernelsCommon];

prop_compose! {
    fn relation()(
        (kind, name) in (select(&KINDS[..]), text()),
        (comparison, version) in (option::of(select(&COMPARISONS[..])), option::of(text())),
    ) -> RelationRecord {
        RelationRecord { kind, name, comparison, version }
    }
}

prop_compose! {
    fn member()(
        (path, kind, mode) in ("(/[a-z][a-z0-9 é.+-]{0,9}){1,3}", select(&MEMBERS[..]), any::<u32>()),
        size in option::of(size()),
        (sha256, code_sha256, target) in (option::of(text()), option::of(text()), option::of(text())),
    ) -> ListedMember {
        ListedMember { path, kind, mode, size, sha256, code_sha256, target }
    }
}

prop_compose! {
    fn package()(
        (format, name) in (select(&Format::ALL[..]), "[a-z][a-z0-9.+-]{1,12}"),
        version in "[0-9][0-9.]{0,5}-[0-9]",
        (architecture, file_name) in ("[a-z][a-z0-9]{1,6}", text()),
        role in option::of(select(&ROLES[..])),
        (group, vendor, archs) in (option::of(text()), option::of(text()), vec(text(), 0..3)),
        (download, installed) in (size(), size()),
        relations in vec(relation(), 0..3),
        members in vec(member(), 0..4),
    ) -> ListedPackage {
        ListedPackage {
            format, name, version, architecture, file_name, role, group, archs, vendor, download,
            installed, relations, members,
        }
    }
}

/// A plan of these packages in a plan's order, without duplicate packages and paths, and with one prefix:
/// other plans are refused.
fn plan(mut packages: Vec<ListedPackage>, words: [String; 3], groups: Vec<GroupSum>) -> Planned {
    packages.sort_by(|one, other| one.key().cmp(&other.key()));
    packages.dedup_by(|one, other| one.key() == other.key());
    for package in &mut packages {
        let mut paths = BTreeSet::new();
        package.members.retain(|member| paths.insert(member.path.clone()));
        package.members.sort_by(|one, other| one.path.cmp(&other.path));
    }
    let [version, release, left_out] = words;
    Planned {
        kind: PLAN_KIND,
        schema: PLAN_SCHEMA,
        rockpack_version: "0",
        version,
        release,
        prefix: "/opt/rocm-7.1".to_owned(),
        content_date: 0,
        packages,
        kept: Vec::new(),
        groups,
        left_out: vec![left_out],
        findings: Findings::default(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn plans_are_read_back(
        packages in vec(package(), 0..4),
        words in [text(), text(), text()],
        (group, download, installed) in (text(), size(), size()),
    ) {
        let packages_of_group = vec![group.clone()];
        let by_default = Some(DefaultSizes { download, installed });
        let sum = GroupSum {
            format: Format::Deb, packages: packages_of_group, group, download, installed, by_default,
        };
        let plan = plan(packages, words, vec![sum]);
        let read = parse("x".to_owned(), &serde_json::to_vec(&plan).unwrap()).unwrap();
        prop_assert_eq!(read, Listing { name: "x".to_owned(), ..plan.listing() });
    }

    /// All fields of a receipt for one package and one path.
    #[test]
    fn receipts_are_read_back(
        words in [text(), text(), text()],
        kind in select(&MEMBERS[..]),
        (mode, size, installed_size) in (any::<u32>(), option::of(any::<u64>()), any::<u64>()),
        relations in vec(relation(), 0..3),
        content_date in any::<i64>(),
        left_out in vec(text(), 0..3),
    ) {
        let mut receipt = Receipt::parse(&file("fuzz/seeds/receipt/two-packages")).unwrap();
        let [path, sha256, target] = words;
        let package = &mut receipt.packages[1];
        let members = &mut package.members;
        members.push(MemberRecord { path, kind, mode, size, sha256: Some(sha256), target: Some(target) });
        members.sort_by(|one, other| one.path.cmp(&other.path));
        package.installed_size = installed_size;
        package.relations = relations;
        receipt.content_date = content_date;
        receipt.left_out = left_out;
        prop_assert_eq!(Receipt::parse(&receipt.to_bytes().unwrap()).unwrap(), receipt);
    }

    #[test]
    fn documents_are_read_back(
        words in [text(), text(), text(), text()],
        said in vec(option::of(text()), 8),
        files in vec((text(), text(), any::<[u8; 20]>(), any::<[u8; 32]>()), 0..4),
    ) {
        let [name, id, download_location, license_declared] = words;
        let mut words = said.into_iter();
        let version = words.next().flatten().unwrap_or_default();
        let mut document = Document::new(name.clone(), version, "rockpack-0");
        document.relate(&id, "CONTAINS", &download_location);
        document.packages.push(SpdxPackage {
            name, id, download_location, license_declared,
            version_info: words.next().flatten(),
            package_file_name: words.next().flatten(),
            primary_package_purpose: words.next().flatten(),
            supplier: words.next().flatten(),
            license_comments: words.next().flatten(),
            summary: words.next().flatten(),
            comment: words.next().flatten(),
            ..SpdxPackage::default()
        });
        document.files.extend(files.into_iter().map(|(file_name, id, sha1, sha256)| {
            let checksums = vec![SpdxChecksum::sha1(&sha1), SpdxChecksum::sha256(&sha256)];
            File { file_name, id, checksums }
        }));
        document.name_space().unwrap();
        let mut written = Vec::new();
        document.write(&mut written).unwrap();
        prop_assert_eq!(Document::read(&written[..]).unwrap(), document);
    }
}

//! One example of every failed check at least, and of every form that its text has.
//!
//! With `ROCKPACK_BLESS=1` the texts are written into `examples.txt`; look at the difference.

mod wheels;

use std::collections::BTreeSet;

use rockpack_base::content::Sha256Digest;
use rockpack_base::formats::rpm::MissingDigest;
use rockpack_base::gfx::{BaseArch, Target};
use rockpack_base::tree::TreePath;

use super::*;
use crate::receipt::{DifferentParts, PlanBreach, SetPart};
use crate::report::fixture::{compare, own_fields};
use crate::report::{ExtraGap, Soname};

const DEB: &str = "rocm-blas_7.1.0-1_amd64.deb";
const KERNELS: &str = "rocm-blas-gfx110x_7.1.0-1_amd64.deb";
const KEY: &str = "libexblas.so.1#0";
const ARCHIVE: &str = "/opt/rocm/lib/.kpack/blas_lib_gfx1100.kpack";
const LIBRARY: &str = "/opt/rocm/lib/libexblas.so.1.2";
const LIST: &str = "dists/stable/main/binary-amd64/Packages.gz";
const POOL: &str = "pool/rocm-blas_7.1.0-1_amd64.deb";
const REPOMD: &str = "repodata/repomd.xml";

fn text(text: &str) -> String {
    text.to_owned()
}

fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).to_vec()
}

fn arch(text: &str) -> BaseArch {
    text.parse().unwrap()
}

fn target(text: &str) -> Target {
    text.parse().unwrap()
}

fn digest() -> Sha256Digest {
    [0xab; 32].into()
}

fn reason() -> String {
    text("is shorter than its header")
}

fn part(index: u32) -> SetPart {
    SetPart { index, of: 3 }
}

fn host(path: &str) -> PackagePath {
    PackagePath::new(DEB, path)
}

fn kernels(path: &str) -> PackagePath {
    PackagePath::new(KERNELS, path)
}

fn identity() -> NamedVersion {
    NamedVersion::new("rocm-blas", "7.1.0-1", "amd64")
}

fn of_receipts() -> Vec<Problem> {
    let digests =
        [DigestFault::Md5, DigestFault::Sha256, DigestFault::Unstated, DigestFault::WithoutFile];
    let mut all = vec![
        Problem::Unreadable { place: deb_place(), reason: reason() },
        Problem::Unreadable { place: library_place(), reason: reason() },
        Problem::Unreadable { place: disk_place(), reason: text("its name is no UTF-8") },
        of_size(1),
    ];
    let lacks = [ReceiptLack::Package, ReceiptLack::Record];
    all.extend(lacks.map(|lack| Problem::ReceiptIncomplete { package: text(DEB), lack }));
    let receipt = || text("out/packages.json");
    let lacks = [SignatureLack::Receipt, SignatureLack::Signature];
    all.extend(lacks.map(|lack| Problem::ReceiptUnsigned { receipt: receipt(), lack }));
    let faults = [
        SignerFault::Unknown { keys: texts(["0123456789ABCDEF"]) },
        SignerFault::Unknown { keys: Vec::new() },
        SignerFault::Bad { reason: text("is of other bytes") },
    ];
    all.extend(faults.map(|fault| Problem::ReceiptSignature { receipt: receipt(), fault }));
    all.extend(digests.map(|fault| Problem::DigestMismatch { file: host(LIBRARY), fault }));
    all
}

fn deb_place() -> ProblemPlace {
    ProblemPlace::Package(text(DEB))
}

fn library_place() -> ProblemPlace {
    ProblemPlace::File(host(LIBRARY))
}

fn disk_place() -> ProblemPlace {
    ProblemPlace::Disk(text("/opt/rocm/lib/x"))
}

fn of_lost_code() -> Vec<Problem> {
    let faults = [
        RecordFault::NotInstalled,
        RecordFault::NotAtPlace { key: Some(text(KEY)) },
        RecordFault::NotAtPlace { key: None },
    ];
    let recorded =
        faults.map(|fault| lost_code(CodeLoss::Recorded { installed: text(ARCHIVE), fault }));
    let mut all = recorded.to_vec();
    all.extend([
        lost_code(CodeLoss::OfWrapper { shard: text("one"), wrapper: 1 }),
        lost_code(CodeLoss::WithoutWrapper { shard: text("one") }),
        lost_code(CodeLoss::OfFile { shard: text("one") }),
    ]);
    all
}

fn lost_code(loss: CodeLoss) -> Problem {
    Problem::CodeObjectLost {
        path: text("lib/libexblas.so.1.2"),
        target: text("gfx1100"),
        sha256: digest().to_string(),
        loss,
    }
}

fn of_misplaced_code() -> Vec<Problem> {
    let positions = [
        (CodePosition::row(KEY, "gfx1100"), CodeWitness::Artifacts),
        (CodePosition::File, CodeWitness::Artifacts),
        (CodePosition::Entry { id: text("host-x86_64") }, CodeWitness::Receipt),
    ];
    let foreign = positions.map(|(position, unknown_to)| Problem::CodeObjectForeign {
        file: kernels(ARCHIVE),
        position,
        sha256: digest(),
        unknown_to,
    });
    let mut all = foreign.to_vec();
    let misplacements = [
        Misplacement::Scattered { path: library_path(), shard: text("one"), wrapper: 1 },
        Misplacement::NoOwnBuild { path: library_path() },
        Misplacement::OtherKernels {
            path: library_path(),
            shard: text("one"),
            wrapper: 1,
            primary: text("two"),
        },
        Misplacement::Contradiction { archive: kernels(ARCHIVE), other: host(ARCHIVE), count: 2 },
    ];
    all.extend(misplacements.map(|misplacement| Problem::CodeObjectMisplaced { misplacement }));
    let losses = [
        FileLoss::Absent,
        FileLoss::OtherContent,
        FileLoss::BinaryAbsent,
        FileLoss::OtherBinary,
        FileLoss::OtherBytes { shard: text("one"), parts: texts([".rodata", ".dynamic"]) },
        FileLoss::OtherMode { mode: 0o777, wanted: 0o755 },
    ];
    all.extend(losses.map(|loss| Problem::FileLost { path: text(LIBRARY), loss }));
    all
}

fn library_path() -> TreePath {
    TreePath::new("lib/libexblas.so.1.2").unwrap()
}

fn of_places() -> Vec<Problem> {
    let reason = text("still has a .hip_fatbin with content");
    let mut all = vec![Problem::DeviceCodeInHost { file: host(LIBRARY), reason }];
    all.push(Problem::HostCodeInKernels { file: kernels(LIBRARY) });
    let foreign = [
        ForeignCode::Code { arch: arch("gfx906"), archs: own_archs() },
        ForeignCode::Index { indexed: vec![arch("gfx906"), arch("gfx908")], archs: own_archs() },
        ForeignCode::Bundle { arch: arch("gfx906"), archs: own_archs(), other: text(DEB) },
    ];
    all.extend(foreign.map(|found| {
        let place = ProblemPlace::File(kernels(ARCHIVE));
        Problem::ForeignArch { place, found }
    }));
    all
}

fn own_archs() -> Vec<String> {
    texts(["gfx1100", "gfx1101"])
}

fn of_archives() -> Vec<Problem> {
    let row = text("libexblas.so.1#0 [gfx1100]: its code object is for gfx1101");
    let mut all = vec![Problem::BadArchive { file: kernels(ARCHIVE), reason: row }];
    let lacks = [
        PartnerLack::Absent { wanted: "index", archs: Vec::new() },
        PartnerLack::Absent {
            wanted: "code object",
            archs: vec![arch("gfx1100"), arch("gfx1101")],
        },
        PartnerLack::Elsewhere { wanted: "index", package: text(DEB) },
        PartnerLack::ReferenceAbsent { reference: text("T.co") },
        PartnerLack::ReferenceElsewhere { reference: text("T.co"), package: text(DEB) },
    ];
    all.extend(lacks.map(|lack| Problem::DatabaseUnpaired { file: database(), lack }));
    all.push(Problem::BadDatabase { file: database(), reason: reason() });
    let patterns = texts([".kpack/blas_lib_@GFXARCH@.kpack", "../.kpack"]);
    all.push(Problem::MarkerUnresolved { file: host(LIBRARY), patterns });
    let patterns = texts(["a", "b", "c", "d", "e", "f"]);
    all.push(Problem::MarkerUnresolved { file: host(LIBRARY), patterns });
    let archive = host("/opt/rocm/lib/.kpack/blas_lib_gfx1100.kpack");
    all.push(Problem::HostMissing {
        file: archive,
        binaries: texts(["lib/libexblas.so.1.2", "bin/bench"]),
    });
    let (device, listed) = (|| target("gfx90a:xnack+"), || target("gfx90a"));
    let lacks = [
        RowLack::Everywhere,
        RowLack::NotListed { device: device() },
        RowLack::WithoutRow { device: device(), listed: listed() },
        RowLack::LessSpecific { device: device(), listed: listed() },
        RowLack::OnlyGeneric { arch: arch("gfx1201"), generic: arch("gfx12-generic") },
    ];
    all.extend(lacks.map(|lack| {
        let (file, key) = (kernels(ARCHIVE), text(KEY));
        Problem::RowMissing { file, key, lack }
    }));
    all
}

fn database() -> PackagePath {
    kernels("/opt/rocm/lib/rocblas/library/T.dat")
}

fn of_hosts_and_manifests() -> Vec<Problem> {
    let partly = text("1 of 2 wrappers are transformed");
    let mut all = vec![Problem::BadHostBinary { file: host(LIBRARY), reason: partly }];
    let faults = [
        ManifestFault::Wrong { reason: reason() },
        ManifestFault::ArchGone {
            archive: text(ARCHIVE),
            arch: text("gfx1100"),
            path: text("/opt/rocm/lib/rocblas/library/T.co"),
        },
        ManifestFault::ArchiveAbsent { archive: text(ARCHIVE) },
        ManifestFault::NotListed,
    ];
    all.extend(faults.map(|fault| {
        let file = host("/opt/rocm/lib/.kpack/blas_lib.kpm");
        Problem::BadManifest { file, fault }
    }));
    all
}

fn of_paths() -> Vec<Problem> {
    let conflicts = [
        PathConflict::Owners { sharing: OWNED_TWICE, first: text(DEB), second: text(KERNELS) },
        PathConflict::BelowFile {
            above: text("/opt/rocm/lib"),
            other: text(DEB),
            package: text(KERNELS),
        },
        PathConflict::InPackage { package: text(DEB), earlier: text("file"), later: text("link") },
        PathConflict::InPrefixes {
            artifact: text("one/blas_lib_all"),
            difference: text("differs between the prefixes a/stage and b/stage"),
        },
    ];
    let conflicts =
        conflicts.map(|conflict| Problem::PathOwnedTwice { path: text(LIBRARY), conflict });
    let length = Problem::PathTooLong {
        file: host(LIBRARY),
        reason: text("the name has 250 bytes, and the package manager unpacks 246 at most"),
    };
    let owner = Problem::ForeignOwner { file: host(LIBRARY), owner: text("builder:users") };
    conflicts.into_iter().chain([length, owner]).collect()
}

fn of_dependencies() -> Vec<Problem> {
    vec![
        dependency_missing(DependencyLack::OwnVersion),
        dependency_missing(DependencyLack::OtherVersion {
            requirement: text("rocm-blas = 7.1.0-2"),
            offered: texts(["rocm-blas 7.1.0-1"]),
        }),
        dependency_missing(DependencyLack::PathUnlisted {
            path: text("/opt/rocm/libexec/runner"),
            owner: text("rocm-core-7.1.0-1.x86_64.rpm"),
        }),
        Problem::SetConflict {
            package: text(DEB),
            exclusion: text("Breaks: rocm-fft < 7.2"),
            other: text("rocm-fft_7.1.0-1_amd64.deb"),
        },
        library_missing(LibraryLack::NotBrought(PackagePath::new("hip.deb", "/opt/rocm/lib/x"))),
        library_missing(LibraryLack::NoDependency),
        Problem::PackageTwice { package: text(DEB), identity: identity(), other: text("b.deb") },
        Problem::PackageOfOtherSet {
            package: text(DEB),
            identity: identity(),
            other: text("b.deb"),
        },
    ]
}

fn dependency_missing(lack: DependencyLack) -> Problem {
    Problem::DependencyMissing { package: text(KERNELS), lack }
}

fn library_missing(lack: LibraryLack) -> Problem {
    Problem::LibraryMissing {
        package: text(DEB),
        path: text(LIBRARY),
        library: Soname::from("libamdhip64.so.7"),
        lack,
    }
}

fn of_documents() -> Vec<Problem> {
    let faults = [
        DocumentFault::Unreadable { reason: reason() },
        DocumentFault::OtherDigest { package: text(DEB), sha256: digest() },
    ];
    let mut all = faults.map(|fault| document_mismatch("packages.spdx.json", fault)).to_vec();
    all.push(document_mismatch(DEB, DocumentFault::PackageAbsent));
    all.push(document_mismatch(DEB, DocumentFault::NotDescribed));
    all.push(Problem::BadArtifact { file: text("one/blas_lib_all"), reason: reason() });
    all
}

fn document_mismatch(file: &str, fault: DocumentFault) -> Problem {
    Problem::DocumentMismatch { file: text(file), fault }
}

fn of_indexes() -> Vec<Problem> {
    let file = || text(LIST);
    let mut all = vec![
        Problem::BadIndex { file: file(), reason: text("has a package without Filename") },
        Problem::IndexMismatch { file: file(), reason: text("is not the one that Release lists") },
        Problem::IndexInconsistent { file: file(), reason: text("filelists has a package twice") },
    ];
    let reason = text("was in rocm-blas 7.1.0-1 and is in rocm-blas7.1 7.1.0-1");
    all.push(Problem::RepositoryPath { path: text("/opt/rocm/bin/x"), reason });
    all
}

fn of_indexed_packages() -> Vec<Problem> {
    let alternatives = texts(["a >= 1", "b"]);
    vec![
        Problem::PackageMissing { file: text(POOL) },
        Problem::PackageMismatch {
            file: text(POOL),
            reason: text("its SHA256 is not the one of the index"),
        },
        Problem::BadSignature { file: text(POOL), reason: text("is not there") },
        Problem::ReleaseExpired {
            file: text("dists/stable/Release"),
            until: text("Thu, 01 Jan 2026 00:00:00 UTC"),
        },
        Problem::PublicationInFuture {
            file: text("dists/stable/Release"),
            date: text("Wed, 01 Jan 2036 00:00:00 UTC"),
        },
        Problem::OrphanFile { file: text(POOL) },
        Problem::PackagesWithoutDigest {
            file: text(REPOMD),
            packages: texts(["packages/r/rocm-1-1.noarch.rpm"]),
            missing: MissingDigest::Header,
        },
        Problem::PackagesWithoutDigest {
            file: text(REPOMD),
            packages: texts(["packages/a.rpm", "packages/b.rpm"]),
            missing: MissingDigest::Payload,
        },
        open_dependency(OpenDependency::Deb {
            alternatives: alternatives.clone(),
            arch: Some(text("x86_64")),
        }),
        open_dependency(OpenDependency::Deb { alternatives, arch: None }),
        open_dependency(OpenDependency::Rpm {
            alternatives: texts(["a = 1"]),
            arch: text("x86_64"),
        }),
        open_dependency(OpenDependency::Path {
            path: text("/opt/rocm/libexec/runner"),
            owner: text("packages/r/rocm-core-7.1.0-1.x86_64.rpm"),
        }),
        open_dependency(OpenDependency::Wheel {
            extra: "device-gfx942".to_owned(),
            requires: "torch-device-gfx942 ==2.13.0".to_owned(),
            gap: ExtraGap::Absent,
        }),
        open_dependency(OpenDependency::Rpm {
            alternatives: texts(["a", "b", "c", "d", "e", "f"]),
            arch: text("x86_64"),
        }),
    ]
}

fn open_dependency(dependency: OpenDependency) -> Problem {
    Problem::DependencyOpen { file: text(POOL), dependency }
}

fn of_parts() -> Vec<Problem> {
    let (second, first) = (part(2), part(1));
    let differences = [
        DifferentParts::Twice,
        DifferentParts::Division { part: second, first },
        DifferentParts::Plan { part: second, first },
        DifferentParts::Whole { part: second, first },
    ];
    let mut all = differences.map(|difference| Problem::PartsDiffer { difference }).to_vec();
    let breaches = [
        PlanBreach::NotPlanned,
        PlanBreach::NotAlone { planned: 2 },
        PlanBreach::Absent { planned: 2 },
    ];
    all.extend(breaches.map(|breach| Problem::PartMismatch { package: text(DEB), breach }));
    all.push(Problem::PartMissing { part: second });
    all.push(Problem::PartMisnamed { part: second });
    all
}

fn of_headers() -> Vec<Problem> {
    let mut all = vec![
        Problem::SetId { file: host("/opt/rocm/bin/tool"), mode: 0o4755 },
        Problem::FileForeign { file: host("/etc/cron.d/evil"), kind: text("file") },
    ];
    let faults = [
        HeaderFault::NoDigest { missing: MissingDigest::Payload },
        HeaderFault::System { os: text("windows") },
        HeaderFault::Machine { arch: text("s390x") },
        HeaderFault::PayloadFormat { format: text("tar") },
        HeaderFault::Feature { feature: text("rpmlib(Nothing)") },
        HeaderFault::LeftOut { path: text(ARCHIVE), how: "a document (%doc)" },
    ];
    let reason = text("was changed or removed since the publication");
    all.push(Problem::ClientFile { file: text("rocm.repo"), reason });
    all.push(Problem::StateMismatch {
        file: text(".rockpack/apt-stable.json.zst"),
        reason: text("is the state of indexes that are not there"),
    });
    all.extend(faults.map(|fault| {
        let package = text("rocm-blas-gfx110x-7.1.0-1.x86_64.rpm");
        Problem::BadHeader { package, fault }
    }));
    all
}

fn examples() -> Vec<Problem> {
    let mut problems = Problems::default();
    let areas = [
        of_receipts(),
        of_lost_code(),
        of_misplaced_code(),
        of_places(),
        of_archives(),
        of_hosts_and_manifests(),
        of_paths(),
        of_dependencies(),
        of_documents(),
        of_indexes(),
        of_indexed_packages(),
        of_parts(),
        of_headers(),
        wheels::examples(),
    ];
    areas.into_iter().flatten().for_each(|problem| problems.add(problem));
    problems.finish()
}

#[test]
fn codes_are_unique_and_sorted() {
    let ids: Vec<_> = Check::ALL.iter().map(|check| check.id()).collect();
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "{ids:?}");
    let names: BTreeSet<_> = Check::ALL.iter().map(|check| check.name()).collect();
    assert_eq!(names.len(), ids.len());
}

#[test]
fn every_check_has_an_example() {
    let shown: BTreeSet<Check> = examples().iter().map(Problem::code).collect();
    assert_eq!(shown, Check::ALL.iter().copied().collect());
}

#[test]
fn json_has_the_text_and_then_the_fields() {
    for problem in examples() {
        let text = [
            ("code", problem.code().id()),
            ("name", problem.code().name()),
            ("subject", &problem.subject()),
            ("message", &problem.message()),
        ];
        assert!(!own_fields(&problem, &text).is_empty(), "{problem}");
    }
}

#[test]
fn texts_are_as_written_here() {
    compare(&examples(), "src/verify/problem/examples.txt");
}

#[test]
fn problems_that_differ_in_what_the_text_leaves_out_are_kept_in_one_order() {
    let (first, last) = (of_size(1), of_size(2));
    assert_eq!(first.to_string(), last.to_string());
    let kept = sorted([last.clone(), first.clone(), last.clone()]);
    assert_eq!(kept, [first.clone(), last.clone()]);
    assert_eq!(sorted([first.clone(), last, first]), kept);
}

/// The problem of a package that has `size` bytes and that a receipt states others of.
fn of_size(size: u64) -> Problem {
    Problem::ReceiptMismatch {
        file: text(DEB),
        size,
        sha256: digest(),
        stated_size: 0,
        stated_sha256: digest().to_string(),
    }
}

fn sorted(given: [Problem; 3]) -> Vec<Problem> {
    Problems { list: given.to_vec(), ..Problems::default() }.finish()
}

#[test]
fn of_very_many_problems_of_a_check_some_are_told() {
    let mut own = Problems::bounded();
    (0..MOST_TOLD + 3).for_each(|at| own.add(package_missing(at)));
    own.add(Problem::OrphanFile { file: text("a") });
    let mut all = Problems::default();
    all.extend(own);
    // Each repository has a bound of its own; problems of anything else are all reported.
    all.add(package_missing(MOST_TOLD + 3));
    let more: Vec<_> = all.more().iter().map(|more| (more.code, more.count)).collect();
    assert_eq!(more, [("V072", 3)]);
    assert_eq!(all.finish().len(), MOST_TOLD + 2);
}

fn package_missing(at: usize) -> Problem {
    Problem::PackageMissing { file: at.to_string() }
}

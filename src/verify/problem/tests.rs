//! One example of every failed check at least, and of every form that its text has.
//!
//! With `ROCKPACK_BLESS=1` the texts are written into `examples.txt`; look at the difference.

mod wheels;

use std::collections::BTreeSet;

use rockpack_base::content::Sha256Digest;
use rockpack_base::formats::rpm::MissingDigest;
use rockpack_base::formats::wheel::ListingFault;

use super::*;
use crate::receipt::{DifferentParts, PlanBreach, SetPart};
use crate::report::Soname;
use crate::report::fixture::{compare, own_fields};

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
    let mut all = vec![
        Problem::Unreadable { place: deb_place(), reason: reason() },
        Problem::Unreadable { place: library_place(), reason: reason() },
        Problem::Unreadable { place: disk_place(), reason: text("its name is no UTF-8") },
        of_size(1),
    ];
    let lacks = [ReceiptLack::Package, ReceiptLack::Record];
    all.extend(lacks.map(|lack| Problem::ReceiptIncomplete { package: text(DEB), lack }));
    let receipt = || text("out/packages.json");
    all.push(Problem::ReceiptUnsigned { receipt: receipt(), reason: "is not signed" });
    all.push(Problem::ReceiptSignature { receipt: receipt(), reason: text("its .asc is damaged") });
    all.push(Problem::DigestMismatch { file: host(LIBRARY), reason: "its MD5 is another" });
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
    let (installed, shard) = (|| text(ARCHIVE), || text("one"));
    let losses = [
        CodeLoss::NotInstalled { installed: installed() },
        CodeLoss::NotAtPlace { installed: installed(), key: Some(text(KEY)) },
        CodeLoss::NotAtPlace { installed: installed(), key: None },
        CodeLoss::OfWrapper { shard: shard(), wrapper: 1 },
        CodeLoss::OfFile { shard: shard() },
    ];
    losses.map(lost_code).to_vec()
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
        (CodePosition::row(KEY, "gfx1100"), ARTIFACTS),
        (CodePosition::File, ARTIFACTS),
        (CodePosition::Entry { id: text("host-x86_64") }, RECEIPT),
    ];
    let foreign = positions.map(|(position, unknown_to)| Problem::CodeObjectForeign {
        file: kernels(ARCHIVE),
        position,
        sha256: digest(),
        unknown_to,
    });
    let mut all = foreign.to_vec();
    let (place, reason) =
        (text("lib/libexblas.so.1.2 of one, wrapper 1"), text("has other kernels"));
    all.push(Problem::CodeObjectMisplaced { place, reason });
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

fn of_places() -> Vec<Problem> {
    let reason = text("still has a .hip_fatbin with content");
    let mut all = vec![Problem::DeviceCodeInHost { file: host(LIBRARY), reason }];
    all.push(Problem::HostCodeInKernels { file: kernels(LIBRARY) });
    let (place, reason) = (ProblemPlace::File(kernels(ARCHIVE)), text("holds code for gfx906"));
    all.push(Problem::ForeignArch { place, reason });
    all
}

fn of_archives() -> Vec<Problem> {
    let row = text("libexblas.so.1#0 [gfx1100]: its code object is for gfx1101");
    let mut all = vec![Problem::BadArchive { file: kernels(ARCHIVE), reason: row }];
    let fault = SetFault::absent("has no index of its name beside it");
    all.push(Problem::DatabaseUnpaired { file: database(), fault });
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
    let (file, key) = (kernels(ARCHIVE), text(KEY));
    let fault = SetFault::wrong("gfx90a:xnack+ looks for gfx90a, for which there is no row");
    all.push(Problem::RowMissing { file, key, fault });
    all
}

fn database() -> PackagePath {
    kernels("/opt/rocm/lib/rocblas/library/T.dat")
}

fn of_hosts_and_manifests() -> Vec<Problem> {
    let partly = text("1 of 2 wrappers are transformed");
    let mut all = vec![Problem::BadHostBinary { file: host(LIBRARY), reason: partly }];
    let file = host("/opt/rocm/lib/.kpack/blas_lib.kpm");
    all.push(Problem::BadManifest { file, fault: SetFault::wrong(reason()) });
    all
}

fn of_paths() -> Vec<Problem> {
    let reason = format!("{OWNED_TWICE}: {DEB} and {KERNELS}");
    let owned = Problem::PathOwnedTwice { path: text(LIBRARY), reason };
    let twice = twice_in_package(&host(LIBRARY), "file", "link");
    let length = Problem::PathTooLong {
        file: host(LIBRARY),
        reason: text("the name has 250 bytes, and the package manager unpacks 246 at most"),
    };
    let owner = Problem::ForeignOwner { file: host(LIBRARY), owner: text("builder:users") };
    vec![owned, twice, length, owner]
}

fn of_dependencies() -> Vec<Problem> {
    vec![
        Problem::DependencyMissing {
            package: text(KERNELS),
            reason: text("depends on no package of exactly its own version"),
        },
        Problem::SetConflict {
            package: text(DEB),
            exclusion: text("Breaks: rocm-fft < 7.2"),
            other: text("rocm-fft_7.1.0-1_amd64.deb"),
        },
        Problem::LibraryMissing {
            package: text(DEB),
            path: text(LIBRARY),
            library: Soname::from("libamdhip64.so.7"),
            reason: text("and no dependency is on anything that has it"),
        },
        Problem::PackageTwice { package: text(DEB), identity: identity(), other: text("b.deb") },
        Problem::PackageOfOtherSet {
            package: text(DEB),
            identity: identity(),
            other: text("b.deb"),
        },
        Problem::BadArtifact { file: text("one/blas_lib_all"), reason: reason() },
    ]
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
        Problem::DependencyOpen {
            file: text(POOL),
            reason: text("depends on a >= 1 or b, which no package is"),
        },
    ]
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
    let reason = text("was changed or removed since the publication");
    all.push(Problem::ClientFile { file: text("rocm.repo"), reason });
    all.push(Problem::StateMismatch {
        file: text(".rockpack/apt-stable.json.zst"),
        reason: text("is the state of indexes that are not there"),
    });
    all.push(Problem::BadHeader {
        package: text("rocm-blas-gfx110x-7.1.0-1.x86_64.rpm"),
        reason: text("needs rpmlib(Nothing), which no rpm has"),
    });
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

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
use crate::package::Format;
use crate::receipt::{DifferentParts, PlanBreach, SetPart};
use crate::report::fixture::{compare, own_fields};
use crate::report::{EmbeddedForm, ExtraGap, Inconsistency, Soname};

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
        unreadable(deb_place(), ReadFault::Failed { reason: reason() }),
        unreadable(library_place(), ReadFault::Failed { reason: reason() }),
        unreadable(disk_place(), ReadFault::NameNotUtf8),
        unreadable(disk_place(), ReadFault::TargetNotUtf8),
        receipt_mismatch(
            deb_place(),
            ReceiptDifference::Bytes {
                size: 1,
                sha256: digest(),
                stated_size: 2,
                stated_sha256: digest().to_string(),
            },
        ),
        receipt_mismatch(
            deb_place(),
            ReceiptDifference::Archs {
                archs: texts(["gfx1100", "gfx1101"]),
                stated: texts(["gfx1100"]),
            },
        ),
        receipt_mismatch(deb_place(), ReceiptDifference::CodeObjects { count: 2, stated: 3 }),
        receipt_mismatch(library_place(), ReceiptDifference::Member),
        receipt_mismatch(library_place(), ReceiptDifference::Unlisted),
        receipt_mismatch(library_place(), ReceiptDifference::LeftOut),
        receipt_mismatch(library_place(), ReceiptDifference::NothingLeftOut),
        receipt_mismatch(
            deb_place(),
            ReceiptDifference::Field {
                field: text("version"),
                own: text("7.1.0-1"),
                stated: text("7.1.0-2"),
            },
        ),
        receipt_mismatch(
            deb_place(),
            ReceiptDifference::OtherFormat { field: text("role"), other: text(DEB) },
        ),
    ];
    let lacks = [ReceiptLack::Package, ReceiptLack::Record];
    all.extend(lacks.map(|lack| Problem::ReceiptIncomplete { package: text(DEB), lack }));
    all.extend(digests.map(|fault| Problem::DigestMismatch { file: host(LIBRARY), fault }));
    all
}

fn unreadable(place: ProblemPlace, fault: ReadFault) -> Problem {
    Problem::Unreadable { place, fault }
}

fn receipt_mismatch(place: ProblemPlace, difference: ReceiptDifference) -> Problem {
    Problem::ReceiptMismatch { place, difference }
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
        RecordFault::NotAtKey { key: text(KEY) },
        RecordFault::NotTheFile,
        RecordFault::Target(RowFault::CompiledFor(target("gfx1101"))),
        RecordFault::NotTheEntry {
            id: text("hipv4-amdgcn-amd-amdhsa--gfx1100"),
            target: text("gfx1100"),
        },
        RecordFault::OtherKind,
        RecordFault::TooOften,
        RecordFault::OtherShard { shards: vec![text("one-build")], stated: text("other-build") },
        RecordFault::OtherPackage { package: text(DEB), stated: text("rocm-blas-gfx110x") },
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
        FileLoss::Absent { was: InputVariant::File { shards: texts(["one", "two"]) } },
        FileLoss::Absent { was: InputVariant::Directory },
        FileLoss::OtherContent { was: InputVariant::Link { target: text("libexblas.so.1") } },
        FileLoss::OtherThanUnread {
            was: InputVariant::File { shards: texts(["one"]) },
            reason: text("ELF section 3: ends outside of the file"),
        },
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
    let hosted = [
        HostedCode::CodeObject,
        HostedCode::Bundle,
        HostedCode::Archive,
        HostedCode::Index { arch: arch("gfx1100") },
        HostedCode::Unreadable { reason: reason() },
        HostedCode::BundleInBinary { offset: 0x1000 },
        HostedCode::Embedded { form: EmbeddedForm::CodeObject, offset: 0x1000 },
        HostedCode::Section,
    ];
    let mut all: Vec<Problem> =
        hosted.map(|found| Problem::DeviceCodeInHost { file: host(LIBRARY), found }).to_vec();
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
    all.push(Problem::ForeignArch {
        place: ProblemPlace::Package(text(KERNELS)),
        found: ForeignCode::SecondGroup { arch: text("gfx1100"), other: text(DEB) },
    });
    all
}

fn own_archs() -> Vec<String> {
    texts(["gfx1100", "gfx1101"])
}

fn of_archives() -> Vec<Problem> {
    let faults = [
        ArchiveFault::Unreadable { reason: reason() },
        ArchiveFault::CodeObject { ordinal: 3, reason: reason() },
        bad_row(RowFault::NoTarget { reason: reason() }),
        bad_row(RowFault::NoCodeObject),
        bad_row(RowFault::CompiledFor(target("gfx1101"))),
        ArchiveFault::NotListed { target: text("gfx1100") },
        ArchiveFault::WithoutRow { target: text("gfx1100") },
        ArchiveFault::OtherArch { arch: arch("gfx1100"), target: target("gfx90a:xnack+") },
        ArchiveFault::Features { count: 20 },
    ];
    let mut all =
        faults.map(|fault| Problem::BadArchive { file: kernels(ARCHIVE), fault }).to_vec();
    let lacks = [
        PartnerLack::Absent { wanted: DatabasePartner::Index, archs: Vec::new() },
        PartnerLack::Absent {
            wanted: DatabasePartner::CodeObject,
            archs: vec![arch("gfx1100"), arch("gfx1101")],
        },
        PartnerLack::Elsewhere { wanted: DatabasePartner::Index, package: text(DEB) },
        PartnerLack::ReferenceAbsent { reference: text("T.co") },
        PartnerLack::ReferenceElsewhere { reference: text("T.co"), package: text(DEB) },
    ];
    all.extend(lacks.map(|lack| Problem::DatabaseUnpaired { file: database(), lack }));
    let faults = [
        Inconsistency::MasterWithoutMapping { mapping: text("M.dat") },
        Inconsistency::MappingWithoutMaster { master: text("T.dat") },
        Inconsistency::ForeignNames { arch: text("gfx1100"), names: texts(["S_gfx906"]) },
        Inconsistency::FallbackUnmapped { fallbacks: texts(["S_fallback_gfx1100.dat"]) },
        Inconsistency::PlainAndCompressed { compressed: text("T.dat.zlib") },
    ];
    all.extend(faults.map(|fault| Problem::DatabaseInconsistent { file: database(), fault }));
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

fn bad_row(fault: RowFault) -> ArchiveFault {
    ArchiveFault::Row { key: text(KEY), target: text("gfx1100"), fault }
}

fn database() -> PackagePath {
    kernels("/opt/rocm/lib/rocblas/library/T.dat")
}

fn of_hosts_and_manifests() -> Vec<Problem> {
    let faults = [
        HostFault::Unreadable { reason: reason() },
        HostFault::Marker { reason: text("its marker is not loaded") },
        HostFault::MarkerAlone,
        HostFault::Partly { transformed: 1, wrappers: 2 },
        bad_wrapper(WrapperFault::Version { version: 2 }),
        bad_wrapper(WrapperFault::Pointer { address: 0x2000 }),
        bad_wrapper(WrapperFault::Unmoved),
        bad_wrapper(WrapperFault::Index { index: 5 }),
    ];
    let mut all: Vec<Problem> =
        faults.map(|fault| Problem::BadHostBinary { file: host(LIBRARY), fault }).to_vec();
    let faults = [
        ManifestFault::Unreadable { reason: reason() },
        ManifestFault::Misplaced { component: text("blas_lib"), prefix: text("lib") },
        ManifestFault::ArchGone {
            archive: text(ARCHIVE),
            arch: text("gfx1100"),
            path: text("/opt/rocm/lib/rocblas/library/T.co"),
        },
        ManifestFault::ArchiveAbsent { archive: text(ARCHIVE) },
        ManifestFault::Size { archive: text(ARCHIVE), size: 1, stated: 2 },
        ManifestFault::KernelCount { archive: text(ARCHIVE), stated: 2 },
        ManifestFault::Archs {
            archive: text(ARCHIVE),
            arch: text("gfx1100"),
            targets: texts(["gfx1100", "gfx1101"]),
        },
        ManifestFault::NotListed,
    ];
    all.extend(faults.map(|fault| {
        let file = host("/opt/rocm/lib/.kpack/blas_lib.kpm");
        Problem::BadManifest { file, fault }
    }));
    all
}

fn bad_wrapper(fault: WrapperFault) -> HostFault {
    HostFault::Wrapper { wrapper: 1, fault }
}

fn of_paths() -> Vec<Problem> {
    let conflicts = [
        two_owners(BadSharing::DifferentFiles),
        two_owners(BadSharing::DifferentArtifacts),
        two_owners(BadSharing::Modes),
        two_owners(BadSharing::Path),
        PathConflict::BelowFile {
            above: text("/opt/rocm/lib"),
            other: text(DEB),
            package: text(KERNELS),
        },
        PathConflict::InPackage { package: text(DEB), earlier: text("file"), later: text("link") },
        in_prefixes(NodeDifference::Modes { own: 0o644, other: 0o755 }),
        in_prefixes(NodeDifference::Kinds { own: text("file"), other: text("directory") }),
        in_prefixes(NodeDifference::Content),
    ];
    let conflicts =
        conflicts.map(|conflict| Problem::PathOwnedTwice { path: text(LIBRARY), conflict });
    let lengths = [
        too_long(PathExcess::Name { bytes: 250, limit: 246 }),
        too_long(PathExcess::Path { bytes: 4090, limit: 4086 }),
    ];
    let owner = Problem::ForeignOwner { file: host(LIBRARY), owner: text("builder:users") };
    conflicts.into_iter().chain(lengths).chain([owner]).collect()
}

fn two_owners(sharing: BadSharing) -> PathConflict {
    PathConflict::Owners { sharing, first: text(DEB), second: text(KERNELS) }
}

fn in_prefixes(difference: NodeDifference) -> PathConflict {
    PathConflict::InPrefixes {
        artifact: text("one/blas_lib_all"),
        first: text("a/stage"),
        second: text("b/stage"),
        difference,
    }
}

fn too_long(excess: PathExcess) -> Problem {
    Problem::PathTooLong { file: host(LIBRARY), excess }
}

fn of_dependencies() -> Vec<Problem> {
    let bound = ExclusionBound { sign: text("<<"), version: text("7.2") };
    vec![
        Problem::VersionMissing {
            package: text(DEB),
            path: text("/opt/rocm-7.1/bin/x"),
            library: Soname::from("librocblas.so.5"),
            version: text("ROCBLAS_4"),
            at: PackagePath::new(DEB, LIBRARY),
        },
        Problem::LibraryMisplaced { package: text(DEB), path: text(LIBRARY) },
        library_missing(LibraryLack::OutOfReach(PackagePath::new(DEB, LIBRARY))),
        dependency_missing(DependencyLack::Host {
            host: text("rocm-blas"),
            version: text("7.1.0-1"),
        }),
        interpreter_missing(InterpreterLack::NotBrought {
            interpreter: text("/opt/rocm/bin/python"),
            holder: PackagePath::new(DEB, "/opt/rocm/bin/python"),
        }),
        interpreter_missing(InterpreterLack::Nowhere { interpreter: text("/opt/rocm/bin/python") }),
        interpreter_missing(InterpreterLack::Unreadable),
        dependency_missing(DependencyLack::OwnVersion),
        dependency_missing(DependencyLack::OtherVersion {
            dependency: text("rocm-blas"),
            sign: text("="),
            wanted: text("7.1.0-2"),
            version: text("7.1.0-1"),
        }),
        dependency_missing(DependencyLack::PathUnlisted {
            path: text("/opt/rocm/libexec/runner"),
            owner: text("rocm-core-7.1.0-1.x86_64.rpm"),
        }),
        Problem::OtherGroupNeeded {
            package: text(KERNELS),
            brought: text("rocm-blas-gfx120x_7.1.0-1_amd64.deb"),
            archs: texts(["gfx1200", "gfx1201"]),
        },
        set_conflict(Some(bound)),
        set_conflict(None),
        library_missing(LibraryLack::NotBrought(PackagePath::new("hip.deb", "/opt/rocm/lib/x"))),
        library_missing(LibraryLack::NoDependency),
        library_missing(LibraryLack::Untold(text("hip.deb"))),
        Problem::PackageTwice { package: text(DEB), identity: identity(), other: text("b.deb") },
        Problem::PackageOfOtherSet {
            package: text(DEB),
            identity: identity(),
            other: text("b.deb"),
        },
    ]
}

fn set_conflict(bound: Option<ExclusionBound>) -> Problem {
    Problem::SetConflict {
        package: text(DEB),
        exclusion: Exclusion { field: text("Breaks"), excluded: text("rocm-fft"), bound },
        other: text("rocm-fft_7.1.0-1_amd64.deb"),
    }
}

fn dependency_missing(lack: DependencyLack) -> Problem {
    Problem::DependencyMissing { package: text(KERNELS), lack }
}

fn interpreter_missing(lack: InterpreterLack) -> Problem {
    Problem::InterpreterMissing { package: text(DEB), path: text("/opt/rocm/bin/tool"), lack }
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
        DocumentFault::IdTwice { id: text("SPDXRef-1") },
        DocumentFault::ElementAbsent { id: text("SPDXRef-1") },
        DocumentFault::PackageTwice { package: text(DEB) },
        DocumentFault::OtherDigest { package: text(DEB), sha256: digest() },
        DocumentFault::NoDigest { package: text(DEB) },
        DocumentFault::OtherFile { package: text(DEB), path: text("./opt/rocm/lib/x") },
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
    let (list, element) = (|| text("filelists"), || text("checksum"));
    let mut all = vec![
        bad_index(LIST, IndexFault::Unreadable { reason: reason() }),
        bad_index(LIST, IndexFault::NotUtf8),
        bad_index(LIST, IndexFault::Outside { path: text("../x") }),
        bad_index(LIST, IndexFault::NoFile),
        bad_index(LIST, IndexFault::Large { len: 2 << 24, most: 1 << 24 }),
        bad_index(LIST, IndexFault::Lists { count: 1000, most: 100 }),
        bad_index(REPOMD, IndexFault::NamesOutside { path: text("../x") }),
        bad_index(REPOMD, IndexFault::ListTwice { list: list() }),
        bad_index(REPOMD, IndexFault::ElementTwice { list: list(), element: element() }),
        bad_index(REPOMD, IndexFault::NoPrimary),
        bad_index("repodata/primary.xml.gz", IndexFault::NoSha256),
        bad_index(LIST, IndexFault::NoFilename),
        bad_index(REPOMD, IndexFault::Architectures { count: 65, most: 64 }),
        bad_index(POOL, IndexFault::PackageElementTwice { element: element() }),
    ];
    let differences = [
        IndexDifference::Absent,
        IndexDifference::Bytes { listed_by: text("Release") },
        IndexDifference::Bytes { listed_by: text("repomd.xml") },
        IndexDifference::OpenText,
        IndexDifference::Unpacked { index: text("Packages") },
        IndexDifference::Digest,
        IndexDifference::Forms,
        IndexDifference::Page,
        IndexDifference::Element { element: "base".to_owned() },
        IndexDifference::Field { field: "tracks".to_owned() },
        IndexDifference::Interface { version: "2.0".to_owned() },
        IndexDifference::Part { part: "list of versions" },
    ];
    all.extend(
        differences.map(|difference| Problem::IndexMismatch { file: text(LIST), difference }),
    );
    let (package, arch) = (|| text(POOL), || text("arm64"));
    let contradictions = [
        IndexContradiction::OtherArch { package: package(), arch: arch() },
        IndexContradiction::Description { package: package() },
        IndexContradiction::PackageTwice { package: package(), arch: Some(arch()) },
        IndexContradiction::PackageTwice { package: package(), arch: None },
        IndexContradiction::SamePackage { identity: identity(), other: text("pool/x.deb") },
        IndexContradiction::TwiceInList { list: list() },
        IndexContradiction::ListAbsent { list: list() },
        IndexContradiction::OtherPackages { list: list() },
        IndexContradiction::NamedTwice,
    ];
    all.extend(contradictions.map(|fault| Problem::IndexInconsistent { file: text(LIST), fault }));
    let [first, second] = ["rocm-blas 7.1.0-1", "rocm-blas7.1 7.1.0-1"].map(text);
    let faults = [
        RepositoryPathFault::Together {
            format: Format::Deb,
            first: first.clone(),
            second: second.clone(),
        },
        RepositoryPathFault::Moved { former: first, owner: second },
    ];
    all.extend(
        faults.map(|fault| Problem::RepositoryPath { path: text("/opt/rocm/bin/x"), fault }),
    );
    all
}

fn bad_index(file: &str, fault: IndexFault) -> Problem {
    Problem::BadIndex { file: text(file), fault }
}

fn of_indexed_packages() -> Vec<Problem> {
    let alternatives = texts(["a >= 1", "b"]);
    vec![
        Problem::PackageMissing { file: text(POOL) },
        package_mismatch(IndexedDifference::Unreadable { reason: reason() }),
        package_mismatch(IndexedDifference::Property(text("SHA256"))),
        package_mismatch(IndexedDifference::Field(text("Depends"))),
        bad_signature(SignatureFault::Absent),
        bad_signature(SignatureFault::Bad { reason: text("is signed by none of the keys given") }),
        bad_signature(SignatureFault::BadHeader {
            reason: text("is signed by none of the keys given"),
        }),
        bad_signature(SignatureFault::Unsigned),
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

fn package_mismatch(difference: IndexedDifference) -> Problem {
    Problem::PackageMismatch { file: text(POOL), difference }
}

fn bad_signature(fault: SignatureFault) -> Problem {
    Problem::BadSignature { file: text(POOL), fault }
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
        Problem::ReceiptMismatch {
            place: ProblemPlace::Package(text(DEB)),
            difference: ReceiptDifference::Relation { relation: text("depends: rocm-core") },
        },
        Problem::ReceiptMismatch {
            place: ProblemPlace::Package(text(DEB)),
            difference: ReceiptDifference::RelationLost { relation: text("depends: rocm-core") },
        },
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
    let clients = [
        ClientFault::Unreadable { reason: reason() },
        ClientFault::OtherKeys,
        ClientFault::MoreKeys { fingerprints: vec!["ab".repeat(20)] },
        ClientFault::MoreKeys { fingerprints: vec!["ab".repeat(20), "cd".repeat(20)] },
        ClientFault::NoSigner,
        ClientFault::Insecure { line: text("trusted: yes") },
        ClientFault::Unknown { line: text("proxy: http://evil.example") },
        ClientFault::Lacks { name: text("gpgkey") },
        ClientFault::Unchecked,
        ClientFault::Elsewhere { url: text("https://evil.example/rocm") },
        ClientFault::Absent { what: text("the suite stable") },
        ClientFault::Changed,
    ];
    all.extend(clients.map(|fault| Problem::ClientFile { file: text("rocm.repo"), fault }));
    let states = [
        StateFault::Unreadable { reason: reason() },
        StateFault::Differs { package: text(POOL) },
        StateFault::NoIndex,
    ];
    let state = || text(".rockpack/apt-stable.json.zst");
    all.extend(states.map(|fault| Problem::StateMismatch { file: state(), fault }));
    all.push(Problem::IndexInconsistent {
        file: text("dists/testing/Release"),
        fault: IndexContradiction::OtherSuite {
            names: texts(["stable", "seven"]),
            folder: text("testing"),
        },
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
        place: ProblemPlace::Package(text(DEB)),
        difference: ReceiptDifference::Bytes {
            size,
            sha256: digest(),
            stated_size: 0,
            stated_sha256: digest().to_string(),
        },
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

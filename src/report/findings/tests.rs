//! Examples of every finding, and of every form of its text.
//!
//! With `ROCKPACK_BLESS=1` the texts are written into `examples.txt`; look at the difference.

use std::collections::BTreeSet;

use rockpack_base::formats::package_file::Format;
use rockpack_base::formats::rpm::MissingDigest;
use rockpack_base::gfx::{BaseArch, Target};
use rockpack_base::tree::{ComponentKind, MemberKind, TreePath};
use serde::Deserialize;

use super::*;
use crate::report::fixture::{compare, own_fields};
use crate::report::{ElfMachine, Soname};

fn path(text: &str) -> TreePath {
    TreePath::new(text).unwrap()
}

fn arch(text: &str) -> BaseArch {
    text.parse().unwrap()
}

fn archs(text: &str) -> Vec<BaseArch> {
    text.split_whitespace().map(arch).collect()
}

fn target(text: &str) -> Target {
    text.parse().unwrap()
}

fn one() -> InputArtifact {
    InputArtifact::new("one", &"blas_lib_all".parse().unwrap())
}

fn two() -> InputArtifact {
    InputArtifact::new("two", &"blas_lib_all".parse().unwrap())
}

fn input(text: &str) -> InputFile {
    one().file(&path(text))
}

fn file(text: &str) -> ComponentFile {
    ComponentFile::new("blas_lib", &path(text))
}

fn texts<T: for<'a> From<&'a str>, const N: usize>(texts: [&str; N]) -> Vec<T> {
    texts.into_iter().map(text).collect()
}

fn paths<const N: usize>(texts: [&str; N]) -> Vec<TreePath> {
    texts.map(path).to_vec()
}

/// Packages that need another version than the newest.
fn held_back(misfits: &[(&str, &str, bool)], held_back: &[&str]) -> Finding {
    let misfits = misfits.iter().map(|(package, relation, installed)| Misfit {
        package: text(package),
        version: "7.1.0-1".to_owned(),
        architecture: "amd64".to_owned(),
        installed: *installed,
        discord: Discord::Needs,
        relation: (*relation).to_owned(),
        offered: if *installed { vec!["rocm-common 7.1.0-2".to_owned()] } else { Vec::new() },
    });
    Finding::UpdateHeldBack {
        channel: "apt-stable".to_owned(),
        format: Format::Deb,
        misfits: misfits.collect(),
        held_back: held_back.iter().map(|name| (*name).to_owned()).collect(),
    }
}

/// Digests, all different.
fn digests(count: usize) -> Vec<Sha256Digest> {
    (0..count).map(digest).collect()
}

fn digest(n: usize) -> Sha256Digest {
    format!("{n:064x}").try_into().unwrap()
}

fn text<T: for<'a> From<&'a str>>(text: &str) -> T {
    text.into()
}

fn twice(format: Format) -> Finding {
    let [first, second] = ["rocm-blas 7.1.0-1", "rocm-blas7.1 7.1.0-1"].map(text);
    Finding::PathOwnedTwice { path: text("/opt/rocm/bin/x"), format, first, second }
}

fn left_out(file: &str, reason: PackageLeftOut) -> Finding {
    Finding::PackageFileLeftOut { file: text(file), reason }
}

fn places(count: usize) -> Vec<LeftOutFile> {
    (1..=count).map(|n| LeftOutFile { file: format!("blas_lib/lib/lib{n}.so"), count: n }).collect()
}

fn of_input() -> Vec<Finding> {
    let entry = "hipv4-amdgcn-amd-amdhsa--gfx906";
    let claimant = Claimant::Entry { id: text(entry), flags: 0x41 };
    let (actual, shard) = (target("gfx90a:xnack+"), || text("one"));
    vec![
        Finding::PrefixAbsent { artifact: one(), prefix: path("math/BLAS/stage") },
        Finding::FileMerged {
            file: input("share/x"),
            same: SameFile::Prefixes(text("a/stage"), text("b/stage")),
        },
        Finding::FileMerged { file: input("share/x"), same: SameFile::Artifact(two()) },
        Finding::VersionUnset { version: text("0.0.0") },
        Finding::NotAnArtifact { shard: Some(shard()), entry: text("build.log") },
        Finding::NotAnArtifact { shard: None, entry: text("README.md") },
        Finding::OutsidePrefixes { artifact: one(), files: texts(["a"]) },
        Finding::OutsidePrefixes {
            artifact: one(),
            files: texts(["a", "b", "c", "d", "e", "f", "g"]),
        },
        Finding::LinkDangling {
            owner: text("blas_dev"),
            path: path("lib/libx.so"),
            target: text("libx.so.1"),
        },
        Finding::ArtifactEmpty { artifact: one() },
        Finding::PackingUnknown { shard: shard(), entry: text("blas_lib_all.zip") },
        Finding::TargetMismatch { file: input("lib/x.so"), claimant, actual: actual.clone() },
        Finding::TargetMismatch {
            file: input("lib/x.so"),
            claimant: Claimant::Row(target("gfx906")),
            actual,
        },
        Finding::ArchNeutralCode { file: input("lib/x.so"), entry: text(entry) },
        host_provided_by_other_shard(Some(path("lib/x")), 1),
        host_provided_by_other_shard(None, 2),
        host_files_differ(KindDifference::Link),
        host_files_differ(KindDifference::DeviceCode),
    ]
}

fn host_files_differ(difference: KindDifference) -> Finding {
    Finding::HostFilesDiffer { file: file("share/x"), difference, first: one(), other: two() }
}

fn host_provided_by_other_shard(path: Option<TreePath>, files: usize) -> Finding {
    Finding::HostFromOtherShard {
        component: text("blas_lib"),
        path,
        primary: text("one"),
        shard: text("two"),
        files,
    }
}

fn of_repeated_code() -> Vec<Finding> {
    let different = DifferentCode {
        arch: arch("gfx906"),
        count: 2,
        first: one(),
        other: two(),
        wrapper: 1,
        target: target("gfx906:xnack-"),
    };
    vec![
        Finding::DuplicateCode {
            repeated: RepeatedCode::Bundle { file: input("x.hsaco"), target: target("gfx906") },
        },
        Finding::DuplicateCode { repeated: repeated_binary(1) },
        Finding::DuplicateCode { repeated: repeated_binary(3) },
        Finding::DuplicateCode {
            repeated: RepeatedCode::Database {
                component: text("blas_lib"),
                archs: archs("gfx1100 gfx1101"),
                count: 1,
                first: one(),
                other: two(),
            },
        },
        Finding::WrapperOverlap {
            file: file("lib/x.so"),
            first: one(),
            wrapper: 1,
            other: two(),
            other_wrapper: 0,
        },
        Finding::DuplicateDropped { file: file("lib/x.so"), different, code_objects: digests(2) },
    ]
}

fn repeated_binary(count: usize) -> RepeatedCode {
    RepeatedCode::Binary {
        file: file("lib/x.so"),
        arch: arch("gfx906"),
        count,
        first: one(),
        other: two(),
    }
}

fn of_code_left_out() -> Vec<Finding> {
    vec![
        Finding::ArchNotGrouped {
            arch: arch("gfx906"),
            count: 21,
            different: 20,
            places: places(6),
            code_objects: digests(20),
        },
        Finding::ArchMissing { arch: arch("gfx1200"), group: text("gfx120X") },
        Finding::TargetNotSelected {
            shard: text("one"),
            component: text("blas_lib"),
            arch: arch("gfx906"),
            count: 2,
        },
        Finding::TargetAbsent { arch: arch("gfx906"), meant: None },
        Finding::TargetAbsent { arch: arch("gfx1130"), meant: Some(arch("gfx1103")) },
        Finding::ArchExcluded {
            table: ArchFilterTable::Component(text("blas")),
            arch: arch("gfx906"),
            count: 1,
            different: 1,
            places: places(1),
            code_objects: digests(1),
        },
        Finding::ArchExcluded {
            table: ArchFilterTable::Package(text("rocm-blas")),
            arch: arch("gfx906"),
            count: 3,
            different: 3,
            places: places(2),
            code_objects: digests(3),
        },
        Finding::ArchDropped {
            arch: arch("gfx906"),
            count: 1,
            different: 1,
            places: places(1),
            code_objects: digests(1),
        },
    ]
}

fn of_files_with_code() -> Vec<Finding> {
    vec![
        Finding::ThinArchive { file: input("lib/libx.a"), is_member: false },
        Finding::ThinArchive { file: input("lib/liby.a"), is_member: true },
        Finding::DatabaseLeftover {
            file: input("share/miopen/db/gfx90a68.ukdb"),
            rule: text("miopen-user"),
        },
        other_machine_allowed(paths(["share/a.elf"])),
        other_machine_allowed(paths(["share/a.elf", "share/b.elf"])),
        Finding::BundleUnreferenced {
            file: input("lib/x.so"),
            offset: 4096,
            code_objects: digests(1),
        },
        wrapper_without_code(vec![1]),
        wrapper_without_code(vec![0, 2]),
        code_embedded(vec![embedded_code(EmbeddedForm::Bundle, Some(".rodata"))]),
        code_embedded(vec![
            embedded_code(EmbeddedForm::CompressedBundle, Some(".data")),
            embedded_code(EmbeddedForm::CodeObject, None),
        ]),
        Finding::DeviceCodeInData { file: input("x/kernels.npz"), form: EmbeddedForm::CodeObject },
        Finding::UnknownProcessor { file: input("x.so"), entry: Some(text("id")), flags: 0x99 },
        Finding::UnknownProcessor { file: input("x_gfx906.co"), entry: None, flags: 0x99 },
        Finding::EmptyCodeObject {
            file: input("x.so"),
            entry: text("id"),
            code_objects: digests(1),
        },
        kept_fat(vec![target("gfx1100"), target("gfx906:xnack-")], 1),
        kept_fat(vec![target("gfx1100"), target("gfx906:xnack-")], 2),
        kept_fat(
            ["gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx1030"].map(target).to_vec(),
            6,
        ),
        kept_fat_dropped(1),
        kept_fat_dropped(2),
        kernels_unclaimed(texts(["libx"]), 1),
        kernels_unclaimed(texts(["a", "b", "c", "d"]), 2),
        Finding::ProgramHeadersMoved { file: input("bin/x") },
        Finding::ListedArchiveAbsent {
            manifest: input("lib/.kpack/x.kpm"),
            archives: texts(["x_gfx906.kpack", "x_gfx908.kpack"]),
        },
        Finding::ListedArchiveAbsent {
            manifest: input("lib/.kpack/y.kpm"),
            archives: texts(["a", "b", "c", "d", "e", "f"]),
        },
        fat_development_file("lib/libx.a", DevelopmentFile::StaticArchive),
        fat_development_file("lib/x.bc", DevelopmentFile::Bitcode),
        fat_development_file("lib/x.o", DevelopmentFile::DeviceObject),
        fat_development_file("lib/y.o", DevelopmentFile::HostObject),
        fat_development_file("lib/z.o", DevelopmentFile::Bundle),
        Finding::AlreadyTransformed { file: input("lib/x.so") },
        Finding::NoSectionTable { file: input("bin/x") },
    ]
}

fn kept_fat(targets: Vec<Target>, count: usize) -> Finding {
    Finding::KeptFat {
        file: input("bin/x"),
        targets,
        reason: text("has no room"),
        code_objects: digests(count),
    }
}

fn kept_fat_dropped(count: usize) -> Finding {
    Finding::KeptFatDropped {
        file: input("bin/x"),
        provided_by: two(),
        code_objects: digests(count),
    }
}

fn wrapper_without_code(wrappers: Vec<usize>) -> Finding {
    Finding::WrapperWithoutCode { file: input("lib/x.so"), wrappers, of: 3 }
}

fn code_embedded(places: Vec<EmbeddedCode>) -> Finding {
    Finding::DeviceCodeEmbedded { file: input("lib/x.so"), places }
}

fn embedded_code(form: EmbeddedForm, section: Option<&str>) -> EmbeddedCode {
    EmbeddedCode { form, offset: 0x2000, section: section.map(str::to_owned) }
}

fn fat_development_file(path: &str, kind: DevelopmentFile) -> Finding {
    Finding::FatDevelopmentFile { file: input(path), kind }
}

fn kernels_unclaimed(kernel_names: Vec<String>, count: usize) -> Finding {
    Finding::KernelsUnclaimed {
        archive: input("lib/.kpack/a.kpack"),
        kernel_names,
        code_objects: digests(count),
    }
}

fn other_machine_allowed(files: Vec<TreePath>) -> Finding {
    let machine = ElfMachine::new(2, 1, [183, 0]).unwrap();
    Finding::OtherMachineAllowed { artifact: one(), machine, files }
}

/// A database file of one arch, by its name.
fn data() -> InputFile {
    input("lib/rocblas/library/T_gfx906.dat")
}

fn of_databases() -> Vec<Finding> {
    vec![
        Finding::DatabaseArchMismatch {
            file: data(),
            mismatch: ArchMismatch::Name { named: arch("gfx906"), directory: archs("gfx908") },
        },
        arch_mismatch("gfx906", MismatchOutcome::NoDatabase),
        arch_mismatch("gfx906 gfx908", MismatchOutcome::StaysWithHost),
        arch_mismatch("", MismatchOutcome::ContentDecides),
        database_shared(false),
        database_shared(true),
        Finding::DatabaseHostCode {
            file: input("lib/libx_gfx906.so"),
            archs: archs("gfx906"),
            code_objects: digests(1),
        },
        database_unreadable(DecidedBy::Rule),
        database_unreadable(DecidedBy::Name),
        Finding::DatabaseBundle { file: data(), archs: archs("gfx906 gfx908") },
        Finding::DatabaseBundle {
            file: data(),
            archs: archs("gfx900 gfx906 gfx908 gfx90a gfx942 gfx1030"),
        },
        Finding::DatabaseBundle { file: input("lib/x/y.kpack"), archs: archs("gfx906 gfx908") },
        Finding::DatabaseArchUnknown { directory: input("share/miopen/gfx9ff") },
        Finding::KernelImagesUnread { file: input("lib/aotriton.images/amd-gfx11xx/a.aks2") },
    ]
}

fn arch_mismatch(placed: &str, outcome: MismatchOutcome) -> Finding {
    let (placed, holds) = (archs(placed), archs("gfx1100"));
    let mismatch = ArchMismatch::Content { placed, holds, outcome };
    Finding::DatabaseArchMismatch { file: data(), mismatch }
}

fn database_shared(is_cache: bool) -> Finding {
    Finding::DatabaseShared {
        file: data(),
        rule: text("rocblas"),
        is_cache,
        code_objects: digests(1),
    }
}

fn database_unreadable(decided_by: DecidedBy) -> Finding {
    Finding::DatabaseUnreadable { file: data(), reason: text("no marker"), decided_by }
}

fn of_files_of_databases() -> Vec<Finding> {
    vec![
        database_unpaired(Unpaired::Archs { index: archs("gfx906"), code: archs("gfx908") }),
        database_unpaired(Unpaired::NoIndex),
        database_unpaired(Unpaired::NoCode),
        Finding::DatabaseMerged {
            file: file("share/x"),
            parts: vec![
                MergedPart { artifact: one(), sha256: digest(1) },
                MergedPart { artifact: two(), sha256: digest(2) },
            ],
        },
        database_moved(1, NoUnion::NoRule),
        database_moved(7, NoUnion::SomeBundles),
        database_moved(7, NoUnion::NoBundle),
        database_moved(7, NoUnion::SeveralBundles),
        database_moved(
            7,
            NoUnion::EntriesDiffer { entry: text("hipv4-amdgcn-amd-amdhsa--gfx906") },
        ),
        database_moved(7, NoUnion::UnknownFormat),
        database_moved(7, NoUnion::NotUtf8),
        database_moved(7, NoUnion::Ranges),
        database_moved(7, NoUnion::ValuesDiffer { key: text("\"k\"") }),
        database_moved(7, NoUnion::Earlier(text("both have the key `k`"))),
        Finding::DatabaseCacheDropped { file: file("share/x.db"), kept: one(), dropped: two() },
        database_unresolved(Unresolved::Absent),
        database_unresolved(Unresolved::Archs {
            index: archs("gfx906"),
            referred: archs("gfx908"),
        }),
    ]
}

fn database_unpaired(unpaired: Unpaired) -> Finding {
    Finding::DatabaseUnpaired { file: data(), unpaired }
}

fn database_unresolved(unresolved: Unresolved) -> Finding {
    Finding::DatabaseUnresolved { file: data(), refers_to: text("S.dat"), unresolved }
}

fn database_moved(files: usize, reason: NoUnion) -> Finding {
    Finding::DatabaseMoved {
        folder: file("lib/rocblas/library"),
        files,
        differs: text("T_fallback.dat"),
        reason,
    }
}

fn of_indexes_together() -> Vec<Finding> {
    let faults = vec![
        Inconsistency::MasterWithoutMapping { mapping: text("M_gfx906.dat") },
        Inconsistency::MappingWithoutMaster { master: text("T_gfx906.dat") },
        Inconsistency::ForeignNames { arch: text("gfx906"), names: texts(["S_gfx908"]) },
        Inconsistency::ForeignNames { arch: text("gfx906"), names: texts(["A", "B", "C", "D"]) },
        Inconsistency::FallbackUnmapped { fallbacks: texts(["S_fallback_gfx906.dat"]) },
        Inconsistency::FallbackUnmapped {
            fallbacks: texts(["A_fallback_gfx906.dat", "B_fallback_gfx906.dat"]),
        },
        Inconsistency::PlainAndCompressed { compressed: text("T_gfx906.dat.zlib") },
    ];
    let findings = faults.into_iter().map(|fault| Finding::DatabaseInconsistent {
        file: file("lib/hipblaslt/library/T_gfx906.dat"),
        fault,
    });
    findings.collect()
}

fn of_wheels() -> Vec<Finding> {
    let version = "2.9.0+rocm7.1".to_owned();
    vec![
        wheel_record_lacks(&["torch/a.py"], &[], 0),
        wheel_record_lacks(&["torch/a.py", "torch/b.py"], &["torch/c.py"], 1),
        wheel_record_lacks(&[], &["torch/c.py", "torch/d.py"], 311),
        Finding::WheelTagsDiffer {
            wheel: wheel(),
            tags: texts(["cp312-cp312-linux_x86_64", "cp313-cp313-linux_x86_64"]),
            build: Some("1".to_owned()),
        },
        Finding::WheelTagsDiffer { wheel: wheel(), tags: Vec::new(), build: None },
        Finding::WheelMembersDropped { wheel: wheel(), members: texts(["torch/lib/"]) },
        Finding::WheelUnchanged { wheel: wheel() },
        wheel_runtime_outside(Vec::new()),
        wheel_runtime_outside(texts(["libamdhip64.so.6", "libamdhip64.so.7"])),
        wheel_runtime_cannot_read(texts(["torch/lib/libamdhip64.so"])),
        wheel_runtime_cannot_read(texts([
            "torch/lib/libamdhip64.so",
            "torch.libs/libamdhip64-1a.so.7",
        ])),
        Finding::WheelNotForPypi {
            wheel: wheel(),
            reasons: vec![
                PypiRefusal::LocalVersion { version },
                PypiRefusal::Platform { platform: "linux_x86_64".to_owned() },
                PypiRefusal::Size { size: 2_000_000_000, limit: 100 << 20 },
            ],
        },
        Finding::WheelNamesUnregistered { distribution: text("torch-device-gfx942") },
        old_runtime_needed(texts(["libamdhip64.so.6"]), 1),
        old_runtime_needed(texts(["libhipblas.so.2", "librocblas.so.4"]), 0),
        Finding::SetRuntimeCannotRead { file: file("lib/libamdhip64.so.7") },
    ]
}

fn old_runtime_needed(libraries: Vec<Soname>, count: usize) -> Finding {
    let code_objects = digests(count);
    Finding::OldRuntimeNeeded { file: input("lib/x.so"), libraries, code_objects }
}

fn wheel() -> String {
    text("torch-2.9.0+rocm7.1-cp312-cp312-linux_x86_64.whl")
}

fn wheel_record_lacks(unlisted: &[&str], absent: &[&str], unhashed: usize) -> Finding {
    Finding::WheelRecordLacks {
        wheel: wheel(),
        unlisted: unlisted.iter().map(|name| (*name).to_owned()).collect(),
        absent: absent.iter().map(|name| (*name).to_owned()).collect(),
        unhashed,
    }
}

fn wheel_runtime_outside(libraries: Vec<Soname>) -> Finding {
    Finding::WheelRuntimeOutside { wheel: wheel(), libraries }
}

fn wheel_runtime_cannot_read(files: Vec<String>) -> Finding {
    Finding::WheelRuntimeCannotRead { wheel: wheel(), files }
}

fn fallback_left_out(wrappers: Vec<u32>, archs: &[&str]) -> Finding {
    Finding::FallbackLeftOut {
        file: file("lib/librocblas.so.5"),
        fallback: arch("gfx12-generic"),
        wrappers,
        archs: archs.iter().copied().map(arch).collect(),
    }
}

fn of_packages() -> Vec<Finding> {
    vec![
        Finding::RuntimeUnset { formats: vec![Format::Deb] },
        Finding::RuntimeUnset { formats: vec![Format::Deb, Format::Rpm] },
        Finding::GroupEmpty { group: text("gfx120X") },
        fallback_left_out(vec![3], &["gfx1201"]),
        fallback_left_out(vec![0, 3], &["gfx1200", "gfx1201"]),
        Finding::FallbackFilesGeneric {
            folder: file("lib/rocblas/library"),
            generic: arch("gfx12-generic"),
            archs: vec![arch("gfx1201")],
        },
        Finding::HostPackageEmpty { package: text("rocm-blas") },
        component_left_out(1, 1),
        component_left_out(2, 0),
        debug_file_without_id(None),
        debug_file_without_id(Some(text("is cut off"))),
        licence_not_quoted(NotQuoted::TooLong),
        licence_not_quoted(NotQuoted::NotUtf8),
        Finding::ProgramWithoutAlternative {
            program: text("odd\tone"),
            package: text("rocm-blas"),
        },
    ]
}

fn component_left_out(files: usize, count: usize) -> Finding {
    Finding::ComponentLeftOut { component: text("blas_lib"), files, code_objects: digests(count) }
}

fn debug_file_without_id(reason: Option<String>) -> Finding {
    Finding::DebugFileWithoutId { file: file("x.debug"), reason }
}

fn licence_not_quoted(reason: NotQuoted) -> Finding {
    Finding::LicenceNotQuoted { file: file("share/doc/x/NOTICE"), reason }
}

fn of_libraries() -> Vec<Finding> {
    let (package, library) = (|| text("rocm-blas"), || text("libx.so.1"));
    vec![
        Finding::LibraryAmbiguous { library: library(), providers: texts(["blas", "solver"]) },
        Finding::LibraryAmbiguous {
            library: library(),
            providers: texts(["a", "b", "c", "d", "e", "f", "g"]),
        },
        libraries_unreadable(DynamicPart::NeededLibraries),
        libraries_unreadable(DynamicPart::SearchPath),
        library_unresolved(paths(["bin/x"])),
        library_unresolved(paths(["bin/x", "lib/a", "lib/b", "lib/c"])),
        Finding::VersionUnresolved {
            package: package(),
            library: library(),
            version: text("X_9.9"),
            distribution: text("debian-12"),
            files: paths(["bin/x"]),
        },
        Finding::RunpathRewritten {
            file: file("bin/x"),
            before: text("/opt/rocm/lib"),
            after: text("$ORIGIN/../lib"),
        },
        runpath_outside(OutsideSearch::Folders(texts(["/usr/lib", "/home/x"]))),
        runpath_outside(OutsideSearch::Folders(texts(["/a", "/b", "/c", "/d", "/e", "/f"]))),
        runpath_outside(OutsideSearch::Stays {
            search_path: text("/x"),
            reason: text("it is longer"),
        }),
        misplaced(LibraryFolder::Prefix, "libx.so.1"),
        misplaced(
            LibraryFolder::InstalledTree { folder: path("usr/lib"), prefix: text("usr") },
            "usr/lib/libx.so.1",
        ),
        misplaced(LibraryFolder::Libraries(path("lib64")), "lib64/libx.so.1"),
        misplaced(LibraryFolder::Other(path("share/x")), "share/x/libx.so.1"),
        Finding::VersionNotInSet {
            package: package(),
            library: library(),
            version: text("X_9.9"),
            provider: text("rocm-x"),
            path: path("lib/libx.so.1"),
            has_others: true,
            files: paths(["bin/x"]),
        },
        Finding::VersionNotInSet {
            package: package(),
            library: library(),
            version: text("X_9.9"),
            provider: text("rocm-x"),
            path: path("lib/libx.so.1"),
            has_others: false,
            files: paths(["bin/x"]),
        },
        Finding::LibraryOutOfReach {
            package: package(),
            library: library(),
            provider: text("rocm-x"),
            path: path("lib/private/libx.so.1"),
            search_path: text("$ORIGIN/../lib/private"),
            files: paths(["bin/x"]),
        },
        Finding::LibrariesNotAsked { file: file("bin/x"), kind: ComponentKind::Test },
        Finding::LibraryWithoutDependency {
            package: package(),
            library: library(),
            files: paths(["bin/x"]),
        },
    ]
}

fn libraries_unreadable(part: DynamicPart) -> Finding {
    Finding::LibrariesUnreadable { file: file("lib/x.so"), part, reason: text("is cut off") }
}

fn library_unresolved(files: Vec<TreePath>) -> Finding {
    Finding::LibraryUnresolved {
        package: text("rocm-blas"),
        library: text("libx.so.1"),
        distribution: text("debian-12"),
        files,
    }
}

fn runpath_outside(search: OutsideSearch) -> Finding {
    Finding::RunpathOutside { file: file("bin/x"), search }
}

fn misplaced(place: LibraryFolder, library: &str) -> Finding {
    let (package, libdir, library) = (text("rocm-x"), path("lib"), path(library));
    Finding::LibraryMisplaced { package, libdir, place, library }
}

fn of_interpreters() -> Vec<Finding> {
    let faults = [
        StartFault::TooLong,
        StartFault::CarriageReturn,
        StartFault::Relative,
        StartFault::EnvArguments,
        StartFault::Nothing,
        StartFault::NotText,
    ];
    let starts =
        faults.map(|fault| interpreter_unresolved("/x/python", InterpreterFault::Start(fault)));
    let others = [
        interpreter_unresolved(
            "/x/python",
            InterpreterFault::Unknown { distribution: text("debian-12") },
        ),
        interpreter_unresolved(
            "/x/ld.so",
            InterpreterFault::UnknownLoader { distribution: text("debian-12") },
        ),
        interpreter_unresolved("/opt/rocm/bin/x", InterpreterFault::NotExecutable),
        name_of_distribution(NameWinner::Set),
        name_of_distribution(NameWinner::Distribution),
        name_of_distribution(NameWinner::Either),
        interpreter_settled(Some(text("/usr/bin/python3"))),
        interpreter_settled(Some(text("/x/python"))),
        interpreter_settled(None),
    ];
    starts.into_iter().chain(others).collect()
}

fn interpreter_unresolved(interpreter: &str, fault: InterpreterFault) -> Finding {
    Finding::InterpreterUnresolved {
        package: text("rocm-blas"),
        interpreter: text(interpreter),
        fault,
        files: paths(["bin/x"]),
    }
}

fn name_of_distribution(winner: NameWinner) -> Finding {
    Finding::NameOfDistribution {
        package: text("rocm-smi"),
        version: text("7.1.0-1"),
        distribution: text("debian-12"),
        other_version: text("5.2.3-2"),
        winner,
    }
}

fn interpreter_settled(after: Option<String>) -> Finding {
    Finding::InterpreterSettled {
        package: text("rocm-blas"),
        before: text("/x/python"),
        after,
        files: paths(["bin/x"]),
    }
}

fn of_lists() -> Vec<Finding> {
    let module = IgnoredClaim::AbsentModule {
        module: text("hipBLASLt"),
        artifact: text("blas"),
        components: texts(["lib", "run"]),
    };
    vec![
        Finding::ListKeyUnknown { entry: text("amdrocm-blas"), key: text("Artifactory.Colour") },
        listed_without_content(None),
        listed_without_content(Some(Vec::new())),
        listed_without_content(Some(texts(["blas", "rand"]))),
        listed_without_content(Some(texts(["a", "b", "c", "d", "e", "f"]))),
        Finding::DependencyLeftOut {
            entry: text("amdrocm-blas"),
            dependency: text("amdrocm-runtime"),
        },
        not_listed(paths(["bin/x"]), 1),
        not_listed(paths(["a", "b", "c", "d", "e", "f"]), 0),
        claim_ignored(IgnoredClaim::Version),
        claim_ignored(IgnoredClaim::Postinstall),
        claim_ignored(IgnoredClaim::OutsideArtifactory),
        claim_ignored(IgnoredClaim::EveryProcessor),
        claim_ignored(module),
        claim_ignored(IgnoredClaim::WholeDevelopment),
    ]
}

fn listed_without_content(artifacts: Option<Vec<String>>) -> Finding {
    Finding::ListedWithoutContent { entry: text("amdrocm-blas"), artifacts }
}

fn not_listed(paths: Vec<TreePath>, count: usize) -> Finding {
    Finding::NotListed { component: text("blas_lib"), paths, code_objects: digests(count) }
}

fn claim_ignored(claim: IgnoredClaim) -> Finding {
    Finding::ListClaimIgnored { entry: text("amdrocm-blas"), claim }
}

fn of_updates() -> Vec<Finding> {
    let format = Format::Deb;
    vec![
        version_not_newer(NotNewer::TakesPaths {
            package: text("rocm-blas"),
            from: earlier_package("rocblas"),
        }),
        version_not_newer(NotNewer::Packages { format, newer: vec![earlier_package("rocm-blas")] }),
        version_not_newer(NotNewer::Packages {
            format,
            newer: vec![earlier_package("rocm"), earlier_package("rocm-blas")],
        }),
        path_moved(texts(["/opt/rocm/bin/x"])),
        path_moved(texts(["/opt/rocm/bin/x", "/opt/rocm/bin/y"])),
        Finding::PathKindChanged {
            path: text("/opt/rocm/share/x"),
            was: MemberKind::Directory,
            is: MemberKind::Link,
        },
        Finding::PackageDropped { package: text("rocblas"), format },
        other_series(texts(["rocm7.0"]), Vec::new()),
        other_series(texts(["rocm7.0", "rocm-blas7.0"]), texts(["/opt/rocm/bin/x"])),
        other_series(texts(["rocm7.0"]), texts(["/opt/rocm/bin/x", "/opt/rocm/bin/y"])),
        Finding::PackagesKept {
            version: text("7.1.0-2"),
            made: 1,
            packages: texts(["rocm_7.1.0-1_amd64.deb"]),
        },
        Finding::PackagesKept {
            version: text("7.1.0-2"),
            made: 2,
            packages: texts(["rocm_7.1.0-1_amd64.deb", "rocm-7.1.0-1.x86_64.rpm"]),
        },
        Finding::EarlierPartsAbsent { release: text("7.1.0-1"), present: 1, of: 3 },
        Finding::EarlierHeldBack {
            format: Format::Rpm,
            misfits: vec![Misfit {
                package: text("rocm-sparse"),
                version: text("7.1.0-1"),
                architecture: text("x86_64"),
                installed: true,
                discord: Discord::Excludes,
                relation: text("rocm-blas >= 7.1.0-2"),
                offered: texts(["rocm-blas 7.1.0-2"]),
            }],
            held_back: texts(["rocm-blas"]),
        },
        Finding::RepositoryUnsigned { channel: text("stable") },
        Finding::VersionNotKept { file: text("pool/x_1_amd64.deb"), keep: 1 },
        Finding::DataUnread {
            file: text("x_1_amd64.deb"),
            reason: text("data.tar.bz2 is compressed in a way that rockpack does not read"),
        },
        Finding::DataUnread {
            file: text("y_1_amd64.deb"),
            reason: text(
                "tar archive at its byte 0x400: the member `./dev` of type `7` is nothing that dpkg \
                 installs",
            ),
        },
        Finding::TextsReplaced {
            file: text("x-1-1.noarch.rpm"),
            fields: texts(["change log", "file names"]),
        },
        twice(Format::Deb),
        twice(Format::Rpm),
        Finding::PathMovedSilently {
            path: text("/opt/rocm/bin/x"),
            former: text("rocm-blas 7.0.0-1"),
            owner: text("rocm-tools 7.1.0-1"),
        },
        left_out("x.udeb", PackageLeftOut::Installer),
        left_out(".x.deb", PackageLeftOut::Hidden),
        left_out("x.deb.1", PackageLeftOut::Unnamed(Format::Deb)),
        left_out("more", PackageLeftOut::LinkedFolder),
        left_out(
            "a_1_all.deb",
            PackageLeftOut::Bad(text(
                "control file: field Depends: relation 2, `b [amd64]`: only source packages may \
                 have restrictions",
            )),
        ),
        left_out("RENAMED.DEB", PackageLeftOut::Duplicate(text("pool/main/x/x/x_1_amd64.deb"))),
        Finding::PackagesNotInReceipt {
            folder: text("packages"),
            packages: texts(["a_1_all.deb"]),
        },
        doubtful(ReceiptDoubt::Unsigned),
        doubtful(ReceiptDoubt::OtherKeys(texts(["0123456789ABCDEF"]))),
        doubtful(ReceiptDoubt::Unread(text("is not a receipt"))),
        Finding::VersionOrderDiffers {
            deb_newer: text("7.12.0~dev20260202"),
            rpm_newer: text("7.12.0~20260202"),
            packages: texts(["rocm-blas", "rocm-core"]),
        },
        Finding::ClientFilesMissing { channel: text("stable") },
        Finding::KeyWeak {
            key: text("0123ABCD (Packager <packager@example.org>)"),
            fault: text("the key's signature of its own user id uses SHA-1"),
            remedy: text(
                "have it signed anew: `gpg --cert-digest-algo SHA256 --quick-set-expire 0123ABCD never`",
            ),
        },
        packages_unsigned(texts(["packages/r/rocm-1-1.noarch.rpm"])),
        packages_unsigned(["a", "b", "c", "d"].map(|name| format!("packages/{name}.rpm")).to_vec()),
        Finding::PackagesByEd25519 { channel: text("rpm") },
        Finding::FolderClosed { folder: text("/srv/rocm"), mode: text("0700"), others: 0 },
        Finding::FolderClosed { folder: text("/srv/rocm/pool"), mode: text("2770"), others: 2 },
        Finding::SecretReadable { file: text("/k/own.secret"), mode: text("644") },
        Finding::NamesUnseen { artifact: one(), files: texts(["a\u{202e}b"]) },
        Finding::NamesUnseen { artifact: one(), files: texts(["a\u{200b}", "b\u{200b}"]) },
        Finding::PackagesByOtherKey {
            channel: text("rpm"),
            key: text("0123456789ABCDEF"),
            packages: texts(["packages/r/rocm-1-1.noarch.rpm"]),
        },
        Finding::PackagesByOtherKey {
            channel: text("rpm"),
            key: text("0123456789ABCDEF"),
            packages: ["a", "b", "c", "d"].map(|name| format!("packages/{name}.rpm")).to_vec(),
        },
        held_back(&[("rocm-sparse", "rocm-common = 7.1.0-1", true)], &["rocm-blas", "rocm-common"]),
        held_back(&[("a", "x = 1", true), ("b", "x = 1", false)], &[]),
        held_back(&["a", "b", "c", "d"].map(|name| (name, "x = 3", false)), &["a"]),
        Finding::WheelExtraOpen {
            wheel: text("torch 2.13.0"),
            extra: text("device-gfx942"),
            requires: text("amd-torch-device-gfx942 ==2.13.0"),
            gap: ExtraGap::Absent,
        },
        Finding::WheelExtraOpen {
            wheel: text("torch-device-gfx942 2.13.0"),
            extra: text(""),
            requires: text("torch ==2.13.0"),
            gap: ExtraGap::Absent,
        },
        wheel_gap("torchvision-0.28.0-cp312-cp312-linux_x86_64.whl", ExtraGap::NotBrought),
        wheel_gap("torchvision-0.28.0-cp312-cp312-linux_x86_64.whl", ExtraGap::NotOffered),
        wheel_gap("torch_device_gfx942-2.13.0-py3-none-linux_x86_64.whl", ExtraGap::NotByName),
        Finding::WheelBuildsMixed { wheel: text("torch 2.13.0"), builds: texts(["1", "none"]) },
        Finding::RequiredPathUnlisted {
            path: text("/opt/rocm/libexec/runner"),
            owner: text("rocm-core 7.1.0-1"),
            packages: texts(["rocm-blas 7.1.0-1", "rocm-tools 7.1.0-1"]),
        },
        receipt_unproved(ReceiptDoubt::NoKey),
        receipt_unproved(ReceiptDoubt::OtherKeys(texts(["6B1C2D3E4F506172"]))),
        receipt_unproved(ReceiptDoubt::Unsigned),
        vendor_changed("", "Example", texts(["rocm"])),
        vendor_changed("Example", "", texts(["rocm", "rocm-blas"])),
        vendor_changed("Example", "Other", texts(["a", "b", "c", "d"])),
        placeholder("0.0.0", texts(["rocm"]), "build again with `--version`"),
        placeholder(
            "Unnamed packager <packager@rockpack.invalid>",
            texts(["a", "b", "c", "d"]),
            "set the key `maintainer` and build again, or give `--maintainer` for the key package",
        ),
        without(MissingDigest::Header, texts(["packages/r/rocm-1-1.noarch.rpm"])),
        without(MissingDigest::Payload, texts(["packages/a.rpm", "packages/b.rpm"])),
        signed_for_rpm_6(texts(["packages/r/rocm-1-1.noarch.rpm"])),
        signed_for_rpm_6(texts(["packages/a.rpm", "packages/b.rpm"])),
        import_lost(&[]),
        import_lost(&["ex_a", "ex_b@EX_1", "ex_c", "ex_d"]),
        Finding::CacheEntryDamaged { entry: text("/c/e"), damage: text("its length is wrong") },
        Finding::CacheUnusable { cache: text("/c"), reason: text("no space is left") },
        Finding::AcceptUnmatched {
            entry: text("accept.0"),
            accepts: text("R070"),
            pattern: text("libx.so*"),
        },
        Finding::AcceptUnmatchedHere {
            entry: text("accept.0"),
            accepts: text("R070"),
            pattern: text("libx.so*"),
        },
    ]
}

fn receipt_unproved(doubt: ReceiptDoubt) -> Finding {
    Finding::ReceiptUnproved { release: text("7.1.0-1"), doubt }
}

fn vendor_changed(from: &str, to: &str, packages: Vec<String>) -> Finding {
    Finding::VendorChanged { from: text(from), to: text(to), packages }
}

fn placeholder(placeholder: &str, packages: Vec<String>, remedy: &str) -> Finding {
    Finding::PlaceholderPublished { placeholder: text(placeholder), packages, remedy: text(remedy) }
}

fn doubtful(doubt: ReceiptDoubt) -> Finding {
    Finding::ReceiptUntrusted { receipt: text("packages/packages.json"), doubt }
}

fn earlier_package(package: &str) -> EarlierPackage {
    EarlierPackage { package: text(package), version: text("8-1") }
}

fn version_not_newer(not_newer: NotNewer) -> Finding {
    Finding::VersionNotNewer { version: text("7.1.0-1"), not_newer }
}

fn path_moved(paths: Vec<String>) -> Finding {
    Finding::PathMoved {
        package: text("rocm-blas"),
        format: Format::Deb,
        from: text("rocblas"),
        paths,
    }
}

fn other_series(packages: Vec<String>, shared_paths: Vec<String>) -> Finding {
    Finding::OtherSeries { series: text("7.0"), packages, shared_paths }
}

fn without(missing: MissingDigest, packages: Vec<String>) -> Finding {
    Finding::PackagesWithoutDigest { channel: text("rpm"), packages, missing }
}

fn wheel_gap(wheel: &str, gap: ExtraGap) -> Finding {
    let (extra, requires) = (text("device-gfx942"), text("torch"));
    Finding::WheelExtraOpen { wheel: text(wheel), extra, requires, gap }
}

fn signed_for_rpm_6(packages: Vec<String>) -> Finding {
    Finding::PackagesSignedForRpm6 { channel: text("rpm"), packages }
}

fn import_lost(symbols: &[&str]) -> Finding {
    Finding::ImportLost {
        package: text("rocm-blas"),
        library: text("libx.so.1"),
        provider: text("rocm-x"),
        symbols: symbols.iter().map(|symbol| text(symbol)).collect(),
    }
}

fn packages_unsigned(unsigned: Vec<String>) -> Finding {
    Finding::PackagesUnsigned { channel: text("rpm"), unsigned, of: 9 }
}

fn examples() -> Vec<Finding> {
    let all = [
        of_input(),
        of_repeated_code(),
        of_code_left_out(),
        of_files_with_code(),
        of_databases(),
        of_files_of_databases(),
        of_indexes_together(),
        of_wheels(),
        of_packages(),
        of_libraries(),
        of_interpreters(),
        of_lists(),
        of_updates(),
    ];
    let mut findings = Findings { list: all.concat(), ..Findings::default() };
    findings.sort();
    assert_eq!(findings.list.len(), all.concat().len(), "all differ");
    findings.list
}

#[test]
fn codes_are_unique_and_sorted() {
    let ids: Vec<_> = Code::ALL.iter().map(|code| code.id()).collect();
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "{ids:?}");
    let names: BTreeSet<_> = Code::ALL.iter().map(|code| code.name()).collect();
    assert_eq!(names.len(), ids.len());
    assert!(Code::ALL.iter().all(|code| Code::of_id(code.id()) == Some(*code)));
    let mut sentences = Code::ALL.iter().map(|code| code.explanation());
    assert!(sentences.all(|text| text.ends_with('.') && !text.contains("  ")));
}

#[test]
fn every_code_has_an_example() {
    let shown: BTreeSet<Code> = examples().iter().map(Finding::code).collect();
    assert_eq!(shown, Code::ALL.iter().copied().collect());
}

#[test]
fn json_has_the_text_and_the_fields_and_reads_back() {
    for finding in examples() {
        let code = finding.code();
        let severity = code.severity().to_string();
        let text = [
            ("code", code.id()),
            ("name", code.name()),
            ("severity", &severity),
            ("subject", &finding.subject()),
            ("message", &finding.message()),
        ];
        let own = own_fields(&finding, &text);
        assert!(own.iter().any(|(name, _)| name != "code_objects"), "{own:?}");
        let listed = own
            .iter()
            .find(|(name, _)| name == "code_objects")
            .map(|(_, value)| value)
            .map(|list| Vec::<Sha256Digest>::deserialize(list).unwrap());
        assert_eq!(finding.code_objects(), listed.unwrap_or_default());
        let json = serde_json::to_string(&finding).unwrap();
        assert_eq!(serde_json::from_str::<Finding>(&json).unwrap(), finding, "{json}");
    }
}

#[test]
fn texts_are_as_written_here() {
    compare(&examples(), "src/report/findings/examples.txt");
    for line in examples().iter().map(ToString::to_string) {
        let words: Vec<&str> = line.split([' ', ',', '(', ')', ';', ':']).collect();
        let has_plural = words.windows(2).any(|pair| pair[0] == "1" && pair[1].ends_with('s'));
        assert!(!has_plural, "{line}");
    }
}

#[test]
fn only_warnings_fail_a_strict_run() {
    let mut findings = Findings::default();
    findings.add(Finding::GroupEmpty { group: text("gfx120X") });
    assert!(findings.refuse_warnings("").is_ok());
    findings.add(Finding::VersionUnset { version: text("0") });
    assert!(findings.refuse_warnings("").is_err());
}

#[test]
fn findings_that_differ_in_what_the_text_leaves_out_are_kept_in_one_order() {
    let first = library_unresolved(paths(["a", "b", "c", "d"]));
    let last = library_unresolved(paths(["a", "b", "c", "e"]));
    assert_eq!(first.to_string(), last.to_string());
    let kept = sorted([last.clone(), first.clone(), last.clone()]);
    assert_eq!(kept.list, [first.clone(), last.clone()]);
    assert_eq!(sorted([first.clone(), last, first]), kept);
}

fn sorted(given: [Finding; 3]) -> Findings {
    let mut findings = Findings { list: given.to_vec(), ..Findings::default() };
    findings.sort();
    findings
}

#[test]
fn accepted_findings_are_no_warnings_and_say_why() {
    let mut findings = Findings::default();
    findings.add(Finding::VersionUnset { version: text("0") });
    findings.add(Finding::ArchMissing { arch: arch("gfx906"), group: text("g") });
    assert_eq!(findings.accept(|finding| finding.code() == Code::VersionUnset, "a test"), 1);
    assert_eq!(findings.accept(|finding| finding.code() == Code::VersionUnset, "again"), 1);
    assert_eq!(findings.accept(|finding| finding.code() == Code::RuntimeUnset, "none"), 0);
    assert_eq!(findings.warnings().list.len(), 1);
    let (mut more, earlier) = (Findings::default(), findings);
    more.extend(earlier);
    more.sort();
    let json = serde_json::to_value(&more).unwrap();
    assert_eq!((&json[0]["code"], &json[0]["accepted"]), (&"R003".into(), &"a test".into()));
    assert_eq!(json[1].get("accepted"), None);
    let lines: Vec<String> = more.remarks().map(|remark| remark.text).collect();
    assert_eq!(
        lines,
        [
            "accepted: R003 version-unset: version: no version was given, so the packages have 0; \
             reason: a test",
            "warning: R013 arch-missing: gfx906: no shard has device code for it (group g)"
        ]
    );
    more.retain(|finding| finding.code() == Code::VersionUnset);
    assert!(more.refuse_warnings("").is_ok());
}

#[test]
fn things_are_subjects_texts_and_paths_of_files() {
    let unresolved = Finding::LibraryUnresolved {
        package: text("rocm-blas"),
        library: text("libx.so.1"),
        distribution: text("debian-12"),
        files: paths(["bin/a"]),
    };
    assert_eq!(unresolved.named_things(), ["rocm-blas", "debian-12", "libx.so.1", "rocm-blas"]);
    let moved = Finding::ProgramHeadersMoved { file: input("lib/x.so") };
    assert_eq!(moved.named_things(), ["one/blas_lib_all/lib/x.so", "lib/x.so", "x.so", "x.so"]);
}

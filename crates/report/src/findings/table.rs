//! The table of findings, with one row for each.

use std::collections::BTreeMap;
use std::sync::Arc;

use rockpack_core::content::Sha256Digest;
use rockpack_core::error::{abridged, printable};
use rockpack_core::gfx::{BaseArch, Target};
use rockpack_core::package_format::{Format, MissingDigest};
use rockpack_core::tree::{ComponentKind, MemberKind, TreePath};
use serde_json::json;

use super::details::*;
use super::host::*;
use super::packages::*;
use super::{Code, Finding, Severity};
use crate::subjects::*;
use crate::words::{are, counted, few, list};

/// Declares the findings from rows of
/// `Type = "R000" "name" Severity by "key" { field: Type, … } about [subject] [message];`. Subject and message
/// are arguments of `format!`, with the fields of the row in scope. Without `about`, the subject is the first
/// field. `by "key"` names the configuration key that resolves such findings. `never accepted` and `of earlier` add the
/// code to [`Code::NEVER_ACCEPTED`] and [`Code::OF_EARLIER`].
macro_rules! findings {
    ($(
        $(#[doc = $doc:literal])*
        $Type:ident = $id:literal $name:literal $severity:ident $(by $key:literal)?
            $(never $never:ident)? $(of $earlier:ident)?
            { $($field:ident: $type:ty),* $(,)? } $(about [$($subject:tt)*])? [$($message:tt)*];
    )*) => {
        #[allow(non_upper_case_globals, reason = "a code has the name of its type in `found`")]
        impl Code {
            $(
                $(#[doc = $doc])*
                pub const $Type: Self = Self {
                    id: $id,
                    name: $name,
                    severity: Severity::$severity,
                    key: [$(Some($key),)? None][0],
                };
            )*

            /// All codes, in order.
            pub const ALL: &[Self] = &[$(Self::$Type),*];

            /// Findings that no configuration can accept: they are not about a package set, or are about `accept`.
            pub const NEVER_ACCEPTED: &[Self] = &[$($(marked!($never, Self::$Type),)?)*];

            /// Findings that compare the set with an earlier one.
            pub const OF_EARLIER: &[Self] = &[$($(marked!($earlier, Self::$Type),)?)*];
        }

        /// One type for each code, with its fields; each converts into a [`Finding`].
        pub mod found {
            use super::*;

            $(
                $(#[doc = $doc])*
                pub struct $Type { $(pub $field: $type),* }

                impl From<$Type> for Finding {
                    fn from(found: $Type) -> Self {
                        let $Type { $($field),* } = &found;
                        let subject = subject!($($field)* $([$($subject)*])?);
                        let text = [subject, format!($($message)*)];
                        let fields = vec![$((stringify!($field), json!($field))),*];
                        Self::new(Code::$Type, text, fields, Arc::new(found))
                    }
                }
            )*
        }
    };
}

macro_rules! subject {
    ($first:ident $($other:ident)*) => { $first.to_string() };
    ($($field:ident)* [$($text:tt)*]) => { format!($($text)*) };
}

/// The code of a row that has a mark (`never accepted`, `of earlier`).
macro_rules! marked {
    ($mark:ident, $code:expr) => {
        $code
    };
}

/// The remedy for libraries that the table of a distribution lacks.
const LIBRARY_REMEDY: &str =
    "name a root or table that has it (`--distro`), or its package under `libraries`";

findings! {
    PrefixAbsent = "R001" "manifest-prefix-absent" Note
        { artifact: InputArtifact, prefix: TreePath }
        ["the listed stage prefix {prefix} does not exist"];
    FileMerged = "R002" "identical-file-merged" Note { file: InputFile, same: SameFile }
        ["exists with the same content {same}"];
    VersionUnset = "R003" "version-unset" Warning { version: String }
        about ["version"] ["no version was given, so the packages have {version}"];
    NotAnArtifact = "R004" "not-an-artifact" Note { shard: Option<String>, entry: String }
        about ["{}", shard.as_ref().map_or(entry.clone(), |shard| format!("{shard}/{entry}"))]
        ["is not an artifact and is left out"];
    OutsidePrefixes = "R005" "outside-prefixes" Warning
        { artifact: InputArtifact, files: Vec<String> }
        [
            "{} outside all prefixes {} in no package: {}",
            counted(files.len(), "file"), are(files.len()), few(files, 5)
        ];
    /// `owner` is a component, or an artifact of a shard.
    LinkDangling = "R006" "link-dangling" Warning
        { owner: String, path: TreePath, target: String }
        about ["{owner}/{path}"] ["leads to {target}, which nothing in the input provides"];
    ArtifactEmpty = "R007" "artifact-empty" Warning { artifact: InputArtifact }
        ["none of its listed stage prefixes exists, so nothing of it is packed"];
    PackingUnknown = "R008" "artifact-packing-unknown" Warning { shard: String, entry: String }
        about ["{shard}/{entry}"]
        [
            "is named like an artifact, but is neither a folder of that name nor packed as \
             .tar.zst or .tar.xz; it is left out"
        ];
    TargetMismatch = "R010" "target-mismatch" Warning
        { file: InputFile, claimant: Claimant, actual: Target }
        ["{claimant} has code for {actual}; the target of the code is used"];
    ArchNeutralCode = "R011" "arch-neutral-code" Note { file: InputFile, entry: String }
        ["entry {entry} is compiled for the GPU at run time"];
    ArchNotGrouped = "R012" "arch-not-grouped" Warning by "architecture_groups" {
            arch: BaseArch,
            count: usize,
            different: usize,
            places: Vec<LeftOutFile>,
            code_objects: Vec<Sha256Digest>,
        }
        ["{}", left_out(*count, *different, "no group has this arch", places)];
    ArchMissing = "R013" "arch-missing" Warning { arch: BaseArch, group: String }
        ["no shard has device code for it (group {group})"];
    /// `path` is `None` if the primary shard lacks all host files of the component.
    HostFromOtherShard = "R014" "host-file-from-other-shard" Warning by "primary_shard" {
            component: ComponentName,
            path: Option<TreePath>,
            primary: String,
            shard: String,
            files: usize,
        }
        about ["{}", path.as_ref().map_or(component.to_string(), |path| format!("{component}/{path}"))]
        ["{}", match path {
            Some(_) => format!("is not in the primary shard {primary} and comes from {shard}"),
            None => format!(
                "is not in the primary shard {primary}; {shard} provides {}",
                counted(*files, "file")
            ),
        }];
    HostFilesDiffer = "R015" "host-files-differ" Warning by "primary_shard" {
            file: ComponentFile,
            difference: HostDifference,
            first: InputArtifact,
            other: InputArtifact,
        }
        ["differs between {first} and {other}: it {difference}; the first is packed"];
    DuplicateCode = "R016" "duplicate-device-code" Note { repeated: RepeatedCode }
        about ["{}", repeated.holder()] ["{repeated}"];
    WrapperOverlap = "R017" "wrapper-overlap" Warning {
            file: ComponentFile,
            first: InputArtifact,
            wrapper: usize,
            other: InputArtifact,
            other_wrapper: usize,
        }
        [
            "wrapper {wrapper} of {first} and wrapper {other_wrapper} of {other} share some \
             kernels but not all; they are treated as one wrapper"
        ];
    BundleUnreferenced = "R018" "bundle-unreferenced" Warning
        { file: InputFile, offset: u64, code_objects: Vec<Sha256Digest> }
        [
            "no wrapper points to the bundle {offset:#x} bytes into .hip_fatbin; it is left out \
             with its {}",
            counted(code_objects.len(), "code object")
        ];
    UnknownProcessor = "R019" "unknown-processor" Warning by "additional_architectures"
        { file: InputFile, entry: Option<String>, flags: u32 }
        ["{}", match entry {
            Some(id) => format!(
                "the code object of entry {id} has the unknown flags {flags:#x}; the target of the entry is used"
            ),
            None => format!("the code object has the unknown flags {flags:#x}; the arch in its name is used"),
        }];
    DatabaseArchMismatch = "R020" "database-arch-mismatch" Warning by "databases"
        { file: InputFile, mismatch: ArchMismatch }
        ["{mismatch}"];
    DatabaseShared = "R021" "database-shared" Note by "databases"
        { file: InputFile, rule: String, is_cache: bool, code_objects: Vec<Sha256Digest> }
        [
            "{} ({rule}) and stays with the host files",
            if *is_cache { "is a cache for all archs" } else { "serves several archs" }
        ];
    DatabaseUnpaired = "R022" "database-unpaired" Warning by "databases" { file: InputFile, unpaired: Unpaired }
        ["{unpaired}"];
    DuplicateDropped = "R023" "duplicate-device-code-dropped" Warning
        { file: ComponentFile, different: DifferentCode, code_objects: Vec<Sha256Digest> }
        ["{different}; the code of {} is packed", different.first];
    DatabaseMerged = "R024" "database-merged" Note { file: ComponentFile, parts: Vec<MergedPart> }
        ["is the union of {}", few(parts, 5)];
    DatabaseMoved = "R025" "database-moved" Note
        { folder: ComponentFile, files: usize, differs: String, reason: MergeObstacle }
        [
            "{} {} moved to the directories of their archs, because {differs} differs: {reason}",
            counted(*files, "file"), are(*files)
        ];
    DatabaseCacheDropped = "R026" "database-cache-dropped" Warning
        { file: ComponentFile, kept: InputArtifact, dropped: InputArtifact }
        ["differs in {dropped}; that of {kept} is packed, and the library works without it"];
    DatabaseUnresolved = "R027" "database-unresolved" Warning
        { file: InputFile, refers_to: String, unresolved: Unresolved }
        ["{}", unresolved.describe(refers_to)];
    DatabaseHostCode = "R028" "database-host-code" Note
        { file: InputFile, archs: Vec<BaseArch>, code_objects: Vec<Sha256Digest> }
        ["is entirely for {} and stays unchanged", arch_list(archs)];
    DatabaseUnreadable = "R029" "database-unreadable" Warning by "databases"
        { file: InputFile, reason: String, decided_by: DecidedBy }
        ["is not a MessagePack index ({reason}); {decided_by}"];
    FatDevelopmentFile = "R030" "fat-development-file" Note
        { file: InputFile, kind: DevelopmentFile }
        ["is {kind} and keeps its device code"];
    AlreadyTransformed = "R031" "already-transformed" Warning { file: InputFile }
        [
            "was transformed already, and no kernel archive of its shard has its code; it is \
             packed unchanged"
        ];
    NoSectionTable = "R032" "no-section-table" Warning { file: InputFile }
        ["has no section table, so rockpack cannot look for device code in it; it is packed unchanged"];
    EmptyCodeObject = "R033" "empty-code-object" Warning
        { file: InputFile, entry: String, code_objects: Vec<Sha256Digest> }
        ["entry {entry} is empty and is left out"];
    /// The bundle of each wrapper has no device entry with code, or no kernel archive of the shard has a row for it.
    WrapperWithoutCode = "R034" "wrapper-without-code" Warning
        { file: InputFile, wrappers: Vec<usize>, of: usize }
        [
            "{} {} of {of} {} no device code, so kernels of {} do not run on any GPU; compile {} for the \
             GPUs of the packages (`--offload-arch`), or as host code only",
            if wrappers.len() == 1 { "wrapper" } else { "wrappers" },
            few(wrappers, 5),
            if wrappers.len() == 1 { "has" } else { "have" },
            if wrappers.len() == 1 { "its source" } else { "their sources" },
            if wrappers.len() == 1 { "it" } else { "them" },
        ];
    DeviceCodeEmbedded = "R035" "device-code-embedded" Warning
        { file: InputFile, places: Vec<EmbeddedCode> }
        [
            "contains {} outside .hip_fatbin; {} in the host package for every GPU: compile the \
             code as HIP, so that it goes into kernel packages, or ship it as a file of its own",
            few(places, 3), if places.len() == 1 { "it stays" } else { "they stay" }
        ];
    KeptFat = "R037" "kept-fat" Note by "validation.untransformable"
        { file: InputFile, targets: Vec<Target>, reason: String, code_objects: Vec<Sha256Digest> }
        [
            "cannot be transformed and keeps its {} ({}): {reason}",
            counted(code_objects.len(), "code object"), few(targets, 5)
        ];
    /// Neither this build of the binary nor its code is packed: the build of another shard is.
    KeptFatDropped = "R038" "kept-fat-dropped" Warning by "primary_shard"
        { file: InputFile, provided_by: InputArtifact, code_objects: Vec<Sha256Digest> }
        [
            "keeps its device code, but {provided_by} provides the file, so {} of it {} in no \
             package",
            counted(code_objects.len(), "code object"), are(code_objects.len())
        ];
    OtherMachineAllowed = "R039" "other-machine-allowed" Note by "other_machines"
        { artifact: InputArtifact, machine: ElfMachine, files: Vec<TreePath> }
        [
            "{} for {machine}, not x86-64, {} packed as data because `other_machines` allows it ({})",
            counted(files.len(), "file"), are(files.len()), few(files, 5)
        ];
    KernelsUnclaimed = "R040" "kernels-unclaimed" Warning
        { archive: InputFile, kernel_names: Vec<String>, code_objects: Vec<Sha256Digest> }
        [
            "no binary of the shard refers to {}, so no kernel package has {} (kernel names: {})",
            counted(code_objects.len(), "code object"),
            if code_objects.len() == 1 { "it" } else { "them" },
            few(kernel_names, 3)
        ];
    ProgramHeadersMoved = "R041" "program-headers-moved" Warning { file: InputFile }
        [
            "another tool moved its program headers away from the ELF header: strip and patchelf \
             damage such files, and old kernels cannot start such programs; build it again from \
             the fat binary"
        ];
    ListedArchiveAbsent = "R042" "listed-archive-absent" Warning
        { manifest: InputFile, archives: Vec<String> }
        ["lists archives that the shard does not have: {}", few(archives, 5)];
    TargetNotSelected = "R043" "target-not-selected" Note never accepted
        { shard: String, component: ComponentName, arch: BaseArch, count: usize }
        about ["{shard}/{component}"]
        [
            "{} of {arch} {} left out, because the arch is not among the requested targets",
            device_code(*count), are(*count)
        ];
    TargetAbsent = "R044" "target-absent" Warning never accepted { arch: BaseArch, meant: Option<BaseArch> }
        [
            "no artifact has device code of this arch, which is among the requested targets{}",
            match meant {
                Some(meant) => format!(" and is not known: did you mean {meant}?"),
                None => String::new(),
            }
        ];
    ArchExcluded = "R045" "arch-excluded" Note by "packages" {
            table: ArchFilterTable,
            arch: BaseArch,
            count: usize,
            different: usize,
            places: Vec<LeftOutFile>,
            code_objects: Vec<Sha256Digest>,
        }
        about ["{} {arch}", table.name()]
        ["{}", left_out(*count, *different, &format!("{table} leaves this arch out"), places)];
    ArchDropped = "R046" "arch-dropped" Note by "validation.unassigned_architectures" {
            arch: BaseArch,
            count: usize,
            different: usize,
            places: Vec<LeftOutFile>,
            code_objects: Vec<Sha256Digest>,
        }
        [
            "{}",
            left_out(*count, *different, "no group has this arch and `drop` is configured", places)
        ];
    ThinArchive = "R047" "thin-archive" Warning { file: InputFile, is_member: bool }
        [
            "{} a thin static archive, which refers to object files of the build tree and contains none: \
             nothing can be linked with it elsewhere; make it without `T` (`ar rcs`), or leave it \
             out of the artifact",
            if *is_member { "has a member that is" } else { "is" }
        ];
    DatabaseLeftover = "R048" "database-leftover" Warning by "databases" { file: InputFile, rule: String }
        [
            "is left over from a run or a build, and no library reads it from a package ({rule}); it is \
             in the host package for all archs: leave it out of the artifact, or assign it to its arch \
             as `data` by a rule under `databases`"
        ];
    RuntimeUnset = "R050" "runtime-relation-unset" Warning by "runtime_relation" {
            formats: Vec<Format>,
        }
        about ["{}", formats.iter().map(|it| format!("runtime_relation.{it}")).collect::<Vec<_>>().join(" and ")]
        [
            "{} not configured, so host packages with device code depend on no HIP runtime that reads \
             kernel archives (.kpack)",
            are(formats.len())
        ];
    GroupEmpty = "R051" "group-empty" Note { group: String }
        ["the input has no device code for this group, so no kernel package is made for it"];
    LibraryAmbiguous = "R052" "library-ambiguous" Warning by "relations"
        { library: Soname, providers: Vec<PackageName> }
        ["several packages provide it ({}); dependencies name the first", few(providers, 5)];
    LibrariesUnreadable = "R053" "libraries-unreadable" Warning
        { file: ComponentFile, part: DynamicPart, reason: String }
        ["its {part} cannot be read: {reason}"];
    HostPackageEmpty = "R054" "host-package-empty" Note { package: PackageName }
        ["has no host files; the package only ties its kernel packages to one version"];
    ComponentLeftOut = "R055" "component-left-out" Note
        { component: ComponentName, files: usize, code_objects: Vec<Sha256Digest> }
        [
            "--only leaves out {} and {} of it",
            counted(*files, "file"), counted(code_objects.len(), "distinct code object")
        ];
    DataUnread = "R056" "package-data-unread" Warning never accepted { file: String, reason: String }
        [
            "is published from its control archive alone, because its data cannot be unpacked here \
             ({reason}): its files are not checked; test it by `dpkg --unpack` with an empty `--root`, \
             and build it again if that fails"
        ];
    TextsReplaced = "R057" "package-texts-replaced" Warning never accepted { file: String, fields: Vec<String> }
        [
            "has bytes that are not UTF-8, or control characters that XML forbids, in its {}: indexes \
             replace them by U+FFFD or drop them; build the package with plain text",
            list(fields)
        ];
    PackageFileLeftOut = "R058" "package-file-left-out" Warning never accepted
        { file: String, reason: PackageLeftOut }
        ["is left out: {reason}"];
    VersionOrderDiffers = "R059" "version-order-differs" Warning never accepted
        { deb_newer: String, rpm_newer: String, packages: Vec<String> }
        about ["{deb_newer} and {rpm_newer}"]
        [
            "dpkg considers {deb_newer} the newer version, but rpm does not ({}): `--keep` and client \
             updates choose different builds in the two formats; write all builds of a version in one \
             form, either a date or a word with a number",
            few(packages, 3)
        ];
    DatabaseBundle = "R060" "database-bundle-whole" Note { file: InputFile, archs: Vec<BaseArch> }
        [
            "is {} for {}, which its library opens as one file under this name: it is not split and \
             serves all of them",
            if file.path.name().ends_with(".kpack") { "a kernel archive" } else { "an offload bundle" },
            arch_list(archs)
        ];
    DatabaseArchUnknown = "R061" "database-arch-unknown" Warning by "additional_architectures" { directory: InputFile }
        [
            "is named like the directory of an arch, but no arch or family of this name is known; \
             its files stay with the host files"
        ];
    PathOwnedTwice = "R062" "path-owned-twice" Warning by "relations" never accepted
        { path: String, format: Format, first: String, second: String }
        [
            "is owned by {first} and {second}, and no relation keeps them apart: if both are installed, {}; \
             declare a conflict, give each package its own prefix, or publish them in two repositories",
            match format {
                Format::Deb => "dpkg stops midway",
                Format::Rpm => "rpm refuses them if the files differ, and otherwise keeps the last one",
            }
        ];
    PathMovedSilently = "R063" "path-moved-silently" Warning by "moved" never accepted
        { path: String, former: String, owner: String }
        [
            "was in {former} and is in {owner}, which does not replace it: dpkg stops at that update; \
             build the set with `--since` the earlier one, which gives {owner} the Breaks and Replaces"
        ];
    InterpreterUnresolved = "R066" "interpreter-unresolved" Warning by "interpreters" {
            package: PackageName,
            interpreter: String,
            fault: InterpreterFault,
            files: Vec<TreePath>,
        }
        ["{} ({}); {}", fault.describe(interpreter), few(files, 3), fault.remedy()];
    NameOfDistribution = "R067" "name-of-distribution" Warning {
            package: PackageName,
            version: String,
            distribution: String,
            other_version: String,
            winner: NameWinner,
        }
        [
            "is also the name of a package of {distribution}, with version {other_version}: \
             {}", winner.describe(version)
        ];
    /// `after` is `None` if the scripts keep the interpreter without a dependency.
    InterpreterSettled = "R068" "interpreter-settled" Note
        { package: PackageName, before: String, after: Option<String>, files: Vec<TreePath> }
        [
            "the interpreter {} {} ({})",
            abridged(before),
            match after {
                Some(after) if after == before => "is assumed to be installed".to_owned(),
                Some(after) => format!("becomes {after}"),
                None => "stays without a dependency".to_owned(),
            },
            few(files, 3)
        ];
    LibraryUnresolved = "R070" "library-unresolved" Warning by "libraries"
        { package: PackageName, library: Soname, distribution: String, files: Vec<TreePath> }
        [
            "needs {library}, which neither the set nor the table of {distribution} provides ({}); {}",
            few(files, 3),
            // No artifact has it, but binaries for every HIP runtime need it.
            match library.as_str() {
                "librocm_kpack_shim.so.0" => "`hip_runtime = \"any\"` adds it to the set",
                _ => LIBRARY_REMEDY,
            }
        ];
    VersionUnresolved = "R071" "library-version-unresolved" Warning by "libraries" {
            package: PackageName,
            library: Soname,
            version: String,
            distribution: String,
            files: Vec<TreePath>,
        }
        [
            "needs {version} of {library}, which the table of {distribution} does not have ({}); \
             {LIBRARY_REMEDY}",
            few(files, 3)
        ];
    RunpathRewritten = "R072" "runpath-rewritten" Note by "runpath"
        { file: ComponentFile, before: String, after: String }
        ["its search path {before} becomes `{after}`"];
    RunpathOutside = "R073" "runpath-outside" Warning by "runpath"
        { file: ComponentFile, search: OutsideSearch }
        ["{search}"];
    VersionNotInSet = "R074" "library-version-not-in-set" Warning {
            package: PackageName,
            library: Soname,
            version: String,
            provider: PackageName,
            path: TreePath,
            has_others: bool,
            files: Vec<TreePath>,
        }
        [
            "needs {version} of {library}, but {path} of {provider} {} ({}): {}; build these files \
             against the library of this set",
            if *has_others { "has only other versions" } else { "has no versions" },
            few(files, 3),
            if *has_others {
                "the loader refuses them"
            } else {
                "the loader warns or aborts, and the .rpm requires a capability that nothing provides"
            }
        ];
    ListKeyUnknown = "R075" "list-key-unknown" Warning { entry: String, key: String }
        ["the key `{key}` is not known and is ignored"];
    /// `artifacts` is `None` for a listed metapackage whose dependencies are all absent.
    ListedWithoutContent = "R076" "listed-without-content" Note
        { entry: String, artifacts: Option<Vec<String>> }
        ["{}, so there is no package", match artifacts.as_deref() {
            None => "depends on nothing that is in the set".to_owned(),
            Some([]) => "takes no artifact".to_owned(),
            Some(artifacts) => format!("takes nothing of the input (of {})", few(artifacts, 5)),
        }];
    DependencyLeftOut = "R077" "dependency-left-out" Warning by "relations" { entry: String, dependency: String }
        [
            "should depend on {dependency}, which is not in this set; the dependency is left out"
        ];
    NotListed = "R078" "not-listed" Warning
        { component: ComponentName, paths: Vec<TreePath>, code_objects: Vec<Sha256Digest> }
        [
            "no listed package takes {} of it ({}), with {}",
            counted(paths.len(), "path"),
            few(paths, 5),
            counted(code_objects.len(), "distinct code object")
        ];
    ListClaimIgnored = "R079" "list-claim-ignored" Warning { entry: String, claim: IgnoredClaim }
        ["{claim}"];
    /// `reason` is set for a damaged file of a `dbg` component.
    DebugFileWithoutId = "R080" "debug-file-without-build-id" Warning
        { file: ComponentFile, reason: Option<String> }
        ["{}; it keeps its path", match reason {
            Some(reason) => format!("is damaged, so its build-id is not known: {reason}"),
            None => "has no build-id by which a debugger would find it".to_owned(),
        }];
    LicenceNotQuoted = "R081" "licence-not-quoted" Note by "packages" { file: ComponentFile, reason: NotQuoted }
        ["is not quoted in the copyright file of its packages: {reason}"];
    ProgramWithoutAlternative = "R082" "program-without-alternative" Warning by "alternatives"
        { program: String, package: PackageName }
        about ["{} of {package}", program.escape_debug()]
        ["has a name that update-alternatives or a shell could misread, so it does not become an alternative"];
    LibraryMisplaced = "R083" "library-misplaced" Warning by "libdir"
        { package: PackageName, libdir: TreePath, place: LibraryFolder, library: TreePath }
        [
            "programs do not find {library} by name: the loader searches {libdir}, not {place}; {}",
            place.remedy()
        ];
    VersionNotNewer = "R084" "version-not-newer" Warning of earlier { version: String, not_newer: NotNewer }
        about ["{}", not_newer.subject(version)] ["{}", not_newer.describe(version)];
    PathMoved = "R085" "path-moved" Note of earlier
        { package: PackageName, format: Format, from: PackageName, paths: Vec<String> }
        [
            "takes {} from {from} of the earlier set, as .{format} ({})",
            counted(paths.len(), "path"), few(paths, 1)
        ];
    PathKindChanged = "R086" "path-kind-changed" Note of earlier
        { path: String, was: MemberKind, is: MemberKind }
        [
            "was a {was} in the earlier set and is a {is} now: updates from a set named by `--since` convert \
             it, updates from other sets may fail"
        ];
    PackageDropped = "R087" "package-dropped" Warning by "replaces" of earlier { package: PackageName, format: Format }
        [
            "is a .{format} of the earlier set and missing from this one: it stays installed, and its \
             dependencies may hold back the update; name it under `replaces`"
        ];
    OtherSeries = "R088" "other-series" Note of earlier
        { series: String, packages: Vec<String>, shared_paths: Vec<String> }
        [
            "is the series of {} of the earlier set ({}), which this set neither updates nor \
             replaces{}",
            counted(packages.len(), "package"),
            few(packages, 1),
            match shared_paths.len() {
                0 => String::new(),
                count => format!(
                    "; {} {} in both ({}): give each series its prefix",
                    counted(count, "path"), are(count), few(shared_paths, 1)
                ),
            }
        ];
    RepositoryUnsigned = "R090" "repository-unsigned" Warning never accepted { channel: String }
        ["no key was given, so clients cannot know who published it"];
    VersionNotKept = "R091" "version-not-kept" Note never accepted { file: String, keep: usize }
        ["is not among the highest versions, which are kept (--keep {keep})"];
    ClientFilesMissing = "R092" "client-files-missing" Note never accepted { channel: String }
        ["has no .sources or .repo file for clients, because --url was not given"];
    LibrariesNotAsked = "R093" "libraries-not-asked" Note by "parts"
        { file: ComponentFile, kind: ComponentKind }
        [
            "its needed libraries do not become dependencies: the part for `{kind}` does not set \
             `programs = true`"
        ];
    LibraryWithoutDependency = "R094" "library-without-dependency" Note by "libraries"
        { package: PackageName, library: Soname, files: Vec<TreePath> }
        [
            "needs {library}, for which the configuration names no dependency ({})",
            few(files, 3)
        ];
    LibraryOutOfReach = "R095" "library-out-of-reach" Warning {
            package: PackageName,
            library: Soname,
            provider: PackageName,
            path: TreePath,
            search_path: String,
            files: Vec<TreePath>,
        }
        [
            "needs {library}, which {provider} has as {path}, where the loader does not search \
             ({}); give the file that needs it the search path `{search_path}`",
            few(files, 3)
        ];
    /// The packages are the same, so no receipt has this finding.
    CacheEntryDamaged = "R096" "cache-entry-damaged" Warning never accepted { entry: String, damage: String }
        ["{damage}; its content is made again"];
    /// No receipt has this finding.
    CacheUnusable = "R097" "cache-unusable" Warning never accepted { cache: String, reason: String }
        ["nothing more is kept for later runs: {reason}"];
    AcceptUnmatched = "R098" "accept-unmatched" Warning never accepted
        { entry: String, accepts: String, pattern: String }
        [
            "accepts {accepts} about `{pattern}`, but this set has no such finding: remove the entry, \
             or correct its subject"
        ];
    AcceptUnmatchedHere = "R099" "accept-unmatched-here" Note never accepted
        { entry: String, accepts: String, pattern: String }
        [
            "accepts {accepts} about `{pattern}`, but this run has no such finding: it makes a part \
             of the set (--only, --format, --distro), or names no earlier set (--since)"
        ];
    KeyWeak = "R101" "key-weak" Warning never accepted { key: String, fault: String, remedy: String }
        [
            "{fault}, so apt of Debian 13 and other clients refuse everything that the key signs; to keep \
             using it, {remedy}"
        ];
    PackagesUnsigned = "R102" "packages-unsigned" Warning never accepted
        { channel: String, unsigned: Vec<String>, of: usize }
        [
            "{} of {} {} unsigned, so the .repo file sets gpgcheck=0, and rpm 6 refuses unsigned packages by \
             default ({}): {SIGN_REMEDY} (--keep 1 or --remove removes the old one)",
            unsigned.len(),
            counted(*of, "package"),
            are(unsigned.len()),
            few(unsigned, 3),
        ];
    PackagesByEd25519 = "R103" "packages-by-ed25519" Note never accepted { channel: String }
        [
            "packages are signed by Ed25519, which rpm before 4.16 refuses (Enterprise Linux 7 and 8, \
             Amazon Linux 2): sign them with an RSA key to support these"
        ];
    /// The run does not open such a folder: it may be closed on purpose, or belong to another user. No receipt has this
    /// finding.
    FolderClosed = "R110" "folder-closed" Note never accepted { folder: String, mode: String, others: usize }
        [
            "not all users may list it (mode {mode}){}, so others, such as a web server, cannot read its \
             content: permit it (chmod a+rx), unless it is closed on purpose",
            match others {
                0 => String::new(),
                count => format!(", nor {} below it", counted(*count, "folder")),
            }
        ];
    PackagesKept = "R112" "packages-kept" Note of earlier
        { version: String, made: usize, packages: Vec<String> }
        [
            "makes {} and keeps {} of earlier sets ({})",
            counted(*made, "package file"),
            packages.len(),
            few(packages, 1)
        ];
    EarlierHeldBack = "R113" "earlier-held-back" Warning of earlier
        { format: Format, misfits: Vec<Misfit>, held_back: Vec<String> }
        ["{}", held_back_for(misfits, held_back)];
    EarlierPartsAbsent = "R114" "earlier-parts-absent" Warning of earlier
        { release: String, present: usize, of: u32 }
        [
            "is an earlier set in {of} parts, of which --since names {present}: packages of the others \
             are treated as new; name the receipts of all parts, or the joined one \
             (`rockpack verify --join`)"
        ];
    /// The file has a secret key or a passphrase. No receipt has this finding.
    SecretReadable = "R115" "secret-readable" Warning never accepted { file: String, mode: String }
        [
            "is secret, but other users may read it (mode {mode}): restrict it (chmod go-rwx), and make a \
             new key if someone may have read this one"
        ];
    NamesUnseen = "R116" "names-unseen" Warning { artifact: InputArtifact, files: Vec<String> }
        [
            "{} {} invisible or direction-changing characters in the name: the name that is shown is not \
             the one that is installed ({})",
            counted(files.len(), "file"),
            if files.len() == 1 { "has" } else { "have" },
            few(&files.iter().map(|name| printable(name)).collect::<Vec<_>>(), 3)
        ];
    PackagesByOtherKey = "R117" "packages-by-other-key" Warning never accepted
        { channel: String, key: String, packages: Vec<String> }
        [
            "{} {} signed by the key {key}, which clients do not get, so dnf and zypper refuse {} ({}): \
             give clients the key (--public-key), or publish {} again with a new release number and \
             --sign-packages",
            counted(packages.len(), "package"),
            are(packages.len()),
            if packages.len() == 1 { "it" } else { "them" },
            few(packages, 3),
            if packages.len() == 1 { "it" } else { "them" },
        ];
    /// The cause is packages that a publication adds or removes.
    UpdateHeldBack = "R118" "update-held-back" Warning never accepted
        { channel: String, format: Format, misfits: Vec<Misfit>, held_back: Vec<String> }
        ["{}", held_back_for(misfits, held_back)];
    DatabaseInconsistent = "R119" "database-inconsistent" Warning
        { file: ComponentFile, fault: Inconsistency }
        ["{fault}"];
    /// The wheels made from it have a complete RECORD.
    WheelRecordIncomplete = "R120" "wheel-record-incomplete" Warning
        { wheel: String, unlisted: Vec<String>, absent: Vec<String>, unhashed: usize }
        ["{}", record_faults(unlisted, absent, *unhashed)];
    WheelTagsDiffer = "R121" "wheel-tags-differ" Warning
        { wheel: String, tags: Vec<String>, build: Option<String> }
        [
            "its WHEEL has {}{}; the tags of the file name are used",
            if tags.is_empty() { "no tags".to_owned() } else { few(tags, 5) },
            build.as_ref().map_or(String::new(), |build| format!(" and the build number {build}"))
        ];
    /// Folders, which installers create themselves, and signatures of a RECORD that changes.
    WheelMembersDropped = "R122" "wheel-members-dropped" Note
        { wheel: String, members: Vec<String> }
        ["{} {} left out: {}", counted(members.len(), "member"),
            are(members.len()), few(members, 5)];
    WheelUnchanged = "R123" "wheel-unchanged" Note { wheel: String }
        ["is copied unchanged: nothing of it goes to device wheels"];
    WheelRuntimeOutside = "R124" "wheel-runtime-outside" Warning
        { wheel: String, libraries: Vec<Soname> }
        [
            "the HIP runtime{} is not in the wheel; the installed one must read kernel archives",
            if libraries.is_empty() { String::new() } else { format!(" ({})", list(libraries)) }
        ];
    /// The wheel is refused, unless the command line asks to split it.
    WheelRuntimeCannotRead = "R125" "wheel-runtime-cannot-read" Warning
        { wheel: String, files: Vec<String> }
        ["{} {} kernel archives, so no program finds the device code of this wheel",
            list(files), if files.len() == 1 { "does not read" } else { "do not read" }];
    WheelNotForPypi = "R126" "wheel-not-for-pypi" Note
        { wheel: String, reasons: Vec<PypiRefusal> }
        ["PyPI would refuse it: {}", list(reasons)];
    WheelExtraOpen = "R130" "wheel-extra-open" Warning never accepted
        { wheel: String, extra: String, requires: String, gap: ExtraGap }
        ["{}", gap.describe(extra, requires)];
    WheelBuildsMixed = "R131" "wheel-builds-mixed" Warning never accepted
        { wheel: String, builds: Vec<String> }
        [
            "has several builds for the same tags ({}), and host and device wheels are tied only by their \
             version, so installers may mix builds: give each build its own version",
            list(builds)
        ];
    FallbackLeftOut = "R132" "fallback-left-out" Warning by "packages" {
            file: ComponentFile,
            fallback: BaseArch,
            wrappers: Vec<u32>,
            archs: Vec<BaseArch>,
        }
        [
            "{} {} {} code for {} only as {fallback}, which the configuration leaves out, so kernels of the \
             library fail there: pack {fallback}, or leave these archs out, too",
            if wrappers.len() == 1 { "wrapper" } else { "wrappers" },
            few(wrappers, 5),
            if wrappers.len() == 1 { "has" } else { "have" },
            few(archs, 5)
        ];
    FallbackFilesGeneric = "R133" "fallback-files-generic" Note by "databases"
        { folder: ComponentFile, generic: BaseArch, archs: Vec<BaseArch> }
        [
            "has fallback files for {generic} and none for {}: the library looks them up by the name of the \
             GPU, so there it solves fewer problems; build the library for these archs",
            few(archs, 5)
        ];
    ImportLost = "R134" "import-lost" Warning of earlier
        { package: PackageName, library: Soname, provider: PackageName, symbols: Vec<String> }
        [
            "needs {}{library}, which {provider} had in an earlier set and no longer has: its files do not \
             start, or abort at the first use; rebuild it against this set, or add it to --only if that \
             leaves it out",
            if symbols.is_empty() { String::new() } else { format!("{} of ", few(symbols, 3)) }
        ];
    PackagesWithoutDigest = "R135" "rpm-without-digest" Warning never accepted
        { channel: String, packages: Vec<String>, missing: MissingDigest }
        ["{}", without_digest(packages, *missing)];
    PackagesSignedForRpm6 = "R136" "packages-signed-for-rpm-6" Warning never accepted
        { channel: String, packages: Vec<String> }
        [
            "{} whose only signature is of format 6 (tag 278): rpm 4 and dnf 4 do not see it, and refuse \
             unsigned packages where gpgcheck=1 ({}): {SIGN_REMEDY}",
            counted(packages.len(), "package"),
            few(packages, 3)
        ];
    ReceiptUnproved = "R137" "receipt-unproved" Warning of earlier
        { release: String, doubt: ReceiptDoubt }
        [
            "its receipt {doubt}; {}",
            match doubt {
                ReceiptDoubt::Unsigned => {
                    "nothing proves the packages that this set keeps from it: sign each set (--sign-key)"
                }
                _ => "this set keeps none of its packages, and makes them again",
            }
        ];
    VendorChanged = "R138" "vendor-changed" Warning by "vendor" of earlier
        { from: String, to: String, packages: Vec<String> }
        about ["vendor"]
        [
            "changes from {} to {} in {} ({}): `zypper update` keeps the installed versions and reports no \
             error; keep one `vendor`, or tell users to run `zypper update --allow-vendor-change`",
            vendor(from), vendor(to), counted(packages.len(), "package"), few(packages, 3)
        ];
    RequiredPathUnlisted = "R139" "required-path-unlisted" Warning never accepted
        { path: String, owner: String, packages: Vec<String> }
        [
            "is required by {} and is in {owner}, but no package provides it and primary does not list it, so \
             dnf and zypper do not find it: have {owner} provide the path (`Provides: {path}`)",
            few(packages, 3)
        ];
    PlaceholderPublished = "R140" "placeholder-published" Warning never accepted
        { placeholder: String, packages: Vec<String>, remedy: String }
        [
            "is a placeholder in {} ({}), which a build writes if no value is given: {remedy}",
            counted(packages.len(), "package"), few(packages, 3)
        ];
    /// The file is neither ELF nor a bundle, such as an archive or a pickle.
    DeviceCodeInData = "R141" "device-code-in-data" Warning { file: InputFile, form: EmbeddedForm }
        ["contains {form}, which stays in the host package for every GPU: ship it as a separate file"];
    /// In a wheel, the binary keeps its device code.
    OldRuntimeNeeded = "R142" "old-runtime-needed" Warning
        { file: InputFile, libraries: Vec<Soname>, code_objects: Vec<Sha256Digest> }
        [
            "needs {}, and no HIP runtime of ROCm 6 or older is known to read kernel archives{}",
            list(libraries),
            if code_objects.is_empty() {
                ", so it may find no device code: build it for ROCm 7 or newer, or the set for every runtime \
                 (`hip_runtime = \"any\"`)"
            } else {
                ", so its device code stays in it: build it for ROCm 7 or newer to split it"
            }
        ];
    /// The set is refused, unless the configuration accepts the finding.
    SetRuntimeCannotRead = "R143" "set-runtime-cannot-read" Warning { file: ComponentFile }
        ["does not read kernel archives, so programs that load it find no device code of this set"];
    /// The names of device wheels have no owner's prefix.
    WheelNamesUnregistered = "R145" "wheel-names-unregistered" Note by "wheels.device_name"
        { distribution: String }
        [
            "anyone can register this name, and those of the other device wheels, on PyPI: register them before \
             you publish the wheels, or have users install from one index alone (`--index-url`, not \
             `--extra-index-url`)"
        ];
    PackagesNotInReceipt = "R146" "packages-not-in-receipt" Warning
        { folder: String, packages: Vec<String> }
        [
            "no receipt there names {} ({}): publish packages of other builds or tools from separate folders",
            counted(packages.len(), "package"), few(packages, 3)
        ];
    KernelImagesUnread = "R147" "kernel-images-unread" Note by "databases" { file: InputFile }
        [
            "looks like a file of AOTriton, but does not state for which architectures of its folder it has \
             code, so it goes to all of them: download it again if it is damaged"
        ];
    ReceiptUntrusted = "R148" "receipt-untrusted" Warning { receipt: String, doubt: ReceiptDoubt }
        ["{doubt}; nothing proves who built the packages"];
    /// RECORD has wrong digests or sizes of METADATA, WHEEL or itself. A wheel that is split gets a new RECORD.
    WheelRecordStale = "R149" "wheel-record-stale" Warning
        { wheel: String, members: BTreeMap<String, String> }
        [
            "{}; pip, uv and PyPI accept such a wheel, but `installer` and `wheel unpack` check RECORD: unless the \
             wheel is split, rewrite it by `unzip` and `wheel pack`",
            members.iter().map(|(name, how)| format!("{name} {how}")).collect::<Vec<_>>().join("; ")
        ];
    WheelSavesNothing = "R150" "wheel-saves-nothing" Note { wheel: String, size: u64, least_size: u64 }
        ["has {size} bytes, and each GPU needs {least_size} or more of the wheels made from it: splitting saves \
          less than 1 % of a download; publish it unsplit"];
    WheelSetLarger = "R151" "wheel-set-larger" Note { release: String, size: u64, set_size: u64 }
        ["had {size} bytes, and the wheels made from it have {set_size} in total: an index needs more space \
          for them, although each GPU needs only some"];
    WheelSortsBelow = "R152" "wheel-sorts-below" Warning never accepted { wheel: String, chosen: String }
        [
            "pip and uv choose {chosen} from this index unless a requirement names the full version, because it sorts \
             higher (PEP 440 compares words such as `rocm10` and commits behind the `+` as text): raise the version \
             before the `+` (`.post1`), or remove or yank {chosen}"
        ];
    WheelPerPython = "R153" "wheel-per-python" Note
        { release: String, wheels: Vec<String>, file: String, reason: PythonDifference }
        ["has separate device wheels for each Python if they differ, as in {file}{reason}"];
    ArchivesRuntimeNeeded = "R154" "archives-runtime-needed" Warning { file: InputFile }
        [
            "was transformed before for HIP runtimes that read kernel archives, and no other runtime finds its \
             device code: start from the binary with its device code"
        ];
    ComponentUnknown = "R155" "component-unknown" Note
        { artifact: InputArtifact, files: Vec<String> }
        [
            "{} of the install tree {} to no component that is known by name: {}",
            counted(files.len(), "path"),
            if files.len() == 1 { "belongs" } else { "belong" },
            few(files, 5)
        ];
    PrefixFound = "R156" "prefix-found" Note { input: String, prefix: String }
        ["its install prefix is {prefix}: its content goes to the prefix of the packages"];
    /// The files also include clang configurations, which get the linker option.
    RpathForRunpath = "R157" "rpath-for-runpath" Note by "runpath" { files: Vec<TreePath> }
        about ["runpath"]
        [
            "{} {} DT_RPATH instead of DT_RUNPATH ({})",
            counted(files.len(), "file"),
            if files.len() == 1 { "gets" } else { "get" },
            few(files, 3)
        ];
    LibrariesReplaced = "R158" "libraries-replaced" Note by "libraries" {
            package: PackageName,
            entry: String,
            formats: Vec<Format>,
            relations: Vec<String>,
            libraries: Vec<Soname>,
            files: Vec<TreePath>,
        }
        [
            "needs {}; the entry `{entry}` of `libraries` names {} for that ({})",
            few(libraries, 3), dependencies(relations), few(files, 3)
        ];
    ArchivesStored = "R159" "archives-stored" Note by "archive_level"
        { formats: Vec<Format>, beyond_window: Vec<String> }
        about ["archive_level"]
        [
            "kernel archives in {} are uncompressed: they are several times larger on disk, and AMD's loader (at \
             least up to ROCm 7.14; not rockpack's) can read wrong bytes from them if a process forks after it \
             loaded code, and parent and child then load code at the same time{}",
            few(formats, 2),
            if beyond_window.is_empty() {
                String::new()
            } else {
                let archives = few(beyond_window, 3);
                format!("; the compression window of payloads is smaller than {archives}, so packages may grow")
            }
        ];
    CodeFilesCompressed = "R160" "code-files-compressed" Note by "code_files"
        { component: String, files: Vec<TreePath>, since: String, too_old: Option<String> }
        about ["{component}"]
        [
            "{} of kernel databases {} compressed, which the HIP runtime opens since ROCm {since}{} ({})",
            counted(files.len(), "code file"),
            are(files.len()),
            too_old.as_ref().map(|own| format!("; this set has the version {own}")).unwrap_or_default(),
            few(files, 3)
        ];
    ArtifactsDiffer = "R161" "artifacts-differ" Note by "primary_shard" {
            other: InputArtifact,
            first: InputArtifact,
            different: usize,
            not_compared: usize,
            examples: Vec<DifferentFile>,
        }
        [
            "differs from {first}, whose files take precedence, in {}{} ({})",
            if *not_compared > 0 { "at least " } else { "" },
            counted(*different, "host file"),
            list(examples)
        ];
    IndexPageKept = "R162" "index-page-kept" Note never accepted { path: String }
        ["was not written by rockpack, so it is kept, and the repository gets no page with commands"];
}

fn vendor(name: &str) -> &str {
    if name.is_empty() { "none" } else { name }
}

fn dependencies(relations: &[String]) -> String {
    let quoted: Vec<String> = relations.iter().map(|text| format!("`{text}`")).collect();
    if quoted.is_empty() { "no dependency".to_owned() } else { quoted.join(" and ") }
}

fn device_code(count: usize) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{} or database file{ending}", counted(count, "code object"))
}

/// The message about left-out device code: the number of pieces, of which `different` are distinct, the reason, and the
/// files.
fn left_out(count: usize, different: usize, why: &str, places: &[LeftOutFile]) -> String {
    let (code, are, places) = (device_code(count), are(count), few(places, 5));
    let distinct =
        if different < count { format!(" ({different} distinct)") } else { String::new() };
    format!("{code}{distinct} {are} in no package, because {why} ({places})")
}

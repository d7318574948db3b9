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
/// are the arguments of `format!`, with the fields of the row in scope. Without `about`, the subject is the first
/// field. `by "key"` names the key of the configuration that settles such findings, if there is one. `never accepted`
/// and `of earlier` put the code into [`Code::NEVER_ACCEPTED`] and [`Code::OF_EARLIER`].
macro_rules! findings {
    ($(
        $(#[doc = $doc:literal])*
        $Type:ident = $id:literal $name:literal $severity:ident $(by $key:literal)?
            $(never $never:ident)? $(of $earlier:ident)?
            { $($field:ident: $type:ty),* $(,)? } $(about [$($subject:tt)*])? [$($message:tt)*];
    )*) => {
        #[allow(non_upper_case_globals, reason = "a code is called as its type in `found`")]
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

            /// Findings that a package set never has, or that are about the table `accept`. No configuration
            /// accepts them.
            pub const NEVER_ACCEPTED: &[Self] = &[$($(marked!($never, Self::$Type),)?)*];

            /// Findings that compare the set with an earlier one.
            pub const OF_EARLIER: &[Self] = &[$($(marked!($earlier, Self::$Type),)?)*];
        }

        /// What can be found: one type for each code. Each becomes a [`Finding`].
        pub mod found {
            use super::*;

            $(
                $(#[doc = $doc])*
                #[allow(missing_docs, reason = "the text of a row says what its fields are")]
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

/// The subject of a row.
macro_rules! subject {
    ($first:ident $($other:ident)*) => { $first.to_string() };
    ($($field:ident)* [$($text:tt)*]) => { format!($($text)*) };
}

/// The code of a row with a mark.
macro_rules! marked {
    ($mark:ident, $code:expr) => {
        $code
    };
}

/// What settles libraries that a table lacks.
const FOR_LIBRARIES: &str =
    "name a root or table that has it (`--distro`), or its package under `libraries`";

findings! {
    /// A manifest lists a stage prefix that the artifact does not have.
    PrefixAbsent = "R001" "manifest-prefix-absent" Note
        { artifact: InputArtifact, prefix: TreePath }
        ["the listed stage prefix {prefix} does not exist"];
    /// Two stage prefixes or artifacts have the same path with identical content, which is packed once.
    FileMerged = "R002" "identical-file-merged" Note { file: InputFile, same: SameFile }
        ["is the same {same}"];
    /// No version was given.
    VersionUnset = "R003" "version-unset" Warning { version: String }
        about ["version"] ["no version was given, so the packages have {version}"];
    /// An entry of a shard, or of the folder with the shards, is not an artifact.
    NotAnArtifact = "R004" "not-an-artifact" Note { shard: Option<String>, entry: String }
        about ["{}", shard.as_ref().map_or(entry.clone(), |shard| format!("{shard}/{entry}"))]
        ["is not an artifact and is left out"];
    /// A file of an artifact lies outside all listed prefixes.
    OutsidePrefixes = "R005" "outside-prefixes" Warning
        { artifact: InputArtifact, files: Vec<String> }
        [
            "{} outside of all prefixes {} in no package: {}",
            counted(files.len(), "file"), are(files.len()), few(files, 5)
        ];
    /// A link leads to no file of the whole set. The owner is a component, or an artifact of a shard.
    LinkDangling = "R006" "link-dangling" Warning
        { owner: String, path: TreePath, target: String }
        about ["{owner}/{path}"] ["leads to {target}, which nothing in the input provides"];
    /// An artifact has no folder for any of the stage prefixes that it lists.
    ArtifactEmpty = "R007" "artifact-empty" Warning { artifact: InputArtifact }
        ["none of its listed stage prefixes exists, so nothing of it is packed"];
    /// An entry of a shard is named like an artifact, but not packed in a way that rockpack reads.
    PackingUnknown = "R008" "artifact-packing-unknown" Warning { shard: String, entry: String }
        about ["{shard}/{entry}"]
        [
            "is named like an artifact, but is neither a folder of that name nor packed as \
             .tar.zst or .tar.xz; it is left out"
        ];
    /// The target of a bundle entry, or of a row of a kernel archive, disagrees with the ELF header of its
    /// code object.
    TargetMismatch = "R010" "target-mismatch" Warning
        { file: InputFile, claimant: Claimant, actual: Target }
        ["{claimant} holds code for {actual}; the code decides"];
    /// Device code, such as SPIR-V, is not for one GPU arch.
    ArchNeutralCode = "R011" "arch-neutral-code" Note { file: InputFile, entry: String }
        ["entry {entry} is compiled for the GPU at run time"];
    /// Code objects have an arch that is in no group.
    ArchNotGrouped = "R012" "arch-not-grouped" Warning by "architecture_groups" {
            arch: BaseArch,
            count: usize,
            different: usize,
            places: Vec<LeftOutFile>,
            code_objects: Vec<Sha256Digest>,
        }
        ["{}", left_out(*count, *different, "no group has this arch", places)];
    /// A configured arch has no code.
    ArchMissing = "R013" "arch-missing" Warning { arch: BaseArch, group: String }
        ["no shard has device code for it (group {group})"];
    /// The primary shard lacks a host file, or all host files of a component.
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
    /// Host files of two shards differ.
    HostFilesDiffer = "R015" "host-files-differ" Warning by "primary_shard" {
            file: ComponentFile,
            difference: HostDifference,
            first: InputArtifact,
            other: InputArtifact,
        }
        ["differs between {first} and {other}: it {difference}; the first is packed"];
    /// Two artifacts have the same device code, or one bundle has it twice, and it is packed once.
    DuplicateCode = "R016" "duplicate-device-code" Note { repeated: RepeatedCode }
        about ["{}", repeated.holder()] ["{repeated}"];
    /// Wrappers of two shards share some kernels but not all.
    WrapperOverlap = "R017" "wrapper-overlap" Warning {
            file: ComponentFile,
            first: InputArtifact,
            wrapper: usize,
            other: InputArtifact,
            other_wrapper: usize,
        }
        [
            "wrapper {wrapper} of {first} and wrapper {other_wrapper} of {other} share some \
             kernels but not all; they are taken for the same"
        ];
    /// A bundle has no wrapper that points to it.
    BundleUnreferenced = "R018" "bundle-unreferenced" Warning
        { file: InputFile, offset: u64, code_objects: Vec<Sha256Digest> }
        [
            "no wrapper points to the bundle {offset:#x} bytes into .hip_fatbin; it is left out \
             with its {}",
            counted(code_objects.len(), "code object")
        ];
    /// The arch or target of a code object cannot be read from its content.
    UnknownProcessor = "R019" "unknown-processor" Warning by "additional_architectures"
        { file: InputFile, entry: Option<String>, flags: u32 }
        ["{}", match entry {
            Some(id) => format!(
                "the code object of entry {id} has the unknown flags {flags:#x}; the entry decides"
            ),
            None => format!("a code object with the unknown flags {flags:#x}; its name decides"),
        }];
    /// Name, directory and content of a kernel database file have different archs.
    DatabaseArchMismatch = "R020" "database-arch-mismatch" Warning by "databases"
        { file: InputFile, mismatch: ArchMismatch }
        ["{mismatch}"];
    /// A kernel database file that serves several archs, or is a cache for all, stays in the host
    /// package.
    DatabaseShared = "R021" "database-shared" Note by "databases"
        { file: InputFile, rule: String, is_cache: bool, code_objects: Vec<Sha256Digest> }
        [
            "{} ({rule}) and stays with the host files",
            if *is_cache { "is a cache for all archs" } else { "serves several archs" }
        ];
    /// A kernel database file lacks the partner that it needs.
    DatabaseUnpaired = "R022" "database-unpaired" Warning by "databases" { file: InputFile, unpaired: Unpaired }
        ["{unpaired}"];
    /// Two shards have different code for one key, and the first shard's is packed.
    DuplicateDropped = "R023" "duplicate-device-code-dropped" Warning
        { file: ComponentFile, different: DifferentCode, code_objects: Vec<Sha256Digest> }
        ["{different}; the code of {} is packed", different.first];
    /// A shared file of a kernel database was merged from those of several shards.
    DatabaseMerged = "R024" "database-merged" Note { file: ComponentFile, parts: Vec<MergedPart> }
        ["is the union of {}", few(parts, 5)];
    /// Files of a kernel database were moved to directories of their archs.
    DatabaseMoved = "R025" "database-moved" Note
        { folder: ComponentFile, files: usize, differs: String, reason: NoUnion }
        [
            "{} {} moved to the directories of their archs, because {differs} differs: {reason}",
            counted(*files, "file"), are(*files)
        ];
    /// A cache of another shard is left out.
    DatabaseCacheDropped = "R026" "database-cache-dropped" Warning
        { file: ComponentFile, kept: InputArtifact, dropped: InputArtifact }
        ["differs in {dropped}; that of {kept} is packed, and the library works without it"];
    /// A kernel index refers to a file that does not exist, or is for another arch.
    DatabaseUnresolved = "R027" "database-unresolved" Warning
        { file: InputFile, refers_to: String, unresolved: Unresolved }
        ["{}", unresolved.told(refers_to)];
    /// A host library or static archive that is for one arch is in a kernel package.
    DatabaseHostCode = "R028" "database-host-code" Note
        { file: InputFile, archs: Vec<BaseArch>, code_objects: Vec<Sha256Digest> }
        ["is for {} as a whole, and stays as it is", arch_list(archs)];
    /// An index of a kernel database cannot be read.
    DatabaseUnreadable = "R029" "database-unreadable" Warning by "databases"
        { file: InputFile, reason: String, decided_by: DecidedBy }
        ["is no MessagePack index ({reason}); {decided_by}"];
    /// A static archive, object or bitcode file keeps its device code.
    FatDevelopmentFile = "R030" "fat-development-file" Note
        { file: InputFile, kind: DevelopmentFile }
        ["is {kind} and keeps its device code"];
    /// A binary was transformed already, and the input has none of its device code.
    AlreadyTransformed = "R031" "already-transformed" Warning { file: InputFile }
        [
            "was transformed already, and no kernel archive of its shard has its code; it is \
             passed on as it is"
        ];
    /// A host binary is stripped of its section table and cannot be searched for device code.
    NoSectionTable = "R032" "no-section-table" Warning { file: InputFile }
        ["has no section table, so rockpack cannot look for device code in it; it is passed on as it is"];
    /// A device entry of an offload bundle holds no bytes.
    EmptyCodeObject = "R033" "empty-code-object" Warning
        { file: InputFile, entry: String, code_objects: Vec<Sha256Digest> }
        ["entry {entry} is empty and is left out"];
    /// Wrappers of a binary have no device code: their bundles have no device entry with code, or no kernel
    /// archive of the shard has a row for them.
    WrapperWithoutCode = "R034" "wrapper-without-code" Warning
        { file: InputFile, wrappers: Vec<usize>, of: usize }
        [
            "{} {} of {of} {} no device code, so kernels of {} run on no GPU; compile {} for the GPUs \
             that the packages are for (`--offload-arch`), or as host code alone",
            if wrappers.len() == 1 { "wrapper" } else { "wrappers" },
            few(wrappers, 5),
            if wrappers.len() == 1 { "has" } else { "have" },
            if wrappers.len() == 1 { "its source" } else { "their sources" },
            if wrappers.len() == 1 { "it" } else { "them" },
        ];
    /// A host binary has device code outside of `.hip_fatbin`, where it stays.
    DeviceCodeEmbedded = "R035" "device-code-embedded" Warning
        { file: InputFile, places: Vec<EmbeddedCode> }
        [
            "holds {} outside of .hip_fatbin; {} in the host package, whatever the GPU: compile the \
             code as HIP, so that it goes into kernel packages, or ship it as a file of its own",
            few(places, 3), if places.len() == 1 { "it stays" } else { "they stay" }
        ];
    /// A fat binary that cannot be transformed stays in its host package with its device code.
    KeptFat = "R037" "kept-fat" Note by "validation.untransformable"
        { file: InputFile, targets: Vec<Target>, reason: String, code_objects: Vec<Sha256Digest> }
        [
            "cannot be transformed and keeps its {} ({}): {reason}",
            counted(code_objects.len(), "code object"), few(targets, 5)
        ];
    /// A binary that keeps its device code was also built by another shard. That build is not packed, nor is
    /// its code.
    KeptFatDropped = "R038" "kept-fat-dropped" Warning by "primary_shard"
        { file: InputFile, provided_by: InputArtifact, code_objects: Vec<Sha256Digest> }
        [
            "keeps its device code, but {provided_by} provides the file, so {} of it {} in no \
             package",
            counted(code_objects.len(), "code object"), are(code_objects.len())
        ];
    /// Files are for another machine than x86-64, and the configuration allows them as data.
    OtherMachineAllowed = "R039" "other-machine-allowed" Note by "other_machines"
        { artifact: InputArtifact, machine: ElfMachine, files: Vec<TreePath> }
        [
            "{} for {machine}, not x86-64, which {} packed only as data that `other_machines` \
             names ({})",
            counted(files.len(), "file"), are(files.len()), few(files, 5)
        ];
    /// Code objects of a kernel archive belong to no binary.
    KernelsUnclaimed = "R040" "kernels-unclaimed" Warning
        { archive: InputFile, kernel_names: Vec<String>, code_objects: Vec<Sha256Digest> }
        [
            "no binary of the shard asks for {}, so no kernel package has {} (kernel names: {})",
            counted(code_objects.len(), "code object"),
            if code_objects.len() == 1 { "it" } else { "them" },
            few(kernel_names, 3)
        ];
    /// The program headers of a transformed binary do not follow the ELF header.
    ProgramHeadersMoved = "R041" "program-headers-moved" Warning { file: InputFile }
        [
            "another tool moved its program headers away from the ELF header: strip and patchelf \
             damage such files, and old kernels cannot start such programs; build it again from \
             the fat binary"
        ];
    /// A kernel manifest lists an archive that does not exist.
    ListedArchiveAbsent = "R042" "listed-archive-absent" Warning
        { manifest: InputFile, archives: Vec<String> }
        ["lists archives that the shard does not have: {}", few(archives, 5)];
    /// Code objects have an arch that was not asked for.
    TargetNotSelected = "R043" "target-not-selected" Note never accepted
        { shard: String, component: ComponentName, arch: BaseArch, count: usize }
        about ["{shard}/{component}"]
        [
            "{} of {arch} {} left out, because the arch is not among the targets asked for",
            device_code(*count), are(*count)
        ];
    /// No artifact has code for a target that was asked for.
    TargetAbsent = "R044" "target-absent" Warning never accepted { arch: BaseArch, meant: Option<BaseArch> }
        [
            "no artifact has device code of this arch, which is among the targets asked for{}",
            match meant {
                Some(meant) => format!(" and is not known: did you mean {meant}?"),
                None => String::new(),
            }
        ];
    /// The configuration leaves an arch out of a component or package.
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
    /// Code objects have an arch that is in no group, and the configuration drops them.
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
    /// A static archive, or a member of one, is thin: it names object files of the build tree.
    ThinArchive = "R047" "thin-archive" Warning { file: InputFile, is_member: bool }
        [
            "{} a thin static archive, which names object files of the build tree and holds none: \
             nothing can be linked with it elsewhere; make it without `T` (`ar rcs`), or leave it \
             out of the artifact",
            if *is_member { "has a member that is" } else { "is" }
        ];
    /// A file of a kernel database that its library would not read from a package stays with the host files.
    DatabaseLeftover = "R048" "database-leftover" Warning by "databases" { file: InputFile, rule: String }
        [
            "is a file that no library reads from a package ({rule}): a run or a build left it \
             there, and the host package has it for all archs; leave it out of the artifact, or \
             claim it as `data` of its arch by a rule under `databases`"
        ];
    /// No relation to a kpack-capable HIP runtime is configured.
    RuntimeUnset = "R050" "runtime-relation-unset" Warning by "runtime_relation" {
            formats: Vec<Format>,
        }
        about ["{}", formats.iter().map(|it| format!("runtime_relation.{it}")).collect::<Vec<_>>().join(" and ")]
        [
            "{} not configured, so host packages with device code depend on no HIP runtime that reads \
             kernel archives (.kpack)",
            are(formats.len())
        ];
    /// A group without any content gives no package.
    GroupEmpty = "R051" "group-empty" Note { group: String }
        ["the input has no device code for this group, so no kernel package is made for it"];
    /// Several packages of the set provide the same library.
    LibraryAmbiguous = "R052" "library-ambiguous" Warning by "relations"
        { library: Soname, providers: Vec<PackageName> }
        ["several packages provide it ({}); dependencies name the first", few(providers, 5)];
    /// The dynamic section of a host file cannot be read.
    LibrariesUnreadable = "R053" "libraries-unreadable" Warning
        { file: ComponentFile, part: DynamicPart, reason: String }
        ["its {part} cannot be read: {reason}"];
    /// A component has device code but no host files.
    HostPackageEmpty = "R054" "host-package-empty" Note { package: PackageName }
        ["has no host files; the package only ties its kernel packages to one version"];
    /// Files and code objects are in no package, because the set is limited to others.
    ComponentLeftOut = "R055" "component-left-out" Note
        { component: ComponentName, files: usize, code_objects: Vec<Sha256Digest> }
        [
            "--only leaves out {} and {} of it",
            counted(*files, "file"), counted(code_objects.len(), "distinct code object")
        ];
    /// The data archive of a package that is published cannot be unpacked.
    DataUnread = "R056" "package-data-unread" Warning never accepted { file: String, reason: String }
        [
            "is published by its control archive alone, because its data cannot be unpacked here \
             ({reason}): nothing that it installs is checked; try `dpkg --unpack` with an empty \
             `--root` on it, and build it again where that fails"
        ];
    /// Texts of a package have bytes or characters that an index cannot have.
    TextsReplaced = "R057" "package-texts-replaced" Warning never accepted { file: String, fields: Vec<String> }
        [
            "has bytes that are not UTF-8, or control characters that XML lacks, in its {}: indexes \
             have U+FFFD, or nothing, in their place; build the package with plain texts",
            list(fields)
        ];
    /// A file in a given folder is, or may be, a package, but is not published.
    PackageFileLeftOut = "R058" "package-file-left-out" Warning never accepted
        { file: String, reason: PackageLeftOut }
        ["is left out: {reason}"];
    /// dpkg and rpm order two versions differently, and the repository has packages of both versions in both
    /// formats.
    VersionOrderDiffers = "R059" "version-order-differs" Warning never accepted
        { deb_newer: String, rpm_newer: String, packages: Vec<String> }
        about ["{deb_newer} and {rpm_newer}"]
        [
            "dpkg takes {deb_newer} for the newer version, and rpm does not ({}): `--keep`, and updates \
             of clients, choose different builds in the two formats; give all builds of a version one \
             form, a date alone or a word with a number",
            few(packages, 3)
        ];
    /// A code file of a kernel database is a bundle or archive of several archs, and is packed whole.
    DatabaseBundle = "R060" "database-bundle-whole" Note { file: InputFile, archs: Vec<BaseArch> }
        [
            "is {} of {}, which its library opens whole under this name: it is not cut, and serves \
             all of them",
            if file.path.name().ends_with(".kpack") { "a kernel archive" } else { "an offload bundle" },
            arch_list(archs)
        ];
    /// A directory of a kernel database is named like that of an arch, but the arch is not known.
    DatabaseArchUnknown = "R061" "database-arch-unknown" Warning by "additional_architectures" { directory: InputFile }
        [
            "is named like the directory of an arch, but no arch or family of this name is known; \
             its files stay with the host files"
        ];
    /// Two packages of a repository own the same path, and no relation keeps them apart.
    PathOwnedTwice = "R062" "path-owned-twice" Warning by "relations" never accepted
        { path: String, format: Format, first: String, second: String }
        [
            "is owned by {first} and {second}, which nothing keeps apart: where both are to be installed, {}; let \
             one of them conflict with the other, give each a prefix, or publish them in two repositories",
            match format {
                Format::Deb => "dpkg stops midway",
                Format::Rpm => "rpm refuses them if the files differ, and the last one wins if not",
            }
        ];
    /// A path moves from one package of a repository to another, which does not replace it.
    PathMovedSilently = "R063" "path-moved-silently" Warning by "moved" never accepted
        { path: String, former: String, owner: String }
        [
            "was in {former} and is in {owner}, which does not replace it: dpkg stops at that update; \
             build the set with `--since` the earlier one, which gives {owner} the Breaks and Replaces"
        ];
    /// A script or program does not start, because its interpreter does not exist, or because Linux cannot
    /// follow its first line.
    InterpreterUnresolved = "R066" "interpreter-unresolved" Warning by "interpreters" {
            package: PackageName,
            interpreter: String,
            fault: InterpreterFault,
            files: Vec<TreePath>,
        }
        ["{} ({}); {}", fault.told(interpreter), few(files, 3), fault.remedy()];
    /// A package has the same name as a package of the distribution.
    NameOfDistribution = "R067" "name-of-distribution" Warning {
            package: PackageName,
            version: String,
            distribution: String,
            other_version: String,
            winner: NameWinner,
        }
        [
            "is also the name of a package of {distribution}, with version {other_version}: \
             {}", winner.told(version)
        ];
    /// The configuration settles an interpreter: scripts get another one in their first lines, or keep theirs
    /// without a dependency.
    InterpreterSettled = "R068" "interpreter-settled" Note
        { package: PackageName, before: String, after: Option<String>, files: Vec<TreePath> }
        [
            "the interpreter {} {} ({})",
            abridged(before),
            match after {
                Some(after) if after == before => "is taken for one that is there".to_owned(),
                Some(after) => format!("becomes {after}"),
                None => "stays, and nothing is needed for it".to_owned(),
            },
            few(files, 3)
        ];
    /// A program needs a library that neither the set nor the table of the distribution has.
    LibraryUnresolved = "R070" "library-unresolved" Warning by "libraries"
        { package: PackageName, library: Soname, distribution: String, files: Vec<TreePath> }
        [
            "needs {library}, which neither the set nor the table of {distribution} has ({}); {}",
            few(files, 3),
            // No artifact has it, but binaries for every HIP runtime need it.
            match library.as_str() {
                "librocm_kpack_shim.so.0" => "`hip_runtime = \"any\"` adds it to the set",
                _ => FOR_LIBRARIES,
            }
        ];
    /// A program needs a newer version of a library than the table of the distribution has.
    VersionUnresolved = "R071" "library-version-unresolved" Warning by "libraries" {
            package: PackageName,
            library: Soname,
            version: String,
            distribution: String,
            files: Vec<TreePath>,
        }
        [
            "needs {version} of {library}, which the table of {distribution} does not have ({}); \
             {FOR_LIBRARIES}",
            few(files, 3)
        ];
    /// The library search path of a file was rewritten.
    RunpathRewritten = "R072" "runpath-rewritten" Note by "runpath"
        { file: ComponentFile, before: String, after: String }
        ["its search path {before} becomes `{after}`"];
    /// The library search path of a file leads out of the prefix.
    RunpathOutside = "R073" "runpath-outside" Warning by "runpath"
        { file: ComponentFile, search: OutsideSearch }
        ["{search}"];
    /// A program or library needs a version that a library of the set does not have.
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
            "needs {version} of {library}, and {path} of {provider} {} ({}): {}; build these files \
             against the library of this set",
            if *has_others { "has only others" } else { "has no versions" },
            few(files, 3),
            if *has_others {
                "the loader refuses that"
            } else {
                "the loader warns or aborts, and an .rpm needs what nothing provides"
            }
        ];
    /// A package list has an unknown key.
    ListKeyUnknown = "R075" "list-key-unknown" Warning { entry: String, key: String }
        ["the key `{key}` is not known and is ignored"];
    /// The input has no artifact of a listed package, or the set has nothing that a listed metapackage
    /// depends on.
    ListedWithoutContent = "R076" "listed-without-content" Note
        { entry: String, artifacts: Option<Vec<String>> }
        ["{}, so there is no package", match artifacts.as_deref() {
            None => "depends on nothing that is in the set".to_owned(),
            Some([]) => "takes no artifact".to_owned(),
            Some(artifacts) => format!("takes nothing of the input (of {})", few(artifacts, 5)),
        }];
    /// A listed package depends on one that the set does not have.
    DependencyLeftOut = "R077" "dependency-left-out" Warning by "relations" { entry: String, dependency: String }
        [
            "is to depend on {dependency}, which is not in this set; the dependency is left out"
        ];
    /// Some files and code objects are in no listed package.
    NotListed = "R078" "not-listed" Warning
        { component: ComponentName, paths: Vec<TreePath>, code_objects: Vec<Sha256Digest> }
        [
            "no listed package takes {} of it ({}), with {}",
            counted(paths.len(), "path"),
            few(paths, 5),
            counted(code_objects.len(), "distinct code object")
        ];
    /// A listed package makes a claim that is ignored.
    ListClaimIgnored = "R079" "list-claim-ignored" Warning { entry: String, claim: IgnoredClaim }
        ["{claim}"];
    /// A file of a `dbg` component has no build-id by which a debugger would find it. A damaged file has a
    /// reason.
    DebugFileWithoutId = "R080" "debug-file-without-build-id" Warning
        { file: ComponentFile, reason: Option<String> }
        ["{}; it stays there", match reason {
            Some(reason) => format!("is damaged, so its build-id is not known: {reason}"),
            None => "has no build-id by which a debugger would find it".to_owned(),
        }];
    /// The `copyright` file of the packages does not quote a licence text.
    LicenceNotQuoted = "R081" "licence-not-quoted" Note by "packages" { file: ComponentFile, reason: NotQuoted }
        ["is not quoted in the copyright file of its packages: {reason}"];
    /// The name of a program cannot be that of an alternative.
    ProgramWithoutAlternative = "R082" "program-without-alternative" Warning by "alternatives"
        { program: String, package: PackageName }
        about ["{} of {package}", program.escape_debug()]
        ["has a name that update-alternatives or a shell could misread, and is no alternative"];
    /// A library of a package is in a folder that the loader does not search.
    LibraryMisplaced = "R083" "library-misplaced" Warning by "libdir"
        { package: PackageName, libdir: TreePath, place: LibraryFolder, library: TreePath }
        [
            "programs do not find {library} by name: the loader looks in {libdir}, and not in {place}; {}",
            place.remedy()
        ];
    /// A package is not newer than in the earlier set.
    VersionNotNewer = "R084" "version-not-newer" Warning of earlier { version: String, not_newer: NotNewer }
        about ["{}", not_newer.subject(version)] ["{}", not_newer.told(version)];
    /// Paths were in another package of the earlier set.
    PathMoved = "R085" "path-moved" Note of earlier
        { package: PackageName, format: Format, from: PackageName, paths: Vec<String> }
        [
            "takes {} from {from} of the earlier set, as .{format} ({})",
            counted(paths.len(), "path"), few(paths, 1)
        ];
    /// A directory of the earlier set became something else, or the reverse.
    PathKindChanged = "R086" "path-kind-changed" Note of earlier
        { path: String, was: MemberKind, is: MemberKind }
        [
            "was a {was} in the earlier set and is a {is} now: an update from a set that `--since` names \
             changes it, an update from another one may fail"
        ];
    /// A package of the earlier set is no longer in this one, and nothing replaces it.
    PackageDropped = "R087" "package-dropped" Warning by "replaces" of earlier { package: PackageName, format: Format }
        [
            "is a .{format} of the earlier set and not of this one: where it is installed, it \
             stays, and may hold back the update by what it needs; name it under `replaces`"
        ];
    /// Packages of the earlier set are of another series, which this set neither updates nor replaces.
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
    /// A repository is published without a signature.
    RepositoryUnsigned = "R090" "repository-unsigned" Warning never accepted { channel: String }
        ["no key was given, so clients cannot know who published it"];
    /// A version of a package is not among those that the repository keeps.
    VersionNotKept = "R091" "version-not-kept" Note never accepted { file: String, keep: usize }
        ["is not one of the highest versions, which are kept (--keep {keep})"];
    /// The URL of a repository is not known, so there are no files for its clients.
    ClientFilesMissing = "R092" "client-files-missing" Note never accepted { channel: String }
        ["has no .sources or .repo file for clients, because --url was not given"];
    /// A program or library is in a part without `programs`, so its libraries are no dependencies.
    LibrariesNotAsked = "R093" "libraries-not-asked" Note by "parts"
        { file: ComponentFile, kind: ComponentKind }
        [
            "the libraries that it needs are no dependencies: the part that `{kind}` goes into \
             does not say `programs = true`"
        ];
    /// The configuration names no dependency for a needed library.
    LibraryWithoutDependency = "R094" "library-without-dependency" Note by "libraries"
        { package: PackageName, library: Soname, files: Vec<TreePath> }
        [
            "needs {library}, for which the configuration names no dependency ({})",
            few(files, 3)
        ];
    /// A program or library needs a library of the set that is in a folder the loader does not search.
    LibraryOutOfReach = "R095" "library-out-of-reach" Warning {
            package: PackageName,
            library: Soname,
            provider: PackageName,
            path: TreePath,
            search_path: String,
            files: Vec<TreePath>,
        }
        [
            "needs {library}, which {provider} has as {path}, where the loader does not look for \
             it ({}); give the file that needs it the search path `{search_path}`",
            few(files, 3)
        ];
    /// An entry of the cache is damaged and is rebuilt. The packages are the same, so no receipt has
    /// this finding.
    CacheEntryDamaged = "R096" "cache-entry-damaged" Warning never accepted { entry: String, damage: String }
        ["{damage}; what it held is made again"];
    /// The cache cannot be read or written, so later runs find less in it. No receipt has this finding.
    CacheUnusable = "R097" "cache-unusable" Warning never accepted { cache: String, reason: String }
        ["nothing more is kept for later runs: {reason}"];
    /// An entry of the configuration accepts findings that the set does not have.
    AcceptUnmatched = "R098" "accept-unmatched" Warning never accepted
        { entry: String, accepts: String, pattern: String }
        [
            "accepts {accepts} about `{pattern}`, and this set has no such finding: take the entry \
             out, or correct its subject"
        ];
    /// An entry of the configuration accepts findings that this run does not have, but the whole set may.
    AcceptUnmatchedHere = "R099" "accept-unmatched-here" Note never accepted
        { entry: String, accepts: String, pattern: String }
        [
            "accepts {accepts} about `{pattern}`, and this run has no such finding: it makes a part \
             of the set (--only, --format, --distro), or names no earlier set (--since)"
        ];
    /// A key that clients are to trust has a self-signature that they refuse.
    KeyWeak = "R101" "key-weak" Warning never accepted { key: String, fault: String, remedy: String }
        [
            "{fault}, so apt of Debian 13 and others refuse all that the key signs; where it is to go \
             on signing, {remedy}"
        ];
    /// Packages of the rpm repository have no signature, although its indexes have one.
    PackagesUnsigned = "R102" "packages-unsigned" Warning never accepted
        { channel: String, unsigned: Vec<String>, of: usize }
        [
            "{} of {} {} unsigned, so clients are told gpgcheck=0, and rpm 6 refuses unsigned packages by \
             default ({}): {SIGN_ANEW} (--keep 1 or --remove takes the old one out)",
            unsigned.len(),
            counted(*of, "package"),
            are(unsigned.len()),
            few(unsigned, 3),
        ];
    /// Packages are signed by an algorithm that old versions of rpm refuse.
    PackagesByEd25519 = "R103" "packages-by-ed25519" Note never accepted { channel: String }
        [
            "packages are signed by Ed25519, which rpm before 4.16 refuses (Enterprise Linux 7 and 8, \
             Amazon Linux 2): sign them by RSA if it is to install them"
        ];
    /// A folder of published or built files is not readable for everybody, and the run did not open it: it
    /// may be closed on purpose, or belong to another user. No receipt has this finding.
    FolderClosed = "R110" "folder-closed" Note never accepted { folder: String, mode: String, others: usize }
        [
            "not everybody may list it (mode {mode}){}, so other users, such as that of a web server, do \
             not read what is in it: let them (chmod a+rx), unless it is closed on purpose",
            match others {
                0 => String::new(),
                count => format!(", nor {} below", counted(*count, "folder")),
            }
        ];
    /// Packages of earlier sets did not change and are kept.
    PackagesKept = "R112" "packages-kept" Note of earlier
        { version: String, made: usize, packages: Vec<String> }
        [
            "makes {} and keeps {} of earlier sets ({})",
            counted(*made, "package file"),
            packages.len(),
            few(packages, 1)
        ];
    /// Packages of earlier sets do not fit those that this build makes.
    EarlierHeldBack = "R113" "earlier-held-back" Warning of earlier
        { format: Format, misfits: Vec<Misfit>, held_back: Vec<String> }
        ["{}", held_back_for(misfits, held_back)];
    /// Receipts of some parts are named as earlier sets, but those of other parts of the same set are not.
    EarlierPartsAbsent = "R114" "earlier-parts-absent" Warning of earlier
        { release: String, present: usize, of: u32 }
        [
            "is an earlier set in {of} parts, of which --since names {present}: packages of the others \
             are taken for new ones; name the receipts of all parts, or the joined one \
             (`rockpack verify --join`)"
        ];
    /// A file with a secret key or a passphrase is readable for others. No receipt has this finding.
    SecretReadable = "R115" "secret-readable" Warning never accepted { file: String, mode: String }
        [
            "is secret, and others may read it (mode {mode}): take that right from them (chmod go-rwx), \
             and make a new key if somebody may have read this one"
        ];
    /// Names of an artifact have characters that are invisible, or change the direction of text.
    NamesUnseen = "R116" "names-unseen" Warning { artifact: InputArtifact, files: Vec<String> }
        [
            "{} {} characters that are not seen or turn the text around them in the name: what is read \
             is not what is installed ({})",
            counted(files.len(), "file"),
            if files.len() == 1 { "has" } else { "have" },
            few(&files.iter().map(|name| printable(name)).collect::<Vec<_>>(), 3)
        ];
    /// Packages are signed by a key that clients do not get, although clients are to check signatures.
    PackagesByOtherKey = "R117" "packages-by-other-key" Warning never accepted
        { channel: String, key: String, packages: Vec<String> }
        [
            "{} {} signed by the key {key}, which clients do not get, so dnf and zypper refuse {} ({}): \
             have clients get the key (--also-key), or publish {} anew with a new release number and \
             --sign-packages",
            counted(packages.len(), "package"),
            are(packages.len()),
            if packages.len() == 1 { "it" } else { "them" },
            few(packages, 3),
            if packages.len() == 1 { "it" } else { "them" },
        ];
    /// Clients cannot install some packages of a repository together with the newest versions of others,
    /// because of packages that a publication adds or removes.
    UpdateHeldBack = "R118" "update-held-back" Warning never accepted
        { channel: String, format: Format, misfits: Vec<Misfit>, held_back: Vec<String> }
        ["{}", held_back_for(misfits, held_back)];
    /// An index of a kernel database contradicts the files beside it.
    DatabaseInconsistent = "R119" "database-inconsistent" Warning
        { file: ComponentFile, fault: Inconsistency }
        ["{fault}"];
    /// RECORD of a wheel lacks members or digests, or lists members that do not exist. The wheels made of it
    /// have a complete one.
    WheelRecordLacks = "R120" "wheel-record-incomplete" Warning
        { wheel: String, unlisted: Vec<String>, absent: Vec<String>, unhashed: usize }
        ["{}", record_lacks(unlisted, absent, *unhashed)];
    /// The tags or the build number in WHEEL differ from those of the wheel's file name, which decides.
    WheelTagsDiffer = "R121" "wheel-tags-differ" Warning
        { wheel: String, tags: Vec<String>, build: Option<String> }
        [
            "its WHEEL has {}{}; the file name decides",
            if tags.is_empty() { "no tags".to_owned() } else { few(tags, 5) },
            build.as_ref().map_or(String::new(), |build| format!(" and the build number {build}"))
        ];
    /// Members of a wheel are dropped: folders, which installers make by themselves, and signatures of a
    /// RECORD that changes.
    WheelMembersDropped = "R122" "wheel-members-dropped" Note
        { wheel: String, members: Vec<String> }
        ["{} {} not carried over: {}", counted(members.len(), "member"),
            are(members.len()), few(members, 5)];
    /// Nothing of a wheel goes to device wheels, or it was split already.
    WheelUnchanged = "R123" "wheel-unchanged" Note { wheel: String }
        ["is copied as it is: nothing of it goes to device wheels"];
    /// The HIP runtime that loads the device code of a wheel is not in the wheel.
    WheelRuntimeOutside = "R124" "wheel-runtime-outside" Warning
        { wheel: String, libraries: Vec<Soname> }
        [
            "the HIP runtime{} is not in it, and has to read kernel archives where it is installed",
            if libraries.is_empty() { String::new() } else { format!(" ({})", list(libraries)) }
        ];
    /// The HIP runtime in a wheel cannot read kernel archives. The wheel is refused, unless the command line
    /// asks to split it.
    WheelRuntimeCannotRead = "R125" "wheel-runtime-cannot-read" Warning
        { wheel: String, files: Vec<String> }
        ["{} {} kernel archives, so that no program finds the device code of this wheel",
            list(files), if files.len() == 1 { "does not read" } else { "do not read" }];
    /// PyPI would refuse a wheel.
    WheelNotForPypi = "R126" "wheel-not-for-pypi" Note
        { wheel: String, reasons: Vec<PypiRefusal> }
        ["PyPI would refuse it: {}", list(reasons)];
    /// An extra of a wheel on an index does not bring all that its GPU needs.
    WheelExtraOpen = "R130" "wheel-extra-open" Warning never accepted
        { wheel: String, extra: String, requires: String, gap: ExtraGap }
        ["{}", gap.describe(extra, requires)];
    /// A host wheel or device wheel has several builds, and installers may mix them.
    WheelBuildsMixed = "R131" "wheel-builds-mixed" Warning never accepted
        { wheel: String, builds: Vec<String> }
        [
            "has several builds for the same tags ({}), and host and device wheels are tied by their version \
             alone, so that installers may take them from different ones: give each build a version of its own",
            list(builds)
        ];
    /// The configuration leaves out code of a generic target, or SPIR-V, that serves archs of the set alone.
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
    /// Fallback files of a kernel database are for a generic target alone, and its library looks them up by the
    /// name of the GPU.
    FallbackFilesGeneric = "R133" "fallback-files-generic" Note by "databases"
        { folder: ComponentFile, generic: BaseArch, archs: Vec<BaseArch> }
        [
            "has fallback files for {generic} and none for {}: the library looks them up by the name of the \
             GPU, so there it solves fewer problems; build the library for these archs",
            few(archs, 5)
        ];
    /// Files of a package need a library, or symbols of it, that an earlier set had and this one does not.
    ImportLost = "R134" "import-lost" Warning of earlier
        { package: PackageName, library: Soname, provider: PackageName, symbols: Vec<String> }
        [
            "needs {}{library}, which {provider} had in an earlier set and no longer has: its files do not \
             start, or end at the first use; rebuild it against this set, or name it under --only, too, if \
             that leaves it out",
            if symbols.is_empty() { String::new() } else { format!("{} of ", few(symbols, 3)) }
        ];
    /// Packages of the rpm repository state no digest of their header or payload that rpm 6 takes.
    PackagesWithoutDigest = "R135" "rpm-without-digest" Warning never accepted
        { channel: String, packages: Vec<String>, missing: MissingDigest }
        ["{}", without_digest(packages, *missing)];
    /// Packages of the rpm repository have a signature that rpm before 6 does not see.
    PackagesSignedForRpm6 = "R136" "packages-signed-for-rpm-6" Warning never accepted
        { channel: String, packages: Vec<String> }
        [
            "{} whose only signature is of format 6 (tag 278): rpm 4 and dnf 4 do not see it, and refuse \
             unsigned packages where gpgcheck=1 ({}): {SIGN_ANEW}",
            counted(packages.len(), "package"),
            few(packages, 3)
        ];
    /// No signature by a trusted key proves the receipt of an earlier set of this version.
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
    /// The vendor of `.rpm` packages changes between two versions, so that zypper does not update them by
    /// itself.
    VendorChanged = "R138" "vendor-changed" Warning by "vendor" of earlier
        { from: String, to: String, packages: Vec<String> }
        about ["vendor"]
        [
            "changes from {} to {} in {} ({}): `zypper update` keeps the installed versions and reports no \
             error; keep one `vendor`, or tell users to run `zypper update --allow-vendor-change`",
            vendor(from), vendor(to), counted(packages.len(), "package"), few(packages, 3)
        ];
    /// A package requires a path for which dnf and zypper find no package, although one has it.
    RequiredPathUnlisted = "R139" "required-path-unlisted" Warning never accepted
        { path: String, owner: String, packages: Vec<String> }
        [
            "is required by {} and is in {owner}, but no package provides it and primary does not list it, so \
             dnf and zypper do not find it: have {owner} provide the path (`Provides: {path}`)",
            few(packages, 3)
        ];
    /// Packages have the version or the packager that rockpack writes if none is given.
    PlaceholderPublished = "R140" "placeholder-published" Warning never accepted
        { placeholder: String, packages: Vec<String>, remedy: String }
        [
            "is a placeholder in {} ({}), which a build writes if it is given no value: {remedy}",
            counted(packages.len(), "package"), few(packages, 3)
        ];
    /// A data file, such as an archive or a pickle, has device code among its bytes, where it stays.
    DeviceCodeInData = "R141" "device-code-in-data" Warning { file: InputFile, form: EmbeddedForm }
        ["holds {form}, which stays in the host package, whatever the GPU: ship it as a file of its own"];
    /// A binary with device code needs libraries of ROCm 6 or older, whose HIP runtimes are not known to read
    /// kernel archives. In a wheel it keeps its device code.
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
    /// The HIP runtime of a set cannot read kernel archives. The set is refused, unless the configuration
    /// accepts that.
    SetRuntimeCannotRead = "R143" "set-runtime-cannot-read" Warning { file: ComponentFile }
        ["does not read kernel archives, so that programs that load it find no device code of this set"];
    /// The names of device wheels have no owner's prefix. No one has registered such names on PyPI.
    WheelNamesUnregistered = "R145" "wheel-names-unregistered" Note by "wheels.device_name"
        { distribution: String }
        [
            "anyone can register this name, and those of the other device wheels, on PyPI: register them before \
             you publish the wheels, or have users install from one index alone (`--index-url`, not \
             `--extra-index-url`)"
        ];
    /// The receipts in a folder do not name packages in it.
    PackagesNotInReceipt = "R146" "packages-not-in-receipt" Warning
        { folder: String, packages: Vec<String> }
        [
            "no receipt there names {} ({}): publish packages of other builds or tools from folders of \
             their own",
            counted(packages.len(), "package"), few(packages, 3)
        ];
    /// A file of AOTriton for an arch family does not tell which archs it has code for.
    KernelImagesUnread = "R147" "kernel-images-unread" Note by "databases" { file: InputFile }
        [
            "is like a file of AOTriton, but does not tell which architectures of its folder it has code for, so \
             that it goes to all of them: fetch it again if it is damaged"
        ];
    /// The receipt of published packages has no signature by a key that the run trusts, or cannot be read.
    ReceiptUntrusted = "R148" "receipt-untrusted" Warning { receipt: String, doubt: ReceiptDoubt }
        ["{doubt}; nothing proves whose build the packages are"];
    /// RECORD of a wheel has other digests or sizes of METADATA, WHEEL or RECORD itself. A wheel that is split gets
    /// a RECORD of its own.
    WheelRecordStale = "R149" "wheel-record-stale" Warning
        { wheel: String, members: BTreeMap<String, String> }
        [
            "{}; pip, uv and PyPI take such a wheel, but `installer` and `wheel unpack` compare RECORD: unless the \
             wheel is split, `unzip` and `wheel pack` make it anew",
            members.iter().map(|(name, how)| format!("{name} {how}")).collect::<Vec<_>>().join("; ")
        ];
    /// A wheel is not split to advantage: each GPU needs about as many bytes as before.
    WheelSavesNothing = "R150" "wheel-saves-nothing" Note { wheel: String, size: u64, least_size: u64 }
        ["has {size} bytes, and each GPU needs {least_size} or more of the wheels that were made of it: splitting \
          it saves less than 1 % of a download; publish it as it is"];
    /// The wheels that were made of those of a release have more bytes together.
    WheelSetLarger = "R151" "wheel-set-larger" Note { release: String, size: u64, set_size: u64 }
        ["had {size} bytes, and the wheels that were made of it have {set_size} together: an index needs more room \
          for them, although each GPU needs only some"];
    /// Installers pass over an added wheel for one of the same public version.
    WheelSortsBelow = "R152" "wheel-sorts-below" Warning never accepted { wheel: String, chosen: String }
        [
            "pip and uv choose {chosen} of this index unless a requirement names the whole version, because it sorts \
             higher (PEP 440 compares words such as `rocm10` and commits behind the `+` as text): raise the version \
             before the `+` (`.post1`), or remove or yank {chosen}"
        ];
    /// The device wheels of a release for several Pythons are not equal, so that each Python has its own.
    WheelPerPython = "R153" "wheel-per-python" Note
        { release: String, wheels: Vec<String>, file: String, reason: PythonDifference }
        ["has a device wheel for each Python where they differ, as in {file}{reason}"];
    /// A binary that was transformed before cannot register with every HIP runtime.
    ArchivesRuntimeNeeded = "R154" "archives-runtime-needed" Warning { file: InputFile }
        [
            "was transformed before for HIP runtimes that read kernel archives, and no other runtime finds its \
             device code: start from the binary with its device code"
        ];
    /// Files of an install tree belong to no component that is known by name.
    ComponentUnknown = "R155" "component-unknown" Note
        { artifact: InputArtifact, files: Vec<String> }
        [
            "{} of the install tree {} to no component that is known by name: {}",
            counted(files.len(), "path"),
            if files.len() == 1 { "belongs" } else { "belong" },
            few(files, 5)
        ];
    /// The install prefix in an input is not the input itself.
    PrefixFound = "R156" "prefix-found" Note { input: String, prefix: String }
        ["its install prefix is {prefix}: what is in it goes to the prefix of the packages"];
    /// ELF files get `DT_RPATH` in place of `DT_RUNPATH`, and clang's configurations the linker option for it.
    RpathForRunpath = "R157" "rpath-for-runpath" Note by "runpath" { files: Vec<TreePath> }
        about ["runpath"]
        [
            "{} {} DT_RPATH in place of DT_RUNPATH ({})",
            counted(files.len(), "file"),
            if files.len() == 1 { "gets" } else { "get" },
            few(files, 3)
        ];
    /// An entry of `libraries` replaces or removes the dependencies on libraries.
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
    /// Kernel archives are uncompressed.
    ArchivesStored = "R159" "archives-stored" Note by "archive_level"
        { formats: Vec<Format>, beyond_window: Vec<String> }
        about ["archive_level"]
        [
            "kernel archives in {} are uncompressed: they are several times larger on disk, and AMD's loader (at \
             least up to ROCm 7.14; not rockpack's) can read wrong bytes from them if a process that loaded code \
             forks, and parent and child then load code at the same time{}",
            few(formats, 2),
            if beyond_window.is_empty() {
                String::new()
            } else {
                let archives = few(beyond_window, 3);
                format!("; the window of payloads does not span {archives}, so packages may become larger")
            }
        ];
    /// Code files of kernel databases are compressed.
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
    /// Packed artifacts of one name in two shards have different host files.
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
    /// The page of a repository for people is of somebody else.
    IndexPageKept = "R162" "index-page-kept" Note never accepted { path: String }
        ["was not written by rockpack, so it stays, and the repository gets no page with commands"];
}

fn vendor(name: &str) -> &str {
    if name.is_empty() { "none" } else { name }
}

/// The dependencies that an entry of `libraries` names.
fn dependencies(relations: &[String]) -> String {
    let quoted: Vec<String> = relations.iter().map(|text| format!("`{text}`")).collect();
    if quoted.is_empty() { "no dependency".to_owned() } else { quoted.join(" and ") }
}

fn device_code(count: usize) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{} or database file{ending}", counted(count, "code object"))
}

/// A text about left-out device code: the number of pieces, the number of `different` ones, the reason, and
/// the places.
fn left_out(count: usize, different: usize, why: &str, places: &[LeftOutFile]) -> String {
    let (code, are, places) = (device_code(count), are(count), few(places, 5));
    let distinct =
        if different < count { format!(" ({different} distinct)") } else { String::new() };
    format!("{code}{distinct} {are} in no package, because {why} ({places})")
}

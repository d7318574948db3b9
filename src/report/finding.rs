//! Findings: stable codes, severities, and their collection.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::error::{Error, Kind, printable};

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; never fails a run.
    Note,
    /// Probably a mistake in the input; fails a run under `--strict`.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Note => "note",
            Self::Warning => "warning",
        })
    }
}

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $id:literal $name:literal $severity:ident;)*) => {
        /// The stable code of a finding. Codes are never reused or renumbered.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code { $($(#[$doc])* $variant,)* }

        impl Code {
            /// All codes, in order.
            pub const ALL: &[Code] = &[$(Code::$variant,)*];

            /// The number, e.g. `R012`.
            pub fn id(self) -> &'static str {
                match self { $(Code::$variant => $id,)* }
            }

            /// The name, e.g. `arch-not-grouped`.
            pub fn name(self) -> &'static str {
                match self { $(Code::$variant => $name,)* }
            }

            /// How much it matters.
            pub fn severity(self) -> Severity {
                match self { $(Code::$variant => Severity::$severity,)* }
            }
        }
    };
}

codes! {
    /// A manifest lists a stage prefix that the artifact does not have.
    PrefixAbsent = "R001" "manifest-prefix-absent" Note;
    /// The same path came from two prefixes with identical content and is packed once.
    FileMerged = "R002" "identical-file-merged" Note;
    /// No version was given.
    VersionUnset = "R003" "version-unset" Warning;
    /// A folder below a shard is no artifact.
    NotAnArtifact = "R004" "not-an-artifact" Note;
    /// A file of an artifact lies outside all listed prefixes.
    OutsidePrefixes = "R005" "outside-prefixes" Warning;
    /// A link that leads to no file of the whole set.
    LinkDangling = "R006" "link-dangling" Warning;
    /// None of the stage prefixes that an artifact lists exists.
    ArtifactEmpty = "R007" "artifact-empty" Warning;
    /// An entry of a shard is named like an artifact, and packed in no way that is read.
    PackingUnknown = "R008" "artifact-packing-unknown" Warning;
    /// The target of a bundle entry disagrees with the ELF header of its code object.
    TargetMismatch = "R010" "target-mismatch" Warning;
    /// Device code that is not for one GPU arch, such as SPIR-V.
    ArchNeutralCode = "R011" "arch-neutral-code" Note;
    /// Code objects of an arch that is in no group.
    ArchNotGrouped = "R012" "arch-not-grouped" Warning;
    /// A configured arch for which there is no code.
    ArchMissing = "R013" "arch-missing" Warning;
    /// A host file that the primary shard does not have.
    HostFromOtherShard = "R014" "host-file-from-other-shard" Warning;
    /// Host files of two shards differ.
    HostFilesDiffer = "R015" "host-files-differ" Warning;
    /// The same code object came from two shards and is packed once.
    DuplicateCode = "R016" "duplicate-device-code" Note;
    /// Wrappers of two shards share some kernels but not all.
    WrapperOverlap = "R017" "wrapper-overlap" Warning;
    /// A bundle that no wrapper points to.
    BundleUnreferenced = "R018" "bundle-unreferenced" Warning;
    /// The arch or target of a code object cannot be read from its content.
    UnknownProcessor = "R019" "unknown-processor" Warning;
    /// A kernel database file names one arch and holds another's code.
    DatabaseArchMismatch = "R020" "database-arch-mismatch" Warning;
    /// A kernel database file that serves all archs stays in the host package.
    DatabaseShared = "R021" "database-shared" Note;
    /// A kernel database file without the partner it needs.
    DatabaseUnpaired = "R022" "database-unpaired" Warning;
    /// Different code for one key came from two shards, and the first shard's was taken.
    DuplicateDropped = "R023" "duplicate-device-code-dropped" Warning;
    /// A shared file of a kernel database was put together from those of several shards.
    DatabaseMerged = "R024" "database-merged" Note;
    /// Files of a kernel database were moved to a directory of their arch.
    DatabaseMoved = "R025" "database-moved" Note;
    /// A cache of another shard is left out.
    DatabaseCacheDropped = "R026" "database-cache-dropped" Warning;
    /// A kernel index refers to a file that is not there, or is for another arch.
    DatabaseUnresolved = "R027" "database-unresolved" Warning;
    /// A host library or static archive that is for one arch is in a kernel package.
    DatabaseHostCode = "R028" "database-host-code" Note;
    /// An index of a kernel database cannot be read.
    DatabaseUnreadable = "R029" "database-unreadable" Warning;
    /// A static archive, object or bitcode file keeps its device code.
    FatDevelopmentFile = "R030" "fat-development-file" Note;
    /// A binary was transformed already, and nothing of its device code is in the input.
    AlreadyTransformed = "R031" "already-transformed" Warning;
    /// A host binary is stripped of its section table and cannot be searched for device code.
    NoSectionTable = "R032" "no-section-table" Warning;
    /// A device entry of an offload bundle holds no bytes.
    EmptyCodeObject = "R033" "empty-code-object" Warning;
    /// A fat binary that cannot be transformed stays in its host package with its device code.
    KeptFat = "R037" "kept-fat" Note;
    /// Another shard's build of a binary that keeps its device code is not packed, nor its code.
    KeptFatDropped = "R038" "kept-fat-dropped" Warning;
    /// Code objects of a kernel archive that belong to no binary.
    KernelsUnclaimed = "R040" "kernels-unclaimed" Warning;
    /// A transformed binary has its program headers elsewhere than behind the ELF header.
    ProgramHeadersMoved = "R041" "program-headers-moved" Warning;
    /// A kernel manifest lists an archive that is not there.
    ListedArchiveAbsent = "R042" "listed-archive-absent" Warning;
    /// Code objects of archs that were not asked for.
    TargetNotSelected = "R043" "target-not-selected" Note;
    /// A target that was asked for, and that no artifact has code of.
    TargetAbsent = "R044" "target-absent" Warning;
    /// The configuration leaves an arch out of a component or package.
    ArchExcluded = "R045" "arch-excluded" Note;
    /// Code objects of an arch that is in no group, which the configuration drops.
    ArchDropped = "R046" "arch-dropped" Note;
    /// No relation to a kpack-capable HIP runtime is configured.
    RuntimeUnset = "R050" "runtime-relation-unset" Warning;
    /// A group without any content gives no package.
    GroupEmpty = "R051" "group-empty" Note;
    /// Several packages of the set provide the same library.
    LibraryAmbiguous = "R052" "library-ambiguous" Warning;
    /// The dynamic section of a host file cannot be read.
    LibrariesUnreadable = "R053" "libraries-unreadable" Warning;
    /// A component has device code and no host files.
    HostPackageEmpty = "R054" "host-package-empty" Note;
    /// Files and code objects that are in no package because the set is limited to others.
    ComponentLeftOut = "R055" "component-left-out" Note;
    /// A code file of a kernel database is a bundle of several archs, and is not cut.
    DatabaseBundle = "R060" "database-bundle-whole" Note;
    /// A directory of a kernel database is named like one of an arch that is not known.
    DatabaseArchUnknown = "R061" "database-arch-unknown" Warning;
    /// A program needs a library that neither the set nor the distribution has.
    LibraryUnresolved = "R070" "library-unresolved" Warning;
    /// A program needs a newer version of a library than the distribution has.
    VersionUnresolved = "R071" "library-version-unresolved" Warning;
    /// The library search path of a file was written anew.
    RunpathRewritten = "R072" "runpath-rewritten" Note;
    /// The library search path of a file leads out of the prefix.
    RunpathOutside = "R073" "runpath-outside" Warning;
    /// A list of packages has a key that is not known.
    ListKeyUnknown = "R075" "list-key-unknown" Warning;
    /// None of the artifacts of a listed package is in the input.
    ListedWithoutContent = "R076" "listed-without-content" Note;
    /// A listed package depends on one that the set does not have.
    DependencyLeftOut = "R077" "dependency-left-out" Warning;
    /// Files and code objects that no listed package takes.
    NotListed = "R078" "not-listed" Warning;
    /// A listed package asks for what it does not get.
    ListClaimIgnored = "R079" "list-claim-ignored" Warning;
    /// A file of a `dbg` component that no debugger finds by a build-id.
    DebugFileWithoutId = "R080" "debug-file-without-build-id" Warning;
    /// A licence text that the `copyright` file of its packages does not quote.
    LicenceNotQuoted = "R081" "licence-not-quoted" Note;
    /// A program whose name cannot be one of an alternative.
    ProgramWithoutAlternative = "R082" "program-without-alternative" Warning;
    /// No library of the set lies where the loader is told to look.
    LibdirEmpty = "R083" "libdir-empty" Warning;
    /// A package is not newer than in the earlier set.
    VersionNotNewer = "R084" "version-not-newer" Warning;
    /// Paths were in another package of the earlier set.
    PathMoved = "R085" "path-moved" Note;
    /// A directory of the earlier set is something else, or the other way round.
    PathKindChanged = "R086" "path-kind-changed" Warning;
    /// A package of the earlier set is in this one no more, and nothing replaces it.
    PackageDropped = "R087" "package-dropped" Warning;
    /// Packages of the earlier set are of another series, and stand beside those of this one.
    OtherSeries = "R088" "other-series" Note;
    /// A repository is published without a signature.
    RepositoryUnsigned = "R090" "repository-unsigned" Warning;
    /// A version of a package is not among those that a repository keeps.
    VersionNotKept = "R091" "version-not-kept" Note;
    /// Where a repository is served is not known, so there are no files for its clients.
    ClientFilesMissing = "R092" "client-files-missing" Note;
    /// A program or library of a part without `programs`, whose libraries are no dependencies.
    LibrariesNotAsked = "R093" "libraries-not-asked" Note;
    /// A needed library for which the configuration names no dependency.
    LibraryWithoutDependency = "R094" "library-without-dependency" Note;
    /// An entry of the cache is not what was kept; it is made again. In no receipt: the packages are
    /// the same.
    CacheEntryDamaged = "R096" "cache-entry-damaged" Warning;
    /// The cache cannot be read or written, so later runs will find less in it. In no receipt.
    CacheUnusable = "R097" "cache-unusable" Warning;
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.id(), self.name())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Finding {
    /// What it is.
    pub code: Code,
    /// What it is about: a path, an arch, a package.
    pub subject: String,
    /// What was found and what was done about it, as one sentence without a full stop.
    pub message: String,
    /// SHA-256 of the code objects it accounts for, in hex: those that are in no package.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub code_objects: Vec<String>,
}

impl Finding {
    /// A finding about `subject`.
    pub fn new(code: Code, subject: impl Into<String>, message: impl Into<String>) -> Self {
        let (subject, message) = (subject.into(), message.into());
        Self { code, subject, message, code_objects: Vec::new() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (subject, message) = (printable(&self.subject), printable(&self.message));
        write!(f, "{}: {subject}: {message}", self.code)
    }
}

/// The findings of a run, in the order of code and subject.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Findings(Vec<Finding>);

impl Findings {
    /// Adds one.
    pub fn add(&mut self, finding: Finding) {
        self.0.push(finding);
    }

    /// Adds all of `other`.
    pub fn extend(&mut self, other: Findings) {
        self.0.extend(other.0);
    }

    /// Drops those that `keep` does not hold for.
    pub fn retain(&mut self, keep: impl FnMut(&Finding) -> bool) {
        self.0.retain(keep);
    }

    /// Brings them into their final order and drops repetitions.
    pub fn sort(&mut self) {
        self.0.sort();
        self.0.dedup();
    }

    /// The findings.
    pub fn iter(&self) -> std::slice::Iter<'_, Finding> {
        self.0.iter()
    }

    /// Those that probably are mistakes.
    pub fn warnings(&self) -> Self {
        let warnings = self.0.iter().filter(|f| f.code.severity() == Severity::Warning);
        Self(warnings.cloned().collect())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Under `--strict`: an error that gathers every warning, if there is one.
    pub fn refuse_warnings(&self) -> Result<(), Error> {
        let warnings = self.0.iter().filter(|f| f.code.severity() == Severity::Warning);
        let faults = warnings.map(|f| Error::new(Kind::Conflict, f.to_string())).collect();
        match Error::gather(faults) {
            Some(error) => {
                Err(error
                    .hint("--strict turns warnings into errors: settle them, or build without it"))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_sorted() {
        let ids: Vec<_> = Code::ALL.iter().map(|code| code.id()).collect();
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "{ids:?}");
        let mut names: Vec<_> = Code::ALL.iter().map(|code| code.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ids.len());
    }

    #[test]
    fn only_warnings_fail_a_strict_run() {
        let mut findings = Findings::default();
        findings.add(Finding::new(Code::FileMerged, "lib/x", "is in two prefixes"));
        assert!(findings.refuse_warnings().is_ok());
        findings.add(Finding::new(Code::ArchNotGrouped, "gfx906", "is in no group"));
        assert!(findings.refuse_warnings().is_err());
    }
}

//! Deviations that the findings of a build explain.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::content::Sha256Digest;
use rockpack_core::tree::TreePath;
use rockpack_package::Format;
use rockpack_package::receipt::Receipt;
use rockpack_report::{Code, Finding, Soname};
use serde::Deserialize;

use crate::readers::Sha;

/// Findings whose device code stays in its original file.
const KEPT: [Code; 4] =
    [Code::DatabaseShared, Code::KeptFat, Code::OldRuntimeNeeded, Code::DatabaseHostCode];

/// Findings whose code objects are in no package. Other findings list code objects in unexpected places, and explain no
/// absence.
const LEFT_OUT: [Code; 7] = [
    Code::ArchNotGrouped,
    Code::DuplicateDropped,
    Code::KeptFatDropped,
    Code::ArchExcluded,
    Code::ArchDropped,
    Code::ComponentLeftOut,
    Code::NotListed,
];

/// Files and code that findings explain as missing, moved or kept.
#[derive(Debug, Default)]
pub(crate) struct Excuses {
    /// Whether some device wheels are not installed.
    pub(crate) lacks_wheels: bool,
    /// Whether some packages of the set were not given.
    pub(crate) is_part: bool,
    /// Device code that is in no package.
    pub(crate) absent: BTreeSet<Sha256Digest>,
    /// Device code that stays in its file.
    kept: BTreeSet<Sha256Digest>,
    /// Install-relative paths of files that stay in the host package with device code, or with an index or marker of
    /// it. Database files among them may lack their partners.
    pub(crate) kept_files: BTreeSet<TreePath>,
    /// Install-relative paths of binaries with device code outside `.hip_fatbin`, and of unlinked files.
    pub(crate) embedded: BTreeSet<TreePath>,
    /// Install-relative path of a binary → wrappers without device code.
    without_code: BTreeMap<TreePath, BTreeSet<usize>>,
    /// Install-relative paths of indexes that refer to files that no input has.
    pub(crate) unresolved: BTreeSet<TreePath>,
    /// Install-relative paths of files that are merged from those of the shards.
    pub(crate) merged: BTreeSet<TreePath>,
    /// Install-relative paths of code files that became compressed bundles.
    pub(crate) compressed: BTreeSet<TreePath>,
    /// Install-relative folders whose files were moved into folders of their archs below.
    pub(crate) moved: BTreeSet<TreePath>,
    /// Install-relative paths of host files that are entirely for one arch.
    pub(crate) whole: BTreeSet<TreePath>,
    /// Install-relative path of a file → its original library search path → the rewritten one.
    pub(crate) rewritten: BTreeMap<TreePath, BTreeMap<String, String>>,
    /// Install-relative paths of files with `DT_RPATH` instead of `DT_RUNPATH`, or with the linker option for that.
    pub(crate) rpath_files: BTreeSet<TreePath>,
    /// Install-relative path of a script → the interpreters that replace its own.
    pub(crate) settled: BTreeMap<TreePath, BTreeSet<String>>,
    /// Absolute paths that are in no package.
    pub(crate) left_out: BTreeSet<String>,
    not_found: BTreeSet<Soname>,
    /// Needed library in a folder that the loader does not search → install-relative paths of the files that need it.
    out_of_reach: BTreeMap<Soname, BTreeSet<TreePath>>,
    /// Needed libraries that do not become dependencies of a `.deb`.
    without_dependency: BTreeSet<Soname>,
    /// Format and needed library whose dependency is replaced or removed → install-relative paths of the files that
    /// need it.
    replaced: BTreeMap<(Format, Soname), BTreeSet<TreePath>>,
    /// Install-relative paths of files whose libraries do not become dependencies.
    pub(crate) ignored_files: BTreeSet<TreePath>,
}

/// The part of a file or folder field of a finding that is read.
#[derive(Deserialize)]
struct Place {
    path: TreePath,
}

impl Excuses {
    /// Collects the deviations that receipts explain: by their findings, and the paths that they leave out.
    pub(crate) fn of(receipts: &[&Receipt]) -> Self {
        let mut excuses = Self::of_findings(receipts.iter().flat_map(|it| it.findings.iter()));
        excuses.left_out = receipts.iter().flat_map(|it| &it.left_out).cloned().collect();
        excuses
    }

    /// Collects the deviations that findings explain. Unknown codes of later versions of rockpack explain nothing.
    pub(crate) fn of_findings<'a>(findings: impl Iterator<Item = &'a Finding>) -> Self {
        let mut excuses = Self::default();
        for finding in findings {
            finding.code().into_iter().for_each(|code| excuses.add(code, finding));
        }
        excuses
    }

    fn add(&mut self, code: Code, finding: &Finding) {
        if LEFT_OUT.contains(&code) {
            self.absent.extend(finding.code_objects());
        } else if KEPT.contains(&code) {
            self.kept.extend(finding.code_objects());
        }
        let text = |name| finding.field::<String>(name);
        let files = || finding.field::<Vec<TreePath>>("files").unwrap_or_default();
        let path = |name| Some(finding.field::<Place>(name)?.path);
        let file = path("file");
        match code {
            Code::DatabaseMerged => self.merged.extend(file),
            Code::CodeFilesCompressed => self.compressed.extend(files()),
            Code::DatabaseMoved => self.moved.extend(path("folder")),
            Code::DatabaseUnresolved => self.unresolved.extend(file),
            Code::DatabaseHostCode => self.whole.extend(file),
            Code::RunpathRewritten => {
                if let Some(file) = file {
                    let change = text("before").zip(text("after"));
                    self.rewritten.entry(file).or_default().extend(change);
                }
            }
            Code::RpathForRunpath => self.rpath_files.extend(files()),
            Code::LibrariesNotAsked => self.ignored_files.extend(file),
            Code::DeviceCodeEmbedded | Code::FatDevelopmentFile => self.embedded.extend(file),
            Code::WrapperWithoutCode => {
                if let Some(file) = file {
                    let wrappers: Vec<usize> = finding.field("wrappers").unwrap_or_default();
                    self.without_code.entry(file).or_default().extend(wrappers);
                }
            }
            // These keep a file with device code, or with an index or marker of it, in the host package.
            Code::AlreadyTransformed
            | Code::DatabaseShared
            | Code::DatabaseArchMismatch
            | Code::DatabaseUnpaired
            | Code::KeptFat => self.kept_files.extend(file),
            Code::OldRuntimeNeeded if !finding.code_objects().is_empty() => {
                self.kept_files.extend(file);
            }
            Code::InterpreterSettled => {
                let after = text("after").filter(|after| Some(after) != text("before").as_ref());
                for file in files() {
                    self.settled.entry(file).or_default().extend(after.clone());
                }
            }
            _ => self.add_libraries(code, finding),
        }
    }

    /// Adds needed libraries that are unresolved or need no dependency.
    fn add_libraries(&mut self, code: Code, finding: &Finding) {
        let library = || finding.field::<String>("library").map(Soname::from);
        let files = || finding.field::<Vec<TreePath>>("files").unwrap_or_default();
        match code {
            Code::LibraryUnresolved => self.not_found.extend(library()),
            Code::LibraryWithoutDependency => self.without_dependency.extend(library()),
            Code::LibrariesReplaced => {
                let libraries: Vec<String> = finding.field("libraries").unwrap_or_default();
                for format in finding.field::<Vec<Format>>("formats").unwrap_or_default() {
                    for library in &libraries {
                        self.replaced.entry((format, library.into())).or_default().extend(files());
                    }
                }
            }
            Code::LibraryOutOfReach => {
                if let Some(library) = library() {
                    self.out_of_reach.entry(library).or_default().extend(files());
                }
            }
            _ => {}
        }
    }

    /// Whether a finding explains that device code of this digest is in no package.
    pub(crate) fn explains_absence(&self, sha256: &Sha) -> bool {
        self.absent.contains(&(*sha256).into())
    }

    /// Whether the absolute `path` ends with one of these install-relative paths, now or before the build moved the
    /// file to the folder of its arch.
    pub(crate) fn matches_any_before_move(&self, paths: &BTreeSet<TreePath>, path: &str) -> bool {
        let path_before = || {
            let (folder, name) = path.rsplit_once('/')?;
            let (folder, _arch) = folder.rsplit_once('/')?;
            matches_any(&self.moved, folder).then(|| format!("{folder}/{name}"))
        };
        matches_any(paths, path) || path_before().is_some_and(|before| matches_any(paths, &before))
    }

    /// Whether a package of that format may lack a dependency for the library `name`, which its file at this absolute
    /// path needs: the build did not find it, the loader cannot reach it, or the configuration removes the dependency.
    pub(crate) fn allows_missing_library(
        &self,
        name: &str,
        format: Option<Format>,
        path: &str,
    ) -> bool {
        self.not_found.contains(name)
            || (format == Some(Format::Deb) && self.without_dependency.contains(name))
            || self.out_of_reach.get(name).is_some_and(|files| matches_any(files, path))
            || format
                .and_then(|format| self.replaced.get(&(format, Soname::from(name))))
                .is_some_and(|files| matches_any(files, path))
    }

    /// Whether a finding explains that a file keeps device code of this digest.
    pub(crate) fn keeps_code(&self, sha256: &Sha) -> bool {
        self.kept.contains(&(*sha256).into())
    }

    /// Whether a finding says that a wrapper of the binary at the absolute `path` has no device code.
    pub(crate) fn has_no_code(&self, path: &str, wrapper: usize) -> bool {
        let mut named = self.without_code.iter().filter(|(_, all)| all.contains(&wrapper));
        named.any(|(own, _)| ends_with_path(own, path))
    }
}

/// Whether the absolute `path` ends with one of these install-relative paths.
pub(crate) fn matches_any(paths: &BTreeSet<TreePath>, path: &str) -> bool {
    paths.iter().any(|own| ends_with_path(own, path))
}

/// Whether the absolute `path` ends with the install-relative path `own`.
fn ends_with_path(own: &TreePath, path: &str) -> bool {
    path.strip_suffix(own.as_str()).is_some_and(|rest| rest.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use rockpack_core::gfx::BaseArch;
    use rockpack_core::tree::ComponentKind;
    use rockpack_report::{
        ArchFilterTable, ArchMismatch, ComponentFile, DevelopmentFile, DifferentCode, Findings,
        InputArtifact, InputFile, MergeObstacle, PackageName, Unpaired, Unresolved, found,
    };

    use super::*;

    fn artifact(shard: &str) -> InputArtifact {
        InputArtifact::new(shard, &"a_lib_generic".parse().unwrap())
    }

    fn input(path: &str) -> InputFile {
        artifact("shard").file(&tree_path(path))
    }

    fn of_component(path: &str) -> ComponentFile {
        ComponentFile::new("a_lib", &tree_path(path))
    }

    fn tree_path(path: &str) -> TreePath {
        TreePath::new(path).unwrap()
    }

    fn paths(all: &[&str]) -> BTreeSet<TreePath> {
        all.iter().map(|path| tree_path(path)).collect()
    }

    fn differs() -> DifferentCode {
        DifferentCode {
            arch: arch(),
            count: 1,
            first: artifact("one"),
            other: artifact("two"),
            wrapper: 0,
            target: "gfx906".parse().unwrap(),
        }
    }

    fn arch() -> BaseArch {
        "gfx906".parse().unwrap()
    }

    /// The excuses of the findings that `add` adds, after a round trip through JSON.
    fn excused(add: impl Fn(&mut Findings)) -> Excuses {
        let mut findings = Findings::default();
        add(&mut findings);
        let text = serde_json::to_string(&findings).unwrap();
        let read: Findings = serde_json::from_str(&text).unwrap();
        Excuses::of_findings(read.iter())
    }

    #[test]
    fn findings_about_files_excuse_these() {
        let excuses = excused(|all| {
            all.add(found::DatabaseMerged { file: of_component("lib/merged"), parts: Vec::new() });
            all.add(found::DatabaseMoved {
                folder: of_component("lib/moved"),
                files: 1,
                differs: "x".to_owned(),
                reason: MergeObstacle::NoRule,
            });
            all.add(found::DatabaseUnresolved {
                file: input("lib/unresolved"),
                refers_to: "y".to_owned(),
                unresolved: Unresolved::Absent,
            });
            all.add(found::LibrariesNotAsked {
                file: of_component("lib/unasked"),
                kind: ComponentKind::Lib,
            });
            all.add(found::DeviceCodeEmbedded { file: input("lib/embedded"), places: Vec::new() });
            all.add(found::FatDevelopmentFile {
                file: input("lib/unlinked"),
                kind: DevelopmentFile::Bitcode,
            });
            all.add(found::DatabaseHostCode {
                file: input("lib/whole"),
                archs: Vec::new(),
                code_objects: Vec::new(),
            });
        });
        assert_eq!(excuses.merged, paths(&["lib/merged"]));
        assert_eq!(excuses.moved, paths(&["lib/moved"]));
        assert_eq!(excuses.unresolved, paths(&["lib/unresolved"]));
        assert_eq!(excuses.ignored_files, paths(&["lib/unasked"]));
        assert_eq!(excuses.embedded, paths(&["lib/embedded", "lib/unlinked"]));
        assert_eq!(excuses.whole, paths(&["lib/whole"]));
    }

    #[test]
    fn findings_let_files_keep_their_code() {
        let digest = |number| vec![Sha256Digest::from([number; 32])];
        let mismatch = || ArchMismatch::Name { named: arch(), directory: vec![arch()] };
        let old = |path, code_objects| found::OldRuntimeNeeded {
            file: input(path),
            libraries: Vec::new(),
            code_objects,
        };
        let excuses = excused(|all| {
            all.add(found::AlreadyTransformed { file: input("lib/split") });
            all.add(found::DatabaseArchMismatch {
                file: input("lib/mismatch"),
                mismatch: mismatch(),
            });
            all.add(found::DatabaseUnpaired {
                file: input("lib/unpaired"),
                unpaired: Unpaired::NoCode,
            });
            all.add(found::DatabaseShared {
                file: input("lib/shared"),
                rule: "rule".to_owned(),
                is_cache: false,
                code_objects: digest(1),
            });
            all.add(found::KeptFat {
                file: input("lib/fat"),
                targets: Vec::new(),
                reason: "x".to_owned(),
                code_objects: digest(2),
            });
            all.add(old("lib/old", digest(3)));
            all.add(old("lib/without", Vec::new()));
            all.add(found::DatabaseHostCode {
                file: input("lib/whole"),
                archs: Vec::new(),
                code_objects: digest(4),
            });
        });
        let kept =
            ["lib/split", "lib/shared", "lib/mismatch", "lib/unpaired", "lib/fat", "lib/old"];
        assert_eq!(excuses.kept_files, paths(&kept));
        assert_eq!(excuses.kept, (1..=4).flat_map(digest).collect());
    }

    #[test]
    fn findings_about_parts_of_files_excuse_these() {
        let (package, library) = (|| PackageName::from("p"), || Soname::from("libx.so.1"));
        let files = || vec![tree_path("bin/one"), tree_path("bin/two")];
        let excuses = excused(|all| {
            all.add(found::RunpathRewritten {
                file: of_component("lib/rewritten"),
                before: "/a".to_owned(),
                after: "$ORIGIN".to_owned(),
            });
            all.add(found::RpathForRunpath { files: files() });
            all.add(found::WrapperWithoutCode {
                file: input("lib/fat"),
                wrappers: vec![1, 3],
                of: 4,
            });
            all.add(found::InterpreterSettled {
                package: package(),
                before: "/x/sh".to_owned(),
                after: Some("/bin/sh".to_owned()),
                files: files(),
            });
            all.add(found::InterpreterSettled {
                package: package(),
                before: "/bin/awk".to_owned(),
                after: Some("/bin/awk".to_owned()),
                files: files(),
            });
            all.add(found::LibraryUnresolved {
                package: package(),
                library: library(),
                distribution: "debian-13".to_owned(),
                files: files(),
            });
            all.add(found::LibraryWithoutDependency {
                package: package(),
                library: library(),
                files: files(),
            });
            all.add(found::LibrariesReplaced {
                package: package(),
                entry: "liby.so.*".to_owned(),
                formats: vec![Format::Rpm],
                relations: Vec::new(),
                libraries: vec!["liby.so.1".into(), "liby.so.2".into()],
                files: files(),
            });
            all.add(found::LibraryOutOfReach {
                package: package(),
                library: library(),
                provider: package(),
                path: tree_path("lib/x/libx.so.1"),
                search_path: String::new(),
                files: files(),
            });
        });
        let rewritten = &excuses.rewritten[&tree_path("lib/rewritten")];
        assert_eq!(rewritten["/a"], "$ORIGIN");
        assert_eq!(excuses.rpath_files, paths(&["bin/one", "bin/two"]));
        assert!(excuses.has_no_code("/opt/lib/fat", 3) && !excuses.has_no_code("/opt/lib/fat", 2));
        let settled = BTreeSet::from(["/bin/sh".to_owned()]);
        assert_eq!(excuses.settled, files().into_iter().map(|it| (it, settled.clone())).collect());
        assert_eq!(excuses.not_found, BTreeSet::from([library()]));
        assert_eq!(excuses.without_dependency, BTreeSet::from([library()]));
        let allows_missing_library =
            |name, format, path| excuses.allows_missing_library(name, Some(format), path);
        assert!(allows_missing_library("liby.so.2", Format::Rpm, "/opt/bin/two"));
        assert!(!allows_missing_library("liby.so.2", Format::Deb, "/opt/bin/two"));
        assert!(!allows_missing_library("liby.so.2", Format::Rpm, "/opt/bin/three"));
        assert!(!allows_missing_library("liby.so.3", Format::Rpm, "/opt/bin/two"));
        assert_eq!(excuses.out_of_reach[&library()], paths(&["bin/one", "bin/two"]));
    }

    #[test]
    fn code_objects_that_findings_leave_out_are_absent() {
        let digest = |number| vec![Sha256Digest::from([number; 32])];
        let (count, different, component) = (1, 1, || "a_lib".into());
        let excuses = excused(|all| {
            all.add(found::ArchNotGrouped {
                arch: arch(),
                count,
                different,
                places: Vec::new(),
                code_objects: digest(1),
            });
            all.add(found::DuplicateDropped {
                file: of_component("lib/twice"),
                different: differs(),
                code_objects: digest(2),
            });
            all.add(found::KeptFatDropped {
                file: input("lib/fat"),
                provided_by: artifact("two"),
                code_objects: digest(3),
            });
            all.add(found::ArchExcluded {
                table: ArchFilterTable::Package("p".to_owned()),
                arch: arch(),
                count,
                different,
                places: Vec::new(),
                code_objects: digest(4),
            });
            all.add(found::ArchDropped {
                arch: arch(),
                count,
                different,
                places: Vec::new(),
                code_objects: digest(5),
            });
            all.add(found::ComponentLeftOut {
                component: component(),
                files: 1,
                code_objects: digest(6),
            });
            all.add(found::NotListed {
                component: component(),
                paths: Vec::new(),
                code_objects: digest(7),
            });
            // This one leaves nothing out.
            all.add(found::EmptyCodeObject {
                file: input("lib/empty"),
                entry: "e".to_owned(),
                code_objects: digest(8),
            });
        });
        assert_eq!(excuses.absent, (1..=7).flat_map(digest).collect());
    }
}

//! The deviations that findings of a build explain.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::content::Sha256Digest;
use rockpack_core::tree::TreePath;
use rockpack_package::Format;
use rockpack_package::receipt::Receipt;
use rockpack_report::{Code, Finding, Soname};
use serde::Deserialize;

use crate::own::Sha;

/// Findings whose device code stays in the file that it came in.
const KEPT: [Code; 4] =
    [Code::DatabaseShared, Code::KeptFat, Code::OldRuntimeNeeded, Code::DatabaseHostCode];

/// Findings whose code objects are in no package. Others list code objects that lie elsewhere than
/// one would think, and excuse no absence.
const LEAVING_OUT: [Code; 7] = [
    Code::ArchNotGrouped,
    Code::DuplicateDropped,
    Code::KeptFatDropped,
    Code::ArchExcluded,
    Code::ArchDropped,
    Code::ComponentLeftOut,
    Code::NotListed,
];

/// The files and code that are missing, moved or kept because of findings.
#[derive(Debug, Default)]
pub(crate) struct Excuses {
    /// Whether some device wheels are not installed.
    pub(crate) some_wheels: bool,
    pub(crate) is_part: bool,
    /// Device code that is in no package.
    pub(crate) absent: BTreeSet<Sha256Digest>,
    /// Device code that stays in its file.
    kept: BTreeSet<Sha256Digest>,
    /// Install-relative paths of files with device code, or an index or marker of it, that stay in the
    /// host package. Database files among them may be without their partners.
    pub(crate) kept_files: BTreeSet<TreePath>,
    /// Install-relative paths of binaries with device code outside of `.hip_fatbin`, and of unlinked files.
    pub(crate) embedded: BTreeSet<TreePath>,
    /// The wrappers of a binary, by its install-relative path, that no device code belongs to.
    without_code: BTreeMap<TreePath, BTreeSet<usize>>,
    /// Install-relative paths of indexes that refer to what no input holds.
    pub(crate) unresolved: BTreeSet<TreePath>,
    /// Install-relative paths of files that are the union of those of the shards.
    pub(crate) merged: BTreeSet<TreePath>,
    /// Install-relative paths of code files that became compressed bundles.
    pub(crate) compressed: BTreeSet<TreePath>,
    /// Install-relative folders whose files are in folders of their archs below.
    pub(crate) moved: BTreeSet<TreePath>,
    /// Install-relative paths of host files that are for one arch as a whole.
    pub(crate) whole: BTreeSet<TreePath>,
    /// The library search paths that were written anew, before and after, by the install-relative path of the file.
    pub(crate) rewritten: BTreeMap<TreePath, BTreeMap<String, String>>,
    /// Install-relative paths of files with `DT_RPATH` in place of `DT_RUNPATH`, or with the option for that.
    pub(crate) inherited: BTreeSet<TreePath>,
    /// The interpreters that scripts start with in place of their own, by install-relative path.
    pub(crate) settled: BTreeMap<TreePath, BTreeSet<String>>,
    /// Absolute paths that are in no package.
    pub(crate) left_out: BTreeSet<String>,
    nowhere: BTreeSet<Soname>,
    /// Needed libraries that lie where the loader does not look, and the install-relative paths of the
    /// files that need them.
    unreached: BTreeMap<Soname, BTreeSet<TreePath>>,
    /// Needed libraries that are to give a `.deb` no dependency.
    free: BTreeSet<Soname>,
    /// Format and needed library that a dependency on something else replaces, or none → the install-relative
    /// paths of the files that need it.
    replaced: BTreeMap<(Format, Soname), BTreeSet<TreePath>>,
    /// Install-relative paths of files whose libraries are to give no dependencies.
    pub(crate) unasked: BTreeSet<TreePath>,
}

/// What a finding says of a file or folder of the input.
#[derive(Deserialize)]
struct Place {
    path: TreePath,
}

impl Excuses {
    /// Collects what the receipts excuse: their findings, and the paths left out.
    pub(crate) fn of(receipts: &[&Receipt]) -> Self {
        let mut excuses = Self::of_findings(receipts.iter().flat_map(|it| it.findings.iter()));
        excuses.left_out = receipts.iter().flat_map(|it| &it.left_out).cloned().collect();
        excuses
    }

    /// Collects what the findings of builds excuse. Those of later versions of rockpack excuse nothing.
    pub(crate) fn of_findings<'a>(findings: impl Iterator<Item = &'a Finding>) -> Self {
        let mut excuses = Self::default();
        for finding in findings {
            finding.code().into_iter().for_each(|code| excuses.add(code, finding));
        }
        excuses
    }

    fn add(&mut self, code: Code, finding: &Finding) {
        if LEAVING_OUT.contains(&code) {
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
            Code::RpathForRunpath => self.inherited.extend(files()),
            Code::LibrariesNotAsked => self.unasked.extend(file),
            Code::DeviceCodeEmbedded | Code::FatDevelopmentFile => self.embedded.extend(file),
            Code::WrapperWithoutCode => {
                if let Some(file) = file {
                    let wrappers: Vec<usize> = finding.field("wrappers").unwrap_or_default();
                    self.without_code.entry(file).or_default().extend(wrappers);
                }
            }
            // These leave a file with device code, or an index or marker of it, in the host package.
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

    /// Adds needed libraries that need not be dependencies or that do not work.
    fn add_libraries(&mut self, code: Code, finding: &Finding) {
        let library = || finding.field::<String>("library").map(Soname::from);
        let files = || finding.field::<Vec<TreePath>>("files").unwrap_or_default();
        match code {
            Code::LibraryUnresolved => self.nowhere.extend(library()),
            Code::LibraryWithoutDependency => self.free.extend(library()),
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
                    self.unreached.entry(library).or_default().extend(files());
                }
            }
            _ => {}
        }
    }

    /// Whether device code of this digest is in no package because of a finding.
    pub(crate) fn absence(&self, sha256: &Sha) -> bool {
        self.absent.contains(&(*sha256).into())
    }

    /// Whether the absolute `path` ends with one of these install-relative paths, or did before the build
    /// moved the file to the folder of its arch.
    pub(crate) fn is_or_was_one_of(&self, paths: &BTreeSet<TreePath>, path: &str) -> bool {
        let path_before = || {
            let (folder, name) = path.rsplit_once('/')?;
            let (folder, _arch) = folder.rsplit_once('/')?;
            is_one_of(&self.moved, folder).then(|| format!("{folder}/{name}"))
        };
        is_one_of(paths, path) || path_before().is_some_and(|before| is_one_of(paths, &before))
    }

    /// Whether a package of that format need not depend on what has the library `name`, which its
    /// file at this absolute path needs: the build found it nowhere, or out of the file's reach, or
    /// the configuration says so.
    pub(crate) fn leaves_open(&self, name: &str, format: Option<Format>, path: &str) -> bool {
        self.nowhere.contains(name)
            || (format == Some(Format::Deb) && self.free.contains(name))
            || self.unreached.get(name).is_some_and(|files| is_one_of(files, path))
            || format
                .and_then(|format| self.replaced.get(&(format, Soname::from(name))))
                .is_some_and(|files| is_one_of(files, path))
    }

    /// Tells whether a finding lets a file keep device code of this digest.
    pub(crate) fn keeps(&self, sha256: &Sha) -> bool {
        self.kept.contains(&(*sha256).into())
    }

    /// Whether no device code belongs to a wrapper of the binary installed at `path`.
    pub(crate) fn has_no_code(&self, path: &str, wrapper: usize) -> bool {
        let mut named = self.without_code.iter().filter(|(_, all)| all.contains(&wrapper));
        named.any(|(own, _)| is_at(own, path))
    }
}

/// Whether the absolute `path` ends with one of these install-relative paths.
pub(crate) fn is_one_of(paths: &BTreeSet<TreePath>, path: &str) -> bool {
    paths.iter().any(|own| is_at(own, path))
}

/// Whether the absolute `path` ends with the install-relative path `own`.
fn is_at(own: &TreePath, path: &str) -> bool {
    path.strip_suffix(own.as_str()).is_some_and(|rest| rest.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use rockpack_core::gfx::BaseArch;
    use rockpack_core::tree::ComponentKind;
    use rockpack_report::{
        ArchFilterTable, ArchMismatch, ComponentFile, DevelopmentFile, DifferentCode, Findings,
        InputArtifact, InputFile, NoUnion, PackageName, Unpaired, Unresolved, found,
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

    /// The excuses by the findings that `add` adds, as verification reads them.
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
                reason: NoUnion::NoRule,
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
        assert_eq!(excuses.unasked, paths(&["lib/unasked"]));
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
        assert_eq!(excuses.inherited, paths(&["bin/one", "bin/two"]));
        assert!(excuses.has_no_code("/opt/lib/fat", 3) && !excuses.has_no_code("/opt/lib/fat", 2));
        let settled = BTreeSet::from(["/bin/sh".to_owned()]);
        assert_eq!(excuses.settled, files().into_iter().map(|it| (it, settled.clone())).collect());
        assert_eq!(excuses.nowhere, BTreeSet::from([library()]));
        assert_eq!(excuses.free, BTreeSet::from([library()]));
        let leaves_open = |name, format, path| excuses.leaves_open(name, Some(format), path);
        assert!(leaves_open("liby.so.2", Format::Rpm, "/opt/bin/two"));
        assert!(!leaves_open("liby.so.2", Format::Deb, "/opt/bin/two"));
        assert!(!leaves_open("liby.so.2", Format::Rpm, "/opt/bin/three"));
        assert!(!leaves_open("liby.so.3", Format::Rpm, "/opt/bin/two"));
        assert_eq!(excuses.unreached[&library()], paths(&["bin/one", "bin/two"]));
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

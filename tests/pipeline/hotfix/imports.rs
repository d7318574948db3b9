//! Hotfixes of a package that no longer has what another one imports.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use support::example::{Entry, plant, rockpack, tree};
use support::queries::{deb_field, rpm_list};
use support::tampered::verify;
use support::tools;
use tempfile::TempDir;

/// A library: its family, its path below `lib`, its source, and its version script, if it has one.
#[derive(Debug)]
struct Library(&'static str, &'static str, &'static str, &'static str);

const BASE: Library = Library("runtime", "libexbase.so.1", "int ex_base(void) { return 1; }", "");
const OLD: Library = Library("runtime", "libexold.so.0", "int ex_old(void) { return 2; }", "");
const BOTH: Library = Library(
    "runtime",
    BASE.1,
    "int ex_base(void) { return 1; } int ex_old(void) { return 2; }",
    "",
);
const MOVED: Library = Library("extra", OLD.1, OLD.2, "");
const PRIVATE: Library = Library("runtime", "priv/libexold.so.0", OLD.2, "");
/// A library that no file needs, which has a function of the same name.
const PLUGIN: Library = Library("runtime", "libexplugin.so.1", OLD.2, "");
/// Takes the function of another library, which a user of this one thus loads.
const FACADE: Library =
    Library("runtime", BASE.1, "int ex_old(void); int ex_base(void) { return ex_old(); }", "");
const OTHER: Library = Library("extra", "libexother.so.1", "int ex_other(void) { return 3; }", "");
const OTHER_AND_OLD: Library = Library(
    "extra",
    OTHER.1,
    "int ex_other(void) { return 3; } int ex_old(void) { return 2; }",
    "",
);

/// What the tools call: everything, what stays, or nothing of the other package.
const ALL: &str = "int ex_base(void), ex_old(void), ex_other(void);
    int ex_tool(void) { return ex_base() + ex_old() + ex_other(); }";
const REST: &str = "int ex_base(void), ex_other(void);
    int ex_tool(void) { return ex_base() + ex_other(); }";
const RUNTIME: &str = "int ex_base(void), ex_old(void);
    int ex_tool(void) { return ex_base() + ex_old(); }";
const WEAK: &str = "int ex_base(void); __attribute__((weak)) int ex_old(void);
    int ex_tool(void) { return ex_base() + (ex_old ? ex_old() : 0); }";

/// Releases of a runtime, another package, and tools that link to both.
struct Releases(TempDir);

impl Releases {
    fn new() -> Self {
        tools::need(&["gcc", "dpkg-deb", "rpm"]);
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The folder of a family's libraries.
    fn lib(&self, family: &str) -> PathBuf {
        let artifact = self.path(&format!("shards/one/{family}_lib_generic"));
        let lib = artifact.join("core/stage/lib");
        fs::create_dir_all(&lib).unwrap();
        fs::write(artifact.join("artifact_manifest.txt"), "core/stage\n").unwrap();
        lib
    }

    /// Compiles a library, which links to those of `libraries` that it needs.
    fn compile(&self, Library(family, path, source, versions): &Library, libraries: &[PathBuf]) {
        let [code, script] = ["x.c", "x.map"].map(|name| self.path(name));
        fs::write(&code, source).unwrap();
        fs::write(&script, versions).unwrap();
        let file = self.lib(family).join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let mut gcc = Command::new("gcc");
        gcc.args(["-O1", "-shared", "-fPIC", "-nostdlib", "-Wl,--as-needed"]);
        let soname = file.file_name().unwrap().to_str().unwrap();
        gcc.arg(format!("-Wl,-soname,{soname}")).arg("-o").arg(&file).arg(code).args(libraries);
        if libraries.iter().any(|library| library.parent().unwrap().ends_with("priv")) {
            gcc.arg("-Wl,-rpath,$ORIGIN/priv");
        }
        if !versions.is_empty() {
            gcc.arg(format!("-Wl,--version-script={}", script.display()));
        }
        tools::run(&mut gcc);
    }

    /// Replaces the libraries, and builds tools of this source against them; without a source the tools stay.
    fn change(&self, libraries: &[Library], tools: Option<&'static str>) {
        for family in ["runtime", "extra"] {
            fs::remove_dir_all(self.lib(family)).unwrap();
        }
        let mut files: Vec<PathBuf> = Vec::new();
        for library in libraries {
            self.compile(library, &files);
            files.push(self.lib(library.0).join(library.1));
        }
        if let Some(source) = tools {
            self.compile(&Library("tools", "libextool.so.1", source, ""), &files);
        }
    }

    /// Builds a release on top of others, and returns what the run says.
    fn build(&self, release: &str, since: &[&str], options: &[&str]) -> String {
        let mut build = rockpack();
        build.arg("build").arg("--artifacts").arg(self.path("shards")).args(options);
        build.args(["--version", "7.1.0", "--release", release]);
        for earlier in since {
            build.arg("--since").arg(self.path(earlier).join("packages.json"));
        }
        tools::told(build.arg("--out").arg(self.path(release)))
    }

    /// The packages that the runtime of a release excludes, which are the same in both formats.
    fn excluded(&self, release: &str) -> String {
        let folder = self.path(release);
        let deb = folder.join(format!("rocm-runtime_7.1.0-{release}_amd64.deb"));
        let rpm = folder.join(format!("rocm-runtime-7.1.0-{release}.x86_64.rpm"));
        let breaks = deb_field(&deb, "Breaks").replace("<< ", "< ");
        let conflicts = rpm_list(&rpm, "--conflicts").lines().collect::<Vec<_>>().join(", ");
        assert_eq!(breaks.replace(['(', ')'], ""), conflicts);
        conflicts
    }

    fn verify(&self, releases: &[&str]) {
        let folders: Vec<_> = releases.iter().map(|it| self.path(it)).collect();
        let folders: Vec<_> = folders.iter().map(|folder| folder.to_str().unwrap()).collect();
        verify(&folders, &[]).fired(&[]);
    }
}

/// A first release, and one on top of it. Equal first releases are built once in a run.
fn hotfix(
    [before, after]: [&[Library]; 2],
    [old, new]: [Option<&'static str>; 2],
    options: &[&str],
) -> (Releases, String) {
    static FIRST: Mutex<BTreeMap<String, BTreeMap<String, Entry>>> = Mutex::new(BTreeMap::new());
    let releases = Releases::new();
    let made = || {
        releases.change(before, old);
        releases.build("1", &[], &[]);
        tree(releases.0.path())
    };
    let mut first = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
    let entries = first.entry(format!("{before:?} {old:?}")).or_insert_with(made);
    plant(entries, releases.0.path(), false);
    drop(first);
    releases.change(after, new);
    let told = releases.build("2", &["1"], options);
    (releases, told)
}

/// A hotfix of libraries and tools, and what its runtime does for tools of the first release.
struct Case {
    libraries: [&'static [Library]; 2],
    tools: [Option<&'static str>; 2],
    options: &'static [&'static str],
    excluded: &'static str,
    is_named: bool,
}

impl Case {
    /// Tools that call everything, and of which the hotfix makes others.
    const fn new(libraries: [&'static [Library]; 2], excluded: &'static str) -> Self {
        let tools = [Some(ALL), Some(REST)];
        Self { libraries, tools, options: &[], excluded, is_named: false }
    }

    /// The same with tools that stay as they are.
    const fn kept(libraries: [&'static [Library]; 2], excluded: &'static str) -> Self {
        Self { tools: [Some(ALL), None], ..Self::new(libraries, excluded) }
    }

    fn check(&self) {
        let (releases, told) = hotfix(self.libraries, self.tools, self.options);
        assert_eq!(told.contains("R134"), self.is_named, "{}: {told}", self.excluded);
        assert_eq!(releases.excluded("2"), self.excluded, "{told}");
        releases.verify(&["1", "2"]);
    }
}

/// Options: none, and those that leave the tools out.
const ALL_PACKAGES: &[&str] = &[];
const RUNTIME_ONLY: &[&str] = &["--only", "runtime"];

const TOOLS: &str = "rocm-tools < 7.1.0-2";
const EXTRA: &str = "rocm-extra < 7.1.0-2";
/// The relation to tools that the hotfix keeps, which thus means those before the first release.
const NONE: &str = "rocm-tools < 7.1.0-1";

#[test]
fn packages_that_import_what_is_gone_are_excluded() {
    const ONE: Library = Library(OLD.0, OLD.1, OLD.2, "EX_1 { *; };");
    const TWO: Library = Library(OLD.0, OLD.1, OLD.2, "EX_2 { *; };");
    let library = Case::new([&[BASE, OLD, OTHER], &[BASE, OTHER]], TOOLS);
    let symbol = Case::new([&[BOTH, OTHER], &[BASE, OTHER]], TOOLS);
    let version = [Some(ALL), Some(ALL)];
    let versions = Case::new([&[BASE, OTHER, ONE], &[BASE, OTHER, TWO]], TOOLS);
    for case in [library, symbol, Case { tools: version, ..versions }] {
        case.check();
    }
}

/// A version that only weak references need counts: the loader refuses a library without it.
#[test]
fn versions_count_without_their_symbols() {
    const ONE: Library = Library(BOTH.0, BOTH.1, BOTH.2, "EX_0 { ex_base; }; EX_1 { ex_old; };");
    const TWO: Library = Library(BASE.0, BASE.1, BASE.2, "EX_0 { ex_base; };");
    let case = Case::new([&[ONE, OTHER], &[TWO, OTHER]], TOOLS);
    Case { tools: [Some(WEAK), Some(REST)], ..case }.check();
}

/// Another library of the package has a function of the same name, but the tools do not load it. A private
/// library, too, is out of reach of the tools that found it in the folder of public ones.
#[test]
fn only_what_the_importer_loads_counts() {
    let plugin: [&[Library]; 2] = [&[BOTH, PLUGIN, OTHER], &[BASE, PLUGIN, OTHER]];
    Case::new(plugin, TOOLS).check();
    Case { is_named: true, ..Case::kept(plugin, NONE) }.check();
    let private: [&[Library]; 2] = [&[BASE, OLD, OTHER], &[BASE, PRIVATE, OTHER]];
    Case { tools: [Some(ALL), Some(ALL)], ..Case::new(private, TOOLS) }.check();
    Case::kept([&[BOTH, OTHER], &[OLD, FACADE, OTHER]], "").check();
    Case::kept([&[BOTH, OTHER_AND_OLD], &[BASE, OTHER_AND_OLD]], "").check();
}

/// Earlier tools work with the new version of the other package, which they need in any case, so they stay as
/// they are. Those that do not need it are excluded.
#[test]
fn the_package_that_has_it_now_comes_along() {
    let library: [&[Library]; 2] = [&[BASE, OLD, OTHER], &[BASE, MOVED, OTHER]];
    Case::kept(library, EXTRA).check();
    let options = &["--only", "runtime", "--only", "extra"];
    Case { options, ..Case::kept(library, EXTRA) }.check();
    Case::kept([&[BOTH, OTHER], &[BASE, OTHER_AND_OLD]], EXTRA).check();
    let tools = [Some(RUNTIME), None];
    Case { tools, ..Case::kept(library, TOOLS) }.check();
}

/// Clients that skip a hotfix need its relations, and the next one knows them from its receipt.
#[test]
fn the_next_hotfix_excludes_them_too() {
    let libraries = [&[BASE, OLD, OTHER][..], &[BASE, OTHER]];
    let (releases, _) = hotfix(libraries, [Some(ALL), Some(REST)], &[]);
    let next = Library(BASE.0, BASE.1, "int ex_base(void) { return 9; }", "");
    releases.change(&[next, OTHER], None);
    releases.build("3", &["2"], &[]);
    assert_eq!(releases.excluded("3"), TOOLS);
    // A later bound takes the place of an earlier one.
    let last = "int ex_other(void); int ex_tool(void) { return ex_other(); }";
    releases.change(
        &[Library(BASE.0, BASE.1, "int ex_new(void) { return 1; }", ""), OTHER],
        Some(last),
    );
    releases.build("4", &["3"], &[]);
    assert_eq!(releases.excluded("4"), "rocm-tools < 7.1.0-4");
    releases.verify(&["1", "2", "3", "4"]);
}

/// The tools stop needing a symbol one release before the runtime drops it.
#[test]
fn imports_of_former_releases_are_carried_along() {
    let both = [&[BOTH, OTHER][..], &[BOTH, OTHER]];
    let (releases, _) = hotfix(both, [Some(ALL), Some(REST)], &[]);
    releases.change(&[BASE, OTHER], None);
    for (release, options) in [("3", ALL_PACKAGES), ("4", RUNTIME_ONLY)] {
        let told = releases.build(release, &["2"], options);
        assert!(!told.contains("R134"), "{told}");
        assert_eq!(releases.excluded(release), TOOLS);
    }
    releases.verify(&["1", "2", "3"]);
}

/// A receipt lists the planned imports of packages that it keeps, whatever the earlier receipt lists.
#[test]
fn kept_packages_get_their_imports() {
    let releases = Releases::new();
    releases.change(&[BOTH, OTHER], Some(ALL));
    releases.build("1", &[], &[]);
    let receipt = releases.path("1/packages.json");
    let mut value: Value = serde_json::from_slice(&fs::read(&receipt).unwrap()).unwrap();
    let packages = value["packages"].as_array_mut().unwrap().iter_mut();
    let removed = packages.filter_map(|it| it.as_object_mut().unwrap().remove("imports"));
    assert_eq!(removed.count(), 2);
    fs::write(&receipt, value.to_string()).unwrap();
    let source = "int ex_base(void) { return 9; } int ex_old(void) { return 9; }";
    releases.change(&[Library(BOTH.0, BOTH.1, source, ""), OTHER], None);
    releases.build("2", &["1"], &[]);
    assert!(!releases.path("2/rocm-tools_7.1.0-2_amd64.deb").exists());
    releases.change(&[BASE, OTHER], Some(REST));
    releases.build("3", &["2"], &[]);
    assert_eq!(releases.excluded("3"), "rocm-tools < 7.1.0-3");
}

/// A package that did not change, one that `--only` leaves as it was, and one that was made again.
#[test]
fn a_package_that_still_imports_it_is_named() {
    let symbol = [&[BOTH, OTHER][..], &[BASE, OTHER]];
    let library = [&[BASE, OLD, OTHER][..], &[BASE, OTHER]];
    let again = "int ex_base(void), ex_old(void);
        int ex_tool(void) { return ex_base() + ex_old() + 9; }";
    for (libraries, tools, options, excluded) in [
        (symbol, None, ALL_PACKAGES, NONE),
        (library, Some(REST), RUNTIME_ONLY, NONE),
        (symbol, Some(again), ALL_PACKAGES, TOOLS),
    ] {
        let (releases, told) = hotfix(libraries, [Some(ALL), tools], options);
        let name = libraries[0][libraries[0].len() - 2].1;
        let expected = format!(
            "R134 import-lost: rocm-tools: needs ex_old of {name}, which rocm-runtime had "
        );
        assert!(told.contains(&expected), "{told}");
        assert_eq!(releases.excluded("2"), excluded);
    }
}

/// A weak symbol, and one that comes in addition.
#[test]
fn other_changes_exclude_nothing() {
    for libraries in [[&[BOTH][..], &[BASE]], [&[BASE][..], &[BOTH]]] {
        let (releases, told) = hotfix(libraries, [Some(WEAK), None], &[]);
        assert!(!told.contains("R134"), "{told}");
        assert_eq!(releases.excluded("2"), "");
    }
}

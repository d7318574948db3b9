//! Hotfixes of a package that no longer has what another one imports.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use support::example::rockpack;
use support::queries::{deb_field, rpm_list};
use support::tools;
use tempfile::TempDir;

/// A library: its family, file name and source, and the version of its symbols, if they have one.
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
const OTHER: Library = Library("extra", "libexother.so.1", "int ex_other(void) { return 3; }", "");

/// What the tools call: everything, or what stays.
const ALL: &str = "int ex_base(void), ex_old(void), ex_other(void);
    int ex_tool(void) { return ex_base() + ex_old() + ex_other(); }";
const REST: &str = "int ex_base(void), ex_other(void);
    int ex_tool(void) { return ex_base() + ex_other(); }";

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

    fn compile(&self, Library(family, name, source, version): &Library, libraries: &[PathBuf]) {
        let [code, script] = ["x.c", "x.map"].map(|name| self.path(name));
        fs::write(&code, source).unwrap();
        fs::write(&script, format!("{version} {{ *; }};")).unwrap();
        let mut gcc = Command::new("gcc");
        gcc.args(["-O1", "-shared", "-fPIC", "-nostdlib", "-Wl,--as-needed"]);
        gcc.arg(format!("-Wl,-soname,{name}")).arg("-o").arg(self.lib(family).join(name));
        gcc.arg(code).args(libraries);
        if !version.is_empty() {
            gcc.arg(format!("-Wl,--version-script={}", script.display()));
        }
        tools::run(&mut gcc);
    }

    /// Replaces the libraries, and builds tools of this source against them; without a source the tools stay.
    fn change(&self, libraries: &[Library], tools: Option<&'static str>) {
        for family in ["runtime", "extra"] {
            fs::remove_dir_all(self.lib(family)).unwrap();
        }
        libraries.iter().for_each(|library| self.compile(library, &[]));
        let files: Vec<PathBuf> =
            libraries.iter().map(|library| self.lib(library.0).join(library.1)).collect();
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
        let mut verify = rockpack();
        let said = tools::said(verify.arg("verify").args(releases.iter().map(|it| self.path(it))));
        assert!(said.contains("all checks passed"), "{said}");
    }
}

/// A first release, and one on top of it.
fn hotfix(
    [before, after]: [&[Library]; 2],
    [old, new]: [Option<&'static str>; 2],
    options: &[&str],
) -> (Releases, String) {
    let releases = Releases::new();
    releases.change(before, old);
    releases.build("1", &[], &[]);
    releases.change(after, new);
    let told = releases.build("2", &["1"], options);
    (releases, told)
}

#[test]
fn packages_that_import_what_is_gone_are_excluded() {
    let library = [&[BASE, OLD, OTHER][..], &[BASE, OTHER]];
    let symbol = [&[BOTH, OTHER][..], &[BASE, OTHER]];
    let [one, two] =
        ["EX_1", "EX_2"].map(|version| [BASE, OTHER, Library(OLD.0, OLD.1, OLD.2, version)]);
    let version = [&one[..], &two];
    for (libraries, tools) in [(library, REST), (symbol, REST), (version, ALL)] {
        let (releases, told) = hotfix(libraries, [Some(ALL), Some(tools)], &[]);
        assert!(!told.contains("R134"), "{told}");
        assert_eq!(releases.excluded("2"), "rocm-tools < 7.1.0-2");
        releases.verify(&["1", "2"]);
    }
}

/// Clients that skip the hotfix need its relations, and the next one knows them from its receipt.
#[test]
fn the_next_hotfix_excludes_them_too() {
    let libraries = [&[BASE, OLD, OTHER][..], &[BASE, OTHER]];
    let (releases, _) = hotfix(libraries, [Some(ALL), Some(REST)], &[]);
    let next = Library(BASE.0, BASE.1, "int ex_base(void) { return 9; }", "");
    releases.change(&[next, OTHER], None);
    releases.build("3", &["2"], &[]);
    assert_eq!(releases.excluded("3"), "rocm-tools < 7.1.0-2");
    releases.verify(&["1", "2", "3"]);
}

/// The tools need the other package in any case, so they stay as they are.
#[test]
fn the_package_that_has_the_library_now_comes_along() {
    let libraries = [&[BASE, OLD, OTHER][..], &[BASE, MOVED, OTHER]];
    let (releases, told) = hotfix(libraries, [Some(ALL), None], &[]);
    assert!(!told.contains("R134"), "{told}");
    assert!(!releases.path("2").join("rocm-tools_7.1.0-2_amd64.deb").exists());
    assert_eq!(releases.excluded("2"), "rocm-extra < 7.1.0-2, rocm-tools < 7.1.0-1");
    releases.verify(&["1", "2"]);
}

/// A package that did not change, and one that `--only` leaves as it was.
#[test]
fn a_package_that_still_imports_it_is_named() {
    let symbol = [&[BOTH, OTHER][..], &[BASE, OTHER]];
    let (releases, told) = hotfix(symbol, [Some(ALL), None], &[]);
    assert!(told.contains(&named("libexbase.so.1")), "{told}");
    assert_eq!(releases.excluded("2"), "");
    releases.verify(&["1", "2"]);

    let library = [&[BASE, OLD, OTHER][..], &[BASE, OTHER]];
    let (releases, told) = hotfix(library, [Some(ALL), Some(REST)], &["--only", "runtime"]);
    assert!(told.contains(&named(OLD.1)), "{told}");
    assert_eq!(releases.excluded("2"), "");
}

fn named(library: &str) -> String {
    format!("R134 import-lost: rocm-tools: needs {library} with ex_old, which rocm-runtime had ")
}

/// A weak symbol, and one that comes in addition.
#[test]
fn other_changes_exclude_nothing() {
    let weak = "int ex_base(void); __attribute__((weak)) int ex_old(void);
        int ex_tool(void) { return ex_base() + (ex_old ? ex_old() : 0); }";
    for libraries in [[&[BOTH][..], &[BASE]], [&[BASE][..], &[BOTH]]] {
        let (releases, told) = hotfix(libraries, [Some(weak), None], &[]);
        assert!(!told.contains("R134"), "{told}");
        assert_eq!(releases.excluded("2"), "");
    }
}

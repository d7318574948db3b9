//! Symbol versions that files of a set need from its libraries. The loader is the judge.

use std::fs;
use std::process::{Command, Output};

use support::tools;

use crate::dependencies::Case;

const TOOLS: [&str; 3] = ["cc", "dpkg-deb", "rpm"];

/// The loader's behaviour if a library has no versions.
const WARNS: &str =
    "the loader warns or aborts, and the .rpm requires a capability that nothing provides";

/// A program linked against `libother.so.1` with the version `OLD_1`, and the library with the version
/// `shipped`, if any. Both are where the loader finds them.
fn linked_against_another(folder: &str, shipped: Option<&str>) -> Case {
    let case = Case::new();
    let old = case.path("old/libother.so.1");
    case.library(&old, &version_option(&case, "OLD_1"));
    let search = format!("-Wl,-rpath,$ORIGIN/../{folder}");
    case.program(&case.stage("user").join("bin/user"), &old, &search);
    let library = case.stage("other").join(folder).join("libother.so.1");
    let option = shipped.map(|version| version_option(&case, version)).unwrap_or_default();
    case.library(&library, &option);
    case
}

/// The option for a library whose symbols have this version.
fn version_option(case: &Case, version: &str) -> String {
    let script = case.path("versions");
    fs::write(&script, format!("{version} {{ global: answer; }};")).unwrap();
    format!("-Wl,--version-script={}", script.display())
}

/// Runs the installed program.
fn run(case: &Case) -> Output {
    case.unpacked("rocm-other");
    let prefix = case.unpacked("rocm-user");
    Command::new(prefix.join("bin/user")).output().unwrap()
}

#[test]
fn a_version_that_a_library_of_the_set_lacks_is_a_finding() {
    tools::need(&TOOLS);
    for (folder, shipped) in [("lib", None), ("lib", Some("NEW_2")), ("lib/private", None)] {
        let case = linked_against_another(folder, shipped);
        let [has, fault] = match shipped {
            Some(_) => ["has only other versions", "the loader refuses them"],
            None => ["has no versions", WARNS],
        };
        let lacking = format!(
            "R074 library-version-not-in-set: rocm-user: needs OLD_1 of libother.so.1, but \
             {folder}/libother.so.1 of rocm-other {has} (bin/user): {fault}; build these files \
             against the library of this set"
        );
        case.refused("", &["--strict"], &[&lacking]);
        for format in ["deb", "rpm"] {
            let told = case.built("", &["--format", format]);
            assert_eq!(told.matches("R074").count(), 1, "{told}");
            assert!(told.contains(&lacking), "{told}");
        }
        case.built("", &["--format", "deb"]);
        assert!(!run(&case).status.success());
    }
}

/// A library that needs versions from others has a version table, so the loader goes on even if it defines no
/// versions itself.
#[test]
fn a_library_without_versions_of_its_own_is_warned_of_as_the_loader_does() {
    tools::need(&TOOLS);
    let case = linked_against_another("lib", None);
    let source = "int getpid(void); int answer(void) { return getpid() ? 42 : 0; }";
    let library = case.stage("other").join("lib/libother.so.1");
    case.compile(&library, source, "-shared -fPIC -Wl,-soname,libother.so.1");
    let told = case.built("", &["--format", "deb"]);
    assert!(told.contains("R074") && told.contains(WARNS), "{told}");
    let ran = run(&case);
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && said.contains("no version information available"), "{said}");
}

#[test]
fn versions_that_the_library_has_are_none() {
    tools::need(&TOOLS);
    let case = linked_against_another("lib", Some("OLD_1"));
    let told = case.built("", &["--format", "deb"]);
    assert!(!told.contains("R074"), "{told}");
    assert_eq!(case.verified(), (Some(0), Vec::new()));
    assert!(run(&case).status.success());
}

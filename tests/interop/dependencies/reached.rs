//! Libraries of the set in folders that the loader does not search for them. The loader is the judge.

use std::path::PathBuf;
use std::process::Command;

use support::tools;

use crate::dependencies::Case;

const TOOLS: [&str; 4] = ["cc", "dpkg-deb", "ldd", "rpm"];

const PRIVATE: &str = "lib/rocm_sysdeps/lib";

/// A library of artifact `user` in `lib/tool/deep`, which needs a private one of artifact `other`,
/// linked with `options`.
fn deep(options: &str) -> Case {
    let case = Case::new();
    let library = case.stage("other").join(PRIVATE).join("libprivate.so.1");
    case.library(&library, "");
    let source = "int answer(void); int deep(void) { return answer(); }";
    let options = format!("{} -shared -fPIC -Wl,-soname,libdeep.so {options}", library.display());
    case.compile(&deep_library(&case), source, &options);
    case
}

fn deep_library(case: &Case) -> PathBuf {
    case.stage("user").join("lib/tool/deep/libdeep.so")
}

/// The output of `ldd` for an installed file.
fn loaded(case: &Case, file: &str) -> String {
    case.unpacked("rocm-other");
    let prefix = case.unpacked("rocm-user");
    tools::succeed(Command::new("ldd").arg(prefix.join(file)))
}

#[test]
fn a_private_library_that_no_search_path_leads_to_is_a_finding() {
    tools::need(&TOOLS);
    let case = deep("-Wl,-rpath,$ORIGIN/rocm_sysdeps/lib");
    let unreached = "R095 library-out-of-reach: rocm-user: needs libprivate.so.1, which rocm-other \
                     has as lib/rocm_sysdeps/lib/libprivate.so.1, where the loader does not \
                     search (lib/tool/deep/libdeep.so); give the file that needs it the search \
                     path `$ORIGIN/../../rocm_sysdeps/lib`";
    case.refused("", &["--strict"], &[unreached]);
    for format in ["deb", "rpm"] {
        let told = case.built("", &["--format", format]);
        assert_eq!(told.matches("R095").count(), 1, "{told}");
        assert!(told.contains(unreached), "{told}");
    }
    case.built("", &["--format", "deb"]);
    assert!(loaded(&case, "lib/tool/deep/libdeep.so").contains("libprivate.so.1 => not found"));
}

#[test]
fn the_search_path_that_the_finding_names_settles_it() {
    tools::need(&TOOLS);
    let case = deep("-Wl,-rpath,$ORIGIN/../../rocm_sysdeps/lib");
    let told = case.built("", &["--format", "deb"]);
    assert!(!told.contains("R095"), "{told}");
    assert_eq!(case.verified(), (Some(0), Vec::new()));
    assert!(!loaded(&case, "lib/tool/deep/libdeep.so").contains("not found"));
}

/// The loader follows links to folders.
#[test]
fn a_search_path_through_a_link_to_a_folder_leads_to_the_library() {
    tools::need(&TOOLS);
    let case = deep("-Wl,-rpath,$ORIGIN/../../rocm_sysdeps/lib64");
    let link = case.stage("other").join("lib/rocm_sysdeps/lib64");
    std::os::unix::fs::symlink("lib", link).unwrap();
    let told = case.built("", &["--format", "deb"]);
    assert!(!told.contains("R095"), "{told}");
    assert!(!loaded(&case, "lib/tool/deep/libdeep.so").contains("not found"));
}

/// A program of artifact `user` that needs the library in `lib/tool/deep`, linked with these tags.
fn program_of_deep(case: &Case, tags: &str) {
    let folders = "$ORIGIN/../lib/tool/deep:$ORIGIN/../lib/rocm_sysdeps/lib";
    let options = format!(
        "{} -Wl,{tags} -Wl,-rpath,{folders} -Wl,--unresolved-symbols=ignore-all",
        deep_library(case).display()
    );
    let source = "int deep(void); int main(void) { return deep() != 42; }";
    case.compile(&case.stage("user").join("bin/user"), source, &options);
}

/// A library without a `DT_RUNPATH` uses the `DT_RPATH` of the file that loads it.
#[test]
fn a_library_that_a_program_finds_by_its_rpath_is_none() {
    tools::need(&TOOLS);
    for (own, tags, reaches) in [
        ("", "--disable-new-dtags", true),
        // A `DT_RUNPATH` only applies to its own file, and disables the others' paths there.
        ("", "--enable-new-dtags", false),
        ("-Wl,--enable-new-dtags,-rpath,$ORIGIN", "--disable-new-dtags", false),
    ] {
        let case = deep(own);
        program_of_deep(&case, tags);
        let told = case.built("", &["--format", "deb"]);
        assert_eq!(!told.contains("R095"), reaches, "{told}");
        assert_eq!(case.verified(), (Some(0), Vec::new()));
        assert_eq!(!loaded(&case, "bin/user").contains("not found"), reaches);
    }
}

/// With `rpath`, no file has a `DT_RUNPATH` any more, so the search path of the program serves its libraries.
#[test]
fn rpath_serves_the_libraries_that_a_program_needs() {
    tools::need(&TOOLS);
    for own in ["", "-Wl,--enable-new-dtags,-rpath,$ORIGIN"] {
        let case = deep(own);
        program_of_deep(&case, "--enable-new-dtags");
        for (runpath, reaches) in [("keep", false), ("rpath", true)] {
            let config = format!("runpath = '{runpath}'\n");
            let told = case.built(&config, &["--format", "deb"]);
            assert_eq!(!told.contains("R095"), reaches, "{own} {runpath}: {told}");
            assert_eq!(case.verified(), (Some(0), Vec::new()));
            assert_eq!(!loaded(&case, "bin/user").contains("not found"), reaches);
        }
    }
}

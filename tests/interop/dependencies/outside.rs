//! Libraries that do not belong to the set.

use support::tools;

use crate::dependencies::Case;

const TOOLS: [&str; 3] = ["cc", "dpkg-deb", "rpm"];

/// A program of artifact `user` that needs `name`, which is in `folder` of artifact `other`.
fn needs(name: &str, folder: &str, options: &str) -> Case {
    let case = Case::new();
    let library = case.stage("other").join(folder).join(name);
    case.library(&library, "");
    case.program(&case.stage("user").join("bin/user"), &library, options);
    case
}

/// A program of artifact `user` that needs `name`, which is in no artifact.
fn needs_outside(name: &str, library_options: &str) -> Case {
    let case = Case::new();
    let library = case.path("elsewhere").join(name);
    case.library(&library, library_options);
    case.program(&case.stage("user").join("bin/user"), &library, "");
    case
}

#[test]
fn a_private_copy_of_a_distributions_library_takes_its_place() {
    tools::need(&TOOLS);
    let found = "-Wl,-rpath,$ORIGIN/../lib/rocm_sysdeps/lib";
    let case = needs("libz.so.1", "lib/rocm_sysdeps/lib", found);
    case.built("", &[]);
    assert!(!case.depends("rocm-user").contains("zlib1g"));
    assert!(case.depends("rocm-user").contains("rocm-other (>= 7.1.0-1)"));
    assert!(!case.rpm("rocm-user", "--requires").contains("libz.so.1"));
    assert!(!case.rpm("rocm-other", "--provides").contains("libz.so.1"));

    // Without the search path, the loader takes the distribution's library.
    let case = needs("libz.so.1", "lib/rocm_sysdeps/lib", "");
    case.built("", &[]);
    assert!(case.depends("rocm-user").contains("zlib1g (>= "));
    assert!(!case.depends("rocm-user").contains("rocm-other"));
    assert!(case.rpm("rocm-user", "--requires").contains("libz.so.1()(64bit)"));
}

#[test]
fn a_library_of_the_set_is_found_in_the_linker_path() {
    tools::need(&TOOLS);
    let case = needs("libz.so.1", "lib", "");
    case.built("", &[]);
    assert!(case.depends("rocm-user").contains("rocm-other (>= 7.1.0-1)"));
    assert!(!case.depends("rocm-user").contains("zlib1g"));
    assert!(case.rpm("rocm-user", "--requires").contains("libz.so.1()(64bit)"));
    assert!(case.rpm("rocm-other", "--provides").contains("libz.so.1()(64bit)"));
}

#[test]
fn a_library_that_is_nowhere_is_one_finding_and_settled_by_an_entry() {
    tools::need(&TOOLS);
    let case = needs_outside("libnowhere.so.3", "");
    let second = case.stage("user").join("bin/second");
    case.program(&second, &case.path("elsewhere/libnowhere.so.3"), "");
    let unresolved = "R070 library-unresolved: rocm-user: needs libnowhere.so.3, which neither \
                      the set nor the table of debian-12 provides (bin/second, bin/user)";
    case.refused("", &["--strict"], &[unresolved]);
    let told = case.built("", &[]);
    assert_eq!(told.matches("R070").count(), 1, "{told}");
    assert!(told.contains(unresolved), "{told}");
    assert!(case.rpm("rocm-user", "--requires").contains("libnowhere.so.3()(64bit)"));

    let settled = "[libraries.'libnowhere.so.3']\ndeb = 'libnowhere3 (>= 3.1)'\n";
    let told = case.built(settled, &[]);
    assert!(!told.contains("R070"), "{told}");
    assert!(case.depends("rocm-user").contains("libnowhere3 (>= 3.1)"));
}

/// For an `.rpm`, Debian's tables only state which libraries systems have.
#[test]
fn an_rpm_needs_the_same_whether_there_are_debs_or_not() {
    tools::need(&TOOLS);
    let case = needs_outside("libnowhere.so.3", "");
    let told = case.built("", &["--format", "rpm", "--strict"]);
    assert!(!told.contains("R070"), "{told}");
    assert!(case.rpm("rocm-user", "--requires").contains("libnowhere.so.3()(64bit)"));

    let case = needs("libz.so.1", "lib/rocm_sysdeps/lib", "");
    let requires = [&["--format", "rpm"][..], &[]].map(|options| {
        let told = case.built("", options);
        assert!(!told.contains("R095"), "{told}");
        case.rpm("rocm-user", "--requires")
    });
    assert!(requires[0].contains("libz.so.1()(64bit)"), "{requires:?}");
    assert_eq!(requires[0], requires[1]);
}

/// A name that only the other format would have does not matter to a `.deb`.
#[test]
fn names_of_the_other_format_do_not_clash() {
    tools::need(&TOOLS);
    let case = needs_outside("libelf.so.1", "");
    let header = case.path("shard/user_dev_generic/math/part/stage/include/user.h");
    std::fs::create_dir_all(header.parent().unwrap()).unwrap();
    std::fs::write(&header, "").unwrap();
    let manifest = case.path("shard/user_dev_generic/artifact_manifest.txt");
    std::fs::write(manifest, "math/part/stage\n").unwrap();
    let parts = "[[parts]]\nname = 'dev'\nkinds = ['dev']\nrole = 'support'\n\
                 suffix = { deb = '-dev', rpm = '' }\n";
    case.refused(parts, &[], &["two packages would be named rocm-user"]);
    case.built(parts, &["--format", "deb"]);
    assert!(case.depends("rocm-user").contains("libelf1 (>= "));
}

#[test]
fn relations_are_checked_whichever_format_is_made() {
    let case = of_text();
    let bad = "[relations.rocm-user]\nrpm.requires = ['a b']\n";
    let not_valid = "`a b` is not a valid relation";
    case.refused(bad, &["--format", "deb"], &["line 2, column 17", not_valid]);
    let bad = "[relations.rocm-user]\ndeb.depends = ['a b']\n";
    case.refused(bad, &["--format", "rpm"], &["line 2, column 16", not_valid]);
}

/// An artifact with a text file.
fn of_text() -> Case {
    let case = Case::new();
    std::fs::write(case.stage("user").join("text"), "").unwrap();
    case
}

#[test]
fn an_entry_that_is_no_relation_is_refused() {
    let case = Case::new();
    case.stage("user");
    let bad = "[libraries.'libnowhere.so.3']\ndeb = 'a b'\n";
    case.refused(bad, &[], &["line 2, column 7", "`a b` is not a valid relation"]);
    let bad = "[libraries.'libnowhere.so.3']\nrpm = 'a >='\n";
    let expected = ["line 2, column 7", "`a >=` is not a valid relation"];
    case.refused(bad, &["--format", "deb"], &expected);
    let bad = "[libraries.'libnowhere.so.3']\nrpn = 'a'\n";
    case.refused(bad, &[], &["line 2, column 1", "unknown field `rpn`", "did you mean `rpm`?"]);
    let bad = "[libraries]\n'libnowhere.so.*' = true\n";
    case.refused(bad, &[], &["line 2, column 21", "`true` is not allowed"]);
    let bad = "[libraries]\n'libnowhere.so.*' = 'a'\n";
    case.refused(bad, &[], &["line 2, column 21", "expected a table of `deb` and `rpm`, or false"]);
}

#[test]
fn the_distribution_names_the_packages() {
    tools::need(&TOOLS);
    let case = needs_outside("libelf.so.1", "");
    case.built("", &[]);
    assert!(case.depends("rocm-user").contains("libelf1 (>= "));
    case.built("distro = 'debian-12'\n", &["--distro", "debian-13"]);
    assert!(case.depends("rocm-user").contains("libelf1t64 (>= "));
    case.built("distro = 'debian-13'\n", &[]);
    assert!(case.depends("rocm-user").contains("libelf1t64 (>= "));
}

#[test]
fn an_unknown_distribution_is_answered_with_the_known_ones() {
    let case = Case::new();
    case.stage("user");
    let known = "known ones are azurelinux3, debian-12, debian-13";
    case.refused("", &["--distro", "debian-1"], &["--distro", "`debian-1`", known]);
    case.refused("distro = 'feodra'\n", &[], &["line 1, column 10", "`feodra`", known]);
}

#[test]
fn a_version_that_the_distribution_lacks_is_a_finding() {
    tools::need(&TOOLS);
    let versions = Case::new();
    let script = versions.path("versions");
    std::fs::write(&script, "ELFUTILS_9.9 { global: answer; };").unwrap();
    let option = format!("-Wl,--version-script={}", script.display());
    let case = needs_outside("libelf.so.1", &option);
    let lacking = "R071 library-version-unresolved: rocm-user: needs ELFUTILS_9.9 of libelf.so.1, \
                   which the table of debian-12 does not have (bin/user); name a root or table that \
                   has it (`--distro`), or its package under `libraries`";
    let told = case.built("", &[]);
    assert!(told.contains(lacking), "{told}");
    case_is_strict(&case, lacking);
}

fn case_is_strict(case: &Case, part: &str) {
    std::fs::remove_dir_all(case.path("out")).unwrap();
    case.refused("", &["--strict"], &[part]);
}

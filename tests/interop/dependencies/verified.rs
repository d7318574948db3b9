//! `verify` finds the library that no dependency provides. The tests remove the dependencies in the
//! configuration, and with dpkg-deb.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use support::tools;

use crate::dependencies::Case;

const TOOLS: [&str; 3] = ["cc", "dpkg-deb", "rpm"];

/// A program of artifact `user` that needs `libother.so.1`, which is in `folder` of artifact
/// `other`.
fn needs(folder: &str, options: &str) -> Case {
    let case = Case::new();
    let library = case.stage("other").join(folder).join("libother.so.1");
    case.library(&library, "");
    case.program(&case.stage("user").join("bin/user"), &library, options);
    case
}

#[track_caller]
fn assert_passes(case: &Case) {
    assert_eq!(case.verified(), (Some(0), Vec::new()));
}

#[track_caller]
fn assert_fails(case: &Case, problems: &[&str]) {
    let problems = problems.iter().map(|problem| (*problem).to_owned()).collect();
    assert_eq!(case.verified(), (Some(1), problems));
}

const USER: &str = "/opt/rocm-7.1/bin/user needs libother.so.1";
const OTHER: &str = "which is /opt/rocm-7.1/lib/libother.so.1 of rocm-other";

#[test]
fn v063_a_library_of_the_set_that_is_not_depended_on() {
    tools::need(&TOOLS);
    let case = needs("lib", "");
    case.built("", &[]);
    assert_passes(&case);
    let removed = "[relations.rocm-user]\ndeb.remove = ['rocm-other']\n\
                   rpm.remove = ['rocm-other', 'libother.so.1()(64bit)']\n";
    case.built(removed, &[]);
    let deb = format!(
        "V063 rocm-user_7.1.0-1_amd64.deb: {USER}, {OTHER}_7.1.0-1_amd64.deb, but no dependency \
         installs that package"
    );
    let rpm = format!(
        "V063 rocm-user-7.1.0-1.x86_64.rpm: {USER}, {OTHER}-7.1.0-1.x86_64.rpm, but no dependency \
         installs that package"
    );
    assert_fails(&case, &[&rpm, &deb]);
    // The capability alone provides the package.
    case.built("[relations.rocm-user]\nrpm.remove = ['rocm-other']\n", &["--format", "rpm"]);
    assert_passes(&case);
}

#[test]
fn v063_a_library_of_the_distribution_that_is_not_depended_on() {
    tools::need(&TOOLS);
    let case = needs("lib", "");
    let removed = "[relations.rocm-user]\ndeb.remove = ['libc6']\n";
    case.built(removed, &[]);
    let deb = "V063 rocm-user_7.1.0-1_amd64.deb: /opt/rocm-7.1/bin/user needs libc.so.6, but no \
               dependency provides it";
    assert_fails(&case, &[deb]);

    // A package in no table may have the library: `libraries` names such packages.
    case.built(&format!("{removed}deb.depends = ['libc | somelibc']\n"), &[]);
    assert_passes(&case);
}

/// A program without execute permission is data.
#[test]
fn what_data_would_need_is_not_asked_for() {
    tools::need(&TOOLS);
    let case = needs("lib", "");
    let [program, data] = ["bin/user", "share/data"].map(|path| case.stage("user").join(path));
    fs::create_dir(data.parent().unwrap()).unwrap();
    fs::rename(program, &data).unwrap();
    fs::set_permissions(data, fs::Permissions::from_mode(0o644)).unwrap();
    case.built("[relations.rocm-user]\ndeb.remove = ['rocm-other']\n", &["--format", "deb"]);
    assert_passes(&case);
}

#[test]
fn v063_fires_in_a_package_that_was_put_together_again() {
    tools::need(&TOOLS);
    let case = needs("lib/private", "-Wl,-rpath,$ORIGIN/../lib/private");
    case.built("", &["--format", "deb"]);
    assert_passes(&case);
    let (deb, folder) = (case.path("out/rocm-user_7.1.0-1_amd64.deb"), case.path("apart"));
    tools::run(Command::new("dpkg-deb").arg("-R").arg(&deb).arg(&folder));
    let control = folder.join("DEBIAN/control");
    let text = fs::read_to_string(&control).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with("Depends:"));
    fs::write(&control, lines.map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    tools::run(Command::new("dpkg-deb").arg("--root-owner-group").arg("-b").arg(folder).arg(deb));
    fs::remove_file(case.path("out/packages.json")).unwrap();
    let (status, problems) = case.verified();
    let problems = problems.join("\n");
    assert_eq!(status, Some(1), "{problems}");
    assert!(
        problems.contains(&format!("{USER}, which is /opt/rocm-7.1/lib/private/")),
        "{problems}"
    );
    assert!(problems.contains("bin/user needs libc.so.6, but no dependency"), "{problems}");
    assert_eq!(problems.matches("V063").count(), 2, "{problems}");
}

#[test]
fn v063_a_capability_that_an_rpm_does_not_need() {
    tools::need(&TOOLS);
    let case = Case::new();
    let library = case.path("elsewhere/libnowhere.so.3");
    case.library(&library, "");
    case.program(&case.stage("user").join("bin/user"), &library, "");
    case.built("", &["--format", "rpm"]);
    assert_passes(&case);
    let removed = "[relations.rocm-user]\nrpm.remove = ['libnowhere.so.3()(64bit)']\n";
    case.built(removed, &["--format", "rpm"]);
    let rpm = "V063 rocm-user-7.1.0-1.x86_64.rpm: /opt/rocm-7.1/bin/user needs libnowhere.so.3, \
               but no dependency provides it";
    assert_fails(&case, &[rpm]);
}

/// A part of a set does not tell what the rest would provide.
#[test]
fn a_part_of_a_set_passes() {
    tools::need(&TOOLS);
    let case = needs("lib/private", "-Wl,-rpath,$ORIGIN/../lib/private");
    case.built("", &["--only", "user"]);
    assert_passes(&case);
}

/// A package of another set does not belong to this one, in any version.
#[test]
fn an_exact_dependency_on_something_else_makes_no_part_of_a_set() {
    tools::need(&TOOLS);
    let case = needs("lib", "");
    let removed = "[relations.rocm-user]\ndeb.remove = ['rocm-other']\n\
                   rpm.remove = ['rocm-other', 'libother.so.1()(64bit)']\n\
                   deb.depends = ['libelf1 (= 1.0)']\nrpm.requires = ['python(abi) = 3.12']\n";
    case.built(removed, &[]);
    let [deb, rpm] = ["_7.1.0-1_amd64.deb", "-7.1.0-1.x86_64.rpm"].map(|end| {
        format!(
            "V063 rocm-user{end}: {USER}, {OTHER}{end}, but no dependency installs that package"
        )
    });
    assert_fails(&case, &[&rpm, &deb]);
}

/// The receipt has the relations that the configuration leaves open, so they are no problem of the packages.
#[test]
fn what_is_left_open_on_purpose_passes() {
    tools::need(&TOOLS);
    let case = needs("lib", "");
    let library = case.stage("other").join("lib/libother.so.1");
    case.program(&case.stage_of("user_test").join("bin/try"), &library, "");
    let part = "[[parts]]\nname = 'test'\nkinds = ['test']\nrole = 'support'\n\
                suffix = { deb = '-tests', rpm = '-tests' }\n";
    let told = case.built(part, &[]);
    assert!(told.contains("R093 libraries-not-asked: user_test/bin/try: "), "{told}");
    assert_eq!(case.depends("rocm-user-tests").trim(), "");
    assert!(!case.rpm("rocm-user-tests", "--requires").contains("libother"));
    assert_passes(&case);
    // The finding is about these files only, and needs the receipt.
    let removed = "[relations.rocm-user]\nrpm.remove = ['rocm-other', 'libother.so.1()(64bit)']\n";
    case.built(&format!("{part}{removed}"), &["--format", "rpm"]);
    let rpm = format!(
        "V063 rocm-user-7.1.0-1.x86_64.rpm: {USER}, {OTHER}-7.1.0-1.x86_64.rpm, but no dependency \
         installs that package"
    );
    assert_fails(&case, &[&rpm]);
    case.built(&format!("{part}programs = true\n"), &[]);
    assert!(case.depends("rocm-user-tests").contains("rocm-other (>= 7.1.0-1)"));
    assert_passes(&case);

    let told = case.built("[libraries.'libc.so.6']\n", &[]);
    let note = "R094 library-without-dependency: rocm-user: needs libc.so.6, for which the \
                configuration names no dependency (bin/user)";
    assert!(told.contains(note), "{told}");
    assert!(!case.depends("rocm-user").contains("libc6"));
    assert_passes(&case);
    fs::remove_file(case.path("out/packages.json")).unwrap();
    let problems = case.verified().1.join("\n");
    assert!(problems.contains("needs libc.so.6, but no dependency"), "{problems}");
}

/// rpm and dpkg judge names and versions differently; rpm's rules apply here.
#[test]
fn v061_fires_for_an_rpm_that_excludes_another_of_its_set() {
    tools::need(&TOOLS);
    let case = needs("lib", "");
    build_with(&case, "conflicts = ['rocm-other < 7.1.0-2']");
    let conflict = "V061 rocm-user-7.1.0-1.x86_64.rpm: Conflicts: rocm-other < 7.1.0-2, which \
                    matches rocm-other-7.1.0-1.x86_64.rpm of the same set";
    assert_fails(&case, &[conflict]);
    build_with(&case, "obsoletes = ['rocm-other < 7.1.0-2']");
    assert_fails(&case, &[&conflict.replace("Conflicts", "Obsoletes")]);
    for other in ["conflicts = ['rocm-other < 7.1.0-1']", "obsoletes = ['rocm-user < 7']"] {
        build_with(&case, other);
        assert_passes(&case);
    }
}

fn build_with(case: &Case, relation: &str) {
    case.built(&format!("[relations.rocm-user]\nrpm.{relation}\n"), &["--format", "rpm"]);
}

#[test]
fn relations_of_an_rpm_are_replaced_and_removed() {
    tools::need(&TOOLS);
    let case = needs("lib", "");
    case.built("", &["--format", "rpm"]);
    let requires = case.rpm("rocm-user", "--requires");
    assert!(requires.contains("rocm-other >= 7.1.0-1\n"), "{requires}");
    assert!(requires.contains("libother.so.1()(64bit)\n"), "{requires}");
    let config = "[relations.rocm-user]\nrpm.requires = ['rocm-other >= {series}', 'plain']\n\
                  rpm.remove = ['libother.so.1()(64bit)']\n\
                  [relations.rocm-other]\nrpm.remove = ['libother.so.1()(64bit)']\n";
    case.built(config, &["--format", "rpm"]);
    let requires = case.rpm("rocm-user", "--requires");
    assert!(requires.contains("rocm-other >= 7.1\n"), "{requires}");
    assert!(requires.contains("plain\n"), "{requires}");
    assert!(!requires.contains("rocm-other = ") && !requires.contains("libother"), "{requires}");
    let provides = case.rpm("rocm-other", "--provides");
    assert!(!provides.contains("libother"), "{provides}");
    assert_passes(&case);

    let config = "[relations.rocm-user]\nrpm.remove = ['rocm-othr']\n";
    let why = ["line 2, column 15", "the package has no relation to `rocm-othr`"];
    std::fs::remove_dir_all(case.path("out")).unwrap();
    case.refused(config, &["--format", "rpm"], &why);
}

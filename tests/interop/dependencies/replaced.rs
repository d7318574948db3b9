//! Libraries that `libraries` replaces in dependencies: programs that try one of several. rpm judges whether the
//! packages can be installed.

use std::fs;
use std::path::PathBuf;

use support::bases::{RPM_TOOLS, build_rpm};
use support::queries::packages;
use support::roots::Rpm;
use support::tools;

use crate::dependencies::Case;

const TOOLS: [&str; 3] = ["cc", "dpkg-deb", "rpm"];

const NOTE: &str = "R158 libraries-replaced: rocm-user: needs libpython3.11.so.1.0, \
                    libpython3.12.so.1.0; the entry";

/// Artifacts with a program for each of two versions of Python, whose libraries have symbol versions.
fn needs_python(artifacts: &[&str]) -> Case {
    let case = Case::new();
    let script = case.path("versions");
    fs::write(&script, "PYTHON_3 { global: answer; };").unwrap();
    for version in ["3.11", "3.12"] {
        let library = case.path(&format!("elsewhere/libpython{version}.so.1.0"));
        case.library(&library, &format!("-Wl,--version-script={}", script.display()));
        for artifact in artifacts {
            let program = case.stage(artifact).join(format!("bin/{artifact}-py{version}"));
            case.program(&program, &library, "");
        }
    }
    case
}

fn rpm_of_python(case: &Case, package: &str) -> Vec<String> {
    let requires = case.rpm(package, "--requires");
    requires.lines().filter(|line| line.contains("python")).map(str::to_owned).collect()
}

#[track_caller]
fn assert_passes(case: &Case) {
    assert_eq!(case.verified(), (Some(0), Vec::new()));
}

/// Without the receipt, which has the finding, nothing explains the missing dependency. Removes the packages.
#[track_caller]
fn assert_fails_without_receipt(case: &Case, file: &str) {
    fs::remove_file(case.path("out/packages.json")).unwrap();
    let (status, problems) = case.verified();
    let expected = format!("V063 {file}: /opt/rocm-7.1/bin/user-py3.11 needs libpython3.11.so.1.0");
    assert_eq!(status, Some(1), "{problems:?}");
    assert!(problems.iter().any(|problem| problem.starts_with(&expected)), "{problems:?}");
    fs::remove_dir_all(case.path("out")).unwrap();
}

#[test]
fn an_entry_with_false_takes_dependencies_away_in_both_formats() {
    tools::need(&TOOLS);
    let case = needs_python(&["user"]);
    let told = case.built("", &[]);
    assert!(!told.contains("R158"), "{told}");
    let named = ["3.11", "3.12"].map(|version| {
        ["", "PYTHON_3"].map(|symbols| format!("libpython{version}.so.1.0({symbols})(64bit)"))
    });
    assert_eq!(rpm_of_python(&case, "rocm-user"), named.concat());
    assert!(case.depends("rocm-user").contains("libpython3.11"));

    let told = case.built("[libraries]\n'libpython3.*.so.*' = false\n", &[]);
    let note = format!(
        "{NOTE} `libpython3.*.so.*` of `libraries` names no dependency for that \
         (bin/user-py3.11, bin/user-py3.12)"
    );
    assert_eq!(told.matches("R158").count(), 1, "{told}");
    assert!(told.contains(&note), "{told}");
    assert!(!told.contains("R070") && !told.contains("R071") && !told.contains("R094"), "{told}");
    assert!(!case.depends("rocm-user").contains("python"));
    assert!(case.depends("rocm-user").contains("libc6"));
    assert!(rpm_of_python(&case, "rocm-user").is_empty());
    assert!(case.rpm("rocm-user", "--requires").contains("libc.so.6"));
    assert_passes(&case);
    assert_fails_without_receipt(&case, "rocm-user-7.1.0-1.x86_64.rpm");

    let told = case.built("[libraries]\n'libpython*' = false\n", &["--format", "rpm"]);
    assert!(told.contains(NOTE), "{told}");
    assert_passes(&case);
}

#[test]
fn alternatives_take_the_place_of_sonames() {
    tools::need(&TOOLS);
    let case = needs_python(&["user"]);
    let (deb, rpm) = ("libpython3.11 | libpython3.12", "(python3.11-libs or python3.12-libs)");
    let told = case
        .built(&format!("[libraries.'libpython3.*.so.*']\ndeb = '{deb}'\nrpm = '{rpm}'\n"), &[]);
    let names = format!("`{deb}` and `{rpm}`");
    let note = format!("{NOTE} `libpython3.*.so.*` of `libraries` names {names} for that");
    assert!(told.contains(&note), "{told}");
    let depends = case.depends("rocm-user");
    assert_eq!(depends.split(", ").filter(|it| it.contains("python")).collect::<Vec<_>>(), [deb]);
    assert_eq!(rpm_of_python(&case, "rocm-user"), [rpm]);
    assert!(case.rpm("rocm-user", "--requires").contains("rpmlib(RichDependencies)"));
    assert_passes(&case);
    assert_fails_without_receipt(&case, "rocm-user-7.1.0-1.x86_64.rpm");
}

/// An entry with one relation alone keeps the meaning of the other format.
#[test]
fn an_entry_for_one_format_leaves_the_other_as_it_was() {
    tools::need(&TOOLS);
    let case = needs_python(&["user"]);
    let told = case.built("[libraries.'libpython3.*']\ndeb = 'libpython3-all'\n", &[]);
    assert!(told.contains(NOTE), "{told}");
    assert!(case.depends("rocm-user").contains("libpython3-all"));
    assert_eq!(rpm_of_python(&case, "rocm-user").len(), 4);
    assert_passes(&case);

    let told = case.built("[libraries.'libpython3.11.so.1.0']\nrpm = 'python3.11-libs'\n", &[]);
    assert!(told.contains("R094 library-without-dependency: rocm-user: needs libpython3.11"));
    assert!(told.contains("R158 libraries-replaced: rocm-user: needs libpython3.11.so.1.0; the"));
    assert!(!case.depends("rocm-user").contains("python"));
    let of_other = "libpython3.12.so.1.0";
    let requires = rpm_of_python(&case, "rocm-user");
    let expected = [format!("{of_other}()(64bit)"), format!("{of_other}(PYTHON_3)(64bit)")];
    assert_eq!(requires, [&expected[..], &["python3.11-libs".to_owned()]].concat());
    assert_passes(&case);
}

#[test]
fn the_first_entry_for_the_family_and_library_decides() {
    tools::need(&TOOLS);
    let case = needs_python(&["user", "other"]);
    let config = "[libraries]\n'rocm-user:libpython3.11.*' = { rpm = 'python3.11-libs' }\n\
                  'rocm-user:libpython*' = false\n'libpython3.12*' = { rpm = 'never' }\n";
    case.built(config, &["--format", "rpm"]);
    assert_eq!(rpm_of_python(&case, "rocm-user"), ["python3.11-libs"]);
    let of_other = case.rpm("rocm-other", "--requires");
    assert!(of_other.contains("libpython3.11.so.1.0(PYTHON_3)(64bit)\n"), "{of_other}");
    assert!(of_other.contains("never\n") && !of_other.contains("libpython3.12"), "{of_other}");
    assert_passes(&case);
}

/// A library of the set is a library of the set, whatever the entry says.
#[test]
fn a_library_of_the_set_is_not_replaced() {
    tools::need(&TOOLS);
    let case = needs_python(&["user"]);
    let own = case.stage("python").join("lib/libpython3.11.so.1.0");
    case.library(&own, "");
    case.built("[libraries]\n'libpython*' = false\n", &[]);
    assert!(case.depends("rocm-user").contains("rocm-python (>= 7.1.0-1)"));
    assert!(
        rpm_of_python(&case, "rocm-user").contains(&"libpython3.11.so.1.0()(64bit)".to_owned())
    );
    assert!(!case.rpm("rocm-user", "--requires").contains("libpython3.12"));
}

/// What TheRock excludes from its debugger, the scheme `amdrocm` excludes from the same package alone.
#[test]
fn the_debugger_of_amdrocm_requires_no_python() {
    tools::need(&TOOLS);
    let case = needs_python(&["rocgdb", "other"]);
    let options = ["--scheme", "amdrocm", "--format", "rpm"];
    let selectors = "[selectors]\namdrocm-debugger = [{ artifact = 'rocgdb' }]\n";
    for (config, debugger) in [("", "amdrocm-rocgdb7.1"), (selectors, "amdrocm-debugger7.1")] {
        let told = case.built(config, &options);
        assert_eq!(told.matches("R158").count(), 1, "{told}");
        assert!(rpm_of_python(&case, debugger).is_empty(), "{debugger}");
        assert_eq!(rpm_of_python(&case, "amdrocm-other7.1").len(), 4);
        assert_passes(&case);
        fs::remove_dir_all(case.path("out")).unwrap();
    }
    // The configuration's entries come first.
    let config = "[libraries.'libpython*']\nrpm = 'some-python'\n";
    case.built(config, &options);
    assert_eq!(rpm_of_python(&case, "amdrocm-rocgdb7.1"), ["some-python"]);
}

#[test]
fn rpm_installs_programs_for_several_versions_with_one_of_them() {
    tools::need(&[&TOOLS[..], &RPM_TOOLS].concat());
    tools::need_root();
    let case = needs_python(&["user"]);
    let manager = Rpm::new(case.path("root"));
    let install = |others: &[PathBuf]| {
        let mut command = manager.command();
        command.args(["-i", "--test"]).args(packages(&case.path("out"), "rpm"));
        tools::told(command.args(others))
    };
    case.built("", &["--format", "rpm"]);
    let told = install(&[]);
    for version in ["3.11", "3.12"] {
        assert!(told.contains(&format!("libpython{version}.so.1.0()(64bit) is needed")), "{told}");
    }
    case.built("[libraries]\n'libpython*' = false\n", &["--format", "rpm"]);
    let told = install(&[]);
    assert!(told.ends_with("exit status: 0\n"), "{told}");

    let config = "[libraries]\n'libpython*' = { rpm = '(python3.11-libs or python3.12-libs)' }\n";
    case.built(config, &["--format", "rpm"]);
    let told = install(&[]);
    assert!(told.contains("(python3.11-libs or python3.12-libs) is needed"), "{told}");
    let folder = case.path("python");
    fs::create_dir(&folder).unwrap();
    let spec = "Name: python3.12-libs\nVersion: 1\nRelease: 1\nSummary: Python\nLicense: MIT\n\
                %description\nThe library of Python.\n%files\n";
    build_rpm(spec, &folder);
    let told = install(&packages(&folder, "rpm"));
    assert!(told.ends_with("exit status: 0\n"), "{told}");
}

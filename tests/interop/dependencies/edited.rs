//! Changes by the configuration's `relations` and `replaces`.

use support::tools;

use crate::dependencies::Case;

const TOOLS: [&str; 2] = ["cc", "dpkg-deb"];

/// A program that needs the distribution's libc.
fn program() -> Case {
    let case = Case::new();
    case.compile(&case.stage("user").join("bin/user"), "int main(void) { return 0; }", "");
    case
}

#[test]
fn a_relation_may_take_its_own_place() {
    tools::need(&TOOLS);
    let case = program();
    case.built("", &["--format", "deb"]);
    let depends = case.depends("rocm-user");
    let found = depends.trim().split(", ").find(|one| one.starts_with("libc6 (")).unwrap();
    for relation in [found, "libc6 (>= 2.30)", "libc6 (>= 2.99)"] {
        let config = format!(
            "[relations.rocm-user]\ndeb.remove = ['libc6']\ndeb.depends = ['{relation}']\n"
        );
        case.built(&config, &["--format", "deb"]);
        let depends = case.depends("rocm-user");
        assert_eq!(depends.matches("libc6").count(), 1, "{depends}");
        assert!(depends.contains(relation), "{depends}");
    }
}

#[test]
fn a_package_may_provide_what_it_replaces_under_whatever_name() {
    tools::need(&TOOLS);
    let case = program();
    for scheme in ["rocm", "rocm-versioned"] {
        let config = "[relations.rocm-user]\ndeb.provides = ['user (= {version})']\n\
                      [replaces.rocm-user]\ndeb = ['user < 7.0']\n";
        case.built(config, &["--format", "deb", "--scheme", scheme]);
        let _ = std::fs::remove_dir_all(case.path("out"));
    }
    // No other package of the set may provide it.
    case.compile(&case.stage("other").join("bin/other"), "int main(void) { return 0; }", "");
    let config = "[relations.rocm-other]\ndeb.provides = ['user (= {version})']\n\
                  [replaces.rocm-user]\ndeb = ['user < 7.0']\n";
    let options = ["--format", "deb", "--scheme", "rocm-versioned"];
    case.refused(config, &options, &["rocm-other7.1 provides user"]);
}

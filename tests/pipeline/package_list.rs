//! TheRock's package.json from outside: `rockpack build --packages` on the example shards, judged
//! by dpkg and rpm.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::{Value, json};
use support::example::{configuration, copy_shards, rockpack, shards};
use support::queries::{deb_field, deb_fields, packages, rpm_list, rpm_lists};
use support::roots::{dpkg, dpkg_database, stubs};
use support::tools::{self, need, run, succeed, told};
use tempfile::TempDir;

const TARGETS: [&str; 6] = ["gfx1100", "gfx1101", "gfx1102", "gfx1151", "gfx1200", "gfx1201"];

/// The list for the example shards, in TheRock's schema.
fn fixture() -> PathBuf {
    tools::repository("tests/fixtures/package_list/package.json")
}

fn fixture_value() -> Value {
    serde_json::from_slice(&fs::read(fixture()).unwrap()).unwrap()
}

/// A folder with a list and the packages built from it.
struct Case {
    folder: TempDir,
}

impl Case {
    fn new(list: &Value) -> Self {
        Self::of_text(&serde_json::to_string_pretty(list).unwrap())
    }

    fn of_text(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("package.json"), text).unwrap();
        Self { folder }
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    fn build(&self, artifacts: &Path) -> Command {
        let mut build = rockpack();
        build.args(["build", "-v", "--scheme", "amdrocm", "--version", "7.15.0"]);
        build.args(["--release", "12345"]);
        build.arg("--artifacts").arg(artifacts).arg("--config").arg(configuration());
        build.arg("--packages").arg(self.folder.path().join("package.json"));
        build.arg("--out").arg(self.out());
        build
    }

    fn package(&self, name: &str, format: &str) -> PathBuf {
        let mut files = packages(&self.out(), format).into_iter();
        let file_name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        let own = [format!("{name}_7"), format!("{name}-7")];
        files.find(|path| own.iter().any(|own| file_name(path).starts_with(own))).unwrap()
    }

    fn deb_field(&self, field: &str, package: &str) -> String {
        deb_field(&self.package(package, "deb"), field)
    }

    fn rpm_list(&self, query: &str, package: &str) -> String {
        rpm_list(&self.package(package, "rpm"), query)
    }

    /// Fails unless the build is refused, says all of `expected`, and leaves no output.
    fn refused(&self, artifacts: &Path, expected: &[&str]) {
        let said = told(&mut self.build(artifacts));
        for text in expected {
            assert!(said.contains(text), "{text} is not in: {said}");
        }
        assert!(said.contains("exit status: 64") && !self.out().exists(), "{said}");
    }
}

fn keys(map: &BTreeMap<String, String>) -> BTreeSet<&str> {
    map.keys().map(String::as_str).collect()
}

fn exact(name: &str) -> String {
    format!("{name} (= 7.15.0-12345)")
}

/// The dependency of one entry on another.
fn within(name: &str) -> String {
    format!("{name} (<< 7.15.1~), {name} (>= 7.15.0-12345)")
}

/// The names that the list and the scheme give on these shards.
fn expected_names() -> BTreeSet<String> {
    let mut names: BTreeSet<String> = [
        "amdrocm-blas-host7.15",
        "amdrocm-blas7.15",
        "amdrocm-blas",
        "amdrocm-math-common7.15",
        "amdrocm-math-common",
        "amdrocm-core7.15",
        "amdrocm-core",
        "amdrocm7.15",
        "amdrocm",
    ]
    .map(str::to_owned)
    .into();
    for target in TARGETS {
        let metas = ["amdrocm-blas7.15", "amdrocm-core7.15", "amdrocm7.15"];
        names.extend(metas.map(|name| format!("{name}-{target}")));
    }
    names
}

/// The packages of the fixture, built once in a run, and what the build said.
fn built() -> &'static (Case, String) {
    static BUILT: OnceLock<(Case, String)> = OnceLock::new();
    BUILT.get_or_init(|| {
        let case = Case::new(&fixture_value());
        let said = tools::said(&mut case.build(&shards()));
        (case, said)
    })
}

#[test]
fn entries_become_packages_with_the_names_and_dependencies_of_their_scheme() {
    need(&["dpkg-deb", "rpm"]);
    let (case, said) = built();
    let depends = deb_fields(&case.out(), "Depends");
    let expected = expected_names();
    let expected: BTreeSet<&str> = expected.iter().map(String::as_str).collect();
    let names = keys(&depends);
    assert!(expected.is_subset(&names), "{names:?}");
    let own = |name: &&str| name.starts_with("amdrocm-blas") || name.starts_with("amdrocm-core");
    assert!(names.iter().filter(|n| own(n)).all(|name| expected.contains(name)), "{names:?}");

    let host = &depends["amdrocm-blas-host7.15"];
    for needed in [&*within("amdrocm-math-common7.15"), "libc6", "libstdc++6 | libstdc++8"] {
        assert!(host.contains(needed), "{host}");
    }
    for target in TARGETS {
        let kernels = &depends[&format!("amdrocm-blas7.15-{target}")];
        assert_eq!(*kernels, exact("amdrocm-blas-host7.15"));
        let core = &depends[&format!("amdrocm-core7.15-{target}")];
        let members = ["amdrocm-math-common7.15", &format!("amdrocm-blas7.15-{target}")];
        assert!(members.iter().all(|name| core.contains(&within(name))), "{core}");
        assert!(!core.contains("libc6"), "{core}");
        let all = within(&format!("amdrocm-core7.15-{target}"));
        assert_eq!(depends[&format!("amdrocm7.15-{target}")], all);
        assert!(depends["amdrocm-core7.15"].contains(&all));
    }
    assert_eq!(depends["amdrocm-blas"], within("amdrocm-blas7.15"));
    assert_eq!(depends["amdrocm-core"], within("amdrocm-core7.15"));
    // The runtime has no artifact: a finding names it and each package that depends on it.
    for (code, name) in [
        ("R076", "amdrocm-runtime:"),
        ("R076", "amdrocm-developer-tools:"),
        ("R076", "amdrocm-blas-devel:"),
        ("R077", "amdrocm-blas: should depend on amdrocm-runtime"),
        ("R077", "amdrocm-core: should depend on amdrocm-runtime"),
        ("R079", "amdrocm-blas: takes hipBLASLt of the artifact blas (lib)"),
    ] {
        assert!(
            said.lines().any(|l| l.contains(code) && l.contains(name)),
            "{code} {name}: {said}"
        );
    }
    let requires = rpm_lists(&case.out(), "--requires");
    assert_eq!(keys(&requires), keys(&depends));
    assert!(requires["amdrocm-blas-host7.15"].contains("amdrocm-math-common7.15 >= 7.15.0-12345"));
    let arguments = [&case.out(), Path::new("--against"), &shards()].map(Path::to_path_buf);
    run(rockpack().arg("verify").args(arguments));
}

#[test]
fn entries_say_what_packages_say() {
    need(&["dpkg-deb", "rpm"]);
    let (case, _) = built();
    let host = "amdrocm-blas-host7.15";
    assert_eq!(case.deb_field("Maintainer", host), "Example packagers <packagers@example.org>");
    assert_eq!(case.deb_field("Homepage", host), "https://example.org/blas");
    assert_eq!(case.deb_field("Section", "amdrocm-blas7.15-gfx1100"), "devel");
    assert_eq!(case.deb_field("Recommends", host), "gcc");
    let description = case.deb_field("Description", host);
    assert!(description.starts_with("Example library of linear algebra\n"), "{description}");
    assert!(description.contains("add and multiply on a GPU"), "{description}");
    let kernels = case.deb_field("Description", "amdrocm-blas7.15-gfx1100");
    assert!(kernels.starts_with("Example library of linear algebra (gfx1100)\n"), "{kernels}");
    let core = case.deb_field("Description", "amdrocm-core7.15-gfx1100");
    assert!(core.starts_with("ROCm core (metapackage) (gfx1100)\n"), "{core}");
    // A first line that is too long is cut there, and whole in the description.
    let common = case.deb_field("Description", "amdrocm-math-common7.15");
    let whole = "Libraries of the processor that those of the GPU call, whichever of them is";
    assert!(common.starts_with(&format!("{whole}\n")), "{common}");
    assert!(common.replace("\n ", " ").contains(&format!("{whole} installed")), "{common}");
    // The package without a version in its name is the one that replaces others.
    for key in ["Provides", "Replaces", "Conflicts"] {
        assert_eq!(case.deb_field(key, "amdrocm-blas"), "rocm-blas");
        assert!(!case.deb_field(key, host).contains("rocm-blas,"));
    }
    assert!(case.rpm_list("--obsoletes", "amdrocm-blas").contains("rocm-blas\n"));
    assert!(case.rpm_list("--suggests", host).contains("gcc-c++\n"));
    let license = case.rpm_list("--queryformat=%{LICENSE} %{VENDOR} %{GROUP} %{RELEASE}", host);
    assert_eq!(license, "MIT Example unknown 12345");
    assert!(case.rpm_list("-l", host).contains("/opt/rocm/core-7.15/lib/libexblas.so.1.2\n"));
}

/// Writes shards with a development component, and a list that takes parts of it.
fn with_development(root: &Path) {
    copy_shards(root);
    let dev = root.join("gfx110X-build/blas_dev_generic");
    let stage = dev.join("math-libs/BLAS/rocBLAS/stage");
    fs::create_dir_all(stage.join("include")).unwrap();
    fs::create_dir_all(stage.join("lib")).unwrap();
    fs::write(stage.join("include/exblas.h"), "//\n").unwrap();
    // The link's target is in another component, but the link belongs to the development package.
    std::os::unix::fs::symlink("libexblas.so.1.2", stage.join("lib/libexblas-dev.so")).unwrap();
    fs::write(dev.join("artifact_manifest.txt"), "math-libs/BLAS/rocBLAS/stage\n").unwrap();
}

#[test]
fn development_packages_are_called_dev_in_debian_and_never_split() {
    need(&["dpkg-deb", "rpm"]);
    let case = Case::new(&fixture_value());
    let root = case.folder.path().join("shards");
    with_development(&root);
    run(&mut case.build(&root));
    let debs = deb_fields(&case.out(), "Depends");
    let dev = &debs["amdrocm-blas-dev7.15"];
    assert!(dev.contains(&within("amdrocm-blas-host7.15")) && dev.contains("libc6"), "{dev}");
    assert_eq!(debs["amdrocm-blas-dev"], within("amdrocm-blas-dev7.15"));
    let rpms = rpm_lists(&case.out(), "-l");
    let listed = &rpms["amdrocm-blas-devel7.15"];
    for path in ["include/exblas.h\n", "lib/libexblas-dev.so\n"] {
        assert!(listed.contains(&format!("/opt/rocm/core-7.15/{path}")), "{listed}");
    }
    assert!(rpms.contains_key("amdrocm-blas-devel"));
    assert!(!rpms.keys().any(|name| name.contains("devel7.15-gfx")), "{:?}", rpms.keys());
}

#[test]
fn what_no_entry_takes_is_named_and_accounted_for() {
    let mut list = fixture_value();
    list[0]["Artifactory"][0]["Artifact_Subdir"][0]["Components"] = json!(["lib"]);
    let case = Case::new(&list);
    let said = tools::said(&mut case.build(&shards()));
    let finding = said.lines().find(|line| line.contains("R078")).unwrap();
    assert!(finding.contains("blas_run: ") && finding.contains("bin/exblas-bench"), "{finding}");
    let receipt: Value =
        serde_json::from_slice(&fs::read(case.out().join("packages.json")).unwrap()).unwrap();
    let path = "/opt/rocm/core-7.15/bin/exblas-bench";
    assert!(receipt["left_out"].as_array().unwrap().contains(&json!(path)), "{receipt}");
    run(rockpack().arg("verify").arg(case.out()).arg("--against").arg(shards()));
    let said = told(case.build(&shards()).arg("--strict"));
    assert!(said.contains("R078") && said.contains("exit status: 2"), "{said}");
}

/// The keys that TheRock's list uses, and further ones that its scripts read.
#[test]
fn every_key_of_the_schema_is_known() {
    let mut list = fixture_value();
    let entry = list[0].as_object_mut().unwrap();
    for key in ["RPMRecommends", "DEBSuggests"] {
        entry.insert(key.to_owned(), json!([]));
    }
    for key in ["Metapackage", "DisablePackaging", "Postinstall"] {
        entry.insert(key.to_owned(), json!("False"));
    }
    for key in ["Disable_DWZ", "Disable_RPM_STRIP", "Disable_DEB_STRIP", "Disable_Debug_Package"] {
        entry.insert(key.to_owned(), json!("True"));
    }
    let case = Case::new(&list);
    let said = tools::said(&mut case.build(&shards()));
    assert!(!said.contains("R075"), "{said}");
    list[0]["Colour"] = json!("red");
    let said = tools::said(&mut Case::new(&list).build(&shards()));
    let finding = said.lines().find(|line| line.contains("R075")).unwrap();
    assert!(finding.contains("amdrocm-blas: the key `Colour` is not known"), "{finding}");
}

#[test]
fn strict_targets_and_variants_have_names_of_their_own() {
    need(&["dpkg-deb"]);
    let case = Case::new(&fixture_value());
    run(case.build(&shards()).args(["--variant", "asan", "--format", "deb"]));
    let depends = deb_fields(&case.out(), "Depends");
    let host = "amdrocm-blas-host-asan7.15";
    assert!(depends["amdrocm-blas-asan7.15-gfx1100"].contains(&exact(host)), "{depends:?}");
    assert_eq!(depends["amdrocm-core-asan"], within("amdrocm-core-asan7.15"));
    let deb = case.out().join(format!("{host}_7.15.0-12345_amd64.deb"));
    let listed = succeed(Command::new("dpkg-deb").arg("-c").arg(deb));
    assert!(listed.contains(" ./opt/rocm/core-asan-7.15/lib/libexblas.so.1.2\n"), "{listed}");
}

/// ROCm has such a pair: blas needs solver, and solver needs blas.
#[test]
fn entries_that_depend_on_each_other_are_installed_together() {
    need(&["dpkg", "dpkg-deb"]);
    tools::need_root();
    let mut list = fixture_value();
    let subdirs = list[0]["Artifactory"][0]["Artifact_Subdir"].as_array_mut().unwrap();
    let hipblas = subdirs.remove(1);
    let mut other = list[0].clone();
    other["Package"] = json!("amdrocm-solver");
    other["DEBDepends"] = json!(["amdrocm-blas"]);
    for key in ["Provides", "Replaces", "Conflicts"] {
        other[key] = json!([]);
    }
    other["Artifactory"] = json!([{ "Artifact": "blas", "Artifact_Subdir": [hipblas] }]);
    list.as_array_mut().unwrap().push(other);
    list[0]["DEBDepends"] = json!(["amdrocm-solver"]);
    let case = Case::new(&list);
    run(case.build(&shards()).args(["--format", "deb"]));
    let depends = deb_fields(&case.out(), "Depends");
    assert!(
        depends["amdrocm-blas-host7.15"].contains(&within("amdrocm-solver7.15")),
        "{depends:?}"
    );
    assert!(
        depends["amdrocm-solver7.15"].contains(&within("amdrocm-blas-host7.15")),
        "{depends:?}"
    );
    let root = case.folder.path().join("root");
    let wanted = ["blas-host7.15", "solver7.15", "blas7.15-gfx1100", "common7.15"];
    let is_wanted = |file: &PathBuf| {
        let file = file.file_name().unwrap().to_str().unwrap();
        wanted.iter().any(|name| file.starts_with(&format!("amdrocm-{name}_")))
    };
    let mut debs = packages(&case.out(), "deb");
    // Entries that only another package of the set would provide are missing.
    dpkg_database(&root, &stubs(&debs));
    debs.retain(is_wanted);
    assert_eq!(debs.len(), wanted.len());
    run(dpkg(&root).arg("--install").args(debs));
    assert!(root.join("opt/rocm/core-7.15/lib/libexcblas.so.1.0").is_file());
}

#[test]
fn contradictions_are_refused_with_their_place() {
    let list = fixture_value();
    let text = serde_json::to_string_pretty(&list).unwrap();
    let doubled = changed_case(&list, |list| list[1]["Package"] = json!("amdrocm-blas"));
    let expected = ["package.json: line ", "1.Package: amdrocm-blas is also the name of"];
    doubled.refused(&shards(), &expected);
    let shared = changed_case(&list, |list| {
        list[2]["Artifactory"][0] = json!({ "Artifact": "blas",
            "Artifact_Subdir": [{ "Name": "BLAS/rocBLAS", "Components": ["run", "lib"] }] });
    });
    let expected = [
        "2.Artifactory.0.Artifact_Subdir.0.Name: amdrocm-math-common takes \
         math-libs/BLAS/rocBLAS/stage of blas_lib, and so does amdrocm-blas",
        "line ",
        "cannot own the same path",
    ];
    shared.refused(&shards(), &expected);
    let typed = Case::of_text(&text.replace("\"blas\"", "7"));
    typed.refused(&shards(), &["package.json: line ", "invalid type: integer `7`", "schema"]);
    let relation = changed_case(&list, |list| list[0]["DEBDepends"][0] = json!("libc6 >= 2"));
    relation.refused(&shards(), &["line ", "DEBDepends.0: `libc6 >= 2` is not a valid relation"]);
    let broken = Case::of_text("[{]");
    broken.refused(&shards(), &["package.json: line 1, column 3"]);
    let selectors = Case::new(&list);
    let config = selectors.folder.path().join("config.toml");
    fs::write(
        &config,
        "[selectors]\nrocm-x = [{ artifact = 'blas' }]\n\
         [architecture_groups.gfx1100]\narchitectures = ['gfx1100']\n",
    )
    .unwrap();
    let mut build = rockpack();
    build.args(["build", "--version", "7.15.0", "--artifacts"]).arg(shards()).arg("--config");
    build.arg(&config).arg("--packages").arg(fixture()).arg("--out").arg(selectors.out());
    let said = told(&mut build);
    assert!(said.contains("selectors: defines the content of packages"), "{said}");
}

fn changed_case(list: &Value, change: impl FnOnce(&mut Value)) -> Case {
    let mut changed = list.clone();
    change(&mut changed);
    Case::new(&changed)
}

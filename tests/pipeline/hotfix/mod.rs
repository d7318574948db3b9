//! Sets that update an earlier one of their version: the packages they rebuild and keep, and their messages.

mod imports;
mod kernels;
mod moves;
mod parts;
mod signed;
mod verified;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;
use support::example::{
    Entry, GROUPS, Group, configuration, copy_shards, names, plant, rockpack, shards, tree,
};
use support::queries::deb_field;
use support::tools;
use tempfile::TempDir;

use crate::text;

/// The library of rocBLAS' C interface, without device code.
const HOST_LIBRARY: &str = "math-libs/BLAS/hipBLAS/stage/lib/libexcblas.so.1.0";

/// A database's code object.
const DATABASE: &str = "lib/rocblas/library/TensileLibrary_gfx1100.co";

const SPARSE_LIBRARY: &str =
    "host-suite-sparse_lib_generic/third-party/SuiteSparse/stage/lib/libexsuitesparse.so.7.8";

/// The packages that a hotfix of rocBLAS rebuilds.
const BLAS: [&str; 4] =
    ["rocm-blas", "rocm-blas-gfx110x", "rocm-blas-gfx115x", "rocm-blas-gfx120x"];

/// A folder with builds of one set and their input.
pub(super) struct Case(TempDir);

impl Case {
    /// The example, built with release 1; without options only once in a run.
    fn new(options: &[&str]) -> Self {
        static FIRST: OnceLock<BTreeMap<String, Entry>> = OnceLock::new();
        let case = Self(tempfile::tempdir().unwrap());
        copy_shards(&case.path("shards"));
        let build = || {
            tools::run(case.build("1").args(options));
            tree(&case.path("1"))
        };
        if options.is_empty() {
            plant(FIRST.get_or_init(build), &case.path("1"), false);
        } else {
            build();
        }
        case
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn receipt(&self, release: &str) -> PathBuf {
        self.path(release).join("packages.json")
    }

    /// `rockpack build` of a release into a folder of its name, with all notes.
    fn build(&self, release: &str) -> Command {
        let mut command = self.command("build", release);
        command.arg("--out").arg(self.path(release));
        command
    }

    /// The example configuration with other values of some keys.
    fn with_keys(&self, keys: &[(&str, Value)]) -> PathBuf {
        let text = fs::read_to_string(configuration()).unwrap();
        let mut value: Value = serde_json::from_str(&text).unwrap();
        for (key, of_key) in keys {
            value[*key] = of_key.clone();
        }
        let place = self.path("keys.json");
        fs::write(&place, value.to_string()).unwrap();
        place
    }

    /// `rockpack build` by another configuration than the example's.
    fn configured(&self, config: &Path, release: &str) -> Command {
        let mut command = rockpack();
        command.args(["build", "-v", "--artifacts"]).arg(self.path("shards"));
        command.arg("--config").arg(config);
        command.args(["--version", "7.1.0", "--release", release]);
        command.arg("--out").arg(self.path(release));
        command
    }

    fn command(&self, subcommand: &str, release: &str) -> Command {
        let mut command = rockpack();
        command.args([subcommand, "-v", "--artifacts"]).arg(self.path("shards"));
        command.arg("--config").arg(configuration());
        command.args(["--version", "7.1.0", "--release", release]);
        command
    }

    /// `rockpack build` of a release as an update of the releases `since`.
    fn hotfix(&self, release: &str, since: &[&str]) -> Command {
        let mut command = self.build(release);
        for earlier in since {
            command.arg("--since").arg(self.receipt(earlier));
        }
        command
    }

    /// Appends a byte to the library of rocBLAS without device code.
    fn change_blas(&self) {
        for group in &GROUPS {
            self.append(group, &format!("blas_lib_{}/{HOST_LIBRARY}", group.family));
        }
    }

    fn change_sparse(&self) {
        GROUPS.iter().for_each(|group| self.append(group, SPARSE_LIBRARY));
    }

    fn append(&self, group: &Group, path: &str) {
        let file = group.folder(&self.path("shards")).join(path);
        OpenOptions::new().append(true).open(file).unwrap().write_all(b"x").unwrap();
    }

    /// The deb packages in a release's folder, and their version.
    fn made(&self, release: &str) -> BTreeSet<String> {
        let files = names(&self.path(release)).into_iter().filter(|name| name.ends_with(".deb"));
        let named = files.map(|file| {
            let (name, rest) = file.split_once('_').unwrap();
            assert!(rest.starts_with(&format!("7.1.0-{release}_")), "{file}");
            name.to_owned()
        });
        named.collect()
    }

    fn json(&self, release: &str) -> Value {
        serde_json::from_slice(&fs::read(self.receipt(release)).unwrap()).unwrap()
    }

    /// The versions of the packages at `keys` in a release's receipt.
    fn versions(&self, release: &str, keys: &[&str]) -> BTreeMap<String, String> {
        let mut value = self.json(release);
        for key in keys {
            value = value[*key].take();
        }
        let packages = value.as_array().cloned().unwrap_or_default();
        let deb = packages.iter().filter(|package| package["format"] == "deb");
        deb.map(|package| (text(&package["id"]), text(&package["version"]))).collect()
    }

    fn depends(&self, release: &str, package: &str) -> String {
        let folder = self.path(release);
        let start = format!("{package}_");
        let file = names(&folder).into_iter().find(|name| name.starts_with(&start)).unwrap();
        deb_field(&folder.join(file), "Depends")
    }
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn what_does_not_change_keeps_its_version() {
    let case = Case::new(&[]);
    let first = case.versions("1", &["packages"]);
    assert!(case.json("1").get("kept").is_none());
    tools::run(&mut case.hotfix("2", &["1"]));
    assert_eq!(case.made("2"), set(&[]));
    assert_eq!(case.versions("2", &["kept", "packages"]), first);

    case.change_blas();
    let said = tools::told(&mut case.hotfix("3", &["1"]));
    assert!(
        said.contains("R112 packages-kept: 7.1.0-3: makes 8 package files and keeps 16"),
        "{said}"
    );
    assert!(!said.contains("R113"), "{said}");
    assert_eq!(said.matches("R137 receipt-unproved").count(), 1, "{said}");
    assert_eq!(case.made("3"), set(&BLAS));
    let mut whole = case.versions("3", &["kept", "packages"]);
    assert!(whole.values().all(|version| version == "7.1.0-1"));
    whole.extend(case.versions("3", &["packages"]));
    assert_eq!(whole.keys().collect::<Vec<_>>(), first.keys().collect::<Vec<_>>());
    let host = case.depends("3", "rocm-blas");
    assert!(host.contains("rocm-common (<< 7.1.1~), rocm-common (>= 7.1.0-1)"), "{host}");
    assert_eq!(case.depends("3", "rocm-blas-gfx110x"), "rocm-blas (= 7.1.0-3)");
    // The receipt's records of kept packages are those of the build that made them.
    let (one, three) = (case.json("1"), case.json("3"));
    let kept = three["kept"]["packages"].as_array().unwrap();
    assert!(kept.iter().all(|record| one["packages"].as_array().unwrap().contains(record)));
}

#[test]
fn where_nothing_changes_the_run_says_so() {
    let case = Case::new(&[]);
    let mut command = case.command("build", "2");
    command.arg("--since").arg(case.receipt("1")).arg("--out").arg(case.path("2"));
    let output = tools::run(&mut command);
    let [shown, said] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    let expected = "0 packages, 0 B; 0 code objects of the input packed, 0 of them in kernel archives\n\
                    24 packages of earlier sets kept\n";
    assert!(shown.starts_with(expected), "{shown}");
    assert!(said.contains("no package changed; ") && !said.contains("publish them"), "{said}");
    assert_eq!(case.made("2"), set(&[]));
}

#[test]
fn a_hotfix_of_a_hotfix_takes_its_receipt_alone() {
    let case = Case::new(&[]);
    case.change_blas();
    tools::run(&mut case.hotfix("2", &["1"]));
    case.change_sparse();
    tools::run(&mut case.hotfix("3", &["2"]));
    assert_eq!(case.made("3"), set(&["rocm-host-suite-sparse"]));
    let kept = case.versions("3", &["kept", "packages"]);
    assert_eq!((&*kept["rocm-blas"], &*kept["rocm-common"]), ("7.1.0-2", "7.1.0-1"));
    assert_eq!(code_object_count(&case.json("3")["kept"]), code_object_count(&case.json("1")));
    assert_eq!(code_object_count(&case.json("3")), 0);
    // If several earlier sets have a package, the last one counts.
    case.change_blas();
    tools::run(&mut case.hotfix("4", &["3", "1"]));
    let kept = case.versions("4", &["kept", "packages"]);
    assert_eq!(kept.get("rocm-host-suite-sparse"), None);
    assert_eq!(case.made("4").len(), BLAS.len() + 1);
    fs::remove_dir_all(case.path("4")).unwrap();
    tools::run(&mut case.hotfix("4", &["1", "3"]));
    let kept = case.versions("4", &["kept", "packages"]);
    assert_eq!(kept["rocm-host-suite-sparse"], "7.1.0-3");
    assert_eq!(case.made("4"), set(&BLAS));
    assert_eq!(case.depends("4", "rocm-blas-gfx110x"), "rocm-blas (= 7.1.0-4)");
}

fn code_object_count(value: &Value) -> usize {
    value["code_objects"].as_array().unwrap().len()
}

/// A package's texts count as content; its time and changelog do not.
#[test]
fn what_a_package_says_of_itself_is_compared() {
    let case = Case::new(&[]);
    let sparse = set(&["rocm-host-suite-sparse"]);
    let summary = serde_json::json!({"rocm-host-suite-sparse": {"summary": "Another"}});
    let config = case.with_keys(&[("packages", summary)]);
    let mut command = case.configured(&config, "2");
    command.env("SOURCE_DATE_EPOCH", "1780000000");
    tools::run(command.arg("--since").arg(case.receipt("1")));
    assert_eq!(case.made("2"), sparse);
    // A bound written as a number is taken literally; one with `{version}` means the set's version.
    let needs = |bound: &str| {
        let bound = format!("rocm-blas (>= {bound})");
        let needs = serde_json::json!({"rocm-host-suite-sparse": {"deb": {"depends": [bound]}}});
        case.with_keys(&[("relations", needs)])
    };
    tools::run(&mut case.configured(&needs("7.1.0-3"), "3"));
    tools::run(case.configured(&needs("7.1.0-4"), "4").arg("--since").arg(case.receipt("3")));
    assert_eq!(case.made("4"), sparse);
    assert!(case.depends("4", "rocm-host-suite-sparse").contains("rocm-blas (>= 7.1.0-4)"));
    tools::run(&mut case.configured(&needs("{version}"), "5"));
    tools::run(case.configured(&needs("{version}"), "6").arg("--since").arg(case.receipt("5")));
    assert_eq!(case.made("6"), set(&[]));
}

/// zypper keeps installed packages of another vendor. A receipt and packages name it, receipts of earlier
/// versions of rockpack do not.
#[test]
fn a_vendor_that_changes_is_named() {
    let case = Case::new(&["--format", "rpm"]);
    let warned = |config: &Path, since: &Path| {
        let mut plan = rockpack();
        plan.arg("plan").arg("--artifacts").arg(case.path("shards")).arg("--config").arg(config);
        plan.args(["--version", "7.1.1", "--format", "rpm", "--since"]).arg(since);
        let said = tools::said(&mut plan);
        said.lines().filter(|line| line.contains("R138")).map(str::to_owned).collect::<Vec<_>>()
    };
    let named = case.with_keys(&[("vendor", Value::from("Example"))]);
    for since in [case.receipt("1"), case.path("1")] {
        let found = warned(&named, &since);
        let expected = "vendor: changes from none to Example in 12 packages (rocm, ";
        assert!(found.len() == 1 && found[0].contains(expected), "{found:?}");
        assert!(warned(&configuration(), &since).is_empty());
    }
    tools::run(case.configured(&named, "2").args(["--format", "rpm"]));
    let back = warned(&configuration(), &case.receipt("2"));
    assert!(back.len() == 1 && back[0].contains("from Example to none"), "{back:?}");
    assert!(warned(&named, &case.receipt("2")).is_empty());
    let mut receipt = case.json("1");
    for package in receipt["packages"].as_array_mut().unwrap() {
        assert_eq!(package.as_object_mut().unwrap().remove("vendor"), Some(Value::from("")));
    }
    fs::write(case.path("unknown.json"), receipt.to_string()).unwrap();
    assert!(warned(&named, &case.path("unknown.json")).is_empty());
}

/// A hotfix in one format keeps the packages of this format.
#[test]
fn formats_are_compared_by_themselves() {
    let case = Case::new(&[]);
    case.change_sparse();
    tools::run(case.hotfix("2", &["1"]).args(["--format", "deb"]));
    assert_eq!(case.made("2"), set(&["rocm-host-suite-sparse"]));
}

/// A hotfix into the previous build's folder leaves the kept packages there, and nothing else.
#[test]
fn what_is_kept_stays_in_the_folder() {
    let case = Case::new(&[]);
    case.change_sparse();
    let files = update_in_place(&case, "2");
    assert_eq!(files.len(), 25);
    assert!(files.contains("rocm-host-suite-sparse_7.1.0-2_amd64.deb"));
    case.change_sparse();
    case.change_blas();
    let files = update_in_place(&case, "3");
    assert_eq!(files.len(), 25);
    assert!(!files.iter().any(|name| name.contains("sparse") && !name.contains("7.1.0-3")));
    tools::run(&mut case.build("1"));
    assert_eq!(names(&case.path("1")).len(), 25);
}

fn update_in_place(case: &Case, release: &str) -> BTreeSet<String> {
    let since = case.path("since.json");
    fs::copy(case.receipt("1"), &since).unwrap();
    let mut command = case.command("build", release);
    tools::run(command.arg("--since").arg(since).arg("--out").arg(case.path("1")));
    let mut verify = rockpack();
    let said = tools::said(verify.arg("verify").arg(case.path("1")));
    assert!(said.contains("24 packages, ") && said.contains("\nall checks passed"), "{said}");
    names(&case.path("1"))
}

/// Only the generated changelog does not count as content.
#[test]
fn a_changelog_of_the_artifacts_is_content() {
    let case = Case(tempfile::tempdir().unwrap());
    copy_shards(&case.path("shards"));
    write_changelogs(&case, "one");
    tools::run(&mut case.build("1"));
    write_changelogs(&case, "two");
    tools::run(&mut case.hotfix("2", &["1"]));
    assert_eq!(case.made("2"), set(&["rocm-host-suite-sparse"]));
}

fn write_changelogs(case: &Case, text: &str) {
    let stage = Path::new(SPARSE_LIBRARY).parent().unwrap().join("../share/sparse");
    for group in &GROUPS {
        let folder = group.folder(&case.path("shards")).join(&stage);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("changelog.Debian.gz"), text).unwrap();
    }
}

#[test]
fn a_limited_hotfix_keeps_all_else() {
    let case = Case::new(&[]);
    case.change_blas();
    case.change_sparse();
    tools::run(case.hotfix("2", &["1"]).args(["--only", "blas"]));
    assert_eq!(case.made("2"), set(&BLAS));
    let receipt = case.json("2");
    assert!(receipt.get("left_out").is_none(), "{}", receipt["left_out"]);
    let kept = case.versions("2", &["kept", "packages"]);
    assert_eq!(kept["rocm-host-suite-sparse"], "7.1.0-1");
    assert_eq!(kept["rocm-all-gpus"], "7.1.0-1");
}

/// Exact relations make dependent packages change too. If `--only` forbids that, the run names the packages
/// it would hold back, before it writes anything.
#[test]
fn exact_relations_carry_changes_on() {
    let config = |case: &Case, keys: &[(&str, &str)]| {
        let text = fs::read_to_string(configuration()).unwrap();
        let mut value: Value = serde_json::from_str(&text).unwrap();
        for (key, text) in keys {
            value[*key] = Value::from(*text);
        }
        let place = case.path("exact.json");
        fs::write(&place, value.to_string()).unwrap();
        place
    };
    let case = Case(tempfile::tempdir().unwrap());
    copy_shards(&case.path("shards"));
    let place = config(&case, &[("set_relations", "exact")]);
    tools::told(&mut case.configured(&place, "1"));
    assert!(case.depends("1", "rocm-blas").contains("rocm-common (= 7.1.0-1)"));
    case.change_blas();
    let mut update = case.configured(&place, "2");
    let said = tools::told(update.arg("--since").arg(case.receipt("1")));
    assert!(!said.contains("R113"), "{said}");
    let kept: Vec<String> = case.versions("2", &["kept", "packages"]).into_keys().collect();
    assert_eq!(kept, ["rocm-common", "rocm-host-suite-sparse"]);
    assert!(case.depends("2", "rocm-blas").contains("rocm-common (= 7.1.0-1)"));
    let said = tools::told(&mut limited_update(&case, &place, "3"));
    let held = "rocm 7.1.0-1 needs rocm-blas = 7.1.0-1, and the newest is rocm-blas 7.1.0-3";
    assert!(said.contains("R113 earlier-held-back: deb: "), "{said}");
    assert!(said.contains(held), "{said}");
    let strict = limited_update(&case, &place, "4").arg("--strict").output().unwrap();
    assert!(!strict.status.success() && !case.path("4").exists());
}

fn limited_update(case: &Case, config: &Path, release: &str) -> Command {
    let mut command = case.configured(config, release);
    command.arg("--since").arg(case.receipt("1")).args(["--only", "blas"]);
    command
}

#[test]
fn pre_releases_depend_on_one_version() {
    let case = Case(tempfile::tempdir().unwrap());
    let depends = blas_depends(&case, "7.12.0-20261101", &configuration());
    assert!(depends.contains("rocm-common (= 7.12.0~20261101-1)"), "{depends}");
    let text = fs::read_to_string(configuration()).unwrap();
    let mut keys: Value = serde_json::from_str(&text).unwrap();
    keys["set_relations"] = Value::from("patch");
    let config = case.path("patch.json");
    fs::write(&config, keys.to_string()).unwrap();
    let depends = blas_depends(&case, "7.12.0-20261101", &config);
    let expected = "rocm-common (<< 7.12.1~), rocm-common (>= 7.12.0~20261101-1)";
    assert!(depends.contains(expected), "{depends}");
    let mut command = rockpack();
    command.arg("build").arg("--artifacts").arg(shards()).arg("--config").arg(&config);
    command.args(["--version", "7.x"]).arg("--out").arg(case.path("none"));
    let refused = command.output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("has no patch number"), "{said}");
}

fn blas_depends(case: &Case, version: &str, config: &Path) -> String {
    let mut command = rockpack();
    command.arg("build").arg("--artifacts").arg(shards()).arg("--config").arg(config);
    command.args(["--version", version]).arg("--out").arg(case.path("out"));
    tools::run(&mut command);
    let file = names(&case.path("out")).into_iter().find(|it| it.starts_with("rocm-blas_"));
    deb_field(&case.path("out").join(file.unwrap()), "Depends")
}

/// A plan lists the packages that a build makes, and its difference from the earlier set lists the changes.
#[test]
fn a_plan_says_the_same() {
    let case = Case::new(&[]);
    case.change_sparse();
    let since = case.receipt("1");
    let mut plan = case.command("plan", "2");
    plan.arg("--since").arg(&since).arg("--json");
    let plan: Value = serde_json::from_str(&tools::succeed(&mut plan)).unwrap();
    assert_eq!(package_names(&plan["packages"]), set(&["rocm-host-suite-sparse"]));
    assert_eq!(package_names(&plan["kept"]).len(), 11);
    // The download of a GPU's owner includes the kept packages.
    assert_eq!(plan["groups"][0]["packages"].as_array().unwrap().len(), 3);
    let mut difference = case.command("plan", "2");
    difference.arg("--since").arg(&since).arg("--diff").arg(&since);
    let said = tools::succeed(&mut difference);
    assert!(said.contains("rocm-host-suite-sparse") && !said.contains("rocm-common"), "{said}");
}

fn package_names(value: &Value) -> BTreeSet<String> {
    let packages = value.as_array().unwrap().iter();
    packages.map(|package| package["name"].as_str().unwrap().to_owned()).collect()
}

//! `rockpack plan`, compared with the packages that `build` writes, as dpkg and rpm read them.

mod differences;
mod ways;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::example::{
    self, GROUPS, Set, VERSION, configuration, copy_shards, kernels, rockpack, shards,
};
use support::queries::{deb_field, rpm_list, rpm_tags};
use support::tools;

/// `rockpack plan` of `artifacts` by the example configuration.
fn plan_of(artifacts: &Path) -> Command {
    let mut command = rockpack();
    command.arg("plan").arg("--artifacts").arg(artifacts).arg("--config").arg(configuration());
    command.args(["--version", VERSION]);
    command
}

fn json(command: &mut Command) -> Value {
    serde_json::from_str(&tools::succeed(command.arg("--json"))).unwrap()
}

/// The packages of a format by name.
fn packages<'a>(plan: &'a Value, format: &str) -> BTreeMap<&'a str, &'a Value> {
    let all = plan["packages"].as_array().unwrap().iter();
    let of_format = all.filter(|package| package["format"] == format);
    of_format.map(|package| (package["name"].as_str().unwrap(), package)).collect()
}

/// A planned package's relations of this kind, in Debian's syntax.
fn relations(package: &Value, kind: &str) -> BTreeSet<String> {
    let all = package["relations"].as_array().unwrap().iter();
    let of_kind = all.filter(|relation| relation["kind"] == kind);
    of_kind
        .map(|relation| {
            let name = relation["name"].as_str().unwrap();
            let is_deb = package["format"] == "deb";
            match relation["version"].as_str() {
                Some(version) => {
                    let sign = match relation["comparison"].as_str().unwrap() {
                        "<" if is_deb => "<<",
                        sign => sign,
                    };
                    format!("{name} ({sign} {version})")
                }
                None => name.to_owned(),
            }
        })
        .collect()
}

/// Exact sizes by path, where there are any. Folders end in a slash, links have their target after an arrow.
fn paths(package: &Value) -> BTreeMap<String, Option<u64>> {
    let members = package["members"].as_array().unwrap().iter();
    let shown = members.map(|member| {
        let path = member["path"].as_str().unwrap();
        let size = &member["size"];
        let exact = size["estimated"] != true;
        match member["kind"].as_str().unwrap() {
            "directory" => (format!("{path}/"), None),
            "link" => (format!("{path} -> {}", member["target"].as_str().unwrap()), None),
            _ => (path.to_owned(), exact.then(|| size["bytes"].as_u64().unwrap())),
        }
    });
    shown.collect()
}

/// The sizes of a package's members by path, as `dpkg-deb -c` lists them.
fn dpkg_paths(deb: &Path) -> BTreeMap<String, u64> {
    let list = tools::succeed(Command::new("dpkg-deb").arg("-c").arg(deb));
    let lines = list.lines().map(|line| {
        let mut words = line.split_whitespace();
        let size = words.nth(2).unwrap().parse().unwrap();
        let path: Vec<&str> = words.skip(2).collect();
        (path.join(" ").trim_start_matches('.').to_owned(), size)
    });
    lines.filter(|(path, _)| path != "/").collect()
}

fn list(text: &str) -> BTreeSet<String> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(str::to_owned).collect()
}

/// Programs that run scriptlets; rpm adds them to the requirements itself.
const INTERPRETERS: [&str; 2] = ["/bin/sh", "/sbin/ldconfig"];

fn close(estimate: u64, real: u64) -> bool {
    estimate.abs_diff(real) * 4 <= real
}

#[test]
fn the_planned_debs_are_those_that_dpkg_reads() {
    tools::need(&["dpkg-deb"]);
    let set = Set::build();
    let plan = json(&mut plan_of(&shards()));
    let planned = packages(&plan, "deb");
    let built = example::names(&set.out());
    let names: BTreeSet<String> =
        planned.values().map(|package| package["file_name"].as_str().unwrap().to_owned()).collect();
    let debs: BTreeSet<String> = built.into_iter().filter(|name| name.ends_with(".deb")).collect();
    assert_eq!(names, debs);
    for (name, package) in &planned {
        let deb = set.deb(name);
        assert_eq!(deb_field(&deb, "Package"), **name);
        assert_eq!(deb_field(&deb, "Version"), package["version"].as_str().unwrap());
        assert_eq!(deb_field(&deb, "Architecture"), package["architecture"].as_str().unwrap());
        for (field, kind) in
            [("Depends", "depends"), ("Suggests", "suggests"), ("Provides", "provides")]
        {
            assert_eq!(relations(package, kind), list(&deb_field(&deb, field)), "{name} {field}");
        }
        let (paths, real) = (paths(package), dpkg_paths(&deb));
        assert!(paths.keys().eq(real.keys()), "{name}: {paths:?} {real:?}");
        let exact = paths.iter().filter_map(|(path, size)| Some((path, (*size)?)));
        exact.for_each(|(path, size)| assert_eq!(size, real[path], "{path}"));
        let kib: u64 = deb_field(&deb, "Installed-Size").parse().unwrap();
        let installed = &package["installed"];
        let bytes = installed["bytes"].as_u64().unwrap();
        if installed["estimated"] == true {
            assert!(close(bytes, kib * 1024), "{name}: {bytes} {kib}")
        } else {
            assert_eq!(bytes, kib * 1024, "{name}")
        }
        let (estimate, size) = (&package["download"], fs::metadata(&deb).unwrap().len());
        assert_eq!(estimate["estimated"], true);
        assert!(close(estimate["bytes"].as_u64().unwrap(), size), "{name}: {estimate} {size}");
    }
}

#[test]
fn the_planned_rpms_are_those_that_rpm_reads() {
    tools::need(&["rpm"]);
    let set = Set::build();
    let plan = json(&mut plan_of(&shards()));
    for (name, package) in packages(&plan, "rpm") {
        let rpm = set.rpm(name);
        let head = rpm_tags(&rpm, "%{NAME} %{VERSION}-%{RELEASE} %{ARCH}");
        let [version, arch] = ["version", "architecture"].map(|key| package[key].as_str().unwrap());
        assert_eq!(head, format!("{name} {version} {arch}"));
        let requires: BTreeSet<String> = rpm_lines(&rpm, "--requires")
            .into_iter()
            .filter(|line| !line.starts_with("rpmlib(") && !line.starts_with("config("))
            .filter(|line| !INTERPRETERS.contains(&line.as_str()))
            .collect();
        let mut planned = relations(package, "depends");
        planned.retain(|name| !INTERPRETERS.contains(&name.as_str()));
        let planned: BTreeSet<String> =
            planned.iter().map(|text| text.replace(['(', ')'], "")).collect();
        let requires: BTreeSet<String> =
            requires.iter().map(|text| text.replace(['(', ')'], "")).collect();
        assert_eq!(planned, requires, "{name}");
        let listed = rpm_lines(&rpm, "--list");
        let paths: BTreeSet<String> = package["members"]
            .as_array()
            .unwrap()
            .iter()
            .map(|member| member["path"].as_str().unwrap().to_owned())
            .collect();
        let listed: BTreeSet<String> =
            listed.into_iter().filter(|line| line.starts_with('/')).collect();
        assert_eq!(paths, listed, "{name}");
        let (estimate, size) = (&package["download"]["bytes"], fs::metadata(&rpm).unwrap().len());
        assert!(close(estimate.as_u64().unwrap(), size), "{name}: {estimate} {size}");
    }
}

fn rpm_lines(rpm: &Path, option: &str) -> BTreeSet<String> {
    rpm_list(rpm, option).lines().map(str::to_owned).collect()
}

/// Digests in the plan match the packed files, except where they depend on compression.
#[test]
fn digests_are_those_of_the_packed_files() {
    tools::need(&["dpkg-deb", "sha256sum"]);
    let set = Set::build();
    let plan = json(plan_of(&shards()).arg("--digests"));
    let root = set.scratch("root");
    let planned = packages(&plan, "deb");
    set.unpack_debs(&planned.keys().copied().collect::<Vec<_>>(), &root);
    let mut compared = 0;
    for member in planned.values().flat_map(|package| package["members"].as_array().unwrap()) {
        let path = member["path"].as_str().unwrap();
        let packed_later = path.ends_with(".kpack") || path.ends_with(".kpm");
        assert_eq!(member["sha256"].is_string(), member["kind"] == "file" && !packed_later);
        if let Some(digest) = member["sha256"].as_str() {
            assert_eq!(digest, example::sha256(&root.join(path.trim_start_matches('/'))), "{path}");
            compared += 1;
        }
    }
    assert!(compared > 20, "{compared}");
}

#[test]
fn a_group_needs_its_kernels_and_hosts_and_nothing_else() {
    let plan = json(&mut plan_of(&shards()));
    let groups = plan["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2 * GROUPS.len());
    for (group, sum) in GROUPS.iter().zip(groups.iter().filter(|sum| sum["format"] == "deb")) {
        assert_eq!(sum["group"], group.name);
        let kernels = kernels(group);
        assert_eq!(sum["packages"], serde_json::json!(["rocm-blas", kernels, "rocm-common"]));
        let planned = packages(&plan, "deb");
        for size in ["download", "installed"] {
            let all: u64 = ["rocm-blas", &kernels, "rocm-common"]
                .map(|name| planned[name][size]["bytes"].as_u64().unwrap())
                .iter()
                .sum();
            assert_eq!(sum[size]["bytes"].as_u64().unwrap(), all);
        }
    }
}

#[test]
fn graphviz_reads_the_graph() {
    tools::need(&["dot"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("packages.dot");
    fs::write(&file, tools::succeed(plan_of(&shards()).arg("--dot"))).unwrap();
    // One line for each node and edge, without drawing attributes.
    let plain = tools::succeed(Command::new("dot").arg("-Tplain").arg(&file));
    let edge = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().map(|word| word.trim_matches('"')).collect();
        (words[0] == "edge").then(|| (words[1].to_owned(), words[2].to_owned()))
    };
    let edges: BTreeSet<(String, String)> = plain.lines().filter_map(edge).collect();
    for group in &GROUPS {
        assert!(edges.contains(&(kernels(group), "rocm-blas".to_owned())), "{edges:?}");
        assert!(edges.contains(&(format!("rocm-{}", group.suffix), kernels(group))), "{edges:?}");
    }
    let across = edges.iter().any(|(from, to)| {
        GROUPS
            .iter()
            .filter(|a| from.ends_with(a.suffix))
            .any(|a| GROUPS.iter().any(|b| a.suffix != b.suffix && to.ends_with(b.suffix)))
    });
    assert!(!across, "no group needs another: {edges:?}");
}

#[test]
fn a_plan_is_the_same_anywhere() {
    let one = tools::succeed(plan_of(&shards()).args(["--json", "--jobs", "1"]));
    let folder = tempfile::tempdir().unwrap();
    let artifacts = folder.path().join("elsewhere");
    copy_shards(&artifacts);
    let mut moved = plan_of(&artifacts);
    moved.args(["--json", "--jobs", "3"]).env("TZ", "Asia/Tokyo").env("LC_ALL", "C");
    let [one, other] = [one, tools::succeed(&mut moved)].map(|text| {
        let mut plan: Value = serde_json::from_str(&text).unwrap();
        // Findings about the folders beside the shards, which the copy lacks.
        plan["findings"].as_array_mut().unwrap().retain(|finding| finding["code"] != "R004");
        plan
    });
    assert_eq!(one, other);
}

#[test]
fn a_plan_writes_nothing_and_takes_the_options_of_build() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = plan_of(&shards());
    command.args(["--format", "rpm", "--only", "blas", "--release", "2", "--prefix", "/opt/x-1"]);
    let plan = json(command.current_dir(folder.path()));
    assert_eq!(example::names(folder.path()), BTreeSet::new());
    assert!(packages(&plan, "deb").is_empty());
    let rpm = packages(&plan, "rpm");
    assert_eq!(rpm["rocm-blas"]["version"], "7.1.0-2");
    assert!(!rpm.contains_key("rocm-host-suite-sparse"));
    assert!(
        plan["left_out"]
            .as_array()
            .unwrap()
            .iter()
            .all(|path| { path.as_str().unwrap().starts_with("/opt/x-1/") })
    );
}

//! `plan --diff` and `--since`.

use super::*;

/// Shards with a new file.
fn changed_shards(root: &Path) {
    copy_shards(root);
    for group in &GROUPS {
        let stage = group.stage(root, "lib");
        fs::create_dir_all(stage.join("share")).unwrap();
        fs::write(stage.join("share/notes.txt"), "new\n").unwrap();
    }
}

#[test]
fn a_set_is_not_different_from_its_plan() {
    let set = Set::build();
    let folder = set.out();
    let receipt = set.file("packages.json");
    let plan = set.scratch("plan.json");
    fs::write(&plan, tools::succeed(plan_of(&shards()).arg("--json"))).unwrap();
    for other in [&folder, &receipt, &plan] {
        let mut command = plan_of(&shards());
        command.args(["--digests", "--exit-code", "--diff"]).arg(other);
        let text = tools::succeed(&mut command);
        assert!(text.contains("no differences\n"), "{text}");
        assert!(text.contains("kernel archives and manifests not compared"), "{text}");
    }
    // A receipt knows its code objects, so only manifests are left.
    let mut command = plan_of(&shards());
    let difference = json(command.args(["--digests", "--diff"]).arg(&receipt));
    assert_eq!(difference["uncompared"], 2);
}

/// The kernels of one group are of another build.
#[test]
fn other_code_objects_are_a_difference() {
    let set = Set::build();
    let artifacts = set.scratch("artifacts");
    copy_shards(&artifacts);
    let library = GROUPS[1].stage(&artifacts, "run").join("bin/exblas-bench");
    let mut bytes = fs::read(&library).unwrap();
    let tag = GROUPS[1].tag("bench", "gfx1151").into_bytes();
    let at = bytes.windows(tag.len()).position(|window| window == tag).unwrap();
    bytes[at] ^= 1;
    fs::write(&library, bytes).unwrap();
    let mut command = plan_of(&artifacts);
    let difference = json(command.args(["--digests", "--diff"]).arg(set.file("packages.json")));
    let changed = difference["changed"].as_array().unwrap();
    assert_eq!(changed.len(), 2, "{difference}");
    for package in changed {
        assert_eq!(package["name"], kernels(&GROUPS[1]));
        let files = serde_json::json!([
            { "path": "/opt/rocm-7.1/lib/.kpack/blas_lib_gfx1151.kpack", "changes": ["code"] }
        ]);
        assert_eq!(package["files_changed"], files);
    }
}

#[test]
fn differences_are_named() {
    let set = Set::build();
    let artifacts = set.scratch("artifacts");
    changed_shards(&artifacts);
    let mut command = plan_of(&artifacts);
    command.args(["--release", "2", "--digests", "--diff"]).arg(set.out());
    let text = tools::succeed(&mut command);
    assert!(text.contains("~ deb rocm-blas 7.1.0-1 → 7.1.0-2\n"), "{text}");
    assert!(text.contains("    + /opt/rocm-7.1/share/notes.txt\n"), "{text}");
    assert!(text.contains("~ /usr/share/doc/rocm-blas/changelog.Debian.gz (content)"), "{text}");
    assert!(!text.contains("depends"), "relations to the own version are the same: {text}");
    let difference = json(&mut command);
    let changed = difference["changed"].as_array().unwrap();
    let blas = changed.iter().find(|p| p["format"] == "rpm" && p["name"] == "rocm-blas").unwrap();
    let added = serde_json::json!(["/opt/rocm-7.1/share", "/opt/rocm-7.1/share/notes.txt"]);
    assert_eq!(blas["files_added"], added);
    let told = tools::told(command.arg("--exit-code"));
    assert!(told.ends_with("exit status: 1\n"), "{told}");
}

/// A plan estimates the sizes of package files: those of a receipt always differ.
#[test]
fn estimated_sizes_are_no_differences() {
    let set = Set::build();
    let mut command = plan_of(&shards());
    command.args(["--release", "2", "--diff"]).arg(set.file("packages.json"));
    let text = tools::succeed(&mut command);
    assert!(text.contains("~ deb rocm-blas 7.1.0-1 → 7.1.0-2\n~ deb "), "{text}");
    assert!(!text.contains("    download: ") && !text.contains(" → ~"), "{text}");
    let difference = json(&mut command);
    let changed = difference["changed"].as_array().unwrap().iter();
    let sizes = changed.flat_map(|package| [&package["download"], &package["installed"]]);
    let is_estimated =
        |size: &&Value| ["from", "to"].iter().any(|side| size[*side]["estimated"] == true);
    let estimated = sizes.filter(is_estimated).count();
    assert!(estimated > 24);
    let last = text.lines().last().unwrap();
    let start = format!("sizes of changed packages not compared: {estimated}; ");
    assert!(last.starts_with(&start), "{last}");

    let earlier = set.scratch("plan.json");
    let plan = json(&mut plan_of(&shards()));
    let resized = |plan: &mut Value| {
        let packages = all_of(plan);
        let common = named(packages, "rocm-common");
        assert!(packages[common]["installed"].get("estimated").is_none());
        packages[common]["installed"]["bytes"] = 1.into();
    };
    assert_diff_says(&plan, &earlier, resized, &["~ deb rocm-common", "    installed: 1 B → "]);
}

/// A package that differs by a moved path and an estimate has nothing to show.
#[test]
fn a_moved_path_is_named_once() {
    let folder = tempfile::tempdir().unwrap();
    let earlier = folder.path().join("plan.json");
    let mut plan = json(&mut plan_of(&shards()));
    let packages = all_of(&mut plan);
    let [host, common] = ["rocm-blas", "rocm-common"].map(|name| named(packages, name));
    packages[host]["download"]["bytes"] = 1.into();
    let members = packages[host]["members"].as_array_mut().unwrap();
    let path = "/opt/rocm-7.1/bin/exblas-bench";
    let member = members.remove(members.iter().position(|it| it["path"] == path).unwrap());
    packages[common]["members"].as_array_mut().unwrap().push(member);
    fs::write(&earlier, plan.to_string()).unwrap();
    let mut command = plan_of(&shards());
    command.args(["--exit-code", "--diff"]).arg(&earlier);
    let told = tools::told(&mut command);
    assert!(told.contains(&format!("moved deb {path}: rocm-common → rocm-blas\n")), "{told}");
    assert!(!told.contains("\n~ deb") && told.ends_with("exit status: 1\n"), "{told}");
}

/// A selector gives a file to another package, and one package is gone.
#[test]
fn moves_are_no_losses() {
    let set = Set::build();
    let configuration = set.scratch("config.json");
    let mut config: Value =
        serde_json::from_slice(&fs::read(example::configuration()).unwrap()).unwrap();
    config["selectors"] = serde_json::json!({
        "rocm-sparse-support": [{ "artifact": "host-suite-sparse" }]
    });
    fs::write(&configuration, config.to_string()).unwrap();
    let mut command = rockpack();
    command.arg("plan").arg("--artifacts").arg(shards()).arg("--config").arg(&configuration);
    command.args(["--version", VERSION, "--diff"]).arg(set.file("packages.json"));
    let difference = json(&mut command);
    let moved = difference["moved"].as_array().unwrap();
    assert!(!moved.is_empty());
    for path in moved {
        assert_eq!(path["from"], "rocm-host-suite-sparse");
        assert_eq!(path["to"], "rocm-sparse-support");
    }
    for (key, name) in [("added", "rocm-sparse-support"), ("removed", "rocm-host-suite-sparse")] {
        let list = difference[key].as_array().unwrap().iter();
        let names: Vec<&str> = list.map(|package| package["name"].as_str().unwrap()).collect();
        assert_eq!(names, [name; 2]);
    }
    let changed = difference["changed"].as_array().unwrap();
    let names: BTreeSet<&str> = changed.iter().map(|p| p["name"].as_str().unwrap()).collect();
    assert_eq!(names, BTreeSet::from(["rocm", "rocm-all-gpus"]), "metapackages need the new one");
}

#[test]
fn what_is_no_set_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("a.json", "[]"),
        ("b.json", r#"{"kind":"plan","schema":9,"prefix":"/x","packages":[]}"#),
        ("c.json", r#"{"kind":"other"}"#),
        ("d.deb", "!<arch>\n"),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    fs::create_dir(folder.path().join("empty")).unwrap();
    for (name, expected) in [
        ("empty", "has no packages"),
        ("a.json", "is neither a receipt nor a plan"),
        ("b.json", "schema 9"),
        ("c.json", "is a `other`, not a plan"),
        ("d.deb", "d.deb"),
        ("absent", "absent"),
    ] {
        let path = folder.path().join(name);
        let told = tools::told(plan_of(&shards()).arg("--diff").arg(&path));
        assert!(told.contains(expected), "{told}");
        assert!(told.contains("exit status: 2") || told.contains("exit status: 64"), "{told}");
    }
    let told = tools::told(plan_of(&shards()).arg("--exit-code"));
    assert!(told.contains("--diff") && told.contains("exit status: 64"), "{told}");
}

/// The packages of a plan.
fn all_of(plan: &mut Value) -> &mut Vec<Value> {
    plan["packages"].as_array_mut().unwrap()
}

/// The index of the library's package among those of a plan.
fn host_of(packages: &[Value]) -> usize {
    named(packages, "rocm-blas")
}

/// The index of a `.deb` among the packages of a plan.
fn named(packages: &[Value], name: &str) -> usize {
    let is_named = |package: &Value| package["format"] == "deb" && package["name"] == name;
    packages.iter().position(is_named).unwrap()
}

#[test]
fn what_looks_like_one_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let earlier = folder.path().join("plan.json");
    let plan = json(&mut plan_of(&shards()));
    assert_diff_says(&plan, &earlier, |_| (), &["no differences"]);
    // One version for two architectures, in either order.
    for before in [true, false] {
        let twin = |plan: &mut Value| {
            let packages = all_of(plan);
            let at = host_of(packages);
            let mut twin = packages[at].clone();
            twin["architecture"] = "arm64".into();
            twin["members"] = Value::Array(Vec::new());
            packages.insert(if before { at } else { at + 1 }, twin);
        };
        assert_diff_says(&plan, &earlier, twin, &["- deb rocm-blas 7.1.0-1 arm64 "]);
    }
    // The earlier version's content belongs to no package any more.
    let q =
        || serde_json::json!({ "path": "/opt/rocm-7.1/share/q", "kind": "file", "mode": 0o644 });
    let older = |plan: &mut Value| {
        let packages = all_of(plan);
        let mut older = packages[0].clone();
        older["version"] = "6.0-1".into();
        older["members"] = serde_json::json!([q()]);
        packages.insert(0, older);
    };
    assert_diff_says(&plan, &earlier, older, &["no differences"]);
    // Content for another machine is missing on this one.
    let elsewhere = |plan: &mut Value| {
        let packages = all_of(plan);
        let at = host_of(packages);
        let mut twin = packages[at].clone();
        twin["architecture"] = "arm64".into();
        packages.push(twin);
        packages[at]["members"].as_array_mut().unwrap().pop();
    };
    assert_diff_says(&plan, &earlier, elsewhere, &["    + /"]);
    // The same package for another machine.
    let other = |plan: &mut Value| {
        let packages = all_of(plan);
        let at = host_of(packages);
        packages[at]["architecture"] = "all".into();
    };
    assert_diff_says(&plan, &earlier, other, &["~ deb rocm-blas all → amd64"]);
    // Two paths that another prefix would turn into one.
    let moved = |plan: &mut Value| {
        plan["prefix"] = "/opt/a".into();
        let packages = all_of(plan);
        let at = host_of(packages);
        let members = packages[at]["members"].as_array_mut().unwrap();
        for (path, mode) in [("/opt/a/bin/su", 0o4755), ("/opt/rocm-7.1/bin/su", 0o755)] {
            members.push(serde_json::json!({ "path": path, "kind": "file", "mode": mode }));
        }
    };
    let lost = ["    - /opt/a/bin/su", "    - /opt/rocm-7.1/bin/su"];
    assert_diff_says(&plan, &earlier, moved, &lost);
}

fn assert_diff_says(
    plan: &Value,
    earlier: &Path,
    edit: impl FnOnce(&mut Value),
    expected: &[&str],
) {
    let mut edited = plan.clone();
    edit(&mut edited);
    fs::write(earlier, edited.to_string()).unwrap();
    let text = tools::succeed(plan_of(&shards()).arg("--diff").arg(earlier));
    let found = |line: &&str| text.lines().any(|found| found.starts_with(*line));
    assert!(expected.iter().all(found), "{expected:?} in {text}");
}

#[test]
fn a_path_of_two_earlier_packages_is_taken_from_both() {
    let folder = tempfile::tempdir().unwrap();
    let earlier = folder.path().join("plan.json");
    let mut plan = json(&mut plan_of(&shards()));
    let packages = all_of(&mut plan);
    let mut bench = packages[host_of(packages)].clone();
    let has_bench = |member: &Value| member["path"] == "/opt/rocm-7.1/bin/exblas-bench";
    bench["members"].as_array_mut().unwrap().retain(has_bench);
    assert_eq!(bench["members"].as_array().unwrap().len(), 1);
    bench["version"] = "7.0.0-1".into();
    *packages = ["aa-tools", "zz-tools"]
        .map(|name| {
            let mut package = bench.clone();
            package["name"] = name.into();
            package
        })
        .into();
    fs::write(&earlier, plan.to_string()).unwrap();
    let plan = json(plan_of(&shards()).arg("--since").arg(&earlier));
    let host = super::packages(&plan, "deb")["rocm-blas"];
    for kind in ["breaks", "replaces"] {
        let relations = relations(host, kind);
        for name in ["aa-tools", "zz-tools"] {
            assert!(relations.contains(&format!("{name} (<< 7.1.0-1)")), "{relations:?}");
        }
    }
}

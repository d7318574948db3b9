//! `plan --matrix`, `build --partition`, and `verify` of all parts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use support::example::{
    GROUPS, VERSION, build_of, configuration, contents, copy_set, copy_shards, kernels, names,
    rockpack, shards,
};
use support::program::rockpack_path;
use support::tools;
use support::waiting::Process;
use tempfile::TempDir;

/// The parts of the example set, and the set as a single build writes it.
pub(super) struct Case {
    folder: TempDir,
}

impl Case {
    pub(super) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn whole(&self) -> BTreeMap<String, Vec<u8>> {
        let out = self.path("whole");
        if !out.exists() {
            copy_set(&out);
        }
        contents(&out)
    }

    fn part(&self, part: &str, out: &str) -> Command {
        let mut command = build_of(&shards(), &self.path(out));
        command.args(["--partition", part]);
        command
    }

    /// Builds all parts at the same time, each into the folder that `out` names.
    fn build(&self, of: usize, out: impl Fn(usize) -> String) {
        let started: Vec<_> = (1..=of)
            .map(|index| {
                let mut command = self.part(&format!("{index}/{of}"), &out(index));
                Process::start(command.stdout(Stdio::null()).stderr(Stdio::piped()))
            })
            .collect();
        for build in started {
            let output = build.output();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
    }

    pub(super) fn verify(&self, folders: &[String]) -> Command {
        let mut command = rockpack();
        command.arg("verify").args(folders.iter().map(|folder| self.path(folder)));
        command
    }
}

fn matrix(of: usize) -> Vec<Value> {
    let mut command = rockpack();
    command.arg("plan").arg("--artifacts").arg(shards()).arg("--config").arg(configuration());
    command.args(["--version", VERSION, "--matrix", &of.to_string()]);
    let text = tools::succeed(&mut command);
    assert_eq!(text.lines().count(), 1, "one line fits into a variable of a workflow");
    let mut matrix: Value = serde_json::from_str(&text).unwrap();
    serde_json::from_value(matrix["include"].take()).unwrap()
}

fn packages(job: &Value) -> BTreeSet<String> {
    serde_json::from_value(job["packages"].clone()).unwrap()
}

#[test]
fn a_matrix_has_every_package_once_and_hosts_with_their_kernels() {
    let all = matrix(1).iter().flat_map(packages).collect::<BTreeSet<_>>();
    let receipt = Case::new().whole();
    let receipt: Value = serde_json::from_slice(&receipt["packages.json"]).unwrap();
    let built = receipt["packages"].as_array().unwrap().iter();
    assert_eq!(all, built.map(|package| package["id"].as_str().unwrap().to_owned()).collect());
    let matrices = [2, 3, 1000].map(|of| (of, matrix(of)));
    let largest = matrices[2].1[0]["bytes"].as_u64().unwrap();
    for (of, jobs) in matrices {
        assert!(jobs.len() <= of);
        for (index, job) in jobs.iter().enumerate() {
            assert_eq!(job["partition"], format!("{}/{}", index + 1, jobs.len()));
            assert!(!packages(job).is_empty());
        }
        let listed: Vec<String> = jobs.iter().flat_map(packages).collect();
        assert_eq!(listed.len(), all.len());
        assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), all);
        let host = jobs.iter().map(packages).find(|job| job.contains("rocm-blas")).unwrap();
        assert!(GROUPS.iter().all(|group| host.contains(&kernels(group))), "{host:?}");
        // No part is larger than an even share and the largest unit together.
        let sizes: Vec<u64> = jobs.iter().map(|job| job["bytes"].as_u64().unwrap()).collect();
        let share = sizes.iter().sum::<u64>() / sizes.len() as u64;
        assert!(*sizes.iter().max().unwrap() <= largest.max(share + largest), "{sizes:?}");
    }
}

#[test]
fn a_matrix_with_one_large_part_says_why() {
    let note = |of: &str| {
        let mut command = rockpack();
        command.arg("plan").arg(shards()).arg("--config").arg(configuration());
        command.args(["--version", VERSION, "--matrix", of]);
        String::from_utf8(command.output().unwrap().stderr).unwrap()
    };
    let said = note("1000");
    let reason = "to compress: a host package and its kernel packages cannot be divided";
    assert!(said.contains("note: part 1/") && said.contains(reason), "{said}");
    assert!(!note("1").contains("cannot be divided"));
}

#[test]
fn parts_are_what_one_machine_builds() {
    let case = Case::new();
    let whole = case.whole();
    for of in [1, 3, 12] {
        let folders: Vec<String> = (1..=of).map(|index| format!("{of}/{index}")).collect();
        case.build(of, |index| folders[index - 1].clone());
        let mut union = BTreeMap::new();
        for (index, folder) in folders.iter().enumerate() {
            let mut part = contents(&case.path(folder));
            let receipt = format!("packages-{}-of-{of}.json", index + 1);
            assert!(part.remove(&receipt).is_some(), "{:?}", part.keys());
            for (name, bytes) in part {
                assert!(union.insert(name, bytes).is_none(), "in two parts");
            }
        }
        let join = case.path(&format!("{of}.json"));
        let said = tools::succeed(
            case.verify(&folders).arg("--against").arg(shards()).arg("--join").arg(&join),
        );
        let digest = support::example::sha256(&case.path("whole/packages.json"));
        assert!(said.contains(&digest) && said.contains("all checks passed"), "{said}");
        union.insert("packages.json".to_owned(), fs::read(join).unwrap());
        assert!(union == whole, "{of} parts");
    }
}

#[test]
fn parts_can_share_a_folder() {
    let case = Case::new();
    case.build(3, |_| "out".to_owned());
    let out = case.path("out");
    tools::run(&mut case.verify(&["out".to_owned()]));
    // Builds again over the earlier parts.
    case.build(3, |_| "out".to_owned());
    tools::run(case.verify(&["out".to_owned()]).arg("--join").arg(out.join("packages.json")));
    for index in 1..=3 {
        fs::remove_file(out.join(format!("packages-{index}-of-3.json"))).unwrap();
    }
    assert!(contents(&out) == case.whole());
    tools::run(&mut case.verify(&["out".to_owned()]));
}

#[test]
fn sets_and_parts_of_others_are_not_mixed() {
    let case = Case::new();
    case.whole();
    let said = tools::told(&mut case.part("1/2", "whole"));
    assert!(said.contains("a whole set") && said.contains("exit status: 64"), "{said}");
    tools::run(&mut case.part("1/2", "parts"));
    let said = tools::told(&mut build_of(&shards(), &case.path("parts")));
    assert!(said.contains("one of 2 parts") && said.contains("exit status: 64"), "{said}");
    let said = tools::told(&mut case.part("1/3", "parts"));
    assert!(said.contains("one of 3 parts") && said.contains("exit status: 64"), "{said}");
    for bad in ["0/2", "3/2", "2", "one"] {
        let said = tools::told(&mut case.part(bad, "bad"));
        assert!(
            said.contains("2/3, the second of three") && said.contains("exit status: 64"),
            "{said}"
        );
    }
}

/// The codes of a verification's failed checks.
fn failed(command: &mut Command) -> BTreeSet<String> {
    let said = tools::told(command);
    assert!(said.contains("exit status: 1"), "{said}");
    assert!(!said.contains("the set whose packages.json"), "{said}");
    let codes = said.lines().filter_map(|line| line.strip_prefix("failed: ")?.split(' ').next());
    codes.map(str::to_owned).collect()
}

#[test]
fn what_is_missing_or_of_another_set_is_found() {
    let case = Case::new();
    case.build(2, |index| index.to_string());
    let folders = ["1", "2"].map(str::to_owned);
    for alone in &folders {
        let found = failed(&mut case.verify(std::slice::from_ref(alone)));
        assert!(found.contains("V080"), "{found:?}");
    }
    // The same packages with another timestamp, compression or release. Parts of another release belong to
    // another set, whose first part is missing.
    for (name, options, code) in [
        ("release", ["--release", "2"], "V080"),
        ("compression", ["--compression", "xz"], "V081"),
        ("exclude", ["--only", "blas"], "V081"),
    ] {
        tools::run(case.part("2/2", name).args(options));
        let found = failed(&mut case.verify(&["1".to_owned(), name.to_owned()]));
        assert!(found.contains(code), "{name}: {found:?}");
    }
    tools::run(case.part("2/2", "stamp").env("SOURCE_DATE_EPOCH", "1790000000"));
    let found = failed(&mut case.verify(&["1".to_owned(), "stamp".to_owned()]));
    assert!(found.contains("V081"), "{found:?}");
    // The same part twice.
    let twice = ["1", "2", "stamp"].map(str::to_owned);
    fs::remove_dir_all(case.path("stamp")).unwrap();
    tools::run(&mut case.part("2/2", "stamp"));
    assert!(failed(&mut case.verify(&twice)).contains("V081"));
    // verify writes a joined receipt only if everything holds.
    let join = case.path("join.json");
    failed(case.verify(&folders[..1]).arg("--join").arg(&join));
    assert!(!join.exists());
    tools::run(&mut case.verify(&folders));
}

#[test]
fn packages_in_the_wrong_part_are_found() {
    let case = Case::new();
    case.build(2, |index| index.to_string());
    let folders = ["1", "2"].map(str::to_owned);
    let receipts = [1, 2].map(|index| case.path(&format!("{index}/packages-{index}-of-2.json")));
    let read = |path: &Path| -> Value { serde_json::from_slice(&fs::read(path).unwrap()).unwrap() };
    let [first, second] = receipts.each_ref().map(|path| read(path));
    // A package moved to the other part, with its record.
    let (mut from, mut to) = (first.clone(), second.clone());
    let moved = from["packages"].as_array_mut().unwrap().remove(0);
    let name = moved["file_name"].as_str().unwrap().to_owned();
    to["packages"].as_array_mut().unwrap().push(moved);
    write_json(&receipts[0], &from);
    write_json(&receipts[1], &to);
    fs::rename(case.path("1").join(&name), case.path("2").join(&name)).unwrap();
    assert!(failed(&mut case.verify(&folders)).contains("V082"));
    // Package and record lost.
    write_json(&receipts[1], &second);
    fs::remove_file(case.path("2").join(&name)).unwrap();
    assert!(failed(&mut case.verify(&folders)).contains("V082"));
    // A record without its package.
    write_json(&receipts[0], &first);
    assert!(failed(&mut case.verify(&folders)).contains("V003"));
    tools::run(&mut case.part("1/2", "1"));
    tools::run(&mut case.verify(&folders));
    // A receipt under the name of another part.
    fs::rename(&receipts[1], case.path("2/packages-1-of-2.json")).unwrap();
    let said = tools::told(&mut case.verify(&folders));
    assert!(said.contains("is not the receipt of the part in its file name"), "{said}");
}

fn write_json(path: &Path, value: &Value) {
    fs::write(path, serde_json::to_string_pretty(value).unwrap() + "\n").unwrap();
}

#[test]
fn a_part_under_the_name_of_a_whole_set_is_found() {
    let case = Case::new();
    for of in [1, 2] {
        let folders: Vec<String> = (1..=of).map(|index| format!("{of}/{index}")).collect();
        case.build(of, |index| folders[index - 1].clone());
        tools::run(&mut case.verify(&folders));
        let last = case.path(&folders[of - 1]);
        let named = last.join(format!("packages-{of}-of-{of}.json"));
        fs::rename(&named, last.join("packages.json")).unwrap();
        let found = failed(&mut case.verify(&folders));
        assert_eq!(found, BTreeSet::from(["V083".to_owned()]));
        fs::rename(last.join("packages.json"), &named).unwrap();
        tools::run(&mut case.verify(&folders));
    }
}

/// A plan cannot notice a file that has other content of the same size on one machine.
#[test]
fn machines_that_read_different_files_are_told_apart_by_the_artifacts() {
    let case = Case::new();
    let other = case.path("shards");
    copy_shards(&other);
    let header = names(&GROUPS[0].stage(&other, "lib").join("lib/rocblas/library"))
        .into_iter()
        .find(|name| name.ends_with("fallback.dat"))
        .unwrap();
    for group in &GROUPS {
        let file = group.stage(&other, "lib").join("lib/rocblas/library").join(&header);
        if let Ok(mut bytes) = fs::read(&file) {
            *bytes.last_mut().unwrap() ^= 1;
            fs::write(file, bytes).unwrap();
        }
    }
    let of = matrix(2);
    for (index, job) in of.iter().enumerate() {
        let has_host = packages(job).contains("rocm-blas");
        let artifacts = if has_host { other.clone() } else { shards() };
        let out = case.path(&(index + 1).to_string());
        tools::run(
            build_of(&artifacts, &out)
                .args(["--partition", &format!("{}/{}", index + 1, of.len())]),
        );
    }
    let folders = ["1", "2"].map(str::to_owned);
    let found = failed_against(case.verify(&folders).arg("--against").arg(shards()));
    assert!(found.contains("V013"), "{found}");
}

fn failed_against(command: &mut Command) -> String {
    let said = tools::told(command);
    assert!(said.contains("exit status: 1"), "{said}");
    said
}

#[test]
fn parallel_jobs_of_this_machine() {
    tools::need(&["jq", "cmp"]);
    let case = Case::new();
    let whole = case.whole();
    let mut script = Command::new(tools::repository("examples/many-machines/parallel.sh"));
    script.env("ROCKPACK", rockpack_path()).env_remove("SOURCE_DATE_EPOCH");
    script.arg("4").arg(case.path("parts")).arg(shards()).arg("--config").arg(configuration());
    let said = tools::succeed(script.args(["--version", VERSION]));
    assert!(said.contains("all checks passed"), "{said}");
    assert_eq!(names(&case.path("parts")), whole.keys().cloned().collect());
    for name in whole.keys() {
        let pair = ["parts", "whole"].map(|folder| case.path(folder).join(name));
        tools::run(Command::new("cmp").args(pair));
    }
}

/// Runs a script as a step of the workflow, with the matrix variables of `job`.
fn step(case: &Case, script: &str, job: Option<&Value>, outputs: &Path) {
    let partition = job.map_or("", |job| job["partition"].as_str().unwrap());
    let script = script.replace("${{ matrix.partition }}", partition);
    assert!(!script.contains("${{"), "{script}");
    let mut shell = Command::new("bash");
    shell.args(["-e", "-o", "pipefail", "-c", &script]).current_dir(case.folder.path());
    shell.env("GITHUB_OUTPUT", outputs).env_remove("SOURCE_DATE_EPOCH");
    shell.envs([("VERSION", VERSION), ("CONFIG", "config.json"), ("PARTS", "4")]);
    tools::run(&mut shell);
}

/// Runs the workflow's scripts as a runner does, one job after the other.
#[test]
fn the_workflow_builds_the_set() {
    const READ: &str =
        "import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin)['jobs'], sys.stdout)";
    tools::need(&["python3", "bash"]);
    let workflow = fs::File::open(tools::repository("examples/many-machines/github-actions.yml"));
    let read =
        Command::new("python3").args(["-c", READ]).stdin(workflow.unwrap()).output().unwrap();
    if !read.status.success() {
        tools::skip("needs python3-yaml");
    }
    let jobs: Value = serde_json::from_slice(&read.stdout).unwrap();
    let case = Case::new();
    let whole = case.whole();
    // The files that actions/download-artifact and actions/checkout provide.
    fs::create_dir(case.path("bin")).unwrap();
    symlink(rockpack_path(), case.path("bin/rockpack")).unwrap();
    symlink(shards(), case.path("shards")).unwrap();
    fs::copy(configuration(), case.path("config.json")).unwrap();
    let outputs = case.path("outputs");
    step(&case, only_script(&jobs, "plan"), None, &outputs);
    let line = fs::read_to_string(&outputs).unwrap();
    let matrix: Value = serde_json::from_str(line.strip_prefix("matrix=").unwrap()).unwrap();
    for job in matrix["include"].as_array().unwrap() {
        // Each runner has its own folder; the download merges all of them.
        step(&case, only_script(&jobs, "build"), Some(job), &outputs);
    }
    step(&case, only_script(&jobs, "join"), None, &outputs);
    assert!(contents(&case.path("packages")) == whole);
}

fn only_script<'a>(jobs: &'a Value, job: &str) -> &'a str {
    let steps = jobs[job]["steps"].as_array().unwrap().iter();
    let scripts: Vec<&str> = steps.filter_map(|step| step["run"].as_str()).collect();
    assert_eq!(scripts.len(), 1);
    scripts[0]
}

//! Parts of a set as jobs of an array, numbered by Slurm or Kubernetes.

use std::fs;
use std::process::Command;

use support::example::{VERSION, configuration, names, shards};
use support::program::rockpack_path;
use support::tools;

use super::partition::Case;

/// The environment variables of a job in a Slurm array.
const SLURM: [&str; 4] = [
    "SLURM_ARRAY_TASK_ID",
    "SLURM_ARRAY_TASK_MIN",
    "SLURM_ARRAY_TASK_STEP",
    "SLURM_ARRAY_TASK_COUNT",
];

/// The environment variable of a job in a Kubernetes Indexed Job.
const KUBERNETES: &str = "JOB_COMPLETION_INDEX";

/// The variables that give a job its number.
#[derive(Debug, Clone, Copy)]
enum Number {
    /// All variables of Slurm.
    Slurm([&'static str; 4]),
    /// Only the first variable of Slurm.
    SlurmTask(&'static str),
    /// The variable of Kubernetes.
    Kubernetes(&'static str),
    /// No variable.
    Absent,
}

/// The script that builds one job's part of a set in `parts` parts.
fn job(parts: &str, number: Number) -> Command {
    let mut script = Command::new(tools::repository("examples/many-machines/part.sh"));
    script.env_remove("SOURCE_DATE_EPOCH").env_remove(KUBERNETES);
    for name in SLURM {
        script.env_remove(name);
    }
    match number {
        Number::Slurm(values) => script.envs(SLURM.into_iter().zip(values)),
        Number::SlurmTask(task) => script.env(SLURM[0], task),
        Number::Kubernetes(index) => script.env(KUBERNETES, index),
        Number::Absent => &mut script,
    };
    script.arg(parts);
    script
}

#[test]
fn jobs_of_an_array_build_the_part_of_their_number() {
    for (number, part) in [
        (Number::Slurm(["1", "1", "1", "3"]), Some("1/3")),
        (Number::Slurm(["3", "1", "1", "3"]), Some("3/3")),
        (Number::Slurm(["0", "0", "1", "3"]), Some("1/3")),
        (Number::Slurm(["4", "0", "2", "3"]), Some("3/3")),
        (Number::Kubernetes("0"), Some("1/3")),
        (Number::Kubernetes("2"), Some("3/3")),
        (Number::Kubernetes("3"), None),
        (Number::Slurm(["4", "1", "1", "4"]), None),
        (Number::Slurm(["2", "1", "1", "2"]), None),
        (Number::Absent, None),
    ] {
        let mut script = job("3", number);
        let output = script.env("ROCKPACK", "echo").args(["out", "in"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let call = |part| format!("build --artifacts in --partition {part} --out out\n");
        assert_eq!(said, part.map_or_else(String::new, call), "{number:?}");
        let code = if part.is_some() { 0 } else { 64 };
        assert_eq!(output.status.code(), Some(code), "{number:?}");
    }
}

#[test]
fn parts_of_jobs_of_an_array_are_the_set() {
    let case = Case::new();
    let whole = case.whole();
    let out = case.path("parts");
    for number in [Number::SlurmTask("1"), Number::Kubernetes("1")] {
        let mut script = job("2", number);
        script.env("ROCKPACK", rockpack_path()).arg(&out).arg(shards());
        tools::run(script.arg("--config").arg(configuration()).args(["--version", VERSION]));
    }
    let mut join = case.verify(&["parts".to_owned()]);
    tools::run(join.arg("--against").arg(shards()).arg("--join").arg(out.join("packages.json")));
    // The folder also has the receipts of the two parts.
    assert_eq!(names(&out).difference(&names(&case.path("whole"))).count(), 2);
    for (name, bytes) in whole {
        assert!(fs::read(out.join(&name)).unwrap() == bytes, "{name}");
    }
}

//! Parts of a set as jobs of an array, which Slurm and Kubernetes number.

use std::fs;
use std::process::Command;

use support::example::{VERSION, configuration, names, shards};
use support::program::rockpack_path;
use support::tools;

use super::partition::Case;

/// The script that builds the part of one job, as the job with these variables would run it.
fn numbered(parts: &str, variables: &[(&str, &str)]) -> Command {
    let mut script = Command::new(tools::repository("examples/many-machines/part.sh"));
    let all = ["TASK_ID", "TASK_MIN", "TASK_STEP", "TASK_COUNT"];
    all.iter().for_each(|name| drop(script.env_remove(format!("SLURM_ARRAY_{name}"))));
    script.env_remove("JOB_COMPLETION_INDEX").env_remove("SOURCE_DATE_EPOCH");
    script.envs(variables.iter().copied()).arg(parts);
    script
}

#[test]
fn jobs_of_an_array_build_the_part_of_their_number() {
    let slurm = |id, first, step, count| {
        let names = ["TASK_ID", "TASK_MIN", "TASK_STEP", "TASK_COUNT"];
        let values = [id, first, step, count];
        names
            .iter()
            .zip(values)
            .map(|(name, value)| (format!("SLURM_ARRAY_{name}"), value))
            .collect()
    };
    let index = |index| vec![("JOB_COMPLETION_INDEX".to_owned(), index)];
    let cases: [(Vec<(String, &str)>, Option<&str>); 10] = [
        (slurm("1", "1", "1", "3"), Some("1/3")),
        (slurm("3", "1", "1", "3"), Some("3/3")),
        (slurm("0", "0", "1", "3"), Some("1/3")),
        (slurm("4", "0", "2", "3"), Some("3/3")),
        (index("0"), Some("1/3")),
        (index("2"), Some("3/3")),
        (index("3"), None),
        (slurm("4", "1", "1", "4"), None),
        (slurm("2", "1", "1", "2"), None),
        (Vec::new(), None),
    ];
    for (variables, part) in cases {
        let variables: Vec<(&str, &str)> =
            variables.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let mut script = numbered("3", &variables);
        let output = script.env("ROCKPACK", "echo").args(["out", "in"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let expected = part.map_or_else(String::new, |part| {
            format!("build --artifacts in --partition {part} --out out\n")
        });
        let code = if part.is_some() { 0 } else { 64 };
        assert_eq!((said.as_ref(), output.status.code()), (expected.as_str(), Some(code)));
    }
}

#[test]
fn parts_of_jobs_of_an_array_are_the_set() {
    let case = Case::new();
    let whole = case.whole();
    let out = case.path("parts");
    for variables in [[("SLURM_ARRAY_TASK_ID", "1")], [("JOB_COMPLETION_INDEX", "1")]] {
        let mut script = numbered("2", &variables);
        script.env("ROCKPACK", rockpack_path()).arg(&out).arg(shards());
        tools::run(script.arg("--config").arg(configuration()).args(["--version", VERSION]));
    }
    let mut join = case.verify(&["parts".to_owned()]);
    tools::run(join.arg("--against").arg(shards()).arg("--join").arg(out.join("packages.json")));
    assert_eq!(names(&out).difference(&names(&case.path("whole"))).count(), 2);
    for (name, bytes) in whole {
        assert!(fs::read(out.join(&name)).unwrap() == bytes, "{name}");
    }
}

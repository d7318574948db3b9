//! The action for GitHub: its description judged by zizmor, its script run as a job does.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::example::{configuration, names, shards};
use support::program::repository;
use support::tools::{need, said, succeed, told};
use tempfile::TempDir;

use crate::install::own::wheel;

const ACTION: &str = ".github/actions/rockpack";

/// zizmor checks the schema, and looks for inputs that would be run as commands. Its exit status is not 0 for
/// anything that it finds.
#[test]
fn nothing_is_wrong_with_the_action() {
    need(&["zizmor", "shellcheck"]);
    let action = repository(ACTION);
    let zizmor = |file: &Path| {
        let mut zizmor = Command::new("zizmor");
        told(zizmor.args(["--offline", "--strict-collection", "--pedantic"]).arg(file))
    };
    let text = zizmor(&action.join("action.yml"));
    assert!(text.ends_with("exit status: 0\n"), "{text}");
    said(Command::new("shellcheck").arg(action.join("run.sh")));

    // This test can fail.
    let description = fs::read_to_string(action.join("action.yml")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join("action.yml");
    for (right, wrong, finding) in [
        ("shell: bash", "shel: bash", "schema"),
        ("run: '\"$GITHUB_ACTION_PATH/run.sh\"'", "run: ${{ inputs.arguments }}", "injection"),
    ] {
        assert!(description.contains(right), "{right}");
        fs::write(&odd, description.replace(right, wrong)).unwrap();
        let text = zizmor(&odd);
        assert!(!text.ends_with("exit status: 0\n") && text.contains(finding), "{text}");
    }
}

/// A job whose pip finds our wheel alone.
struct Job(TempDir);

impl Job {
    fn new() -> Self {
        need(&["wheel", "strip", "git", "xargs"]);
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The step with these arguments, in the job's folder.
    fn step(&self, arguments: &str) -> Command {
        let mut step = Command::new(repository(ACTION).join("run.sh"));
        step.current_dir(self.0.path()).env("RUNNER_TEMP", self.path("temporary"));
        for file in ["OUTPUT", "PATH", "STEP_SUMMARY"] {
            step.env(format!("GITHUB_{file}"), self.path(file));
        }
        step.env("PIP_NO_INDEX", "1").env("PIP_FIND_LINKS", wheel().parent().unwrap());
        step.env("ROCKPACK_ACTION_VERSION", env!("CARGO_PKG_VERSION"));
        step.env("ROCKPACK_ACTION_OUT", "packages").env("ROCKPACK_ACTION_SUMMARY", "true");
        step.env("ROCKPACK_ACTION_ARGUMENTS", arguments);
        step
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }
}

#[test]
fn a_job_builds_packages_by_the_action() {
    let job = Job::new();
    // Of several lines, with a word that a shell would run.
    let arguments = format!(
        "--artifacts {}\n  --config '{}' --version 7.1.0\n\
         --repo \"a repository\" --repo-set 'origin=Example $(touch run) `touch run`; touch run'\n",
        shards().display(),
        configuration().display()
    );
    said(&mut job.step(&arguments));

    let text = job.read("OUTPUT");
    let outputs: BTreeMap<&str, &str> =
        text.lines().map(|line| line.split_once('=').unwrap()).collect();
    let expected = [
        ("architectures", r#"["gfx1100","gfx1101","gfx1102","gfx1151","gfx1200","gfx1201"]"#),
        ("packages", "24"),
        ("receipt", "packages/packages.json"),
        ("set", "packages"),
        ("version", "7.1.0"),
    ];
    assert_eq!(outputs, BTreeMap::from(expected));
    // Each is an output of the action.
    let description = fs::read_to_string(repository(ACTION).join("action.yml")).unwrap();
    for name in outputs.keys() {
        let value = format!("  {name}:\n");
        assert!(description.contains(&value), "{name}");
        assert!(description.contains(&format!("steps.build.outputs.{name} }}}}")), "{name}");
    }
    assert!(job.path(outputs["receipt"]).is_file());
    assert!(job.read("STEP_SUMMARY").starts_with("# Packages 7.1.0-1\n"));
    let release = job.read("a repository/dists/stable/Release");
    assert!(release.contains("Origin: Example $(touch run) `touch run`; touch run\n"), "{release}");
    assert!(!job.path("run").exists());

    // Later steps find the program, and no other Python.
    let folder = job.read("PATH");
    assert_eq!(names(Path::new(folder.trim())), BTreeSet::from(["rockpack".to_owned()]));
    let mut verify = Command::new(Path::new(folder.trim()).join("rockpack"));
    succeed(verify.arg("verify").arg(job.path("packages")));
}

#[test]
fn a_step_that_fails_has_no_outputs() {
    let job = Job::new();
    for (arguments, out, reason) in [
        ("--artifacts absent --version 7.1.0 --config absent.json", "packages", "absent"),
        ("--artifacts 'unclosed", "packages", "unmatched single quote"),
        ("--version 7.1.0", "packages\nversion=9", "::error::"),
        ("--version 7.1.0", "", "::error::"),
    ] {
        let text = told(job.step(arguments).env("ROCKPACK_ACTION_OUT", out));
        assert!(!text.ends_with("exit status: 0\n") && text.contains(reason), "{text}");
        assert!(!job.path("OUTPUT").exists() || job.read("OUTPUT").is_empty());
    }
}

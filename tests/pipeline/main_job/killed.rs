//! A killed run leaves no package under a final name, and the next run needs no clean-up.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use support::example::{GROUPS, build_of, contents, copy_shards, names};
use support::tools;
use support::waiting::{Process, until};

/// Bytes that do not compress, so that writing packages takes a while.
pub(crate) fn noise() -> Vec<u8> {
    let mut state = 1_u64;
    let noise = std::iter::repeat_with(|| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state.to_be_bytes()[0]
    });
    noise.take(6 << 20).collect()
}

/// The example shards with a larger host file.
pub(crate) fn larger_shards(root: &Path) {
    copy_shards(root);
    fs::write(GROUPS[0].stage(root, "lib").join("lib/noise.bin"), noise()).unwrap();
}

/// The staged files of a running build.
pub(crate) fn staged(out: &Path) -> BTreeSet<String> {
    let hidden = names(out).into_iter().find(|name| name.starts_with(".rockpack-staging-"));
    hidden.map(|name| names(&out.join(name))).unwrap_or_default()
}

pub(crate) fn visible(out: &Path) -> BTreeSet<String> {
    names(out).into_iter().filter(|name| !name.starts_with('.')).collect()
}

/// Starts a build and kills it as soon as `moment` has come. Returns whether it was still running then.
fn kill_at(artifacts: &Path, out: &Path, moment: &dyn Fn(&Path) -> bool) -> bool {
    let mut command = build_of(artifacts, out);
    let mut build = Process::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
    let mut come = || moment(out) || build.has_ended().is_some();
    until("the moment has come", || come().then_some(()));
    build.kill()
}

/// When to kill: a name, and a test of the output folder.
type Moment<'a> = (&'a str, &'a dyn Fn(&Path) -> bool);

struct Case {
    folder: tempfile::TempDir,
    /// The output of an undisturbed run.
    whole: BTreeMap<String, Vec<u8>>,
}

impl Case {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        larger_shards(&folder.path().join("shards"));
        let out = folder.path().join("whole");
        tools::run(&mut build_of(&folder.path().join("shards"), &out));
        let whole = contents(&out);
        Self { folder, whole }
    }

    fn artifacts(&self) -> PathBuf {
        self.folder.path().join("shards")
    }

    fn out(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Fails unless the next run into `out` gives the whole set, with nothing beside it.
    fn recovers(&self, out: &Path) {
        tools::run(&mut build_of(&self.artifacts(), out));
        assert!(contents(out) == self.whole, "{:?}", names(out));
    }
}

#[test]
fn a_run_killed_while_it_writes_leaves_nothing_visible() {
    let case = Case::new();
    let host = "rocm-blas-7.1.0-1.x86_64.rpm".to_owned();
    let moments: [Moment<'_>; 4] = [
        ("begun", &|out| !names(out).is_empty()),
        ("first package", &|out| !staged(out).is_empty()),
        ("host package", &|out| staged(out).contains(&host)),
        ("half", &|out| staged(out).len() >= 11),
    ];
    for (name, moment) in moments {
        let out = case.out(name);
        assert!(kill_at(&case.artifacts(), &out, moment), "{name}: the run was done already");
        assert_eq!(visible(&out), BTreeSet::new(), "{name}");
    }
    // Two killed runs in one folder, then a successful one.
    let out = case.out("first package");
    assert!(kill_at(&case.artifacts(), &out, &|out| staged(out).contains(&host)));
    for (name, _) in moments {
        case.recovers(&case.out(name));
    }
}

#[test]
fn a_run_killed_over_an_earlier_set_leaves_that_set() {
    let case = Case::new();
    let out = case.out("out");
    tools::run(build_of(&case.artifacts(), &out).args(["--release", "0"]));
    let earlier = contents(&out);
    let killed = kill_at(&case.artifacts(), &out, &|out| staged(out).len() >= 11);
    assert!(killed, "the run was done already");
    let left = contents_of_visible(&out);
    assert!(left == earlier, "{:?}", names(&out));
    case.recovers(&out);
}

fn contents_of_visible(out: &Path) -> BTreeMap<String, Vec<u8>> {
    visible(out).into_iter().map(|name| (name.clone(), fs::read(out.join(name)).unwrap())).collect()
}

/// The commit is short. Wherever the kill meets it, a receipt means a whole set, and the next run completes
/// or undoes the killed run's commit.
#[test]
fn a_run_killed_while_it_commits_is_put_right() {
    let case = Case::new();
    let moments: [Moment<'_>; 3] = [
        ("receipt staged", &|out| staged(out).contains("packages.json")),
        ("first visible", &|out| !visible(out).is_empty()),
        ("half visible", &|out| visible(out).len() >= 11),
    ];
    for (name, moment) in moments {
        let out = case.out(name);
        kill_at(&case.artifacts(), &out, moment);
        if visible(&out).contains("packages.json") {
            assert!(contents_of_visible(&out) == case.whole, "{name}");
        }
        case.recovers(&out);
    }
}

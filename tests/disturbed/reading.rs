//! Commands that only read: a disturbed run reports the fault, and never a wrong result.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, OnceLock};

use support::archives::{Packing, pack};
use support::example::{rockpack, shards};
use support::program::scratch;
use support::sweep::is_sliced;
use support::tools::{self, need};

use crate::publications;
use crate::room::{
    ALL, ALL_AND_THREADS, Call, Fault, Struck, calls, figures, listed, places_of_slice, strike,
};
use crate::sweep::count;

pub const TOOLS: [&str; 3] = ["gcc", "tar", "zstd"];

/// The input: a shard with two artifacts behind links, one of them packed; a link to the shard; a set made
/// from it; and a repository whose packages lack the signatures that its `.repo` file tells clients to
/// require.
pub struct Input {
    room: PathBuf,
    /// The undisturbed run of each command, and its calls.
    wholes: Vec<OnceLock<(Struck, Vec<Call>)>>,
}

/// The input, which no command changes.
static MADE: LazyLock<Input> = LazyLock::new(|| {
    let mut input = Input { room: scratch("input").canonicalize().unwrap(), wholes: Vec::new() };
    Input::fill(&input.room);
    input.wholes = input.commands().iter().map(|_| OnceLock::new()).collect();
    input
});

impl Input {
    pub fn made() -> &'static Self {
        &MADE
    }

    fn fill(root: &Path) {
        let shard = shards().join("gfx1151-build");
        tools::run(Command::new("cp").arg("-r").arg(shard).arg(root.join("s")));
        let packed = pack(&root.join("s/host-suite-sparse_lib_generic"), Packing::Zstd);
        fs::create_dir(root.join("elsewhere")).unwrap();
        for artifact in [packed, root.join("s/blas_run_gfx1151")] {
            let name = artifact.file_name().unwrap();
            fs::rename(&artifact, root.join("elsewhere").join(name)).unwrap();
            symlink(Path::new("../elsewhere").join(name), &artifact).unwrap();
        }
        fs::create_dir(root.join("linked")).unwrap();
        symlink("../s", root.join("linked/s")).unwrap();
        let mut build = rockpack();
        build.args(["build", "--sbom", "--version", "7.1.0", "--artifacts"]).arg(root.join("s"));
        tools::run(build.arg("--out").arg(root.join("set")));
        let mut publish = rockpack();
        publish.arg("repo").arg(root.join("set")).arg("--out").arg(root.join("repository"));
        tools::run(&mut publish);
        fs::write(root.join("repository/own.repo"), "[own]\ngpgcheck=1\n").unwrap();
    }

    /// The commands, with `{}` for the room, and their exit codes.
    fn commands(&self) -> Vec<(Command, i32)> {
        let room = self.room.to_str().unwrap();
        let lines = [
            ("verify {}/set", 0),
            ("verify {}/set --against {}/s --json", 0),
            ("verify {}/repository", 1),
            ("verify {}/s", 0),
            ("inspect {}/s/blas_lib_gfx1151 --json", 0),
            ("verify {}/s/host-suite-sparse_lib_generic.tar.zst", 0),
            ("inspect {}/s/host-suite-sparse_lib_generic.tar.zst --json", 0),
            ("discover {}/linked", 0),
            ("plan --version 7.1.0 --artifacts {}/linked", 0),
        ];
        let command = |(line, code): (&str, i32)| {
            let mut command = rockpack();
            command.args(line.replace("{}", room).split(' '));
            (command, code)
        };
        lines.into_iter().map(command).collect()
    }

    /// Disturbs every command at some or all of its calls.
    pub fn sweep(
        &self,
        (kinds, act, some): (&str, &str, usize),
        judge: impl Fn(&str, &Struck, &Struck),
    ) {
        for ((mut command, code), whole) in self.commands().into_iter().zip(&self.wholes) {
            let room = self.room.as_path();
            let (whole, made) = whole.get_or_init(|| listed(&mut command, room, ALL_AND_THREADS));
            assert_eq!(whole.code(), Some(code), "{command:?}: {}", whole.stderr);
            let printed = String::from_utf8_lossy(&whole.output.stdout).contains("V074");
            assert_eq!(printed, code == 1, "{}", about(whole));
            let count = count(made, kinds);
            assert!(count > 0, "{command:?} makes no call of {kinds}");
            let places = places_of_slice(count, some);
            let struck = places
                .iter()
                .map(|at| strike(&mut command, room, Fault { calls: kinds, act, at: *at }));
            // The threads of a run may make fewer calls.
            let struck: Vec<_> = struck.filter(|struck| struck.call.is_some()).collect();
            assert!(
                !struck.is_empty() || is_sliced() && places.len() < 3,
                "{command:?}: no call of {kinds} was struck"
            );
            let word = command.get_args().next().unwrap().to_str().unwrap();
            struck.iter().for_each(|struck| judge(word, struck, whole));
            if figures() {
                println!("{word}: {act} on {kinds}, {} of {count} calls", struck.len());
            }
        }
    }
}

/// The call that was struck, and the output of the run.
pub fn about(struck: &Struck) -> String {
    format!("{:?}: {}\n{}", struck.call, struck.output.status, said(struck))
}

/// Both output streams.
fn said(struck: &Struck) -> String {
    String::from_utf8_lossy(&struck.output.stdout).into_owned() + &struck.stderr
}

#[test]
fn a_command_that_reads_and_is_asked_to_end_finds_nothing_wrong() {
    need(&publications::TOOLS);
    need(&TOOLS);
    Input::made().sweep((ALL, "signal:2", 2), |_, struck, whole| match struck.code() {
        code if code == whole.code() => {
            assert_eq!(struck.output.stdout, whole.output.stdout, "{}", about(struck));
        }
        Some(130) => {
            assert!(struck.output.stdout.is_empty(), "{}", about(struck));
            assert!(struck.stderr.contains("ended by SIGINT"), "{}", about(struck));
            assert!(!struck.stderr.contains("os error"), "{}", about(struck));
        }
        _ => panic!("{}", about(struck)),
    });
}

/// A check that cannot be made has not passed.
#[test]
fn a_command_that_cannot_read_its_input_names_it() {
    need(&TOOLS);
    let input = Input::made();
    let shard = input.room.join("s");
    input.sweep(("open,read,list", "error:5", 4), |word, struck, whole| {
        let (kind, path) = struck.call.as_ref().unwrap();
        let needless = kind == "list" && is_ahead(word, path, &shard);
        if !(needless && is_same(struck, whole)) {
            cannot_read(struck);
        }
    });
}

/// A signal during a read, or a short read, does not mean the end of the file.
#[test]
fn a_command_whose_reads_are_interrupted_or_short_reads_all() {
    need(&publications::TOOLS);
    need(&TOOLS);
    let input = Input::made();
    for act in ["error:4", "short"] {
        input.sweep(("read", act, 2), |_, struck, whole| {
            assert!(is_same(struck, whole), "{}", about(struck));
        });
    }
}

/// If the system cannot tell whether a file exists, rockpack does not treat it as absent.
#[test]
fn a_command_that_cannot_look_at_its_input_names_it() {
    need(&TOOLS);
    let input = Input::made();
    let shard = input.room.join("s");
    input.sweep(("stat", "error:5", 4), |word, struck, whole| {
        // The sizes of packages only matter for progress. If a folder's name is an artifact's, its manifest
        // is read whatever the earlier look found.
        let (_, path) = struck.call.as_ref().unwrap();
        let needless = path.extension().is_some_and(|ending| ending == "deb" || ending == "rpm")
            || path.ends_with("artifact_manifest.txt")
            || path.parent().is_some_and(|folder| is_ahead(word, folder, &shard));
        if !(needless && is_same(struck, whole)) {
            cannot_read(struck);
        }
    });
}

/// Tells whether a look into `folder` may only serve to find shards. One artifact is enough for that; the
/// later scan reads the whole shard again.
fn is_ahead(word: &str, folder: &Path, shard: &Path) -> bool {
    ["discover", "plan"].contains(&word) && folder == shard
}

fn is_same(struck: &Struck, whole: &Struck) -> bool {
    struck.code() == whole.code() && struck.output.stdout == whole.output.stdout
}

/// The system does not tell where the artifact's or the shard's link leads.
#[test]
fn a_linked_artifact_that_cannot_be_looked_at_is_not_left_out() {
    need(&TOOLS);
    let input = Input::made();
    let linked = input.room.join("linked");
    let names = ["s", "s/blas_run_gfx1151", "s/host-suite-sparse_lib_generic.tar.zst"];
    let links = names.map(|name| linked.join(name));
    for words in ["discover", "plan --json --version 7.1.0 --artifacts"] {
        let command = || {
            let mut command = rockpack();
            command.args(words.split(' ')).arg(&linked);
            command
        };
        let whole = tools::run(&mut command()).stdout;
        let made = calls(&mut command(), &linked, "stat");
        let at = |link: &PathBuf| made.iter().filter(|(_, path)| path == link).count();
        assert!(links.iter().all(|link| at(link) > 0), "{made:?}");
        let of_links = (1..).zip(&made).filter(|(_, (_, path))| links.contains(path));
        for (at, _) in of_links {
            let fault = Fault { calls: "stat", act: "error:5", at };
            let struck = strike(&mut command(), &linked, fault);
            if struck.code() != Some(0) || struck.output.stdout != whole {
                cannot_read(&struck);
            }
        }
    }
}

/// rockpack reads a `.repo` file that may require signatures, or reports that it could not.
#[test]
fn a_repo_file_that_cannot_be_found_or_read_is_not_taken_for_absent() {
    need(&TOOLS);
    let (input, kinds) = (Input::made(), "open,read,stat,list");
    let root = input.room.join("repository");
    let file = root.join("own.repo");
    let of_file = calls(&mut verify(&root), &file, kinds);
    assert!(of_file.iter().any(|(kind, _)| kind == "open"), "{of_file:?}");
    (1..=of_file.len()).for_each(|at| fail_at(&root, &file, kinds, at));
    let listed = calls(&mut verify(&root), &root, "list");
    let of_root: Vec<_> = (1..).zip(&listed).filter(|(_, (_, path))| *path == root).collect();
    assert!(of_root.len() > 1, "{listed:?}");
    of_root.iter().for_each(|(at, _)| fail_at(&root, &root, "list", *at));
}

/// Verifies a repository, with one of the calls under `under` failing.
fn fail_at(repository: &Path, under: &Path, kinds: &str, at: usize) {
    let fault = Fault { calls: kinds, act: "error:5", at };
    cannot_read(&strike(&mut verify(repository), under, fault));
}

fn verify(repository: &Path) -> Command {
    let mut verify = rockpack();
    verify.arg("verify").arg(repository);
    verify
}

/// Fails if the exit code is 0, or if no message is about the path that could not be read.
fn cannot_read(struck: &Struck) {
    let (_, path) = struck.call.as_ref().unwrap();
    let (said, about) = (said(struck), about(struck));
    let mut around = path.ancestors().take(3).filter_map(|path| path.file_name());
    assert!(matches!(struck.code(), Some(1 | 2)), "{about}");
    assert!(said.contains("os error"), "{about}");
    assert!(around.any(|name| said.contains(name.to_str().unwrap())), "{about}");
}

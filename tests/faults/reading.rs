//! Commands that only read: a run that is disturbed says so, and never something wrong.

use std::process::Command;

use crate::example::{rockpack, shards};
use crate::publications;
use crate::room::{ALL, Fault, Struck, calls, figures, folder, places, strike};
use crate::tools::{self, have};

/// What is read: a shard, the set of it, and a repository.
struct Input {
    room: tempfile::TempDir,
}

impl Input {
    fn new() -> Self {
        let room = folder();
        let here = |name: &str| room.path().join(name);
        tools::run(Command::new("cp").arg("-r").arg(shards().join("gfx1151-build")).arg(here("s")));
        let mut build = rockpack();
        build.args(["build", "--version", "7.1.0", "--artifacts"]).arg(here("s"));
        tools::run(build.arg("--out").arg(here("set")));
        tools::run(rockpack().arg("repo").arg(here("set")).arg("--out").arg(here("repository")));
        Self { room }
    }

    /// Commands by their words; `{}` stands for the room.
    fn commands(&self) -> Vec<Command> {
        let room = self.room.path().to_str().unwrap();
        let lines = [
            "verify {}/set",
            "verify {}/set --against {}/s --json",
            "verify {}/repository",
            "verify {}/s",
            "inspect {}/s/blas_lib_gfx1151 --json",
            "discover {}/s",
            "plan --version 7.1.0 --artifacts {}/s",
        ];
        let command = |line: &str| {
            let mut command = rockpack();
            command.args(line.replace("{}", room).split(' '));
            command
        };
        lines.into_iter().map(command).collect()
    }

    /// Disturbs every command at some of its calls, or all.
    fn sweep(&self, (kinds, act, some): (&str, &str, usize), judge: impl Fn(&Struck, &Struck)) {
        let commands = self.commands().into_iter().zip(self.commands());
        for (mut command, mut undisturbed) in commands {
            let strike = |command: &mut Command, at| {
                strike(command, self.room.path(), Fault { calls: kinds, act, at })
            };
            let whole = strike(&mut undisturbed, 0);
            assert_eq!(whole.code(), Some(0), "{command:?}: {}", whole.stderr);
            let count = calls(&mut undisturbed, self.room.path(), kinds).len();
            let places = places(count, some);
            for at in &places {
                judge(&strike(&mut command, *at), &whole);
            }
            if figures() {
                let words: Vec<_> = command.get_args().take(1).collect();
                println!("{words:?}: {act} on {kinds}, {} of {count} calls", places.len());
            }
        }
    }
}

/// Both streams, with the exit status.
fn about(struck: &Struck) -> String {
    let printed = String::from_utf8_lossy(&struck.output.stdout);
    format!("{:?}: {}\n{printed}{}", struck.call, struck.output.status, struck.stderr)
}

#[test]
fn a_command_that_reads_and_is_asked_to_end_finds_nothing_wrong() {
    if !have(&publications::TOOLS) {
        return;
    }
    Input::new().sweep((ALL, "signal:2", 6), |struck, whole| match struck.code() {
        Some(0) => assert_eq!(struck.output.stdout, whole.output.stdout, "{}", about(struck)),
        Some(130) => {
            assert!(struck.output.stdout.is_empty(), "{}", about(struck));
            assert!(struck.stderr.contains("ended by SIGINT"), "{}", about(struck));
            assert!(!struck.stderr.contains("os error"), "{}", about(struck));
        }
        _ => panic!("{}", about(struck)),
    });
}

/// A check that cannot be done has not passed.
#[test]
fn a_command_that_cannot_read_its_input_names_it() {
    if !have(&["gcc"]) {
        return;
    }
    Input::new().sweep(("open,read,list", "error:5", 6), |struck, whole| match struck.code() {
        Some(0) => {
            let (kind, _) = struck.call.as_ref().unwrap();
            assert_ne!(kind, "read", "{}", about(struck));
            assert_eq!(struck.output.stdout, whole.output.stdout, "{}", about(struck));
        }
        Some(1 | 2) => {
            let (_, path) = struck.call.as_ref().unwrap();
            let said = about(struck);
            let mut around = path.ancestors().take(3).filter_map(|path| path.file_name());
            assert!(said.contains("os error"), "{said}");
            assert!(around.any(|name| said.contains(name.to_str().unwrap())), "{said}");
        }
        _ => panic!("{}", about(struck)),
    });
}

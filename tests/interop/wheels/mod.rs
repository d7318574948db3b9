//! Wheels in pip, uv and the tools of Python's packaging.

mod action;
mod installed;
mod judged;
mod own;
mod thinned;

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use support::example::names;
use support::fat_wheels::{Made, fat_version, wheel_command};
use support::installers::Environment;
use support::tools;

/// Two versions of a fat wheel, and the wheels made from both in one folder.
struct Both {
    made: Made,
}

fn both() -> &'static Both {
    static BOTH: OnceLock<Both> = OnceLock::new();
    BOTH.get_or_init(|| {
        let made = Made::of(&fat_version("1.0"), &[]);
        fat_version("2.0").text("x/new.py", "").write(&made.room.path().join("in"));
        // A folder with both; its output replaces the earlier set.
        tools::run(&mut wheel_command(&[&made.room.path().join("in")], &made.out()));
        Both { made }
    })
}

impl Both {
    fn out(&self) -> PathBuf {
        self.made.out()
    }

    /// The wheels of one version.
    fn of(&self, version: &str) -> Vec<PathBuf> {
        let part = format!("-{version}-");
        let own = names(&self.out()).into_iter();
        own.filter(|name| name.contains(&part)).map(|name| self.out().join(name)).collect()
    }
}

/// The judges' Python interpreter, which has `installer`.
fn judges_python() -> PathBuf {
    let tool = tools::find("check-wheel-contents").unwrap();
    let link = fs::read_link(&tool).map_or(tool.clone(), |to| tool.parent().unwrap().join(to));
    link.with_file_name("python")
}

/// The command by which a program installs from the folder of [`both`].
fn install(environment: &Environment, client: &str, words: &[&str]) -> Command {
    let mut run = environment.client(client, "install");
    run.args(["--no-index", "--find-links"]).arg(both().out()).args(words);
    run
}

/// The installed kernel archives, by the ends of their names.
fn archives(environment: &Environment) -> Vec<String> {
    let own = names(&environment.site().join("x/.kpack")).into_iter();
    own.map(|name| name.rsplit('_').next().unwrap().replace(".kpack", "")).collect()
}

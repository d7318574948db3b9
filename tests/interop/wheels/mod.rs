//! Wheels in pip, uv and the tools of Python's packaging.

mod installed;
mod judged;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use support::example::names;
use support::fat_wheels::{Made, fat_version, wheel_command};
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

/// A virtual environment without pip.
struct Environment {
    folder: PathBuf,
}

/// The programs that install wheels.
const CLIENTS: [&str; 2] = ["pip", "uv"];

impl Environment {
    fn new(folder: &Path) -> Self {
        let mut venv = Command::new(support::kpack::PYTHON);
        tools::run(venv.args(["-m", "venv", "--without-pip"]).arg(folder));
        Self { folder: folder.to_path_buf() }
    }

    fn python(&self) -> PathBuf {
        self.folder.join("bin/python")
    }

    /// The command `pip COMMAND`, or `uv pip COMMAND`.
    fn client(&self, client: &str, command: &str) -> Command {
        let mut run = Command::new(client);
        if client == "pip" {
            run.arg("--python").arg(self.python()).args(["--isolated", "--no-cache-dir"]);
            run.args(["--disable-pip-version-check", command]);
        } else {
            run.args(["pip", command, "--no-cache", "--no-config", "--python"]).arg(self.python());
            run.env("UV_PYTHON_DOWNLOADS", "never");
        }
        run
    }

    fn install(&self, client: &str, links: &Path, words: &[&str]) -> Command {
        let mut run = self.client(client, "install");
        run.args(["--no-index", "--find-links"]).arg(links).args(words);
        run
    }

    fn uninstall(&self, client: &str, names: &[&str]) {
        let mut run = self.client(client, "uninstall");
        if client == "pip" {
            run.arg("--yes");
        }
        tools::run(run.args(names));
    }

    fn site(&self) -> PathBuf {
        let lib = self.folder.join("lib");
        let python = names(&lib).into_iter().next().unwrap();
        lib.join(python).join("site-packages")
    }

    /// The installed distributions, by the names of their folders.
    fn installed(&self) -> Vec<String> {
        let own = names(&self.site()).into_iter();
        own.filter_map(|name| name.strip_suffix(".dist-info").map(str::to_owned)).collect()
    }

    /// The installed kernel archives, by the ends of their names.
    fn archives(&self) -> Vec<String> {
        let own = names(&self.site().join("x/.kpack")).into_iter();
        own.map(|name| name.rsplit('_').next().unwrap().replace(".kpack", "")).collect()
    }
}

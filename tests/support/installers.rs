//! Virtual environments, and pip and uv, which install wheels into them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::example::names;
use crate::program::scratch;
use crate::python::PYTHON;
use crate::tools;

/// The programs that install wheels.
pub const CLIENTS: [&str; 2] = ["pip", "uv"];

/// A virtual environment without pip.
pub struct Environment {
    pub folder: PathBuf,
}

impl Environment {
    /// Copies an environment that is made once in a run: nothing that its Python reads depends on its path.
    pub fn new(folder: &Path) -> Self {
        static MADE: OnceLock<PathBuf> = OnceLock::new();
        let made = MADE.get_or_init(|| {
            let made = scratch("environment");
            tools::run(Command::new(PYTHON).args(["-m", "venv", "--without-pip"]).arg(&made));
            made
        });
        tools::run(Command::new("cp").arg("-a").arg(made.join(".")).arg(folder));
        Self { folder: folder.to_owned() }
    }

    pub fn python(&self) -> PathBuf {
        self.folder.join("bin/python")
    }

    /// The command `pip COMMAND`, or `uv pip COMMAND`.
    pub fn client(&self, client: &str, command: &str) -> Command {
        if client == "pip" {
            let mut pip = Command::new(self.python());
            pip.arg(pip_runner()).args(["--isolated", "--no-cache-dir"]);
            pip.args(["--disable-pip-version-check", command]);
            pip
        } else {
            let mut uv = Command::new("uv");
            uv.args(["pip", command, "--no-cache", "--no-config", "--python"]).arg(self.python());
            uv.env("UV_PYTHON_DOWNLOADS", "never");
            uv
        }
    }

    pub fn uninstall(&self, client: &str, names: &[&str]) {
        let mut run = self.client(client, "uninstall");
        if client == "pip" {
            run.arg("--yes");
        }
        tools::run(run.args(names));
    }

    pub fn site(&self) -> PathBuf {
        let lib = self.folder.join("lib");
        let python = names(&lib).into_iter().next().unwrap();
        lib.join(python).join("site-packages")
    }

    /// The installed distributions, by the names of the folders with their metadata, in order.
    pub fn installed(&self) -> Vec<String> {
        let own = names(&self.site()).into_iter();
        own.filter_map(|name| name.strip_suffix(".dist-info").map(str::to_owned)).collect()
    }
}

/// The file with which `pip --python PYTHON` runs itself once more, in that Python.
fn pip_runner() -> &'static Path {
    static RUNNER: OnceLock<PathBuf> = OnceLock::new();
    RUNNER.get_or_init(|| {
        // pip 26.3 from /usr/lib/python3/dist-packages/pip (python 3.13)
        let said = tools::succeed(Command::new("pip").args(["--isolated", "--version"]));
        let (_, place) = said.split_once(" from ").unwrap();
        Path::new(place.rsplit_once(" (").unwrap().0).join("__pip-runner__.py")
    })
}

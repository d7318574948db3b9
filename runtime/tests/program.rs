//! The C programs beside this file, compiled once for each run, and the library that they load.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The library that cargo built for this test program, or the one in `ROCKPACK_RUNTIME_LIBRARY`.
pub fn library() -> PathBuf {
    let library = std::env::var_os("ROCKPACK_RUNTIME_LIBRARY").map_or_else(
        || std::env::current_exe().unwrap().with_file_name("librocm_kpack.so"),
        PathBuf::from,
    );
    assert!(library.is_file(), "{} is not there", library.display());
    library
}

/// A path of the crate.
pub fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Runs a command that must succeed, and returns its standard output.
pub fn succeed(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    assert!(status.success(), "{command:?}: {status}\n{}{}", lossy(&stdout), lossy(&stderr));
    lossy(&stdout)
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Compiles a C program beside this file, with the sanitizer in `ROCKPACK_SANITIZER` if it is set
/// (`.ci/sanitize`).
fn compiled(name: &str) -> PathBuf {
    let folder = tempfile::tempdir().unwrap().keep();
    let program = folder.join(name);
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-g", "-rdynamic", "-I"]);
    cc.arg(source("include")).arg(source(&format!("tests/{name}.c"))).arg("-o").arg(&program);
    if let Some(sanitizer) = std::env::var_os("ROCKPACK_SANITIZER") {
        cc.args(["-DUNDER_SANITIZER", "-Wl,--whole-archive"]).arg(sanitizer);
        cc.args(["-Wl,--no-whole-archive", "-lm", "-lrt"]);
    }
    succeed(cc.args(["-ldl", "-lpthread"]));
    program
}

/// The compiled program of commands.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| compiled("program"))
}

/// A process that takes `steps`, without environment variables that affect the library.
pub fn steps(steps: &[&str]) -> Command {
    static STEPS: OnceLock<PathBuf> = OnceLock::new();
    let mut command = Command::new(STEPS.get_or_init(|| compiled("steps")));
    without_variables(&mut command);
    command.arg(library()).args(steps);
    command
}

/// The steps as a process that the kernel calls privileged: its program, a copy in `folder`, is setgid. `None`
/// if the user has no other group, or the bit counts for nothing there; see [`by_tool`].
pub fn privileged(folder: &Path, arguments: &[String]) -> Option<Command> {
    let program = folder.join("privileged");
    // Another process writes the file: a child of another test may not hold it open.
    succeed(Command::new("cp").arg(steps(&[]).get_program()).arg(&program));
    let groups = succeed(Command::new("id").arg("-G"));
    let mut others = groups
        .split_whitespace()
        .skip(1)
        .map(|group| group.parse::<u32>().unwrap())
        .chain([65_534]);
    let is_other = others.any(|group| chown(&program, None, Some(group)).is_ok());
    set_permissions(&program, Permissions::from_mode(0o2755)).unwrap();
    let mut command = Command::new(&program);
    without_variables(&mut command);
    command.arg(library());
    let is_privileged = succeed(Command::new(&program).arg(library()).arg("privileged")) == "1\n";
    if !is_other || !is_privileged {
        assert!(std::env::var_os("ROCKPACK_INTEROP").is_none(), "no privileged process");
        eprintln!("skipped: needs another group, and a file system without nosuid");
        return None;
    }
    command.args(arguments);
    Some(command)
}

fn without_variables(command: &mut Command) {
    for name in ["PATH", "PATH_PREFIX", "DISABLE", "DEBUG", "QUIET"] {
        command.env_remove(format!("ROCM_KPACK_{name}"));
    }
}

/// A command of the program, without environment variables that affect the library.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    without_variables(&mut command);
    command.arg(library()).args(arguments);
    command
}

/// The standard output of a command of the program.
pub fn run(arguments: &[&str]) -> String {
    succeed(&mut command(arguments))
}

/// The standard output and error of a command of the program.
pub fn both(command: &mut Command) -> (String, String) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    (lossy(&output.stdout), lossy(&output.stderr))
}

/// The output of a tool that not every machine has. If `ROCKPACK_INTEROP` is set, as in .ci/run, a missing
/// tool fails the test; otherwise the test says so and returns `None`.
pub fn by_tool(tool: &mut Command) -> Option<Output> {
    let name = tool.get_program().to_string_lossy().into_owned();
    match tool.output() {
        Ok(output) => Some(output),
        Err(error) => {
            assert!(std::env::var_os("ROCKPACK_INTEROP").is_none(), "{name}: {error}");
            eprintln!("skipped: needs {name}");
            None
        }
    }
}

//! The running test program, with the paths that cargo gives to it alone.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The paths that [`crate::main!`] takes from the compiler's environment.
#[derive(Debug)]
pub struct Program {
    /// The path of the `rockpack` under test.
    pub rockpack: &'static str,
    /// A folder below `target` that is kept between runs.
    pub kept: &'static str,
}

static PROGRAM: OnceLock<Program> = OnceLock::new();

pub(crate) fn set(program: Program) {
    PROGRAM.set(program).expect("a test program has one main");
}

fn program() -> &'static Program {
    PROGRAM.get().expect("support::main! tells it before tests run")
}

/// The path of the `rockpack` under test.
pub fn rockpack_path() -> &'static Path {
    Path::new(program().rockpack)
}

/// A command for the program, without variables of this process that would change its output.
pub fn rockpack() -> Command {
    let mut command = Command::new(rockpack_path());
    command.env_remove("SOURCE_DATE_EPOCH").env_remove("NO_COLOR");
    command.env_remove("ROCKPACK_SIGN_PASSPHRASE");
    command
}

/// The path of a file to keep between runs.
pub fn kept_file(name: &str) -> PathBuf {
    Path::new(program().kept).join(name)
}

/// A folder kept between runs; if it is missing, one program at a time makes it.
pub fn kept(name: &str, make: impl FnOnce(&Path)) -> PathBuf {
    let folder = kept_file(name);
    let lock = File::create(folder.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    if !folder.is_dir() {
        let partial = folder.with_extension("partial");
        let _ = fs::remove_dir_all(&partial);
        fs::create_dir_all(&partial).unwrap();
        make(&partial);
        fs::rename(&partial, &folder).unwrap();
    }
    folder
}

/// Makes a folder that lasts as long as this run.
pub fn scratch(purpose: &str) -> PathBuf {
    tempfile::Builder::new().prefix(purpose).tempdir().unwrap().keep()
}

/// A path of the repository.
pub fn repository(path: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    root.join(path)
}

/// The Rust files below `folder`, or the file itself, in order.
pub fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let (mut files, mut waiting) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(path) = waiting.pop() {
        if path.is_dir() {
            waiting.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

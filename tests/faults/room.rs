//! Where runs are disturbed, and how.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use crate::example::{Entry, tree};
use crate::tools;

/// Every kind of call that a fault can strike; see faults.c.
pub const ALL: &str =
    "open,create,read,write,sync,rename,make,remove,link,mode,stat,list,lock,copy";
/// The kinds that need room on the disk.
pub const FILLING: &str = "create,write,sync,rename,make,link,copy";

/// Whether every place is struck.
pub fn all() -> bool {
    std::env::var("ROCKPACK_FAULTS").as_deref() == Ok("all")
}

/// The library that disturbs; made once in this process.
fn library() -> &'static Path {
    static MADE: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = MADE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("faults.so");
        let mut gcc = Command::new("gcc");
        gcc.args(["-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o"]).arg(&path);
        tools::run(gcc.arg(tools::repository("tests/faults/faults.c")));
        (folder, path)
    });
    path
}

/// A folder in memory where that is possible: nothing here survives a loss of power anyway.
pub fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    match memory.is_dir() {
        true => tempfile::tempdir_in(memory).unwrap(),
        false => tempfile::tempdir().unwrap(),
    }
}

/// What strikes, and which calls.
#[derive(Debug, Clone, Copy)]
pub struct Fault<'a> {
    /// Kinds of calls.
    pub calls: &'a str,
    /// What is done; see faults.c.
    pub act: &'a str,
    /// Which call, from 1; 0 is none.
    pub at: usize,
}

/// What became of a run.
pub struct Struck {
    pub output: Output,
    pub stderr: String,
    /// Kind and path of the call that was struck, if one was.
    pub call: Option<(String, PathBuf)>,
    /// How many calls of the kinds were made; 0 where the run was killed.
    pub counted: usize,
}

impl Struck {
    pub fn code(&self) -> Option<i32> {
        self.output.status.code()
    }

    pub fn signal(&self) -> Option<i32> {
        self.output.status.signal()
    }
}

/// Runs `command` with a fault on what lies below `room`.
pub fn strike(command: &mut Command, room: &Path, fault: Fault<'_>) -> Struck {
    let notes = tempfile::tempdir().unwrap();
    let [log, count] = ["log", "count"].map(|name| notes.path().join(name));
    command.env("LD_PRELOAD", library()).env("FAULT_UNDER", room);
    command.env("FAULT_CALLS", fault.calls).env("FAULT_DO", fault.act);
    command.env("FAULT_AT", fault.at.to_string());
    command.env("FAULT_LOG", &log).env("FAULT_COUNT", &count);
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let call = fs::read_to_string(&log).ok().map(|text| {
        let (kind, path) = text.trim_end().split_once(' ').unwrap();
        (kind.to_owned(), PathBuf::from(path))
    });
    let counted = fs::read_to_string(&count).unwrap_or_default();
    Struck { output, stderr, call, counted: counted.trim().parse().unwrap_or(0) }
}

/// Which of `count` places are struck: all, or `some` of them.
pub fn places(count: usize, some: usize) -> Vec<usize> {
    let step = if all() { 1 } else { count.div_ceil(some).max(1) };
    // In the middle of each step, so that some are not always the first of their kind.
    (1..=count).skip(step / 2).step_by(step).collect()
}

/// Everything in a folder by path.
pub type Tree = BTreeMap<String, Entry>;

/// What is visible in `out`: not what a run has not finished.
pub fn visible(out: &Path) -> Tree {
    let mut all = if out.exists() { tree(out) } else { Tree::new() };
    all.retain(|path, _| !path.split('/').any(is_unfinished));
    all
}

fn is_unfinished(name: &str) -> bool {
    name.starts_with(".rockpack-")
}

/// The hidden names that runs leave in `out`.
pub fn unfinished(out: &Path) -> Vec<String> {
    let all = if out.exists() { tree(out) } else { Tree::new() };
    let last = |path: &String| path.rsplit('/').next().is_some_and(is_unfinished);
    all.into_keys().filter(last).collect()
}

/// A copy of `from` whose files are the same files: nothing may write into those.
pub fn link_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for (path, entry) in tree(from) {
        let place = to.join(&path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        match entry {
            Entry::Folder { .. } => fs::create_dir_all(&place).unwrap(),
            Entry::File { .. } | Entry::Link { .. } => {
                fs::hard_link(from.join(&path), &place).unwrap();
            }
        }
    }
}

//! Folders for disturbed runs, and the faults.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex, OnceLock};

use support::example::{Entry, tree};
use support::program::scratch;
pub use support::scratch::in_memory as folder;
use support::screen::{Shown, on_terminal};
use support::strace;
use support::sweep;
use support::tools;
use support::waiting::Process;

/// Every kind of file system call that a fault can strike.
pub const ALL: &str =
    "open,create,read,write,sync,rename,make,remove,link,mode,stat,fstat,list,lock,copy";
/// Every kind of call that a fault can strike.
pub const ALL_AND_THREADS: &str =
    "open,create,read,write,sync,rename,make,remove,link,mode,stat,fstat,list,lock,copy,thread";
/// The kinds of calls that need disk space.
pub const FILLING: &str = "create,write,sync,rename,make,link,copy";

/// The number of places to strike from the environment: `all`, or a number for each sweep.
fn asked() -> Option<String> {
    std::env::var("ROCKPACK_FAULTS").ok()
}

/// Tells whether every place is struck.
pub fn all() -> bool {
    asked().as_deref() == Some("all")
}

/// Tells whether figures are printed.
pub fn figures() -> bool {
    asked().is_some()
}

/// The library that injects faults, built once in this process.
fn library() -> &'static Path {
    static MADE: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = MADE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("faults.so");
        let mut gcc = Command::new("gcc");
        gcc.args(["-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o"]).arg(&path);
        tools::run(gcc.arg(tools::repository("tests/disturbed/disturb.c")));
        (folder, path)
    });
    path
}

/// A folder with what `make` writes, which is made once in a run for each name.
pub fn filled(name: &'static str, make: impl FnOnce(&Path)) -> tempfile::TempDir {
    static MADE: Mutex<BTreeMap<&str, Arc<OnceLock<PathBuf>>>> = Mutex::new(BTreeMap::new());
    let made = MADE.lock().unwrap().entry(name).or_default().clone();
    let first = made.get_or_init(|| {
        let first = scratch("room");
        make(&first);
        first
    });
    let room = folder();
    tools::run(Command::new("cp").arg("-aT").arg(first).arg(room.path()));
    room
}

/// A fault, and the calls that it strikes.
#[derive(Debug, Clone, Copy)]
pub struct Fault<'a> {
    /// The kinds of calls, separated by commas.
    pub calls: &'a str,
    /// The action; see disturb.c.
    pub act: &'a str,
    /// The number of the call to strike, from 1; 0 strikes none.
    pub at: usize,
}

/// The result of a run with a fault.
pub struct Struck {
    pub output: Output,
    pub stderr: String,
    /// The call that was struck, if any.
    pub call: Option<Call>,
    /// The number of calls of these kinds; 0 if the run was killed.
    pub counted: usize,
}

/// The kind and path of a call.
pub type Call = (String, PathBuf);

impl Struck {
    pub fn code(&self) -> Option<i32> {
        self.output.status.code()
    }

    pub fn signal(&self) -> Option<i32> {
        self.output.status.signal()
    }
}

/// Runs `command` with a fault on paths below `room`.
pub fn strike(command: &mut Command, room: &Path, fault: Fault<'_>) -> Struck {
    run_with(command, room, fault).0
}

/// The calls of these kinds that `command` makes on paths below `room`, in order.
pub fn calls(command: &mut Command, room: &Path, kinds: &str) -> Vec<Call> {
    listed(command, room, kinds).1
}

/// An undisturbed run, and its calls like [`calls`].
pub fn listed(command: &mut Command, room: &Path, kinds: &str) -> (Struck, Vec<Call>) {
    let (run, log) = run_with(command, room, Fault { calls: kinds, act: "list", at: 0 });
    // 1 if a check fails even without a fault.
    assert!(matches!(run.code(), Some(0 | 1)), "{}", run.stderr);
    assert_eq!(run.counted, log.len());
    (run, log)
}

/// The calls of `command` like [`calls`], run as a child of `tracer`, an strace with its options.
pub fn traced(mut tracer: Command, command: &Command, room: &Path) -> Vec<Call> {
    // The tracer itself must not load the library.
    tracer.arg("-E").arg(format!("LD_PRELOAD={}", library().display()));
    strace::trace(&mut tracer, command);
    let notes = tempfile::tempdir().unwrap();
    let (log, _) = arm(&mut tracer, (room, notes.path()), Fault { calls: ALL, act: "list", at: 0 });
    tools::run(tracer.current_dir("/"));
    fs::read_to_string(log).unwrap().lines().map(call).collect()
}

/// Sets the library's variables, and returns the files that it will write.
fn arm(
    command: &mut Command,
    (room, notes): (&Path, &Path),
    fault: Fault<'_>,
) -> (PathBuf, PathBuf) {
    let [log, count] = ["log", "count"].map(|name| notes.join(name));
    command.env("FAULT_UNDER", room).env("FAULT_CALLS", fault.calls).env("FAULT_DO", fault.act);
    command.env("FAULT_AT", fault.at.to_string());
    command.env("FAULT_LOG", &log).env("FAULT_COUNT", &count);
    (log, count)
}

fn call(line: &str) -> Call {
    let (kind, path) = line.split_once(' ').unwrap();
    (kind.to_owned(), PathBuf::from(path))
}

/// Starts `command`. Its calls of these kinds on paths below `room` are logged to the returned file in
/// `notes`.
pub fn started(
    command: &mut Command,
    (room, notes): (&Path, &Path),
    calls: &str,
) -> (Process, PathBuf) {
    let (log, _) = arm(command, (room, notes), Fault { calls, act: "list", at: 0 });
    (Process::start(command.env("LD_PRELOAD", library())), log)
}

/// Runs `command` on a terminal with a fault on paths below `room`.
pub fn strike_on_terminal(command: &mut Command, room: &Path, fault: Fault<'_>) -> Shown {
    let notes = tempfile::tempdir().unwrap();
    arm(command.env("LD_PRELOAD", library()), (room, notes.path()), fault);
    on_terminal(command)
}

fn run_with(command: &mut Command, room: &Path, fault: Fault<'_>) -> (Struck, Vec<Call>) {
    let notes = tempfile::tempdir().unwrap();
    let (log, count) = arm(command.env("LD_PRELOAD", library()), (room, notes.path()), fault);
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let log: Vec<Call> = fs::read_to_string(&log).unwrap_or_default().lines().map(call).collect();
    // The library writes the file at the end of a run; a signal may have prevented that.
    let counted = match output.status.signal() {
        Some(_) => 0,
        None => fs::read_to_string(&count).unwrap().trim().parse().unwrap(),
    };
    (Struck { output, stderr, call: log.first().cloned(), counted }, log)
}

/// The places of [`places`] in the slice of this run.
pub fn places_of_slice(count: usize, some: usize) -> Vec<usize> {
    let mut places = places(count, some);
    places.retain(|at| sweep::is_in_slice(*at));
    places
}

/// The places to strike among `count`: all, the requested number, or `some`.
pub fn places(count: usize, some: usize) -> Vec<usize> {
    let some = asked().and_then(|number| number.parse().ok()).unwrap_or(some);
    let step = if all() { 1 } else { count.div_ceil(some).max(1) };
    // The middle of each step, so that not only the first calls of a kind are struck.
    (1..=count).skip(step / 2).step_by(step).collect()
}

/// The entries of a folder by path.
pub type Tree = BTreeMap<String, Entry>;

/// The visible entries of `out`, without unfinished files and rockpack's own state.
pub fn visible(out: &Path) -> Tree {
    remains(out).0
}

/// What a run leaves in `out`: the visible entries, the names that the next run removes, and the entries that
/// a commit moved aside, by original path.
pub fn remains(out: &Path) -> (Tree, Vec<String>, Tree) {
    let mut all = if out.exists() { tree(out) } else { Tree::new() };
    let unfinished = all.keys().filter(|path| is_unfinished(path)).cloned().collect();
    let place = |path: &str| {
        let (before, moved) = path.split_once("/replaced/")?;
        let (folder, staging) = before.rsplit_once('/').unwrap_or(("", before));
        staging.starts_with(".rockpack-").then(|| format!("{folder}/{moved}"))
    };
    let placed = all.iter().filter_map(|(path, entry)| Some((place(path)?, entry.clone())));
    let placed = placed.map(|(path, entry)| (path.trim_start_matches('/').to_owned(), entry));
    let aside = placed.collect();
    let hidden = |path: &str| path.split('/').any(|name| name.starts_with(".rockpack"));
    let cache = ["cache/lock", "cache/new"];
    all.retain(|path, _| !hidden(path) && !cache.iter().any(|start| path.starts_with(start)));
    (all, unfinished, aside)
}

/// Tells whether the entry at `path` exists only during a run.
fn is_unfinished(path: &str) -> bool {
    let inside = ["cache/new/", ".rockpack/unfinished/", ".rockpack/next-", ".rockpack/shown-"];
    let name = path.rsplit('/').next().unwrap_or(path);
    name.starts_with(".rockpack-") || inside.iter().any(|start| path.starts_with(start))
}

/// Tells whether `to`, a copy of `from` by [`link_tree`] with the entries `is`, still has exactly its files.
pub fn is_same(from: &Path, to: &Path, is: &Tree) -> bool {
    let was = tree(from);
    let files = was.iter().filter(|(_, entry)| matches!(entry, Entry::File { .. }));
    let mut linked = files.filter(|(path, _)| !path.ends_with("/lock"));
    was == *is && linked.all(|(path, _)| inode(&from.join(path)) == inode(&to.join(path)))
}

fn inode(file: &Path) -> u64 {
    fs::symlink_metadata(file).unwrap().ino()
}

/// Copies `from` with hard links. Nothing may write into these files, except into locks.
pub fn link_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for (path, entry) in tree(from) {
        let place = to.join(&path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        match entry {
            Entry::Folder { .. } => fs::create_dir_all(&place).unwrap(),
            Entry::File { .. } if path.ends_with("/lock") => {
                fs::copy(from.join(&path), &place).unwrap();
            }
            Entry::File { .. } | Entry::Link { .. } => {
                fs::hard_link(from.join(&path), &place).unwrap();
            }
        }
    }
}

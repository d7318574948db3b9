//! Faults can strike every call: the calls known to the tests are those that the kernel sees.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use support::tools::need;

use crate::publications;
use crate::room::{ALL, traced};
use crate::scenarios::Scenario;
use crate::wheels;

/// System calls by kind. The list leaves out folders' lists and looks, since those libc functions make
/// several system calls, or only a part of one.
const KINDS: &[(&str, &[&str])] = &[
    ("copy", &["copy_file_range", "sendfile", "splice", "ioctl"]),
    ("link", &["link", "linkat", "symlink", "symlinkat"]),
    ("lock", &["flock"]),
    ("make", &["mkdir", "mkdirat", "mknod", "mknodat"]),
    (
        "mode",
        &["chmod", "fchmod", "fchmodat", "chown", "fchown", "utimensat", "setxattr", "fsetxattr"],
    ),
    ("open", &["open", "openat", "openat2", "creat"]),
    ("read", &["read", "pread64", "readv", "preadv", "mmap"]),
    ("remove", &["unlink", "unlinkat", "rmdir"]),
    ("rename", &["rename", "renameat", "renameat2"]),
    ("sync", &["fsync", "fdatasync", "sync", "syncfs", "sync_file_range", "msync"]),
    ("write", &["write", "pwrite64", "writev", "pwritev", "ftruncate", "truncate", "fallocate"]),
];

/// System calls that only look, or that belong to those functions.
const LOOKING: &[&str] = &[
    "access",
    "chdir",
    "close",
    "dup",
    "dup2",
    "dup3",
    "epoll_ctl",
    "execve",
    "faccessat",
    "faccessat2",
    "fadvise64",
    "fchdir",
    "fcntl",
    "fstat",
    "fstatfs",
    "getcwd",
    "getdents64",
    "lgetxattr",
    "lseek",
    "lstat",
    "newfstatat",
    "poll",
    "readlink",
    "readlinkat",
    "stat",
    "statfs",
    "statx",
];

/// The number of calls of each kind on paths below `room`.
type Counts = BTreeMap<String, usize>;

fn kind_of(call: &str, name: &str) -> Option<&'static str> {
    let (kind, _) = KINDS.iter().find(|(_, names)| names.contains(&name))?;
    match *kind {
        // A call of opendir, whose calls are of the kind "list".
        "open" if call.contains("O_DIRECTORY") => None,
        "open" if ["O_CREAT", "O_TMPFILE"].iter().any(|flag| call.contains(flag)) => Some("create"),
        kind => Some(kind),
    }
}

/// The counts in an strace log, which has the paths of descriptors and no content.
fn of_the_kernel(trace: &str, room: &Path) -> Counts {
    let mut counts = Counts::new();
    let room = room.to_str().unwrap();
    let below = ["\"", "<"].map(|start| format!("{start}{room}"));
    for line in trace.lines() {
        let Some((_, call)) = line.split_once(' ') else { continue };
        let Some((name, arguments)) = call.trim_start().split_once('(') else { continue };
        if !below.iter().any(|start| arguments.contains(start)) {
            continue;
        }
        match kind_of(arguments, name) {
            Some(kind) => *counts.entry(kind.to_owned()).or_default() += 1,
            None if name.starts_with("open") || LOOKING.contains(&name) => {}
            None => panic!("{name} is of no kind: {line}"),
        }
    }
    counts
}

/// The counts of one run of `command` from both sides: strace, and the library that injects faults.
fn seen(command: &Command, room: &Path) -> (Counts, Counts) {
    let trace = tempfile::NamedTempFile::new().unwrap();
    let mut strace = Command::new("strace");
    strace.args(["-f", "-y", "-qq", "-s", "0", "-e", "trace=%file,%desc", "-o"]).arg(trace.path());
    let mut ours = Counts::new();
    for (kind, _) in traced(strace, command, room) {
        *ours.entry(kind).or_default() += 1;
    }
    (of_the_kernel(&fs::read_to_string(trace.path()).unwrap(), room), ours)
}

#[test]
fn no_call_of_a_run_escapes() {
    need(&publications::TOOLS);
    need(&["gcc", "strace"]);
    let scenarios = [
        Scenario::build_with_cache(),
        Scenario::build_with_document(),
        Scenario::split(),
        Scenario::recombine(),
        Scenario::extract(),
        publications::scenario(),
        wheels::scenario(),
    ];
    let mut all = Counts::new();
    for scenario in scenarios {
        let room = scenario.room.path();
        let (kernel, mut ours) = scenario.undisturbed(|run, _| seen(&run, room));
        ours.retain(|kind, _| !["list", "stat", "fstat"].contains(&kind.as_str()));
        // Ours include folders opened by path, as by opendir.
        let opened = ours.remove("open").unwrap();
        let mut files = kernel.clone();
        assert!(opened >= files.remove("open").unwrap(), "{}: {kernel:?}", scenario.name);
        assert_eq!(ours, files, "{}", scenario.name);
        for (kind, count) in kernel {
            *all.entry(kind).or_default() += count;
        }
    }
    // At least one command made calls of each comparable kind.
    for kind in ALL.split(',').filter(|kind| !["list", "stat", "fstat"].contains(kind)) {
        assert!(all.contains_key(kind), "no run makes a call of the kind {kind}: {all:?}");
    }
}

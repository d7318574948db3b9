//! What a build does to the machine: it writes below its output folder and nothing else.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::example::{build_of, copy_shards};
use crate::tools;

/// System calls that start programs, that reach a network, and that change a file system.
const TRACED: &str = "trace=execve,execveat,socket,connect,bind,open,openat,openat2,creat,mkdir,mkdirat,\
    mknod,mknodat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,rmdir,\
    truncate,chmod,fchmodat,chown,lchown,fchownat,setxattr,mount";

/// Calls that only look.
fn is_reading(call: &str) -> bool {
    let writes = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_TMPFILE"];
    call.starts_with("open") && !writes.iter().any(|flag| call.contains(flag))
}

/// The calls that a command makes, each without its process and its result.
fn calls(command: &Command, log: &Path) -> Vec<String> {
    let mut strace = Command::new("strace");
    strace
        .args(["-f", "-qq", "-y", "-s", "4096", "-e", TRACED, "-e", "signal=none", "-o"])
        .arg(log);
    strace.arg(command.get_program()).args(command.get_args());
    tools::run(&mut strace);
    let text = fs::read_to_string(log).unwrap();
    text.lines().map(|line| line.split_once(' ').unwrap().1.trim_start().to_owned()).collect()
}

#[test]
fn a_build_runs_no_program_opens_no_connection_and_writes_nowhere_else() {
    if !tools::have(&["strace"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let artifacts = folder.path().join("shards");
    copy_shards(&artifacts);
    let own = ["out", "cache", "repository"].map(|name| folder.path().join(name));
    // Output folders that are there: to make one is to write beside it.
    own.iter().for_each(|folder| fs::create_dir(folder).unwrap());
    let [out, cache, repository] = &own;
    let mut build = build_of(&artifacts, out);
    build.arg("--sbom").arg("--cache").arg(cache).arg("--repo").arg(repository);
    let calls = calls(&build, &folder.path().join("log"));
    let programs: Vec<_> = calls.iter().filter(|call| call.starts_with("execve")).collect();
    assert_eq!(programs.len(), 1, "{programs:?}");
    let nets = ["socket", "connect", "bind"];
    let connections = calls.iter().filter(|call| nets.iter().any(|net| call.starts_with(net)));
    assert_eq!(connections.collect::<Vec<_>>(), Vec::<&String>::new());
    let is_own = |text: &str| {
        // A path ends with its quotation mark, a folder's with the bracket.
        let path = Path::new(text.split(['"', '>']).next().unwrap());
        let leaves = path.components().any(|part| part.as_os_str() == "..");
        !leaves && own.iter().any(|own| path.starts_with(own))
    };
    let mut writes = 0;
    for call in calls.iter().filter(|call| call.contains('"') && !is_reading(call)) {
        if call.starts_with("execve") {
            continue;
        }
        // Every path of the call: a rename has two.
        for (at, _) in call.match_indices('"').step_by(2) {
            // A relative path is one in the folder whose descriptor stands before it: `4</folder>`.
            let folder = call[..at].rsplit('<').next().unwrap();
            let path = &call[at + 1..];
            assert!(is_own(if path.starts_with('/') { path } else { folder }), "{call}");
        }
        writes += 1;
    }
    assert!(writes > 20, "{writes} writes were seen");
}

//! Temporary folders of test programs. A killed program leaves its folders behind, and the next one removes
//! them: their names contain the process ID.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::tools;

const PREFIX: &str = "rockpack-tests-";
const MEMORY: &str = "/dev/shm";

/// KiB of free memory required to put everything temporary there.
const ENOUGH: u64 = 6 << 20;

/// The folder for temporary folders: `TMPDIR`, or memory, if there is enough and the system allows programs
/// and devices there. File systems on disks look for inodes that were not deleted a moment ago; with
/// thousands of short-lived files, that costs a quarter of all time.
pub fn place() -> PathBuf {
    if std::env::var_os("TMPDIR").is_none() && is_usable() {
        PathBuf::from(MEMORY)
    } else {
        std::env::temp_dir()
    }
}

fn is_usable() -> bool {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let mount = mounts.find(|mount| mount.get(1) == Some(&MEMORY));
    let options = mount.as_ref().and_then(|mount| mount.get(3)).copied().unwrap_or("ro");
    let refused = ["ro", "noexec", "nodev", "nosuid"];
    if options.split(',').any(|option| refused.contains(&option)) {
        return false;
    }
    let free = tools::told(Command::new("df").args(["-k", "--output=avail", MEMORY]));
    let free = free.lines().nth(1).and_then(|line| line.trim().parse::<u64>().ok());
    free.is_some_and(|free| free >= ENOUGH)
}

/// Makes a folder for this process in `folder`, after removing those of dead processes.
pub fn make(folder: &Path) -> TempDir {
    clear_dead(folder);
    let prefix = format!("{PREFIX}{}-", std::process::id());
    tempfile::Builder::new().prefix(&prefix).tempdir_in(folder).unwrap()
}

/// A folder in memory, if there is any, for files that need not survive a power cut.
pub fn in_memory() -> TempDir {
    let memory = Path::new(MEMORY);
    if memory.is_dir() { make(memory) } else { tempfile::tempdir().unwrap() }
}

fn clear_dead(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let process = rest.and_then(|rest| rest.split_once('-')).map(|(process, _)| process);
        if process.and_then(|process| process.parse().ok()).is_some_and(is_gone) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_gone(process: u32) -> bool {
    !Path::new("/proc").join(process.to_string()).exists()
}

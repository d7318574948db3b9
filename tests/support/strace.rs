//! The system calls of a command, and the files that they change, traced by strace.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// System calls that change the file they name, by path or by a descriptor that may be open for reading only.
const CHANGING: [&str; 53] = [
    "acct",
    "bind",
    "chmod",
    "chown",
    "creat",
    "fallocate",
    "fchmod",
    "fchmodat",
    "fchmodat2",
    "fchown",
    "fchownat",
    "file_setattr",
    "fremovexattr",
    "fsetxattr",
    "fsmount",
    "fsopen",
    "ftruncate",
    "futimesat",
    "lchown",
    "link",
    "linkat",
    "lremovexattr",
    "lsetxattr",
    "mkdir",
    "mkdirat",
    "mknod",
    "mknodat",
    "mount",
    "mount_setattr",
    "move_mount",
    "open_tree",
    "pivot_root",
    "quotactl",
    "removexattr",
    "removexattrat",
    "rename",
    "renameat",
    "renameat2",
    "rmdir",
    "setxattr",
    "setxattrat",
    "swapon",
    "symlink",
    "symlinkat",
    "truncate",
    "umount",
    "umount2",
    "unlink",
    "unlinkat",
    "utime",
    "utimensat",
    "utimensat_time64",
    "utimes",
];
/// System calls that change a file if they open it for writing.
const OPENING: [&str; 4] = ["open", "openat", "openat2", "open_by_handle_at"];
const WRITING: [&str; 5] = ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_TMPFILE"];

/// The record of a command's run.
pub struct Trace {
    /// The calls, including failed ones: `mkdir("/x", 0777) = 0`.
    pub calls: Vec<String>,
    pub code: Option<i32>,
    /// What the command printed.
    pub output: Output,
    /// The working directory.
    folder: PathBuf,
}

/// Makes strace run `command`.
pub fn trace(strace: &mut Command, command: &Command) {
    strace.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => strace.env(name, value),
            None => strace.env_remove(name),
        };
    }
}

impl Trace {
    /// Traces a command, which must open files, including the calls `others`.
    pub fn of(command: &Command, others: &[&str]) -> Self {
        let notes = tempfile::tempdir().unwrap();
        let log = notes.path().join("log");
        let mut strace = Command::new("strace");
        // The `?` makes strace ignore calls that it does not know.
        let names = CHANGING
            .iter()
            .chain(&OPENING)
            .chain(others)
            .map(|name| format!("?{name}"))
            .collect::<Vec<_>>()
            .join(",");
        strace.args(["-f", "-qq", "-y", "-s", "4096", "-e", "signal=none", "-e"]);
        strace.arg(format!("trace={names}")).arg("-o").arg(&log);
        trace(&mut strace, command);
        let folder = std::env::current_dir().unwrap();
        let folder = command.get_current_dir().map_or(folder, Path::to_owned);
        let output = strace.current_dir(&folder).output().unwrap();
        let text = String::from_utf8_lossy(&fs::read(&log).unwrap()).into_owned();
        assert!(text.contains("openat("), "strace saw nothing");
        // After the process ID; the lines that resume an interrupted call add nothing.
        let calls = text
            .lines()
            .filter_map(|line| Some(line.split_once(' ')?.1.trim_start()))
            .filter(|call| !call.starts_with('<'))
            .map(str::to_owned)
            .collect();
        Self { calls, code: output.status.code(), output, folder }
    }

    /// The files that the command changed or tried to change.
    pub fn changed(&self) -> Vec<PathBuf> {
        self.calls.iter().flat_map(|call| changed_by(call, &self.folder)).collect()
    }
}

/// The files that a call in `folder` changes.
pub fn changed_by(call: &str, folder: &Path) -> Vec<PathBuf> {
    let Some((name, arguments)) = call.split_once('(') else { return Vec::new() };
    let opens = OPENING.contains(&name) && WRITING.iter().any(|flag| arguments.contains(flag));
    if !opens && !CHANGING.contains(&name) {
        return Vec::new();
    }
    let Arguments { descriptors, mut texts } = Arguments::of(arguments);
    // Texts that name no file: the target of a symbolic link, names and values of attributes.
    if name.starts_with("symlink") {
        texts.drain(..1);
    } else if name.ends_with("xattr") || name.ends_with("xattrat") {
        texts.truncate(usize::from(!name.starts_with('f')));
    }
    // Without a path, the call changes the file of the descriptor.
    if texts.iter().all(|(text, _)| text.is_empty()) {
        return descriptors.first().map(|path| folder.join(path)).into_iter().collect();
    }
    let place = |(text, descriptor): (String, Option<String>)| {
        folder.join(descriptor.unwrap_or_default()).join(text)
    };
    texts.into_iter().map(place).collect()
}

/// The arguments of a call.
#[derive(Default)]
struct Arguments {
    /// The files of open descriptors: `4</folder>`.
    descriptors: Vec<String>,
    /// The quoted texts, each with the last descriptor before it: the folder that a relative path starts
    /// from.
    texts: Vec<(String, Option<String>)>,
}

impl Arguments {
    fn of(arguments: &str) -> Self {
        let mut found = Self::default();
        let mut rest = arguments;
        while let Some(at) = rest.find(['"', '<']) {
            let (is_text, inner) = (rest[at..].starts_with('"'), &rest[at + 1..]);
            let end = if is_text { end_of_text(inner) } else { inner.find('>') };
            let end = end.unwrap_or(inner.len());
            let inside = inner[..end].to_owned();
            if is_text {
                found.texts.push((inside, found.descriptors.last().cloned()));
            } else {
                found.descriptors.push(inside);
            }
            rest = inner.get(end + 1..).unwrap_or_default();
        }
        found
    }
}

/// The index of the quotation mark that ends a text; escaped ones have a backslash in front.
fn end_of_text(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })
}

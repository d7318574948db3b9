//! The stand-in HIP runtime (`runtime.c`), built for a set of libraries, and its reports.
//!
//! Needs gcc, readelf, ldconfig and awk.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::example::names;
use crate::tools;

/// The tools that [`Runtime::build`] needs.
pub const TOOLS: &[&str] = &["gcc", "readelf", "ldconfig", "awk"];

/// The folder for [`Runtime::inside`], within the other system.
pub const INSIDE: &str = "/srv/stand-in";

/// Stand-ins for the dependencies of a set of libraries, and the program that loads libraries with them.
pub struct Runtime {
    folder: PathBuf,
    libraries: Vec<PathBuf>,
    /// A librocm_kpack that must find the same as the stand-in.
    kpack: Option<PathBuf>,
    /// The root of another system to run in, if any: paths are those inside.
    root: Option<PathBuf>,
}

/// One line of the runtime's report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A wrapper that still has its bundle.
    Fat {
        /// The binary's file name.
        binary: String,
        /// `bundle` or `CCOB`.
        form: String,
    },
    /// A wrapper whose code object was found.
    Found(Found),
    /// The reason why a wrapper's code object was not found.
    Missing(String),
    /// A kernel that the host code registers and the code object lacks.
    Absent {
        /// `kernel_name#co_index`.
        key: String,
        /// The mangled name.
        kernel: String,
    },
    /// The numbers of kernels for a wrapper.
    Kernels {
        /// `kernel_name#co_index`.
        key: String,
        /// Kernels in the code object.
        found: usize,
        /// Kernels that the host code registers.
        registered: usize,
    },
    /// Other output of the loader or the program.
    Other(String),
}

/// A code object that the runtime found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// `kernel_name#co_index`.
    pub key: String,
    /// The target of the archive's row.
    pub target: String,
    /// The archive's resolved path.
    pub archive: PathBuf,
    /// The number of the frame.
    pub ordinal: u64,
    /// The size of the code object in bytes.
    pub size: u64,
    /// The example tag in the code object, if any.
    pub tag: Option<String>,
}

impl Line {
    fn parse(line: &str) -> Self {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["fat", binary, form] => {
                Line::Fat { binary: (*binary).to_owned(), form: (*form).to_owned() }
            }
            ["MISSING", ..] | ["MISSING:", ..] => Line::Missing(line.to_owned()),
            ["absent", key, _, kernel] => {
                Line::Absent { key: (*key).to_owned(), kernel: (*kernel).to_owned() }
            }
            ["kernels", key, _, counts] => kernels(key, counts),
            [key, target, "->", archive, ordinal, size, tag @ ..] => Line::Found(Found {
                key: (*key).to_owned(),
                target: (*target).to_owned(),
                archive: PathBuf::from(archive),
                ordinal: ordinal.parse().unwrap(),
                size: size.parse().unwrap(),
                tag: (!tag.is_empty()).then(|| tag.join(" ")),
            }),
            _ => Line::Other(line.to_owned()),
        }
    }
}

fn kernels(key: &str, counts: &str) -> Line {
    let (found, registered) = counts.split_once('/').unwrap();
    Line::Kernels {
        key: key.to_owned(),
        found: found.parse().unwrap(),
        registered: registered.parse().unwrap(),
    }
}

impl Runtime {
    /// Builds stand-ins into `folder` for dependencies of `libraries` that this machine lacks, and the
    /// loader.
    pub fn build(folder: &Path, libraries: &[PathBuf]) -> Self {
        tools::need(TOOLS);
        let sources = tools::repository("tests/support/runtime");
        tools::run(Command::new(sources.join("make-stub.sh")).args(libraries).arg(folder));
        tools::run(
            Command::new("gcc")
                .args(["-O1", "-Wall", "-Wextra", "-Werror"])
                .arg(sources.join("load.c"))
                .args(["-ldl", "-o"])
                .arg(folder.join("load")),
        );
        Self {
            folder: folder.to_owned(),
            libraries: vec![folder.to_owned()],
            kpack: None,
            root: None,
        }
    }

    /// Makes the loader also ask this repository's runtime library for each wrapper and device: it must give
    /// the same bytes. Cargo builds it for test programs that depend on it.
    pub fn with_kpack_library(mut self) -> Self {
        let library = std::env::current_exe().unwrap().with_file_name("librocm_kpack.so");
        assert!(library.is_file(), "{} is not there", library.display());
        self.kpack = Some(library);
        self
    }

    /// Moves everything into the system at `root`, with the zstd library for decoding.
    pub fn inside(self, root: &Path) -> Self {
        let folder = Path::new(INSIDE);
        let place = root.join(INSIDE.trim_start_matches('/'));
        fs::create_dir_all(&place).unwrap();
        let mut files: Vec<PathBuf> =
            names(&self.folder).into_iter().map(|name| self.folder.join(name)).collect();
        files.extend(self.kpack.clone());
        files.push(zstd_library());
        for file in files {
            fs::copy(&file, place.join(file.file_name().unwrap())).unwrap();
        }
        let kpack = self.kpack.map(|library| folder.join(library.file_name().unwrap()));
        let (libraries, root) = (vec![folder.to_owned()], Some(root.to_owned()));
        Self { folder: folder.to_owned(), libraries, kpack, root }
    }

    /// Adds `folder` to the search path for libraries.
    pub fn library_path(mut self, folder: &Path) -> Self {
        self.libraries.push(folder.to_owned());
        self
    }

    /// Loads libraries as the host code of a process with the GPUs `devices` (full target IDs, separated by
    /// commas), decodes the code objects found, and returns the report. Panics if a library does not load.
    pub fn load(&self, libraries: &[PathBuf], devices: &str) -> Vec<Line> {
        self.report(&self.folder.join("load"), libraries, devices)
    }

    /// Runs a program like [`Runtime::load`] and returns the report.
    pub fn run(&self, program: &Path, devices: &str) -> Vec<Line> {
        self.report(program, &[], devices)
    }

    fn report(&self, program: &Path, arguments: &[PathBuf], devices: &str) -> Vec<Line> {
        let path = std::env::join_paths(&self.libraries).unwrap();
        let mut command = match &self.root {
            Some(root) => within(root, program),
            None => Command::new(program),
        };
        command.args(arguments).env("LD_LIBRARY_PATH", &path);
        command.env("ROCKPACK_STUB_ARCH", devices).env("ROCKPACK_STUB_DECODE", "1");
        if let Some(library) = &self.kpack {
            command.env("ROCKPACK_STUB_KPACK", library);
        }
        let output = tools::run(&mut command);
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(Line::parse).collect()
    }
}

/// A command for a program of the system at `root`.
pub fn within(root: &Path, program: &Path) -> Command {
    let mut command = Command::new("chroot");
    command.arg(root).arg(program).env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    command
}

/// The zstd library of this machine.
fn zstd_library() -> PathBuf {
    let known = tools::succeed(Command::new("/sbin/ldconfig").arg("-p"));
    let line = known.lines().find(|line| line.trim().starts_with("libzstd.so.1 ")).unwrap();
    PathBuf::from(line.rsplit(' ').next().unwrap())
}

/// The code objects found, in the order of the report.
pub fn found(lines: &[Line]) -> Vec<&Found> {
    lines
        .iter()
        .filter_map(|line| match line {
            Line::Found(found) => Some(found),
            _ => None,
        })
        .collect()
}

/// The reasons for code objects that were not found.
pub fn missing(lines: &[Line]) -> Vec<&str> {
    lines
        .iter()
        .filter_map(|line| match line {
            Line::Missing(line) => Some(line.as_str()),
            _ => None,
        })
        .collect()
}

/// The number of wrappers of `binary` that still have their bundle.
pub fn fat(lines: &[Line], binary: &str) -> usize {
    lines
        .iter()
        .filter(|line| matches!(line, Line::Fat { binary: name, .. } if name == binary))
        .count()
}

/// How often the runtime library of [`Runtime::with_kpack_library`] returned a code.
pub fn answers(lines: &[Line], code: u32) -> usize {
    let end = format!(" {code}");
    let told = |line: &&Line| matches!(line, Line::Other(text) if text.starts_with("library ") && text.ends_with(&end));
    lines.iter().filter(told).count()
}

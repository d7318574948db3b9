//! Fields of findings about host files: search paths, interpreters and library folders.

use derive_more::Display;
use rockpack_core::error::abridged;
use rockpack_core::tree::TreePath;
use serde::Serialize;

use crate::words::few;

/// A part of a dynamic section that cannot be read.
#[derive(Debug, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum DynamicPart {
    #[display("needed libraries")]
    NeededLibraries,
    #[display("search path")]
    SearchPath,
}

/// The reason why a search path leads out of the prefix.
#[derive(Debug, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum OutsideSearch {
    /// The configuration keeps search paths, and this one has these folders.
    #[display(
        "searches for libraries in {}, outside the prefix; `runpath = \"origin\"` removes that",
        few(&_0.iter().map(|folder| abridged(folder)).collect::<Vec<_>>(), 5)
    )]
    Folders(Vec<String>),
    #[display("keeps its search path {search_path}: {reason}")]
    Stays { search_path: String, reason: String },
}

/// The reason why a script does not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum StartFault {
    #[display("in a first line longer than the 255 bytes that Linux reads")]
    TooLong,
    #[display("in a first line that ends in a carriage return, which Linux treats as part of it")]
    CarriageReturn,
    #[display("by a relative path, which Linux resolves in the working directory")]
    Relative,
    #[display("with arguments, which env treats as part of the name without its option -S")]
    EnvArguments,
    #[display("no program")]
    Nothing,
    #[display("by a path that is not plain text")]
    NotText,
}

/// The reason why an interpreter does not run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum InterpreterFault {
    /// Neither the set nor the distribution is known to have the interpreter of a script.
    Unknown { distribution: String },
    /// Neither the set nor the distribution has the dynamic loader of a program.
    UnknownLoader { distribution: String },
    /// The interpreter is a file of the set without the executable bit.
    NotExecutable,
    /// Linux cannot start the interpreter that the first line names.
    Start(StartFault),
}

impl InterpreterFault {
    /// The message about `interpreter`.
    pub fn describe(&self, interpreter: &str) -> String {
        let interpreter = abridged(interpreter);
        match self {
            Self::Unknown { distribution } => {
                format!("needs {interpreter}, which neither the set nor {distribution} provides")
            }
            Self::UnknownLoader { distribution } => {
                format!(
                    "is loaded by {interpreter}, which neither the set nor {distribution} provides"
                )
            }
            Self::NotExecutable => {
                format!("needs {interpreter}, a file of the set that is not executable")
            }
            Self::Start(StartFault::Nothing) => "names no program in its first line".to_owned(),
            Self::Start(fault) => format!("names {interpreter} {fault}"),
        }
    }

    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "name another one, or none, under `interpreters`",
            Self::UnknownLoader { .. } => {
                "link it for the loader of the distribution, or set it to false in `interpreters`"
            }
            Self::NotExecutable => "make it executable in the build",
            Self::Start(StartFault::CarriageReturn) => "convert the file to Unix line endings",
            Self::Start(StartFault::TooLong) => {
                "write a shorter line in the build, or name a shorter path in `interpreters`"
            }
            Self::Start(StartFault::Nothing | StartFault::NotText) => {
                "correct its first line in the build"
            }
            Self::Start(_) => {
                "name another one under `interpreters`, or correct the first line in the build"
            }
        }
    }
}

/// A folder with libraries that is not in the linker path.
#[derive(Debug, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum LibraryFolder {
    #[display("the prefix itself")]
    Prefix,
    /// A library folder below a top-level system folder, such as `usr/lib`.
    #[display("{folder}")]
    InstalledTree {
        /// Relative to the prefix.
        folder: TreePath,
        /// The folder that was probably intended as the prefix, such as `usr`.
        prefix: String,
    },
    /// A library folder, such as `lib64`.
    #[display("{_0}")]
    Libraries(TreePath),
    #[display("{_0}")]
    Other(TreePath),
}

impl LibraryFolder {
    /// The probable mistake and its remedy.
    pub fn remedy(&self) -> String {
        match self {
            Self::Prefix => "the manifest of the artifact probably names the folder `lib` of a \
                             stage prefix, and should name the one above it"
                .to_owned(),
            Self::InstalledTree { prefix, .. } => format!(
                "the manifest of the artifact probably names the root of an installed tree, and \
                 should name its folder {prefix}"
            ),
            Self::Libraries(folder) => format!(
                "set `libdir` to {folder} if the artifacts were built for it, or give the files \
                 that need them a search path"
            ),
            Self::Other(folder) => format!(
                "install them elsewhere, or give the files that need them a search path to {folder}"
            ),
        }
    }
}

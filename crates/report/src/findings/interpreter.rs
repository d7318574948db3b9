//! Texts of findings about the interpreters of scripts and programs.

use derive_more::Display;
use rockpack_core::error::abridged;
use serde::{Deserialize, Serialize};

/// The reason why a script does not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum StartFault {
    /// Linux does not read the whole line.
    #[display("in a first line of more than the 255 bytes that Linux reads")]
    TooLong,
    /// The line ends in a carriage return, which Linux takes as part of the last word.
    #[display("in a first line that ends in a carriage return, which Linux takes for a part of it")]
    CarriageReturn,
    /// The path is relative, so Linux looks for it in the working directory.
    #[display("by a relative path, which Linux looks for in the working directory")]
    Relative,
    /// `env` takes a program and its arguments as the name of one program.
    #[display("with arguments, which env takes for a part of the name unless it has the option -S")]
    EnvArguments,
    /// The line names no interpreter.
    #[display("no program")]
    Nothing,
    /// The interpreter is not plain text.
    #[display("by a path that is not plain text")]
    NotText,
}

/// The reason why an interpreter does not run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum InterpreterFault {
    /// The interpreter of a script, which neither the set nor the distribution is known to have.
    Unknown { distribution: String },
    /// The dynamic loader of a program, which neither the set nor the distribution has.
    UnknownLoader { distribution: String },
    /// The interpreter is a file of the set that nobody may execute.
    NotExecutable,
    /// The first line names the interpreter in a way that starts nothing.
    Start(StartFault),
}

impl InterpreterFault {
    /// Writes the reason as a text about `interpreter`.
    pub fn told(&self, interpreter: &str) -> String {
        let interpreter = abridged(interpreter);
        match self {
            Self::Unknown { distribution } => {
                format!("needs {interpreter}, which neither the set nor {distribution} has")
            }
            Self::UnknownLoader { distribution } => {
                format!("is loaded by {interpreter}, which neither the set nor {distribution} has")
            }
            Self::NotExecutable => {
                format!("needs {interpreter}, a file of the set that nobody may execute")
            }
            Self::Start(StartFault::Nothing) => "names no program in a first line".to_owned(),
            Self::Start(fault) => format!("names {interpreter} {fault}"),
        }
    }

    /// The remedy, in words.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "`interpreters` names another one, or none",
            Self::UnknownLoader { .. } => {
                "link it for the loader of the distribution, or set it to false in `interpreters`"
            }
            Self::NotExecutable => "make it executable in the build",
            Self::Start(StartFault::CarriageReturn) => "give the file the line ends of Unix",
            Self::Start(StartFault::TooLong) => {
                "write a shorter line in the build, or name a shorter path in `interpreters`"
            }
            Self::Start(StartFault::Nothing | StartFault::NotText) => {
                "write another line in the build"
            }
            Self::Start(_) => {
                "`interpreters` names another one, or write another line in the build"
            }
        }
    }
}

//! What trees hold: as a whole, and at a path.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Node;
use crate::error::{Error, Result};

/// What part of a project an artifact holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ComponentKind {
    /// Libraries.
    Lib,
    /// Programs.
    Run,
    /// Debug files.
    Dbg,
    /// Headers and build files.
    Dev,
    /// Documentation.
    Doc,
    /// Tests.
    Test,
}

impl ComponentKind {
    /// All kinds.
    pub const ALL: [Self; 6] = [Self::Lib, Self::Run, Self::Dbg, Self::Dev, Self::Doc, Self::Test];

    /// The field of an artifact name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lib => "lib",
            Self::Run => "run",
            Self::Dbg => "dbg",
            Self::Dev => "dev",
            Self::Doc => "doc",
            Self::Test => "test",
        }
    }
}

impl FromStr for ComponentKind {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| {
            Error::malformed(format!("`{text}` is no component kind"))
                .hint("the component kinds are lib, run, dbg, dev, doc and test")
        })
    }
}

impl fmt::Display for ComponentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a package installs at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemberKind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link.
    Link,
}

impl MemberKind {
    /// What stands at a node.
    pub fn of<F>(node: &Node<F>) -> Self {
        match node {
            Node::Directory { .. } => Self::Directory,
            Node::File { .. } => Self::File,
            Node::Link { .. } => Self::Link,
        }
    }

    /// Its name in texts, plans and receipts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Directory => "directory",
            Self::File => "file",
            Self::Link => "link",
        }
    }
}

impl fmt::Display for MemberKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

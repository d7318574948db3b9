//! The kinds of whole trees and of their nodes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Node;
use crate::error::{Error, Result};

/// The part of a project that an artifact holds.
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

    /// The word in artifact names.
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

/// The kind of an installed member of a package.
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
    /// The kind of `node`.
    pub fn of<F>(node: &Node<F>) -> Self {
        match node {
            Node::Directory { .. } => Self::Directory,
            Node::File { .. } => Self::File,
            Node::Link { .. } => Self::Link,
        }
    }

    /// The word in texts, plans and receipts.
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

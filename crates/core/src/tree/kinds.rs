//! The kinds of whole trees and of their nodes.

use std::str::FromStr;

use crate::error::{Error, Result};
use crate::named::named_enum;

named_enum! {
    /// The part of a project that an artifact holds, by its word in artifact names.
    pub enum ComponentKind {
        /// Libraries.
        Lib = "lib",
        /// Programs.
        Run = "run",
        /// Debug files.
        Dbg = "dbg",
        /// Headers and build files.
        Dev = "dev",
        /// Documentation.
        Doc = "doc",
        /// Tests.
        Test = "test",
    }
}

impl ComponentKind {
    /// All kinds.
    pub const ALL: [Self; 6] = [Self::Lib, Self::Run, Self::Dbg, Self::Dev, Self::Doc, Self::Test];
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

named_enum! {
    /// The kind of an installed member of a package.
    pub enum MemberKind {
        /// A directory.
        Directory = "directory",
        /// A regular file.
        File = "file",
        /// A symbolic link.
        Link = "link",
    }
}

//! Folders with libraries that the loader does not know, and how they probably came about.

use derive_more::Display;
use rockpack_base::tree::TreePath;
use serde::{Deserialize, Serialize};

/// A folder with libraries that is not in the linker path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum LibraryFolder {
    /// The prefix.
    #[display("the prefix itself")]
    Prefix,
    /// A folder below one that belongs to the root of a system, such as `usr/lib`.
    #[display("{folder}")]
    InstalledTree {
        /// Relative to the prefix.
        folder: TreePath,
        /// What probably was to be the prefix, such as `usr`.
        prefix: String,
    },
    /// A folder of libraries, such as `lib64`.
    #[display("{_0}")]
    Libraries(TreePath),
    /// Any other.
    #[display("{_0}")]
    Other(TreePath),
}

impl LibraryFolder {
    /// What was probably done wrong, and what to do about it.
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

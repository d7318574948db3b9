//! Folders with libraries that the loader does not search, and their probable causes.

use derive_more::Display;
use rockpack_core::tree::TreePath;
use serde::{Deserialize, Serialize};

/// A folder with libraries that is not in the linker path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum LibraryFolder {
    /// The prefix.
    #[display("the prefix itself")]
    Prefix,
    /// A folder below a folder of a system's root, such as `usr/lib`.
    #[display("{folder}")]
    InstalledTree {
        /// The folder, relative to the prefix.
        folder: TreePath,
        /// The folder that was probably meant as the prefix, such as `usr`.
        prefix: String,
    },
    /// A folder of libraries, such as `lib64`.
    #[display("{_0}")]
    Libraries(TreePath),
    /// Any other folder.
    #[display("{_0}")]
    Other(TreePath),
}

impl LibraryFolder {
    /// The probable mistake and its remedy, in words.
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

//! The place of a code object in a package.

use serde::{Deserialize, Serialize};

/// The place of a code object in a package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CodeObjectPlace {
    /// A row of a kernel archive.
    Archive {
        /// Install-relative path of the binary that held it.
        binary: String,
        /// Absolute install path of the archive.
        archive: String,
        /// Key of the code object in the archive, `<kernel_name>#<co_index>`.
        key: String,
    },
    /// A file that was packed unchanged, such as one of a kernel database.
    File {
        /// Absolute install path of the file.
        file: String,
        /// The entry id in a file that is an offload bundle, or the key in a kernel archive that a component
        /// ships itself. Absent if the whole file is the code object.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        entry: Option<String>,
    },
}

impl CodeObjectPlace {
    /// The absolute install path of the archive or file.
    pub fn path(&self) -> &str {
        match self {
            Self::Archive { archive, .. } => archive,
            Self::File { file, .. } => file,
        }
    }
}

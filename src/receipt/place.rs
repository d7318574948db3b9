//! Where a package holds a code object.

use serde::{Deserialize, Serialize};

/// Where a package holds a code object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged, try_from = "Stated")]
pub enum CodeObjectPlace {
    /// A row of a kernel archive.
    Archive {
        /// Install-relative path of the binary that held it.
        binary: String,
        /// Absolute install path of the archive.
        archive: String,
        /// Its key in the archive, `<kernel_name>#<co_index>`.
        key: String,
    },
    /// A file that was packed as it is, such as one of a kernel database.
    File {
        /// Absolute install path of the file.
        file: String,
        /// For files that are offload bundles: the id of its entry. For kernel archives that a
        /// component ships itself: its key in the archive. Without it, the code object is the whole
        /// file.
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

/// The fields of all places: a record that has those of two would be taken for either.
#[derive(Deserialize)]
struct Stated {
    binary: Option<String>,
    archive: Option<String>,
    key: Option<String>,
    file: Option<String>,
    entry: Option<String>,
}

impl TryFrom<Stated> for CodeObjectPlace {
    type Error = &'static str;

    fn try_from(stated: Stated) -> Result<Self, Self::Error> {
        match stated {
            Stated {
                binary: Some(binary),
                archive: Some(archive),
                key: Some(key),
                file: None,
                entry: None,
            } => Ok(Self::Archive { binary, archive, key }),
            Stated { binary: None, archive: None, key: None, file: Some(file), entry } => {
                Ok(Self::File { file, entry })
            }
            _ => Err("a code object has to lie in an archive or in a file, and not in both"),
        }
    }
}

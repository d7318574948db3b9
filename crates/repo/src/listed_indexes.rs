//! The entries of `Release` or `repomd.xml` for the indexes of a channel. The state keeps them, so that
//! a publication of the same packages need not rewrite the indexes.

use std::collections::BTreeSet;

use rockpack_archive::apt_index::IndexFile;
use rockpack_archive::rpm_md::DataFile;
use rockpack_core::compression::Method;
use serde::{Deserialize, Serialize};

use super::channel::Channel;
use super::compress::ending;
use super::index_paths::apt_index_paths;

/// The indexes of a channel; of one of the two kinds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ListedIndexes {
    /// The entries of `Release`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub release: Vec<IndexFile>,
    /// The entries of `repomd.xml`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repomd: Vec<DataFile>,
}

impl ListedIndexes {
    /// Path and size of every file of `channel` that is listed, under each of its names.
    pub fn files(&self, channel: &Channel) -> Vec<(String, u64)> {
        let mut files: Vec<(String, u64)> =
            self.repomd.iter().map(|file| (file.path.clone(), file.size)).collect();
        if let Channel::Apt(suite) = channel {
            files.extend(self.release.iter().flat_map(|file| {
                apt_index_paths(suite, file).into_iter().map(|name| (name, file.size))
            }));
        }
        files
    }

    /// Paths of all indexes of `channel`.
    pub fn paths(&self, channel: &Channel) -> BTreeSet<String> {
        self.files(channel).into_iter().map(|(path, _)| path).collect()
    }

    /// Whether the lists of an rpm repository are compressed by `method`.
    pub fn is_compressed_by(&self, method: Method) -> bool {
        self.repomd.iter().all(|file| file.path.ends_with(&format!(".xml{}", ending(method))))
    }
}

//! Code objects that are lost or foreign, and the words for it.

use derive_more::Display;
use serde::Serialize;

/// The place where a code object is missing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum CodeLoss {
    /// No package installs the file that has it by the receipt.
    #[display("the receipt has it in {installed}, which no package installs")]
    NotInstalled { installed: String },
    /// The file does not have it, or not under this key or entry.
    #[display(
        "the receipt has it in {installed}{}, which has something else there",
        key.as_ref().map_or(String::new(), |key| format!(" at {key}"))
    )]
    NotAtPlace { installed: String, key: Option<String> },
    /// A wrapper of a shard's build has the code, and no archive has it.
    #[display("wrapper {wrapper} of shard {shard} has it, and no archive or finding")]
    OfWrapper { shard: String, wrapper: usize },
    /// A file of a shard contains the code, and no package does.
    #[display("shard {shard} has it, and no package or finding")]
    OfFile { shard: String },
}

/// The place of a code object in a file. Its text begins a sentence.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum CodePosition {
    /// The file is the code object.
    #[display("")]
    File,
    /// The code object in this row of an archive.
    #[display("{key} [{target}]: ")]
    Row { key: String, target: String },
    /// The code object in this entry of a bundle.
    #[display("{id}: ")]
    Entry { id: String },
}

impl CodePosition {
    /// The row of an archive.
    pub fn row(key: &str, target: &str) -> Self {
        Self::Row { key: key.to_owned(), target: target.to_owned() }
    }
}

/// The sources that should have a code object, as messages and JSON name them.
pub const ARTIFACTS: &str = "artifacts";

/// The receipt, as [`ARTIFACTS`].
pub const RECEIPT: &str = "receipt";

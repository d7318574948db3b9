//! Contradictions between an index of a kernel database and the files beside it.

use derive_more::Display;
use serde::{Deserialize, Serialize};

use crate::words::{are, counted, few};

/// Names that a text shows. The fields have all of them.
const SHOWN: usize = 3;

/// The contradiction between an index and the other files of its folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum Inconsistency {
    /// The file is a lazy master index, and its mapping is missing.
    #[display("is a lazy master index that does not come with its mapping {mapping}")]
    MasterWithoutMapping { mapping: String },
    /// The file is a mapping, and its lazy master index is missing.
    #[display("is a mapping that does not come with its lazy master index {master}")]
    MappingWithoutMaster { master: String },
    /// The file is a mapping for an arch, and names libraries whose names do not end in that arch.
    #[display(
        "is the mapping for {arch}, and maps to {} not named for it ({})",
        counted(names.len(), "library"),
        few(names, SHOWN)
    )]
    ForeignNames { arch: String, names: Vec<String> },
    /// The file is a mapping without a fallback library, although the folder has such libraries.
    #[display(
        "is a mapping that maps to no fallback library, although {} beside it",
        few_are(fallbacks)
    )]
    FallbackUnmapped { fallbacks: Vec<String> },
    /// The file is a plain index, and the compressed index of the same name exists, too.
    #[display(
        "is beside {compressed}, which libraries that know compressed indexes read in its place"
    )]
    PlainAndCompressed { compressed: String },
}

fn few_are(names: &[String]) -> String {
    format!("{} {}", few(names, SHOWN), are(names.len()))
}

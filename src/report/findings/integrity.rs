//! Indexes of a kernel database that contradict what lies beside them.

use derive_more::Display;
use serde::{Deserialize, Serialize};

use crate::report::words::{are, counted, few};

/// Names that a text shows; the fields have all.
const SHOWN: usize = 3;

/// How an index is at odds with the others of its folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum Inconsistency {
    /// The file is a lazy master index, and its mapping is not there.
    #[display("is a lazy master index that does not come with its mapping {mapping}")]
    MasterWithoutMapping { mapping: String },
    /// The file is a mapping, and its lazy master index is not there.
    #[display("is a mapping that does not come with its lazy master index {master}")]
    MappingWithoutMaster { master: String },
    /// The file is a mapping for an arch, and names libraries whose names do not end in that arch.
    #[display(
        "is the mapping for {arch}, and maps to {} not named for it ({})",
        counted(names.len(), "library"),
        few(names, SHOWN)
    )]
    ForeignNames { arch: String, names: Vec<String> },
    /// The file is a mapping that names no fallback library, and such libraries are there.
    #[display(
        "is a mapping that maps to no fallback library, although {} beside it",
        few_are(fallbacks)
    )]
    FallbackUnmapped { fallbacks: Vec<String> },
    /// The file is a plain index, and the compressed one of its name is there too.
    #[display(
        "is beside {compressed}, which libraries that know compressed indexes read in its place"
    )]
    PlainAndCompressed { compressed: String },
}

fn few_are(names: &[String]) -> String {
    format!("{} {}", few(names, SHOWN), are(names.len()))
}

//! Files that are lost, and the words for it.

use derive_more::Display;
use serde::Serialize;

use rockpack_report::words::few;

/// How a file of the artifacts is lost.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum FileLoss {
    /// No package has the path.
    #[display("is in no package")]
    Absent,
    /// A package has something else there.
    #[display("is in a package with other content")]
    OtherContent,
    /// No package has the binary.
    #[display("a binary with device code is in no package as a host binary")]
    BinaryAbsent,
    /// A package has another binary.
    #[display("a binary is in a package with other machine code or another number of wrappers")]
    OtherBinary,
    /// A package has a binary with bytes that neither its build nor taking out device code explains.
    #[display(
        "a binary is in a package with bytes that taking the device code out of that of {shard} does \
         not explain: {}",
        few(parts, 5)
    )]
    OtherBytes { shard: String, parts: Vec<String> },
    /// A package has it with another mode than packages have.
    #[display("is in a package with mode {mode:o}, and has to have {wanted:o}")]
    OtherMode { mode: u32, wanted: u32 },
}

/// How two packages share a path that is no directory.
pub const OWNED_TWICE: &str = "is owned by two packages";

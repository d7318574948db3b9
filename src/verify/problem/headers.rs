//! Faults of headers and scripts, and the words for them.

use derive_more::Display;
use rockpack_base::formats::rpm::MissingDigest;
use serde::Serialize;

use crate::report::words::list;

/// The fault of the header of an `.rpm`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum HeaderFault {
    /// The package lacks a digest.
    #[display("states no SHA-256 of the {missing}, and rpm 6 refuses such packages")]
    NoDigest { missing: MissingDigest },
    /// The package is for another system.
    #[display("its header says that it is for the system `{os}`, and rpm of Linux refuses it")]
    System { os: String },
    /// The package is for another machine.
    #[display("its header says that it is for `{arch}`, and rpm of x86-64 refuses it")]
    Machine { arch: String },
    /// The payload is no archive that rpm reads.
    #[display("its header says that the payload is `{format}`, which rpm does not read")]
    PayloadFormat { format: String },
    /// The package needs a feature that no rpm has.
    #[display("needs {feature}, which no rpm has")]
    Feature { feature: String },
    /// The package needs something that nothing of it needs.
    #[display("needs {name}, as if its scripts or rpm needed it, and they do not")]
    HiddenNeed { name: String },
    /// Flags of a dependency that no build writes.
    #[display(
        "its header gives the dependency on {name} the flags {flags:#x}, and no build writes these"
    )]
    DependencyFlags { name: String, flags: u32 },
    /// A tag that rpm acts on.
    #[display("its header has tag {tag} ({what}), on which rpm acts and which no check reads")]
    Acting { tag: u32, what: String },
    /// A tag of unknown meaning.
    #[display("its header has tag {tag}, on which rpm may act and which no check knows")]
    Unknown { tag: u32 },
    /// The digest over header and payload is wrong.
    #[display("the MD5 of header and payload is not the one that its signature header states")]
    Md5,
    /// A file with rpm flags that rockpack's builds never set.
    #[display("its header gives {path} the flags {flags:#x}, and no build writes these")]
    FileFlags { path: String, flags: u32 },
    /// A further name of a file.
    #[display("its header makes {path} a hard link, and no build writes these")]
    HardLink { path: String },
    /// A file that `rpm --verify` checks only in part.
    #[display("its header has `rpm --verify` pass over what becomes of {path}")]
    Unverified { path: String },
    /// Configuration that rpm would replace.
    #[display("its header does not mark {path} as %config(noreplace), so that rpm replaces it")]
    NotKept { path: String },
    /// The package may be moved from elsewhere than its install prefix.
    #[display(
        "its header says that it may be moved from `{}`, and a build writes `{}`",
        list(stated),
        list(wanted)
    )]
    Prefixes { stated: Vec<String>, wanted: Vec<String> },
    /// The installed size is not that of the content.
    #[display("says that it takes {stated} bytes once it is installed, and takes {own}")]
    Size { stated: u64, own: u64 },
    /// Files have different times.
    #[display("its header gives {path} the time {time}, and other files {others}: a set has one")]
    Time { path: String, time: u64, others: u64 },
    /// A file that rpm may leave out.
    #[display("its header marks {path} as {how}, so that rpm may leave it out")]
    LeftOut { path: String, how: LeftOutAs },
}

/// The reason for which rpm may leave a file out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum LeftOutAs {
    /// Left out by `--excludedocs`.
    #[display("a document (%doc)")]
    Document,
    /// Left out where the macro `_install_langs` names other languages.
    #[display("for one language (%lang)")]
    Language,
    /// A configuration file: `--noconfigs` leaves it out, and changed ones are kept.
    #[display("configuration (%config)")]
    Config,
    /// Left out by `--excludeartifacts`.
    #[display("an artifact of the build (%artifact)")]
    BuildArtifact,
    /// Left out where the macro `_transaction_color` names other word sizes.
    #[display("of another word size (its colour)")]
    Colour,
}

/// A feature of a `.deb` that rockpack never writes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum DebFault {
    /// A field of the control file.
    #[display(
        "has the field `{name}: {value}`, on which dpkg or apt may act, and no build writes it"
    )]
    Field { name: String, value: String },
    /// A line of `conffiles`.
    #[display(
        "its conffiles has the line `{line}`, by which dpkg keeps or removes what no build makes \
         configuration"
    )]
    Conffile { line: String },
    /// Configuration that dpkg would replace.
    #[display("its conffiles does not list {path}, so that dpkg replaces it")]
    NotKept { path: String },
    /// The installed size is not that of the content.
    #[display("says that it takes {stated} bytes once it is installed, and takes {own}")]
    Size { stated: u64, own: u64 },
    /// Files have different times.
    #[display("{path} has the time {time}, and other files {others}: a set has one")]
    Time { path: String, time: u64, others: u64 },
    /// An archive that is written in another way.
    #[display(
        "is not written as rockpack writes it: {first}{}", more(*others)
    )]
    Archive { first: String, others: usize },
}

fn more(others: usize) -> String {
    if others == 0 { String::new() } else { format!(" (and {others} more)") }
}

/// Why a script is foreign.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum ScriptFault {
    /// The text is not that of a template.
    #[display("its {phase} is not, word for word, what this version of rockpack writes")]
    Text { phase: String },
    /// The script is missing, and the files of the package need it.
    #[display("has no {phase}, which this version of rockpack writes for what is in the package")]
    Missing { phase: String },
    /// Another program runs it.
    #[display("its {phase} is run by `{interpreter}`, as no package of rockpack has it")]
    Interpreter { phase: String, interpreter: String },
    /// A control file that no package of rockpack has.
    #[display("has the control file {name}, as no package of rockpack has")]
    ControlFile { name: String },
}

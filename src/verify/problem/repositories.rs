//! What is wrong with repositories, and the words for it.

use std::fmt;

use serde::Serialize;

use super::relations::NamedVersion;
use crate::report::words::either;

/// Why an index cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum IndexFault {
    /// What it holds is no index.
    Unreadable { reason: String },
    /// It is no text.
    NotUtf8,
    /// It is said to lie outside of the repository.
    Outside { path: String },
    /// It is no file, or too large.
    NoFile,
    /// It names a list outside of the repository.
    NamesOutside { path: String },
    /// It names two lists of one kind.
    ListTwice { list: String },
    /// It says something of a list twice.
    ElementTwice { list: String, element: String },
    /// It names no list of packages that can be read.
    NoPrimary,
    /// The list is named without a digest that counts.
    NoSha256,
    /// It has a package without `Filename`.
    NoFilename,
    /// It has packages for too many architectures.
    Architectures { count: usize, most: usize },
    /// It says something of the package twice.
    PackageElementTwice { element: String },
}

impl fmt::Display for IndexFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { reason } => f.write_str(reason),
            Self::NotUtf8 => f.write_str("is no UTF-8"),
            Self::Outside { path } => {
                write!(f, "`{}` lies outside of the repository", path.escape_debug())
            }
            Self::NoFile => f.write_str("is no file, or larger than any index"),
            Self::NamesOutside { path } => write!(f, "names `{}`", path.escape_debug()),
            Self::ListTwice { list } => write!(f, "lists {list} twice"),
            Self::ElementTwice { list, element } => write!(f, "{list} has <{element}> twice"),
            Self::NoPrimary => f.write_str("lists no primary that can be read"),
            Self::NoSha256 => f.write_str("is listed without SHA-256"),
            Self::NoFilename => f.write_str("has a package without Filename"),
            Self::Architectures { count, most } => {
                write!(f, "has packages for {count} architectures, more than {most}")
            }
            Self::PackageElementTwice { element } => {
                write!(f, "primary has <{element}> twice for it")
            }
        }
    }
}

/// How an index is not the one that is listed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum IndexDifference {
    /// It is not there.
    Absent,
    /// Its bytes are not those that the file of this name lists.
    Bytes { listed_by: String },
    /// The text in it is not the one that `repomd.xml` lists.
    OpenText,
    /// The index in it is not the one that `Release` lists.
    Unpacked { index: String },
    /// It lies under the digest of something else.
    Digest,
    /// Other forms of it have another text.
    Forms,
}

impl fmt::Display for IndexDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("is listed, but not there"),
            Self::Bytes { listed_by } => write!(f, "is not the one that {listed_by} lists"),
            Self::OpenText => f.write_str("holds another text than repomd.xml lists"),
            Self::Unpacked { index } => write!(f, "does not hold the {index} that Release lists"),
            Self::Digest => f.write_str("does not have that digest"),
            Self::Forms => f.write_str("differs from the other forms of it"),
        }
    }
}

/// In what a package differs from what an index says of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum IndexedDifference {
    /// It cannot be read.
    Unreadable { reason: String },
    /// In a property of the file, or in what its header says.
    Property(String),
    /// In a field of its control file.
    Field(String),
}

impl fmt::Display for IndexedDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { reason } => f.write_str(reason),
            Self::Property(what) => write!(f, "its {what} is not the one of the index"),
            Self::Field(field) => write!(f, "its field {field} is not the one of the index"),
        }
    }
}

/// What is wrong with a signature.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum SignatureFault {
    /// The file with it is not there.
    Absent,
    /// It is no signature, or by none of the keys, or of something else.
    Bad { reason: String },
    /// The same of the header of a package.
    BadHeader { reason: String },
    /// A package has none, and clients are told to refuse it.
    Unsigned,
}

impl fmt::Display for SignatureFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("is not there"),
            Self::Bad { reason } => f.write_str(reason),
            Self::BadHeader { reason } => write!(f, "its header {reason}"),
            Self::Unsigned => f.write_str("is not signed, and the .repo file says gpgcheck=1"),
        }
    }
}

/// A dependency that no package of a repository meets.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum OpenDependency {
    /// Of a `.deb`, in the index for an architecture, if it is for one.
    Deb { alternatives: Vec<String>, arch: Option<String> },
    /// Of an `.rpm`, on such machines.
    Rpm { alternatives: Vec<String>, arch: String },
}

impl fmt::Display for OpenDependency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verb, alternatives, arch) = match self {
            Self::Deb { alternatives, arch } => ("depends on", alternatives, arch.as_deref()),
            Self::Rpm { alternatives, arch } => ("requires", alternatives, Some(arch.as_str())),
        };
        write!(f, "{verb} {}, which no package{} is", either(alternatives, 5), for_arch(arch))
    }
}

/// What contradicts itself in the indexes of a repository.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "fields are called what they hold")]
pub enum IndexContradiction {
    /// The index has a package for another architecture.
    OtherArch { package: String, arch: String },
    /// It describes a package otherwise than another.
    Description { package: String },
    /// It lists a package that another one of the architecture, if it is for one, lists.
    PackageTwice { package: String, arch: Option<String> },
    /// Two packages are the same by all that clients know them by.
    SamePackage { identity: NamedVersion, other: String },
    /// One of the lists has a package twice.
    TwiceInList { list: String },
    /// One of the lists is not there.
    ListAbsent { list: String },
    /// One of the lists has other packages than `primary`.
    OtherPackages { list: String },
    /// `primary` names the package twice.
    NamedTwice,
}

impl fmt::Display for IndexContradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherArch { package, arch } => write!(f, "has {package}, which is for {arch}"),
            Self::Description { package } => {
                write!(f, "describes {package}, which was described otherwise before")
            }
            Self::PackageTwice { package, arch } => {
                let for_arch = for_arch(arch.as_deref());
                write!(f, "lists {package}, which was listed{for_arch} before")
            }
            Self::SamePackage { identity, other } => {
                write!(f, "is {identity}, as {other} is, with other content")
            }
            Self::TwiceInList { list } => write!(f, "{list} has a package twice"),
            Self::ListAbsent { list } => write!(f, "has no {list}"),
            Self::OtherPackages { list } => write!(f, "{list} has other packages than primary"),
            Self::NamedTwice => f.write_str("is named by primary twice"),
        }
    }
}

/// An index that is in no architecture's folder is for none.
fn for_arch(arch: Option<&str>) -> String {
    arch.map_or(String::new(), |arch| format!(" for {arch}"))
}

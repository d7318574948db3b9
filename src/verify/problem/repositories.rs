//! Faults of repositories, with their texts.

use derive_more::Display;
use serde::Serialize;

use super::relations::NamedVersion;
use crate::package::Format;
use crate::report::ExtraGap;
use crate::report::words::{either, few};

/// Why an index cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum IndexFault {
    /// The content is no index.
    Unreadable { reason: String },
    /// The file is not text.
    #[display("is no UTF-8")]
    NotUtf8,
    /// The path is outside of the repository.
    #[display("`{}` lies outside of the repository", path.escape_debug())]
    Outside { path: String },
    /// The path is no regular file.
    #[display("is no file")]
    NoFile,
    /// The file has more bytes than such files may have.
    #[display("has {len} bytes, more than the {most} that such a file may have")]
    Large { len: u64, most: u64 },
    /// The index names more lists than clients read.
    #[display("names {count} lists, more than the {most} that are read")]
    Lists { count: usize, most: usize },
    /// The index names a list outside of the repository.
    #[display("names `{}`", path.escape_debug())]
    NamesOutside { path: String },
    /// The index names two lists of the same kind.
    #[display("lists {list} twice")]
    ListTwice { list: String },
    /// The index describes a list twice.
    #[display("{list} has <{element}> twice")]
    ElementTwice { list: String, element: String },
    /// The index names no readable list of packages.
    #[display("lists no primary that can be read")]
    NoPrimary,
    /// The list is named without a digest that counts.
    #[display("is listed without SHA-256")]
    NoSha256,
    /// The index has a package without `Filename`.
    #[display("has a package without Filename")]
    NoFilename,
    /// The index has packages for too many architectures.
    #[display("has packages for {count} architectures, more than {most}")]
    Architectures { count: usize, most: usize },
    /// The index has an element of a package twice.
    #[display("primary has <{element}> twice for it")]
    PackageElementTwice { element: String },
}

/// How an index is not the one that is listed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum IndexDifference {
    /// The file is missing.
    #[display("is listed, but the file is missing")]
    Absent,
    /// The bytes differ from those that another file lists.
    #[display("is not the one that {listed_by} lists")]
    Bytes { listed_by: String },
    /// The text in it is not the one that `repomd.xml` lists.
    #[display("its uncompressed content is not the one that repomd.xml lists")]
    OpenText,
    /// The index in it is not the one that `Release` lists.
    #[display("does not hold the {index} that Release lists")]
    Unpacked { index: String },
    /// The file is named after the digest of other content.
    #[display("its content does not have the digest that is its name")]
    Digest,
    /// Other forms of it have another text.
    #[display("its content differs from the other compressed forms of this index")]
    Forms,
    /// The page of an index of wheels has an element that such pages do not have.
    #[display("has an element <{element}>, which no page of an index has")]
    Element { element: String },
    /// The page of an index of wheels has a field that no check compares.
    #[display("has the field `{field}`: what it does to clients is not known")]
    Field { field: String },
    /// The page of an index of wheels is for other clients.
    #[display("is of version {version} of the interface, and clients read 1.0 and above")]
    Interface { version: String },
    /// A part of a page for programs contradicts the files on it.
    #[display("its {part} contradicts its files")]
    Part { part: &'static str },
    /// The page of an index of wheels has other links than the page for programs.
    #[display("does not say what index.json beside it says")]
    Page,
}

/// A difference between a package and its entry in an index.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum IndexedDifference {
    /// The package cannot be read.
    Unreadable { reason: String },
    /// A property of the file, or a value of its header, differs.
    #[display("its {_0} is not the one of the index")]
    Property(String),
    /// A field of its control file differs.
    #[display("its field {_0} is not the one of the index")]
    Field(String),
}

/// A fault of a signature.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum SignatureFault {
    /// The file with it is not there.
    #[display("is not there")]
    Absent,
    /// The signature is invalid, by an unknown key, or of other content.
    Bad { reason: String },
    /// The signature of a package's header has such a fault.
    #[display("its header {reason}")]
    BadHeader { reason: String },
    /// A package has none, and clients are told to refuse it.
    #[display("has no signature of its header, and the .repo file says gpgcheck=1")]
    Unsigned,
}

/// A dependency that no package of a repository meets.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum OpenDependency {
    /// The dependency of a `.deb`, in the index of `arch` or in all of them.
    #[display(
        "depends on {}, which no package{} is",
        either(alternatives, 5),
        for_arch(arch.as_deref())
    )]
    Deb { alternatives: Vec<String>, arch: Option<String> },
    /// The dependency of an `.rpm` on machines of `arch`.
    #[display("requires {}, which no package{} is", either(alternatives, 5), for_arch(Some(arch)))]
    Rpm { alternatives: Vec<String>, arch: String },
    /// A path that an `.rpm` requires, and a package with it that dnf and zypper do not find.
    #[display(
        "requires {path}, which is in {owner}, but no package provides it and primary does not \
         list it"
    )]
    Path { path: String, owner: String },
    /// The requirement of an extra of a wheel.
    #[display("{}", gap.describe(extra, requires))]
    Wheel { extra: String, requires: String, gap: ExtraGap },
}

/// A contradiction in the indexes of a repository.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum IndexContradiction {
    /// The index has a package for another architecture.
    #[display("has {package}, which is for {arch}")]
    OtherArch { package: String, arch: String },
    /// The index describes a package in another way than an earlier entry.
    #[display("describes {package} in another way than an earlier entry")]
    Description { package: String },
    /// The index lists a package that an earlier entry lists, for the same architecture if it is for one.
    #[display("lists {package}, which an earlier entry lists{}", for_arch(arch.as_deref()))]
    PackageTwice { package: String, arch: Option<String> },
    /// Two packages are the same by all that clients know them by.
    #[display("is {identity}, and so is {other} with other content")]
    SamePackage { identity: NamedVersion, other: String },
    /// One of the lists has a package twice.
    #[display("{list} has a package twice")]
    TwiceInList { list: String },
    /// One of the lists is not there.
    #[display("has no {list}")]
    ListAbsent { list: String },
    /// One of the lists has other packages than `primary`.
    #[display("{list} has other packages than primary")]
    OtherPackages { list: String },
    /// The suite lies in the folder of another one.
    #[display(
        "says that its suite is {}, but lies in the folder of the suite {folder}",
        either(names, 2)
    )]
    OtherSuite { names: Vec<String>, folder: String },
    /// `primary` names the package twice.
    #[display("is named by primary twice")]
    NamedTwice,
}

/// The fault of a file for clients.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum ClientFault {
    /// Clients do not read the file.
    #[display("is not read by all clients: {reason}")]
    Unreadable { reason: String },
    /// The keyring has none of the keys that are trusted.
    #[display("has none of the keys given")]
    OtherKeys,
    /// The keyring has keys beside those that are trusted.
    #[display(
        "has {} beside those given, and clients take what is signed by them: give them by --key, too, \
         if they belong there",
        keys(fingerprints)
    )]
    MoreKeys { fingerprints: Vec<String> },
    /// The keyring has no key by which clients take an index.
    #[display("has no key by which an index of the repository is signed, or one that is not valid")]
    NoSigner,
    /// The file has clients take what they should refuse.
    #[display("says `{line}`, so that clients take what nobody signed, or what is old")]
    Insecure { line: String },
    /// The file has a line that no publication writes.
    #[display(
        "has the line `{line}`, which no publication writes: what it does to clients is not known"
    )]
    Unknown { line: String },
    /// The file lacks a line.
    #[display("says nothing for `{name}`, without which clients get no packages")]
    Lacks { name: String },
    /// The file has clients ignore signatures.
    #[display("does not have clients check the signatures of indexes or packages, which are there")]
    Unchecked,
    /// The file leads elsewhere.
    #[display("leads to {url}, and the repository or another file for clients is elsewhere")]
    Elsewhere { url: String },
    /// The file names something that is not there.
    #[display("names {what}, which is not there")]
    Absent { what: String },
    /// The file has not the digest that the state of the repository has.
    #[display("was changed or removed since the publication")]
    Changed,
}

/// The fault of a file below `.rockpack`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum StateFault {
    /// The file is damaged.
    #[display("cannot be read, and `repo` refuses it: {reason}")]
    Unreadable { reason: String },
    /// Only the state or the indexes have a package, or they have other values for it.
    #[display(
        "says other things of {package} than the indexes: it may be of an earlier publication"
    )]
    Differs { package: String },
    /// The indexes of the state are missing.
    #[display("is the state of indexes that are not there")]
    NoIndex,
}

/// The conflict of two packages of a repository about a path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum RepositoryPathFault {
    /// Two packages own it, and can be installed together.
    #[display(
        "is owned by {first} and {second} (.{format}), and no Conflicts, Breaks, Replaces or Obsoletes \
         keeps them apart"
    )]
    Together { format: Format, first: String, second: String },
    /// One package has it in its older version, and another one in its newer.
    #[display(
        "was in {former} and is in {owner}, which does not replace it: dpkg stops at that update"
    )]
    Moved { former: String, owner: String },
}

fn keys(fingerprints: &[String]) -> String {
    let noun = if fingerprints.len() == 1 { "the key" } else { "the keys" };
    format!("{noun} {}", few(fingerprints, 3))
}

/// An index that is in no architecture's folder is for none.
fn for_arch(arch: Option<&str>) -> String {
    arch.map_or(String::new(), |arch| format!(" for {arch}"))
}

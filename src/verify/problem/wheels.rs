//! Faults of Python wheels, and the words for them.

use derive_more::Display;
use serde::Serialize;

/// How RECORD and the members of a wheel differ.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum ListingFault {
    /// No row names the member.
    #[display(
        "is not in RECORD: installers refuse the wheel, or leave the file behind when it is \
         uninstalled"
    )]
    Unlisted,
    /// No member has the path of a row.
    #[display("is in RECORD, and not in the wheel")]
    WithoutMember,
    /// The digest is that of other bytes.
    #[display("has another {hash} than RECORD says")]
    Digest { hash: String },
    /// The size is another.
    #[display("has {size} bytes, and RECORD says {stated}")]
    Size { size: u64, stated: u64 },
    /// A row has no digest.
    #[display("has no digest in RECORD, and rockpack states that of each file")]
    WithoutDigest,
    /// RECORD does not name itself.
    #[display("has no row of itself, and installers leave it behind")]
    WithoutItself,
    /// RECORD has a digest or size of itself.
    #[display("has a digest or size of itself, which no writer can know")]
    OfItself,
    /// A signature of the RECORD that the fat wheel had.
    #[display("signs the RECORD of the wheel that was split, which is another one")]
    Signature,
}

/// A difference between the texts of a wheel and its name, or its host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum HeaderDifference {
    /// The folder of its metadata belongs to another one.
    #[display("has its metadata in {folder}, which is not that of its file name")]
    Folder { folder: String },
    /// A field of METADATA or WHEEL differs from the file name.
    #[display("its file name has the {field} {named}, and its {file} says {stated}")]
    Name { field: &'static str, file: &'static str, named: String, stated: String },
    /// A line of METADATA is no requirement.
    #[display("has a line Requires-Dist that pip refuses with the whole wheel: {reason}")]
    Requirement { reason: String },
    /// A version that PEP 440 does not know.
    #[display(
        "its {file} has the version {version}, which PEP 440 does not know: installers refuse it"
    )]
    NoVersion { file: &'static str, version: String },
    /// The tags are not those of the host.
    #[display("is tagged {own}, and its host {host} {hosts}: pip installs one without the other")]
    HostTags { host: String, own: String, hosts: String },
    /// Installers put its files elsewhere than those of its host.
    #[display(
        "says `Root-Is-Purelib: {own}`, and its host {host} the contrary: where the two folders \
         differ, the host does not find its kernels"
    )]
    Purelib { host: String, own: bool },
    /// The Pythons are not those of the host.
    #[display(
        "says `Requires-Python: {own}`, and its host {host} {hosts}: pip refuses the extra where \
         they differ"
    )]
    Pythons { host: String, own: String, hosts: String },
}

/// How extras and device wheels do not belong together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum ExtraLack {
    /// A device wheel of an extra is not there.
    #[display("its extra {extra} needs {wheel}, which is not there for its tags")]
    WheelAbsent { extra: String, wheel: String },
    /// An extra needs nothing.
    #[display("its extra {extra} brings no device wheel")]
    Nothing { extra: String },
    /// Requirements are those of an extra that is not offered.
    #[display("needs {wheel} with the extra {extra}, and no `Provides-Extra` offers it")]
    NotOffered { extra: String, wheel: String },
    /// No extra needs the device wheel.
    #[display("no extra of its host {host} brings it")]
    NotBrought { host: String },
    /// The extra for all devices does not need the device wheel.
    #[display(
        "the extra {extra} of its host {host} is to bring all device wheels, and not this one"
    )]
    NotInAll { extra: String, host: String },
    /// The extra with the name of the device wheel's group does not need it.
    #[display(
        "the extra {extra} of its host {host} has the name of its group, and does not bring it"
    )]
    NotOwn { extra: String, host: String },
    /// A device wheel is needed without an extra.
    #[display("requires {wheel} without an extra, so that everybody gets its kernels")]
    WithoutExtra { wheel: String },
}

/// How a host and a device wheel are not pinned to each other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum PinFault {
    /// A device wheel does not need its host.
    #[display("does not require {host}, its host: pip installs it alone or beside another version")]
    Absent { host: String },
    /// A requirement takes several versions, or another one.
    #[display("requires {wheel}{}, and has to require == {version}", pinned(pin))]
    Other { wheel: String, pin: Option<String>, version: String },
}

fn pinned(pin: &Option<String>) -> String {
    pin.as_ref().map_or_else(|| " in no one version".to_owned(), |pin| format!(" == {pin}"))
}

/// Why a member of a wheel cannot be installed, or is not looked into.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum MemberFault {
    /// A symbolic link.
    #[display("is a link: pip and uv write its target into a file")]
    Link,
    /// A name that leads out of the folder, or is no path.
    #[display("has a name that cannot be installed: {reason}")]
    Name { reason: String },
    /// A PE file.
    #[display("is a PE file, a program or library for Windows, and wheels with one are not split")]
    Windows,
    /// A file of a device wheel that is run.
    #[display("is run by Python or a shell, and device wheels have device code alone")]
    Run,
}

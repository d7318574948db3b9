//! Faults of Python wheels, and the words for them.

use derive_more::Display;
pub use rockpack_base::formats::wheel::{InfoFault, ListingFault};
use serde::Serialize;

use crate::report::ExtraGap;

/// A difference between the texts of a wheel and its name, or its host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum HeaderDifference {
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
    /// A fault of the wheel by itself.
    #[display("{_0}")]
    #[serde(untagged)]
    Own(InfoFault),
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
    /// An extra, or the device wheel of its group, does not bring all that its GPU needs.
    #[display("{}", gap.describe(extra, wheel))]
    Gap { extra: String, wheel: String, gap: ExtraGap },
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
    /// A link, no regular file, or a place where nothing is installed.
    #[display("cannot be installed: {reason}")]
    Refused { reason: String },
    /// A file of a device wheel that is run.
    #[display("is run by Python or a shell, and device wheels have device code alone")]
    Run,
}

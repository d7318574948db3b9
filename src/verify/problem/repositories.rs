//! Faults of repositories, with their texts.

use derive_more::Display;
use serde::Serialize;

use crate::report::ExtraGap;
use crate::report::words::either;

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

/// An index that is in no architecture's folder is for none.
fn for_arch(arch: Option<&str>) -> String {
    arch.map_or(String::new(), |arch| format!(" for {arch}"))
}

//! Texts of findings about publications.

use derive_more::Display;
use rockpack_core::package_format::Format;
use rockpack_core::package_format::MissingDigest;
use serde::{Deserialize, Serialize};

use crate::words::{counted, few};

/// The reason why a file of a folder is not published.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Display)]
#[serde(rename_all = "kebab-case")]
pub enum PackageLeftOut {
    /// A package for Debian's installer.
    #[display(
        "a .udeb is for Debian's installer, and no package that apt should offer; to publish it all \
         the same, name the file itself"
    )]
    Installer,
    /// A name that begins with a dot.
    #[display(
        "its name begins with a dot, as that of an unfinished copy; rename it, or name the file itself"
    )]
    Hidden,
    /// A package by content, whose file name is not that of a package.
    #[display(
        "its content is that of a .{_0}, and its name does not end like one of a package; rename it, or \
         name the file itself"
    )]
    Unnamed(Format),
    /// A link to a folder.
    #[display("it is a link to a folder, which is not followed; name that folder, too")]
    LinkedFolder,
    /// Another name for a package that is published at this path.
    #[display("it is the same package as {_0}, under another name; remove one of them")]
    Duplicate(String),
    /// A file that `repo` would refuse without `--skip-bad`.
    #[display("it is damaged, or clients refuse it: {_0}; build it again")]
    Bad(String),
}

/// The end of the text about two packages that own the same path.
pub(super) fn owned_twice(format: Format) -> String {
    let comes = match format {
        Format::Deb => "dpkg stops midway",
        Format::Rpm => "rpm refuses them if the files differ, and the last one wins if not",
    };
    format!(
        "which nothing keeps apart: where both are to be installed, {comes}; let one of them conflict \
         with the other, give each a prefix, or publish them in two repositories"
    )
}

/// The remedy for packages that a signature of rockpack mends.
pub(super) const SIGN_ANEW: &str = "sign with --sign-packages; what is published already never \
                                    changes and needs a new release number";

/// The text about packages of an rpm repository without a digest that rpm 6 needs.
pub fn without_digest(packages: &[String], missing: MissingDigest) -> String {
    let remedy = match missing {
        MissingDigest::Header => SIGN_ANEW,
        MissingDigest::Payload => {
            "a signature cannot add it: build again with rpm 4.14 or later, with a new release number"
        }
    };
    format!(
        "{} without a SHA-256 of the {missing} ({}), which rpm 6 refuses to install: {remedy}",
        counted(packages.len(), "package"),
        few(packages, 3)
    )
}

//! Channels, the units that a repository publishes: apt suites, the rpm repository and the Python index.

use rockpack_package::Format;
use rockpack_package::indexed::PackageKind;

/// A channel of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Channel {
    /// An apt suite.
    Apt(String),
    /// The rpm repository.
    Rpm,
    /// The index of wheels.
    Python,
}

impl Channel {
    /// The channels that a run for this apt suite may be about.
    pub fn all(suite: &str) -> [Self; 3] {
        [Self::Apt(suite.to_owned()), Self::Rpm, Self::Python]
    }

    /// The name in states and reports.
    pub fn name(&self) -> String {
        match self {
            Self::Apt(suite) => format!("apt-{suite}"),
            Self::Rpm => "rpm".to_owned(),
            Self::Python => "python".to_owned(),
        }
    }

    /// The kind of its packages.
    pub fn kind(&self) -> PackageKind {
        match self {
            Self::Apt(_) => PackageKind::Deb,
            Self::Rpm => PackageKind::Rpm,
            Self::Python => PackageKind::Wheel,
        }
    }

    /// The format of its packages, if a package manager of a system installs them. Only such channels have
    /// signatures, keys, and packages that own paths.
    pub fn format(&self) -> Option<Format> {
        self.kind().format()
    }
}

//! Channels, the units that a repository publishes: apt suites and the rpm repository.

use crate::package::Format;

/// Which channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Channel {
    /// An apt suite.
    Apt(String),
    /// The rpm repository.
    Rpm,
}

impl Channel {
    /// Its name in states and reports.
    pub fn name(&self) -> String {
        match self {
            Self::Apt(suite) => format!("apt-{suite}"),
            Self::Rpm => "rpm".to_owned(),
        }
    }

    /// The format of its packages.
    pub fn format(&self) -> Format {
        match self {
            Self::Apt(_) => Format::Deb,
            Self::Rpm => Format::Rpm,
        }
    }
}

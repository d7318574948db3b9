//! Packages: the values that emission writes, with everything decided.
//!
//! Nothing here depends on clock, host or format I/O; only `indexed` and `owners` read package files. `F` is a
//! file at the current stage: a description of its source in the plan, final
//! [`Content`](rockpack_core::content::Content) once packed.

mod control;
pub mod dependencies;
pub mod device_wheel;
pub mod for_gpu;
pub mod indexed;
pub mod lengths;
pub mod offered;
pub mod owners;
pub mod receipt;
pub mod releases;
pub mod requirement;
pub mod resolver;
pub mod updates;
mod version;

use serde::Serialize;

pub use control::{DebControl, Identity, Import, PathChange};
pub use indexed::ARCH_FIELD;
pub use rockpack_archive::package_file::Format;
pub use rockpack_archive::payload::Treatment;
pub use rockpack_archive::relation::{
    Comparison, DEB_FIELDS, Relation, RelationKind, deb_relation,
};
pub use rockpack_archive::rpm::{RpmChange, RpmControl};
pub use rockpack_core::tree::MemberKind;
pub use version::{DistributionTag, Version};

use rockpack_core::named_enum;
use rockpack_core::tree::{Node, TreePath};

pub const UNSET_VERSION: &str = "0.0.0";

pub const UNSET_RELEASE: &str = "1";

pub const UNNAMED_PACKAGER: &str = "Unnamed packager <packager@rockpack.invalid>";

/// The role of a package in a set, with its groups and archs.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case", tag = "role")]
pub enum Role {
    /// Host files of a component, for every GPU.
    Host,
    Kernels {
        /// The name of the group in the configuration, e.g. `gfx110X`.
        group: String,
        /// The base archs inside.
        archs: Vec<String>,
    },
    /// Device code that several groups share; their kernel packages depend on it.
    KernelsCommon {
        /// The names of the groups in the configuration.
        groups: Vec<String>,
        /// The base archs that it serves.
        archs: Vec<String>,
    },
    /// Headers, documentation, tests or debug files, without device code.
    Support,
    /// A metapackage: no files, only dependencies.
    #[default]
    Meta,
}

named_enum! {
    /// The role of a package in a set, without groups and archs; see [`Role`].
    pub enum RoleKind {
        Host = "host",
        Kernels = "kernels",
        KernelsCommon = "kernels-common",
        Support = "support",
        Meta = "meta",
    }
}

impl RoleKind {
    pub fn is_kernels(self) -> bool {
        matches!(self, Self::Kernels | Self::KernelsCommon)
    }
}

impl Role {
    pub fn kind(&self) -> RoleKind {
        match self {
            Self::Host => RoleKind::Host,
            Self::Kernels { .. } => RoleKind::Kernels,
            Self::KernelsCommon { .. } => RoleKind::KernelsCommon,
            Self::Support => RoleKind::Support,
            Self::Meta => RoleKind::Meta,
        }
    }

    /// The group of a kernel package, if it is for a single one.
    pub fn group(&self) -> Option<&str> {
        match self {
            Self::Kernels { group, .. } => Some(group),
            _ => None,
        }
    }

    /// The base archs inside.
    pub fn archs(&self) -> &[String] {
        match self {
            Self::Kernels { archs, .. } | Self::KernelsCommon { archs, .. } => archs,
            _ => &[],
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageEntry<F> {
    /// The absolute install path without its leading slash, e.g. `opt/rocm-7.1/lib/libx.so`.
    pub path: TreePath,
    pub node: Node<F>,
    pub treatment: Treatment,
    /// The formats that have the entry: parents above the prefix and /usr/share/doc are deb only.
    pub formats: Formats,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Formats {
    All,
    Only(Format),
}

impl Formats {
    pub fn has(self, format: Format) -> bool {
        match self {
            Formats::All => true,
            Formats::Only(only) => only == format,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rights {
    /// Licence expression.
    pub license: String,
    /// Copyright holder and years, if the configuration has them.
    pub copyright: Option<String>,
    /// The builder of the package.
    pub vendor: Option<String>,
}

/// A package with everything decided except file content.
#[derive(Debug, Clone)]
pub struct Package<F> {
    /// Name without regard to format, unique in the set: `rocm-blas-gfx110x`.
    pub id: String,
    pub role: Role,
    /// Summary: one line of at most 80 characters.
    pub summary: String,
    /// Description, in paragraphs.
    pub description: Vec<String>,
    pub homepage: Option<String>,
    pub rights: Rights,
    /// Present if a `.deb` is wanted.
    pub deb: Option<DebControl>,
    /// Present if an `.rpm` is wanted.
    pub rpm: Option<RpmControl>,
    /// Facts by which a later build tells whether the package changed; empty for packages outside a set.
    pub identity: Identity,
    /// Entries, sorted by path. A `.deb` has every parent directory before its contents; an `.rpm` has only
    /// the parent directories that it owns.
    pub entries: Vec<PackageEntry<F>>,
}

impl<F> Package<F> {
    pub fn formats(&self) -> impl Iterator<Item = Format> {
        Format::ALL.into_iter().filter(|format| self.name(*format).is_some())
    }

    /// The name in `format`; `None` if the package is not wanted in that format.
    pub fn name(&self, format: Format) -> Option<&str> {
        match format {
            Format::Deb => self.deb.as_ref().map(|control| control.name.as_str()),
            Format::Rpm => self.rpm.as_ref().map(|control| control.name.as_str()),
        }
    }

    /// The relations in `format`, without those that rpmbuild would itself find.
    pub fn relations(&self, format: Format) -> &[Relation] {
        match format {
            Format::Deb => self.deb.as_ref().map_or(&[], |control| &control.relations),
            Format::Rpm => self.rpm.as_ref().map_or(&[], |control| &control.relations),
        }
    }

    /// The relations in `format`, for changes; `None` if the package is not wanted in that format.
    pub fn relations_mut(&mut self, format: Format) -> Option<&mut Vec<Relation>> {
        match format {
            Format::Deb => self.deb.as_mut().map(|control| &mut control.relations),
            Format::Rpm => self.rpm.as_mut().map(|control| &mut control.relations),
        }
    }

    /// All relations, with those that rpmbuild would itself find; `None` if `format` is not wanted.
    pub fn all_relations(&self, format: Format) -> Option<impl Iterator<Item = &Relation>> {
        let discovered = match format {
            Format::Deb => self.deb.as_ref().map(|_| [].as_slice())?,
            Format::Rpm => &self.rpm.as_ref()?.discovered,
        };
        Some(self.relations(format).iter().chain(discovered))
    }

    /// The full version in `format`, after the epoch if there is one.
    pub fn full_version(&self, format: Format) -> Option<String> {
        match format {
            Format::Deb => Some(self.deb.as_ref()?.version.clone()),
            Format::Rpm => Some(self.rpm.as_ref()?.evr()),
        }
    }

    /// The vendor of the `.rpm`, empty for none; `None` for a `.deb`, which has no such field.
    pub fn vendor(&self, format: Format) -> Option<String> {
        let control = self.rpm.as_ref().filter(|_| format == Format::Rpm)?;
        Some(control.vendor.clone().unwrap_or_default())
    }

    pub fn with_entries<G>(&self, entries: Vec<PackageEntry<G>>) -> Package<G> {
        Package {
            id: self.id.clone(),
            role: self.role.clone(),
            summary: self.summary.clone(),
            description: self.description.clone(),
            homepage: self.homepage.clone(),
            rights: self.rights.clone(),
            deb: self.deb.clone(),
            rpm: self.rpm.clone(),
            identity: self.identity.clone(),
            entries,
        }
    }
}

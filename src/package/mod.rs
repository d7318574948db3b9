//! What a package is, completely decided: the value that emission writes down.
//!
//! Everything here is free of clock, host and format I/O; only `indexed` reads package files. `F` is
//! what a file is at the stage in question: a description of its source in the plan, final
//! [`Content`](rockpack_base::content::Content) once packed.

pub mod bounds;
mod control;
mod device_code;
pub mod device_wheel;
pub mod differing_files;
mod digest;
pub mod indexed;
pub mod lengths;
mod named;
pub mod owners;
mod relation;
pub mod system_folders;
pub mod updates;
mod version;

use serde::Serialize;

pub use control::{ChangelogEntry, DebControl, RpmControl};
pub use device_code::ARCH_FIELD;
pub use digest::{Identity, PathChange};
pub use relation::{Comparison, DEB_FIELDS, Relation, RelationKind};
pub use rockpack_base::formats::package_file::Format;
pub use rockpack_base::tree::MemberKind;
pub use version::{DistributionTag, Version};

use named::named_enum;
use rockpack_base::tree::{Node, TreePath};

/// What a package is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case", tag = "role")]
pub enum Role {
    /// Host files of a component, for every GPU.
    Host,
    /// Device code of one group.
    Kernels {
        /// The group's name in the configuration, e.g. `gfx110X`.
        group: String,
        /// The base archs inside.
        archs: Vec<String>,
    },
    /// Device code that several groups share; their kernel packages depend on it.
    KernelsCommon {
        /// The groups' names in the configuration.
        groups: Vec<String>,
        /// The base archs that it serves.
        archs: Vec<String>,
    },
    /// Headers, documentation, tests, debug files: no device code of its own.
    Support,
    /// No files; stands for a set of other packages.
    Meta,
}

named_enum! {
    /// What a package is for, whatever its group and archs: see [`Role`].
    pub enum RoleKind {
        /// Host files.
        Host = "host",
        /// Device code of one group.
        Kernels = "kernels",
        /// Device code that several groups share.
        KernelsCommon = "kernels-common",
        /// No device code of its own.
        Support = "support",
        /// No files.
        Meta = "meta",
    }
}

impl RoleKind {
    /// Whether packages of it have device code.
    pub fn is_kernels(self) -> bool {
        matches!(self, Self::Kernels | Self::KernelsCommon)
    }
}

impl Role {
    /// What it is for, without the groups and archs.
    pub fn kind(&self) -> RoleKind {
        match self {
            Self::Host => RoleKind::Host,
            Self::Kernels { .. } => RoleKind::Kernels,
            Self::KernelsCommon { .. } => RoleKind::KernelsCommon,
            Self::Support => RoleKind::Support,
            Self::Meta => RoleKind::Meta,
        }
    }

    /// The group of a kernel package that is for one.
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

/// How a file is treated by the package manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Treatment {
    /// Replaced on upgrade.
    Plain,
    /// Kept if the administrator changed it (deb conffile, rpm `%config(noreplace)`).
    Config,
    /// Documentation (rpm `%doc`).
    Doc,
    /// Licence text (rpm `%license`).
    License,
    /// A shared library: 0644 in a `.deb` (Debian policy 8.1), 0755 in an `.rpm`, whose dependency
    /// generator looks at executable files only. The node's own mode does not matter.
    Library,
}

impl Treatment {
    /// The mode in `format` of a file that the plan gives `mode`.
    pub fn mode(self, mode: u32, format: Format) -> u32 {
        match (self, format) {
            (Self::Library, Format::Deb) => 0o644,
            (Self::Library, Format::Rpm) => 0o755,
            _ => mode,
        }
    }
}

/// One path of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageEntry<F> {
    /// The absolute install path without its leading slash, e.g. `opt/rocm-7.1/lib/libx.so`.
    pub path: TreePath,
    /// What stands there.
    pub node: Node<F>,
    /// How the package manager treats it.
    pub treatment: Treatment,
    /// In which formats it exists: parents above the prefix and /usr/share/doc are deb only.
    pub formats: Formats,
}

/// In which formats something exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Formats {
    /// In all formats.
    All,
    /// In one only.
    Only(Format),
}

impl Formats {
    /// Whether `format` is among them.
    pub fn has(self, format: Format) -> bool {
        match self {
            Formats::All => true,
            Formats::Only(only) => only == format,
        }
    }
}

/// Who has rights in a package, and under which licence others may use it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rights {
    /// Licence expression.
    pub license: String,
    /// Who has the copyright, where the configuration says it.
    pub copyright: Option<String>,
    /// Who builds the package.
    pub vendor: Option<String>,
}

/// A package with everything decided but bytes.
#[derive(Debug, Clone)]
pub struct Package<F> {
    /// Name without regard to format, unique in the set: `rocm-blas-gfx110x`.
    pub id: String,
    /// What it is for.
    pub role: Role,
    /// One line, at most 80 characters.
    pub summary: String,
    /// Paragraphs.
    pub description: Vec<String>,
    /// Home page, if any.
    pub homepage: Option<String>,
    /// Who has rights in it.
    pub rights: Rights,
    /// Present where a `.deb` is wanted.
    pub deb: Option<DebControl>,
    /// Present where an `.rpm` is wanted.
    pub rpm: Option<RpmControl>,
    /// Facts by which a later build knows whether it changed; of packages that no set has, none.
    pub identity: Identity,
    /// Paths in path order. In a `.deb` every parent directory of a path comes before it; an
    /// `.rpm` has those of them that it owns.
    pub entries: Vec<PackageEntry<F>>,
}

impl<F> Package<F> {
    /// The number of formats it is wanted in.
    pub fn formats(&self) -> usize {
        usize::from(self.deb.is_some()) + usize::from(self.rpm.is_some())
    }

    /// Its name in `format`; none if it is not wanted in that format.
    pub fn name(&self, format: Format) -> Option<&str> {
        match format {
            Format::Deb => self.deb.as_ref().map(|control| control.name.as_str()),
            Format::Rpm => self.rpm.as_ref().map(|control| control.name.as_str()),
        }
    }

    /// Its relations in `format`, without those that rpmbuild would find by itself.
    pub fn relations(&self, format: Format) -> &[Relation] {
        match format {
            Format::Deb => self.deb.as_ref().map_or(&[], |control| &control.relations),
            Format::Rpm => self.rpm.as_ref().map_or(&[], |control| &control.relations),
        }
    }

    /// The same, to be changed.
    pub fn relations_mut(&mut self, format: Format) -> Option<&mut Vec<Relation>> {
        match format {
            Format::Deb => self.deb.as_mut().map(|control| &mut control.relations),
            Format::Rpm => self.rpm.as_mut().map(|control| &mut control.relations),
        }
    }

    /// All of its relations in `format`, also those that rpmbuild would find by itself; none if it
    /// is not wanted in that format.
    pub fn all_relations(&self, format: Format) -> Option<impl Iterator<Item = &Relation>> {
        let discovered = match format {
            Format::Deb => self.deb.as_ref().map(|_| [].as_slice())?,
            Format::Rpm => &self.rpm.as_ref()?.discovered,
        };
        Some(self.relations(format).iter().chain(discovered))
    }

    /// Its full version in `format`, with the epoch in front if it has one.
    pub fn full_version(&self, format: Format) -> Option<String> {
        match format {
            Format::Deb => Some(self.deb.as_ref()?.version.clone()),
            Format::Rpm => {
                let control = self.rpm.as_ref()?;
                let epoch = control.epoch.map(|epoch| format!("{epoch}:")).unwrap_or_default();
                Some(format!("{epoch}{}-{}", control.version, control.release))
            }
        }
    }

    /// The same package with other entries.
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

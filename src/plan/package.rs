//! What a package is, completely decided: the value that emission writes down.
//!
//! Everything here is free of clock, host and format I/O. `F` is what a file is at the stage in
//! question: a description of its source in the plan, final [`Content`](crate::content::Content)
//! once packed.

use serde::Serialize;

use crate::receipt::RelationRecord;
use crate::tree::{Node, TreePath};

/// A package format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Debian's format 2.0.
    Deb,
    /// RPM's format 4 (header v4).
    Rpm,
}

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

impl Role {
    /// As plans and receipts write it: `kernels-common`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Kernels { .. } => "kernels",
            Self::KernelsCommon { .. } => "kernels-common",
            Self::Support => "support",
            Self::Meta => "meta",
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

impl Format {
    /// `deb` or `rpm`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deb => "deb",
            Self::Rpm => "rpm",
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

/// An entry of a changelog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Seconds since 1970.
    pub time: u32,
    /// `Name <address>`.
    pub author: String,
    /// Lines.
    pub text: String,
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

/// The kind of a relation between packages. Emission maps each to the format's own field; kinds
/// that a format lacks are left out by the plan, never by emission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RelationKind {
    /// deb `Depends`, rpm `Requires`.
    Depends,
    /// deb and rpm `Recommends`.
    Recommends,
    /// deb and rpm `Suggests`.
    Suggests,
    /// deb and rpm `Enhances`.
    Enhances,
    /// rpm `Supplements`.
    Supplements,
    /// deb and rpm `Provides`.
    Provides,
    /// deb and rpm `Conflicts`.
    Conflicts,
    /// deb `Breaks`.
    Breaks,
    /// deb `Replaces`.
    Replaces,
    /// rpm `Obsoletes`.
    Obsoletes,
}

impl RelationKind {
    /// As plans and receipts write it: `depends`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Depends => "depends",
            Self::Recommends => "recommends",
            Self::Suggests => "suggests",
            Self::Enhances => "enhances",
            Self::Supplements => "supplements",
            Self::Provides => "provides",
            Self::Conflicts => "conflicts",
            Self::Breaks => "breaks",
            Self::Replaces => "replaces",
            Self::Obsoletes => "obsoletes",
        }
    }
}

/// How a relation compares versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Comparison {
    /// `<<` in deb, `<` in rpm.
    #[serde(rename = "<")]
    Less,
    /// `<=`.
    #[serde(rename = "<=")]
    LessEqual,
    /// `=`.
    #[serde(rename = "=")]
    Equal,
    /// `>=`.
    #[serde(rename = ">=")]
    GreaterEqual,
    /// `>>` in deb, `>` in rpm.
    #[serde(rename = ">")]
    Greater,
}

impl Comparison {
    /// As plans, receipts and rpm write it: `<=`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Equal => "=",
            Self::GreaterEqual => ">=",
            Self::Greater => ">",
        }
    }
}

/// One relation, in the words of one format.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Relation {
    /// Which field it goes into.
    pub kind: RelationKind,
    /// Package or capability name; a deb alternative (`a | b`) is written whole.
    pub name: String,
    /// Version bound, in the format's version syntax.
    pub version: Option<(Comparison, String)>,
}

impl Relation {
    /// As plans and receipts list it.
    pub fn record(&self) -> RelationRecord {
        let version = self.version.as_ref();
        RelationRecord {
            kind: self.kind.as_str().to_owned(),
            name: self.name.clone(),
            comparison: version.map(|(comparison, _)| comparison.as_str().to_owned()),
            version: version.map(|(_, version)| version.clone()),
        }
    }
}

/// Everything of a package that only `.deb` has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DebControl {
    /// Package name.
    pub name: String,
    /// Full version, e.g. `7.1.0-1`.
    pub version: String,
    /// `amd64` or `all`.
    pub architecture: String,
    /// Section, e.g. `libs`.
    pub section: String,
    /// Priority, e.g. `optional`.
    pub priority: String,
    /// `Name <address>`.
    pub maintainer: String,
    /// Relations in the order of their fields.
    pub relations: Vec<Relation>,
    /// Further fields in order, e.g. `X-ROCm-GPU-Architecture`.
    pub fields: Vec<(String, String)>,
    /// Lines of the `triggers` file.
    pub triggers: Vec<String>,
    /// Maintainer scripts: (`preinst`, `postinst`, `prerm`, `postrm`) → text.
    pub scripts: Vec<(String, String)>,
}

impl DebControl {
    /// The name of the package file; dpkg-deb leaves the epoch out.
    pub fn file_name(&self) -> String {
        let version = self.version.split_once(':').map_or(&*self.version, |(_, rest)| rest);
        format!("{}_{version}_{}.deb", self.name, self.architecture)
    }
}

/// Everything of a package that only `.rpm` has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RpmControl {
    /// Package name.
    pub name: String,
    /// Epoch, if any.
    pub epoch: Option<u32>,
    /// Version, e.g. `7.1.0`.
    pub version: String,
    /// Release, e.g. `1`.
    pub release: String,
    /// `x86_64` or `noarch`.
    pub arch: String,
    /// Group tag, e.g. `System Environment/Libraries`.
    pub group: String,
    /// Licence expression.
    pub license: String,
    /// Vendor, if any.
    pub vendor: Option<String>,
    /// Packager, if any.
    pub packager: Option<String>,
    /// Relations; the package's own name-version Provides is added by emission.
    pub relations: Vec<Relation>,
    /// Relations that rpmbuild would find by itself in the files, marked as such.
    pub discovered: Vec<Relation>,
    /// Relocatable prefixes, e.g. `/opt/rocm-7.1`.
    pub prefixes: Vec<String>,
    /// Scriptlets: (`%pretrans`, `%pre`, `%post`, `%preun`, `%postun`) → (interpreter, text).
    pub scripts: Vec<(String, (String, String))>,
    /// The changelog, the newest entry first.
    pub changes: Vec<Change>,
}

impl RpmControl {
    /// The name of the package file; rpmbuild leaves the epoch out.
    pub fn file_name(&self) -> String {
        format!("{}-{}-{}.{}.rpm", self.name, self.version, self.release, self.arch)
    }
}

/// A package with everything decided but bytes.
#[derive(Debug, Clone)]
pub struct Package<F> {
    /// Name without regard to format, unique in the set: `rocm-blas-gfx110x`.
    pub id: String,
    /// What it is for.
    pub role: Role,
    /// One line, at most 80 characters, without a full stop.
    pub summary: String,
    /// Paragraphs.
    pub description: Vec<String>,
    /// Home page, if any.
    pub homepage: Option<String>,
    /// Present where a `.deb` is wanted.
    pub deb: Option<DebControl>,
    /// Present where an `.rpm` is wanted.
    pub rpm: Option<RpmControl>,
    /// Paths in path order. In a `.deb` every parent directory of a path comes before it; an
    /// `.rpm` has those of them that it owns.
    pub entries: Vec<PackageEntry<F>>,
}

impl<F> Package<F> {
    /// The number of formats it is wanted in.
    pub fn formats(&self) -> usize {
        usize::from(self.deb.is_some()) + usize::from(self.rpm.is_some())
    }

    /// Its relations in `format`, as plans and receipts list them, sorted; none if it is not wanted
    /// in that format.
    pub fn relation_records(&self, format: Format) -> Option<Vec<RelationRecord>> {
        let (decided, discovered) = match format {
            Format::Deb => (&self.deb.as_ref()?.relations, [].as_slice()),
            Format::Rpm => {
                let control = self.rpm.as_ref()?;
                (&control.relations, control.discovered.as_slice())
            }
        };
        let relations = decided.iter().chain(discovered);
        let mut records: Vec<RelationRecord> = relations.map(Relation::record).collect();
        records.sort();
        records.dedup();
        Some(records)
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
}

impl<F> Package<F> {
    /// The same package with other entries.
    pub fn with_entries<G>(&self, entries: Vec<PackageEntry<G>>) -> Package<G> {
        Package {
            id: self.id.clone(),
            role: self.role.clone(),
            summary: self.summary.clone(),
            description: self.description.clone(),
            homepage: self.homepage.clone(),
            deb: self.deb.clone(),
            rpm: self.rpm.clone(),
            entries,
        }
    }
}

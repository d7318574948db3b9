//! The files and metadata of a package, wheel, artifact or installed prefix.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rockpack_core::gfx::BaseArch;
use rockpack_package::Format;
use rockpack_package::offered::OfferedPackage;
use rockpack_package::requirement::{Bound, Relations, Requirement};

use crate::problem::{NamedVersion, PackagePath};
use crate::readers::facts::{Class, FileFacts};
use crate::readers::{Sha, index};

/// The files and metadata of a package, wheel, artifact or prefix.
#[derive(Debug, Default)]
pub(crate) struct PackageContents {
    /// File name of the package.
    pub(crate) file: String,
    /// Position of the argument that named the package.
    pub(crate) argument: usize,
    /// Size of the package file in bytes.
    pub(crate) size: u64,
    pub(crate) sha256: Sha,
    /// `None` for folders and wheels.
    pub(crate) format: Option<Format>,
    pub(crate) name: String,
    /// Full version as in relations, e.g. `7.1.0-1`.
    pub(crate) version: String,
    /// In the spelling of the format.
    pub(crate) arch: String,
    pub(crate) declared: Relations<'static>,
    /// Names of packages that are always installed with it although it does not require them.
    pub(crate) comes_with: BTreeSet<String>,
    /// The archs that the package or the receipt states.
    pub(crate) stated_archs: Option<Vec<String>>,
    /// `None` if the content determines it.
    pub(crate) role: Option<ContentRole>,
    /// By absolute path.
    pub(crate) paths: BTreeMap<String, InstalledNode>,
}

/// The kind of content that a package or folder may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentRole {
    /// Host files without device code.
    Host,
    /// Device code of the stated archs without host code.
    Kernels,
    /// Both, as in an installed prefix. Binaries may be fat unless they have a marker.
    Both,
    /// Host files of a wheel without device code, and kernel archives of other projects.
    Unsplit,
}

/// An entry at a path. A special one is a hard link, pipe or device in a package of another tool.
#[derive(Debug)]
pub(crate) enum InstalledNode {
    Directory { mode: u32 },
    Link { target: String },
    File { mode: u32, facts: Arc<FileFacts> },
    Special { what: &'static str },
}

impl InstalledNode {
    /// The kind as messages name it.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Directory { .. } => "folder",
            Self::Link { .. } => "link",
            Self::File { .. } => "file",
            Self::Special { what, .. } => what,
        }
    }

    pub(crate) fn facts(&self) -> Option<&FileFacts> {
        let Self::File { facts, .. } = self else { return None };
        Some(facts)
    }

    pub(crate) fn is_folder(&self) -> bool {
        matches!(self, Self::Directory { .. })
    }

    /// Whether both are installed the same way.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Directory { mode: own }, Self::Directory { mode }) => own == mode,
            (Self::Link { target: own }, Self::Link { target }) => own == target,
            (Self::File { mode: own, facts: one }, Self::File { mode, facts }) => {
                own == mode && one.sha256 == facts.sha256
            }
            _ => false,
        }
    }
}

pub(crate) fn files_of<'a>(
    packages: &[&'a PackageContents],
) -> impl Iterator<Item = (&'a PackageContents, &'a str, &'a FileFacts)> {
    packages.iter().flat_map(|package| package.files().map(move |(path, it)| (*package, path, it)))
}

impl PackageContents {
    /// Compares the versions of two packages of the same format. Folders and wheels compare as equal.
    pub(crate) fn compare_versions(&self, other: &Self) -> Ordering {
        self.format.map_or(Ordering::Equal, |format| {
            format.compare_versions(&self.version, &other.version)
        })
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &FileFacts)> {
        self.paths.iter().filter_map(|(path, node)| Some((path.as_str(), node.facts()?)))
    }

    /// A folder of host and device files called `name`, without metadata.
    pub(crate) fn of_files(name: String, paths: BTreeMap<String, InstalledNode>) -> Self {
        Self { file: name.clone(), name, role: Some(ContentRole::Both), paths, ..Self::default() }
    }

    pub(crate) fn role(&self) -> ContentRole {
        self.role.unwrap_or(if self.has_kernels() {
            ContentRole::Kernels
        } else {
            ContentRole::Host
        })
    }

    /// Whether it is a kernel package: it states its archs; or its side is not set, and it has kernel archives without
    /// references to archives, or other device code without host code. Files for all archs of a kernel database may be
    /// in either kind of package, and host libraries that are entirely for one arch are in kernel packages.
    pub(crate) fn has_kernels(&self) -> bool {
        if self.stated_archs.is_some() || self.role == Some(ContentRole::Host) {
            return self.stated_archs.is_some();
        }
        let (mut archives, mut code, mut host) = (false, false, false);
        for (path, facts) in self.files() {
            match &facts.class {
                Class::Manifest(_) => return false,
                Class::Host(facts) if facts.claims_to_be_transformed() => return false,
                Class::Host(_) => host = true,
                Class::CodeObject(_) | Class::Bundle(_) => code |= !index::serves_all(path),
                Class::Archive(archive) => archives |= !archive.code_objects.is_empty(),
                class => archives |= class.claims_to_be_archive(),
            }
        }
        archives || (code && !host)
    }

    /// Whether it may have code for `arch`: it states the arch, or no archs.
    pub(crate) fn states(&self, arch: &BaseArch) -> bool {
        let arch = arch.as_str();
        self.stated_archs.as_ref().is_none_or(|all| {
            // Code for `gfx1250-strict` states gfx1250 in its header.
            all.iter().any(|own| own == arch || own.strip_suffix("-strict") == Some(arch))
        })
    }

    pub(crate) fn offered(&self) -> OfferedPackage<'_> {
        OfferedPackage {
            name: &self.name,
            version: self.version.as_str().into(),
            arch: &self.arch,
            relations: self.declared.clone(),
            paths: Vec::new(),
        }
    }

    /// The bounds of its dependencies, except alternatives.
    pub(crate) fn requires(&self) -> impl Iterator<Item = &Bound<'static>> {
        self.declared.needs().filter_map(Requirement::bound)
    }

    /// All names in its dependencies, including alternatives.
    pub(crate) fn named(&self) -> impl Iterator<Item = &str> {
        self.declared.needs().flat_map(Requirement::bounds).map(|bound| &*bound.name)
    }

    /// Whether a dependency matches the name and version of `other`, or both are always installed together.
    pub(crate) fn depends_on(&self, other: &PackageContents) -> bool {
        if self.comes_with.contains(&other.name) {
            return true;
        }
        let Some(format) = self.format else { return false };
        self.requires().any(|r| r.name == other.name && r.admits(format, &other.version))
    }

    pub(crate) fn identity(&self) -> NamedVersion {
        NamedVersion::new(&self.name, &self.version, &self.arch)
    }

    pub(crate) fn at(&self, path: &str) -> PackagePath {
        PackagePath::new(&self.file, path)
    }
}

//! One package, read back whole.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rockpack_core::gfx::BaseArch;
use rockpack_package::Format;
use rockpack_package::offered::Offered;
use rockpack_package::requirement::{Bound, Relations, Requirement};

use crate::own::facts::{Class, FileFacts};
use crate::own::{Sha, index};
use crate::problem::{NamedVersion, PackagePath};

/// A package: its files and its metadata.
#[derive(Debug, Default)]
pub(crate) struct Installed {
    /// File name of the package.
    pub(crate) file: String,
    /// The number of the argument that named the package.
    pub(crate) argument: usize,
    /// Size of the package file in bytes.
    pub(crate) size: u64,
    pub(crate) sha256: Sha,
    /// The format; `None` of folders and wheels.
    pub(crate) format: Option<Format>,
    pub(crate) name: String,
    /// Full version as other packages name it in relations, e.g. `7.1.0-1`.
    pub(crate) version: String,
    /// The machines that it is for, as its format calls them.
    pub(crate) arch: String,
    pub(crate) declared: Relations<'static>,
    /// Names of packages that are always installed with it without being required.
    pub(crate) comes_with: BTreeSet<String>,
    /// The archs that the package or the receipt states; `None` if neither does.
    pub(crate) stated_archs: Option<Vec<String>>,
    /// The side it must be on; `None` if that follows from its content.
    pub(crate) side: Option<Side>,
    /// The entries by absolute path.
    pub(crate) paths: BTreeMap<String, InstalledNode>,
}

/// The kind of content that a package or folder may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Host files, and no device code.
    Host,
    /// Device code of the stated archs, and no host code.
    Kernels,
    /// Both, as in an installed prefix. Binaries may be fat unless they say that they are transformed.
    Both,
    /// Host files of a wheel that is not split, and kernel archives of other projects.
    Plain,
}

/// An entry at a path; a special one is a hard link, pipe or device, which packages of other tools have.
#[derive(Debug)]
pub(crate) enum InstalledNode {
    Directory { mode: u32 },
    Link { target: String },
    File { mode: u32, facts: Arc<FileFacts> },
    Special { what: &'static str },
}

impl InstalledNode {
    /// The word for the kind in messages.
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

    /// Tells whether `other` would be installed the same way.
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
    packages: &[&'a Installed],
) -> impl Iterator<Item = (&'a Installed, &'a str, &'a FileFacts)> {
    packages.iter().flat_map(|package| package.files().map(move |(path, it)| (*package, path, it)))
}

impl Installed {
    /// Compares the versions of two packages of the same format. Folders and wheels compare as equal.
    pub(crate) fn compare_versions(&self, other: &Self) -> Ordering {
        self.format.map_or(Ordering::Equal, |format| {
            format.compare_versions(&self.version, &other.version)
        })
    }

    /// The regular files in path order.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &FileFacts)> {
        self.paths.iter().filter_map(|(path, node)| Some((path.as_str(), node.facts()?)))
    }

    /// A folder of host and device files called `name`, without metadata.
    pub(crate) fn of_files(name: String, paths: BTreeMap<String, InstalledNode>) -> Self {
        Self { file: name.clone(), name, side: Some(Side::Both), paths, ..Self::default() }
    }

    pub(crate) fn side(&self) -> Side {
        self.side.unwrap_or(if self.has_kernels() { Side::Kernels } else { Side::Host })
    }

    /// Tells whether it is a kernel package: it states its archs, or nothing states its side, and it has kernel
    /// archives and no reference to some, or other device code and no host code. Files that serve all archs of a
    /// kernel database may be in either package, and host libraries that are for one arch as a whole are beside
    /// archives.
    pub(crate) fn has_kernels(&self) -> bool {
        if self.stated_archs.is_some() || self.side == Some(Side::Host) {
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

    /// Tells whether it may have code for `arch`: it states the arch, or none.
    pub(crate) fn states(&self, arch: &BaseArch) -> bool {
        let arch = arch.as_str();
        self.stated_archs.as_ref().is_none_or(|all| {
            // Code for `gfx1250-strict` states gfx1250 in its header.
            all.iter().any(|own| own == arch || own.strip_suffix("-strict") == Some(arch))
        })
    }

    pub(crate) fn offered(&self) -> Offered<'_> {
        Offered {
            name: &self.name,
            version: self.version.as_str().into(),
            arch: &self.arch,
            relations: self.declared.clone(),
            paths: Vec::new(),
        }
    }

    /// The bounds of its dependencies. Alternatives need none of their packages.
    pub(crate) fn requires(&self) -> impl Iterator<Item = &Bound<'static>> {
        self.declared.needs().filter_map(Requirement::bound)
    }

    /// All names in its dependencies, including alternatives.
    pub(crate) fn named(&self) -> impl Iterator<Item = &str> {
        self.declared.needs().flat_map(Requirement::bounds).map(|bound| &*bound.name)
    }

    /// Whether a dependency of it names `other` and takes its version, or the two are installed together.
    pub(crate) fn depends_on(&self, other: &Installed) -> bool {
        if self.comes_with.contains(&other.name) {
            return true;
        }
        let Some(format) = self.format else { return false };
        self.requires().any(|r| r.name == other.name && r.admits(format, &other.version))
    }

    pub(crate) fn identity(&self) -> NamedVersion {
        NamedVersion::new(&self.name, &self.version, &self.arch)
    }

    /// How messages name one of its files.
    pub(crate) fn at(&self, path: &str) -> PackagePath {
        PackagePath::new(&self.file, path)
    }
}

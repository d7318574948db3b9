//! One package, read back whole.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use rockpack_base::formats::deb::INSTALLED_UNIT;
use rockpack_base::gfx::BaseArch;

use super::digest::Sha;
use super::facts::{Class, FileFacts};
use super::index;
use super::maintainer::InstalledScript;
use crate::package::bounds::Bound;
use crate::package::{Comparison, Format, RoleKind};
use crate::receipt::RelationRecord;
use crate::verify::problem::{DebFault, HeaderFault, PackagePath};

/// What a package installs and what it says of itself.
#[derive(Debug, Default)]
pub(in crate::verify) struct Installed {
    /// File name of the package.
    pub(in crate::verify) file: String,
    /// Which of the arguments named it.
    pub(in crate::verify) argument: usize,
    /// Size of the package file in bytes.
    pub(in crate::verify) size: u64,
    pub(in crate::verify) sha256: Sha,
    /// The format of a package; none for what is no package.
    pub(in crate::verify) format: Option<Format>,
    pub(in crate::verify) name: String,
    /// Full version as other packages name it in relations, e.g. `7.1.0-1`.
    pub(in crate::verify) version: String,
    /// What machines it is for, as its format calls them.
    pub(in crate::verify) arch: String,
    pub(in crate::verify) requires: Vec<Requirement>,
    /// Names of what is always installed with it, though it does not need that.
    pub(in crate::verify) comes_with: BTreeSet<String>,
    /// Every name that its dependencies have, those of alternatives among them.
    pub(in crate::verify) named: BTreeSet<String>,
    /// What it provides besides its own name.
    pub(in crate::verify) provides: Vec<Capability>,
    /// What cannot be installed beside it.
    pub(in crate::verify) excludes: Vec<Against>,
    /// All relations that it states, but what follows from itself, as receipts have it.
    pub(in crate::verify) relations: Vec<RelationRecord>,
    /// The archs it says it has code for, where it or the receipt says so.
    pub(in crate::verify) stated_archs: Option<Vec<String>>,
    /// Which side it has to be, where that does not follow from what is in it.
    pub(in crate::verify) side: Option<Side>,
    /// What it is for, where a receipt says so.
    pub(in crate::verify) role: Option<RoleKind>,
    /// The licence that it states, where it states one.
    pub(in crate::verify) license: Option<String>,
    /// The scripts that it has run.
    pub(in crate::verify) scripts: Vec<InstalledScript>,
    /// What a `.deb` has that no `.deb` of rockpack has.
    pub(in crate::verify) deb_faults: Vec<DebFault>,
    /// What the header of an `.rpm` has that none of rockpack has.
    pub(in crate::verify) header_faults: Vec<HeaderFault>,
    /// The prefixes from which rpm may move what it installs.
    pub(in crate::verify) prefixes: Vec<String>,
    /// Bytes that it says it takes once it is installed.
    pub(in crate::verify) installed_size: Option<u64>,
    /// The version of rockpack that it says made it.
    pub(in crate::verify) generator: Option<String>,
    /// Whether it says itself for which archs it is.
    pub(in crate::verify) names_archs: bool,
    /// The first times of what is in it, in seconds since 1970, each with the first path that has it.
    pub(in crate::verify) times: BTreeMap<u64, String>,
    /// Absolute path → what stands there.
    pub(in crate::verify) paths: BTreeMap<String, InstalledNode>,
}

/// What may be in a package or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::verify) enum Side {
    /// Host files, and no device code.
    Host,
    /// Device code of the stated archs, and no host code.
    Kernels,
    /// Both, as in an installed prefix. Binaries may be fat unless they say that they are
    /// transformed.
    Both,
}

/// A package that another needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::verify) struct Requirement {
    pub(in crate::verify) name: String,
    /// How its version has to compare with another one, and that.
    pub(in crate::verify) bound: Option<(Comparison, String)>,
}

impl Requirement {
    /// The only version that will do, if it is one.
    pub(in crate::verify) fn exact(&self) -> Option<&String> {
        match &self.bound {
            Some((Comparison::Equal, version)) => Some(version),
            _ => None,
        }
    }

    /// Whether `version` of the package will do.
    pub(in crate::verify) fn is_met_by(&self, version: &str, format: Format) -> bool {
        let bound = self.bound.as_ref().map(|(sign, bound)| (*sign, Cow::Borrowed(bound.as_str())));
        Bound { name: Cow::Borrowed(&self.name), version: bound }.admits(format, version)
    }
}

/// A name that a package provides or excludes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::verify) struct Capability {
    pub(in crate::verify) name: String,
    /// How the version compares, as the format writes it (`<<`, `=`), and the version.
    pub(in crate::verify) bound: Option<(String, String)>,
}

/// What cannot be installed beside a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::verify) struct Against {
    /// `Breaks`, `Conflicts` or `Obsoletes`.
    pub(in crate::verify) field: &'static str,
    pub(in crate::verify) what: Capability,
}

impl fmt::Display for Against {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.what.name)?;
        match &self.what.bound {
            Some((sign, version)) => write!(f, " ({sign} {version})"),
            None => Ok(()),
        }
    }
}

/// What stands at a path.
#[derive(Debug)]
pub(in crate::verify) enum InstalledNode {
    Directory {
        mode: u32,
    },
    Link {
        target: String,
    },
    File {
        mode: u32,
        facts: FileFacts,
    },
    /// A hard link, pipe or device, which packages of other tools have.
    Special {
        mode: u32,
        what: &'static str,
    },
}

impl InstalledNode {
    /// What to call it in a message.
    pub(in crate::verify) fn kind(&self) -> &'static str {
        match self {
            Self::Directory { .. } => "folder",
            Self::Link { .. } => "link",
            Self::File { .. } => "file",
            Self::Special { what, .. } => what,
        }
    }

    /// Permission bits; those of a link say nothing.
    pub(in crate::verify) fn mode(&self) -> u32 {
        match self {
            Self::Directory { mode } | Self::File { mode, .. } | Self::Special { mode, .. } => {
                *mode
            }
            Self::Link { .. } => 0,
        }
    }

    /// What is known of a file.
    pub(in crate::verify) fn facts(&self) -> Option<&FileFacts> {
        match self {
            Self::File { facts, .. } => Some(facts),
            Self::Directory { .. } | Self::Link { .. } | Self::Special { .. } => None,
        }
    }

    /// Whether `other` would be installed as the same.
    pub(in crate::verify) fn is_same(&self, other: &Self) -> bool {
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

impl Installed {
    /// Which of two packages of one format is newer; what is no package has no version.
    pub(in crate::verify) fn compare_versions(&self, other: &Self) -> Ordering {
        let compare = |format: Format| format.compare_versions(&self.version, &other.version);
        self.format.map_or(Ordering::Equal, compare)
    }

    /// The regular files in path order.
    pub(in crate::verify) fn files(&self) -> impl Iterator<Item = (&str, &FileFacts)> {
        self.paths.iter().filter_map(|(path, node)| Some((path.as_str(), node.facts()?)))
    }

    /// A folder of files called `name`, which states nothing of itself.
    pub(in crate::verify) fn of_files(
        name: String,
        side: Side,
        paths: BTreeMap<String, InstalledNode>,
    ) -> Self {
        Self {
            file: name.clone(),
            argument: usize::MAX,
            name,
            side: Some(side),
            paths,
            ..Self::default()
        }
    }

    /// What may be in it.
    pub(in crate::verify) fn side(&self) -> Side {
        self.side.unwrap_or(if self.has_kernels() { Side::Kernels } else { Side::Host })
    }

    /// Whether it is a kernel package: it says for which archs it is, or nobody says what it is and
    /// its files look so.
    pub(in crate::verify) fn has_kernels(&self) -> bool {
        self.stated_archs.is_some() || (self.side != Some(Side::Host) && self.looks_like_kernels())
    }

    /// Whether it has what no other tool packs: kernels by their archs, archives, or what leads to these.
    /// Archives at the paths `shipped` are files of other people.
    pub(in crate::verify) fn is_of_rockpack(&self, shipped: &BTreeSet<&str>) -> bool {
        let is_own = |path: &str, facts: &FileFacts| match &facts.class {
            Class::Manifest(_) => true,
            Class::Archive(_) => !shipped.contains(path),
            Class::Host(host) => host.claims_to_be_transformed(),
            _ => false,
        };
        self.stated_archs.is_some() || self.files().any(|(path, facts)| is_own(path, facts))
    }

    /// Whether it has kernel archives and nothing that leads to some, or other device code and no host
    /// code. Files that serve all archs of a kernel database may be in either package, and host
    /// libraries that are for one arch as a whole are beside archives.
    fn looks_like_kernels(&self) -> bool {
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

    /// Bytes that what is in it takes once it is installed, as its format counts them.
    pub(in crate::verify) fn size_of_content(&self) -> u64 {
        let stored = |node: &InstalledNode| match node {
            InstalledNode::File { facts, .. } => facts.size,
            InstalledNode::Link { target } => target.len() as u64,
            InstalledNode::Directory { .. } | InstalledNode::Special { .. } => 0,
        };
        let units = |node: &InstalledNode| match node {
            InstalledNode::Directory { .. } => 1,
            other => stored(other).div_ceil(INSTALLED_UNIT),
        };
        match self.format {
            // A unit for the root.
            Some(Format::Deb) => (self.paths.values().map(units).sum::<u64>() + 1) * INSTALLED_UNIT,
            _ => self.paths.values().map(stored).sum(),
        }
    }

    /// Whether it has more than documents.
    pub(in crate::verify) fn has_more_than_documents(&self) -> bool {
        self.paths.iter().any(|(path, node)| {
            let is_folder = matches!(node, InstalledNode::Directory { .. });
            !is_folder && !path.starts_with("/usr/share/doc/")
        })
    }

    /// Whether it may have code for `arch`: it says so, or says nothing.
    pub(in crate::verify) fn states(&self, arch: &BaseArch) -> bool {
        // Code for `gfx1250-strict` states gfx1250 in its header.
        let same = |own: &String| own.strip_suffix("-strict").unwrap_or(own) == arch.as_str();
        let states = |own: &String| own == arch.as_str() || same(own);
        self.stated_archs.as_ref().is_none_or(|own| own.iter().any(states))
    }

    /// Whether it says that it is for `arch`.
    pub(in crate::verify) fn says_it_is_for(&self, arch: &BaseArch) -> bool {
        self.stated_archs.is_some() && self.states(arch)
    }

    /// Whether this file lies at `path`.
    pub(in crate::verify) fn has_file(&self, path: &str, sha256: &Sha) -> bool {
        let own = self.paths.get(path).and_then(InstalledNode::facts);
        own.is_some_and(|facts| facts.sha256 == *sha256)
    }

    /// Whether a dependency of it names `other` and takes its version, or the two are installed together.
    pub(in crate::verify) fn depends_on(&self, other: &Installed) -> bool {
        if self.comes_with.contains(&other.name) {
            return true;
        }
        let Some(format) = self.format else { return false };
        self.requires.iter().any(|r| r.name == other.name && r.is_met_by(&other.version, format))
    }

    /// Whether it needs exactly this version of `other`, or the two are bound to each other.
    pub(in crate::verify) fn is_tied_to(&self, other: &Installed) -> bool {
        let tied = |r: &Requirement| r.name == other.name && r.exact() == Some(&other.version);
        self.requires.iter().any(tied) || self.is_bound_to(other)
    }

    /// Whether it takes no host before one version, and `other` no kernels before another: the two belong
    /// together from these versions on.
    pub(in crate::verify) fn is_bound_to(&self, other: &Installed) -> bool {
        let Some(format) = self.format else { return false };
        let has_floor = self.requires.iter().any(|r| {
            let is_floor = matches!(r.bound, Some((Comparison::GreaterEqual, _)));
            r.name == other.name && is_floor && r.is_met_by(&other.version, format)
        });
        let sign = Comparison::Less.sign(format);
        let excludes = |against: &Against| {
            let bound = against.what.bound.as_ref();
            against.what.name == self.name && bound.is_some_and(|(known, _)| known == sign)
        };
        has_floor && other.excludes.iter().any(excludes)
    }

    /// How messages name one of its files.
    pub(in crate::verify) fn at(&self, path: &str) -> PackagePath {
        PackagePath::new(&self.file, path)
    }
}

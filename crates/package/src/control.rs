//! The facts of a package that only one format has, and the digest of its metadata.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use rockpack_core::content::hex;
use rockpack_core::tree::TreePath;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Format, MemberKind, Package, PackageEntry, Relation, RpmControl};

/// The parts of a package that only a `.deb` has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DebControl {
    pub name: String,
    /// Full version, e.g. `7.1.0-1`.
    pub version: String,
    /// `amd64` or `all`.
    pub architecture: String,
    /// Section, e.g. `libs`.
    pub section: String,
    /// Priority, e.g. `optional`.
    pub priority: String,
    /// Maintainer, as `Name <address>`.
    pub maintainer: String,
    /// Relations, sorted by kind and name. Emission sorts them by field.
    pub relations: Vec<Relation>,
    /// Further fields in order, e.g. `X-ROCm-GPU-Architecture`.
    pub fields: Vec<(String, String)>,
    pub triggers: Vec<String>,
    /// Maintainer scripts: (`preinst`, `postinst`, `prerm`, `postrm`) → text.
    pub scripts: Vec<(String, String)>,
}

impl DebControl {
    /// The name of the package file, without the epoch, like dpkg-deb.
    pub fn file_name(&self) -> String {
        let version = self.version.split_once(':').map_or(&*self.version, |(_, rest)| rest);
        format!("{}_{version}_{}.deb", self.name, self.architecture)
    }
}

/// Facts by which a package is compared with an earlier set, before that set changes the package.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// Format → the digest of the package's metadata in it.
    pub control: Vec<(Format, String)>,
    /// Relations whose bound is the version of a package in this set.
    pub of_set: Vec<(Format, Relation)>,
    /// Relations to packages of earlier sets that had paths of this package, or import what it no longer has.
    pub superseding: Vec<(Format, Relation)>,
    /// Paths at which a folder became something else, or the reverse.
    pub changed: Vec<(Format, PathChange)>,
    /// The libraries of other packages of the set that files of this package or of its earlier releases need.
    pub imports: Vec<Import>,
}

/// A library of another package that files of a package need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Import {
    /// The name by which they need it, without folders.
    pub library: String,
    /// The path at which they find it, relative to the prefix.
    pub path: TreePath,
    pub package: String,
    /// Whether only earlier releases of the package with the files need it, or these symbols.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub earlier_releases_only: bool,
    /// The dynamic symbols that they take from it, sorted: `name`, `name@version`, and `library(version)` for
    /// each version that they need.
    pub symbols: BTreeSet<String>,
}

impl Import {
    /// Whether `item` is the library or one of the symbols.
    pub fn has(&self, item: &str) -> bool {
        self.library == item || self.symbols.contains(item)
    }

    /// Whether both are of one library.
    pub fn is_of(&self, other: &Self) -> bool {
        (&self.library, &self.path, &self.package) == (&other.library, &other.path, &other.package)
    }

    /// Adds the import to others, or its symbols to those of the same library.
    pub fn merge_into(self, imports: &mut Vec<Self>) {
        let only = self.earlier_releases_only;
        let mut same = imports.iter_mut().filter(|it| it.earlier_releases_only == only);
        match same.find(|it| it.is_of(&self)) {
            Some(known) => known.symbols.extend(self.symbols),
            None => imports.push(self),
        }
    }
}

/// A path at which a folder becomes something else in an update, or the reverse.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathChange {
    pub path: String,
    /// The kind of entry in earlier sets.
    pub was: MemberKind,
    /// The kind of entry in this set.
    pub is: MemberKind,
    /// The target of the old or new link; `None` if it is not known or differed between earlier sets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Whether another package had the path.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_shared: bool,
    /// Paths below the old folder in earlier versions, relative to the folder.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub members: BTreeSet<String>,
}

impl Identity {
    pub fn control(&self, format: Format) -> Option<&String> {
        self.control.iter().find(|(known, _)| *known == format).map(|(_, digest)| digest)
    }
}

impl<F> Package<F> {
    /// The facts of this package. The bounds of the relations `of_set` are versions of this set.
    pub fn identity(&self, of_set: Vec<(Format, Relation)>) -> Identity {
        let control = self.formats().map(|format| (format, self.control_digest(format, &of_set)));
        Identity { control: control.collect(), of_set, ..Identity::default() }
    }

    /// SHA-256, in hex, of everything that decides the package in `format`, except the content of its files,
    /// its version, time and changelog, and the bounds of the relations `of_set`.
    fn control_digest(&self, format: Format, of_set: &[(Format, Relation)]) -> String {
        let Self { id, role, summary, description, homepage, rights, deb, rpm, .. } = self;
        // The debug forms have every field, including those that are added later.
        let mut text =
            format!("{id:?} {role:?} {summary:?} {description:?} {homepage:?} {rights:?}\n");
        let own = of_set.iter().filter(|(of, _)| *of == format);
        let of_set: BTreeSet<&Relation> = own.map(|(_, relation)| relation).collect();
        let mut relations = self.relations(format).to_vec();
        for relation in relations.iter_mut().filter(|it| of_set.contains(&**it)) {
            relation.version.iter_mut().for_each(|(_, bound)| bound.clear());
        }
        match (format, deb, rpm) {
            (Format::Deb, Some(control), _) => {
                let control = DebControl { version: String::new(), relations, ..control.clone() };
                let _ = writeln!(text, "{control:?}");
            }
            (Format::Rpm, _, Some(control)) => {
                let (version, release, changes) = (String::new(), String::new(), Vec::new());
                let control =
                    RpmControl { version, release, relations, changes, ..control.clone() };
                let _ = writeln!(text, "{control:?}");
            }
            _ => {}
        }
        let own = self.entries.iter().filter(|entry| entry.formats.has(format));
        for PackageEntry { path, treatment, .. } in own {
            let _ = writeln!(text, "{path} {treatment:?}");
        }
        hex(&Sha256::digest(text))
    }
}

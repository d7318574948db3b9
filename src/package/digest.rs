//! The digest of what a package says of itself.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use rockpack_base::content::hex;
use sha2::{Digest, Sha256};

use super::{DebControl, Format, MemberKind, Package, PackageEntry, Relation, RpmControl};

/// Facts by which a package is told from the one of an earlier set, taken before that was looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// Format → the digest of what the package says of itself in it.
    pub control: Vec<(Format, String)>,
    /// Relations whose bound is the version that the set has of a package.
    pub of_set: Vec<(Format, Relation)>,
    /// Relations to packages of earlier sets that had paths of this one.
    pub taken: Vec<(Format, Relation)>,
    /// Paths at which a folder became something else, or the reverse.
    pub changed: Vec<(Format, PathChange)>,
}

/// A path at which a folder becomes something else in an update, or the reverse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathChange {
    /// Absolute path.
    pub path: String,
    /// The kind that stands there in earlier sets.
    pub was: MemberKind,
    /// The kind that stands there now.
    pub is: MemberKind,
    /// The text of the link that was there or is; none where it is not known, or was not one text.
    pub target: Option<String>,
    /// Whether another package had the path.
    pub is_shared: bool,
    /// Paths that earlier versions have in the folder, relative to it.
    pub members: BTreeSet<String>,
}

impl Identity {
    /// The digest of what the package says of itself in `format`.
    pub fn control(&self, format: Format) -> Option<&String> {
        self.control.iter().find(|(known, _)| *known == format).map(|(_, digest)| digest)
    }
}

impl<F> Package<F> {
    /// The facts of this package, of whose relations those `of_set` have the version of the set as
    /// their bound.
    pub fn identity(&self, of_set: Vec<(Format, Relation)>) -> Identity {
        let formats = Format::ALL.into_iter().filter(|format| self.name(*format).is_some());
        let control = formats.map(|format| (format, self.control_digest(format, &of_set)));
        Identity { control: control.collect(), of_set, ..Identity::default() }
    }

    /// SHA-256, in hex, of everything that decides the package in `format` but the content of its files,
    /// its version, the time and its changelog, and without the bounds of the relations `of_set`.
    fn control_digest(&self, format: Format, of_set: &[(Format, Relation)]) -> String {
        let Self { id, role, summary, description, homepage, rights, deb, rpm, .. } = self;
        // The debug forms have every field, also those that are added one day.
        let mut text =
            format!("{id:?} {role:?} {summary:?} {description:?} {homepage:?} {rights:?}\n");
        let relations = self.relations(format).iter().cloned().map(|relation| {
            let of_set = of_set.iter().any(|(of, known)| *of == format && *known == relation);
            match relation.version {
                Some((sign, _)) if of_set => {
                    Relation { version: Some((sign, String::new())), ..relation }
                }
                _ => relation,
            }
        });
        let relations: Vec<Relation> = relations.collect();
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

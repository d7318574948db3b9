//! The digest of what a package says of itself.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use super::{DebControl, Format, Package, PackageEntry, Relation, RpmControl};
use crate::content::hex;

impl<F> Package<F> {
    /// SHA-256, in hex, of everything that decides the package but the content of its files, its
    /// version, the time and its changelog. A bound of a relation that is the package's own version
    /// counts as one of the set's version, whatever that is.
    pub fn control_digest(&self) -> String {
        let Self { id, role, summary, description, homepage, rights, deb, rpm, .. } = self;
        // The debug forms have every field, also those that are added one day.
        let mut text =
            format!("{id:?} {role:?} {summary:?} {description:?} {homepage:?} {rights:?}\n");
        if let Some(control) = deb {
            let relations = self.of_any_version(&control.relations, Format::Deb);
            let control = DebControl { version: String::new(), relations, ..control.clone() };
            let _ = writeln!(text, "{control:?}");
        }
        if let Some(control) = rpm {
            let relations = self.of_any_version(&control.relations, Format::Rpm);
            let (version, release, changes) = (String::new(), String::new(), Vec::new());
            let control = RpmControl { version, release, relations, changes, ..control.clone() };
            let _ = writeln!(text, "{control:?}");
        }
        for PackageEntry { path, treatment, formats, .. } in &self.entries {
            let _ = writeln!(text, "{path} {treatment:?} {formats:?}");
        }
        hex(&Sha256::digest(text))
    }

    /// `relations` without the version of the set.
    fn of_any_version(&self, relations: &[Relation], format: Format) -> Vec<Relation> {
        let own = self.full_version(format);
        let mut relations = relations.to_vec();
        let bounds = relations.iter_mut().filter_map(|relation| relation.version.as_mut());
        for (_, version) in bounds {
            if Some(&*version) == own.as_ref() {
                version.clear();
            }
        }
        relations
    }
}

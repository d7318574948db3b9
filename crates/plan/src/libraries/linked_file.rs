//! A file that links to libraries, and the results of looking them up.

use std::collections::{BTreeMap, BTreeSet};

use rockpack_core::tree::TreePath;

use super::needs::Needs;

/// A file of the set that states needs.
pub(super) struct LinkedFile<'a> {
    pub portion: usize,
    pub path: &'a TreePath,
    pub needs: Needs,
    /// Whether it is in the host package, and not in a kernel package.
    pub in_host: bool,
}

impl LinkedFile<'_> {
    /// `DT_SONAME`, if it is a library of the host package.
    pub fn soname(&self) -> Option<&str> {
        let linking = self.needs.linking.as_ref().filter(|_| self.in_host)?;
        linking.soname.as_deref().filter(|_| linking.interpreter.is_none())
    }
}

/// A linked file with the results of looking up its needed libraries.
pub(super) struct LocatedFile<'a> {
    pub linked: &'a LinkedFile<'a>,
    /// The library search path as it will be installed.
    pub search_path: &'a str,
    /// Needed library → result of the lookup.
    pub places: BTreeMap<&'a str, LibraryLookup>,
}

/// The result of looking up a needed library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LibraryLookup {
    /// A library of the set.
    InSet(SetLibrary),
    /// A library of the distribution or the configuration; without a distribution to ask, any that is not in
    /// the set.
    Outside,
    /// No library was found.
    Nowhere,
}

/// A library of the set, as found by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SetLibrary {
    /// The portion of its file, and those of links to it.
    pub portions: BTreeSet<usize>,
    /// The portion of its file.
    pub owner: usize,
    /// The path at which the loader finds it: that of its file, or of a link to it.
    pub found_at: TreePath,
    /// Path of the library's file.
    pub file: TreePath,
    /// Whether it is outside of the linker path.
    pub is_private: bool,
    /// Whether the loader finds it for the file that needs it.
    pub is_reached: bool,
}

impl LocatedFile<'_> {
    /// The libraries of the set that the file needs, with the names by which it needs them.
    pub fn in_set(&self) -> impl Iterator<Item = (&str, &SetLibrary)> {
        self.places.iter().filter_map(|(name, place)| match place {
            LibraryLookup::InSet(library) => Some((*name, library)),
            _ => None,
        })
    }
}

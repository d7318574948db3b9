//! The output of a disturbed run, and the promises about it.

use support::example::Entry;

use crate::room::{Struck, Tree};
use crate::scenarios::{AT_ONCE, Scenario};

/// The output of a disturbed run.
pub struct Left<'a> {
    pub scenario: &'a Scenario,
    pub struck: Struck,
    pub tree: Tree,
    pub unfinished: Vec<String>,
    /// Files that the run's commit moved aside, by original path.
    pub aside: Tree,
    /// The description of the case for messages.
    pub about: String,
}

/// The run gives the new output, as if nothing had happened.
pub fn undisturbed(left: &Left<'_>) {
    assert_eq!(left.struck.code(), Some(0), "{}", left.about);
    left.is_whole();
}

impl Left<'_> {
    /// Fails unless the whole new output is there, and nothing else.
    pub fn is_whole(&self) {
        self.is_new();
        self.left_nothing();
    }

    /// Fails unless the whole new output is there, or the run failed and left the earlier one. Returns
    /// whether it failed.
    pub fn is_whole_or_failed(&self) -> bool {
        match self.struck.code() {
            Some(0) => self.is_whole(),
            Some(2) => self.is_taken_back(),
            _ => panic!("{}", self.about),
        }
        self.struck.code() == Some(2)
    }

    /// Fails unless the whole new output is there, except for optional parts.
    pub fn is_new(&self) {
        let aside = self.scenario.promise.aside;
        let [left, whole] = [&self.tree, &self.scenario.whole]
            .map(|tree| part_of(tree, |path| aside.is_none_or(|aside| !path.starts_with(aside))));
        assert!(left == whole, "{}: not the new output", self.about);
        self.has_no_part();
    }

    /// Fails if an unfinished folder is left, unless the fault prevented its removal: the next run does that.
    pub fn left_nothing(&self) {
        let (_, path) = self.struck.call.clone().unwrap_or_default();
        let stuck = self.unfinished.iter().any(|name| path.to_str().unwrap().contains(name));
        assert!(stuck || self.unfinished.is_empty(), "{}: {:?}", self.about, self.unfinished);
    }

    /// Fails unless each unit is whole, earlier or new. Returns the new units.
    pub fn units(&self) -> Vec<&str> {
        let mut names = self.names_of_units();
        names.retain(|name| {
            let (old, new) = self.age(name);
            assert!(old || new, "{}: {name} is neither old nor new", self.about);
            new && !old
        });
        names
    }

    fn new_units(&self) -> Vec<&str> {
        let mut names = self.names_of_units();
        names.retain(|name| self.age(name).1);
        names
    }

    fn names_of_units(&self) -> Vec<&str> {
        let paths = self.scenario.earlier.keys().chain(self.scenario.whole.keys());
        let mut names: Vec<&str> = paths.map(|path| (self.scenario.promise.unit)(path)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Returns whether a unit is the earlier one, and whether it is the new one.
    fn age(&self, name: &str) -> (bool, bool) {
        let unit = self.scenario.promise.unit;
        let [now, earlier, whole] = [&self.tree, &self.scenario.earlier, &self.scenario.whole]
            .map(|tree| part_of(tree, |path| unit(path) == name));
        (now == earlier, now == whole)
    }

    /// Fails unless the earlier output is unchanged, if it becomes visible at once, and nothing unfinished is
    /// left.
    pub fn is_taken_back(&self) {
        self.has_no_part();
        let new = self.units();
        assert!(!new.contains(&AT_ONCE), "{}: the output is new", self.about);
        if !self.scenario.promise.left_to_the_next {
            self.left_nothing();
        }
    }

    /// Fails if a file under its final name is neither the earlier nor the new one.
    pub fn has_no_part(&self) {
        for (path, entry) in &self.tree {
            let folder = matches!(entry, Entry::Folder { .. });
            let known = [&self.scenario.earlier, &self.scenario.whole]
                .iter()
                .any(|tree| tree.get(path) == Some(entry));
            assert!(known || folder, "{}: {path} is neither old nor new", self.about);
        }
        self.documents_describe_packages();
        self.has_all_that_it_does_not_replace();
        let is_receipt =
            |path: &str| ["packages.json", "wheels.json"].iter().any(|name| path.ends_with(name));
        if self.tree.keys().any(|path| is_receipt(path)) {
            self.units();
        }
    }

    /// Fails unless every earlier file of a unit exists until the whole unit is new: in its place, or where
    /// the next run restores it from.
    fn has_all_that_it_does_not_replace(&self) {
        let new = self.new_units();
        for (path, entry) in &self.scenario.earlier {
            let exists = [&self.tree, &self.aside].iter().any(|tree| tree.get(path) == Some(entry));
            let file = !matches!(entry, Entry::Folder { .. });
            let replaced = new.contains(&(self.scenario.promise.unit)(path));
            assert!(exists || replaced || !file, "{}: {path} is lost", self.about);
        }
    }

    /// Fails unless each document comes with all packages of its generation.
    fn documents_describe_packages(&self) {
        for generation in [&self.scenario.earlier, &self.scenario.whole] {
            let mut documents = generation.keys().filter(|path| path.ends_with(".spdx.json"));
            if documents.any(|path| self.agrees_with(generation, path)) {
                let package = |path: &&String| path.ends_with(".deb") || path.ends_with(".rpm");
                let mut packages = generation.keys().filter(package);
                let missing = packages.find(|path| !self.agrees_with(generation, path));
                assert_eq!(missing, None, "{}: a document without it", self.about);
            }
        }
    }

    fn agrees_with(&self, generation: &Tree, path: &str) -> bool {
        self.tree.get(path) == generation.get(path)
    }
}

fn part_of(tree: &Tree, is_wanted: impl Fn(&str) -> bool) -> Tree {
    let wanted = tree.iter().filter(|(path, _)| is_wanted(path));
    wanted.map(|(path, entry)| (path.clone(), entry.clone())).collect()
}

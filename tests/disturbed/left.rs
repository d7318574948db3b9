//! What a disturbed run leaves, and what has to be true of it.

use support::example::Entry;

use crate::room::{Struck, Tree};
use crate::scenarios::{AT_ONCE, Scenario};

/// What a disturbed run left.
pub struct Left<'a> {
    pub scenario: &'a Scenario,
    pub struck: Struck,
    pub tree: Tree,
    pub unfinished: Vec<String>,
    /// What its commit moved out of the way, by where it was.
    pub aside: Tree,
    /// For messages.
    pub about: String,
}

/// All of the new output, by a run that went on as if nothing had been.
pub fn undisturbed(left: &Left<'_>) {
    assert_eq!(left.struck.code(), Some(0), "{}", left.about);
    left.is_whole();
}

impl Left<'_> {
    /// All of the new output, and nothing else.
    pub fn is_whole(&self) {
        self.is_new();
        self.left_nothing();
    }

    /// All of the new output, or a failure that left the earlier one; whether it failed.
    pub fn is_whole_or_failed(&self) -> bool {
        match self.struck.code() {
            Some(0) => self.is_whole(),
            Some(2) => self.is_taken_back(),
            _ => panic!("{}", self.about),
        }
        self.struck.code() == Some(2)
    }

    /// All of the new output, but what need not be there.
    pub fn is_new(&self) {
        let aside = self.scenario.promise.aside;
        let wanted = |path: &&String| aside.is_none_or(|aside| !path.starts_with(aside));
        let of = |tree: &Tree| -> Tree {
            let wanted = tree.iter().filter(|(path, _)| wanted(path));
            wanted.map(|(path, entry)| (path.clone(), entry.clone())).collect()
        };
        assert!(of(&self.tree) == of(&self.scenario.whole), "{}: not the new output", self.about);
        self.has_no_part();
    }

    /// No unfinished folder, unless that one could not be cleared away: the next run does.
    pub fn left_nothing(&self) {
        let (_, path) = self.struck.call.clone().unwrap_or_default();
        let stuck = self.unfinished.iter().any(|name| path.to_str().unwrap().contains(name));
        assert!(stuck || self.unfinished.is_empty(), "{}: {:?}", self.about, self.unfinished);
    }

    /// Each unit is whole: the earlier one or the new one. Which units are new.
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

    /// Whether a unit is the earlier one, and whether it is the new one.
    fn age(&self, name: &str) -> (bool, bool) {
        let unit = self.scenario.promise.unit;
        let of = |tree: &'_ Tree| -> Tree {
            let of_it = tree.iter().filter(|(path, _)| unit(path) == name);
            of_it.map(|(path, entry)| (path.clone(), entry.clone())).collect()
        };
        let now = of(&self.tree);
        (now == of(&self.scenario.earlier), now == of(&self.scenario.whole))
    }

    /// The earlier output as it was, where it becomes visible at once, and nothing unfinished.
    pub fn is_taken_back(&self) {
        self.has_no_part();
        let new = self.units();
        assert!(!new.contains(&AT_ONCE), "{}: the output is new", self.about);
        if !self.scenario.promise.left_to_the_next {
            self.left_nothing();
        }
    }

    /// Nothing in part under a final name: every file is that of the earlier output or of the new.
    pub fn has_no_part(&self) {
        for (path, entry) in &self.tree {
            let is = |tree: &Tree| tree.get(path) == Some(entry);
            let folder = matches!(entry, Entry::Folder { .. });
            let known = is(&self.scenario.earlier) || is(&self.scenario.whole);
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

    /// Until all of a unit is new, every earlier file of it is there: in its place, or where the next
    /// run puts it back from.
    fn has_all_that_it_does_not_replace(&self) {
        let new = self.new_units();
        for (path, entry) in &self.scenario.earlier {
            let is_there =
                [&self.tree, &self.aside].iter().any(|tree| tree.get(path) == Some(entry));
            let file = !matches!(entry, Entry::Folder { .. });
            let replaced = new.contains(&(self.scenario.promise.unit)(path));
            assert!(is_there || replaced || !file, "{}: {path} is lost", self.about);
        }
    }

    /// Where a document is, there are all packages of its generation.
    fn documents_describe_packages(&self) {
        for generation in [&self.scenario.earlier, &self.scenario.whole] {
            let is_there = |path: &String| self.tree.get(path) == generation.get(path);
            if generation.keys().any(|path| path.ends_with(".spdx.json") && is_there(path)) {
                let package = |path: &&String| path.ends_with(".deb") || path.ends_with(".rpm");
                let missing = generation.keys().filter(package).find(|path| !is_there(path));
                assert_eq!(missing, None, "{}: a document without it", self.about);
            }
        }
    }
}

//! What scenarios ask of a system.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use support::tools;

use crate::install::foreign::Foreign;

/// A root with a package manager that resolves dependencies.
pub trait System {
    /// `deb` or `rpm`.
    fn format(&self) -> &'static str;
    fn root(&self) -> &Path;
    /// Replaces the repository by one with the packages of these folders.
    fn offer(&self, folders: &[&Path]);
    fn install(&self, packages: &[&str]) -> Command;
    /// Puts one package of the repository in place without asking for what it needs, if the package
    /// manager can: what happens between the steps of an update.
    fn unpack(&self, file_name: &str) -> Option<Command>;
    /// Ends what [`System::unpack`] began.
    fn repair(&self) -> Command;
    /// Everything to the newest version, whatever has to go for it.
    fn update(&self) -> Command;
    /// Everything to the newest version, as far as nothing has to come or go for it.
    fn upgrade(&self) -> Command;
    /// The same, after which no package is left that something newer is there of.
    fn upgrade_all(&self) {
        let told = tools::told(&mut self.upgrade());
        let is_smooth = told.ends_with("exit status: 0\n")
            && self.signs_of_trouble().iter().all(|sign| !told.contains(sign));
        assert!(is_smooth, "{told}");
    }
    /// What a package manager says where it removes packages or keeps them back.
    fn signs_of_trouble(&self) -> &'static [&'static str];
    /// Packages in these versions, which may be older ones than those that are there.
    fn install_versions(&self, packages: &[(&str, &str)]) -> Command;
    /// Tells the package manager to have these packages in `version` and not in `other`, which is
    /// newer. apt goes back to it in an upgrade; the others stay at it where they are.
    fn pin(&self, packages: &[&str], version: &str, other: &str);
    /// Takes that back.
    fn unpin(&self, packages: &[&str], other: &str);
    /// Removes what came along with other packages and is no longer needed.
    fn autoremove(&self) -> Command;
    fn remove(&self, packages: &[&str]) -> Command;
    /// With configuration files.
    fn purge(&self, packages: &[&str]) -> Command;
    /// Name → version of everything but the base.
    fn installed(&self) -> BTreeMap<String, String>;
    /// Says nothing where all files of the packages are as they were installed.
    fn altered(&self, packages: &[&str]) -> Command;
    /// Makes a package that is none of ours.
    fn make(&self, package: &Foreign, folder: &Path);
    /// What in the root belongs to the package manager itself.
    fn own_paths(&self) -> &'static [&'static str];

    /// The names of what is installed.
    fn names(&self) -> BTreeSet<String> {
        self.installed().into_keys().collect()
    }

    /// No file of an installed package is missing or changed.
    fn assert_whole(&self) {
        let names = self.names();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(tools::succeed(&mut self.altered(&names)), "");
    }

    /// Removes everything but the base.
    fn purge_all(&self) {
        let names = self.names();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        tools::run(&mut self.purge(&names));
        assert_eq!(self.names(), BTreeSet::new());
    }

    /// Everything but what belongs to the package manager.
    fn snapshot(&self) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        walk(self.root(), "", self.own_paths(), &mut found);
        found
    }
}

/// Kind, mode and size or text of every path, and for files the time of change.
fn walk(root: &Path, folder: &str, left_out: &[&str], found: &mut BTreeMap<String, String>) {
    for name in support::example::names(&root.join(folder)) {
        let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
        if left_out.contains(&path.as_str()) {
            continue;
        }
        let place = root.join(&path);
        let metadata = fs::symlink_metadata(&place).unwrap();
        let mode = metadata.mode();
        let what = if metadata.is_dir() {
            walk(root, &path, left_out, found);
            format!("folder {mode:o}")
        } else if metadata.is_symlink() {
            format!("link {}", fs::read_link(&place).unwrap().display())
        } else {
            let (size, time, inode) = (metadata.len(), metadata.mtime(), metadata.ino());
            format!("file {mode:o} {size} {time} {inode}")
        };
        found.insert(path, what);
    }
}

/// Fails with what is different.
pub fn assert_same(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) {
    let only = |these: &BTreeMap<String, String>, others: &BTreeMap<String, String>| {
        let lone = these.iter().filter(|(path, what)| others.get(*path) != Some(what));
        lone.map(|(path, what)| format!("{path}: {what}")).collect::<Vec<_>>()
    };
    let (gone, come) = (only(before, after), only(after, before));
    assert!(gone.is_empty() && come.is_empty(), "before: {gone:#?}\nafter: {come:#?}");
}

/// The copies of `*.deb` or `*.rpm` of the folders in `to`, in place of what was there.
pub fn gather(folders: &[&Path], format: &str, to: &Path) {
    if to.exists() {
        fs::remove_dir_all(to).unwrap();
    }
    fs::create_dir_all(to).unwrap();
    for folder in folders {
        let packages = support::example::names(folder);
        for name in packages.into_iter().filter(|name| name.ends_with(&format!(".{format}"))) {
            fs::copy(folder.join(&name), to.join(&name)).unwrap();
        }
    }
}

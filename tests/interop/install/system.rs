//! The interface of a system for scenarios.

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
    /// Replaces the repository with one of the packages in these folders.
    fn offer(&self, folders: &[&Path]);
    fn install(&self, packages: &[&str]) -> Command;
    /// Unpacks one package of the repository without its dependencies, if the package manager can: an
    /// intermediate state of an update.
    fn unpack(&self, file_name: &str) -> Option<Command>;
    /// Completes the work of [`System::unpack`].
    fn repair(&self) -> Command;
    /// Updates everything to the newest version, and may remove packages.
    fn update(&self) -> Command;
    /// Updates everything to the newest version, as far as no package has to be added or removed.
    fn upgrade(&self) -> Command;
    /// Runs [`System::upgrade`]. Fails if the package manager removes packages or keeps them back.
    fn upgrade_all(&self) {
        let told = tools::told(&mut self.upgrade());
        let is_smooth = told.ends_with("exit status: 0\n")
            && self.signs_of_trouble().iter().all(|sign| !told.contains(sign));
        assert!(is_smooth, "{told}");
    }
    /// Messages of a package manager that removes packages or keeps them back.
    fn signs_of_trouble(&self) -> &'static [&'static str];
    /// Installs packages in these versions, which may be older than the installed ones.
    fn install_versions(&self, packages: &[(&str, &str)]) -> Command;
    /// Makes the package manager prefer `version` of these packages to `other`, which is newer. apt returns
    /// to it in an upgrade; the others stay at it if it is installed.
    fn pin(&self, packages: &[&str], version: &str, other: &str);
    /// Undoes [`System::pin`].
    fn unpin(&self, packages: &[&str], other: &str);
    /// Removes packages that came along with others and are no longer needed.
    fn autoremove(&self) -> Command;
    fn remove(&self, packages: &[&str]) -> Command;
    /// Removes packages with their configuration files.
    fn purge(&self, packages: &[&str]) -> Command;
    /// The versions of all packages by name, without the base.
    fn installed(&self) -> BTreeMap<String, String>;
    /// The command that compares installed files with their packages; it prints nothing if they match.
    fn altered(&self, packages: &[&str]) -> Command;
    /// Makes a package of another vendor.
    fn make(&self, package: &Foreign, folder: &Path);
    /// Paths in the root that belong to the package manager itself.
    fn own_paths(&self) -> &'static [&'static str];

    /// The names of installed packages.
    fn names(&self) -> BTreeSet<String> {
        self.installed().into_keys().collect()
    }

    /// Fails if a file of an installed package is missing or changed.
    fn assert_whole(&self) {
        let names = self.names();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(tools::succeed(&mut self.altered(&names)), "");
    }

    /// Removes everything except the base.
    fn purge_all(&self) {
        let names = self.names();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        tools::run(&mut self.purge(&names));
        assert_eq!(self.names(), BTreeSet::new());
    }

    /// All entries except the package manager's own.
    fn snapshot(&self) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        walk(self.root(), "", self.own_paths(), &mut found);
        found
    }
}

/// Collects type, mode, and size or target of every path, and the modification time of files.
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

/// Fails with the differences, if any.
pub fn assert_same(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) {
    let (gone, come) = (only_in(before, after), only_in(after, before));
    assert!(gone.is_empty() && come.is_empty(), "before: {gone:#?}\nafter: {come:#?}");
}

fn only_in(these: &BTreeMap<String, String>, others: &BTreeMap<String, String>) -> Vec<String> {
    let lone = these.iter().filter(|(path, what)| others.get(*path) != Some(what));
    lone.map(|(path, what)| format!("{path}: {what}")).collect()
}

/// Copies the `*.deb` or `*.rpm` files of the folders to `to`, in place of its content.
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

//! The steps of a commit, and how they are undone.
//!
//! Every step is a rename, so a commit can be taken back step by step: by the run itself when a
//! step fails, and by the next run when this one was killed. The order of the steps keeps one
//! promise at every moment: if `packages.json` is there, it describes the packages beside it.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufReader, ErrorKind};
use std::path::{Path, PathBuf};

use super::listed::packages_of;
use super::staging::sync_directory;
use crate::content::{is_there, open_file};
use crate::error::{Error, Kind, Result};
use crate::formats::spdx;
use crate::receipt;

/// Inside a staging directory: what a commit moved out of the way.
const REPLACED: &str = "replaced";

/// What documents of ours say that they were made by.
const PROGRAM: &str = env!("CARGO_PKG_NAME");

/// Inside a staging directory: says that the set comes with an SPDX document, also when that has
/// been made visible.
pub(super) const DOCUMENTED: &str = "documented";

/// Names of the package files that `receipt` in `directory` lists; none where there is none.
pub(super) fn earlier_packages(directory: &Path, receipt: &str) -> Result<BTreeSet<String>> {
    let path = directory.join(receipt);
    match open_file(&path) {
        Ok(file) => packages_of(file, &path),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(Error::io(&path, "open", error)),
    }
}

/// Whether the SPDX document at `path` is one of ours; none where nothing is there.
fn is_own_sbom(path: &Path) -> Result<Option<bool>> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io(path, "inspect", error)),
        Ok(metadata) if !metadata.is_file() => return Ok(Some(false)),
        Ok(_) => {}
    }
    let read = open_file(path).and_then(|file| spdx::is_made_by(PROGRAM, BufReader::new(file)));
    read.map(Some).map_err(|e| Error::io(path, "read", e))
}

/// Fails if what is not ours, or of a set that is not there, stands where the SPDX document beside
/// `receipt` belongs. Only a set `with` a document needs the place of what is not ours.
pub(super) fn refuse_foreign_sbom(out: &Path, receipt: &str, with: bool) -> Result<()> {
    let path = out.join(receipt::sbom_name(receipt));
    let message = match is_own_sbom(&path)? {
        Some(false) if with => "is no SPDX document of rockpack".to_owned(),
        Some(true) if !is_there(&out.join(receipt))? => {
            format!("is the SPDX document of a set whose {receipt} is not there")
        }
        Some(_) | None => return Ok(()),
    };
    let hint = "it is left alone: move it away, or write into an empty folder";
    Err(Error::new(Kind::Conflict, message).file(path).hint(hint))
}

/// The receipts in a folder: that of a whole set, those of parts.
fn receipts(directory: &Path) -> Result<BTreeSet<String>> {
    let names = list(directory)?.into_iter().filter_map(|name| name.into_string().ok());
    Ok(names.filter(|name| is_receipt(name)).collect())
}

fn is_receipt(name: &str) -> bool {
    name == receipt::FILE_NAME || receipt::part_of_file(name).is_some()
}

/// Refuses to write a set beside parts, a part beside a set, and parts of several divisions beside
/// each other: their packages would be taken for one set.
pub(super) fn refuse_mixed(out: &Path, receipt: &str) -> Result<()> {
    let of = |name: &str| receipt::part_of_file(name).map(|part| part.of);
    let mut others = receipts(out)?.into_iter();
    let Some(other) = others.find(|other| of(other) != of(receipt)) else { return Ok(()) };
    let what = |name: &str| match of(name) {
        None => "a whole set".to_owned(),
        Some(of) => format!("one of {of} parts"),
    };
    let message =
        format!("is the receipt of {}, and this run writes {}", what(&other), what(receipt));
    let hint = "write into another folder, or remove that receipt and its packages";
    Err(Error::new(Kind::Conflict, message).file(out.join(other)).hint(hint))
}

/// The renames of a commit so far.
pub(super) struct Journal<'a> {
    out: &'a Path,
    staging: &'a Path,
    /// The receipt's file name.
    receipt: &'a str,
    done: Vec<(PathBuf, PathBuf)>,
}

impl<'a> Journal<'a> {
    /// A commit from `staging` into `out` that has not begun.
    pub fn new(out: &'a Path, staging: &'a Path, receipt: &'a str) -> Self {
        Self { out, staging, receipt, done: Vec::new() }
    }

    /// Replaces the earlier set by the staged packages `names` and the staged receipt. Returns
    /// what the earlier set had beyond `names`. Where the set is a part, packages can have come
    /// from another part, or gone to one.
    pub fn replace_set(&mut self, names: &BTreeSet<String>) -> Result<BTreeSet<String>> {
        refuse_mixed(self.out, self.receipt)?;
        let earlier = earlier_packages(self.out, self.receipt)?;
        let mut elsewhere = BTreeSet::new();
        for other in receipts(self.out)?.iter().filter(|other| *other != self.receipt) {
            elsewhere.extend(earlier_packages(self.out, other)?);
        }
        refuse_foreign(self.out, &earlier.union(&elsewhere).cloned().collect(), names)?;
        let earlier: BTreeSet<String> = earlier.difference(&elsewhere).cloned().collect();
        let sbom = receipt::sbom_name(self.receipt);
        let documented = is_there(&self.staging.join(DOCUMENTED))?;
        refuse_foreign_sbom(self.out, self.receipt, documented)?;
        let earlier_sbom = is_own_sbom(&self.out.join(&sbom))? == Some(true);
        let replaced = self.staging.join(REPLACED);
        fs::create_dir(&replaced).map_err(|e| Error::io(&replaced, "create", e))?;
        self.set_aside(self.receipt)?;
        sync_directory(self.out)?;
        let mut removed = BTreeSet::new();
        if earlier_sbom && self.set_aside(&sbom)? && !documented {
            removed.insert(sbom.clone());
        }
        for name in earlier.union(names) {
            if self.set_aside(name)? && !names.contains(name) {
                removed.insert(name.clone());
            }
        }
        for name in names {
            self.rename(self.staging.join(name), self.out.join(name))?;
        }
        if documented {
            self.rename(self.staging.join(&sbom), self.out.join(&sbom))?;
        }
        sync_directory(self.out)?;
        self.rename(self.staging.join(self.receipt), self.out.join(self.receipt))?;
        sync_directory(self.out)?;
        Ok(removed)
    }

    /// Whether there was such a file.
    fn set_aside(&mut self, name: &str) -> Result<bool> {
        let path = self.out.join(name);
        let kind = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            found => found.map_err(|e| Error::io(&path, "inspect", e))?.file_type(),
        };
        if kind.is_dir() {
            let message = "is a directory where a package file belongs";
            return Err(Error::new(Kind::Conflict, message).file(&path));
        }
        self.rename(path, self.staging.join(REPLACED).join(name))?;
        Ok(true)
    }

    fn rename(&mut self, from: PathBuf, to: PathBuf) -> Result<()> {
        fs::rename(&from, &to).map_err(|e| Error::io(&to, "rename into place", e))?;
        self.done.push((from, to));
        Ok(())
    }

    /// Takes every step back, the last first, and says whether that succeeded. What cannot be
    /// taken back now, because the disk fails, is left to the next run.
    pub fn undo(&mut self) -> bool {
        while let Some((from, to)) = self.done.pop() {
            if fs::rename(to, from).is_err() {
                return false;
            }
        }
        forget(self.staging, self.receipt).is_ok()
    }
}

/// Makes an undone commit unrecognisable as one. Otherwise its clean-up, cut off in the middle,
/// would leave a staging directory in which files that were put back look like files that were
/// made visible.
fn forget(staging: &Path, receipt: &str) -> Result<()> {
    let receipt = staging.join(receipt);
    match fs::remove_file(&receipt) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(Error::io(&receipt, "remove", error))
        }
        _ => sync_directory(staging),
    }
}

/// Fails if a file that no receipt of ours lists stands where a package of the new set belongs.
fn refuse_foreign(out: &Path, earlier: &BTreeSet<String>, names: &BTreeSet<String>) -> Result<()> {
    for path in names.difference(earlier).map(|name| out.join(name)) {
        match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io(&path, "inspect", error)),
            Ok(_) => {
                return Err(Error::new(Kind::Conflict, "is in the way of a package of this set")
                    .file(path)
                    .hint("no earlier receipt lists it, so it is left alone: move it away"));
            }
        }
    }
    Ok(())
}

/// Undoes the commit of a run that was killed during it; nothing to do for any other run.
///
/// The steps are known from their order: a package that is no longer in the staging directory is
/// in `out`, and everything in `replaced` came from there, the receipt included.
pub(super) fn undo_dead(out: &Path, staging: &Path) -> Result<()> {
    let replaced = staging.join(REPLACED);
    // The receipt is synced before the first step, and the last step moves it away.
    let receipt = receipts(staging)?.into_iter().next();
    let Some(receipt) = receipt else { return Ok(()) };
    if !is_there(&replaced)? {
        return Ok(());
    }
    let sbom = receipt::sbom_name(&receipt);
    // The new document first, the old one when the packages that it describes are complete, and
    // the old receipt last: this run can be killed, too.
    let document = is_there(&staging.join(DOCUMENTED))?.then(|| sbom.clone());
    for name in document.into_iter().chain(earlier_packages(staging, &receipt)?) {
        let (staged, visible) = (staging.join(&name), out.join(&name));
        if !is_there(&staged)? && is_there(&visible)? {
            fs::rename(&visible, &staged).map_err(|e| Error::io(&visible, "take back", e))?;
        }
    }
    let mut names: Vec<_> = list(&replaced)?;
    names.sort_by_key(|name| (*name == *receipt, *name == *sbom));
    for name in names {
        let to = out.join(&name);
        fs::rename(replaced.join(&name), &to).map_err(|e| Error::io(&to, "put back", e))?;
    }
    sync_directory(out)?;
    forget(staging, &receipt)
}

fn list(directory: &Path) -> Result<Vec<std::ffi::OsString>> {
    fs::read_dir(directory)
        .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect())
        .map_err(|e| Error::io(directory, "list", e))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = r#"{"packages":[{"file_name":"a.deb","sha256":"0"}]}"#;

    /// An output folder with a set of `a.deb`, and a staging directory with the next one.
    fn folders() -> (tempfile::TempDir, PathBuf) {
        let out = tempfile::tempdir().unwrap();
        let staging = out.path().join("staging");
        fs::create_dir(&staging).unwrap();
        for (folder, text) in [(out.path(), "old"), (&staging, "new")] {
            fs::write(folder.join("a.deb"), text).unwrap();
            fs::write(folder.join(receipt::FILE_NAME), OLD).unwrap();
        }
        (out, staging)
    }

    /// What the clean-up of a staging directory may have got to when it was cut off, and the next
    /// run that finds the rest.
    fn cut_off_clean_up(out: &Path, staging: &Path) {
        fs::remove_file(staging.join("a.deb")).unwrap();
        undo_dead(out, staging).unwrap();
        assert_eq!(fs::read(out.join("a.deb")).unwrap(), b"old");
        assert_eq!(fs::read(out.join(receipt::FILE_NAME)).unwrap(), OLD.as_bytes());
    }

    #[test]
    fn a_commit_that_was_taken_back_is_no_commit_any_more() {
        let (out, staging) = folders();
        let mut journal = Journal::new(out.path(), &staging, receipt::FILE_NAME);
        journal.replace_set(&["a.deb".to_owned()].into()).unwrap();
        assert_eq!(fs::read(out.path().join("a.deb")).unwrap(), b"new");
        assert!(journal.undo());
        cut_off_clean_up(out.path(), &staging);
    }

    #[test]
    fn a_killed_commit_that_was_undone_is_no_commit_any_more() {
        let (out, staging) = folders();
        fs::create_dir(staging.join(REPLACED)).unwrap();
        for name in [receipt::FILE_NAME, "a.deb"] {
            fs::rename(out.path().join(name), staging.join(REPLACED).join(name)).unwrap();
        }
        undo_dead(out.path(), &staging).unwrap();
        cut_off_clean_up(out.path(), &staging);
    }

    /// A clean-up that was cut off at `obstacle`, which is a directory where no file can go.
    fn cut_off_at(obstacle: &Path, out: &Path, staging: &Path) {
        fs::create_dir(obstacle).unwrap();
        undo_dead(out, staging).unwrap_err();
        assert!(!out.join(receipt::sbom_name(receipt::FILE_NAME)).exists());
        fs::remove_dir(obstacle).unwrap();
    }

    #[test]
    fn a_document_goes_back_when_all_packages_it_describes_are_there() {
        let (out, staging) = folders();
        let replaced = staging.join(REPLACED);
        fs::create_dir(&replaced).unwrap();
        let sbom = receipt::sbom_name(receipt::FILE_NAME);
        let packages = ["a.deb", "b.deb", "c.deb", "d.deb", "e.deb", "f.deb", "g.deb", "h.deb"];
        fs::remove_file(out.path().join("a.deb")).unwrap();
        fs::remove_file(out.path().join(receipt::FILE_NAME)).unwrap();
        let names = || packages.into_iter().chain([&*sbom, receipt::FILE_NAME]);
        for name in names() {
            fs::write(replaced.join(name), "old").unwrap();
        }
        // In the order of the folder, the document comes before the last package, as a rule.
        let listed = list(&replaced).unwrap();
        let last = listed.iter().rfind(|name| packages.contains(&name.to_str().unwrap())).unwrap();
        cut_off_at(&out.path().join(last), out.path(), &staging);
        undo_dead(out.path(), &staging).unwrap();
        assert!(names().all(|name| fs::read(out.path().join(name)).unwrap() == b"old"));
    }

    #[test]
    fn a_document_is_taken_back_before_the_packages_it_describes() {
        let (out, staging) = folders();
        let sbom = receipt::sbom_name(receipt::FILE_NAME);
        fs::create_dir(staging.join(REPLACED)).unwrap();
        fs::write(staging.join(DOCUMENTED), "").unwrap();
        fs::write(out.path().join(&sbom), "new").unwrap();
        fs::remove_file(out.path().join("a.deb")).unwrap();
        // A directory cannot take the place of a link.
        fs::remove_file(staging.join("a.deb")).unwrap();
        std::os::unix::fs::symlink("nowhere", staging.join("a.deb")).unwrap();
        cut_off_at(&out.path().join("a.deb"), out.path(), &staging);
        assert_eq!(fs::read(staging.join(sbom)).unwrap(), b"new");
    }
}

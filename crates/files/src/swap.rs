//! Commits: names in a folder change all at once, or are rolled back.
//!
//! ```text
//! OUT/<prefix>N/         the scratch folder of a run, locked while the run is alive
//!     <names>            the new files or folders, until they are renamed into OUT
//!     committing         during a commit: its record of new and replaced names ([`super::journal`])
//!     committing.part    the same record while it is written
//!     replaced/          during a commit: the entries that it moved out of OUT
//! ```
//!
//! A commit writes its record, moves the entries that it replaces out of OUT and the new ones into OUT, and
//! removes the record. All of this happens under the lock of OUT, after the commits of killed runs were rolled
//! back. The following holds after every step, and so at every point where a run may be killed:
//!
//! 1. Without a record, OUT is in its state before or after the commit. The scratch folder is only removed.
//! 2. With a record whose last name is still staged, the commit is unfinished. Recorded names that are in OUT
//!    and no longer staged are new; entries in `replaced` were in OUT. Both are renamed back, which keeps this
//!    true: a rollback may itself be interrupted, and is then repeated.
//! 3. With a record whose last name is no longer staged, the commit is finished, and nothing is rolled back.
//! 4. A name of a higher rank describes those of lower ranks. It leaves OUT before the first of them changes
//!    and appears after the last of them, in commits and in rollbacks. So if it is in OUT, everything that it
//!    describes is in OUT, too. If files are synced, each rank is on disk before the next changes.
//! 5. `replaced` is created after the record. It is removed before the record, or when the commit is
//!    finished. So a scratch folder with `replaced` and without a record is one of a finished commit.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use rockpack_core::content::list;
use rockpack_core::error::{Error, Kind, Result};

use super::journal::{DisplacedEntry, Journal, is_plain, no_name};
use super::{
    CreatedFolder, Durability, READABLE, Scratch, ScratchKind, check_folder, create_new, guarded,
    kind_of, lock, make_folder, make_readable_folders, refuse_non_folder, refuse_world_writable,
    remove_empty, remove_file, remove_folder, rename, set_mode, sync, write_file,
};

const RECORD: &str = "committing";
const GROWING_RECORD: &str = "committing.part";
const REPLACED: &str = "replaced";

/// The context of a commit that failed and could not be rolled back.
const BETWEEN: &str = "making the output visible, which could not be rolled back: the folder has \
                       parts of the earlier output and of this one until the next run repairs it";

/// The rules of commits for one kind of output.
#[derive(Debug)]
pub struct CommitPolicy {
    pub prefix: &'static str,
    /// What the output contains, in the plural, for messages.
    pub contents: &'static str,
    pub durability: Durability,
    /// The rank of a name; see the module.
    pub rank: fn(&str) -> u8,
    /// Whether commits write a file of this name. Recovery after an interrupted run moves no other names, even if the
    /// record has them.
    pub writes: fn(&str) -> bool,
}

impl CommitPolicy {
    /// Rolls back the unfinished commits of killed runs in `out`, and removes their scratch folders. Call under
    /// the lock of `out`.
    fn remove_stale(&self, out: &Path) -> Result<()> {
        for dead in Scratch::stale(ScratchKind::Folder, out, self.prefix)? {
            let dead = dead?;
            let is_own = guarded::refuse_foreign(dead.path());
            // Without a record, the folder is harmless.
            if is_own.is_err() && kind_of(&dead.path().join(RECORD))?.is_none() {
                remove_empty(dead.path());
                continue;
            }
            is_own?;
            self.recover(out, dead.path())?;
            dead.remove()?;
        }
        Ok(())
    }

    fn recover(&self, out: &Path, scratch: &Path) -> Result<()> {
        match Commit::load(self, out, scratch)? {
            Some(commit) if !commit.is_finished()? => commit.undo(),
            _ => Ok(()),
        }
    }

    fn sync(&self, path: &Path) -> Result<()> {
        match self.durability {
            Durability::Synced => sync(path),
            Durability::Unsynced => Ok(()),
        }
    }
}

#[derive(Debug)]
pub struct CommitChange {
    /// The staged names to put in place of existing ones.
    pub added: Vec<String>,
    /// Further names to remove, if they exist.
    pub removed: BTreeSet<String>,
}

/// A scratch folder whose content becomes visible by commits.
#[derive(Debug)]
pub struct Swap {
    policy: &'static CommitPolicy,
    out: PathBuf,
    scratch: Scratch,
    /// The output folder, dropped after the scratch folder inside.
    _made: CreatedFolder,
}

impl Swap {
    /// Creates a scratch folder in `out`, and `out` if it is missing, after rolling back the commits of killed runs and
    /// calling `check`.
    pub fn begin(
        policy: &'static CommitPolicy,
        out: &Path,
        check: impl FnOnce() -> Result<()>,
    ) -> Result<Self> {
        let made = make_folder(out, policy.contents, make_readable_folders)?;
        refuse_world_writable(out)?;
        let _guard = lock::folder(out)?;
        policy.remove_stale(out)?;
        check()?;
        let scratch = Scratch::create(ScratchKind::Folder, out, policy.prefix)?;
        scratch.lock()?;
        Ok(Self { policy, out: out.to_path_buf(), scratch, _made: made })
    }

    /// Refuses a folder that [`Self::begin`] would refuse. Changes nothing. Skips `check` if there is an unfinished or
    /// killed run, whose outcome is not known yet.
    pub fn check_ahead(
        policy: &CommitPolicy,
        out: &Path,
        check: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        if !check_folder(out, policy.contents)? {
            return Ok(());
        }
        refuse_world_writable(out)?;
        let _guard = lock::folder(out)?;
        for entry in list(out)? {
            if entry?.file_name().to_string_lossy().starts_with(policy.prefix) {
                return Ok(());
            }
        }
        check()
    }

    /// The folder in which the names appear.
    pub fn out(&self) -> &Path {
        &self.out
    }

    pub fn folder(&self) -> &Path {
        self.scratch.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    /// Creates an empty staged file of this name, world-readable. Call [`Swap::seal`] when it is
    /// complete.
    pub fn create(&self, name: &str) -> Result<File> {
        let path = self.path(name);
        let file = create_new(&path)?;
        set_mode(&path, READABLE)?;
        Ok(file)
    }

    /// Writes a complete staged file of this name, world-readable.
    pub fn write(
        &self,
        name: &str,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<()> {
        write_file(&self.path(name), self.policy.durability, write)
    }

    /// Syncs a finished file if its outlet requires that, and returns its path.
    pub fn seal(&self, name: &str) -> Result<PathBuf> {
        let path = self.path(name);
        self.policy.sync(&path)?;
        Ok(path)
    }

    /// Commits the change that `decide` returns under the lock of the folder. After an error the folder is in its
    /// earlier state, unless the error says that the rollback failed. Returns the names that were removed without
    /// replacement.
    pub fn commit(
        &self,
        decide: impl FnOnce() -> Result<CommitChange>,
    ) -> Result<BTreeSet<String>> {
        let _guard = lock::folder(&self.out)?;
        self.policy.remove_stale(&self.out)?;
        // Rolls back an earlier commit of this run whose rollback failed.
        self.policy.recover(&self.out, self.folder())?;
        self.scratch.keep(false);
        let CommitChange { added, removed } = decide()?;
        let mut commit = Commit::new(self.policy, &self.out, self.folder(), added)?;
        let displaced = commit.names_to_displace(&removed)?;
        if let Err(error) = commit.run(&displaced) {
            let is_undone = commit.undo().is_ok();
            self.scratch.keep(!is_undone);
            return Err(if is_undone { error } else { error.context(BETWEEN) });
        }
        // The commit is finished: a failure to clean up does not matter.
        let _ = remove_folder(&commit.replaced);
        let appeared: BTreeSet<String> = commit.journal.names.into_iter().collect();
        Ok(displaced.into_iter().filter(|name| !appeared.contains(name)).collect())
    }
}

struct Commit<'a> {
    policy: &'a CommitPolicy,
    out: &'a Path,
    scratch: &'a Path,
    replaced: PathBuf,
    journal: Journal,
}

impl<'a> Commit<'a> {
    fn new(
        policy: &'a CommitPolicy,
        out: &'a Path,
        scratch: &'a Path,
        mut names: Vec<String>,
    ) -> Result<Self> {
        for name in &names {
            let is_own = [RECORD, GROWING_RECORD, REPLACED].contains(&name.as_str())
                || name.starts_with(policy.prefix);
            if !is_plain(name) || is_own {
                return Err(no_name(OsStr::new(name), &scratch.join(RECORD)));
            }
        }
        names.sort_by_key(|name| (policy.rank)(name));
        let journal = Journal { names, displaced: Vec::new() };
        Ok(Self { policy, out, scratch, replaced: scratch.join(REPLACED), journal })
    }

    fn load(policy: &'a CommitPolicy, out: &'a Path, scratch: &'a Path) -> Result<Option<Self>> {
        let record = scratch.join(RECORD);
        let Some(text) = guarded::read_own_file(&record)? else { return Ok(None) };
        let Journal { names, displaced } = Journal::parse(&text, &record)?;
        if let Some(foreign) = names.iter().find(|name| !(policy.writes)(name)) {
            return Err(no_name(OsStr::new(foreign), &record));
        }
        let mut commit = Self::new(policy, out, scratch, names)?;
        commit.journal.displaced = displaced;
        refuse_non_folder(&commit.replaced)?;
        guarded::refuse_foreign(&commit.replaced)?;
        Ok(Some(commit))
    }

    /// The existing names to move away, in this order, before the new ones appear.
    fn names_to_displace(&self, removed: &BTreeSet<String>) -> Result<Vec<String>> {
        let appear = &self.journal.names;
        if there(self.scratch, appear)?.len() < appear.len() {
            return Err(Error::bug("a name to commit is not staged").file(self.scratch));
        }
        let mut names = there(self.out, &(removed | &appear.iter().cloned().collect()))?;
        names.sort_by_key(|name| Reverse((self.policy.rank)(name)));
        Ok(names)
    }

    fn run(&mut self, displaced: &[String]) -> Result<()> {
        let moved = displaced.iter().map(|name| DisplacedEntry::of(self.out, name));
        self.journal.displaced = moved.collect::<Result<_>>()?;
        self.write_record()?;
        fs::create_dir(&self.replaced).map_err(|e| Error::io(&self.replaced, "create", e))?;
        self.rename(displaced, self.out, &self.replaced)?;
        self.rename(&self.journal.names, self.scratch, self.out)?;
        remove_file(&self.scratch.join(RECORD))
    }

    fn write_record(&self) -> Result<()> {
        // An earlier commit of this run may have left entries.
        remove_folder(&self.replaced)?;
        // Renamed when complete: a truncated record could have a wrong name.
        let growing = self.scratch.join(GROWING_RECORD);
        let text = self.journal.to_text();
        write_file(&growing, self.policy.durability, |sink| sink.write_all(text.as_bytes()))?;
        rename(&growing, &self.scratch.join(RECORD))?;
        self.policy.sync(self.scratch)
    }

    /// Renames entries, which are sorted by rank in either direction.
    fn rename(&self, names: &[String], from: &Path, to: &Path) -> Result<()> {
        let rank = self.policy.rank;
        for names in names.chunk_by(|a, b| rank(a) == rank(b)) {
            for name in names {
                rename(&from.join(name), &to.join(name))?;
            }
            self.policy.sync(self.out)?;
        }
        Ok(())
    }

    fn is_finished(&self) -> Result<bool> {
        self.journal.names.last().map_or(Ok(false), |last| {
            kind_of(&self.scratch.join(last)).map(|staged| staged.is_none())
        })
    }

    /// Rolls back the commit, even after its last step.
    fn undo(&self) -> Result<()> {
        let displaced = self.displaced_entries()?;
        self.rename(&self.appeared()?, self.out, self.scratch)?;
        if let Some(name) = there(self.out, &displaced)?.first() {
            let moved = self.replaced.join(name);
            let message =
                format!("blocks the entry that an interrupted run moved to {}", moved.display());
            let error = Error::new(Kind::Conflict, message).file(self.out.join(name));
            return Err(error.hint("move one of the two away, and run the same command again"));
        }
        self.rename(&displaced, &self.replaced, self.out)?;
        // Fails if it has an entry, which must stay.
        match fs::remove_dir(&self.replaced) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(Error::io(&self.replaced, "remove", error));
            }
            _ => remove_file(&self.scratch.join(RECORD))?,
        }
        self.policy.sync(self.scratch)
    }

    /// The names that appeared, the last one first.
    fn appeared(&self) -> Result<Vec<String>> {
        let names = &self.journal.names;
        let staged: BTreeSet<String> = there(self.scratch, names)?.into_iter().collect();
        there(self.out, names.iter().rev().filter(|name| !staged.contains(*name)))
    }

    /// The names that were moved away, in the order of moving them back.
    fn displaced_entries(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        if kind_of(&self.replaced)?.is_some() {
            for entry in list(&self.replaced)? {
                let file_name = entry?.file_name();
                let name =
                    file_name.into_string().map_err(|name| no_name(&name, &self.replaced))?;
                self.journal.check(&self.replaced, &name)?;
                names.push(name);
            }
        }
        names.sort_by_key(|name| (self.policy.rank)(name));
        Ok(names)
    }
}

fn there<'n>(folder: &Path, names: impl IntoIterator<Item = &'n String>) -> Result<Vec<String>> {
    let mut there = Vec::new();
    for name in names {
        if kind_of(&folder.join(name))?.is_some() {
            there.push(name.clone());
        }
    }
    Ok(there)
}

#[cfg(test)]
#[path = "swap_tests.rs"]
mod tests;

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
//! removes the record. All of this happens under the lock of OUT, after the commits of dead runs were rolled
//! back. The following holds after every step, and so at every point where a run may be killed:
//!
//! 1. Without a record, OUT is in its state before or after the commit. The scratch folder is only removed.
//! 2. With a record whose last name is still staged, the commit is unfinished. Recorded names that are in OUT
//!    and no longer staged are new; entries in `replaced` were in OUT. Both are renamed back, which keeps this
//!    true: a rollback may itself be interrupted, and is then repeated.
//! 3. With a record whose last name is no longer staged, the commit is finished, and nothing is rolled back.
//! 4. A name of a higher rank describes those of lower ranks. It leaves OUT before the first of them changes
//!    and appears after the last of them, in commits and in rollbacks. So if it is in OUT, everything that it
//!    describes is beside it. If files are synced, each rank is on the disk before the next changes.
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

use super::journal::{Journal, SetAside, is_plain, no_name};
use super::{
    Durability, Form, MadeFolder, READABLE, Scratch, check_folder, create_new, guarded, kind_of,
    lock, make_folder, make_readable_folders, refuse_no_folder, refuse_open_to_all, remove_empty,
    remove_file, remove_folder, rename, set_mode, sync, write_file,
};

const RECORD: &str = "committing";
const GROWING_RECORD: &str = "committing.part";
const REPLACED: &str = "replaced";

/// The context of a commit that failed and could not be rolled back.
const BETWEEN: &str = "making the output visible, which could not be taken back: the folder is \
                       between the earlier output and this one until the next run puts it right";

/// The common properties of all commits of one sort of output.
#[derive(Debug)]
pub struct Outlet {
    /// The prefix of scratch folders' names.
    pub prefix: &'static str,
    /// The output, in the plural.
    pub holds: &'static str,
    /// Tells whether a finished commit survives a power failure.
    pub durability: Durability,
    /// The rank of a name; see the module.
    pub rank: fn(&str) -> u8,
    /// Tells whether the outlet writes a file of this name. Recovery after an interrupted run moves no other
    /// names, even if the record has them.
    pub writes: fn(&str) -> bool,
}

impl Outlet {
    /// Rolls back the unfinished commits of dead runs in `out`, and removes their scratch folders. Call under
    /// the lock of `out`.
    fn clear_dead(&self, out: &Path) -> Result<()> {
        for dead in Scratch::dead(Form::Folder, out, self.prefix)? {
            let dead = dead?;
            let is_own = guarded::refuse_foreign(dead.path());
            // Without a record there is nothing to trust, and the folder does no harm.
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

/// The change that a commit makes.
#[derive(Debug)]
pub struct CommitChange {
    /// The names in the scratch folder that appear, in place of existing ones.
    pub appears: Vec<String>,
    /// The further names that are removed, if they exist.
    pub goes: BTreeSet<String>,
}

/// A scratch folder whose content becomes visible by commits.
#[derive(Debug)]
pub struct Swap {
    outlet: &'static Outlet,
    out: PathBuf,
    scratch: Scratch,
    /// The output folder, dropped after the scratch folder inside.
    _made: MadeFolder,
}

impl Swap {
    /// Creates a scratch folder in `out`, and `out` if it is missing. First rolls back the commits of dead
    /// runs, and runs `check`.
    pub fn begin(
        outlet: &'static Outlet,
        out: &Path,
        check: impl FnOnce() -> Result<()>,
    ) -> Result<Self> {
        let made = make_folder(out, outlet.holds, make_readable_folders)?;
        refuse_open_to_all(out)?;
        let _guard = lock::folder(out)?;
        outlet.clear_dead(out)?;
        check()?;
        let scratch = Scratch::create(Form::Folder, out, outlet.prefix)?;
        scratch.lock()?;
        Ok(Self { outlet, out: out.to_path_buf(), scratch, _made: made })
    }

    /// Refuses a folder in which no run can begin, or that fails `check`, and changes nothing. Skips `check`
    /// if another run is unfinished or left something: its outcome is not known yet.
    pub fn check_ahead(
        outlet: &Outlet,
        out: &Path,
        check: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        if !check_folder(out, outlet.holds)? {
            return Ok(());
        }
        refuse_open_to_all(out)?;
        let _guard = lock::folder(out)?;
        for entry in list(out)? {
            if entry?.file_name().to_string_lossy().starts_with(outlet.prefix) {
                return Ok(());
            }
        }
        check()
    }

    /// The folder in which the names appear.
    pub fn out(&self) -> &Path {
        &self.out
    }

    /// The scratch folder.
    pub fn folder(&self) -> &Path {
        self.scratch.path()
    }

    /// The staged path of `name`.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    /// Creates an empty staged file of this name, readable by everybody. Call [`Swap::seal`] when it is
    /// complete.
    pub fn create(&self, name: &str) -> Result<File> {
        let path = self.path(name);
        let file = create_new(&path)?;
        set_mode(&path, READABLE)?;
        Ok(file)
    }

    /// Writes a complete staged file of this name, readable by everybody.
    pub fn write(
        &self,
        name: &str,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<()> {
        write_file(&self.path(name), self.outlet.durability, write)
    }

    /// Syncs a finished file if its outlet requires that, and returns its path.
    pub fn seal(&self, name: &str) -> Result<PathBuf> {
        let path = self.path(name);
        self.outlet.sync(&path)?;
        Ok(path)
    }

    /// Commits the change that `decide` chooses under the lock of the folder. After an error the folder is in
    /// its earlier state, unless the rollback failed, too, as the error then says. Returns the names that
    /// were removed without a replacement.
    pub fn commit(
        &self,
        decide: impl FnOnce() -> Result<CommitChange>,
    ) -> Result<BTreeSet<String>> {
        let _guard = lock::folder(&self.out)?;
        self.outlet.clear_dead(&self.out)?;
        // Rolls back an earlier commit of this run whose rollback failed.
        self.outlet.recover(&self.out, self.folder())?;
        self.scratch.keep(false);
        let CommitChange { appears, goes } = decide()?;
        let mut commit = Commit::new(self.outlet, &self.out, self.folder(), appears)?;
        let aside = commit.in_the_way(&goes)?;
        if let Err(error) = commit.run(&aside) {
            let is_undone = commit.undo().is_ok();
            self.scratch.keep(!is_undone);
            return Err(if is_undone { error } else { error.context(BETWEEN) });
        }
        // The commit is finished: a failure to clean up does not matter.
        let _ = remove_folder(&commit.replaced);
        let appeared: BTreeSet<String> = commit.journal.names.into_iter().collect();
        Ok(aside.into_iter().filter(|name| !appeared.contains(name)).collect())
    }
}

/// A commit and the paths of its record.
struct Commit<'a> {
    outlet: &'a Outlet,
    out: &'a Path,
    scratch: &'a Path,
    replaced: PathBuf,
    journal: Journal,
}

impl<'a> Commit<'a> {
    fn new(
        outlet: &'a Outlet,
        out: &'a Path,
        scratch: &'a Path,
        mut names: Vec<String>,
    ) -> Result<Self> {
        for name in &names {
            let is_own = [RECORD, GROWING_RECORD, REPLACED].contains(&name.as_str())
                || name.starts_with(outlet.prefix);
            if !is_plain(name) || is_own {
                return Err(no_name(OsStr::new(name), &scratch.join(RECORD)));
            }
        }
        names.sort_by_key(|name| (outlet.rank)(name));
        let journal = Journal { names, aside: None };
        Ok(Self { outlet, out, scratch, replaced: scratch.join(REPLACED), journal })
    }

    /// Loads the commit whose record is in `scratch`.
    fn load(outlet: &'a Outlet, out: &'a Path, scratch: &'a Path) -> Result<Option<Self>> {
        let record = scratch.join(RECORD);
        let Some(text) = guarded::read_own(&record)? else { return Ok(None) };
        let Journal { names, aside } = Journal::parse(&text, &record)?;
        if let Some(foreign) = names.iter().find(|name| !(outlet.writes)(name)) {
            return Err(no_name(OsStr::new(foreign), &record));
        }
        let mut commit = Self::new(outlet, out, scratch, names)?;
        commit.journal.aside = aside;
        refuse_no_folder(&commit.replaced)?;
        guarded::refuse_foreign(&commit.replaced)?;
        Ok(Some(commit))
    }

    /// The existing names that must be moved away, in their order, before the new ones appear.
    fn in_the_way(&self, goes: &BTreeSet<String>) -> Result<Vec<String>> {
        let appear = &self.journal.names;
        if there(self.scratch, appear)?.len() < appear.len() {
            return Err(Error::bug("what is to appear is not staged").file(self.scratch));
        }
        let mut names = there(self.out, &(goes | &appear.iter().cloned().collect()))?;
        names.sort_by_key(|name| Reverse((self.outlet.rank)(name)));
        Ok(names)
    }

    fn run(&mut self, aside: &[String]) -> Result<()> {
        let moved = aside.iter().map(|name| SetAside::of(self.out, name));
        self.journal.aside = Some(moved.collect::<Result<_>>()?);
        self.write_record()?;
        fs::create_dir(&self.replaced).map_err(|e| Error::io(&self.replaced, "create", e))?;
        self.rename(aside, self.out, &self.replaced)?;
        self.rename(&self.journal.names, self.scratch, self.out)?;
        remove_file(&self.scratch.join(RECORD))
    }

    fn write_record(&self) -> Result<()> {
        // Entries of an earlier commit of this run.
        remove_folder(&self.replaced)?;
        // Under another name until it is complete: a truncated record would have a wrong name.
        let growing = self.scratch.join(GROWING_RECORD);
        let text = self.journal.to_text();
        write_file(&growing, self.outlet.durability, |sink| sink.write_all(text.as_bytes()))?;
        rename(&growing, &self.scratch.join(RECORD))?;
        self.outlet.sync(self.scratch)
    }

    /// Renames entries, which are in the order of their ranks or in reverse.
    fn rename(&self, names: &[String], from: &Path, to: &Path) -> Result<()> {
        let rank = self.outlet.rank;
        for names in names.chunk_by(|a, b| rank(a) == rank(b)) {
            for name in names {
                rename(&from.join(name), &to.join(name))?;
            }
            self.outlet.sync(self.out)?;
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
        let aside = self.set_aside()?;
        self.rename(&self.appeared()?, self.out, self.scratch)?;
        if let Some(name) = there(self.out, &aside)?.first() {
            let moved = self.replaced.join(name);
            let message = format!(
                "is in the way of what a run that was cut off moved to {}",
                moved.display()
            );
            let error = Error::new(Kind::Conflict, message).file(self.out.join(name));
            return Err(error.hint(
                "move it away, or that, if it is not needed any more, and run the same again",
            ));
        }
        self.rename(&aside, &self.replaced, self.out)?;
        // Fails if an entry is in it, which must stay.
        match fs::remove_dir(&self.replaced) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(Error::io(&self.replaced, "remove", error));
            }
            _ => remove_file(&self.scratch.join(RECORD))?,
        }
        self.outlet.sync(self.scratch)
    }

    /// The names that appeared, the last one first.
    fn appeared(&self) -> Result<Vec<String>> {
        let names = &self.journal.names;
        let staged: BTreeSet<String> = there(self.scratch, names)?.into_iter().collect();
        there(self.out, names.iter().rev().filter(|name| !staged.contains(*name)))
    }

    /// The names that were moved out of the way, in the order of their return.
    fn set_aside(&self) -> Result<Vec<String>> {
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
        names.sort_by_key(|name| (self.outlet.rank)(name));
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

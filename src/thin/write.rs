//! Thinned copies, and changes in place.

use std::fs::{self, File};
use std::path::Path;

use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_core::run::threads;
use rockpack_core::tree::Node;
use rockpack_files::{
    CommitChange, CommitPolicy, Durability, Swap, kind_of, make_link, new_file, parent_folder,
    remove_file,
};
use rockpack_split::thin::Thinned;

use super::name_of;
use super::source::{Form, Source};

/// The output folder of thinned copies, which are independent of each other.
static COPIES: CommitPolicy = CommitPolicy {
    prefix: ".rockpack-thin-",
    contents: "thinned copies",
    durability: Durability::Unsynced,
    rank: |_| 0,
    writes: |_| true,
};

pub(super) fn check_names(sources: &[Source], out: &Path) -> Result<()> {
    Swap::check_ahead(&COPIES, out, || Ok(()))?;
    let mut names = Vec::new();
    let mut faults = Faults::default();
    for source in sources {
        let name = source.name()?;
        let place = out.join(name);
        if kind_of(&place)?.is_some() || names.contains(&name) {
            let error =
                Error::new(Kind::Usage, "already exists, or another PATH has the same name");
            faults.add(error.file(place).hint("choose another folder for --out"));
        }
        names.push(name);
    }
    faults.finish()
}

/// Writes a thinned copy of each source into `out`; all appear together.
pub(super) fn copies(sources: &[Source], thinned: &[Thinned], out: &Path) -> Result<()> {
    let swap = Swap::begin(&COPIES, out, || Ok(()))?;
    let mut added = Vec::new();
    for (source, thinned) in sources.iter().zip(thinned) {
        let name = source.name()?;
        source.copy(thinned, &swap.path(name))?;
        // A file with code of other targets only has no copy.
        if kind_of(&swap.path(name))?.is_some() {
            added.push(name.to_owned());
        }
        source.inputs.recheck()?;
    }
    swap.commit(|| Ok(CommitChange { added, removed: Default::default() })).map(drop)
}

impl Source {
    fn name(&self) -> Result<&str> {
        name_of(if self.path.file_name().is_some() { &self.path } else { &self.real })
    }

    fn copy(&self, thinned: &Thinned, to: &Path) -> Result<()> {
        if let Form::Tarball(tarball) = &self.form {
            let tar = tarball.changed(&thinned.changes)?;
            return new_file::write_like(to, &self.real, |file| {
                tarball.compress(&tar, file, workers())
            });
        }
        let is_folder = matches!(self.form, Form::Folder);
        if is_folder {
            make_folder(to)?;
        }
        let (mut files, mut folders) = (Vec::new(), Vec::new());
        for (path, node) in &self.tree {
            let to = if is_folder { to.join(path.as_str()) } else { to.to_path_buf() };
            match (node, thinned.changes.get(path)) {
                (_, Some(None)) => {}
                (Node::Directory { .. }, _) => {
                    make_folder(&to)?;
                    folders.push((self.place(path), to));
                }
                (Node::Link { target }, _) => make_link(target, &to)?,
                (Node::File { .. }, Some(Some(content))) => files.push((path, content, to)),
                (Node::File { data, .. }, None) => files.push((path, data, to)),
            }
        }
        let written = threads::each(&files, threads::count(), |(path, content, to)| {
            new_file::write_like(to, &self.place(path), |file| content.write_to(file, to))
        });
        Faults::all(written?)?;
        folders.extend(is_folder.then(|| (self.real.clone(), to.to_path_buf())));
        // From the inside out: creating a file in a folder changes the folder's timestamp.
        folders.sort_by(|one, other| other.cmp(one));
        folders.iter().try_for_each(|(like, folder)| {
            let was = fs::metadata(like).map_err(|fault| Error::io(like, "inspect", fault))?;
            let open = File::open(folder).map_err(|fault| Error::io(folder, "open", fault))?;
            new_file::copy_mode_and_time(&open, &was, folder)
        })
    }

    fn change(&self, thinned: &Thinned) -> Result<()> {
        if let Form::Tarball(tarball) = &self.form {
            if thinned.changes.is_empty() {
                return Ok(());
            }
            let tar = tarball.changed(&thinned.changes)?;
            let write = |file: &mut File| tarball.compress(&tar, file, workers());
            return new_file::replace(&self.real, write);
        }
        for path in &self.unfinished {
            new_file::remove_stale(parent_folder(&self.place(path)));
        }
        let places: Vec<_> =
            thinned.changes.iter().map(|(path, change)| (self.place(path), change)).collect();
        for (place, change) in &places {
            let Some(content) = change else { continue };
            new_file::replace(place, |file| content.write_to(file, place))?;
        }
        let removed = places.iter().filter(|(_, change)| change.is_none());
        removed.into_iter().try_for_each(|(place, _)| remove_file(place))
    }
}

pub(super) fn in_place(sources: &[Source], thinned: &[Thinned]) -> Result<()> {
    let changed = sources.iter().zip(thinned).try_for_each(|(source, it)| source.change(it));
    changed.map_err(|error| {
        error
            .context("changing files in place: each file is either old or new; run again to finish")
    })
}

fn make_folder(path: &Path) -> Result<()> {
    fs::create_dir(path).map_err(|fault| Error::io(path, "create", fault))
}

fn workers() -> u32 {
    u32::try_from(threads::count()).unwrap_or(1)
}

//! What the arguments name: packages, and receipts beside them.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::error::{Error, Kind, Result};
use crate::receipt::{self, Receipt};

/// One argument: a package, or a folder of packages.
pub(super) struct Source {
    pub(super) packages: Vec<PathBuf>,
    pub(super) receipt: Option<Receipt>,
}

impl Source {
    fn open(path: &Path) -> Result<Self> {
        let metadata = std::fs::metadata(path).map_err(|e| Error::io(path, "inspect", e))?;
        match metadata.is_dir() {
            true => Ok(Self { packages: packages(path)?, receipt: receipt(path)? }),
            false => Ok(Self { packages: vec![path.to_path_buf()], receipt: None }),
        }
    }

    /// The file names of the packages.
    pub(super) fn names(&self) -> BTreeSet<String> {
        let names = self.packages.iter().filter_map(|path| path.file_name());
        names.map(|name| name.to_string_lossy().into_owned()).collect()
    }
}

/// Everything that `paths` name; a package that several of them name counts for the first.
pub(super) fn open_all(paths: &[PathBuf]) -> Result<Vec<Source>> {
    let mut sources = paths.iter().map(|path| Source::open(path)).collect::<Result<Vec<_>>>()?;
    let mut seen = BTreeSet::new();
    for source in &mut sources {
        let own = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        // A folder keeps what an earlier argument named: its receipt speaks of all of it.
        if source.receipt.is_none() {
            source.packages.retain(|path| !seen.contains(&own(path)));
        }
        seen.extend(source.packages.iter().map(own));
    }
    let empty = |source: &Source| source.packages.is_empty() && source.receipt.is_none();
    match sources.iter().all(empty) {
        true => Err(Error::new(Kind::Usage, "there is no .deb and no .rpm to verify")),
        false => Ok(sources),
    }
}

fn packages(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).map_err(|e| Error::io(folder, "list", e))?;
    let mut packages = Vec::new();
    for entry in entries {
        let found = entry.map_err(|e| Error::io(folder, "list", e))?.path();
        if found.extension().is_some_and(|extension| extension == "deb" || extension == "rpm") {
            packages.push(found);
        }
    }
    packages.sort();
    Ok(packages)
}

fn receipt(folder: &Path) -> Result<Option<Receipt>> {
    let file = folder.join(receipt::FILE_NAME);
    match std::fs::read(&file) {
        Ok(bytes) => Receipt::parse(&bytes).map(Some).map_err(|error| error.file(&file)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(&file, "read", error)),
    }
}

//! Arguments that name packages, with the receipts beside them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rockpack_base::content::{if_there, is_there, list, read_file, real_path};
use rockpack_base::error::{Error, Result};

use crate::package::Format;
use crate::receipt::{self, Receipt, SetPart, file_name, part_of_sbom};

/// One argument: a package, or a folder of packages.
#[derive(Default)]
pub(in crate::verify) struct PackageArgument {
    pub(in crate::verify) packages: Vec<PathBuf>,
    pub(in crate::verify) receipt: Option<Receipt>,
    /// The receipts of parts, if there is no receipt of a whole set.
    pub(in crate::verify) parts: Vec<Receipt>,
    /// The SPDX documents beside the packages.
    pub(in crate::verify) documents: Vec<PathBuf>,
    /// The part whose receipt has the name of a whole set's.
    pub(in crate::verify) misnamed: Option<SetPart>,
    /// Packages of earlier builds that the receipt keeps, as far as other arguments have them.
    pub(in crate::verify) kept: Vec<PathBuf>,
    /// Number of packages that the receipt keeps and no argument has.
    pub(in crate::verify) kept_absent: usize,
    /// How many packages of earlier builds the set has made anew; they are not looked at.
    pub(in crate::verify) superseded: usize,
}

impl PackageArgument {
    /// The package in a file.
    pub(in crate::verify) fn of_package(path: PathBuf) -> Self {
        Self { packages: vec![path], ..Self::default() }
    }

    /// The packages of a folder.
    pub(in crate::verify) fn of_folder(path: &Path) -> Result<Self> {
        let packages = files(path, |file| Ok(Format::of_file_name(file).is_some()))?;
        let documents = files(path, |file| is_document(path, file))?;
        let mut own = Self { packages, documents, ..Self::default() };
        match read_if_there(&path.join(receipt::FILE_NAME), Receipt::parse)? {
            Some(part) if part.part.is_some() => {
                own.misnamed = part.part.as_ref().map(|record| record.part);
                own.parts = vec![part];
            }
            Some(receipt) => own.receipt = Some(receipt),
            None => own.parts = parts(path)?,
        }
        Ok(own)
    }

    /// Whether a package called `file` is one of an earlier build that the receipt keeps.
    pub(in crate::verify) fn keeps(&self, file: &str) -> bool {
        let kept = self.receipt.iter().filter_map(|receipt| receipt.kept.as_ref());
        kept.flat_map(|kept| &kept.packages).any(|record| record.file_name == file)
    }

    /// The file names of the packages of this build.
    pub(in crate::verify) fn names(&self) -> BTreeSet<String> {
        let names = self.packages.iter().filter_map(|path| path.file_name());
        names.map(|name| name.to_string_lossy().into_owned()).collect()
    }
}

/// Counts a package that several of `arguments` name for the first of them.
pub(in crate::verify) fn each_once(arguments: &mut [PackageArgument]) -> Result<()> {
    let mut seen = BTreeSet::new();
    for argument in arguments {
        // A broken link keeps its name: its reader reports that it cannot be read.
        let own: Vec<_> = argument
            .packages
            .iter()
            .map(|path| Ok(real_path(path)?.unwrap_or_else(|| path.clone())))
            .collect::<Result<_>>()?;
        // A folder keeps what an earlier argument named where something speaks of all of it.
        let spoken_of = argument.receipt.is_some() || !argument.parts.is_empty();
        if !spoken_of && argument.documents.is_empty() {
            let mut own = own.iter();
            argument.packages.retain(|_| own.next().is_some_and(|own| !seen.contains(own)));
        }
        seen.extend(own);
    }
    Ok(())
}

/// The paths in a folder that are wanted, in name order.
pub(super) fn files(
    folder: &Path,
    is_wanted: impl Fn(&Path) -> Result<bool>,
) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in list(folder)? {
        let path = entry?.path();
        if is_wanted(&path)? {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Reads and parses a file; `None` if it is not there.
pub(super) fn read_if_there<T>(
    file: &Path,
    parse: impl Fn(&[u8]) -> Result<T>,
) -> Result<Option<T>> {
    let bytes = if_there(file, "read", read_file(file))?;
    bytes.map(|bytes| parse(&bytes)).transpose().map_err(|error| error.file(file))
}

/// The receipts of parts in a folder, in their order.
fn parts(folder: &Path) -> Result<Vec<Receipt>> {
    let mut found = Vec::new();
    for entry in list(folder)? {
        let entry = entry?;
        if let Some(part) = entry.file_name().to_str().and_then(receipt::part_of_file) {
            found.push((part, entry.path()));
        }
    }
    found.sort();
    let mut receipts = Vec::new();
    for (part, path) in found {
        let receipt = read_if_there(&path, Receipt::parse)?
            .filter(|receipt| receipt.part.as_ref().is_some_and(|record| record.part == part));
        let message = "is not the receipt of the part that its name says";
        receipts.push(receipt.ok_or_else(|| Error::malformed(message).file(&path))?);
    }
    Ok(receipts)
}

/// Whether a file in a folder is the document of a set, or of a part that is there.
fn is_document(folder: &Path, file: &Path) -> Result<bool> {
    match part_described(file) {
        Some(Some(part)) => is_there(&folder.join(file_name(Some(part)))),
        whole => Ok(whole.is_some()),
    }
}

/// The part of a set whose SPDX document has this name.
pub(in crate::verify) fn part_described(path: &Path) -> Option<Option<SetPart>> {
    part_of_sbom(path.file_name()?.to_str()?)
}

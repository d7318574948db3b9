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
        let (packages, documents) = (packages(path)?, documents(path)?);
        let mut own = Self { packages, documents, ..Self::default() };
        match receipt(&path.join(receipt::FILE_NAME))? {
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

fn packages(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut packages = Vec::new();
    for entry in list(folder)? {
        let found = entry?.path();
        if Format::of_file_name(&found).is_some() {
            packages.push(found);
        }
    }
    packages.sort();
    Ok(packages)
}

fn receipt(file: &Path) -> Result<Option<Receipt>> {
    let bytes = if_there(file, "read", read_file(file))?;
    let receipt = bytes.map(|bytes| Receipt::parse(&bytes)).transpose();
    receipt.map_err(|error| error.file(file))
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
        let receipt = receipt(&path)?
            .filter(|receipt| receipt.part.as_ref().is_some_and(|record| record.part == part));
        let message = "is not the receipt of the part that its name says";
        receipts.push(receipt.ok_or_else(|| Error::malformed(message).file(&path))?);
    }
    Ok(receipts)
}

/// The documents of a set and of its parts in a folder, in name order.
fn documents(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut documents = Vec::new();
    for entry in list(folder)? {
        let path = entry?.path();
        let described = match part_described(&path) {
            // What is left of a part that is gone describes nothing.
            Some(Some(part)) => is_there(&folder.join(file_name(Some(part))))?,
            whole => whole.is_some(),
        };
        if described {
            documents.push(path);
        }
    }
    documents.sort();
    Ok(documents)
}

/// The part of a set whose SPDX document has this name.
pub(in crate::verify) fn part_described(path: &Path) -> Option<Option<SetPart>> {
    part_of_sbom(path.file_name()?.to_str()?)
}

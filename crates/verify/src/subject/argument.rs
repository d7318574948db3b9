//! Arguments that name packages, with the receipts beside them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rockpack_core::content::{is_there, list};
use rockpack_core::error::{Error, Result};

use super::receipts::ReceiptReader;
use rockpack_package::Format;
use rockpack_package::receipt::{self, Receipt, SetPart, file_name, part_of_sbom};

/// One argument: a folder of packages, or packages that are named one by one.
#[derive(Default)]
pub(crate) struct PackageArgument {
    pub(crate) packages: Vec<PathBuf>,
    pub(crate) receipt: Option<Receipt>,
    /// The receipts of parts, if there is no receipt of a whole set.
    pub(crate) parts: Vec<Receipt>,
    /// The SPDX documents beside the packages.
    pub(crate) documents: Vec<PathBuf>,
    /// The part whose receipt has the name of a whole set's.
    pub(crate) misnamed: Option<SetPart>,
    /// Packages of earlier builds that the receipt keeps, as far as other arguments have them.
    pub(crate) kept: Vec<PathBuf>,
    /// Number of packages that the receipt keeps and no argument has.
    pub(crate) kept_absent: usize,
    /// How many packages of earlier builds the set has made anew; they are not looked at.
    pub(crate) superseded: usize,
}

impl PackageArgument {
    /// Packages with the receipts of their folder, if that counts.
    pub(crate) fn of(
        folder: Option<&Path>,
        packages: Vec<PathBuf>,
        receipts: &mut ReceiptReader<'_>,
    ) -> Result<Self> {
        let mut own = Self { packages, ..Self::default() };
        let Some(folder) = folder else { return Ok(own) };
        let file = folder.join(receipt::FILE_NAME);
        match receipts.read(&file, Receipt::parse_any)? {
            Some(part) if part.part.is_some() => {
                own.misnamed = part.part.as_ref().map(|record| record.part);
                own.parts = vec![part];
            }
            Some(receipt) => own.receipt = Some(receipt),
            None => own.parts = parts(folder, receipts)?,
        }
        if !own.has_receipt() && !own.packages.is_empty() {
            receipts.miss(&file);
        }
        own.documents = files(folder, |file| is_document(folder, file))?;
        Ok(own)
    }

    /// Whether there is a receipt of the set, or of parts.
    pub(crate) fn has_receipt(&self) -> bool {
        self.receipt.is_some() || !self.parts.is_empty()
    }

    /// The file names of the packages of this build.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        let names = self.packages.iter().filter_map(|path| path.file_name());
        names.map(|name| name.to_string_lossy().into_owned()).collect()
    }
}

/// The package files in a folder.
pub(super) fn packages(folder: &Path) -> Result<Vec<PathBuf>> {
    files(folder, |file| Ok(Format::of_file_name(file).is_some()))
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

/// The receipts of parts in a folder, in their order.
fn parts(folder: &Path, reader: &mut ReceiptReader<'_>) -> Result<Vec<Receipt>> {
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
        let receipt = reader
            .read(&path, Receipt::parse_any)?
            .filter(|receipt| receipt.part.as_ref().is_some_and(|record| record.part == part));
        let message = "is not the receipt of the part that its name says";
        receipts.push(receipt.ok_or_else(|| Error::malformed(message).file(&path))?);
    }
    Ok(receipts)
}

/// Whether a file in a folder is the document of a set, or of a part that is there.
fn is_document(folder: &Path, file: &Path) -> Result<bool> {
    match file.file_name().and_then(|name| part_of_sbom(name.to_str()?)) {
        Some(Some(part)) => is_there(&folder.join(file_name(Some(part)))),
        whole => Ok(whole.is_some()),
    }
}

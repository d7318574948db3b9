//! Compares a new set with the earlier set in the output folder, and decides which files a commit adds and
//! which it removes.
//!
//! A commit replaces the set that the receipt in the folder lists. It removes the packages of that set that
//! the new set does not have, and the SPDX document that rockpack wrote for it; everything else stays. It
//! refuses to overwrite files that rockpack did not write, and to put the receipt of a part beside that of a
//! whole set or of another division.

use std::collections::BTreeSet;
use std::io::BufReader;
use std::path::Path;

use rockpack_base::content::{if_there, is_there, list, open_file};
use rockpack_base::error::{Error, Kind, Result};
use rockpack_base::formats::spdx;

use super::listed::ListedFiles;
use crate::files::{CommitChange, kind_of};
use crate::receipt::{self, wheels};

/// The creator that rockpack's own documents name.
const PROGRAM: &str = env!("CARGO_PKG_NAME");

/// The package files that `receipt` in `directory` lists; empty if there is no receipt.
pub(super) fn listed(directory: &Path, receipt: &str) -> Result<ListedFiles> {
    let path = directory.join(receipt);
    let file = if_there(&path, "open", open_file(&path))?;
    file.map_or_else(|| Ok(ListedFiles::default()), |file| ListedFiles::read(file, &path))
}

/// The names of all packages that the receipt lists. A package that it keeps from an earlier build counts
/// only if its file is in `directory`.
fn all_packages(directory: &Path, receipt: &str) -> Result<BTreeSet<String>> {
    let ListedFiles { own: mut names, kept } = listed(directory, receipt)?;
    for name in kept {
        if is_there(&directory.join(&name))? {
            names.insert(name);
        }
    }
    Ok(names)
}

/// Whether the SPDX document at `path` is rockpack's own; `None` if there is no file.
fn is_own_sbom(path: &Path) -> Result<Option<bool>> {
    match kind_of(path)? {
        None => return Ok(None),
        Some(kind) if !kind.is_file() => return Ok(Some(false)),
        Some(_) => {}
    }
    let read = open_file(path).and_then(|file| spdx::is_made_by(PROGRAM, BufReader::new(file)));
    read.map(Some).map_err(|e| Error::io(path, "read", e))
}

/// Whether a set has an SPDX document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpdxDocument {
    /// The set has no document.
    Absent,
    /// The set has a document.
    Present,
}

/// Fails if the new set has an SPDX document and a file that rockpack did not write has its name, or if a
/// document of rockpack has that name and the receipt of its set is missing.
pub(super) fn refuse_foreign_sbom(out: &Path, receipt: &str, document: SpdxDocument) -> Result<()> {
    let path = out.join(receipt::sbom_name(receipt));
    let message = match is_own_sbom(&path)? {
        Some(false) if document == SpdxDocument::Present => {
            "is no SPDX document of rockpack".to_owned()
        }
        Some(true) if !is_there(&out.join(receipt))? => {
            format!("is the SPDX document of a set whose {receipt} is not there")
        }
        Some(_) | None => return Ok(()),
    };
    let hint = "it is left alone: move it away, or write into an empty folder";
    Err(Error::new(Kind::Conflict, message).file(path).hint(hint))
}

/// The receipts in a folder: those of a whole set or of parts.
fn receipts(directory: &Path) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for entry in list(directory)? {
        names.extend(entry?.file_name().into_string().ok().filter(|name| is_receipt(name)));
    }
    Ok(names)
}

fn is_receipt(name: &str) -> bool {
    name == receipt::FILE_NAME || receipt::part_of_file(name).is_some()
}

/// Refuses to write a set beside parts, a part beside a set, or parts of different divisions beside each
/// other: their packages would be taken for one set.
pub(super) fn refuse_mixed(out: &Path, receipt: &str) -> Result<()> {
    let mut others = receipts(out)?.into_iter();
    let Some(other) = others.find(|other| number_of_parts(other) != number_of_parts(receipt))
    else {
        return Ok(());
    };
    let (theirs, own) = (extent(&other), extent(receipt));
    let message = format!("is the receipt of {theirs}, and this run writes {own}");
    let hint = "write into another folder, or remove that receipt and its packages";
    Err(Error::new(Kind::Conflict, message).file(out.join(other)).hint(hint))
}

/// The number of parts of the division that a receipt belongs to; `None` if it is that of a whole set.
fn number_of_parts(receipt: &str) -> Option<u32> {
    receipt::part_of_file(receipt).map(|part| part.of)
}

/// The extent of the set that a receipt describes, in the words of a message.
fn extent(receipt: &str) -> String {
    match number_of_parts(receipt) {
        None => "a whole set".to_owned(),
        Some(of) => format!("one of {of} parts"),
    }
}

/// The place of a file in the order of a commit: packages first, then documents, then receipts. A receipt
/// describes all packages in its folder, and a document those of its set.
pub(super) fn rank(name: &str) -> u8 {
    let is_last = is_receipt(name) || name == wheels::FILE_NAME;
    if is_last { 2 } else { u8::from(receipt::part_of_sbom(name).is_some()) }
}

/// The files that a commit of the packages `names` adds to `out` and removes from it. Fails if the
/// commit would overwrite files that rockpack did not write. Packages that the receipt of another part
/// lists stay: a package may have moved there.
pub(super) fn change(
    out: &Path,
    receipt: &str,
    names: BTreeSet<String>,
    document: SpdxDocument,
) -> Result<CommitChange> {
    refuse_mixed(out, receipt)?;
    let earlier = all_packages(out, receipt)?;
    let mut elsewhere = BTreeSet::new();
    for other in receipts(out)?.iter().filter(|other| *other != receipt) {
        elsewhere.extend(all_packages(out, other)?);
    }
    refuse_foreign(out, &(&earlier | &elsewhere), &names)?;
    let sbom = receipt::sbom_name(receipt);
    refuse_foreign_sbom(out, receipt, document)?;
    let mut goes = &earlier - &elsewhere;
    if is_own_sbom(&out.join(&sbom))? == Some(true) {
        goes.insert(sbom.clone());
    }
    let document = (document == SpdxDocument::Present).then_some(sbom);
    let appears = names.into_iter().chain(document).chain([receipt.to_owned()]);
    Ok(CommitChange { appears: appears.collect(), goes })
}

/// Fails if a folder, or a file that no receipt in `out` lists, has the name of a package file.
fn refuse_foreign(out: &Path, earlier: &BTreeSet<String>, names: &BTreeSet<String>) -> Result<()> {
    for name in earlier | names {
        let path = out.join(&name);
        match kind_of(&path)? {
            None => {}
            Some(_) if !earlier.contains(&name) => {
                return Err(Error::new(Kind::Conflict, "is in the way of a package of this set")
                    .file(path)
                    .hint("no earlier receipt lists it, so it is left alone: move it away"));
            }
            Some(kind) if kind.is_dir() => {
                let message = "is a directory where a package file belongs";
                return Err(Error::new(Kind::Conflict, message).file(path));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

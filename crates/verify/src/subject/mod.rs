//! The kind of each argument of `verify`, recognised by its content.
//!
//! | argument | kind |
//! |---|---|
//! | a file `*.deb`, `*.rpm` | a package |
//! | a file `*.whl`, a folder with some | Python wheels |
//! | a folder with `dists`, `repodata` or `simple/index.json` | a repository |
//! | a folder with packages or a packages.json | a package set |
//! | a folder whose packages.json keeps packages of earlier builds, and the folders of these | one package set |
//! | folders with packages-1-of-2.json and so on | parts of one package set |
//! | a folder with an artifact_manifest.txt, a packed artifact by its name | one artifact |
//! | a folder with `lib/.kpack`, `lib64/.kpack` or `.kpack`, or any under `--installed` | an installed prefix |
//! | another folder | a shard, or a folder of shards |
//! | another file | a single archive, manifest, host binary or device code file |

pub(super) mod receipts;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rockpack_archive::wheel::WheelName;
use rockpack_core::content::{exists, is_folder, list};
use rockpack_core::error::{Error, Kind, Result};
use rockpack_package::Format;
use rockpack_package::receipt::wheels::{FILE_NAME, WheelReceipt};
use rockpack_package::receipt::{self, Receipt, SetPart, file_name, part_of_sbom};
use rockpack_split::input::artifact::{MANIFEST_NAME, is_artifact};

use crate::repository::is_index;
use crate::subject::receipts::ReceiptReader;

pub(super) enum Subject {
    Package(PathBuf),
    Packages(Box<PackageArgument>),
    Wheel(PathBuf),
    Wheels(WheelArgument),
    /// One artifact, as a folder or packed.
    Artifact(PathBuf),
    /// A shard, or a folder of shards.
    Shards(PathBuf),
    Prefix(PathBuf),
    File(PathBuf),
    Repository(PathBuf),
}

/// Folders of kernel archives, relative to an install prefix.
const KERNEL_FOLDERS: [&str; 3] = ["lib/.kpack", "lib64/.kpack", ".kpack"];

/// Subfolders of a repository: of apt, and of dnf and zypper.
const REPOSITORY_FOLDERS: [&str; 2] = ["dists", "repodata"];

impl Subject {
    /// Determines the kind of `path`, and reads the receipts of a folder. With `installed`, all folders are prefixes.
    pub(super) fn of(
        path: &Path,
        installed: bool,
        receipts: &mut ReceiptReader<'_>,
    ) -> Result<Self> {
        let metadata = std::fs::metadata(path).map_err(|e| Error::io(path, "inspect", e))?;
        let path = path.to_path_buf();
        if !metadata.is_dir() {
            return match Format::of_file_name(&path) {
                Some(_) => Ok(Self::Package(path)),
                _ if WheelName::is_one(&path) => Ok(Self::Wheel(path)),
                _ if is_artifact(&path)? => Ok(Self::Artifact(path)),
                _ => Ok(Self::File(path)),
            };
        }
        if installed {
            refuse_empty(&path)?;
            if packages(&path)?.is_empty() {
                return Ok(Self::Prefix(path));
            }
            let message = "is a folder of packages, not an installed prefix";
            let error = Error::new(Kind::Usage, message).file(path);
            return Err(error.hint("omit --installed"));
        }
        if has_one(&path, &REPOSITORY_FOLDERS)? || is_index(&path)? {
            return Ok(Self::Repository(path));
        }
        let argument = PackageArgument::of(Some(&path), packages(&path)?, receipts)?;
        let wheels = files(&path, |file| Ok(WheelName::is_one(file)))?;
        let wheels = WheelArgument::of(Some(&path), wheels, receipts)?;
        if !wheels.wheels.is_empty() || wheels.receipt.is_some() {
            if !argument.packages.is_empty() {
                let message = "contains wheels and packages, which are checked separately";
                let hint = "name the wheels, or the packages, one by one";
                return Err(Error::new(Kind::Usage, message).file(path).hint(hint));
            }
            return Ok(Self::Wheels(wheels));
        }
        if argument.has_receipt() || !argument.packages.is_empty() {
            return Ok(Self::Packages(Box::new(argument)));
        }
        if exists(&path.join(MANIFEST_NAME))? {
            return Ok(Self::Artifact(path));
        }
        if has_one(&path, &KERNEL_FOLDERS)? {
            return Ok(Self::Prefix(path));
        }
        refuse_empty(&path)?;
        Ok(Self::Shards(path))
    }
}

fn refuse_empty(path: &Path) -> Result<()> {
    let first = std::fs::read_dir(path).and_then(|mut entries| entries.next().transpose());
    match first.map_err(|e| Error::io(path, "list", e))? {
        Some(_) => Ok(()),
        None => Err(Error::new(Kind::Usage, "there is nothing to verify").file(path).hint(
            "give packages, a folder of packages, artifacts, or an installed prefix (with \
             --installed, if it has no lib/.kpack)",
        )),
    }
}

fn has_one(path: &Path, folders: &[&str]) -> Result<bool> {
    for folder in folders {
        if is_folder(&path.join(folder))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// One argument: a folder of packages, or packages that are named one by one.
#[derive(Default)]
pub(crate) struct PackageArgument {
    /// The packages of this build.
    pub(crate) packages: Vec<PathBuf>,
    pub(crate) receipt: Option<Receipt>,
    /// The receipts of parts, if there is no receipt of a whole set.
    pub(crate) parts: Vec<Receipt>,
    /// The SPDX documents next to the packages.
    pub(crate) documents: Vec<PathBuf>,
    /// The part whose receipt has the file name for a whole set.
    pub(crate) misnamed: Option<SetPart>,
    /// Packages of earlier builds that the receipt keeps, from all arguments.
    pub(crate) kept: Vec<PathBuf>,
    /// Number of packages that the receipt keeps but no argument has.
    pub(crate) kept_absent: usize,
    /// Number of packages of earlier builds that the set rebuilt; they are not read.
    pub(crate) superseded: usize,
}

impl PackageArgument {
    /// Packages with the receipts of `folder`, if given.
    pub(crate) fn of(
        folder: Option<&Path>,
        packages: Vec<PathBuf>,
        receipts: &mut ReceiptReader<'_>,
    ) -> Result<Self> {
        let mut own = Self { packages, ..Self::default() };
        let Some(folder) = folder else { return Ok(own) };
        let file = folder.join(receipt::FILE_NAME);
        match receipts.read(&file, Receipt::parse)? {
            Some(part) if part.part.is_some() => {
                own.misnamed = part.part.as_ref().map(|record| record.part);
                own.parts = vec![part];
            }
            Some(receipt) => own.receipt = Some(receipt),
            None => own.parts = parts(folder, receipts)?,
        }
        if !own.has_receipt() && !own.packages.is_empty() {
            receipts.report_missing(&file);
        }
        own.documents = files(folder, |file| is_document(folder, file))?;
        Ok(own)
    }

    pub(crate) fn has_receipt(&self) -> bool {
        self.receipt.is_some() || !self.parts.is_empty()
    }
}

pub(super) fn file_names(paths: &[PathBuf]) -> BTreeSet<String> {
    let names = paths.iter().filter_map(|path| path.file_name());
    names.map(|name| name.to_string_lossy().into_owned()).collect()
}

fn packages(folder: &Path) -> Result<Vec<PathBuf>> {
    files(folder, |file| Ok(Format::of_file_name(file).is_some()))
}

/// The paths in a folder that `wanted` selects, in name order.
pub(super) fn files(folder: &Path, wanted: impl Fn(&Path) -> Result<bool>) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in list(folder)? {
        let path = entry?.path();
        if wanted(&path)? {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// The receipts of parts in a folder, in their order.
fn parts(folder: &Path, reader: &mut ReceiptReader<'_>) -> Result<Vec<Receipt>> {
    let part_of = |path: &Path| receipt::part_of_file(path.file_name()?.to_str()?);
    let mut found = files(folder, |path| Ok(part_of(path).is_some()))?;
    found.sort_by_key(|path| part_of(path));
    let mut receipts = Vec::new();
    for path in found {
        let receipt = reader
            .read(&path, Receipt::parse)?
            .filter(|receipt| receipt.part.as_ref().map(|record| record.part) == part_of(&path));
        let message = "is not the receipt of the part in its file name";
        receipts.push(receipt.ok_or_else(|| Error::malformed(message).file(&path))?);
    }
    Ok(receipts)
}

/// Whether a file in a folder is the SPDX document of a set, or of a part whose receipt is there.
fn is_document(folder: &Path, file: &Path) -> Result<bool> {
    match file.file_name().and_then(|name| part_of_sbom(name.to_str()?)) {
        Some(Some(part)) => exists(&folder.join(file_name(Some(part)))),
        whole => Ok(whole.is_some()),
    }
}

/// One argument: a folder of wheels, or wheels that are named one by one.
#[derive(Default)]
pub(crate) struct WheelArgument {
    /// In name order.
    pub(crate) wheels: Vec<PathBuf>,
    pub(crate) receipt: Option<WheelReceipt>,
}

impl WheelArgument {
    /// Wheels with the receipt of `folder`, if given.
    pub(crate) fn of(
        folder: Option<&Path>,
        wheels: Vec<PathBuf>,
        receipts: &mut ReceiptReader<'_>,
    ) -> Result<Self> {
        let Some(folder) = folder else { return Ok(Self { wheels, receipt: None }) };
        let file = folder.join(FILE_NAME);
        let receipt = receipts.read(&file, WheelReceipt::parse)?;
        if receipt.is_none() && !wheels.is_empty() {
            receipts.report_missing(&file);
        }
        Ok(Self { wheels, receipt })
    }
}

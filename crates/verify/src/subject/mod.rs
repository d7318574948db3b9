//! The subjects of `verify`: the kind of each argument, recognised by its content.
//!
//! | argument | taken for |
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
//! | another file | an archive, a manifest, a host binary or device code by itself |

pub(super) mod argument;
pub(super) mod joined;
pub(super) mod kept;
pub(super) mod receipts;
pub(super) mod wheels;

use std::path::{Path, PathBuf};

use rockpack_archive::wheel::WheelName;
use rockpack_core::content::{is_folder, is_there};
use rockpack_core::error::{Error, Kind, Result};

use super::repository::is_index;
use argument::{PackageArgument, packages};
use receipts::ReceiptReader;
use rockpack_package::Format;
use rockpack_split::input::artifact::{MANIFEST_NAME, is_artifact};
use wheels::WheelArgument;

/// A subject of verification.
pub(super) enum Subject {
    /// A package file.
    Package(PathBuf),
    /// A folder of packages.
    Packages(Box<PackageArgument>),
    /// A wheel.
    Wheel(PathBuf),
    /// A folder of wheels.
    Wheels(WheelArgument),
    /// One artifact, as a folder or packed.
    Artifact(PathBuf),
    /// A shard, or a folder of shards.
    Shards(PathBuf),
    Prefix(PathBuf),
    File(PathBuf),
    Repository(PathBuf),
}

/// The meaning of folders among the arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderMeaning {
    /// Kinds are recognised by content.
    ByContent,
    /// All folders are installed prefixes.
    Prefixes,
}

/// Folders of kernel archives, relative to an install prefix.
const KERNEL_FOLDERS: [&str; 3] = ["lib/.kpack", "lib64/.kpack", ".kpack"];

/// Folders that make one a repository: of apt, and of dnf and zypper.
const REPOSITORY_FOLDERS: [&str; 2] = ["dists", "repodata"];

impl Subject {
    /// Looks what `path` is, and reads the receipts of a folder.
    pub(super) fn of(
        path: &Path,
        folders: FolderMeaning,
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
        if folders == FolderMeaning::Prefixes {
            return prefix(path);
        }
        if has_one(&path, &REPOSITORY_FOLDERS)? || is_index(&path)? {
            return Ok(Self::Repository(path));
        }
        let argument = PackageArgument::of(Some(&path), packages(&path)?, receipts)?;
        let wheels = WheelArgument::of_folder(&path, receipts)?;
        if !wheels.is_empty() {
            refuse_packages(&path, &argument)?;
            return Ok(Self::Wheels(wheels));
        }
        if argument.has_receipt() || !argument.packages.is_empty() {
            return Ok(Self::Packages(Box::new(argument)));
        }
        if is_there(&path.join(MANIFEST_NAME))? {
            return Ok(Self::Artifact(path));
        }
        if has_one(&path, &KERNEL_FOLDERS)? {
            return Ok(Self::Prefix(path));
        }
        refuse_empty(&path)?;
        Ok(Self::Shards(path))
    }
}

/// Refuses a folder of wheels that is one of packages, too.
fn refuse_packages(path: &Path, argument: &PackageArgument) -> Result<()> {
    if argument.packages.is_empty() {
        return Ok(());
    }
    let message = "has wheels and packages in it, which are checked in different ways";
    Err(Error::new(Kind::Usage, message)
        .file(path)
        .hint("name the wheels, or the packages, one by one"))
}

/// The subject of a folder that was named as an installed prefix; refuses folders of packages.
fn prefix(path: PathBuf) -> Result<Subject> {
    refuse_empty(&path)?;
    if packages(&path)?.is_empty() {
        return Ok(Subject::Prefix(path));
    }
    let message = "is a folder of packages, and no installed prefix";
    Err(Error::new(Kind::Usage, message).file(path).hint("leave --installed out"))
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

/// Whether one of `folders` is in the folder at `path`.
fn has_one(path: &Path, folders: &[&str]) -> Result<bool> {
    for folder in folders {
        if is_folder(&path.join(folder))? {
            return Ok(true);
        }
    }
    Ok(false)
}

//! The files of packages in the folders that are given, and those that are left out.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use rockpack_archive::ar;
use rockpack_archive::rpm::LEAD_MAGIC;
use rockpack_core::content::list;
use rockpack_core::error::{Error, Faults, Kind, Result};

use rockpack_package::Format;
use rockpack_package::indexed::PackageKind;
use rockpack_package::receipt::part_of_file;
use rockpack_report::{Finding, Findings, PackageLeftOut};

/// How the names of packages of Debian's installer end.
const INSTALLER: &str = "udeb";

/// The member that an archive begins with if it is a `.deb`.
const FIRST_MEMBER: &[u8] = b"debian-binary";

/// The files of packages, and what of the folders is left out.
#[derive(Debug, Default)]
pub(super) struct FoundFiles {
    pub files: Vec<PathBuf>,
    pub findings: Findings,
}

impl FoundFiles {
    /// Adds the file at `path`, whatever its name is, or the packages in the folder and its folders.
    pub fn add(&mut self, path: &Path) -> Result<()> {
        let metadata = fs::metadata(path)
            .map_err(|e| Error::io(path, "inspect", e))
            .map_err(|error| error.of_named().context("looking for packages"))?;
        if !metadata.is_dir() {
            self.files.push(path.to_path_buf());
            return Ok(());
        }
        let before = self.files.len();
        self.walk(path, path)?;
        if self.files.len() > before || is_part(path)? {
            return Ok(());
        }
        let error = Error::new(Kind::Usage, "there is no package in this folder").file(path);
        self.findings.explain(Err(error))
    }

    /// Adds the packages in a folder at or below `root`.
    fn walk(&mut self, root: &Path, folder: &Path) -> Result<()> {
        for entry in list(folder)? {
            let entry = entry?;
            let path = entry.path();
            let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
            let kind = entry.file_type().map_err(|e| Error::io(&path, "inspect", e))?;
            if kind.is_dir() && !is_hidden {
                self.walk(root, &path)?;
            } else if !kind.is_dir() {
                self.file(root, path, is_hidden);
            }
        }
        Ok(())
    }

    fn file(&mut self, root: &Path, path: PathBuf, is_hidden: bool) {
        let named = PackageKind::of_file_name(&path);
        let is_installers = path.extension().is_some_and(|it| it.eq_ignore_ascii_case(INSTALLER));
        let reason = match named {
            Some(_) if is_hidden => Some(PackageLeftOut::Hidden),
            Some(_) if is_installers => Some(PackageLeftOut::Installer),
            Some(_) => None,
            None if is_hidden => return,
            None => match other(root, &path) {
                None => return,
                reason => reason,
            },
        };
        match reason {
            None => self.files.push(path),
            Some(reason) => {
                let file = path.display().to_string();
                self.findings.add(Finding::PackageFileLeftOut { file, reason });
            }
        }
    }
}

/// Whether a folder has the receipt of a part of a set. A part may have no packages.
fn is_part(folder: &Path) -> Result<bool> {
    let names = Faults::all(list(folder)?.map(|entry| Ok(entry?.file_name())))?;
    Ok(names.iter().any(|name| part_of_file(&name.to_string_lossy()).is_some()))
}

/// The finding about a file without the name of a package. `None` for one that cannot be examined, and for
/// a link to a folder below `root`, which is searched anyway.
fn other(root: &Path, path: &Path) -> Option<PackageLeftOut> {
    let metadata = fs::metadata(path).ok()?;
    if metadata.is_dir() {
        let is_inside = path.canonicalize().ok()?.starts_with(root.canonicalize().ok()?);
        return (!is_inside).then_some(PackageLeftOut::LinkedFolder);
    }
    if !metadata.is_file() {
        return None;
    }
    let mut head = Vec::new();
    let most = ar::MAGIC.len() + FIRST_MEMBER.len();
    File::open(path).ok()?.take(most as u64).read_to_end(&mut head).ok()?;
    if head.starts_with(&LEAD_MAGIC) {
        return Some(PackageLeftOut::Unnamed(Format::Rpm));
    }
    let first = head.strip_prefix(ar::MAGIC)?;
    (first == FIRST_MEMBER).then_some(PackageLeftOut::Unnamed(Format::Deb))
}

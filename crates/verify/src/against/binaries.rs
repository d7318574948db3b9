//! Compares packages with single host binaries with device code, as compilers made them.
//!
//! Archives name a binary by its path below the install prefix, which a single file does not have: among the binaries
//! with its file name, the one that shares most of its code is compared. Archs that the file has no code for are
//! skipped, because other builds may have code for them.
//!
//! Host packages have the binary without its device code. If its machine code is that of the file, it must have the
//! form of the file. Different machine code comes from another build: a set with kernels may have been made from that;
//! in packages without kernels it is a failed check.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rockpack_core::content::Content;
use rockpack_core::error::{Error, Kind, Result, ResultExt};
use rockpack_core::gfx::BaseArch;
use rockpack_core::run::Budget;
use rockpack_core::tree::TreePath;

use crate::against::inputs::{self, BinaryBuild, ExaminedInput, InputFile};
use crate::against::{host_form, lost_code};
use crate::checks::excuses::Excuses;
use crate::checks::newest;
use crate::checks::set_archives::{TransformedBinary, kernel_name, transformed};
use crate::name_of;
use crate::partial::base_of;
use crate::problem::{ARTIFACTS, CodeLoss, CodePosition, FileLoss, PackagePath, Problem, Problems};
use crate::readers::Sha;
use crate::readers::archive::{ArchiveFacts, ArchiveRow};
use crate::readers::installed::{InstalledNode, PackageContents, files_of};

pub(crate) struct GivenBinary {
    path: PathBuf,
    pub(crate) build: BinaryBuild,
}

type BinaryRows<'a> = Vec<(PackagePath, ArchiveRow<'a>)>;

impl GivenBinary {
    /// Reads the binary at `path`; fails for a file that is not a binary with device code.
    pub(crate) fn open(path: &Path, budget: &Budget) -> Result<Self> {
        let content = Content::open(path, budget).map_err(Error::named_by_user)?;
        let place = TreePath::new(file_name(path)).file(path)?;
        let file = InputFile { shard: path.display().to_string(), content, mode: 0 };
        match inputs::examine(&place, &file).file(path)? {
            ExaminedInput::Fat(build) => Ok(Self { path: path.to_owned(), build }),
            _ => {
                let message = "is neither an artifact nor a host binary with device code";
                let hint = "--against accepts folders of artifacts, and binaries that still have \
                            their device code";
                Err(Error::new(Kind::Usage, message).file(path).hint(hint))
            }
        }
    }

    /// Reports code of the binary that the archives of `packages`, all of one format, lack, and code under its name
    /// that it does not have.
    pub(crate) fn check(
        &self,
        packages: &[&PackageContents],
        excuses: &Excuses,
        problems: &mut Problems,
    ) -> Result<()> {
        let installed = self.installed(packages);
        let (binary, rows) = match self.own_rows(packages) {
            Some((binary, rows)) => (binary.to_owned(), rows),
            None => {
                let message = "no kernel archive of these packages has code for a binary of this \
                               name, and no host package has the binary";
                let hint = "name the packages with it or its kernels, or another binary";
                let refusal = || Error::new(Kind::Usage, message).file(&self.path).hint(hint);
                let first = installed.first().ok_or_else(refusal)?;
                (first.marker.kernel_name.clone(), Vec::new())
            }
        };
        self.check_host(&installed, rows.is_empty(), excuses, problems)?;
        // Archives use the wrapper numbers of the installed build; other builds may number wrappers differently.
        let is_own = installed.iter().any(|it| self.build.is_of(&it.host.elf));
        let keyed = |key: &str| if is_own { key.to_owned() } else { String::new() };
        let has: BTreeSet<(String, &str, &Sha)> =
            rows.iter().map(|(_, row)| (keyed(row.key), row.target, &row.facts.sha256)).collect();
        let packed: BTreeSet<BaseArch> =
            rows.iter().filter_map(|(_, row)| base_of(row.target)).collect();
        let mut archs: BTreeSet<BaseArch> = BTreeSet::new();
        let mut known: BTreeSet<&Sha> = BTreeSet::new();
        for (wrapper, entries) in self.build.by_wrapper.iter().enumerate() {
            for entry in entries.iter() {
                let arch = base_of(&entry.target);
                // A finding leaves out all code of the binary for an arch, never a part of it.
                let is_packed = arch.as_ref().is_some_and(|arch| packed.contains(arch));
                archs.extend(arch);
                known.insert(&entry.sha256);
                let key = keyed(&format!("{binary}#{wrapper}"));
                let exists = has.contains(&(key, entry.target.as_str(), &entry.sha256));
                if !exists && (is_packed || !excuses.explains_absence(&entry.sha256)) {
                    let loss =
                        CodeLoss::NotInArchive { shard: self.build.file.shard.clone(), wrapper };
                    problems.add(lost_code(&binary, entry, loss));
                }
            }
        }
        let foreign = rows.into_iter().filter(|(_, row)| {
            let of_arch = base_of(row.target).is_some_and(|arch| archs.contains(&arch));
            of_arch && !known.contains(&row.facts.sha256)
        });
        for (file, row) in foreign {
            let position = CodePosition::row(row.key, row.target);
            let (sha256, unknown_to) = (row.facts.sha256.into(), ARTIFACTS);
            problems.add(Problem::CodeObjectForeign { file, position, sha256, unknown_to });
        }
        Ok(())
    }

    /// The kernel name of the binary in the archives, and its rows.
    fn own_rows<'a>(&self, packages: &[&'a PackageContents]) -> Option<(&'a str, BinaryRows<'a>)> {
        let name = file_name(&self.path);
        let known: BTreeSet<&Sha> = self.build.entries().map(|it| &it.sha256).collect();
        let mut named: BTreeMap<&str, BinaryRows<'_>> = BTreeMap::new();
        for (package, path, facts) in files_of(packages) {
            let rows = facts.archive().into_iter().flat_map(ArchiveFacts::entries);
            for row in rows.filter(|row| name_of(kernel_name(row.key)) == name) {
                named.entry(kernel_name(row.key)).or_default().push((package.at(path), row));
            }
        }
        named.into_iter().max_by_key(|(_, rows)| {
            rows.iter().filter(|(_, row)| known.contains(&row.facts.sha256)).count()
        })
    }

    /// The transformed binaries with its file name in host packages.
    fn installed<'a>(&self, packages: &[&'a PackageContents]) -> Vec<TransformedBinary<'a>> {
        let (name, mut found) = (file_name(&self.path), transformed(&newest(packages)));
        found.retain(|binary| name_of(binary.path) == name);
        found
    }

    /// Compares host binaries with the file; with `is_alone` also those with different machine code.
    fn check_host(
        &self,
        installed: &[TransformedBinary<'_>],
        is_alone: bool,
        excuses: &Excuses,
        problems: &mut Problems,
    ) -> Result<()> {
        let build = &self.build;
        for binary in installed.iter().filter(|binary| build.is_of(&binary.host.elf)) {
            let node = binary.package.paths.get(binary.path);
            let Some(facts) = node.and_then(InstalledNode::facts) else { continue };
            let path = TreePath::new(&*binary.marker.kernel_name)?;
            let parts = host_form::differing_parts(build, facts, &path, excuses)?;
            if !parts.is_empty() {
                let loss = FileLoss::OtherBytes { shard: build.file.shard.clone(), parts };
                problems.add(Problem::FileLost { path: binary.path.to_owned(), loss });
            }
        }
        if is_alone && !installed.iter().any(|binary| build.is_of(&binary.host.elf)) {
            for binary in installed {
                let loss = FileLoss::OtherBinary;
                problems.add(Problem::FileLost { path: binary.path.to_owned(), loss });
            }
        }
        Ok(())
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

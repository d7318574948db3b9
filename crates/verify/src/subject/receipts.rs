//! Receipts next to packages and wheels, and their signatures.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rockpack_core::content::{if_there, read_file, real_path};
use rockpack_core::error::{Kind, Result};

use crate::problem::{Problem, Problems, Report};
use rockpack_report::ReceiptDoubt;
use rockpack_report::words::few;
use rockpack_signing::Trust;

/// Reads receipts, and checks their signatures if there are keys.
pub(crate) struct ReceiptReader<'a> {
    trust: &'a Trust,
    problems: Problems,
    /// Number of receipts that one of the keys signed.
    signatures: usize,
}

impl<'a> ReceiptReader<'a> {
    /// Trusts receipts by these keys.
    pub(crate) fn new(trust: &'a Trust) -> Self {
        Self { trust, problems: Problems::default(), signatures: 0 }
    }

    /// Whether every set needs a signed receipt.
    fn has_keys(&self) -> bool {
        !self.trust.keys.is_empty()
    }

    /// Makes sets of files that are named one by one. With keys, the receipt in their folder is theirs; without,
    /// all are one set without a receipt.
    pub(crate) fn sets_of<T>(
        &mut self,
        files: Vec<PathBuf>,
        set: impl Fn(Option<&Path>, Vec<PathBuf>, &mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut folders: BTreeMap<Option<PathBuf>, Vec<PathBuf>> = BTreeMap::new();
        for file in files {
            let above = file.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = above.unwrap_or(Path::new("."));
            let folder = if self.has_keys() { real_path(folder)? } else { None };
            folders.entry(folder).or_default().push(file);
        }
        folders.into_iter().map(|(folder, files)| set(folder.as_deref(), files, self)).collect()
    }

    /// Reads, checks and parses a receipt; `None` if it is not there.
    pub(super) fn read<T>(
        &mut self,
        file: &Path,
        parse: impl Fn(&[u8]) -> Result<T>,
    ) -> Result<Option<T>> {
        let Some(bytes) = if_there(file, "read", read_file(file))? else { return Ok(None) };
        if self.has_keys() {
            self.check_signature(file, &bytes)?;
        }
        parse(&bytes).map(Some).map_err(|error| error.file(file))
    }

    /// Notes that packages or wheels have no receipt, which would be this file.
    pub(super) fn miss(&mut self, file: &Path) {
        if self.has_keys() {
            self.add_unsigned(file, "is not there, so nothing is signed");
        }
    }

    fn check_signature(&mut self, file: &Path, receipt: &[u8]) -> Result<()> {
        let reason = match self.trust.receipt_doubt(file, receipt) {
            Ok(None) => {
                self.signatures += 1;
                return Ok(());
            }
            Ok(Some(ReceiptDoubt::OtherKeys(keys))) => {
                let keys = if keys.is_empty() { "no key".to_owned() } else { few(&keys, 5) };
                format!("is signed by none of the keys given; its signatures name {keys}")
            }
            Ok(Some(_)) => {
                self.add_unsigned(file, "is not signed: no .asc file is next to it");
                return Ok(());
            }
            Err(error) if error.is_of_format() || error.kind() == Kind::Verify => {
                format!("its .asc {}", error.message())
            }
            Err(error) => return Err(error),
        };
        let receipt = file.display().to_string();
        self.problems.add(Problem::ReceiptSignature { receipt, reason });
        Ok(())
    }

    fn add_unsigned(&mut self, file: &Path, reason: &'static str) {
        let receipt = file.display().to_string();
        self.problems.add(Problem::ReceiptUnsigned { receipt, reason });
    }

    /// Reports what was found.
    pub(crate) fn finish(self, report: &mut Report, problems: &mut Problems) {
        report.signatures += self.signatures;
        problems.extend(self.problems);
    }
}

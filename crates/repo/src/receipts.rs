//! The receipts next to given packages: checks the digests of packages against receipts, and receipts against their
//! signatures. Without a trusted signature, a receipt only shows that packages are of one build.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rockpack_core::content::{list, read_small};
use rockpack_core::error::{Error, Faults, Kind, Result};
use rockpack_package::Format;
use rockpack_package::indexed::IndexMetadata;
use rockpack_package::receipt::wheels::{self, WheelReceipt};
use rockpack_package::receipt::{FILE_NAME, LIMIT, Receipt, package_of_file, part_of_file};
use rockpack_report::{Findings, ReceiptDoubt, found};
use rockpack_signing::{PublicKeys, Trust};

use super::input::GivenPackage;
use super::options::RepoOptions;

/// The packages that the receipts of a folder list, by format and name: the text `FILE of RECEIPT`.
pub(super) type Siblings = BTreeMap<(Format, String), String>;

#[derive(Default)]
struct FolderReceipts {
    /// File name → the receipts that list the file, each with the SHA-256 that it states.
    files: BTreeMap<String, Vec<(String, String)>>,
    siblings: Siblings,
}

/// Compares the `given` packages with the receipts in their folders, and sets their siblings. Returns all faults
/// together.
pub(super) fn check(given: &mut [GivenPackage], options: &RepoOptions<'_>) -> Result<Findings> {
    let mut trust = options.receipts.clone();
    if let Some(signer) = options.signer.as_deref() {
        trust.keys = trust.keys.and(PublicKeys::of_signer(signer)?);
    }
    let mut folders: BTreeMap<PathBuf, Vec<&mut GivenPackage>> = BTreeMap::new();
    for given in given {
        let folder = given.file.parent().filter(|folder| !folder.as_os_str().is_empty());
        folders.entry(folder.unwrap_or(Path::new(".")).to_path_buf()).or_default().push(given);
    }
    let wants_signatures = !options.receipts.keys.is_empty();
    let (mut findings, mut faults) = (Findings::default(), Faults::default());
    for (folder, given) in folders {
        let mut receipts = FolderReceipts::default();
        let mut paths = Faults::all(list(&folder)?.map(|entry| Ok(entry?.path())))?;
        paths.retain(|path| {
            let name = name_of(path);
            [FILE_NAME, wheels::FILE_NAME].contains(&&*name) || part_of_file(&name).is_some()
        });
        paths.sort();
        for path in paths {
            let doubt = faults.keep(receipts.add(&path, &trust)).flatten();
            let reportable =
                doubt.filter(|doubt| wants_signatures || *doubt != ReceiptDoubt::Unsigned);
            if let Some(doubt) = reportable {
                findings.add(found::ReceiptUntrusted { receipt: shown(&path), doubt });
            }
        }
        let (siblings, mut packages) = (Arc::new(receipts.siblings), Vec::new());
        for given in given {
            given.siblings = Arc::clone(&siblings);
            let stated = receipts.files.get(&given.source.name);
            // Receipts do not list source distributions.
            let is_source =
                matches!(&given.indexed.facts, IndexMetadata::Wheel(it) if it.is_source());
            let is_unlisted = stated.is_none() && (wants_signatures || !is_source);
            packages.extend(is_unlisted.then(|| given.source.name.clone()));
            let own = &given.source.sha256;
            let other = stated.into_iter().flatten().find(|(_, sha256)| sha256 != own);
            if let Some((receipt, stated)) = other {
                let message = format!("has the SHA-256 {own}, but {receipt} states {stated}");
                faults.add(Error::new(Kind::Conflict, message).file(&given.file).hint(
                    "copy the package again from the build that wrote the receipt; if it was signed or \
                     changed on purpose since, publish it from a folder without that receipt",
                ));
            }
        }
        if !packages.is_empty() && (wants_signatures || !receipts.files.is_empty()) {
            findings.add(found::PackagesNotInReceipt { folder: shown(&folder), packages });
        }
    }
    findings.explain(faults.finish()).map(|()| findings)
}

pub(super) fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

impl FolderReceipts {
    /// Adds a receipt. Returns why it proves nothing, if so.
    fn add(&mut self, path: &Path, trust: &Trust) -> Result<Option<ReceiptDoubt>> {
        let bytes = read_small(path, LIMIT, "receipt")?;
        let added = self.add_files(path, &bytes);
        let doubt = trust.receipt_doubt(path, &bytes)?;
        Ok(added.map_or_else(|error| Some(ReceiptDoubt::Unread(error.to_string())), |()| doubt))
    }

    fn add_files(&mut self, path: &Path, bytes: &[u8]) -> Result<()> {
        let mut add = |name: &str, sha256: &str| {
            let statement = (shown(path), sha256.to_owned());
            self.files.entry(name.to_owned()).or_default().push(statement);
        };
        if name_of(path) == wheels::FILE_NAME {
            let receipt = WheelReceipt::parse(bytes)?;
            receipt.wheels.iter().for_each(|wheel| add(&wheel.file_name, &wheel.sha256));
            return Ok(());
        }
        let receipt = Receipt::parse(bytes)?;
        receipt.all_packages().for_each(|record| add(&record.file_name, &record.sha256));
        // The receipt of a part names the packages of all parts.
        let of_parts = receipt.part.iter().flat_map(|part| part.packages.keys());
        for file in receipt.all_packages().map(|record| &record.file_name).chain(of_parts) {
            let words = format!("{file} of {}", path.display());
            self.siblings.extend(package_of_file(file).map(|package| (package, words)));
        }
        Ok(())
    }
}

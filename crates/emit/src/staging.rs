//! The hidden folder where packages are staged until the whole set is complete.
//!
//! ```text
//! OUT/.rockpack-staging-N/            the scratch folder of a run, see [`Swap`]
//!     <packages>                      until the commit
//!     packages.spdx.json              an SPDX document, if one comes with them
//!     packages.json                   the new receipt, written before the commit
//!     packages.json.asc               its signature, if it is signed
//! OUT/packages.json                   the receipt of the set in OUT, last to appear
//! ```
//!
//! For a part of a set, packages.json is called packages-1-of-3.json in both folders, and its companions
//! likewise. A packages.json that is not a receipt is refused.
//!
//! A set of wheels has wheels.json instead, which may be in the same folder as packages.json.
//!
//! If packages.json is in OUT, it describes the packages in OUT, and so do its companions: their ranks are
//! those of [`earlier::rank`]. The next run rolls back a commit that was killed.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rockpack_core::content::{Content, hex, read_file};
use rockpack_core::error::{Error, Kind, Result, ResultExt};
use rockpack_core::run::Budget;

use super::earlier::{self, Companion, is_package};
use rockpack_files::{CommitPolicy, Durability, Swap, kind_of};
use rockpack_package::receipt::{self, SpdxRecord};
use rockpack_report::words::list;
use rockpack_signing::IndexSigner;

static PACKAGES: CommitPolicy = CommitPolicy {
    prefix: ".rockpack-staging-",
    contents: "packages",
    durability: Durability::Synced,
    rank: earlier::rank,
    writes: |name| earlier::rank(name) > 0 || is_package(Path::new(name)),
};

/// A staging folder for a package set; removed with its content unless committed.
#[derive(Debug)]
pub struct Staging {
    swap: Swap,
    names: Mutex<BTreeSet<String>>,
    receipt: String,
    signer: Option<Arc<dyn IndexSigner>>,
}

impl Staging {
    /// Begins a whole set: creates a staging directory in `out`, and `out` if missing, and removes those of killed
    /// runs.
    pub fn begin(out: &Path) -> Result<Self> {
        Self::begin_with(out, receipt::FILE_NAME, false)
    }

    /// Begins a set with this receipt, and an SPDX document if it `has_document`. Parts of a set and sets of wheels
    /// have their own receipts, so one folder can hold several.
    pub fn begin_with(out: &Path, receipt: &str, has_document: bool) -> Result<Self> {
        let swap = Swap::begin(&PACKAGES, out, || refuse_foreign(out, receipt, has_document))?;
        Ok(Self { swap, names: Mutex::default(), receipt: receipt.to_owned(), signer: None })
    }

    /// Sets the signer of the receipt.
    pub fn signed_by(self, signer: Option<Arc<dyn IndexSigner>>) -> Self {
        Self { signer, ..self }
    }

    /// Refuses a folder that [`Self::begin_with`] refuses. Creates and changes nothing.
    pub fn check_ahead(out: &Path, receipt: &str, has_document: bool) -> Result<()> {
        Swap::check_ahead(&PACKAGES, out, || refuse_foreign(out, receipt, has_document))
    }

    /// Creates an empty file for a package; each name can be used once.
    pub fn create(&self, name: &str) -> Result<File> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if !names.insert(name.to_owned()) {
            let message = format!("two packages would both be written to {name}");
            return Err(Error::new(Kind::Conflict, message));
        }
        self.swap.create(name)
    }

    /// Creates the SPDX document of the set, filled by `write`, and digests it within `budget`.
    pub fn write_sbom(
        &self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
        budget: &Budget,
    ) -> Result<SpdxRecord> {
        let file_name = receipt::sbom_name(&self.receipt);
        self.swap.write(&file_name, write)?;
        let sha256 = hex(&Content::open(self.swap.path(&file_name), budget)?.sha256()?);
        Ok(SpdxRecord { file_name, sha256 })
    }

    /// Syncs a finished file to disk and returns its content, to be digested within `budget`.
    pub fn seal(&self, name: &str, budget: &Budget) -> Result<Content> {
        Content::open(self.swap.seal(name)?, budget)
    }

    /// Removes a staged file from the set.
    pub fn discard(&self, name: &str) -> Result<()> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
        let path = self.path(name);
        fs::remove_file(&path).map_err(|e| Error::io(&path, "remove", e))
    }

    pub fn open(&self, name: &str) -> Result<File> {
        let path = self.path(name);
        File::open(&path).map_err(|e| Error::io(&path, "open", e))
    }

    /// The path of a staged file, to be read back before the set is committed.
    pub fn path(&self, name: &str) -> PathBuf {
        self.swap.path(name)
    }

    /// Makes the set visible: all packages by rename, then the companions, then the receipt.
    ///
    /// The caller has checked that the inputs did not change. The receipt, which `write` writes, is a JSON
    /// object whose `packages`, or `wheels`, is an array of objects with a `file_name` and a `sha256`; it
    /// must name exactly the staged files. Files of the earlier set whose names are in `kept` stay. After an error,
    /// `out` has its earlier set, unless the error says that the rollback failed. Returns the names of the removed
    /// packages of the earlier set.
    pub fn commit(
        self,
        kept: &BTreeSet<String>,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<BTreeSet<String>> {
        let Self { swap, names, receipt, signer } = self;
        let names = names.into_inner().unwrap_or_else(PoisonError::into_inner);
        swap.write(&receipt, write)?;
        if let Some(signer) = signer {
            sign(&swap, &receipt, &*signer).context(|| format!("signing {receipt}"))?;
        }
        let mut companions = Vec::new();
        for companion in Companion::ALL {
            let staged = kind_of(&swap.path(&companion.name(&receipt)))?;
            companions.extend(staged.map(|_| companion));
        }
        swap.commit(|| {
            let listed = earlier::listed(swap.folder(), &receipt)?.own;
            if listed != names {
                let odd = list(listed.symmetric_difference(&names));
                return Err(Error::bug(format!("receipt and staged packages differ: {odd}")));
            }
            let mut change = earlier::commit_change(swap.out(), &receipt, names, &companions)?;
            change.removed.retain(|name| !kept.contains(name));
            Ok(change)
        })
    }
}

fn sign(swap: &Swap, receipt: &str, signer: &dyn IndexSigner) -> Result<()> {
    let path = swap.path(receipt);
    let bytes = read_file(&path).map_err(|e| Error::io(&path, "read", e))?;
    let signature = signer.sign_detached(&bytes)?;
    swap.write(&receipt::signature_name(receipt), |sink| sink.write_all(signature.as_bytes()))
}

/// Refuses receipts and companions in `out` that conflict with the set of `receipt`.
fn refuse_foreign(out: &Path, receipt: &str, has_document: bool) -> Result<()> {
    earlier::refuse_mixed(out, receipt)?;
    earlier::listed(out, receipt)?;
    earlier::refuse_companions(out, receipt, has_document)
}

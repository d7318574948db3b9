//! The hidden folder where packages are staged until the whole set is complete.
//!
//! ```text
//! OUT/.rockpack-staging-N/            the scratch folder of a run, see [`Swap`]
//!     <packages>                      until the commit
//!     packages.spdx.json              an SPDX document, if one comes with them
//!     packages.json                   the new receipt, written when the commit begins
//! OUT/packages.json                   the receipt of the set in OUT, last to appear
//! ```
//!
//! For a part of a set, packages.json is called packages-1-of-3.json in both places, and packages.spdx.json
//! likewise. A packages.json that is not a receipt is refused.
//!
//! A set of wheels has wheels.json in its place, which may lie beside packages.json.
//!
//! If packages.json is in OUT, it describes the packages in OUT, and so does an SPDX document: their ranks
//! are those of [`earlier::rank`]. The next run rolls back a commit that was killed.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rockpack_base::content::{Content, hex};
use rockpack_base::error::{Error, Kind, Result};
use rockpack_base::run::Budget;

use super::earlier::{self, SpdxDocument};
use super::listed::is_package;
use crate::files::{Durability, Outlet, Swap, kind_of};
use crate::receipt::{self, SetPart, SpdxRecord, wheels};

static PACKAGES: Outlet = Outlet {
    prefix: ".rockpack-staging-",
    holds: "packages",
    durability: Durability::Synced,
    rank: earlier::rank,
    writes: |name| earlier::rank(name) > 0 || is_package(Path::new(name)),
};

/// A staging folder for a package set; removed with its content unless committed.
#[derive(Debug)]
pub struct Staging {
    swap: Swap,
    names: Mutex<BTreeSet<String>>,
    /// The receipt's file name.
    receipt: String,
}

impl Staging {
    /// Begins a whole set: makes a staging directory inside `out`, which is made too if it does not exist,
    /// and removes orphaned ones of dead runs.
    pub fn begin(out: &Path) -> Result<Self> {
        Self::begin_part(out, None)
    }

    /// Begins a set or a part of one, which has a receipt of its own: all parts fit into one folder.
    pub fn begin_part(out: &Path, part: Option<SetPart>) -> Result<Self> {
        let receipt = receipt::file_name(part);
        let swap =
            Swap::begin(&PACKAGES, out, || refuse_foreign(out, &receipt, SpdxDocument::Absent))?;
        Ok(Self { swap, names: Mutex::default(), receipt })
    }

    /// Begins a set of wheels.
    pub fn begin_wheels(out: &Path) -> Result<Self> {
        let receipt = wheels::FILE_NAME.to_owned();
        let swap = Swap::begin(&PACKAGES, out, || earlier::listed(out, &receipt).map(drop))?;
        Ok(Self { swap, names: Mutex::default(), receipt })
    }

    /// Refuses a folder that no set of wheels can be written into. Creates and changes nothing.
    pub fn check_wheels_ahead(out: &Path) -> Result<()> {
        Swap::check_ahead(&PACKAGES, out, || earlier::listed(out, wheels::FILE_NAME).map(drop))
    }

    /// Refuses a folder that no set, or part of one, can be written into, whatever its content. Creates and
    /// changes nothing.
    pub fn check_ahead(out: &Path, part: Option<SetPart>, document: SpdxDocument) -> Result<()> {
        let receipt = receipt::file_name(part);
        Swap::check_ahead(&PACKAGES, out, || refuse_foreign(out, &receipt, document))
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

    /// Fails if an SPDX document of the set cannot be written.
    pub fn expect_sbom(&self) -> Result<()> {
        earlier::refuse_foreign_sbom(self.swap.out(), &self.receipt, SpdxDocument::Present)
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

    /// Opens a staged file for reading.
    pub fn open(&self, name: &str) -> Result<File> {
        let path = self.path(name);
        File::open(&path).map_err(|e| Error::io(&path, "open", e))
    }

    /// The path of a staged file, to be read back before the set is committed.
    pub fn path(&self, name: &str) -> PathBuf {
        self.swap.path(name)
    }

    /// Makes the set visible: all packages by rename, then `receipt` as `packages.json`.
    ///
    /// The caller has checked that the inputs did not change. The receipt, which `write` writes, is a JSON
    /// object whose `packages`, or `wheels`, is an array of objects with a `file_name` and a `sha256`; it
    /// must name exactly the staged files. Files of the earlier set that are among `kept`, by name, stay. On
    /// an error, `out` has its earlier set, unless the error says that the renames could not be undone
    /// either. Returns the names of the earlier set's packages that were removed.
    pub fn commit(
        self,
        kept: &BTreeSet<String>,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<BTreeSet<String>> {
        let Self { swap, names, receipt } = self;
        let names = names.into_inner().unwrap_or_else(PoisonError::into_inner);
        swap.commit(|| {
            swap.write(&receipt, write)?;
            let listed = earlier::listed(swap.folder(), &receipt)?.own;
            if listed != names {
                let odd: Vec<_> = listed.symmetric_difference(&names).cloned().collect();
                let message = format!("receipt and staged packages differ: {}", odd.join(", "));
                return Err(Error::bug(message));
            }
            let document = match kind_of(&swap.path(&receipt::sbom_name(&receipt)))? {
                Some(_) => SpdxDocument::Present,
                None => SpdxDocument::Absent,
            };
            let mut change = earlier::change(swap.out(), &receipt, names, document)?;
            change.goes.retain(|name| !kept.contains(name));
            Ok(change)
        })
    }
}

/// Refuses receipts and documents in `out` that the set with `receipt` can neither replace nor lie beside.
fn refuse_foreign(out: &Path, receipt: &str, document: SpdxDocument) -> Result<()> {
    earlier::refuse_mixed(out, receipt)?;
    earlier::listed(out, receipt)?;
    earlier::refuse_foreign_sbom(out, receipt, document)
}

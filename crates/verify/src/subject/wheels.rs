//! Wheels that an argument names, and the receipt beside them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rockpack_archive::wheel::WheelName;
use rockpack_core::error::Result;

use super::argument::files;
use super::receipts::ReceiptReader;
use rockpack_package::receipt::wheels::{FILE_NAME, WheelReceipt};

/// One argument: a folder of wheels, or wheels that are named one by one.
#[derive(Default)]
pub(crate) struct WheelArgument {
    /// Files, in name order.
    pub(crate) wheels: Vec<PathBuf>,
    pub(crate) receipt: Option<WheelReceipt>,
}

impl WheelArgument {
    /// The wheels of a folder.
    pub(crate) fn of_folder(folder: &Path, receipts: &mut ReceiptReader<'_>) -> Result<Self> {
        Self::of(Some(folder), files(folder, |file| Ok(WheelName::is_one(file)))?, receipts)
    }

    /// Wheels with the receipt of their folder, if that counts.
    pub(crate) fn of(
        folder: Option<&Path>,
        wheels: Vec<PathBuf>,
        receipts: &mut ReceiptReader<'_>,
    ) -> Result<Self> {
        let Some(folder) = folder else { return Ok(Self { wheels, receipt: None }) };
        let file = folder.join(FILE_NAME);
        let receipt = receipts.read(&file, WheelReceipt::parse)?;
        if receipt.is_none() && !wheels.is_empty() {
            receipts.miss(&file);
        }
        Ok(Self { wheels, receipt })
    }

    /// The file names of the wheels.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        let names = self.wheels.iter().filter_map(|path| path.file_name());
        names.map(|name| name.to_string_lossy().into_owned()).collect()
    }

    /// Whether neither wheels nor a receipt of some are there.
    pub(crate) fn is_empty(&self) -> bool {
        self.wheels.is_empty() && self.receipt.is_none()
    }
}
